/**
 * Decisions that arrive before the suspension of their call wait for it, or expire (docs/internals/lifecycle.md,
 * Decision Replay).
 */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type Decision, defineTool, type LogEntry, type Plugin, toolResult } from '../../src/index.ts';
import { bench, entry, only, storeWith, story } from '../support/agentBench.ts';
import { asks, echoTool, gateTool } from '../support/scenarioTools.ts';
import { call } from '../support/scriptedReplies.ts';

const args = { m: 'a' };
const answer = (payload: number): Decision => ({ callId: 'c1', action: 'answer', payload });
const deny = (callId: string): Decision => ({ callId, action: 'deny', reason: 'no' });

/** The tool hangs in its first process. After that it suspends, and receives an answer. */
function hangingOnce() {
  let ran = 0;
  const tool = defineTool({
    name: 'question',
    description: 'Asks.',
    parameters: z.object({}),
    execute(_, { decision }) {
      ran += 1;
      if (ran === 1) return new Promise(() => undefined);
      return decision?.action === 'answer' ? decision.payload : toolResult.pending({ reason: 'input' });
    },
  });
  return { tool, ran: () => ran };
}

/** The process dies while c1 runs, with an early decision. Another process opens the log and retries the call. */
async function retried() {
  const { tool, ran } = hangingOnce();
  const policies = { onPartialSuspend: 'wait' } as const;
  const before = await bench({ replies: [[call('c1', 'question')]], tools: [tool], policies });
  before.conversation.send('hi');
  await entry(before.conversation, 'tool-started');
  expect(await before.conversation.decide(answer(7))).toBe('held');
  const store = await storeWith(before.conversation.log());
  const on = await bench({ replies: ['done'], tools: [tool], policies, store });
  const opened = on.conversation.log();
  expect(await on.conversation.settle('c1', { retry: true })).toBe('applied');
  return { ...on, opened, ran };
}

describe('an early decision for a call that a crash interrupted', () => {
  it('it expires with the run that the crash ended, and a diagnostic reports it', async () => {
    const { opened } = await retried();
    expect(only(opened, 'tool-result', 'diagnostic', 'run-stop')).toEqual([
      'tool-result c1 unknown',
      'diagnostic decision_expired',
      'run-stop interrupted crash',
    ]);
  });

  it('it is ignored if the call is retried and suspends: the call waits for a decision, and accepts one', async () => {
    const { conversation, ran } = await retried();
    expect((await conversation.resume().result).termination).toBe('Suspended');
    expect(conversation.pending).toMatchObject([{ callId: 'c1', suspension: 1 }]);
    expect(await conversation.decide(answer(8))).toBe('applied');
    expect(await conversation.decide(answer(8))).toBe('duplicate');
    expect(await conversation.resume().result).toMatchObject({ termination: 'NaturalEnd', text: 'done' });
    expect(only(conversation.log(), 'tool-result')).toEqual(['tool-result c1 unknown', 'tool-result c1 succeeded']);
    expect(ran()).toBe(3);
  });

  it('it is ignored in the following process too, and expires once', async () => {
    const { conversation } = await retried();
    await conversation.resume().result;
    const { tool } = hangingOnce();
    const on = await bench({ replies: ['done'], tools: [tool], store: await storeWith(conversation.log()) });
    expect(on.conversation.status).toBe('waiting');
    expect(on.conversation.pending).toMatchObject([{ callId: 'c1', suspension: 1 }]);
    expect(only(on.conversation.log(), 'diagnostic')).toEqual(['diagnostic decision_expired']);
  });

  it('it also expires if the call ended before the crash', async () => {
    const gate = gateTool();
    const before = await bench({ replies: [[call('c1', 'gate')]], tools: [gate.tool] });
    before.conversation.send('hi');
    await gate.begun('c1');
    expect(await before.conversation.decide(deny('c1'))).toBe('held');
    gate.release('c1');
    await entry(before.conversation, 'tool-result');
    const log: readonly LogEntry[] = before.conversation.log();
    const ended = log.slice(0, log.findIndex(({ type }) => type === 'tool-result') + 1);
    const on = await bench({ tools: [gate.tool], store: await storeWith(ended) });
    expect(story(on.conversation.log()).slice(-2)).toEqual([
      'diagnostic decision_expired',
      'run-stop interrupted crash',
    ]);
    const again = await bench({ tools: [gate.tool], store: await storeWith(on.conversation.log()) });
    expect(again.conversation.log()).toEqual(on.conversation.log());
  });
});

