/** Properties of the projector for every list of events (docs/internals/model.md, Determinism). */
import fc from 'fast-check';
import { from, lastValueFrom, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { LogEntry } from '../../machines/vocabulary.ts';
import { type ConversationView, createProjector, project, resolutionSteps } from '../../src/projector/index.ts';
import { volume } from '../support/tier.ts';
import { anyEvent, events, log, nearlyOrdered, wild, wireEvent } from './arbitraries.ts';
import { callsOf, stepsOf } from './events.ts';

const NO_CYCLES = project([]);

function viewsAfterEach(entries: readonly unknown[], read: (view: ConversationView) => unknown): ConversationView[] {
  const projector = createProjector();
  return entries.map((entry) => {
    projector.push(entry);
    const view = projector.view();
    read(view);
    return view;
  });
}

const OF_CALLS = new Set(['result', 'state', 'ranArgs', 'decidedBy', 'rounds']);
/** A view without the parts that may follow a stop: the outcome of a call, and its consequences. */
const withoutResults = (view: ConversationView, cycle: number): unknown =>
  JSON.parse(JSON.stringify(view.cycles[cycle], (key, value) => (OF_CALLS.has(key) ? undefined : value)));

function expectFrozen(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  expect(Object.isFrozen(value)).toBe(true);
  for (const key of Object.keys(value)) expectFrozen((value as Record<string, unknown>)[key]);
}

describe('every list of events', () => {
  it('CYC-11 it gives the same view however it is split, and whenever the intermediate views are read', () => {
    fc.assert(
      fc.property(
        log,
        fc.array(fc.nat(), { maxLength: 12 }),
        fc.infiniteStream(fc.boolean()),
        (entries, swaps, reads) => {
          const shuffled = nearlyOrdered(entries, swaps);
          const views = viewsAfterEach(shuffled, (view) => (reads.next().value ? JSON.stringify(view) : view.state));
          const places = [...views.keys()];
          for (const i of reads.next().value ? places : places.reverse()) {
            expect(views[i]).toEqual(project(shuffled.slice(0, i + 1)));
          }
          expect(views.at(-1) ?? NO_CYCLES).toEqual(project(shuffled));
        },
      ),
      { numRuns: volume.events },
    );
  });

  it('H-102 it gives the view of the ordered list if it is out of order inside the window', () => {
    fc.assert(
      fc.property(log, fc.array(fc.nat(), { maxLength: 30 }), (entries, swaps) => {
        expect(project(nearlyOrdered(entries, swaps))).toEqual(project(entries));
      }),
    );
  });

  it('CYC-13 it gives the same view through all three entry points', async () => {
    await fc.assert(
      fc.asyncProperty(log, async (entries) => {
        const projector = createProjector();
        for (const entry of entries) projector.push(entry);
        const emitted = await lastValueFrom(from(entries as unknown as LogEntry[]).pipe(resolutionSteps(), toArray()));
        expect(projector.view()).toEqual(project(entries));
        expect(emitted).toHaveLength(entries.length);
        expect(emitted.at(-1) ?? NO_CYCLES).toEqual(project(entries));
      }),
    );
  });

  it('INV-9 it gives the same bytes every time', () => {
    fc.assert(
      fc.property(events, (list) => {
        expect(JSON.stringify(project(list))).toBe(JSON.stringify(project(structuredClone(list))));
      }),
    );
  });

  it('CYC-11 it is prefix consistent: cycles before the last never change, and the last one only grows at its end', () => {
    fc.assert(
      fc.property(events, (list) => {
        const whole = project(list);
        viewsAfterEach(list, (view) => {
          const last = view.cycles.length - 1;
          for (let i = 0; i < last; i++) expect(withoutResults(view, i)).toEqual(withoutResults(whole, i));
          const before = stepsOf(view, last);
          const after = stepsOf(whole, last);
          expect(after.slice(0, Math.max(0, before.length - 1))).toEqual(before.slice(0, -1));
        });
      }),
    );
  });

  it('INV-3 CYC-5 each cycle has one root and at most one stop, and only the last cycle can be open', () => {
    fc.assert(
      fc.property(events, (list) => {
        const view = project(list);
        for (const [i, cycle] of view.cycles.entries()) {
          expect(cycle.steps.filter(({ type }) => type === 'non-steer')).toEqual([cycle.steps[0]]);
          expect(cycle.stop === null).toBe(i === view.cycles.length - 1 && view.state === 'active');
        }
      }),
    );
  });

  it('INV-3 a stopped cycle keeps its stop until a resume, and no cycle gets a second one', () => {
    fc.assert(
      fc.property(fc.array(wireEvent, { maxLength: 80 }), (list) => {
        let closed: readonly unknown[] = [];
        viewsAfterEach(list, ({ cycles }) => {
          const stops = cycles.map(({ stop }) => stop).filter((stop) => stop !== null);
          expect(stops.slice(0, closed.length)).toEqual(closed);
          expect(stops.length - closed.length).toBeLessThanOrEqual(1);
          closed = stops;
        });
      }),
    );
  });

  it('INV-3 the number of closed cycles equals the number of stops without a diagnostic', () => {
    fc.assert(
      fc.property(fc.array(wireEvent, { maxLength: 80 }), (list) => {
        const view = project(list);
        const stops = list.filter(({ type }) => type === 'run-stop').length;
        const odd = view.diagnostics.filter(({ code }) => code === 'stop_while_idle').length;
        expect(view.cycles.filter(({ stop }) => stop !== null)).toHaveLength(stops - odd);
      }),
    );
  });

  it('CYC-7 CYC-8 a block has one text, adjacent groups have different kinds, and each call appears once', () => {
    fc.assert(
      fc.property(events, (list) => {
        const view = project(list);
        for (const { steps, rounds } of view.cycles) {
          const blocks = steps.filter((step) => step.type === 'ai-block');
          const texts = blocks.flatMap(({ text }) => (text === null ? [] : [{ kind: text.kind, text: text.text }]));
          expect(rounds.flatMap(({ output }) => output.texts)).toEqual(texts);
          for (const { text, groups } of blocks) {
            expect(text !== null || groups.length > 0).toBe(true);
            expect(groups.every(({ kind }, i) => kind !== groups[i - 1]?.kind)).toBe(true);
            expect(groups.every(({ calls }) => calls.length > 0)).toBe(true);
          }
        }
        const inRounds = view.cycles.flatMap(({ rounds }) => rounds.flatMap(({ output }) => output.calls));
        expect(new Set(inRounds)).toEqual(new Set(callsOf(view)));
        expect(inRounds).toHaveLength(callsOf(view).length);
      }),
    );
  });

  it('CYC-6 each result is input of one round at most, after the round of the call', () => {
    fc.assert(
      fc.property(events, (list) => {
        for (const { rounds } of project(list).cycles) {
          const fed = rounds.flatMap(({ input }) => input.results);
          expect(new Set(fed).size).toBe(fed.length);
          for (const [i, { input }] of rounds.entries()) {
            const earlier = rounds.slice(0, i).flatMap(({ output }) => output.calls);
            for (const call of input.results) expect(earlier).toContain(call);
          }
        }
      }),
    );
  });

  it('H-104 for arbitrary JSON each value that is not an event is one diagnostic and changes no cycle', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue(), { maxLength: 30 }), events, (values, list) => {
        const before = project(list);
        const view = project([...list, ...values]);
        expect({ ...view, diagnostics: [] }).toEqual({ ...before, diagnostics: [] });
        expect(view.diagnostics.slice(0, before.diagnostics.length)).toEqual(before.diagnostics);
        expect(view.diagnostics).toHaveLength(before.diagnostics.length + values.length);
      }),
      { numRuns: volume.events },
    );
  });

  it('any values give a frozen JSON view, and the intrinsics are unchanged', () => {
    const before = Object.getOwnPropertyNames(Object.prototype);
    fc.assert(
      fc.property(fc.array(fc.oneof(wild, anyEvent), { maxLength: 40 }), (values) => {
        const view = project(values);
        expectFrozen(view);
        expect(JSON.parse(JSON.stringify(view))).toEqual(view);
        expect(viewsAfterEach(values, () => 0).at(-1) ?? NO_CYCLES).toEqual(view);
      }),
      { numRuns: volume.events },
    );
    expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(before);
  });
});
