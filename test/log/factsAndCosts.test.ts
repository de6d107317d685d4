/**
 * The facts of every kind of entry, and the costs of a log against sums by hand. Invariant: the tables are written by hand, and
 * an entry kind without a row in them fails.
 */
import { describe, expect, it } from 'vitest';
import { emptyLogState, type LogEntry } from '../../machines/internal.ts';
import { sampleEntries } from '../../machines/log/entryKinds.ts';
import type { Usage } from '../../machines/vocabulary.ts';
import { costOf } from '../../src/index.ts';
import { type Logger, logFacts } from '../../src/log/factLog.ts';

interface LoggedFact {
  level: string;
  fact: { [field: string]: unknown };
}

/** The facts that a logger receives for these entries. */
function factsOf(entries: readonly LogEntry[], tools: { [callId: string]: string } = {}): LoggedFact[] {
  const facts: LoggedFact[] = [];
  const take = (level: string) => (fact: object) => void facts.push({ level, fact: fact as LoggedFact['fact'] });
  const logger: Logger = { debug: take('debug'), info: take('info'), warn: take('warn'), error: take('error') };
  const watchers: ((entry: LogEntry) => void)[] = [];
  const calls = new Map(Object.entries(tools).map(([callId, name]) => [callId, { name }]));
  const logState = { ...emptyLogState(), calls } as never;
  logFacts(logger, { log: { watch: (watcher) => void watchers.push(watcher) }, logState });
  for (const entry of entries) for (const watcher of watchers) watcher(entry);
  return facts;
}

/** The level and the fields of each kind with more than a name. The logger receives every other kind at `debug`. */
const TABLE: { [type: string]: readonly [level: string, fields: object] } = {
  'user-message': ['info', { messageId: 'm1', kind: 'direct', by: 'ann' }],
  'tool-result': ['warn', { callId: 'c1', tool: 'read', outcome: 'failed', code: 'denied' }],
  'run-stop': ['warn', { reason: 'interrupted', cause: 'cancelled' }],
  'run-started': ['info', {}],
  'run-resumed': ['info', { of: 'run-0' }],
  'run-suspended': ['info', { waiting: ['c1', 'c2'] }],
  'tool-started': ['debug', { callId: 'c1', tool: 'read' }],
  'tool-suspended': ['info', { callId: 'c1', tool: 'read', reason: 'approval' }],
  decision: ['info', { callId: 'c1', action: 'answer' }],
  'model-reply': ['info', { turn: 1, model: 'm', finish: 'tool-calls', costUsd: null }],
  'model-retry': ['warn', { turn: 1, attempt: 2, waitMs: 500, model: 'm', reason: '503' }],
  'context-warning': ['warn', { used: 80, limit: 100 }],
  diagnostic: ['warn', { code: 'd', detail: [0.1, -3, 1e21] }],
  notice: ['info', { code: 'n', text: 't' }],
};

describe('a fact', () => {
  it.each(sampleEntries('c').map((entry) => [entry.type, entry] as const))(
    'of the kind %s has its level and its fields',
    (type, entry) => {
      const [logged, ...more] = factsOf([entry], { c1: 'read' });
      expect(more).toEqual([]);
      const [level, fields] = TABLE[type] ?? ['debug', {}];
      const { seq, at, runId } = entry;
      const usage = entry.type === 'model-reply' ? { usage: entry.usage } : {};
      const place = { event: type, conversation: 'c', ...(runId !== null && { run: runId }), seq, at };
      expect(logged).toEqual({ level, fact: { ...place, ...fields, ...usage } });
    },
  );

  it('of a stop has the level of its reason, and an unknown one is an error', () => {
    const stop = (reason: string): LogEntry => ({ ...sampleEntries('c')[0], type: 'run-stop', reason }) as never;
    const levels = ['completed', 'interrupted', 'error', 'new'].map((reason) => factsOf([stop(reason)])[0]?.level);
    expect(levels).toEqual(['info', 'warn', 'error', 'error']);
  });

  it('of a result has the level of its outcome, and no tool where the call is unknown', () => {
    const result = (outcome: string): LogEntry =>
      ({ ...sampleEntries('c')[0], type: 'tool-result', callId: 'c9', outcome, content: [] }) as never;
    const results = ['succeeded', 'failed', 'cancelled', 'unknown'].flatMap((outcome) =>
      factsOf([result(outcome)], { c1: 'read' }),
    );
    expect(results.map(({ level }) => level)).toEqual(['info', 'warn', 'warn', 'warn']);
    for (const { fact } of results) expect(Object.keys(fact)).not.toContain('tool');
  });
});

