import { describe, expect, test } from 'vitest';
import type { Conversation, Decision, ToolContext } from '../../src/index.ts';
import { toolResult } from '../../src/index.ts';
import {
  askedTool,
  call,
  calls,
  codesOf,
  entriesOf,
  opened,
  outcomeOf,
  plainTool,
  scripted,
  settle,
  until,
} from './hostileAgent.ts';
import { watchEachTest } from './hostileChecks.ts';

watchEachTest();

const approve = (callId = 'a', suspension?: number): Decision =>
  suspension === undefined ? { callId, action: 'approve' } : { callId, suspension, action: 'approve' };
const deny = (callId = 'a', suspension?: number): Decision =>
  suspension === undefined ? { callId, action: 'deny' } : { callId, suspension, action: 'deny' };
const AGAIN = toolResult.pending({ reason: 'question' });

/** A tool that returns when the test permits it, and its arguments each time. */
function held(name = 'ask') {
  const answers: ((value: unknown) => void)[] = [];
  const decisions: (string | undefined)[] = [];
  const tool = plainTool(name, (_, { decision }: ToolContext) => {
    decisions.push(decision?.action);
    return new Promise((resolve) => answers.push(resolve));
  });
  return { tool, answers, decisions };
}

/** A conversation whose only call `a` runs and waits for the test. */
async function running() {
  const { tool, answers, decisions } = held();
  const conversation = await opened({ model: scripted([calls(call('a', 'ask'))]), tools: [tool] });
  const run = conversation.send('go');
  await until(() => answers.length === 1);
  return { conversation, run, answers, decisions };
}
/** The same, suspended and idle. */
async function waiting() {
  const world = await running();
  world.answers[0]?.(AGAIN);
  await world.run.result;
  expect(world.conversation.status).toBe('waiting');
  return world;
}
/** Reports a decision that changed nothing. */
async function without(conversation: Conversation, decision: Decision) {
  const before = conversation.log();
  const receipt = await conversation.decide(decision);
  expect(conversation.log(), `${receipt} changes nothing`).toEqual(before);
  return receipt;
}

test('H-170 of two approvals of one call the second is a duplicate, and the tool runs once', async () => {
  const { conversation, answers, decisions } = await waiting();
  expect(await conversation.decide(approve())).toBe('applied');
  expect(await without(conversation, approve())).toBe('duplicate');
  expect(await without(conversation, { ...approve(), by: 'another person' })).toBe('duplicate');
  const { result } = conversation.resume();
  await until(() => answers.length === 2);
  expect(await without(conversation, approve())).toBe('duplicate');
  answers[1]?.('ran');
  await result;
  expect(await without(conversation, approve())).toBe('duplicate');
  expect(decisions).toEqual([undefined, 'approve']);
  expect(entriesOf(conversation.log(), 'decision')).toHaveLength(1);
});

test.each([
  ['approve', 'deny', 'succeeded'],
  ['deny', 'approve', 'failed denied'],
  ['approve', 'edit', 'succeeded'],
  ['edit', 'approve', 'succeeded'],
] as const)(
  'H-171 of %s and then %s in one tick the first wins, the other is a conflict',
  async (first, second, outcome) => {
    const seen: unknown[] = [];
    const conversation = await opened({ model: scripted([calls(call('a', 'ask'))]), tools: [askedTool('ask', seen)] });
    await conversation.send('go').result;
    const decision = (action: 'approve' | 'deny' | 'edit'): Decision =>
      action === 'edit' ? { callId: 'a', action, args: { path: 'x' } } : { callId: 'a', action };
    const receipts = await Promise.all(
      [first, second, second, first].map((action) => conversation.decide(decision(action))),
    );
    expect(receipts).toEqual(['applied', 'conflict', 'conflict', 'duplicate']);
    await conversation.resume().result;
    expect(outcomeOf(conversation.log(), 'a')).toBe(outcome);
    expect(seen).toHaveLength(first === 'deny' ? 0 : 1);
  },
);

