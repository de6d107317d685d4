/** The fold of a log into messages: how large they are, and which results can make room. */
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

describe('which results can make room', () => {
  const seen = [...calls('a'), result('a', 70 * K), says(1), replied(9), user()];

  it('S004-25: with one user turn none, with two the one of 70,000 tokens', () => {
    expect(prunableOf(transcript([user(), ...seen.slice(0, -1)]))).toBeUndefined();
    const found = prunableOf(transcript([user(), ...seen]));
    expect(found?.callIds).toEqual(['a']);
    expect(found?.tokens).toBeGreaterThan(69_900);
  });

  it('S004-26: an older one of 10,000 behind 35,000 saves too little; one of 25,000 is enough', () => {
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

  it('exactly 40,000 tokens of the newest results are kept', () => {
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

  it('what still waits, was not seen yet or is gone already stays as it is', () => {
    const open = [user(), user(), ...calls('a', 'b', 'c'), suspended('a'), result('b', 70 * K)];
    expect(prunableOf(transcript(open))).toBeUndefined();
    expect(prunableOf(transcript([...open, says(1), replied(0)]))?.callIds).toEqual(['b']);
    expect(prunableOf(transcript([...open, says(1), replied(0), pruned(['b'])]))).toBeUndefined();
  });
});

describe('what a log says was pruned', () => {
  const whole = [user(), ...calls('a', 'b'), result('a', 400), suspended('b'), says(1), replied(900), user()];
  const contents = (messages: readonly Message[]) =>
    messages.flatMap((message) =>
      message.role === 'tool' ? [[message.callId, message.isError, message.content]] : [],
    );

  const textsOf = (content: unknown) => ((content ?? []) as { text: string }[]).map((part) => part.text);

  it('BED-12: the result gives way to a fixed text, under its id and with its outcome; the log is not touched', () => {
    const entries = of([...whole, pruned(['a'])]);
    const before = JSON.stringify(entries);
    const [first, second] = contents(modelMessages(entries));
    expect(first).toEqual(['a', false, [{ type: 'text', text: expect.stringContaining('old result was removed') }]]);
    expect(second).toEqual(contents(modelMessages(of(whole)))[1]);
    expect(JSON.stringify(entries)).toBe(before);
    const [shown = ''] = textsOf(first?.[2]);
    expect(sizeOfTranscript(transcript([...whole, pruned(['a'])])).reported).toBe(900 - (400 - shown.length) / 4);
  });

  it('INV-2: the policies of an agent change nothing: what one of them made of the messages is in the log', () => {
    const entries = of([...whole, pruned(['a'])]);
    const policies = { context: [], partialReply: 'discard' };
    expect(modelMessages(entries, policies)).toEqual(modelMessages(entries));
  });

  it.each([
    ['a call that waits', pruned(['b'])],
    ['a call nobody made', pruned(['z', '__proto__'])],
    ['no list', pruned('a')],
    ['no ids', pruned([1, null, ['a']])],
    ['another name', pruned(['a'], 'pruned')],
    ['no object', { type: 'extension', name: 'runchart.pruned', value: null }],
    ['a list', { type: 'extension', name: 'runchart.pruned', value: ['a'] }],
  ])('%s changes nothing', (_, entry) => {
    expect(modelMessages(of([...whole, entry]))).toEqual(modelMessages(of(whole)));
  });

  it('a result that the model has not seen is not taken by any entry, nor one that was summed up', () => {
    const unseen = [user(), ...calls('a'), result('a', 400)];
    expect(modelMessages(of([...unseen, pruned(['a'])]))).toEqual(modelMessages(of(unseen)));
    const summed = [...whole, { type: 'compaction', upToSeq: 6, summary: 's' }, ...calls('d'), result('d', 9), says(1)];
    expect(modelMessages(of([...summed, pruned(['a'])]))).toEqual(modelMessages(of(summed)));
  });
});

describe('what a summary stands for', () => {
  /** Calls of one reply and their results, between words of the user. */
  const log = [user(1), ...calls('a', 'b'), result('a', 3), result('b', 4), user(5), says(6), replied(9), user(7)];
  const summed = (upToSeq: number) => modelMessages(of([...log, { type: 'compaction', upToSeq, summary: 'sum' }]));
  const told = (messages: readonly Message[]) =>
    messages.map(
      ({ role, content }) => `${role} ${content.map((part) => (part.type === 'text' ? part.text : '')).join('')}`,
    );
  const whole = told(modelMessages(of(log)));

  it('is every entry up to its own, and none behind it', () => {
    // The seqs at which each message stands: the user's, the reply's that made the calls, the user's, the words', the user's.
    const kept = (from: number) => ['user sum', ...whole.slice(from)];
    expect(told(summed(log.length))).toEqual(['user sum']);
    expect(log.map((_, seq) => told(summed(seq)))).toEqual([1, 1, 1, 4, 4, 4, 5, 5, 6, 7].map(kept));
  });

  it('never parts a call from its result, also where it ends at the entry before the result', () => {
    for (let upToSeq = -1; upToSeq <= log.length; upToSeq += 1) {
      const messages = summed(upToSeq);
      const made = messages.flatMap((each) =>
        each.role === 'assistant' ? each.toolCalls.map((one) => one.callId) : [],
      );
      expect(messages.flatMap((each) => (each.role === 'tool' ? [each.callId] : []))).toEqual(made);
    }
  });
});

describe('how large the messages are', () => {
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

  it('is the same whether asked behind each entry or once at the end, and counts what is shown', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 25 }), (steps) => {
        const entries = of(steps.flat());
        const asked = createTranscript();
        for (const entry of entries) {
          asked.push(entry);
          // Entries of one reply come together: a look in between would end it.
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

  it('what was learnt is copied for no entry: a thousand calls that are retried cost no more each than one', () => {
    const ids = Array.from({ length: 1_000 }, (_, index) => `c${index}`);
    const settled = ids.map((callId): Entry => ({ type: 'call-settled', callId, how: { retry: true } }));
    const made = transcript([user(), ...calls(...ids), ...ids.map((callId) => result(callId, 1))]);
    const added = vi.spyOn(Set.prototype, 'add');
    for (const entry of of(settled)) made.push(entry);
    const count = added.mock.calls.length;
    added.mockRestore();
    expect(count).toBeLessThanOrEqual(ids.length);
    for (const entry of of([result('c0', 9), result('c0', 8)])) made.push(entry);
    expect(made.messages()[2]?.content).toEqual(text(9));
  });

  it('an image counts as 1,600 tokens, whatever its data', () => {
    const image = { type: 'image', mediaType: 'image/png', data: 'z'.repeat(999) };
    const message = { type: 'user-message', messageId: 'm', kind: 'direct', content: [image] };
    expect(sizeOfTranscript(transcript([message])).characters / 4).toBe(1_600);
  });

  it('what the model reported is taken from its last reply, and forgotten with what was summed up', () => {
    const spoken = [user(), says(1), replied(500), says(1), replied(700)];
    expect(sizeOfTranscript(transcript(spoken)).reported).toBe(700);
    expect(sizeOfTranscript(transcript([...spoken, { type: 'compaction', upToSeq: 3, summary: 's' }])).reported).toBe(
      0,
    );
  });
});

describe('whether a warning stands', () => {
  const warning = { type: 'context-warning', used: 90, limit: 100 };
  const eased = { type: 'extension', name: 'runchart.context-eased', value: { used: 10, limit: 100 } };
  const knows = (entries: readonly Entry[]) => {
    const logState = emptyLogState();
    for (const entry of of(entries)) applyEntry(logState, entry);
    return logState.warned;
  };

  it('S003-29: from the warning until use has fallen, whatever else the log says', () => {
    expect(knows([user()])).toBe(false);
    expect(knows([warning, user(), pruned(['a'])])).toBe(true);
    expect(knows([warning, eased, replied(1)])).toBe(false);
    expect(knows([warning, eased, warning])).toBe(true);
  });
});