/** A sequential round that waits at c1; c2 is next and is decided early. */
async function behind(policies: { whileSuspended?: 'denyAndRun' } = {}, plugins: Plugin[] = [asks().plugin]) {
  const ask = echoTool('ask');
  const echo = echoTool();
  const replies = [[call('c1', 'ask', args), call('c2', 'echo', args)], 'done'];
  const tools = [ask.tool, echo.tool];
  const on = await bench({ replies, tools, plugins, policies: { toolExecution: 'sequential', ...policies } });
  await on.conversation.send('hi').result;
  expect(await on.conversation.decide(deny('c2'))).toBe('held');
  return { ...on, ran: echo.ran };
}
const expiries = (log: readonly LogEntry[]) =>
  log.flatMap((each) => (each.type === 'diagnostic' && each.code === 'decision_expired' ? [each.detail] : []));

describe('an early decision for a call after a waiting one', () => {
  it('it expires with a diagnostic if the call runs and never suspends', async () => {
    const { conversation, ran } = await behind();
    await conversation.decide({ callId: 'c1', action: 'approve' });
    expect((await conversation.resume().result).termination).toBe('NaturalEnd');
    expect(ran).toEqual(['c2']);
    expect(expiries(conversation.log())).toEqual([{ callId: 'c2' }]);
    expect(only(conversation.log(), 'diagnostic', 'run-stop')).toEqual([
      'diagnostic decision_expired',
      'run-stop completed end_turn',
    ]);
    expect(await conversation.decide(deny('c2'))).toBe('stale');
  });

  it('it is applied if the call suspends at its turn', async () => {
    const all: Plugin = {
      name: 'all',
      beforeToolExecute: ({ decision }) => (decision ? undefined : { suspend: { reason: 'all' } }),
    };
    const { conversation, ran } = await behind({}, [all]);
    await conversation.decide({ callId: 'c1', action: 'approve' });
    expect((await conversation.resume().result).termination).toBe('NaturalEnd');
    expect(ran).toEqual([]);
    expect(only(conversation.log(), 'tool-result')).toEqual([
      'tool-result c1 succeeded',
      'tool-result c2 failed denied',
    ]);
    expect(expiries(conversation.log())).toEqual([]);
  });

  it.each(['cancel', 'denyAndRun'] as const)('it expires with a diagnostic if the cycle ends by %s', async (how) => {
    const { conversation } = await behind(how === 'denyAndRun' ? { whileSuspended: how } : {});
    await conversation.decide({ callId: 'c1', action: 'approve' });
    if (how === 'cancel') await conversation.cancel();
    else await conversation.send('next').result;
    expect(expiries(conversation.log())).toEqual([{ callId: 'c2' }]);
    expect(only(conversation.log(), 'diagnostic', 'run-stop').slice(0, 2)).toEqual([
      'diagnostic decision_expired',
      `run-stop interrupted ${how === 'cancel' ? 'cancelled' : 'superseded'}`,
    ]);
  });
});

it('early decisions for several calls of a round are all applied when the calls suspend', async () => {
  const gate = gateTool();
  const replies = [[call('c1', 'gate'), call('c2', 'gate')], 'done'];
  const { conversation } = await bench({ replies, tools: [gate.tool] });
  const run = conversation.send('hi');
  for (const callId of ['c1', 'c2']) {
    await gate.begun(callId);
    expect(await conversation.decide(deny(callId))).toBe('held');
  }
  for (const callId of ['c1', 'c2']) gate.release(callId, toolResult.pending({ reason: 'input' }));
  expect(await run.result).toMatchObject({ termination: 'NaturalEnd', text: 'done' });
  expect(only(conversation.log(), 'tool-result')).toEqual([
    'tool-result c1 failed denied',
    'tool-result c2 failed denied',
  ]);
});

it('a decision for one of several waiting calls does not expire if the cycle is cancelled', async () => {
  const replies = [[call('c1', 'ask', args), call('c2', 'ask', args)]];
  const { conversation } = await bench({ replies, tools: [echoTool('ask').tool], plugins: [asks().plugin] });
  expect((await conversation.send('hi').result).termination).toBe('Suspended');
  expect(await conversation.decide({ callId: 'c1', action: 'approve' })).toBe('applied');
  await conversation.cancel();
  expect(expiries(conversation.log())).toEqual([]);
  expect(only(conversation.log(), 'tool-result')).toEqual([
    'tool-result c1 cancelled cancelled',
    'tool-result c2 cancelled cancelled',
  ]);
});
