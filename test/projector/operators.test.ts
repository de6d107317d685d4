/** The operators, as marble tests. */
import { Subject } from 'rxjs';
import { TestScheduler } from 'rxjs/testing';
import { describe, expect, it } from 'vitest';
import type { LogEntry } from '../../machines/vocabulary.ts';
import type { Live } from '../../src/live.ts';
import { type LiveView, project, resolutionSteps, withLiveText } from '../../src/projector/index.ts';
import { A, C, reply, S, stamped, stepsOf, T, U } from './events.ts';

const marbles = (run: Parameters<TestScheduler['run']>[0]) =>
  new TestScheduler((actual, expected) => expect(actual).toEqual(expected)).run(run);

const log = stamped([U('q'), A('x'), C('c1'), T('c1'), S()]) as LogEntry[];
const [q, x, c, t, s] = log as [LogEntry, LogEntry, LogEntry, LogEntry, LogEntry];
const views = { q: project([q]), x: project([q, x]), c: project([q, x, c]), t: project([q, x, c, t]), s: project(log) };

const delta = (text: string, runId = 'r1'): Live => ({ type: 'text-delta', runId, text });
const thought = (text: string): Live => ({ type: 'reasoning-delta', runId: 'r1', text });
const reset = (runId = 'r1'): Live => ({ type: 'reset', runId });
const flying = (text: string, reasoning = '', view = views.q) => ({ ...view, inFlight: { text, reasoning } });
const landed = (entries: readonly unknown[]) => ({ ...project(entries), inFlight: null });

describe('resolutionSteps', () => {
  it('CYC-13 emits the view after each entry, at the moment of the entry', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const entries$ = cold('  -q-(xc)--t-s|', { q, x, c, t, s });
      expectObservable(entries$.pipe(resolutionSteps())).toBe('-q-(xc)--t-s|', views);
      expectSubscriptions(entries$.subscriptions).toBe('       ^-----------!');
    });
  });

  it('it passes an error after the views', () => {
    marbles(({ cold, expectObservable }) => {
      expectObservable(cold('-q-#', { q }, 'lost').pipe(resolutionSteps())).toBe('-v-#', { v: views.q }, 'lost');
    });
  });

  it('it shows an early entry as if the gap were closed', () => {
    marbles(({ cold, expectObservable }) => {
      const expected = { a: views.q, b: project([q, c]), c: views.c };
      expectObservable(cold('-q-c-x|', { q, x, c }).pipe(resolutionSteps())).toBe('-a-b-c|', expected);
    });
  });

  it('each subscription has its own projector', () => {
    marbles(({ cold, expectObservable }) => {
      const views$ = cold('-q-x|', { q, x }).pipe(resolutionSteps());
      expectObservable(views$).toBe('     -q-x|', views);
      expectObservable(views$, '--^').toBe('---q-x|', views);
    });
  });

  it('it accepts the options of the projector', () => {
    const [a, b] = stamped([U('q'), U('p')]) as unknown as [LogEntry, LogEntry];
    marbles(({ cold, expectObservable }) => {
      const steered = cold('-ab|', { a, b }).pipe(resolutionSteps({ whileActive: 'steer' }));
      expectObservable(steered).toBe('-ab|', { a: project([a]), b: project([a, b], { whileActive: 'steer' }) });
    });
  });
});

