/** The facts that a logger receives: one for each entry, with its level, and never the content of anything. */

import { expect, it } from 'vitest';
import { type Logger, ModelError, subAgents } from '../../src/index.ts';
import { nextTurn } from '../../src/timeLimit.ts';
import { bench, entry } from '../support/agentBench.ts';
import { asks, boom, echoTool } from '../support/scenarioTools.ts';
import { call } from '../support/scriptedReplies.ts';
import { unhandledRejections } from '../support/unhandledRejections.ts';

function kept() {
  const facts: { level: string; event: string; [field: string]: unknown }[] = [];
  const take = (level: string) => (fact: object) => void facts.push({ level, ...(fact as { event: string }) });
  const logger: Logger = { debug: take('debug'), info: take('info'), warn: take('warn'), error: take('error') };
  const at = (event: string) => facts.filter((fact) => fact.event === event);
  return { logger, facts, at };
}

it('a logger receives a fact for each entry, in order, each with its conversation and its place in the log', async () => {
  const { logger, facts } = kept();
  const on = await bench({ logger, replies: ['hello'] });
  await on.conversation.send('hi').result;
  expect(facts.map(({ seq, event }) => [seq, event])).toEqual(
    on.conversation.log().map(({ seq, type }) => [seq, type]),
  );
  expect(new Set(facts.map(({ conversation }) => conversation))).toEqual(new Set(['c']));
});

it('facts describe a run: its tools, retries, suspensions, decisions and its end, with their levels', async () => {
  const { logger, at } = kept();
  const failing = new ModelError({ code: 'server' });
  const replies = [
    failing,
    [call('c1', 'echo', { m: '' }), call('c2', 'boom'), call('c3', 'ask', { m: '' })],
    'so far',
    'done',
  ];
  const tools = [echoTool().tool, boom, echoTool('ask').tool];
  const policies = { modelRetry: { baseMs: 0 } };
  const on = await bench({ logger, tools, plugins: [asks().plugin], replies, policies });
  const run = on.conversation.send('hi', { by: 'ann' });
  await entry(on.conversation, 'model-retry');
  await on.clock.advance(1_000);
  await run.result;
  await on.conversation.decide({ callId: 'c3', action: 'approve', by: 'bob' });
  expect(await on.conversation.resume().result).toMatchObject({ termination: 'NaturalEnd' });
  expect(at('user-message')).toMatchObject([{ level: 'info', kind: 'direct', by: 'ann' }]);
  expect(at('model-retry')).toMatchObject([{ level: 'warn', attempt: 2 }]);
  expect(at('tool-result')).toMatchObject([
    { level: 'info', callId: 'c1', tool: 'echo', outcome: 'succeeded' },
    { level: 'warn', callId: 'c2', tool: 'boom', outcome: 'failed', code: 'error' },
    { level: 'info', callId: 'c3', tool: 'ask', outcome: 'succeeded' },
  ]);
  expect(at('tool-suspended')).toMatchObject([{ level: 'info', tool: 'ask', reason: 'a human must see this' }]);
  expect(at('decision')).toMatchObject([{ level: 'info', action: 'approve', by: 'bob' }]);
  expect(at('run-stop')).toMatchObject([{ level: 'info', reason: 'completed' }]);
});

it.each([
  ['error', [new ModelError({ code: 'auth' })], 'error'],
  ['interrupted', ['x'], 'warn'],
] as const)('a run that ends as %s is a fact of its own level', async (reason, replies, level) => {
  const { logger, at } = kept();
  const on = await bench({ logger, replies });
  const run = on.conversation.send('hi');
  if (reason === 'interrupted') await on.conversation.cancel();
  await run.result;
  expect(at('run-stop').map((fact) => [fact.level, fact.reason])).toEqual([[level, reason]]);
});

it('facts contain no message, argument or result, and no secret', async () => {
  const { logger, facts } = kept();
  const secrets = ['sk-1234567890'];
  const replies = [[call('c1', 'echo', { m: 'the argument' })], 'the answer'];
  const on = await bench({ logger, secrets, tools: [echoTool().tool], replies });
  await on.conversation.send('the question', { by: 'sk-1234567890', context: { key: 'the context' } }).result;
  expect(JSON.stringify(facts)).not.toMatch(/the (question|argument|answer|context)|sk-1234567890/);
});

it('facts of sub-agents have the ids of their own conversations', async () => {
  const { logger, facts } = kept();
  const replies = [
    [call('c1', 'spawn_agents', { tasks: [{ id: 'a', task: 'do' }] })],
    [call('c2', 'submit_result', { result: 'ok' })],
    'done',
  ];
  const on = await bench({ logger, tools: [subAgents()], replies });
  await on.conversation.send('hi').result;
  expect(new Set(facts.map(({ conversation }) => conversation)).size).toBe(2);
});

it('a logger that throws, or lacks a level, changes nothing', async () => {
  const logger: Logger = {
    info: () => {
      throw new Error('disk full');
    },
  };
  const on = await bench({ logger, replies: ['hello'] });
  expect((await on.conversation.send('hi').result).text).toBe('hello');
  expect(on.conversation.log().some(({ type }) => type === 'diagnostic')).toBe(false);
});

it('a logger whose promise rejects changes nothing, and leaves no unhandled rejection', async () => {
  const unhandled = unhandledRejections();
  const on = await bench({ logger: { info: async () => Promise.reject(new Error('disk full')) }, replies: ['hello'] });
  expect((await on.conversation.send('hi').result).text).toBe('hello');
  await nextTurn();
  expect(unhandled).toEqual([]);
});
