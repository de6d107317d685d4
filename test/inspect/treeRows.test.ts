/** The rows of the inspector's tree: runs around the cursor, and below each run its model, its round, its calls and their sub-agents. */
import { describe, expect, it } from 'vitest';
import { createMachine } from 'xstate';
import { foldLog } from '../../inspector/model/logFacts.ts';
import { type ActorView, NOTHING_OBSERVED, ObservedBatch } from '../../inspector/model/observedActors.ts';
import { cyclesAt } from '../../inspector/model/stepRows.ts';
import { actorRows, RUNS_BEFORE, runRows, siblingPlaces, type TreeRow } from '../../inspector/model/treeRows.ts';
import type { LogEntry, RuntimeEntry, WireEvent } from '../../machines/vocabulary.ts';
import { chartOf } from '../../src/inspect/chart.ts';
import { cost } from '../../src/words/formats.ts';

type Body = (WireEvent | RuntimeEntry) & { at?: number; runId?: string };

/** One entry each second, unless it has a time of its own. */
const logOf = (bodies: readonly Body[]): LogEntry[] =>
  bodies.map((body, seq) => ({ seq, at: seq * 1_000, conversationId: 'c', runId: null, ...body }) as LogEntry);
const usage = { inputTokens: 1, outputTokens: 1, cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };

function runOf(runId: string, words: string, ...inside: Body[]): Body[] {
  const content = [{ type: 'text' as const, text: words }];
  const bodies: Body[] = [
    { type: 'run-started' },
    { type: 'user-message', messageId: runId, kind: 'direct', content },
    { type: 'checkpoint', boundary: 'UserMessage' },
    ...inside,
  ];
  return bodies.map((body) => ({ ...body, runId }) as Body);
}
const stopOf = (runId: string, reason: 'completed' | 'interrupted' | 'error' = 'completed'): Body[] => [
  { type: 'run-stop', runId, reason } as Body,
  { type: 'checkpoint', boundary: 'RunFinished', runId } as Body,
];
const called = (callId: string, args: object = { path: `${callId}.ts` }): Body => ({
  type: 'agent-output',
  item: { type: 'tool-call', callId, name: 'read', args: args as never },
});
const started = (callId: string): Body => ({ type: 'tool-started', callId, idempotencyKey: callId });
const resultOf = (callId: string, outcome: 'succeeded' | 'failed' | 'cancelled' | 'unknown'): Body => ({
  ...{ type: 'tool-result', callId, outcome, content: [] },
});
const replied = (turn: number): Body => ({
  ...{ type: 'model-reply', turn, model: 'm', finish: 'tool-calls', usage, costUsd: 0 },
});

interface Place {
  index?: number;
  now?: number;
  isOpen?: (key: string, byDefault: boolean) => boolean;
  isAsking?: boolean;
  runsBefore?: number;
}

function rowsAt(bodies: readonly Body[], { index, now, isOpen = (_, byDefault) => byDefault, ...more }: Place = {}) {
  const entries = logOf(bodies);
  const at = index ?? entries.length - 1;
  const moment = { entries, facts: foldLog(entries), index: at, now: now ?? entries[at]?.at ?? 0 };
  return runRows(moment, isOpen, more.isAsking ?? false, more.runsBefore);
}
const keysOf = (rows: readonly TreeRow[]): string[] => rows.map(({ key }) => key);
const manyRuns = (count: number): Body[] =>
  Array.from({ length: count }, (_, at) => [...runOf(`r${at}`, `run ${at}`), ...stopOf(`r${at}`)]).flat();
/** The entries of each run of `manyRuns`. */
const ENTRIES = 5;