const KEYS = ['inputTokens', 'outputTokens', 'cachedInputTokens', 'cacheWriteTokens', 'reasoningTokens'] as const;
const usageOf = (from: number): Usage => Object.fromEntries(KEYS.map((key, index) => [key, from + index])) as never;
/** The sum of several counts, field by field. */
const added = (...usages: readonly Usage[]): Usage =>
  Object.fromEntries(KEYS.map((key) => [key, usages.reduce((sum, usage) => sum + usage[key], 0)])) as never;

describe('the cost of a log', () => {
  const at = (runId: string | null, fields: object): LogEntry =>
    ({ seq: 0, at: 0, conversationId: 'c', runId, ...fields }) as unknown as LogEntry;
  const reply = (runId: string, model: string, turn: number, usage: Usage, costUsd: unknown): LogEntry =>
    at(runId, { type: 'model-reply', turn, model, finish: 'stop', usage, costUsd });
  const child = (runId: string, usage: Usage, costUsd: number | null, models?: unknown): LogEntry =>
    at(runId, {
      ...{ type: 'extension', name: 'runchart.sub-agent-usage' },
      value: { callId: 'x', conversationId: 'k', upTo: 3, usage, costUsd, ...(models !== undefined && { models }) },
    });
  const summary = (fields: object): LogEntry => at(null, { type: 'compaction', upToSeq: 0, summary: 's', ...fields });

  it('is the sum of each call in its run, its model and the total, with calls of sub-agents and summaries', () => {
    const [a, b, c, d, e, f] = [1, 10, 100, 1_000, 10_000, 100_000].map(usageOf) as [
      Usage,
      Usage,
      Usage,
      Usage,
      Usage,
      Usage,
    ];
    const found = costOf([
      at('one', { type: 'run-started' }),
      reply('one', 'm', 1, a, 0.5),
      reply('one', 'n', 2, b, 0.25),
      summary({ usage: c, costUsd: 2, model: 'n' }),
      summary({}),
      child('two', added(d, e), 12, [
        { model: 'm', calls: 3, usage: d, costUsd: 4 },
        { model: 'o', calls: 2, usage: e, costUsd: null },
      ]),
      child('two', f, 16),
      summary({ usage: a, costUsd: 32 }),
    ]);
    const cost = (calls: number, usage: Usage, costUsd: number | null, knownUsd: number, unpriced = 0) => ({
      ...{ calls, usage, costUsd, knownUsd, unpriced },
    });
    expect(found.total).toEqual(cost(10, added(a, b, c, d, e, f, a), null, 54.75, 2));
    expect(found.models).toEqual([
      { model: 'm', ...cost(4, added(a, d), 4.5, 4.5) },
      { model: 'n', ...cost(2, added(b, c), 2.25, 2.25) },
      { model: 'o', ...cost(2, e, null, 0, 2) },
      { model: 'sub-agents', ...cost(1, f, 16, 16) },
      { model: 'summaries', ...cost(1, a, 32, 32) },
    ]);
    expect(found.runs).toEqual([
      { runId: 'one', ...cost(2, added(a, b), 0.75, 0.75) },
      { runId: null, ...cost(2, added(c, a), 34, 34) },
      { runId: 'two', ...cost(6, added(d, e, f), null, 20, 2) },
    ]);
    expect(found.calls).toEqual([
      { runId: 'one', turn: 1, model: 'm', usage: a, costUsd: 0.5 },
      { runId: 'one', turn: 2, model: 'n', usage: b, costUsd: 0.25 },
      { runId: null, model: 'n', usage: c, costUsd: 2 },
      { runId: 'two', model: 'm', calls: 3, usage: d, costUsd: 4, subAgent: 'k' },
      { runId: 'two', model: 'o', calls: 2, usage: e, costUsd: null, subAgent: 'k' },
      { runId: 'two', model: 'sub-agents', usage: f, costUsd: 16 },
      { runId: null, model: 'summaries', usage: a, costUsd: 32 },
    ]);
  });

  it.each([undefined, null, -0.5, Number.NaN, Number.POSITIVE_INFINITY, '1'])(
    'counts a price of %s as unknown, never as 0',
    (price) => {
      const { total } = costOf([reply('r', 'm', 1, usageOf(1), price), reply('r', 'm', 2, usageOf(1), 0)]);
      expect(total).toMatchObject({ calls: 2, costUsd: null, knownUsd: 0, unpriced: 1 });
    },
  );

  it('of free calls, and of no call, is 0', () => {
    expect(costOf([reply('r', 'm', 1, usageOf(1), 0)]).total).toMatchObject({ calls: 1, costUsd: 0, unpriced: 0 });
    const { total, models, runs, calls } = costOf([]);
    expect([total.calls, total.costUsd, total.knownUsd, models, runs, calls]).toEqual([0, 0, 0, [], [], []]);
  });
});
