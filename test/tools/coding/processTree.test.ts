/** Real processes, looked for by /proc alone. */
import { type ChildProcess, spawn } from 'node:child_process';
import { getEventListeners } from 'node:events';
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { getActiveResourcesInfo } from 'node:process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Process, rowsIn } from '../../../src/tools/coding/processTable.ts';
import { endOnExit, ProcessTree, processesOf } from '../../../src/tools/coding/processTree.ts';
import { proves } from '../../support/tier.ts';
import { type Bench, call, makeBench } from './codingBench.ts';
import { alive, gone, hasProc, living, numberIn } from './liveProcesses.ts';

let on: Bench;
beforeAll(async () => {
  on = await makeBench();
});
afterAll(() => on.remove());

const bash = (command: string, more: object = {}) => call(on.root, 'Bash', { command, ...more });
const pidIn = (name: string): Promise<number> => numberIn(join(on.root, name));

/** What the process has open, time apart. */
const open = (): string[] => getActiveResourcesInfo().filter((name) => name !== 'Timeout');
/** The same, once nothing of it changes any more and nothing is being closed. */
async function atRest(): Promise<string[]> {
  let last: string[] = [];
  await expect
    .poll(
      () => {
        const before = last;
        last = open().sort();
        return !last.includes('CloseReq') && before.join() === last.join();
      },
      { interval: 100 },
    )
    .toBe(true);
  return last;
}
/** What is open more often than it was. */
function beyond(before: readonly string[], now: readonly string[]): string[] {
  const known = [...before];
  return now.filter((name) => {
    const at = known.indexOf(name);
    if (at >= 0) known.splice(at, 1);
    return at < 0;
  });
}

describe.skipIf(!hasProc)('a command that has ended leaves nothing behind', () => {
  it('what it put in the background is ended, and that is said', async () => {
    const { status, text } = await bash('sleep 1000 & echo $! > back; echo started');
    expect({ status, text }).toEqual({ status: 'success', text: 'started\n[what it left running was ended]' });
    expect(living(await pidIn('back'))).toEqual([]);
  });

  it('H-228 so is what left its session and its parents', async () => {
    const { text } = await bash(
      "nohup sleep 1000 & disown; (setsid bash -c 'echo $$ > far; sleep 1000; :' &); sleep 0.2",
    );
    expect(text).toContain('[what it left running was ended]');
    expect(living(await pidIn('far'))).toEqual([]);
  });

  it('what one that reads the output has written by then is in the result', async () => {
    // A slow machine may take longer to start it than it is given: then the result says that it was ended.
    const { status, text } = await bash('echo hi > >(cat); sleep 0.2');
    expect(status).toBe('success');
    expect(text).toMatch(/^hi(\n\[what it left running was ended\])?$/);
  });

  it('a pipe that somebody else holds open does not hold up the answer', async () => {
    expect((await bash('(setsid sleep 1000 &); echo done')).text).toContain('done');
  });

  it.skipIf(!proves)('no pipe, child or listener is left', async () => {
    const { signal } = new AbortController();
    const once = async (): Promise<void> => {
      await call(on.root, 'Bash', { command: 'sleep 1000 & echo started' }, signal);
      await bash('sleep 1000', { timeoutMs: 100 });
    };
    await once();
    const before = await atRest();
    const listeners = process.listenerCount('exit');
    for (let time = 0; time < 3; time += 1) await once();
    expect(getEventListeners(signal, 'abort')).toEqual([]);
    // A handle that is being closed is gone a moment later.
    await expect.poll(() => beyond(before, open())).toEqual([]);
    expect(process.listenerCount('exit')).toBe(listeners);
  });
});

describe.skipIf(!hasProc)('an abort', () => {
  it('before the start starts nothing', async () => {
    const reason = new Error('stop');
    const running = call(on.root, 'Bash', { command: 'echo $$ > early' }, AbortSignal.abort(reason));
    await expect(running).rejects.toBe(reason);
    expect(await call(on.root, 'Ls', {})).not.toMatchObject({ text: expect.stringContaining('early') });
  });

  it('rejects with its reason once all has ended, and signals go to the group at once', async () => {
    const command = "trap 'echo > heard; exit' TERM; echo $$ > g; while :; do sleep 0.01; done";
    const hears = async (): Promise<boolean> => {
      await rm(join(on.root, 'g'), { force: true });
      const controller = new AbortController();
      const running = call(on.root, 'Bash', { command }, controller.signal);
      const group = await pidIn('g');
      const reason = new Error('stop');
      controller.abort(reason);
      await expect(running).rejects.toBe(reason);
      expect(living(group)).toEqual([]);
      return existsSync(join(on.root, 'heard'));
    };
    // KILL comes 50 ms behind TERM, before a busy machine may have run the trap: then another one is asked.
    await expect.poll(hears).toBe(true);
  });

  it('while the output of an ended command is read ends what it left running', async () => {
    const controller = new AbortController();
    const running = call(on.root, 'Bash', { command: 'echo $$ > h; sleep 1000 & exit 0' }, controller.signal);
    const group = await pidIn('h');
    controller.abort(new Error('stop'));
    await expect(running).rejects.toThrow('stop');
    await gone(group);
  });
});

