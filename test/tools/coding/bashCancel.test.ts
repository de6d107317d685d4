/**
 * Cancelling runs while Bash runs real trees of processes. Rule: times are real, so the bounds leave room for a slow
 * machine; `npm run bench:cancel` holds the tight ones.
 */
import { mkdtemp, readFile, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type AgentOptions, type Conversation, createAgent } from '../../../src/index.ts';
import { codingTools } from '../../../src/tools/coding/index.ts';
import { entry, only, resultText } from '../../support/agent.ts';
import { call, scripted } from '../../support/model.ts';
import { alive, gone, hasProc, living, numberIn } from './living.ts';

const trees = Object.entries(
  JSON.parse(await readFile(new URL('../../bench/trees.json', import.meta.url), 'utf8')) as Record<string, string>,
);
const TRIALS = 18;

let cwd = '';
beforeEach(async () => {
  cwd = await realpath(await mkdtemp(join(tmpdir(), 'coding-')));
});
afterEach(() => rm(cwd, { recursive: true, force: true }));

const pidIn = (name: string): Promise<number> => numberIn(join(cwd, name));

/** A run whose model asks for these commands in one reply; resolves when the first one has written its pid. */
async function running(commands: readonly string[], policies: AgentOptions['policies'] = {}) {
  const calls = commands.map((command, index) =>
    call(`c${index + 1}`, 'Bash', { command: `echo $$ > g${index + 1}; ${command}` }),
  );
  const agent = createAgent({ model: scripted([calls, 'next']), tools: codingTools(), cwd, policies });
  const conversation = await agent.open('c');
  conversation.send('go');
  return { agent, conversation, group: await pidIn('g1') };
}

async function cancelled(conversation: Conversation): Promise<number> {
  const since = performance.now();
  await conversation.cancel();
  expect(conversation.status).toBe('idle');
  return performance.now() - since;
}

describe.skipIf(!hasProc)('BED-5 INV-6 B05: a cancel while Bash runs', () => {
  it('is idle in no time, ends the group at once and sweeps what left it within a second', {
    timeout: 120_000,
  }, async () => {
    const times: number[] = [];
    for (let trial = 0; trial < TRIALS; trial += 1) {
      const [name = '', command = ''] = trees[trial % trees.length] ?? [];
      await rm(join(cwd, 'g1'), { force: true });
      await rm(join(cwd, 'up'), { force: true });
      const { agent, conversation, group } = await running([`(${command}) > up`]);
      while ((await readFile(join(cwd, 'up'), 'utf8').catch(() => '')) === '' && living(group).length > 0)
        await wait(5);
      const ids = name.includes('session') ? [group, await pidIn('away')] : [group];
      await alive(2, ...ids);
      times.push(await cancelled(conversation));
      await gone(2_000, group);
      await gone(5_000, ...ids);
      expect(only(conversation.log(), 'tool-result')).toEqual(['tool-result c1 cancelled cancelled']);
      await agent.close();
    }
    times.sort((a, b) => a - b);
    expect(times[TRIALS / 2]).toBeLessThan(250);
    expect(times.at(-1)).toBeLessThan(2_000);
  });

  it('H-229 does not wait for one that ignores TERM, and the next message works', async () => {
    const { agent, conversation, group } = await running(["trap '' TERM; while :; do sleep 0.05; done"]);
    await cancelled(conversation);
    expect((await conversation.send('again').result).text).toBe('next');
    expect(resultText(conversation.log(), 'c1')).toMatch(/cancelled/);
    await gone(2_000, group);
    await wait(50);
    expect(only(conversation.log(), 'diagnostic')).toEqual([]);
    await agent.close();
  });

  it('S003-17 keeps what is done, cancels what runs and skips what waits, in the order of the calls', async () => {
    const sleeping = 'sleep 1000';
    const { agent, conversation } = await running(['echo first', sleeping, sleeping, sleeping], {
      toolExecution: 'sequential',
    });
    const group = await pidIn('g2');
    await cancelled(conversation);
    expect(only(conversation.log(), 'tool-result')).toEqual([
      'tool-result c1 succeeded',
      'tool-result c2 cancelled cancelled',
      'tool-result c3 cancelled skipped',
      'tool-result c4 cancelled skipped',
    ]);
    await gone(2_000, group);
    await expect(readFile(join(cwd, 'g3'))).rejects.toThrow('ENOENT');
    await agent.close();
  });

  it('ends all commands that run beside each other', async () => {
    const sleeping = 'sleep 1000 & wait';
    const { agent, conversation } = await running([sleeping, sleeping, sleeping]);
    const groups = [await pidIn('g1'), await pidIn('g2'), await pidIn('g3')];
    await alive(6, ...groups);
    await cancelled(conversation);
    await gone(2_000, ...groups);
    await agent.close();
  });

  it('while it prints without end is as fast', async () => {
    const { agent, conversation, group } = await running(['yes']);
    await wait(200);
    expect(await cancelled(conversation)).toBeLessThan(1_000);
    await gone(2_000, group);
    await agent.close();
  });
});

describe.skipIf(!hasProc)('the end of an agent', () => {
  it('ends what its tools run', async () => {
    const { agent, conversation, group } = await running(["trap '' TERM; sleep 1000 & while :; do sleep 0.05; done"]);
    await agent.close();
    await gone(2_000, group);
    expect(only(conversation.log(), 'run-stop')).toEqual(['run-stop interrupted cancelled']);
  });

  it('a result that is in the log ends the call: its processes are gone by then', async () => {
    const { agent, conversation, group } = await running(['sleep 1000 & echo done']);
    await entry(conversation, 'tool-result');
    expect(living(group)).toEqual([]);
    await agent.close();
  });
});
