/**
 * The functions for counts, prices, fingerprints and earlier messages, called with drawn values. Invariant: values are
 * at the limits, and some of them are values that no program writes.
 */
import * as counters from '../../machines/counters.ts';
import * as fingerprint from '../../machines/fingerprint.ts';
import type { Json, LogEntry, Message, NewEntry } from '../../machines/index.ts';
import { goesOn, isCutOff, isUnfinished, modelMessages, openCalls } from '../../machines/internal.ts';
import { eachEarlierEntry } from '../../machines/log/earlierMessages.ts';
import { defaultLimits, type Limits } from '../../machines/policies.ts';
import { PRUNED } from '../../machines/transcript/contextEntries.ts';
import { PRUNED_RESULT } from '../../machines/transcript/texts.ts';
import { prunableIn } from '../../machines/transcript/transcript.ts';
import { type Chance, chance } from '../support/seededChance.ts';
import { type Clause, drawn, type Fold, knowledgeOf } from './drawnResults.ts';
import { hold } from './invariants.ts';
import { some, text } from './runFunctions.ts';

interface Worth {
  counted: counters.Counters;
  limits: Limits;
  spent: counters.UsageCost;
  value: Json;
  entries: readonly NewEntry[];
  messages: readonly Message[];
}

const PRINTS = ['a:0', 'a:1', 'b:0'];
function countedOf(draw: Chance): counters.Counters {
  const fresh = draw.odds(0.3);
  const most = fresh ? 1 : 3;
  return {
    turns: draw.below(most),
    emptyReplies: draw.below(most),
    streaks: fresh ? [] : some(draw, 0.5, PRINTS).map((fingerprint) => ({ fingerprint, count: 1 + draw.below(3) })),
    rounds: Array.from({ length: fresh ? 0 : draw.one([0, 1, 2, 3, 63, 64, 65, 66]) }, () => ({
      open: some(draw, 0.3, ['a', 'b', 's']),
      fingerprints: some(draw, 0.6, PRINTS),
    })),
    tokens: draw.below(4) * 10,
    costUsd: draw.one([0, 0.5, 1]),
    unpriced: draw.odds(0.25) ? 1 + draw.below(2) : 0,
  };
}

/** Returns limits at, above and below a count. */
function limitsOf(draw: Chance, { turns, emptyReplies, tokens, costUsd, streaks }: counters.Counters): Limits {
  const about = (count: number): number => count + draw.below(3) - 1;
  const [first] = streaks;
  return {
    ...defaultLimits,
    turns: draw.odds(0.7) ? 100 : about(turns),
    emptyReplies: draw.odds(0.7) ? 100 : about(emptyReplies),
    tokens: draw.odds(0.6) ? false : about(tokens),
    costUsd: draw.odds(0.6) ? false : draw.one([costUsd - 0.25, costUsd, costUsd + 0.25]),
    identicalCalls: about(first?.count ?? 2),
  };
}

const COUNTS: readonly [Json, ...Json[]] = [0, 1, 7, -1, '3', null, [2], {}, true, 0.5];
function usageOf(draw: Chance): { [key: string]: Json } {
  const keys = ['inputTokens', 'outputTokens', 'cachedInputTokens', 'cacheWriteTokens', 'reasoningTokens'];
  return Object.fromEntries(some(draw, 0.9, keys).map((key) => [key, draw.one(COUNTS)]));
}
const spentOf = (draw: Chance): counters.UsageCost => ({
  usage: {
    inputTokens: 1 + draw.below(9),
    outputTokens: 1 + draw.below(9),
    cachedInputTokens: 1 + draw.below(9),
    cacheWriteTokens: 1 + draw.below(9),
    reasoningTokens: 1 + draw.below(9),
  },
  costUsd: draw.one([0, 0.25, null]),
});