describe.skipIf(!hasProc)('the end of the program', () => {
  let child: ChildProcess | undefined;
  afterAll(() => child?.kill('SIGKILL'));

  it('ends a tree before it returns, whatever it does about TERM and wherever it went', async () => {
    const env = { PATH: process.env.PATH ?? '', WHO: 'mark-of-this-test' };
    const script = "trap '' TERM; sleep 1000 & (setsid bash -c 'echo $$ > x1; sleep 1000; :' &); echo $$ > x2; wait";
    child = spawn('bash', ['-c', script], { cwd: on.root, env, detached: true, stdio: 'ignore' });
    const tree = new ProcessTree(child.pid ?? 0, 'mark-of-this-test');
    const ids = [await pidIn('x1'), await pidIn('x2')];
    await alive(4, ...ids);
    tree.kill();
    await gone(...ids);
  });
});

const row = (pid: number, parent: number, session: number, start = 100): Process => ({
  pid,
  parent,
  session,
  group: session,
  start,
});
const pids = (found: readonly Process[]): number[] => found.map(({ pid }) => pid).sort((a, b) => a - b);

describe('who belongs to a command', () => {
  const tree = { root: 50, since: 100, host: 10, known: new Map<number, Process>(), marked: new Set<number>() };
  const root = row(50, 40, 50);

  it('its session, its descendants in any session, and the sessions of those', () => {
    const table = [
      root,
      row(51, 50, 50),
      row(52, 51, 52),
      row(53, 1, 52),
      row(54, 1, 50),
      row(60, 1, 60),
      row(61, 60, 60),
    ];
    expect(pids(processesOf(table, tree))).toEqual([50, 51, 52, 53, 54]);
  });

  it('who carries its mark, and who descends from them', () => {
    const table = [row(70, 1, 70), row(71, 70, 71), row(72, 1, 72)];
    expect(pids(processesOf(table, { ...tree, marked: new Set([70]) }))).toEqual([70, 71]);
  });

  it('who was seen to belong, unless the number is somebody else’s by now', () => {
    const known = new Map([70, 72].map((pid) => [pid, row(pid, 50, pid)]));
    expect(pids(processesOf([row(70, 1, 70), row(72, 1, 72, 999)], { ...tree, known }))).toEqual([70]);
  });

  it('never this program, its session, or what belongs to no session', () => {
    const table = [root, row(process.pid, 50, 12), row(55, 50, 10), row(56, 50, 0), row(57, 50, 1)];
    expect(pids(processesOf(table, { ...tree, marked: new Set([55, 56, 57]) }))).toEqual([50]);
  });

  it('nobody of the session of another process that was given the number', () => {
    expect(processesOf([row(50, 1, 50, 999), row(51, 50, 50, 999)], tree)).toEqual([]);
  });

  it('children before their parents in the table are found', () => {
    expect(pids(processesOf([row(5, 6, 5), row(6, 7, 6), row(7, 50, 7), root], tree))).toEqual([5, 6, 7, 50]);
  });
});

describe('the table of ps', () => {
  it('is read line by line; what has ended or is no line of it is left out', () => {
    const table = [
      '    1     0     1 Ss   /sbin/launchd',
      '  501     1   501 S+   sleep 1000 PATH=/bin RUNCHART_CALL=abc HOME=/h',
      '  502   501   501 Z    (sleep)',
      'ps: a warning',
      '',
    ].join('\n');
    const process = { pid: 501, parent: 1, group: 501, session: 501, start: 0 };
    expect(rowsIn(table, 'abc')).toEqual([
      { process: { pid: 1, parent: 0, group: 1, session: 1, start: 0 }, marked: false },
      { process, marked: true },
    ]);
  });
});

it('living trees end with this process as long as one of them lives, in whichever order they end', () => {
  const before = process.listenerCount('exit');
  const forget = [1, 2, 3].map(() => endOnExit(new ProcessTree(process.pid, 'mark')));
  for (const [index, each] of forget.entries()) {
    expect([index, process.listenerCount('exit') - before]).toEqual([index, 1]);
    each();
    each();
  }
  expect(process.listenerCount('exit')).toBe(before);
});
