/** The records of an inspector, and their way into a page of the inspector. */
import { describe, expect, it } from 'vitest';
import { createActor, createMachine } from 'xstate';
import {
  Arrivals,
  type Fact,
  type GrowingConversation,
  NOTHING_OBSERVED,
  ObservedBatch,
} from '../../inspector/model/observedActors.ts';
import type { LogEntry } from '../../machines/vocabulary.ts';
import { RunchartError } from '../../src/index.ts';
import { Actors, ChartCatalog } from '../../src/inspect/actors.ts';
import type { ChartState } from '../../src/inspect/chart.ts';
import { stateTree } from '../../src/inspect/drawing/levels.ts';
import { CONTEXT, excerpt } from '../../src/inspect/excerpt.ts';
import { Observed } from '../../src/inspect/observed.ts';
import { RecordLog, recordText } from '../../src/inspect/recordLog.ts';
import { FRAME_MAX, type Recorded } from '../../src/inspect/wire.ts';
import { redactor } from '../../src/log/redact.ts';
import { SECRET } from './approvalTool.ts';

describe('a chart that is too large for a frame', () => {
  it('is sent as one state with that reason', () => {
    const stateOf = (index: number): ChartState => ({
      ...{ id: `m.s${index}`, key: `s${index}`, type: 'atomic', states: [] },
      transitions: [{ event: 'E'.repeat(300), index: 0, targets: ['m.s0'] }],
    });
    const states = Array.from({ length: 1500 }, (_, index) => stateOf(index));
    const root = { id: 'm', key: 'm', type: 'compound', initial: 's0', states, transitions: [] } as const;
    const text = recordText({ n: 0, at: 0, type: 'chart', chart: 'm#0', drawn: { name: 'm', root } });
    const record = JSON.parse(text) as Extract<Recorded, { type: 'chart' }>;
    expect(text.length).toBeLessThan(FRAME_MAX / 2);
    expect(record).toMatchObject({ n: 0, chart: 'm#0', drawn: { name: 'm', root: { id: 'm', states: [] } } });
    expect(record.drawn.root.description).toBe('This chart is too large to be drawn.');
    expect([...stateTree(record.drawn).states.keys()]).toEqual(['m']);
  });
});

