/** The prepared history (docs/internals/contracts.md, 2.3 and 6.2), as pure functions and as the model receives it. */
import { describe, expect, it } from 'vitest';
import { type Message, PRUNED_RESULT } from '../../machines/internal.ts';
import { cleanHistory, prepareHistory, pruneToolOutputs } from '../../src/requestLoop/index.ts';
import { cpuTime } from '../support/cpuTime.ts';
import { echoTool } from '../support/scenarioTools.ts';
import { call, lines } from '../support/scriptedReplies.ts';
import { loopBench } from './sessionBench.ts';

const user = (text: string): Message => ({ role: 'user', content: [{ type: 'text', text }] });
const says = (text: string, ...callIds: string[]): Message => ({
  role: 'assistant',
  content: text === '' ? [] : [{ type: 'text', text }],
  toolCalls: callIds.map((callId) => ({ callId, name: 'read', args: {} })),
});
const result = (callId: string, text = 'text', isError = false): Message => ({
  role: 'tool',
  callId,
  content: [{ type: 'text', text }],
  isError,
});
/** Returns a text of this many tokens, by the estimate from characters. */
const tokens = (count: number): string => 'abcd'.repeat(count);

describe('clean-up', () => {
  it('S004-22: a call without a result goes, with what refers to it, and the message that is left empty', () => {
    const kept = says('', 'a');
    const history = [
      user('hi'),
      kept,
      result('a'),
      says('', 'b'),
      user('and?'),
      result('b', 'try again', true),
      says('done'),
    ];
    const clean = cleanHistory(history);
    expect(lines(clean.messages)).toEqual(['user hi', 'assistant +a', 'a text', 'user and?', 'assistant done']);
    expect(clean).toMatchObject({ changed: true, removedCalls: ['b'] });
    expect(clean.messages[1]).toBe(kept);
  });

  it('S004-22: of the calls of one reply only the dangling one goes, and its words stay', () => {
    const clean = cleanHistory([user('hi'), says('I look', 'a', 'b'), result('a')]);
    expect(lines(clean.messages)).toEqual(['user hi', 'assistant I look +a', 'a text']);
    expect(clean.removedCalls).toEqual(['b']);
  });

  it('S004-22: where nothing dangles the very list comes back, without a change', () => {
    const history = [user('hi'), says('I look', 'a'), result('a', 'broke', true), says('done')];
    expect(cleanHistory(history)).toEqual({ messages: history, changed: false, removedCalls: [] });
    expect(cleanHistory(history).messages).toBe(history);
  });

  it('S004-23: of requests in a row the last one stays', () => {
    const clean = cleanHistory([user('r1'), user('r2'), user('r3'), says('answer')]);
    expect(lines(clean.messages)).toEqual(['user r3', 'assistant answer']);
  });

  it('2.3: one clean-up leaves nothing for a second one', () => {
    const clean = cleanHistory([user('r1'), says('', 'a'), user('r2'), says(' \n'), user('r3'), says('answer')]);
    expect(lines(clean.messages)).toEqual(['user r3', 'assistant answer']);
    expect(cleanHistory(clean.messages).changed).toBe(false);
  });

  it('a history of ten thousand aborted requests is cleaned in linear time', async () => {
    const history = Array.from({ length: 20_000 }, (_, n) => (n % 2 ? says('', `c${n}`) : user(`r${n}`)));
    expect(cleanHistory(history).messages).toHaveLength(1);
    expect(await cpuTime(() => cleanHistory(history))).toBeLessThan(1_000);
  });
});

describe('pruning', () => {
  const turn = (callId: string, size: number): Message[] => [
    user('hi'),
    says('', callId),
    result(callId, tokens(size)),
    says('done'),
  ];

  it('S004-25: with one user turn nothing is pruned', () => {
    const history = turn('a', 70_000);
    expect(pruneToolOutputs(history)).toEqual({ messages: history, reclaimed: 0 });
  });

  it('S004-25: with two, a result of 70,000 tokens gives way to the placeholder under its id', () => {
    const history = [...turn('a', 70_000), user('next'), says('ok')];
    const { messages, reclaimed } = pruneToolOutputs(history);
    expect(lines(messages)[2]).toBe(`a ${PRUNED_RESULT}`);
    expect(reclaimed).toBeGreaterThan(69_000);
    expect(lines(history)[2]).toHaveLength(280_002);
  });

  it('S004-26: the newest 40,000 tokens are protected, and less than 20,000 is not worth it', () => {
    const history = [...turn('old', 10_000), ...turn('new', 35_000)];
    expect(pruneToolOutputs(history).messages).toBe(history);
    const small = [...turn('old', 10), ...turn('new', 20)];
    expect(pruneToolOutputs(small).messages).toBe(small);
  });
});

describe('history as the next request has it', () => {
  it('S004-23: a trailing request is dropped before a new prompt', async () => {
    const on = loopBench({ replies: ['hello'] });
    on.session.conversation.messages.push(user('r1'), says('answer'), user('r2'), user('r3'));
    await on.request('r4');
    expect(lines(on.model.calls[0]?.messages ?? [])).toEqual(['user r1', 'assistant answer', 'user r4']);
    expect(lines(on.session.conversation.messages)).toEqual([
      'user r1',
      'assistant answer',
      'user r4',
      'assistant hello',
    ]);
  });

  it('S004-22: dangling calls reach no model', async () => {
    const on = loopBench({ replies: ['hello'] });
    on.session.conversation.messages.push(user('hi'), says('', 'a'), result('a'), says('', 'b'));
    await on.request('go on');
    expect(lines(on.model.calls[0]?.messages ?? [])).toEqual(['user hi', 'assistant +a', 'a text', 'user go on']);
  });

  it('LOOP-5: all of it at once', () => {
    const history = [user('r1'), says('', 'a'), result('a', tokens(70_000)), says('', 'b'), user('r2'), user('r3')];
    const ready = prepareHistory(history);
    expect(lines(ready.messages)).toEqual(['user r1', 'assistant +a', `a ${PRUNED_RESULT}`]);
    expect(ready).toMatchObject({ changed: true, removedCalls: ['b'] });
    expect(ready.reclaimed).toBeGreaterThan(0);
    expect(prepareHistory(ready.messages)).toMatchObject({ changed: false, reclaimed: 0 });
  });

  it('a call id that a model uses again in a later request is another call', async () => {
    const again = [call('c1', 'echo', { m: 'a' })];
    const on = loopBench({ replies: [again, 'one', again, 'two'], tools: [echoTool().tool] });
    await on.request('first');
    await on.request('second');
    expect(on.session.runtime.toolRegistry.list().map(({ callId }) => callId)).toEqual(['c1_2']);
    expect(lines(on.session.conversation.messages)).toHaveLength(8);
  });
});
