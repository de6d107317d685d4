import { expect, test } from 'vitest';
import { proves } from '../support/tier.ts';
import {
  call,
  calls,
  codesOf,
  entriesOf,
  outcomeOf,
  pairedCalls,
  plainTool,
  play,
  say,
  scripted,
} from './hostileAgent.ts';
import { watchEachTest } from './hostileChecks.ts';

watchEachTest();

const echo = plainTool('echo', () => 'hi');
const idsIn = (log: Parameters<typeof entriesOf>[0]): string[] =>
  entriesOf(log, 'agent-output').flatMap(({ item }) => (item.type === 'tool-call' ? [item.callId] : []));

test('H-026 ids that are names of inherited properties belong to ordinary calls', async () => {
  const ids = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'length', '0', 'then'];
  const model = scripted([calls(...ids.map((id) => call(id, 'echo')))]);
  const { log, conversation } = await play({ model, tools: [echo] });
  expect(idsIn(log)).toEqual(ids);
  for (const id of ids) expect(outcomeOf(log, id)).toBe('succeeded');
  expect(pairedCalls(conversation.messages())).toBe(true);
  expect(conversation.view().cycles[0]?.rounds[0]?.output.calls.map(({ callId }) => callId)).toEqual(ids);
});

test('H-024 a repeated call id gets a number, in one reply and over several', async () => {
  const reply = calls(call('a', 'echo'), call('a', 'echo'), call('a_2', 'echo'));
  const { log, conversation } = await play({ model: scripted([reply, calls(call('a', 'echo'))]), tools: [echo] });
  expect(idsIn(log)).toEqual(['a', 'a_2', 'a_2_2', 'a_3']);
  expect(codesOf(log)).toEqual(['id_duplicate', 'id_duplicate', 'id_duplicate']);
  expect(entriesOf(log, 'tool-result').map(({ outcome }) => outcome)).toEqual(Array(4).fill('succeeded'));
  expect(pairedCalls(conversation.messages())).toBe(true);
});

test('calls without an id, or with one of a megabyte, get a short new one', async () => {
  const reply = calls(call('', 'echo'), call('', 'echo'), call('x'.repeat(1_000_000), 'echo'));
  const { log } = await play({ model: scripted([reply]), tools: [echo] });
  const ids = idsIn(log);
  expect(new Set(ids).size).toBe(3);
  for (const id of ids) {
    expect(id.length).toBeLessThan(300);
    expect(outcomeOf(log, id)).toBe('succeeded');
  }
});

test.skipIf(!proves)('thousands of calls with one id get separate ids, and each has a result', async () => {
  const reply = calls(...Array.from({ length: 5_000 }, () => call('same', 'echo')));
  const { log, result, conversation } = await play({ model: scripted([reply, say('done')]), tools: [echo] });
  expect(result.termination).toBe('NaturalEnd');
  expect(new Set(idsIn(log)).size).toBe(5_000);
  const outcomes = entriesOf(log, 'tool-result').map(({ outcome, code }) => code ?? outcome);
  expect(outcomes.filter((outcome) => outcome === 'succeeded')).toHaveLength(128);
  expect(outcomes.filter((outcome) => outcome === 'too_many_calls')).toHaveLength(5_000 - 128);
  expect(pairedCalls(conversation.messages())).toBe(true);
});

test.each([
  'a/b',
  'a/tool',
  '../a',
  'a\u0000b',
  'a b',
  '🎉',
  '\ud800',
  'call-0',
  'gate',
  'round',
  'xstate.done.actor.0',
])('the call id %j has no special meaning in the runtime', async (id) => {
  const { log, result, conversation } = await play({ model: scripted([calls(call(id, 'echo'))]), tools: [echo] });
  expect([result.termination, outcomeOf(log, id)]).toEqual(['NaturalEnd', 'succeeded']);
  expect(pairedCalls(conversation.messages())).toBe(true);
});
