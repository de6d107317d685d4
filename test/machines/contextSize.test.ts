/** The size of the messages of a log, and the results that can be pruned. */
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import {
  applyEntry,
  createTranscript,
  emptyLogState,
  type LogEntry,
  type Message,
  modelMessages,
  prunableOf,
  sizeOfTranscript,
} from '../../machines/internal.ts';

type Entry = { type: string; [key: string]: unknown };

const text = (size: number) => [{ type: 'text', text: 'x'.repeat(size) }];
const user = (size = 2): Entry => ({ type: 'user-message', messageId: 'm', kind: 'direct', content: text(size) });
const calls = (...ids: string[]): Entry[] => [
  ...ids.map((callId) => ({ type: 'agent-output', item: { type: 'tool-call', callId, name: 'read', args: { a: 1 } } })),
  replied(0),
];
const replied = (tokens: number): Entry => ({
  type: 'model-reply',
  turn: 1,
  model: 'm',
  finish: 'stop',
  usage: { inputTokens: tokens, outputTokens: 0, cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 },
  costUsd: null,
});
const says = (size: number): Entry => ({ type: 'agent-output', item: { type: 'assistant', text: 'y'.repeat(size) } });
const result = (callId: string, size: number): Entry => ({
  type: 'tool-result',
  callId,
  outcome: 'succeeded',
  content: text(size),
});
const suspended = (callId: string): Entry => ({ type: 'tool-suspended', callId, suspension: 1, reason: 'form' });
const pruned = (callIds: unknown, name = 'runchart.pruned'): Entry => ({ type: 'extension', name, value: { callIds } });
const of = (entries: readonly Entry[]): LogEntry[] =>
  entries.map((entry, seq) => ({ seq, at: 0, conversationId: 'c', runId: 'r', ...entry }) as unknown as LogEntry);
const transcript = (entries: readonly Entry[]) => {
  const made = createTranscript();
  for (const entry of of(entries)) made.push(entry);
  return made;
};
const K = 4_000;

describe('prunable results', () => {
  const seen = [...calls('a'), result('a', 70 * K), says(1), replied(9), user()];

  it('S004-25: there are none in the first user turn; in the second the result of 70,000 tokens is prunable', () => {
    expect(prunableOf(transcript([user(), ...seen.slice(0, -1)]))).toBeUndefined();
    const prunable = prunableOf(transcript([user(), ...seen]));
    expect(prunable?.callIds).toEqual(['a']);
    expect(prunable?.tokens).toBeGreaterThan(69_900);
  });

  it('S004-26: an older result of 10,000 tokens before 35,000 newer ones saves too little; one of 25,000 is enough', () => {
    const behind = (older: number) => [
      user(),
      ...calls('old', 'new'),
      result('old', older * K),
      result('new', 35 * K),
      says(1),
      user(),
    ];
    expect(prunableOf(transcript(behind(10)))).toBeUndefined();
    expect(prunableOf(transcript(behind(25)))?.callIds).toEqual(['old']);
  });

  it('the newest 40,000 tokens of results are never prunable', () => {
    const two = (newest: number) => [
      user(),
      ...calls('old', 'new'),
      result('old', 30 * K),
      result('new', newest),
      says(1),
      user(),
    ];
    expect(prunableOf(transcript([...two(10 * K)]))).toBeUndefined();
    expect(prunableOf(transcript([...two(10 * K + 1)]))?.callIds).toEqual(['old']);
  });

  it('results of waiting calls, unseen results and pruned results are not among them', () => {
    const open = [user(), user(), ...calls('a', 'b', 'c'), suspended('a'), result('b', 70 * K)];
    expect(prunableOf(transcript(open))).toBeUndefined();
    expect(prunableOf(transcript([...open, says(1), replied(0)]))?.callIds).toEqual(['b']);
    expect(prunableOf(transcript([...open, says(1), replied(0), pruned(['b'])]))).toBeUndefined();
  });
});

