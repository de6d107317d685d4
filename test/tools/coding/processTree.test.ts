/** Real processes, found by /proc alone. */
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

/** The open resources of the process, except timers. */
const open = (): string[] => getActiveResourcesInfo().filter((name) => name !== 'Timeout');
/** The same, when nothing changes any more and nothing is being closed. */
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
/** The resources with a higher count than before. */
function beyond(before: readonly string[], now: readonly string[]): string[] {
  const earlier = [...before];
  return now.filter((name) => {
    const at = earlier.indexOf(name);
    if (at >= 0) earlier.splice(at, 1);
    return at < 0;
  });
}

describe.skipIf(!hasProc)('a command that has ended leaves no process', () => {
  it('its background processes are ended, with a note', async () => {
    const { status, text } = await bash('sleep 1000 & echo $! > back; echo started');
    expect({ status, text }).toEqual({ status: 'success', text: 'started\n[what it left running was ended]' });
    expect(living(await pidIn('back'))).toEqual([]);
  });

  it('H-228 processes that left its session and its parents are ended too', async () => {
    const { text } = await bash(
      "nohup sleep 1000 & disown; (setsid bash -c 'echo $$ > far; sleep 1000; :' &); sleep 0.2",
    );
    expect(text).toContain('[what it left running was ended]');
    expect(living(await pidIn('far'))).toEqual([]);
  });

  it('the result contains everything that an output reader has written by then', async () => {
    // A slow machine may need longer to start it than the limit. The result then contains a note about its end.
    const { status, text } = await bash('echo hi > >(cat); sleep 0.2');
    expect(status).toBe('success');
    expect(text).toMatch(/^hi(\n\[what it left running was ended\])?$/);
  });

  it('a pipe that another process holds open does not delay the result', async () => {
    expect((await bash('(setsid sleep 1000 &); echo done')).text).toContain('done');
  });

  it.skipIf(!proves)('no pipe, child or listener remains', async () => {
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
    // A handle that is being closed disappears a moment later.
    await expect.poll(() => beyond(before, open())).toEqual([]);
    expect(process.listenerCount('exit')).toBe(listeners);
  });
});

describe.skipIf(!hasProc)('an abort', () => {
  it('before the start it starts nothing', async () => {
    const reason = new Error('stop');
    const running = call(on.root, 'Bash', { command: 'echo $$ > early' }, AbortSignal.abort(reason));
    await expect(running).rejects.toBe(reason);
    expect(await call(on.root, 'Ls', {})).not.toMatchObject({ text: expect.stringContaining('early') });
  });

  it('it rejects with its reason after all processes have ended, and signals reach the group at once', async () => {
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
    // KILL follows TERM after 50 ms, possibly before a busy machine has run the trap. Then another command is tried.
    await expect.poll(hears).toBe(true);
  });

  it("during the reading of an ended command's output it ends the remaining processes", async () => {
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

  it('it ends a tree before it returns, even if the tree ignores TERM or left its group', async () => {
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

describe('the processes of a command', () => {
  const tree = { root: 50, since: 100, host: 10, seenBefore: new Map<number, Process>(), marked: new Set<number>() };
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

  it('processes with its mark, and their descendants', () => {
    const table = [row(70, 1, 70), row(71, 70, 71), row(72, 1, 72)];
    expect(pids(processesOf(table, { ...tree, marked: new Set([70]) }))).toEqual([70, 71]);
  });

  it('processes that were seen to belong, unless the pid is another process by now', () => {
    const seenBefore = new Map([70, 72].map((pid) => [pid, row(pid, 50, pid)]));
    expect(pids(processesOf([row(70, 1, 70), row(72, 1, 72, 999)], { ...tree, seenBefore }))).toEqual([70]);
  });

  it('never this program, its session, or a process without a session', () => {
    const table = [root, row(process.pid, 50, 12), row(55, 50, 10), row(56, 50, 0), row(57, 50, 1)];
    expect(pids(processesOf(table, { ...tree, marked: new Set([55, 56, 57]) }))).toEqual([50]);
  });

  it('no process of another session that has a reused pid', () => {
    expect(processesOf([row(50, 1, 50, 999), row(51, 50, 50, 999)], tree)).toEqual([]);
  });

  it('children that precede their parents in the table', () => {
    expect(pids(processesOf([row(5, 6, 5), row(6, 7, 6), row(7, 50, 7), root], tree))).toEqual([5, 6, 7, 50]);
  });
});

describe('the table of ps', () => {
  it('it is read line by line, and ended processes and invalid lines are skipped', () => {
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

it('process trees end with this process while one of them lives, in any order', () => {
  const before = process.listenerCount('exit');
  const forget = [1, 2, 3].map(() => endOnExit(new ProcessTree(process.pid, 'mark')));
  for (const [index, each] of forget.entries()) {
    expect([index, process.listenerCount('exit') - before]).toEqual([index, 1]);
    each();
    each();
  }
  expect(process.listenerCount('exit')).toBe(before);
});