function drawnValue(draw: Chance): Json {
  return draw.one<() => Json>([
    () => null,
    () => 'words',
    () => 7,
    () => [usageOf(draw)],
    () => usageOf(draw),
    () => ({
      callId: 'a',
      conversationId: 'k',
      upTo: draw.one(COUNTS),
      usage: usageOf(draw),
      costUsd: draw.one(COUNTS),
    }),
    () => ({ callId: 'a', usage: spentOf(draw).usage as unknown as Json, costUsd: 0.5 }),
    () => ({ conversationId: 'k', callId: draw.one<Json>([1, null]) }),
    () => ({ b: [1, 'x', null, { d: 1, c: 2 }], a: { z: true, y: ['a,b', 'c'] }, e: {}, f: [] }),
  ])();
}

function entriesOf(draw: Chance): NewEntry[] {
  const made = (): object =>
    draw.one<() => object>([
      () => ({ type: 'model-reply', turn: 1, model: 'm', finish: 'stop', ...spentOf(draw) }),
      () => ({ type: 'compaction', upToSeq: 3, summary: 'before', ...(draw.odds(0.6) && spentOf(draw)) }),
      () => ({ type: 'compaction', upToSeq: 3, summary: 'before', usage: spentOf(draw).usage }),
      () => ({ type: 'extension', name: counters.SUB_AGENT_USAGE, value: drawnValue(draw) }),
      () => ({ type: 'extension', name: 'other', value: drawnValue(draw) }),
      () => ({ type: 'run-started' }),
    ])();
  return Array.from({ length: draw.below(4) }, () => ({ runId: 'r', ...made() }) as NewEntry);
}

/** The number of characters of results that are never removed. */
const KEPT = 160_000;

/** Returns a log with a summary, and with entries about calls before and after it. */
function summedUp(draw: Chance): LogEntry[] {
  const replied = { type: 'model-reply', turn: 1, model: 'm', finish: 'stop', ...spentOf(draw) };
  const call = (callId: string): object => ({
    type: 'agent-output',
    item: { type: 'tool-call', callId, name: 'write', args: {} },
  });
  const result = (callId: string): object => ({
    type: 'tool-result',
    callId,
    outcome: 'succeeded',
    content: text(`done ${callId}`),
  });
  const says = [{ type: 'agent-output', item: { type: 'assistant', text: 'words' } }, replied];
  const settled = (callId: string): object => ({ type: 'call-settled', callId, how: { ran: callId } });
  const suspended = { type: 'tool-suspended', callId: 'b', suspension: 1, reason: 'permission' };
  const before = [
    { type: 'user-message', messageId: 'm', kind: 'direct', content: text('hi') },
    ...[call('a'), call('b'), replied, result('a'), draw.one([suspended, suspended, result('b')]), ...says],
    ...some(draw, 0.7, [result('b')]),
    ...(draw.odds(0.5) ? [call('c'), replied, result('c'), ...says] : []),
  ];
  const after = [
    settled('b'),
    { type: 'extension', name: PRUNED, value: { callIds: draw.one([['a'], ['a', 'b'], ['b', 'c']]) } },
    settled('a'),
  ];
  const made = [
    ...before,
    { type: 'compaction', upToSeq: draw.below(before.length), summary: 'before' },
    ...some(draw, 0.7, [...after, ...says, settled('c')]),
  ];
  return made.map((entry, seq) => ({ seq, at: seq, conversationId: 'c', runId: 'r', ...entry }) as LogEntry);
}

/** Returns entries of a call that runs again after its cycle, and in a resumed cycle. */
function retried(draw: Chance): LogEntry[] {
  const callId = 'a';
  const stop = { type: 'run-stop', reason: draw.one(['completed', 'completed', 'interrupted']) };
  const starts = (key: number): object[] =>
    some(draw, 0.7, [
      { type: 'tool-started', callId, idempotencyKey: `c/a/${key}` },
      { type: 'tool-suspended', callId, suspension: key + 1, reason: 'permission' },
    ]);
  const made = [
    { type: 'run-started' },
    { type: 'user-message', messageId: 'm', kind: 'direct', content: text('hi') },
    { type: 'agent-output', item: { type: 'tool-call', callId, name: 'write', args: {} } },
    { type: 'tool-started', callId, idempotencyKey: 'c/a/0' },
    { type: 'tool-result', callId, outcome: 'unknown', content: text('gone') },
    stop,
    { type: 'call-settled', callId, how: { retry: true } },
    ...starts(0),
    ...(draw.odds(0.7) ? [{ type: 'run-resumed', of: 'r' }, ...starts(1), stop] : []),
  ];
  return made.map((entry, seq) => ({ seq, at: seq, conversationId: 'c', runId: 'r', ...entry }) as LogEntry);
}