describe('a pruned result', () => {
  const whole = [user(), ...calls('a', 'b'), result('a', 400), suspended('b'), says(1), replied(900), user()];
  const contents = (messages: readonly Message[]) =>
    messages.flatMap((message) =>
      message.role === 'tool' ? [[message.callId, message.isError, message.content]] : [],
    );

  const textsOf = (content: unknown) => ((content ?? []) as { text: string }[]).map((part) => part.text);

  it('BED-12: a fixed text replaces the result, with the same id and outcome; the log stays the same', () => {
    const entries = of([...whole, pruned(['a'])]);
    const before = JSON.stringify(entries);
    const [first, second] = contents(modelMessages(entries));
    expect(first).toEqual(['a', false, [{ type: 'text', text: expect.stringContaining('old result was removed') }]]);
    expect(second).toEqual(contents(modelMessages(of(whole)))[1]);
    expect(JSON.stringify(entries)).toBe(before);
    const [shown = ''] = textsOf(first?.[2]);
    expect(sizeOfTranscript(transcript([...whole, pruned(['a'])])).reported).toBe(900 - (400 - shown.length) / 4);
  });

  it('INV-2: the policies of an agent change no message, because the log contains each effect of a policy', () => {
    const entries = of([...whole, pruned(['a'])]);
    const policies = { context: [], partialReply: 'discard' };
    expect(modelMessages(entries, policies)).toEqual(modelMessages(entries));
  });

  it.each([
    ['a call that waits', pruned(['b'])],
    ['a call that does not exist', pruned(['z', '__proto__'])],
    ['no list', pruned('a')],
    ['no ids', pruned([1, null, ['a']])],
    ['another name', pruned(['a'], 'pruned')],
    ['no object', { type: 'extension', name: 'runchart.pruned', value: null }],
    ['a list', { type: 'extension', name: 'runchart.pruned', value: ['a'] }],
  ])('%s changes nothing', (_, entry) => {
    expect(modelMessages(of([...whole, entry]))).toEqual(modelMessages(of(whole)));
  });

  it('no entry prunes a result that the model has not received, or one that a summary replaced', () => {
    const unseen = [user(), ...calls('a'), result('a', 400)];
    expect(modelMessages(of([...unseen, pruned(['a'])]))).toEqual(modelMessages(of(unseen)));
    const summed = [...whole, { type: 'compaction', upToSeq: 6, summary: 's' }, ...calls('d'), result('d', 9), says(1)];
    expect(modelMessages(of([...summed, pruned(['a'])]))).toEqual(modelMessages(of(summed)));
  });
});

describe('a summary', () => {
  /** Calls of one reply and their results, between messages of the user. */
  const log = [user(1), ...calls('a', 'b'), result('a', 3), result('b', 4), user(5), says(6), replied(9), user(7)];
  const summed = (upToSeq: number) => modelMessages(of([...log, { type: 'compaction', upToSeq, summary: 'sum' }]));
  const textsOf = (messages: readonly Message[]) =>
    messages.map(
      ({ role, content }) => `${role} ${content.map((part) => (part.type === 'text' ? part.text : '')).join('')}`,
    );
  const whole = textsOf(modelMessages(of(log)));

  it('replaces every entry up to its seq, and none after it', () => {
    // The number of messages that remain, by seq.
    const kept = (from: number) => ['user sum', ...whole.slice(from)];
    expect(textsOf(summed(log.length))).toEqual(['user sum']);
    expect(log.map((_, seq) => textsOf(summed(seq)))).toEqual([1, 1, 1, 4, 4, 4, 5, 5, 6, 7].map(kept));
  });

  it('never separates a call from its result, even if its seq is before the result', () => {
    for (let upToSeq = -1; upToSeq <= log.length; upToSeq += 1) {
      const messages = summed(upToSeq);
      const made = messages.flatMap((each) =>
        each.role === 'assistant' ? each.toolCalls.map((one) => one.callId) : [],
      );
      expect(messages.flatMap((each) => (each.role === 'tool' ? [each.callId] : []))).toEqual(made);
    }
  });
});