test('two decisions are compared by their action and data, not by the order of keys or by the decider', async () => {
  const { conversation } = await waiting();
  const answer = (payload: unknown): Decision => ({ callId: 'a', action: 'answer', payload: payload as never });
  expect(await conversation.decide(answer({ a: 1, b: [1, 2] }))).toBe('applied');
  expect(await without(conversation, answer({ b: [1, 2], a: 1 }))).toBe('duplicate');
  expect(await without(conversation, { ...answer({ a: 1, b: [1, 2] }), by: 'me', suspension: 1 })).toBe('duplicate');
  for (const other of [{ a: 1, b: [2, 1] }, { a: 1 }, { a: '1', b: [1, 2] }, null]) {
    expect(await without(conversation, answer(other))).toBe('conflict');
  }
});

describe('H-173 decisions for calls that do not exist, or no longer wait', () => {
  test.each(['x', '__proto__', 'constructor', 'toString', 'A', ' a', 'a '])(
    'an unknown id %j is unknown',
    async (callId) => {
      const { conversation } = await waiting();
      expect(await without(conversation, approve(callId))).toBe('unknown');
    },
  );

  test('a call of another conversation of the same agent is unknown, and nothing about it is disclosed', async () => {
    const { createAgent } = await import('../../src/index.ts');
    const { watched } = await import('./hostileChecks.ts');
    const asked: unknown[] = [];
    const model = scripted([calls(call('a', 'ask'))]);
    const authorize = (...args: unknown[]) => asked.push(args) > 0;
    const agent = createAgent({ model, tools: [askedTool('ask')], authorize });
    const [one, other] = [watched(await agent.open('one')), watched(await agent.open('other'))];
    await one.send('go').result;
    expect(await without(other, approve())).toBe('unknown');
    expect([asked, one.pending.length, other.pending.length]).toEqual([[], 1, 0]);
  });

  test('a call that ended without a suspension is stale', async () => {
    const { conversation, run, answers } = await running();
    answers[0]?.('fine');
    await run.result;
    for (const decision of [approve(), deny(), approve('a', 1)])
      expect(await without(conversation, decision)).toBe('stale');
    expect(await without(conversation, approve('a', 2))).toBe('unknown');
  });

  test('a call that was cancelled while it waited is stale, decided or not', async () => {
    for (const decided of [false, true]) {
      const { conversation } = await waiting();
      if (decided) await conversation.decide(approve());
      await conversation.cancel();
      expect(conversation.status).toBe('idle');
      for (const decision of [approve(), deny()]) expect(await without(conversation, decision)).toBe('stale');
      expect(outcomeOf(conversation.log(), 'a')).toBe('cancelled cancelled');
    }
  });

  test('an earlier suspension is stale, a later one unknown', async () => {
    const { conversation, answers } = await waiting();
    await conversation.decide(approve());
    const { result } = conversation.resume();
    await until(() => answers.length === 2);
    answers[1]?.(AGAIN);
    await result;
    expect(conversation.pending.map(({ suspension }) => suspension)).toEqual([2]);
    expect(await without(conversation, approve('a', 1))).toBe('stale');
    expect(await without(conversation, deny('a', 1))).toBe('stale');
    expect(await without(conversation, approve('a', 3))).toBe('unknown');
    expect(await without(conversation, approve('a', Number.MAX_SAFE_INTEGER))).toBe('unknown');
    expect(await conversation.decide(approve('a', 2))).toBe('applied');
  });
});

