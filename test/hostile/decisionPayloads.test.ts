import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { type Decision, defineTool, type Plugin, type ToolContext, toolResult } from '../../src/index.ts';
import {
  askedTool,
  call,
  calls,
  entriesOf,
  opened,
  outcomeOf,
  pairedCalls,
  plainTool,
  resultText,
  say,
  scripted,
} from './hostileAgent.ts';
import { watchEachTest } from './hostileChecks.ts';

watchEachTest();

/** Suspends with a question first, and returns the answer. */
const question = (got: unknown[] = []) =>
  plainTool('question', (_, { decision }: ToolContext) => {
    if (!decision) return toolResult.pending({ reason: 'question', payload: { text: 'which?' } });
    got.push(decision);
    return { answered: decision };
  });

test.each([false, 0, '', null, -0, [], {}, '0', 'null'])(
  'the answer %j is an answer like any other',
  async (payload) => {
    const got: Decision[] = [];
    const conversation = await opened({ model: scripted([calls(call('a', 'question'))]), tools: [question(got)] });
    await conversation.send('go').result;
    const decision: Decision = { callId: 'a', action: 'answer', payload };
    expect(await conversation.decide(decision)).toBe('applied');
    expect(await conversation.decide(decision)).toBe('duplicate');
    expect(await conversation.decide({ ...decision, payload: 'another' })).toBe('conflict');
    await conversation.resume().result;
    expect(got).toHaveLength(1);
    expect(got[0]).toEqual({ callId: 'a', action: 'answer', payload: JSON.parse(JSON.stringify(payload)) });
    expect(outcomeOf(conversation.log(), 'a')).toBe('succeeded');
  },
);

test('a tool that asked a question receives every action except a denial', async () => {
  for (const decision of [
    { callId: 'a', action: 'approve' },
    { callId: 'a', action: 'edit', args: {} },
    { callId: 'a', action: 'answer', payload: 1 },
  ] satisfies Decision[]) {
    const got: Decision[] = [];
    const conversation = await opened({ model: scripted([calls(call('a', 'question'))]), tools: [question(got)] });
    await conversation.send('go').result;
    expect(await conversation.decide(decision)).toBe('applied');
    await conversation.resume().result;
    expect(got).toEqual([decision]);
  }
  const got: Decision[] = [];
  const conversation = await opened({ model: scripted([calls(call('a', 'question'))]), tools: [question(got)] });
  await conversation.send('go').result;
  await conversation.decide({ callId: 'a', action: 'deny', reason: 'not\ntoday \u001b[2J' });
  await conversation.resume().result;
  expect([got, outcomeOf(conversation.log(), 'a')]).toEqual([[], 'failed denied']);
  expect(resultText(conversation.log(), 'a')).toContain('not\ntoday \u001b[2J');
});

test('a tool cannot change its decision, and later changes of the sent object have no effect', async () => {
  const got: { payload?: { list: string[] } }[] = [];
  const conversation = await opened({ model: scripted([calls(call('a', 'question'))]), tools: [question(got)] });
  await conversation.send('go').result;
  const payload = { list: ['a'] };
  const receipt = conversation.decide({ callId: 'a', action: 'answer', payload });
  payload.list.push('changed');
  await receipt;
  payload.list.push('again');
  await conversation.resume().result;
  expect(got[0]?.payload).toEqual({ list: ['a'] });
  expect([got[0], got[0]?.payload, got[0]?.payload?.list].every(Object.isFrozen)).toBe(true);
  expect(JSON.stringify(conversation.log())).not.toMatch(/changed|again/);
});

describe('H-177 edited arguments are checked like those of the model', () => {
  const inside: Plugin = {
    name: 'inside',
    beforeToolExecute: ({ call: { args } }) =>
      String((args as { path?: unknown }).path).includes('..') ? { block: 'outside the workspace' } : undefined,
  };
  const edited = async (args: unknown, ran: unknown[] = []) => {
    const conversation = await opened({
      model: scripted([calls(call('a', 'ask', '{"path":"in"}'))]),
      tools: [askedTool('ask', ran)],
      plugins: [inside],
    });
    await conversation.send('go').result;
    const receipt = await conversation.decide({ callId: 'a', action: 'edit', args: args as never });
    const { termination } = await conversation.resume().result;
    return { receipt, termination, log: conversation.log(), conversation };
  };

  test('a path outside is blocked, even if a person gave it', async () => {
    const ran: unknown[] = [];
    const { receipt, termination, log } = await edited({ path: '../../x' }, ran);
    expect([receipt, termination, outcomeOf(log, 'a'), ran]).toEqual(['applied', 'NaturalEnd', 'failed blocked', []]);
    expect(entriesOf(log, 'tool-started')).toEqual([]);
  });

  test.each([{ path: 5 }, 'text', null, [1], 5, false, ''])(
    '%j does not validate: applied, and failed',
    async (args) => {
      const ran: unknown[] = [];
      const { receipt, termination, log } = await edited(args, ran);
      expect([receipt, termination, ran]).toEqual(['applied', 'NaturalEnd', []]);
      expect(outcomeOf(log, 'a')).toBe('failed invalid_arguments');
    },
  );

  test('valid arguments are run, logged, and reported to the model', async () => {
    const ran: unknown[] = [];
    const { log, conversation } = await edited({ path: 'other', extra: 1 }, ran);
    expect(ran).toMatchObject([{ args: { path: 'other' } }]);
    expect(entriesOf(log, 'tool-started')[0]?.args).toEqual({ path: 'other', extra: 1 });
    const [, , result] = conversation.messages();
    expect(JSON.stringify(result)).toContain('changed the arguments');
    expect(entriesOf(log, 'agent-output')[0]?.item).toMatchObject({ args: { path: 'in' } });
  });

  test('an approval does not run the predicate again, but the checks run again', async () => {
    let asked = 0;
    const checked: unknown[] = [];
    const tool = defineTool({
      name: 't',
      description: '',
      parameters: z.object({}),
      needsApproval: () => {
        asked += 1;
        return true;
      },
      execute: () => 'ran',
    });
    const plugin: Plugin = { name: 'p', beforeToolExecute: () => void checked.push(1) };
    const conversation = await opened({ model: scripted([calls(call('a', 't'))]), tools: [tool], plugins: [plugin] });
    await conversation.send('go').result;
    await conversation.decide({ callId: 'a', action: 'approve' });
    await conversation.resume().result;
    expect([asked, checked.length, outcomeOf(conversation.log(), 'a')]).toEqual([1, 2, 'succeeded']);
  });
});