describe('the size of the messages', () => {
  const ids = fc.constantFrom('a', 'b', 'c', 'd');
  const step = fc.oneof<fc.Arbitrary<Entry[]>[]>(
    fc.nat(50).map((size) => [user(size)]),
    fc.nat(50).map((size) => [says(size), replied(size)]),
    fc.uniqueArray(ids, { maxLength: 3 }).map((some) => calls(...some)),
    fc.tuple(ids, fc.nat(200)).map(([id, size]) => [result(id, size)]),
    ids.map((id) => [suspended(id)]),
    ids.map((id) => [pruned([id])]),
    ids.map((callId) => [{ type: 'call-settled', callId, how: { ran: 'it did' } }]),
    fc.nat(20).map((upToSeq) => [{ type: 'compaction', upToSeq, summary: 'sum' }]),
    fc.constant([{ type: 'continuation', text: 'on', why: 'pause' }]),
  );

  it('is the same after each entry and at the end, and counts the visible text', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 25 }), (steps) => {
        const entries = of(steps.flat());
        const asked = createTranscript();
        for (const entry of entries) {
          asked.push(entry);
          // Entries of one reply are applied together.
          if (entry.type !== 'agent-output') sizeOfTranscript(asked);
        }
        const once = transcript(steps.flat());
        expect(sizeOfTranscript(asked)).toEqual(sizeOfTranscript(once));
        const shown = once
          .messages()
          .flatMap((message) => [
            ...message.content.map((part) => (part.type === 'text' ? part.text : '')),
            ...(message.role === 'tool' ? [message.callId] : []),
            ...(message.role === 'assistant'
              ? message.toolCalls.map((call) => call.callId + call.name + JSON.stringify(call.args))
              : []),
          ]);
        expect(sizeOfTranscript(once).characters).toBe(shown.join('').length);
      }),
    );
  });

  const unknownOf = (callId: string): Entry => ({ type: 'tool-result', callId, outcome: 'unknown', content: text(1) });
  const retryOf = (callId: string): Entry => ({ type: 'call-settled', callId, how: { retry: true } });

  it('no entry copies the state of the calls: each of a thousand retried calls costs the same', () => {
    const ids = Array.from({ length: 1_000 }, (_, index) => `c${index}`);
    const made = transcript([user(), ...calls(...ids), ...ids.map(unknownOf)]);
    // A copy of a map or a set adds its items one by one.
    const spies = [vi.spyOn(Map.prototype, 'set'), vi.spyOn(Set.prototype, 'add')];
    for (const entry of of(ids.map(retryOf))) made.push(entry);
    const added = spies.map(({ mock }) => mock.calls.length);
    for (const spy of spies) spy.mockRestore();
    for (const count of added) expect(count).toBeLessThanOrEqual(ids.length);
    for (const entry of of([result('c0', 9), result('c0', 8)])) made.push(entry);
    expect(made.messages()[2]?.content).toEqual(text(9));
  });

  it('of a retried call the next result counts, and none after it', () => {
    const [unknown, retry] = [unknownOf('c'), retryOf('c')];
    const steps = [
      user(),
      ...calls('c'),
      unknown,
      result('c', 7),
      retry,
      result('c', 9),
      result('c', 8),
      retry,
      result('c', 6),
    ];
    expect(transcript(steps).messages()[2]?.content).toEqual(text(9));
  });

  it('an image counts as 1,600 tokens, whatever its data', () => {
    const image = { type: 'image', mediaType: 'image/png', data: 'z'.repeat(999) };
    const message = { type: 'user-message', messageId: 'm', kind: 'direct', content: [image] };
    expect(sizeOfTranscript(transcript([message])).characters / 4).toBe(1_600);
  });

  it('the reported tokens are those of the last reply, until a summary replaces that reply', () => {
    const spoken = [user(), says(1), replied(500), says(1), replied(700)];
    expect(sizeOfTranscript(transcript(spoken)).reported).toBe(700);
    expect(sizeOfTranscript(transcript([...spoken, { type: 'compaction', upToSeq: 3, summary: 's' }])).reported).toBe(
      0,
    );
  });
});

describe('an active warning', () => {
  const warning = { type: 'context-warning', used: 90, limit: 100 };
  const eased = { type: 'extension', name: 'runchart.context-eased', value: { used: 10, limit: 100 } };
  const knows = (entries: readonly Entry[]) => {
    const logState = emptyLogState();
    for (const entry of of(entries)) applyEntry(logState, entry);
    return logState.warned;
  };

  it('S003-29: lasts from its entry until the entry that usage has fallen, whatever entries come between', () => {
    expect(knows([user()])).toBe(false);
    expect(knows([warning, user(), pruned(['a'])])).toBe(true);
    expect(knows([warning, eased, replied(1)])).toBe(false);
    expect(knows([warning, eased, warning])).toBe(true);
  });
});