describe('H-174 early decisions', () => {
  test('before the call is in the log they are unknown', async () => {
    const { tool, answers } = held();
    const conversation = await opened({ model: scripted([calls(call('a', 'ask'))]), tools: [tool] });
    const { result } = conversation.send('go');
    const receipt = conversation.decide(approve());
    await until(() => answers.length === 1);
    answers[0]?.('fine');
    await result;
    expect(await receipt).toBe('unknown');
  });

  test('while the call runs they are held, and applied once when it suspends', async () => {
    const { conversation, run, answers, decisions } = await running();
    expect(await conversation.decide(approve())).toBe('held');
    expect(await without(conversation, approve())).toBe('duplicate');
    expect(await without(conversation, deny())).toBe('conflict');
    expect(await without(conversation, approve('a', 2))).toBe('unknown');
    answers[0]?.(AGAIN);
    await until(() => answers.length === 2);
    answers[1]?.('ran');
    expect((await run.result).termination).toBe('NaturalEnd');
    expect(decisions).toEqual([undefined, 'approve']);
    expect(outcomeOf(conversation.log(), 'a')).toBe('succeeded');
  });

  test('during a replay the next suspension can already be decided', async () => {
    const { conversation, answers, decisions } = await waiting();
    await conversation.decide(approve());
    const { result } = conversation.resume();
    await until(() => answers.length === 2);
    expect(await without(conversation, deny())).toBe('conflict');
    expect(await conversation.decide(deny('a', 2))).toBe('held');
    expect(await without(conversation, approve('a', 3))).toBe('unknown');
    answers[1]?.(AGAIN);
    expect((await result).termination).toBe('NaturalEnd');
    expect([outcomeOf(conversation.log(), 'a'), decisions]).toEqual(['failed denied', [undefined, 'approve']]);
    expect(await without(conversation, approve('a', 1))).toBe('stale');
    expect(await without(conversation, deny('a', 2))).toBe('duplicate');
    expect(await without(conversation, approve())).toBe('conflict');
  });

  test('if the call never suspends, they expire with a diagnostic and have no effect', async () => {
    const { conversation, run, answers, decisions } = await running();
    expect(await conversation.decide(deny())).toBe('held');
    answers[0]?.('fine');
    await run.result;
    expect([outcomeOf(conversation.log(), 'a'), decisions]).toEqual(['succeeded', [undefined]]);
    expect(codesOf(conversation.log())).toContain('decision_expired');
    for (const decision of [deny(), approve()]) expect(await without(conversation, decision)).toBe('stale');
  });

  test('an answer that arrived before a call needed approval is not an approval', async () => {
    let asked = (_: boolean): void => {};
    const ran: unknown[] = [];
    const { defineTool } = await import('../../src/index.ts');
    const { z } = await import('zod');
    const tool = defineTool({
      name: 'ask',
      description: '',
      parameters: z.object({}),
      needsApproval: () => new Promise<boolean>((resolve) => (asked = resolve)),
      execute: () => ran.push('ran'),
    });
    const conversation = await opened({ model: scripted([calls(call('a', 'ask'))]), tools: [tool] });
    const { result } = conversation.send('go');
    await until(() => entriesOf(conversation.log(), 'checkpoint').length === 2);
    await settle();
    expect(await conversation.decide({ callId: 'a', action: 'answer', payload: true })).toBe('held');
    asked(true);
    expect((await result).termination).toBe('Suspended');
    expect([ran, conversation.pending.map(({ suspension }) => suspension)]).toEqual([[], [2]]);
  });
});

test('H-175 a decision in an idle conversation runs nothing until a resume, and then once', async () => {
  const { conversation, answers, decisions } = await waiting();
  await conversation.decide(approve());
  await settle();
  expect([conversation.status, decisions, conversation.pending]).toEqual(['waiting', [undefined], []]);
  const run = conversation.resume();
  await until(() => answers.length === 2);
  answers[1]?.('ran');
  expect((await run.result).termination).toBe('NaturalEnd');
  const types = conversation.log().map(({ type }) => type);
  expect(types.indexOf('run-resumed')).toBeGreaterThan(types.indexOf('decision'));
  expect(types.filter((type) => type === 'tool-started')).toHaveLength(2);
  expect((await conversation.resume().result).termination).toBe('NaturalEnd');
  expect(decisions).toEqual([undefined, 'approve']);
});

test('a decision in status error is applied, and replayed by a resume', async () => {
  const ran: unknown[] = [];
  const model = scripted([
    calls(call('a', 'ask'), call('b', 'echo')),
    () => {
      throw new Error('down');
    },
  ]);
  const tools = [askedTool('ask', ran), plainTool('echo', () => 'hi')];
  const conversation = await opened({ model, tools, policies: { modelRetry: { attempts: 1 } } });
  expect((await conversation.send('go').result).termination).toBe('Error');
  expect([conversation.status, conversation.pending.length]).toEqual(['error', 1]);
  expect(await conversation.decide(approve())).toBe('applied');
  expect(ran).toEqual([]);
  expect((await conversation.resume().result).termination).toBe('NaturalEnd');
  expect(ran).toHaveLength(1);
});
