/**
 * Cancels runs while Bash runs real process trees. Invariant: a test waits for the result; `npm run bench:cancel`
 * measures the delay.
 */
import { mkdtemp, readFile, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type AgentOptions, type Conversation, createAgent } from '../../../src/index.ts';
import { codingTools } from '../../../src/tools/coding/index.ts';
import { entry, only, resultText } from '../../support/agentBench.ts';
import { call, scripted } from '../../support/scriptedReplies.ts';
import { volume } from '../../support/tier.ts';
import { alive, gone, hasProc, living, numberIn } from './liveProcesses.ts';

const trees = Object.entries(
  JSON.parse(await readFile(new URL('../../bench/trees.json', import.meta.url), 'utf8')) as Record<string, string>,
);

let cwd = '';
beforeEach(async () => {
  cwd = await realpath(await mkdtemp(join(tmpdir(), 'coding-')));
});
afterEach(() => rm(cwd, { recursive: true, force: true }));

const pidIn = (name: string): Promise<number> => numberIn(join(cwd, name));

/** A run whose model calls these commands in one reply; resolves after the first one has written its pid. */
async function running(commands: readonly string[], policies: AgentOptions['policies'] = {}) {
  const calls = commands.map((command, index) =>
    call(`c${index + 1}`, 'Bash', { command: `echo $$ > g${index + 1}; ${command}` }),
  );
  const agent = createAgent({
    model: scripted([calls, 'next']),
    tools: codingTools({ sandbox: 'off' }),
    cwd,
    policies,
  });
  const conversation = await agent.open('c');
  conversation.send('go');
  return { agent, conversation, group: await pidIn('g1') };
}

async function cancelled(conversation: Conversation): Promise<void> {
  await conversation.cancel();
  expect(conversation.status).toBe('idle');
}

describe.skipIf(!hasProc)('BED-5 INV-6 B05: a cancel while Bash runs', () => {
  it('the conversation is idle, the group is ended, and processes that left it are killed', async () => {
    for (let trial = 0; trial < volume.trees; trial += 1) {
      const [name = '', command = ''] = trees[trial % trees.length] ?? [];
      await rm(join(cwd, 'g1'), { force: true });
      await rm(join(cwd, 'up'), { force: true });
      const { agent, conversation, group } = await running([`(${command}) > up`]);
      while ((await readFile(join(cwd, 'up'), 'utf8').catch(() => '')) === '' && living(group).length > 0)
        await wait(5);
      const ids = name.includes('session') ? [group, await pidIn('away')] : [group];
      await alive(2, ...ids);
      await cancelled(conversation);
      await gone(group);
      await gone(...ids);
      expect(only(conversation.log(), 'tool-result')).toEqual(['tool-result c1 cancelled cancelled']);
      await agent.close();
    }
  });

  it('H-229 it does not wait for a command that ignores TERM, and the next message works', async () => {
    const { agent, conversation, group } = await running(["trap '' TERM; while :; do sleep 0.05; done"]);
    await cancelled(conversation);
    expect((await conversation.send('again').result).text).toBe('next');
    expect(resultText(conversation.log(), 'c1')).toMatch(/cancelled/);
    await gone(group);
    await wait(50);
    expect(only(conversation.log(), 'diagnostic')).toEqual([]);
    await agent.close();
  });

  it('S003-17 finished calls are kept, running ones are cancelled and waiting ones are skipped, in call order', async () => {
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
    await gone(group);
    await expect(readFile(join(cwd, 'g3'))).rejects.toThrow('ENOENT');
    await agent.close();
  });

  it('all parallel commands end', async () => {
    const sleeping = 'sleep 1000 & wait';
    const { agent, conversation } = await running([sleeping, sleeping, sleeping]);
    const groups = [await pidIn('g1'), await pidIn('g2'), await pidIn('g3')];
    await alive(6, ...groups);
    await cancelled(conversation);
    await gone(...groups);
    await agent.close();
  });

  it('it also ends a command with endless output', async () => {
    const { agent, conversation, group } = await running(['yes']);
    await wait(200);
    await cancelled(conversation);
    await gone(group);
    await agent.close();
  });
});

describe.skipIf(!hasProc)('the end of an agent', () => {
  it('it ends the processes of its tools', async () => {
    const { agent, conversation, group } = await running(["trap '' TERM; sleep 1000 & while :; do sleep 0.05; done"]);
    await agent.close();
    await gone(group);
    expect(only(conversation.log(), 'run-stop')).toEqual(['run-stop interrupted cancelled']);
  });

  it('a result in the log means that the processes of the call have ended', async () => {
    const { agent, conversation, group } = await running(['sleep 1000 & echo done']);
    await entry(conversation, 'tool-result');
    expect(living(group)).toEqual([]);
    await agent.close();
  });
});