describe('H-180 a request always contains one result for each call', () => {
  test('a suspended call has a placeholder in its place, and its result follows later', async () => {
    const model = scripted([calls(call('a', 'echo'), call('b', 'ask'), call('c', 'echo')), say('waiting')]);
    const conversation = await opened({ model, tools: [askedTool('ask'), plainTool('echo', () => 'hi')] });
    const { termination, text } = await conversation.send('go').result;
    expect([termination, text]).toEqual(['Suspended', 'waiting']);
    const held = model.requests[1]?.messages.find((message) => message.role === 'tool' && message.callId === 'b');
    expect(JSON.stringify(held)).toContain('awaits approval');
    await conversation.decide({ callId: 'b', action: 'approve' });
    await conversation.resume().result;
    expect(model.requests).toHaveLength(3);
    expect(model.requests.map(({ messages }) => pairedCalls(messages))).toEqual([true, true, true]);
    expect(JSON.stringify(model.requests[2]?.messages.at(-1))).toContain('follows as quoted data');
  });

  test.each(['continue', 'wait'] as const)(
    'two suspended calls may be decided one after the other (%s)',
    async (onPartialSuspend) => {
      const model = scripted([calls(call('b', 'ask'), call('a', 'ask'), call('c', 'echo'))]);
      const tools = [askedTool('ask'), plainTool('echo', () => 'hi')];
      const conversation = await opened({ model, tools, policies: { onPartialSuspend } });
      await conversation.send('go').result;
      for (const callId of ['b', 'a']) {
        expect(await conversation.decide({ callId, action: 'approve' })).toBe('applied');
        await conversation.resume().result;
      }
      expect(conversation.status).toBe('idle');
      for (const { messages } of model.requests) expect(pairedCalls(messages)).toBe(true);
      expect(pairedCalls(conversation.messages())).toBe(true);
    },
  );

  test('in sequential execution, the following calls keep their turn', async () => {
    const model = scripted([calls(call('a', 'ask'), call('b', 'ask'), call('c', 'echo'))]);
    const ran: unknown[] = [];
    const tools = [askedTool('ask', ran), plainTool('echo', () => ran.push('echo'))];
    const conversation = await opened({ model, tools, policies: { toolExecution: 'sequential' } });
    await conversation.send('go').result;
    expect(conversation.pending.map(({ callId }) => callId)).toEqual(['a']);
    expect(await conversation.decide({ callId: 'b', action: 'approve' })).toBe('held');
    expect(await conversation.decide({ callId: 'a', action: 'approve' })).toBe('applied');
    expect((await conversation.resume().result).termination).toBe('NaturalEnd');
    expect(ran).toHaveLength(3);
    for (const { messages } of model.requests) expect(pairedCalls(messages)).toBe(true);
  });
});

test('several decisions at one gate replay in the order of call ids, each once', async () => {
  const order: string[] = [];
  const tool = plainTool('ask', (_, { callId, decision }: ToolContext) => {
    if (!decision) return toolResult.pending({ reason: 'q' });
    return order.push(callId);
  });
  const ids = ['c', '__proto__', 'b', 'a'];
  const conversation = await opened({ model: scripted([calls(...ids.map((id) => call(id, 'ask')))]), tools: [tool] });
  await conversation.send('go').result;
  for (const callId of ids) expect(await conversation.decide({ callId, action: 'approve' })).toBe('applied');
  await conversation.resume().result;
  expect(order).toEqual([...ids].sort());
});

test('a call may be suspended a limited number of times', async () => {
  const tool = plainTool('ask', () => toolResult.pending({ reason: 'again' }));
  const conversation = await opened({
    model: scripted([calls(call('a', 'ask'))]),
    tools: [tool],
    policies: { limits: { suspensionsPerCall: 3 } },
  });
  await conversation.send('go').result;
  for (let suspension = 1; suspension <= 3; suspension++) {
    expect(await conversation.decide({ callId: 'a', action: 'approve', suspension })).toBe('applied');
    await conversation.resume().result;
  }
  expect([conversation.status, outcomeOf(conversation.log(), 'a')]).toEqual(['idle', 'failed suspend_limit']);
});