describe('records of an inspector', () => {
  it('they are neither read nor copied before a request', () => {
    let reads = 0;
    const event = {
      type: 'told',
      get payload() {
        reads += 1;
        return { password: SECRET, text: 'kept' };
      },
    };
    const redacted: object[] = [];
    const redact = (value: object): object => {
      redacted.push(value);
      return value;
    };
    const records = new RecordLog(() => 0, { moves: 10, events: 2, rest: 10 });
    records.event('a0', undefined, event, redact);
    expect([...records.since(0)]).toEqual([
      { n: 0, at: 0, type: 'event', actor: 'a0', event: { type: 'told' }, isPart: true },
    ]);
    expect([reads, redacted]).toEqual([0, []]);
    const whole = records.eventOf(0);
    expect(whole).toEqual({ type: 'told', payload: { password: '[redacted]', text: 'kept' } });
    expect([reads, redacted]).toEqual([1, [event]]);
    records.event('a0', undefined, { type: 'later' }, redact);
    records.event('a0', undefined, { type: 'latest' }, redact);
    expect([0, 1, 2].map((n) => records.eventOf(n))).toEqual([null, { type: 'later' }, { type: 'latest' }]);
    expect([...records.since(0)].map((record) => record.type === 'event' && record.event)).toEqual([
      { type: 'told' },
      { type: 'later' },
      { type: 'latest' },
    ]);
    for (let index = 0; index < 10; index++) records.settled('a0', 'tick', `${index}`, 'active');
    expect([records.eventOf(0), records.eventOf(1), records.eventOf(99)]).toEqual([null, null, null]);
  });

  it('in a flood only the first events of each tenth of a second are kept complete', () => {
    let at = 1000;
    const records = new RecordLog(() => at, { moves: 1000, events: 500, rest: 10 });
    const flood = (): void => {
      for (let index = 0; index < 150; index++) records.event('a0', undefined, { type: 'told' }, (value) => value);
    };
    const whole = (): number => [...records.since(0)].filter(({ n }) => records.eventOf(n) !== null).length;
    flood();
    expect(whole()).toBe(100);
    at += 99;
    flood();
    expect(whole()).toBe(100);
    at += 1;
    flood();
    expect(whole()).toBe(200);
    at = 0;
    flood();
    expect(whole()).toBe(300);
  });

  it('only the requested records are created, in their order, whichever list they are kept in', () => {
    const records = new RecordLog(() => 0, { moves: 10, events: 2, rest: 10 });
    records.add({ type: 'conversation', conversation: 'c', of: 'runchart' });
    for (let index = 0; index < 4; index++) {
      records.settled('a0', 'tick', `${index}`, 'active');
      records.add({ type: 'status', conversation: 'c', status: 'idle' });
    }
    expect([...records.since(0)].map(({ n }) => n)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
    expect(records.countSince(4)).toBe(5);
    const asked: number[] = [];
    const wanted = [...records.since(2, (n) => asked.push(n) < 2)].map(({ n }) => n);
    expect(wanted).toEqual([2, 3, 4, 6, 8]);
    expect(asked).toEqual([3, 5, 7]);
    for (const record of records.since(3)) {
      expect(record.n).toBe(3);
      break;
    }
  });
});

/** A list that counts the reads of its places. */
function counted<Item>(items: readonly Item[]): { list: readonly Item[]; reads(): number } {
  let reads = 0;
  const list = new Proxy(items, {
    get(target, key, receiver) {
      if (typeof key === 'string' && /^\d+$/.test(key)) reads += 1;
      return Reflect.get(target, key, receiver);
    },
  });
  return { list, reads: () => reads };
}

describe('records that arrive at a page', () => {
  const entryOf = (seq: number, type = 'checkpoint'): LogEntry => ({ seq, at: 0, type }) as unknown as LogEntry;
  const move = (n: number, step: number): Fact => ({
    ...{ n, at: n, type: 'transition', actor: 'a', step, event: 'go', value: 'on' },
    taken: [{ source: 'light.on', event: 'go', index: 0, targets: ['light.on'] }],
  });

  it('all that arrive together are added to a long log by one copy', () => {
    const before = counted(Array.from({ length: 10_000 }, (_, seq) => entryOf(seq)));
    const arrivals = new Arrivals<GrowingConversation>(() => ({ entries: before.list }));
    for (let seq = 9000; seq < 11_000; seq++) arrivals.entry('c', entryOf(seq));
    const { entries } = arrivals.result().get('c') ?? { entries: [] };
    expect(entries.map(({ seq }) => seq)).toEqual(Array.from({ length: 11_000 }, (_, seq) => seq));
    expect(before.reads()).toBeLessThan(13_000);
  });

  it('they are added to the path of an actor by one copy, microsteps of one event as one step', () => {
    const observing = new ObservedBatch(NOTHING_OBSERVED);
    observing.applyFact({ n: 0, at: 0, type: 'actor', actor: 'a', conversation: 'c', name: 'a' }, new Map(), 0);
    for (let n = 1; n <= 3000; n++) observing.applyFact(move(n, 0), new Map(), n);
    const seen = observing.result();
    const actor = seen.actors.get('a');
    const path = counted(actor?.path ?? []);
    const next = new ObservedBatch({ ...seen, actors: new Map(actor && [['a', { ...actor, path: path.list }]]) });
    for (let n = 0; n < 500; n++) next.applyFact(move(n, n % 2), new Map(), n);
    const made = next.result().actors.get('a')?.path ?? [];
    expect(path.reads()).toBe(3000);
    expect(made).toHaveLength(3250);
    expect(made.at(-1)?.legs).toHaveLength(2);
    expect(seen.actors.get('a')?.path).toHaveLength(3000);
  });

  it('durable text ends its streamed text, and streamed text is joined', () => {
    const arrivals = new Arrivals<GrowingConversation>(() => ({
      entries: [],
      inFlight: { text: 'so ', reasoning: '' },
    }));
    arrivals.addStreamed('c', { text: 'far' });
    expect(arrivals.result().get('c')?.inFlight).toEqual({ text: 'so far', reasoning: '' });
    arrivals.entry('c', entryOf(0, 'agent-output'));
    expect(arrivals.result().get('c')).toEqual({ entries: [entryOf(0, 'agent-output')] });
  });
});

describe('an excerpt', () => {
  it('it copies the values of any app, within limits and without credentials', () => {
    const cyclic: { self?: object; list: unknown[] } = { list: [] };
    cyclic.self = cyclic;
    expect(excerpt(cyclic)).toEqual({ list: [], self: '[circular]' });
    const shared = { a: 1 };
    expect(excerpt({ one: shared, two: [shared, shared] })).toEqual({ one: { a: 1 }, two: [{ a: 1 }, { a: 1 }] });
    const odd = {
      get bad(): never {
        throw new Error('no');
      },
      run: () => 1,
      big: 10n,
      when: new Date(0),
      bytes: new Uint8Array(3),
      map: new Map([['a', 1]]),
      error: new TypeError('wrong'),
      none: undefined,
      endless: Number.POSITIVE_INFINITY,
    };
    expect(excerpt(odd)).toEqual({
      bad: '[cannot be read]',
      run: '[function run]',
      big: '10',
      when: '1970-01-01T00:00:00.000Z',
      bytes: '[3 bytes]',
      map: [['a', 1]],
      error: { name: 'TypeError', message: 'wrong' },
      endless: 'Infinity',
    });
    const keys = {
      Authorization: 'Bearer abcdefghijklmnop',
      apiKey: 'x',
      nextToken: 'y',
      tokens: 12,
      text: 'sk-abcdefghijklmnopqrst',
    };
    expect(excerpt(keys)).toEqual({
      Authorization: '[redacted]',
      apiKey: '[redacted]',
      nextToken: '[redacted]',
      tokens: 12,
      text: '[redacted]',
    });
    const key = ` sk-${'a'.repeat(40)} `;
    for (let before = 3_930; before < 4_000; before++)
      expect(excerpt('x'.repeat(before) + key + 'y'.repeat(100), CONTEXT)).not.toContain('sk-');
    const large = Array.from({ length: 300 }, () => ({ text: 'x'.repeat(10_000), more: Array(200).fill({ a: 1 }) }));
    expect(JSON.stringify(excerpt(large)).length).toBeLessThan(200_000);
    expect(JSON.stringify(excerpt(JSON.parse('{"__proto__":{"evil":1}}')))).toBe('{"__proto__":{"evil":1}}');
    expect({}).not.toHaveProperty('evil');
  });
});

describe('the error of an actor that stopped', () => {
  const KEY = 'sk-live-0123456789';
  const ENDS: Readonly<Record<string, object>> = {
    'a thrown error': { error: new Error(`refused ${KEY}`) },
    'an error with another class': { error: new RunchartError('store', `"${KEY}"`) },
    'the end of its output': { output: { end: { error: { code: 'model', message: `refused ${KEY}` } } } },
    'the code of that end': { output: { end: { error: { code: KEY, message: 'refused' } } } },
    'an escaped form': { error: new Error(JSON.stringify({ key: `${KEY}"` })) },
  };
  it.each(
    Object.entries(ENDS).flatMap(([name, end]) =>
      (['error', 'done'] as const).map((status) => ({ name, end, status })),
    ),
  )('has no secret of the agent, for the status $status and $name', ({ end, status }) => {
    const records = new RecordLog(() => 0);
    const charts = new ChartCatalog(records);
    const actors = new Actors({ records, charts, conversation: 'c', nextId: () => 'a0', redact: redactor([KEY]) });
    const actor = {};
    actors.made(actor, { name: 'run', parent: undefined, logic: undefined, late: false });
    actors.stopped(actor, status, end);
    const last = [...records.since(0)].at(-1);
    expect(last).toMatchObject({ type: 'stopped', status, error: expect.stringContaining('[redacted]') });
    expect(JSON.stringify([...records.since(0)])).not.toContain(KEY);
  });
});

describe('conversations that are over', () => {
  it('are forgotten with their last records, and those that are observed again are not', () => {
    const records = new RecordLog(() => 0, { moves: 10, events: 5, rest: 100 });
    const shown = (): string[] =>
      [...records.since(0)].flatMap((record) => (record.type === 'conversation' ? [record.conversation] : []));
    records.add({ type: 'conversation', conversation: 'open', of: 'runchart' });
    for (let at = 0; at < 1000; at++) {
      records.add({ type: 'conversation', conversation: `c${at}`, of: 'runchart' });
      records.add({ type: 'closed', conversation: `c${at}` });
      if (at === 0) records.add({ type: 'conversation', conversation: 'c0', of: 'runchart' });
    }
    const names = shown();
    expect(names.slice(0, 2)).toEqual(['open', 'c0']);
    expect(names.at(-1)).toBe('c999');
    expect(names.length).toBeLessThan(200);
    expect(records.dropped + records.countSince(0)).toBe(records.next);
  });

  it('are apps too, when the last of their actors has stopped', () => {
    const records = new RecordLog(() => 0);
    const observed = new Observed(records);
    const child = createMachine({ id: 'child' });
    const app = createMachine({ id: 'app', invoke: { src: child } });
    const actor = createActor(app, { inspect: observed.observe }).start();
    const closed = () => [...records.since(0)].filter(({ type }) => type === 'closed').length;
    expect(closed()).toBe(0);
    actor.stop();
    expect(closed()).toBe(1);
  });
});