describe('withLiveText', () => {
  it('it joins the text in flight to the view, and a committed output clears it', () => {
    const values = { q, a: thought('hm'), b: delta('he'), c: delta('llo'), x };
    const expected = {
      q: landed([q]),
      a: flying('', 'hm'),
      b: flying('he', 'hm'),
      c: flying('hello', 'hm'),
      x: landed([q, x]),
    };
    marbles(({ cold, expectObservable }) => {
      expectObservable(cold('-q-a-b-c-x|', values).pipe(withLiveText())).toBe('-q-a-b-c-x|', expected);
    });
  });

  it.each([
    ['a reset', reset(), []],
    ['the record of an empty reply', reply(), [reply()]],
    ['a stop', S('interrupted'), [S('interrupted')]],
    ['a suspension', { type: 'run-suspended', waiting: [] }, [{ type: 'run-suspended', waiting: [] }]],
  ])('%s drops the streamed text', (_, end, committed) => {
    marbles(({ cold, expectObservable }) => {
      const signals$ = cold('-q-a-e-b|', { q, a: delta('old'), e: end as Live, b: delta('new') });
      const after = project([q, ...committed]);
      const expected = {
        q: landed([q]),
        a: flying('old'),
        e: { ...after, inFlight: null },
        b: flying('new', '', after),
      };
      expectObservable(signals$.pipe(withLiveText())).toBe('-q-a-e-b|', expected);
    });
  });

  it('the end of another run keeps the text, and text of another run starts a new one', () => {
    marbles(({ cold, expectObservable }) => {
      const signals$ = cold('-q-a-r-b|', { q, a: delta('one'), r: reset('r0'), b: delta('two', 'r2') });
      const expected = { q: landed([q]), a: flying('one'), b: flying('two') };
      expectObservable(signals$.pipe(withLiveText())).toBe('-q-a---b|', expected);
    });
  });

  it('an entry ends the text in flight, whatever fields of a later version it has', () => {
    marbles(({ cold, expectObservable }) => {
      const later = Object.assign({ path: ['c1'] }, x);
      const signals$ = cold('-q-a-x|', { q, a: delta('old'), x: later });
      const expected = { q: landed([q]), a: flying('old'), x: landed([q, x]) };
      expectObservable(signals$.pipe(withLiveText())).toBe('-q-a-x|', expected);
    });
  });

  it('live signals without a change emit nothing and are not diagnostics', () => {
    const values: Record<string, LogEntry | Live> = {
      q,
      i: { type: 'tool-input-delta', runId: 'r1', index: 0, text: '{' },
      p: { type: 'tool-progress', runId: 'r1', callId: 'c1', elapsedMs: 1, update: null },
      u: { type: 'status', status: 'active' },
      w: { type: 'state', state: {} },
      r: reset(),
      d: { ...delta('of a sub-agent'), path: ['c1'] },
      x,
    };
    marbles(({ cold, expectObservable }) => {
      const expected = { q: landed([q]), x: landed([q, x]) };
      expectObservable(cold('-qipuwrdx|', values).pipe(withLiveText())).toBe('-q------x|', expected);
    });
  });

  it('it keeps the timing of its source: several values at once, an error, a completion, and an unsubscribe', () => {
    const values = { q, a: delta('he'), b: delta('llo'), x };
    const expected = { q: landed([q]), a: flying('he'), b: flying('hello'), x: landed([q, x]) };
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const failed = cold('-(qa)-b-#', values, 'lost');
      expectObservable(failed.pipe(withLiveText())).toBe('-(qa)-b-#', expected, 'lost');
      const subscription = cold('-q-a-b-x-', values);
      expectObservable(subscription.pipe(withLiveText()), '^----!').toBe('-q-a-', expected);
      expectSubscriptions(subscription.subscriptions).toBe('^----!');
      expectObservable(cold<LogEntry>('|').pipe(withLiveText())).toBe('|');
    });
  });

  it('each subscription has its own text in flight', () => {
    const values = { q, a: delta('he'), b: delta('llo') };
    marbles(({ hot, expectObservable }) => {
      const views$ = hot('-q-a-b|', values).pipe(withLiveText());
      const late = { ...project([]), inFlight: { text: 'llo', reasoning: '' } };
      expectObservable(views$).toBe('-q-a-b|', { q: landed([q]), a: flying('he'), b: flying('hello') });
      expectObservable(views$, '----^').toBe('-----b|', { b: late });
    });
  });

  it('it accepts the options of the projector', () => {
    const [a, b] = stamped([U('q'), U('p')]) as unknown as [LogEntry, LogEntry];
    const steered = { ...project([a, b], { whileActive: 'steer' }), inFlight: null };
    marbles(({ cold, expectObservable }) => {
      const views$ = cold('-ab|', { a, b }).pipe(withLiveText({ whileActive: 'steer' }));
      expectObservable(views$).toBe('-ab|', { a: landed([a]), b: steered });
    });
  });

  it('it keeps the committed part: its lists are the same objects while text streams', () => {
    const signals$ = new Subject<LogEntry | Live>();
    const seen: LiveView[] = [];
    signals$.pipe(withLiveText()).subscribe((view) => seen.push(view));
    for (const signal of [q, x, delta('a'), delta('b')]) signals$.next(signal);
    expect(seen.map(({ inFlight }) => inFlight?.text ?? null)).toEqual([null, null, 'a', 'ab']);
    expect(seen[2]?.cycles).toBe(seen[1]?.cycles);
    expect(seen[3]?.cycles).toBe(seen[1]?.cycles);
    expect(seen.every((view) => Object.isFrozen(view))).toBe(true);
  });

  it('a value that is neither entry nor signal is a diagnostic', () => {
    const signals$ = new Subject<LogEntry | Live>();
    const seen: LiveView[] = [];
    signals$.pipe(withLiveText()).subscribe((view) => seen.push(view));
    const revoked = Proxy.revocable({}, {});
    revoked.revoke();
    for (const value of [q, null, Symbol('x'), revoked.proxy, { type: 'text-delta', text: 1 }])
      signals$.next(value as never);
    expect(seen.at(-1)?.diagnostics.map(({ code }) => code)).toEqual(['unknown', 'unknown', 'unreadable']);
    expect(stepsOf(seen.at(-1) ?? project([]))).toEqual(['non-steer q']);
  });

  it('the length of the text in flight is limited', () => {
    const signals$ = new Subject<LogEntry | Live>();
    let length = 0;
    signals$.pipe(withLiveText()).subscribe(({ inFlight }) => {
      length = inFlight?.text.length ?? 0;
    });
    const large = 'x'.repeat(1 << 22);
    for (let i = 0; i < 6; i++) signals$.next(delta(large));
    expect(length).toBe(1 << 24);
  });
});