/** Returns messages as a host stored them: results may be missing, separated or doubled, and ids may repeat. */
function messagesOf(draw: Chance): Message[] {
  const callId = (): string => draw.one(['a', 'b', 'c']);
  const image = { type: 'image' as const, mediaType: 'image/png', data: 'aGk=' };
  const made = (): object =>
    draw.one<() => object>([
      () => ({ role: 'user', content: draw.one([text('hi'), [...text('look'), image]]) }),
      () => ({ role: 'system', content: text('Be brief.') }),
      () => ({
        role: 'assistant',
        content: draw.one([text('so'), [], [...text('so'), ...text('and')], [image]]),
        toolCalls: Array.from({ length: draw.below(3) }, () => ({ callId: callId(), name: 'read', args: {} })),
        ...(draw.odds(0.4) && { extra: { id: 'x' } }),
      }),
      () => ({ role: 'tool', callId: callId(), content: text('done'), isError: draw.odds(0.4) }),
      () => ({ role: 'tool', callId: callId(), content: text('done'), isError: draw.odds(0.4) }),
    ])();
  return Array.from({ length: draw.below(8) }, () => made() as Message);
}

const outcomes = ['succeeded', 'failed', 'cancelled', 'suspended'] as const;
const historyOf = (messages: readonly Message[]) =>
  ({ type: 'history', messages, seq: 0, at: 5, conversationId: 'c', runId: null }) as Extract<
    LogEntry,
    { type: 'history' }
  >;
function earlier(messages: readonly Message[]): LogEntry[] {
  const entries: LogEntry[] = [];
  eachEarlierEntry(historyOf(messages), (entry) => void entries.push(entry));
  return entries;
}

/** Returns a call before the messages, and its result after them. */
const answeredLate = (messages: readonly Message[]): Message[] => [
  { role: 'assistant', content: [], toolCalls: [{ callId: 'z', name: 'read', args: {} }] },
  ...messages,
  { role: 'tool', callId: 'z', content: text('late'), isError: false },
];

const FOLDS: Record<string, Fold<Worth>> = {
  limits: ({ counted, limits }) => counters.limitReached(counted, limits),
  cycle: ({ counted }) => [counters.newCycle(counted), counters.newCycle(counted) === counted],
  reply: ({ counted, spent }, draw) =>
    counters.countReply(counted, { ...spent, empty: draw.odds(0.5), calls: some(draw, 0.5, [{ callId: 'n' }]) }),
  results: ({ counted }, draw) => {
    const results = some(draw, 0.5, ['a', 'b', 's', 'x']).map((callId) => ({
      callId,
      name: 'write',
      fingerprint: `${callId}:${draw.below(2)}`,
      suspension: 0,
      outcome: draw.one(outcomes),
    }));
    const after = counters.countResults(counted, results);
    return [after, after === counted, counters.countOutputs(counted, [undefined, ...results])];
  },
  usage: ({ counted, spent }) => [
    counters.countUsage(counted, spent),
    counters.countUsage(counted, undefined) === counted,
    counters.addUsage(counters.zeroUsage, spent),
    counters.addUsage(spent, spent),
  ],
  read: ({ value }) => [
    counters.readUsage(value),
    [value, 0, -1, Number.NaN, Number.POSITIVE_INFINITY].map(counters.isCount),
  ],
  lost: ({ counted, entries }) => [
    counters.uncounted(counted, entries),
    entries.map(counters.usageOf),
    entries.map((entry) => counters.subAgentUsageOf(entry as LogEntry)),
  ],
  subAgent: ({ spent }, draw) =>
    counters.subAgentEntries('r', {
      type: 'sub-agent.changed',
      callId: 'a',
      conversationId: 'k',
      ...(draw.odds(0.5) && { phase: draw.one(['started', 'ended']) }),
      ...(draw.odds(0.5) && { spent: { ...spent, upTo: draw.below(3) } }),
    }),
  fingerprints: ({ value, messages }) => [
    fingerprint.canonical(value),
    fingerprint.fingerprintOf('read', value),
    messages.map(({ content }) =>
      fingerprint.resultFingerprint('p', { outcome: 'failed', ...(content.length > 0 && { code: 'error' }), content }),
    ),
  ],
  pruning: (_, draw) => {
    const least = PRUNED_RESULT.length;
    const results = Array.from({ length: 1 + draw.below(6) }, (_, index): Message => {
      const size = draw.one([0, least, least + 1, 80_000, 80_000 + least, KEPT, KEPT, KEPT + 1]);
      return { role: 'tool', callId: `${index}`, content: text('x'.repeat(size)), isError: false };
    });
    return prunableIn([{ role: 'user', content: text('hi') }, ...results], (callId) => callId !== '1');
  },
  summed: (_, draw) => modelMessages(summedUp(draw)),
  retried: (_, draw) => {
    const logState = knowledgeOf(retried(draw));
    return [goesOn(logState), isCutOff(logState), isUnfinished(logState), openCalls(logState)];
  },
  earlier: ({ messages }) => [
    [earlier(messages)],
    [knowledgeOf([historyOf(messages)]), modelMessages([historyOf(messages)])],
    modelMessages([historyOf(answeredLate(messages))]),
  ],
};

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);
function sorted(value: Json): Json {
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.map(sorted);
  const keys = Object.keys(value).sort();
  return Object.fromEntries(keys.map((key) => [key, sorted(value[key] ?? null)]));
}

