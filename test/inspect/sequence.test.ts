/** The sequence of a request, and the sums of a log, entry by entry. */
import { describe, expect, it } from 'vitest';
import { foldLog } from '../../inspector/model/logFacts.ts';
import { type SequenceRow, sequenceOf } from '../../inspector/model/sequence.ts';
import type { LogEntry } from '../../machines/vocabulary.ts';

const text = (words: string) => [{ type: 'text', text: words }];
const usage = (inputTokens: number, outputTokens: number) => ({
  ...{ inputTokens, outputTokens, cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 },
});
const reply = (turn: number, input: number, output: number) => ({
  ...{ type: 'model-reply', turn, model: 'm', finish: 'stop', costUsd: 0, usage: usage(input, output) },
});
const checkpoint = (boundary: string) => ({ type: 'checkpoint', boundary });
const call = { type: 'agent-output', item: { type: 'tool-call', callId: 'c1', name: 'pay', args: { name: 'rent' } } };
/** Two requests: the first waits for a person and is resumed, the second fails. One entry each second. */
const LOG: readonly (readonly [runId: string | null, body: object])[] = [
  ['a', { type: 'run-started' }],
  ['a', { type: 'user-message', messageId: 'm1', kind: 'direct', content: text('pay it') }],
  ['a', checkpoint('UserMessage')],
  ['a', call],
  ['a', reply(1, 10, 3)],
  ['a', { type: 'tool-suspended', callId: 'c1', suspension: 1, reason: 'may it?' }],
  ['a', checkpoint('ToolResultsCommitted')],
  ['a', { type: 'run-suspended', waiting: ['c1'] }],
  ['a', checkpoint('RunFinished')],
  [null, { type: 'decision', callId: 'c1', suspension: 1, decision: { callId: 'c1', action: 'approve' } }],
  ['b', { type: 'run-resumed', of: 'a' }],
  ['b', { type: 'tool-started', callId: 'c1', idempotencyKey: 'k' }],
  ['b', { type: 'tool-result', callId: 'c1', outcome: 'succeeded', content: text('paid') }],
  ['b', checkpoint('ToolResultsCommitted')],
  ['b', { type: 'agent-output', item: { type: 'assistant', text: 'Done.' } }],
  ['b', reply(2, 20, 5)],
  ['b', { type: 'run-stop', reason: 'completed' }],
  ['b', checkpoint('RunFinished')],
  ['c', { type: 'run-started' }],
  ['c', { type: 'user-message', messageId: 'm2', kind: 'direct', content: text('again') }],
  ['c', checkpoint('UserMessage')],
  ['c', { type: 'run-stop', reason: 'error' }],
];
const entries = LOG.map(
  ([runId, body], seq) => ({ seq, at: seq * 1_000, conversationId: 'x', runId, ...body }) as LogEntry,
);
const facts = foldLog(entries);
const inWords = (row: SequenceRow): string =>
  row.kind === 'message' ? `${row.at} ${row.from} > ${row.to}: ${row.words} (${row.look})` : `${row.at} ${row.words}`;

const FIRST = [
  '1 you > runtime: pay it (plain)',
  '2 round 1',
  '2 runtime > model: messages and tools (plain)',
  '3 model > runtime: pay rent (answer)',
  '5 runtime > you: pay asks: may it? (plain)',
  '9 4.0 s',
  '9 you > runtime: approve pay (plain)',
  '11 runtime > tools: pay rent (plain)',
  '12 tools > runtime: pay succeeded (answer)',
  '13 round 2',
  '13 runtime > model: messages and tools (plain)',
  '14 model > runtime: Done. (answer)',
  '16 runtime > you: completed (answer)',
];
const SECOND = [
  '19 you > runtime: again (plain)',
  // Its model was not called: the stop follows the checkpoint.
  '21 runtime > you: error (failed)',
];

describe('the sequence of a request', () => {
  it.each(entries.map((_, upTo) => upTo))(
    'up to entry %i has the messages up to there, of this request only',
    (upTo) => {
      const until = (rows: readonly string[]): string[] => rows.filter((row) => Number.parseInt(row, 10) <= upTo);
      expect(sequenceOf(entries, facts, 1, upTo).map(inWords)).toEqual(until(FIRST));
      expect(sequenceOf(entries, facts, 2, upTo).map(inWords)).toEqual(until(SECOND));
      expect(sequenceOf(entries, facts, 3, upTo)).toEqual([]);
    },
  );

  it.each([
    ['succeeded', 'answer'],
    ['failed', 'failed'],
    ['cancelled', 'cancelled'],
    ['unknown', 'cancelled'],
  ])('a result that is %s looks like %s', (outcome, look) => {
    const changed = entries.map((entry) => (entry.type === 'tool-result' ? { ...entry, outcome } : entry) as LogEntry);
    const row = sequenceOf(changed, foldLog(changed), 1, 99).find(({ at }) => at === 12);
    expect(row && inWords(row)).toBe(`12 tools > runtime: pay ${outcome} (${look})`);
  });

  it.each([
    ['completed', 'answer'],
    ['interrupted', 'failed'],
    ['error', 'failed'],
  ])('a stop for the reason %s looks like %s', (reason, look) => {
    const changed = entries.map((entry) => (entry.type === 'run-stop' ? { ...entry, reason } : entry) as LogEntry);
    const last = sequenceOf(changed, foldLog(changed), 2, 99).at(-1);
    expect(last && inWords(last)).toBe(`21 runtime > you: ${reason} (${look})`);
  });
});

describe('the facts of a log', () => {
  it('sum up tokens and the time of work at each entry, without the time between runs', () => {
    const worked = entries.map((_, at) => (at <= 8 ? at : at <= 9 ? 8 : at <= 17 ? at - 2 : at - 3) * 1_000);
    expect(facts.sums.map((sum) => sum.worked)).toEqual(worked);
    const tokens = (at: number): number[] => (at < 4 ? [0, 0] : at < 15 ? [10, 3] : [30, 8]);
    expect(facts.sums.map(({ input, output }) => [input, output])).toEqual(entries.map((_, at) => tokens(at)));
  });

  it('have the run of each entry, none for what comes between runs', () => {
    expect(facts.runAt).toEqual(entries.map((_, at) => (at === 9 ? -1 : at < 9 ? 0 : at < 18 ? 1 : 2)));
    expect(facts.runs.map(({ number, from, to, isResumed, words }) => [number, from, to, isResumed, words])).toEqual([
      [1, 0, 8, false, 'pay it'],
      [1, 10, 17, true, 'resumed'],
      [2, 18, 21, false, 'again'],
    ]);
    expect(facts.runs.map(({ stop }) => [stop?.at, stop?.state, stop?.cause])).toEqual([
      [7, 'waiting', 'c1'],
      [16, 'completed', ''],
      [21, 'failed', ''],
    ]);
  });
});
