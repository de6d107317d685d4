import { expect, test } from 'vitest';
import { type Decision, InvalidDecisionError } from '../../src/index.ts';
import {
  askedTool,
  call,
  calls,
  entriesOf,
  opened,
  outcomeOf,
  pairedCalls,
  plainTool,
  say,
  scripted,
} from './hostileAgent.ts';
import { watchEachTest } from './hostileChecks.ts';

watchEachTest();

test.each([
  ['approvals and rejections by name', { approve: ['a', 'a'], reject: ['a'] }],
  [
    'a list of decisions',
    [
      { callId: 'a', action: 'approve' },
      { callId: 'a', action: 'deny' },
    ],
  ],
  ['a decision with a second one inside', { callId: ['a', 'a'], action: ['approve', 'deny'] }],
])('H-172 %s in one batch is refused, and no decision of it is applied', async (_, batch) => {
  const seen: unknown[] = [];
  const conversation = await opened({ model: scripted([calls(call('a', 'ask'))]), tools: [askedTool('ask', seen)] });
  await conversation.send('go').result;
  const before = conversation.log();
  await expect(conversation.decide(batch as unknown as Decision)).rejects.toThrow(InvalidDecisionError);
  expect([conversation.log(), conversation.pending.length, seen]).toEqual([before, 1, []]);
  expect(await conversation.decide({ callId: 'a', action: 'deny' })).toBe('applied');
});

test('H-180 of three calls the model receives a placeholder for the suspended one, and every call has one result', async () => {
  const model = scripted([calls(call('a', 'plain'), call('b', 'ask'), call('c', 'plain')), say('two of three')]);
  const conversation = await opened({ model, tools: [plainTool('plain', () => 'ran'), askedTool('ask')] });
  const result = await conversation.send('go').result;
  expect(result).toMatchObject({ termination: 'Suspended', text: 'two of three' });
  const shown = model.requests[1]?.messages ?? [];
  expect(pairedCalls(shown)).toBe(true);
  expect(shown.flatMap((message) => (message.role === 'tool' ? [message.callId] : []))).toEqual(['a', 'b', 'c']);
  const toolMessage = shown.find((message) => message.role === 'tool' && message.callId === 'b');
  expect(JSON.stringify(toolMessage?.content)).toContain('awaits approval');
  expect([outcomeOf(conversation.log(), 'a'), outcomeOf(conversation.log(), 'b')]).toEqual(['succeeded', 'none']);
  expect(entriesOf(conversation.log(), 'tool-suspended').map(({ callId }) => callId)).toEqual(['b']);
});