const clauses: readonly Clause<Worth>[] = [
  {
    says: 'semantics 4: lost entries are not counted; counting them again restores the counts',
    holds: ({ counted, entries }) => {
      const spent = entries.flatMap((entry) => counters.usageOf(entry) ?? []);
      const all = spent.reduce((sum, each) => counters.countUsage(sum, each), counted);
      hold(same(counters.uncounted(all, entries), counted), `${JSON.stringify(counters.uncounted(all, entries))}`);
    },
  },
  {
    says: 'no_progress: values are compared only by their JSON with sorted keys',
    holds: ({ value }) => {
      const read = fingerprint.canonical(value);
      hold(read === JSON.stringify(sorted(value)), read);
    },
  },
  {
    says: 'history: a call of earlier messages never runs again, and no cycle of theirs is open',
    holds: ({ messages }) => {
      const { suspended, reruns, kept } = openCalls(knowledgeOf([historyOf(messages)]));
      hold(suspended.length + reruns.length + kept.length === 0, 'a call is open');
      const entries = earlier(messages);
      const count = (type: string): number => entries.filter((entry) => entry.type === type).length;
      hold(count('run-stop') === count('user-message'), 'each request is a cycle with its stop');
    },
  },
  {
    says: 'history: the model receives its earlier text again, message by message, without blank text and images',
    holds: ({ messages }) => {
      const words = [
        ...messages,
        { role: 'assistant', content: [...text(' '), ...text('so')], toolCalls: [] } as Message,
      ];
      const spoken = words.filter(
        (message) => message.role === 'user' || (message.role === 'assistant' && message.toolCalls.length === 0),
      );
      const shown = spoken.flatMap((message): Message[] => {
        if (message.role !== 'assistant') return [message];
        const content = message.content.filter((part) => part.type === 'text' && part.text.trim() !== '');
        return content.length > 0 ? [{ ...message, content }] : [];
      });
      const received = modelMessages([historyOf(spoken)]);
      // The provider's extra data is kept with the last item of a message, even a blank one.
      const plain = (list: readonly Message[]): unknown => list.map(({ role, content }) => [role, content]);
      hold(same(plain(received), plain(shown)), JSON.stringify(received));
    },
  },
];

function worthAt(seed: number): Worth {
  const draw = chance(seed * 32_452_843);
  const counted = countedOf(draw);
  return {
    counted,
    limits: limitsOf(draw, counted),
    spent: spentOf(draw),
    value: drawnValue(draw),
    entries: entriesOf(draw),
    messages: messagesOf(draw),
  };
}
export const counts = drawn('COUNTS', worthAt, FOLDS, clauses);