describe('the runs of a conversation', () => {
  it('are the newest first, with their request on one line and their number', () => {
    const rows = rowsAt([...runOf('a', 'first\n  words'), ...stopOf('a'), ...runOf('b', 'x'.repeat(61))]);
    expect(rows.map(({ key, depth, machine, name }) => [key, depth, machine, name])).toEqual([
      ['run 1', 1, 'RUN 2', `${'x'.repeat(60)}…`],
      ['run 0', 1, 'RUN 1', 'first words'],
    ]);
  });

  it.each([
    [40, 0],
    [41, 1],
    [42, 2],
    [1_041, 1_001],
  ])('that have begun have rows, at most the last 40: of %i there are %i more to load', (count, more) => {
    const rows = rowsAt(manyRuns(count));
    const shown = Math.min(count, RUNS_BEFORE);
    expect(keysOf(rows).slice(0, shown)).toEqual(Array.from({ length: shown }, (_, at) => `run ${count - 1 - at}`));
    const rest = rows.slice(shown).map(({ key, depth, name, hasChildren }) => [key, depth, name, hasChildren]);
    const words = `${more.toLocaleString('en-US')} earlier run${more === 1 ? '' : 's'} · load more`;
    expect(rest).toEqual(more === 0 ? [] : [['earlier', 1, words, false]]);
  });

  it('are loaded in steps, and none is left to load after the last step', () => {
    const log = manyRuns(90);
    expect(rowsAt(log, { runsBefore: 89 }).at(-1)?.name).toBe('1 earlier run · load more');
    for (const runsBefore of [90, 91, 130]) expect(rowsAt(log, { runsBefore }).at(-1)?.key).toBe('run 0');
  });

  it.each([0, 1, 50, 99])('after the cursor are later and idle: 20 of those that follow run %i', (run) => {
    const rows = rowsAt(manyRuns(100), { index: run * ENTRIES + 1 });
    const later = rows.filter(({ isLater, key }) => isLater && key !== 'earlier');
    expect(keysOf(later)).toEqual(
      Array.from({ length: Math.min(20, 99 - run) }, (_, at) => `run ${Math.min(99, run + 20) - at}`),
    );
    expect(later.every(({ mark, hasChildren }) => mark === 'idle' && !hasChildren)).toBe(true);
    expect(rows[later.length]).toMatchObject({ key: `run ${run}`, mark: 'running', isLater: false });
  });

  it.each([
    ['completed', 'done'],
    ['interrupted', 'cancelled'],
    ['error', 'failed'],
  ] as const)('that ended as %s have the mark %s from their stop on', (reason, mark) => {
    const log = [...runOf('a', 'x'), ...stopOf('a', reason)];
    const marks = log.map((_, index) => rowsAt(log, { index })[0]?.mark);
    expect(marks).toEqual(['running', 'running', 'running', mark, mark]);
  });

  it('are open by default only where the cursor is, and shut ones show nothing below', () => {
    const log = ['a', 'b'].flatMap((id) => [...runOf(id, id, called(`of ${id}`), started(`of ${id}`)), ...stopOf(id)]);
    const asked: [string, boolean][] = [];
    const isOpen = (key: string, byDefault: boolean): boolean => {
      asked.push([key, byDefault]);
      return byDefault;
    };
    expect(keysOf(rowsAt(log, { isOpen }))).toEqual(['run 1', 'round 1', 'call of b', 'run 0']);
    expect(asked.filter(([key]) => key.startsWith('run'))).toEqual([
      ['run 1', true],
      ['run 0', false],
    ]);
    expect(keysOf(rowsAt(log, { isOpen: (key) => key === 'run 0' }))).toEqual(['run 1', 'run 0', 'round 0']);
    const all = rowsAt(log, { isOpen: () => false });
    expect(all.map(({ isOpen: open, hasChildren }) => [open, hasChildren])).toEqual(Array(2).fill([false, true]));
  });
});

