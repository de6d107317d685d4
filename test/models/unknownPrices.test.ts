/**
 * Every entry that reports usage, with every form of a missing price, for everything that adds prices up. Invariant:
 * the sum is unknown, never lower. With a price in its place the sum is that price.
 */
import { expect, it } from 'vitest';
import { applyEntry, countersOf, emptyLogState, type LogEntry, runOf, usageOf } from '../../machines/internal.ts';
import { costText, ReplaySpending } from '../../src/cli/costTally.ts';
import { type Cost, costOf } from '../../src/log/cost.ts';
import { runOutcome, workOutcome } from '../../src/otel/attributes.ts';
import type { Work, WorkValue } from '../../src/plugins/workObserver.ts';
import { addToRow } from '../../src/stores/conversationSummary.ts';
import { overBudget } from '../../src/subAgents/subAgentOutcome.ts';
import { StreamFold } from '../../src/transports/chat/streamFold.ts';

const usage = { inputTokens: 10, outputTokens: 5, cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };
/** Prices that are none. A field that is undefined is absent. */
const MISSING: readonly unknown[] = [null, undefined];
const INVALID: readonly unknown[] = ['0.5', -1, Number.NaN];

const withPrice = (fields: object, costUsd: unknown): object =>
  costUsd === undefined ? fields : { ...fields, costUsd };
/** Entries by kind, and the prices that they may have in a log of any origin. */
const KINDS: { [kind: string]: { entry(costUsd: unknown): object; none: readonly unknown[] } } = {
  'a reply': {
    entry: (costUsd) => withPrice({ type: 'model-reply', turn: 1, model: 'm', finish: 'stop', usage }, costUsd),
    none: [null],
  },
  'a summary': {
    entry: (costUsd) => withPrice({ type: 'compaction', upToSeq: 1, summary: 's', usage }, costUsd),
    none: MISSING,
  },
  'a sub-agent': {
    entry: (costUsd) => {
      const value = withPrice({ callId: 'c', conversationId: 's', upTo: 1, usage }, costUsd);
      return { type: 'extension', name: 'runchart.sub-agent-usage', value };
    },
    none: [...MISSING, ...INVALID],
  },
};
const reply = KINDS['a reply']?.entry(0.25) ?? {};

/** A log of one request, with the entry beside a reply that has a price. */
function logWith(entry: object): LogEntry[] {
  const runId = runOf('m');
  const entries = [
    { type: 'conversation', schema: 1, cwd: '/', createdAt: 1, runId: null },
    { type: 'run-started' },
    { type: 'user-message', messageId: 'm', kind: 'direct', content: [{ type: 'text', text: 'hi' }] },
    reply,
    entry,
    { type: 'run-stop', reason: 'completed', cause: 'end_turn' },
  ];
  return entries.map((each, seq) => ({ seq, at: seq, conversationId: 'c', runId, ...each }) as unknown as LogEntry);
}

/** The sums of the prices of a log; null for an unknown sum. */
const SUMS: { [name: string]: (log: readonly LogEntry[]) => number | null | undefined } = {
  'the cost of a conversation': (log) => costOf(log).total.costUsd,
  'the cost of its runs': (log) => costOf(log).runs[0]?.costUsd,
  'the row of a list': (log) =>
    log.reduce((row, entry) => addToRow(row, entry, 'c'), undefined as never as ReturnType<typeof addToRow>).costUsd,
  'the counts of limits': (log) => {
    const logState = emptyLogState();
    for (const entry of log) applyEntry(logState, entry);
    const { costUsd, unpriced } = countersOf(logState);
    return unpriced > 0 ? null : costUsd;
  },
  'the end of a run for a page': (log) => {
    const fold = new StreamFold();
    const pieces = log.flatMap((entry) => fold.take(entry));
    const end = pieces.find(({ kind }) => kind === 'run-ends') as { spent?: Pick<Cost, 'costUsd'> } | undefined;
    return end?.spent?.costUsd;
  },
};
/** The same for the replay of the command line, which does not read sub-agents. */
function replayed(log: readonly LogEntry[]): number | null | undefined {
  const spending = new ReplaySpending();
  for (const entry of log) spending.addEntry(entry);
  return spending.tallyOf({ root: { messageId: 'm' }, rounds: [{ usage }] } as never)?.costUsd;
}