describe('below a run', () => {
  it('the model is called with the number of its turn, while the run is active and the model is asked', () => {
    const log = runOf('a', 'x', replied(1), called('c1'), started('c1'), resultOf('c1', 'succeeded'), replied(2));
    const facts = log.map((_, index) =>
      rowsAt(log, { index, isAsking: true })
        .filter(({ machine }) => machine === 'LLM_CALL')
        .map(({ key, depth, mark, fact }) => [key, depth, mark, fact].join(' ')),
    );
    const turn = (number: number): string[] => [`model 0 2 running turn ${number}`];
    expect(facts).toEqual([turn(1), turn(1), turn(1), turn(2), turn(2), turn(2), turn(2), turn(3)]);
    const isModel = ({ machine }: TreeRow): boolean => machine === 'LLM_CALL';
    expect(rowsAt(log).some(isModel)).toBe(false);
    expect(rowsAt([...log, ...stopOf('a')], { isAsking: true }).some(isModel)).toBe(false);
  });

  it('the round counts the calls so far, and its calls follow in their order', () => {
    const log = runOf('a', 'x', called('c1'), called('c2'), called('c3'));
    const rounds = log.map((_, index) =>
      rowsAt(log, { index })
        .slice(1)
        .map(({ key, depth, fact }) => [key, depth, fact].join(' ')),
    );
    const call = (number: number): string => `call c${number} 3 ${number === 1 ? '' : `c${number}.ts`}`;
    expect(rounds[2]).toEqual([]);
    expect(rounds[3]).toEqual(['round 0 2 1 call', call(1)]);
    expect(rounds[5]).toEqual(['round 0 2 3 calls', 'call c1 3 c1.ts', call(2), call(3)]);
    const shut = rowsAt(log, { isOpen: (key, byDefault) => byDefault && key !== 'round 0' });
    expect(keysOf(shut)).toEqual(['run 0', 'round 0']);
  });

  it.each([
    ['succeeded', 'done'],
    ['failed', 'failed'],
    ['cancelled', 'cancelled'],
    ['unknown', 'cancelled'],
  ] as const)('a call that ended as %s has the mark %s, and its time if it is alone', (outcome, mark) => {
    const log = runOf('a', 'x', called('c1'), started('c1'), resultOf('c1', outcome));
    const marks = [3, 4, 5].map((index) => rowsAt(log, { index, now: index * 1_000 + 500 }).at(-1));
    expect(marks.map((row) => [row?.mark, row?.fact])).toEqual([
      ['queued', ''],
      ['running', '500 ms'],
      [mark, '1.0 s'],
    ]);
  });

  it('of several calls those that run or wait have their time, the others their argument', () => {
    const question: Body = { type: 'tool-suspended', callId: 'c2', suspension: 1, reason: 'may it?' };
    const log = runOf('a', 'x', called('c1'), called('c2'), called('c3'), called('c4', { path: 'y'.repeat(19) }));
    const more: Body[] = [started('c1'), question, started('c3'), resultOf('c3', 'failed')];
    const rows = rowsAt([...log, ...more.map((body) => ({ ...body, runId: 'a' }) as Body)], { now: 10_500 });
    expect(rows.slice(1).map(({ mark, name, fact }) => [mark, name, fact])).toEqual([
      ['running', '', '4 calls'],
      ['running', 'read', '3.5 s'],
      ['waiting', 'read', '2.5 s'],
      ['failed', 'read', 'c3.ts'],
      ['queued', 'read', `${'y'.repeat(18)}…`],
    ]);
  });

  it('a call that was interrupted with its run no longer runs', () => {
    const log = [...runOf('a', 'x', called('c1'), started('c1')), ...stopOf('a', 'interrupted')];
    const markOfRound = (index: number) => rowsAt(log, { index }).find(({ key }) => key === 'round 0')?.mark;
    expect([markOfRound(4), markOfRound(5)]).toEqual(['running', 'cancelled']);
  });

  it('a call has the sub-agents that have started, each with its task, until its end or that of the call', () => {
    const tasks = [
      { id: 'one', task: 'look\nhere' },
      { id: 'two', task: 'z'.repeat(41) },
    ];
    const child = (id: string, phase: 'started' | 'ended'): Body =>
      ({ type: 'sub-agent', callId: 'c1', child: id, phase, runId: 'a' }) as never;
    const log = runOf('a', 'x', called('c1', { tasks }), started('c1'));
    log.push(child('k1', 'started'), child('k2', 'started'), child('k2', 'ended'));
    log.push({ ...resultOf('c1', 'succeeded'), runId: 'a' } as Body);
    const shown = (index: number) =>
      rowsAt(log, { index }).flatMap(({ child: id, depth, mark, name, icon }) =>
        id === undefined ? [] : [[id, depth, mark, name, icon].join(' ')],
      );
    const first = 'k1 4 running one look here branch';
    const second = (mark: string): string => `k2 4 ${mark} two ${'z'.repeat(40)}… branch`;
    expect([4, 5, 6, 7].map(shown)).toEqual([[], [first], [first, second('running')], [first, second('done')]]);
    expect(shown(8)).toEqual(['k1 4 done one look here branch', second('done')]);
  });

  it('a call that waited belongs to the run that asked for it, and to the resumed one from its start on', () => {
    const question: Body = {
      type: 'tool-suspended',
      callId: 'c1',
      suspension: 1,
      reason: 'may it?',
      runId: 'a',
    } as never;
    const waiting: Body = { type: 'run-suspended', waiting: ['c1'], runId: 'a' } as never;
    const resumed: Body = { type: 'run-resumed', of: 'a', runId: 'b' } as never;
    const log = [
      ...runOf('a', 'x', called('c1')),
      ...[question, waiting, { type: 'checkpoint', boundary: 'RunFinished', runId: 'a' } as Body],
      ...[resumed, { ...started('c1'), runId: 'b' } as Body],
    ];
    const isOpen = (): boolean => true;
    expect(keysOf(rowsAt(log, { index: 7, isOpen }))).toEqual(['run 1', 'run 0', 'round 0', 'call c1']);
    expect(keysOf(rowsAt(log, { isOpen }))).toEqual(['run 1', 'round 1', 'call c1', 'run 0', 'round 0', 'call c1']);
    expect(rowsAt(log, { index: 5 }).find(({ isLater }) => !isLater)).toMatchObject({ key: 'run 0', mark: 'waiting' });
    expect(rowsAt(log)[0]).toMatchObject({ machine: 'RUN 1', name: 'resumed' });
  });
});

describe('the cost of a conversation', () => {
  it.each([
    ['known prices are added up', [0.5, 0, 0.25], [0.5, 0.5, 0.75], ['$0.5000', '$0', '$0.2500']],
    [
      'an unknown price is unknown, and so is the sum from there on',
      [0.5, null, 0.25],
      [0.5, null, null],
      ['$0.5000', 'cost unknown', '$0.2500'],
    ],
  ] as const)('%s', (_, prices, sums, words) => {
    const rounds = prices.flatMap((costUsd, at): Body[] => [
      { type: 'agent-output', item: { type: 'assistant', text: `${at}` } },
      { ...(replied(at + 1) as Extract<Body, { type: 'model-reply' }>), costUsd },
    ]);
    const entries = logOf([...runOf('a', 'x', ...rounds), ...stopOf('a')]);
    const facts = foldLog(entries);
    expect([4, 6, 8].map((at) => facts.sums[at]?.cost)).toEqual(sums);
    expect(facts.sums.at(-1)?.input).toBe(3);
    const [cycle] = cyclesAt({ entries, facts, index: entries.length - 1, now: 0 });
    expect(cycle?.rows.flatMap((row) => (row.kind === 'round' ? [cost(row.cost)] : []))).toEqual(words);
  });
});

describe('the actors of an app', () => {
  const actor = (id: string, more: Partial<ActorView> = {}): ActorView => ({
    ...{ id, name: id, isLate: false, status: 'active', leaves: [], hasMoved: false, path: [] },
    ...more,
  });
  const isOpen = (_: string, byDefault: boolean): boolean => byDefault;

  it('are below their parents, and at the top if those are unknown', () => {
    const actors = [
      actor('a'),
      actor('c', { parent: 'b' }),
      actor('b', { parent: 'a' }),
      actor('d', { parent: 'gone' }),
    ];
    const rows = actorRows(actors, isOpen, () => undefined);
    expect(rows.map(({ key, depth, hasChildren }) => [key, depth, hasChildren])).toEqual([
      ['actor a', 1, true],
      ['actor b', 2, true],
      ['actor c', 3, false],
      ['actor d', 1, false],
    ]);
    expect(
      actorRows(
        actors,
        (key) => key !== 'actor a',
        () => undefined,
      ).map(({ key }) => key),
    ).toEqual(['actor a', 'actor d']);
  });

  it('have the names of their states, whatever their ids are', () => {
    const drawn = chartOf(createMachine({ id: 'm', initial: 'v1.2', states: { 'v1.2': { id: 'some.where.else' } } }));
    const one = actor('a', { chart: 'm#0', leaves: ['some.where.else'] });
    expect(actorRows([one], isOpen, () => drawn)).toMatchObject([{ fact: 'v1.2', machine: 'm' }]);
  });

  it('are each looked at a few times, however many there are', () => {
    let looks = 0;
    const actors = Array.from({ length: 2000 }, (_, at) => {
      const one = actor(`a${at}`);
      return Object.defineProperty({ ...one }, 'parent', {
        get() {
          looks += 1;
          return at === 0 ? undefined : `a${at % 2 ? 0 : at - 1}`;
        },
      });
    });
    expect(actorRows(actors, isOpen, () => undefined)).toHaveLength(2000);
    expect(looks).toBeLessThan(20_000);
  });
});

describe('the actors that a page keeps', () => {
  it('are all that run, and the latest that have ended', () => {
    let observed = NOTHING_OBSERVED;
    for (let batch = 0; batch < 20; batch++) {
      const next = new ObservedBatch(observed);
      for (let at = 0; at < 500; at++) {
        const id = `a${batch * 500 + at}`;
        next.applyFact({ n: 0, at: 0, type: 'actor', actor: id, conversation: 'app', name: id }, new Map(), -1);
        if (at > 0) next.applyFact({ n: 0, at: 0, type: 'stopped', actor: id, status: 'done' }, new Map(), -1);
      }
      observed = next.result();
    }
    const kept = [...observed.actors.values()];
    expect(kept.filter(({ status }) => status === 'active')).toHaveLength(20);
    expect(kept.length).toBeLessThan(5000);
    expect(kept.at(-1)?.id).toBe('a9999');
  });
});

describe('the places of rows', () => {
  it('are counted among the rows below the same parent', () => {
    const placesAt = (...depths: number[]) =>
      siblingPlaces(depths.map((depth) => ({ depth }) as TreeRow)).map(({ place, of }) => `${place}/${of}`);
    expect(placesAt()).toEqual([]);
    expect(placesAt(1, 1, 1)).toEqual(['1/3', '2/3', '3/3']);
    expect(placesAt(1, 2, 3, 3, 2, 3, 1, 2)).toEqual(['1/2', '1/2', '1/2', '2/2', '2/2', '1/1', '2/2', '1/1']);
  });
});