const CASES = Object.entries(KINDS).flatMap(([kind, { entry, none }]) =>
  none.map((price) => [kind, price === undefined ? 'absent' : `${price}`, entry(price), entry(0.5)] as const),
);
it.each(CASES)('%s whose price is %s makes every sum unknown', (kind, _, unpriced, priced) => {
  const sums = kind === 'a sub-agent' ? SUMS : { ...SUMS, 'a replay': replayed };
  const found = Object.entries(sums).map(([name, sum]) => [name, sum(logWith(unpriced)), sum(logWith(priced))]);
  expect(found).toEqual(Object.keys(sums).map((name) => [name, null, 0.75]));
  expect(usageOf(unpriced as never)).toEqual({ usage, costUsd: null });
});

it('a summary that no model wrote costs nothing', () => {
  const log = logWith({ type: 'compaction', upToSeq: 1, summary: 's' });
  const sums = { ...SUMS, 'a replay': replayed };
  expect(Object.entries(sums).map(([name, sum]) => [name, sum(log)])).toEqual(
    Object.keys(sums).map((name) => [name, 0.25]),
  );
});

it('a shared budget is spent by an unknown price on either side, and only where there is a limit of cost', () => {
  const counted = (unpriced: number) => ({ tokens: 0, costUsd: 0.25, unpriced });
  const limits = { costUsd: 1, tokens: false } as const;
  for (const unpriced of [0, 1])
    for (const costUsd of [0.5, null]) {
      const isUnknown = unpriced > 0 || costUsd === null;
      expect(overBudget(limits, () => ({ counted: counted(unpriced), uncounted: [{ usage, costUsd }] }))).toBe(
        isUnknown,
      );
      expect(
        overBudget({ costUsd: false, tokens: 100 }, () => ({
          counted: counted(unpriced),
          uncounted: [{ usage, costUsd }],
        })),
      ).toBe(false);
    }
});

it('an unknown cost is shown as such: in a terminal by a word, in a span by the absence of the attribute', () => {
  const tally = { turns: 1, inputTokens: 1, outputTokens: 1 };
  expect([costText({ ...tally, costUsd: null }), costText({ ...tally, costUsd: 0 })]).toEqual(['cost unknown', '$0']);
  const value = { kind: 'reply', items: [], finish: 'stop', usage } as unknown as WorkValue;
  const plain = { contents: false, redact: <T>(shown: T): T => shown };
  for (const costUsd of [null, 0, 0.5]) {
    const run = runOutcome({ runId: 'r', termination: 'NaturalEnd', usage, costUsd } as never);
    const chat = workOutcome({ kind: 'model', costOf: () => costUsd } as unknown as Work, value, plain);
    for (const { attributes } of [run, chat])
      expect([costUsd, attributes['runchart.cost_usd']]).toEqual([costUsd, costUsd ?? undefined]);
  }
});

it('the end of a run contains the cost since the message that began the request, in all orders of messages and replies', () => {
  const kinds = ['direct', 'followUp', 'steer', 'reply'] as const;
  for (let order = 0; order < kinds.length ** 4; order++) {
    const acts = [0, 1, 2, 3].map(
      (place) => kinds[Math.floor(order / kinds.length ** place) % kinds.length] ?? 'reply',
    );
    const entries: object[] = acts.map((act, index) =>
      act === 'reply'
        ? (KINDS['a reply']?.entry(2 ** index) ?? {})
        : { type: 'user-message', messageId: `m${index}`, kind: act, content: [{ type: 'text', text: 'go on' }] },
    );
    const log = [{ type: 'run-started' }, ...entries, { type: 'run-stop', reason: 'completed', cause: 'end_turn' }];
    const fold = new StreamFold();
    const pieces = log.flatMap((entry, seq) =>
      fold.take({ seq, at: seq, conversationId: 'c', runId: 'r', ...entry } as unknown as LogEntry),
    );
    const [end] = pieces.filter(({ kind }) => kind === 'run-ends') as { spent?: Pick<Cost, 'costUsd'> }[];
    const begun = Math.max(acts.lastIndexOf('direct'), acts.lastIndexOf('followUp'));
    const costs = acts.map((act, index) => (act === 'reply' && index > begun ? 2 ** index : 0));
    const spent = costs.reduce((sum, cost) => sum + cost, 0);
    expect([acts, end?.spent?.costUsd]).toEqual([acts, spent === 0 ? undefined : spent]);
  }
});
