/** Entries out of order, repeated, missing, and of other conversations. */
import { describe, expect, it } from 'vitest';
import { createProjector, project } from '../../src/projector/index.ts';
import { A, C, codes, S, stamped, stepsOf, T, U } from './events.ts';

const log = stamped([U('q'), A('a'), C('c1'), T('c1'), A('b'), S(), U('p'), A('c'), S()]);
const many = (length: number, from = 0) => stamped([U('q'), ...Array.from({ length }, (_, i) => A(`${i}`))], 'r', from);
const swapped = <E>(list: readonly E[], i: number, j: number): E[] =>
  list.map((entry, k) => list[k === i ? j : k === j ? i : k] ?? entry);

describe('the order of entries', () => {
  it('H-101 a repeated entry changes nothing', () => {
    const once = project(log);
    expect(project(log.flatMap((entry) => [entry, entry]))).toEqual(once);
    expect(project([...log, ...log])).toEqual(once);
    const projector = createProjector();
    for (const entry of log) projector.push(entry);
    const before = projector.view();
    projector.push(log[3]);
    expect(projector.view()).toBe(before);
  });

  it('H-102 entries are reordered inside the window', () => {
    expect(project(swapped(log, 4, 5))).toEqual(project(log));
    expect(project([...log].reverse())).toEqual(project(log));
    const entries = many(63);
    expect(project([entries[0], ...entries.slice(1).reverse()])).toEqual(project(entries));
  });

  it('H-102 an early entry is shown as if its gap were closed, with a diagnostic while it waits', () => {
    const projector = createProjector();
    projector.push(log[0]);
    projector.push(log[2]);
    expect(stepsOf(projector.view())).toEqual(['non-steer q', 'no text [read c1]']);
    expect(projector.view().diagnostics).toEqual([{ code: 'gap', seq: 1, detail: { from: 1, to: 1 } }]);
    expect(projector.view()).toEqual(project([log[0], log[2]]));
    projector.push(log[1]);
    expect(projector.view()).toEqual(project(log.slice(0, 3)));
    expect(projector.view().diagnostics).toEqual([]);
  });

  it('H-102 after a full window the gap is no longer awaited, and its later entries are ignored', () => {
    const entries = many(200);
    const torn = entries.filter(({ seq }) => seq !== 5);
    const view = project(torn);
    expect(stepsOf(view)).toEqual(stepsOf(project(entries)).filter((step) => step !== 'assistant 4'));
    expect(view.diagnostics).toEqual([{ code: 'gap', seq: 5, detail: { from: 5, to: 5 } }]);
    const held = project([...torn.slice(0, 69), entries[5], ...torn.slice(69)]);
    expect(held).toEqual(project(entries));
    const late = project([...torn.slice(0, 70), entries[5], ...torn.slice(70)]);
    expect(late).toEqual(view);
  });

  it('the next view contains a filled gap, also in a cycle that was shown before', () => {
    const entries = stamped([U('a'), C('c1'), S(), U('b'), T('c1'), A('x')]);
    const projector = createProjector();
    for (const i of [0, 1, 2, 3, 5]) projector.push(entries[i]);
    expect(projector.view().cycles[0]).toEqual(project(entries.slice(0, 4)).cycles[0]);
    projector.push(entries[4]);
    expect(projector.view()).toEqual(project(entries));
  });

  it('a filled gap leaves the view, even if no shown entry filled it', () => {
    const notices = stamped([U('q'), { type: 'notice' }, { type: 'notice' }]);
    const projector = createProjector();
    projector.push(notices[0]);
    projector.push(notices[2]);
    expect(codes(projector.view())).toEqual(['gap']);
    projector.push(notices[1]);
    expect(projector.view()).toEqual(project(notices));
  });

  it('a list may start at any seq', () => {
    const from = many(100, 500);
    const whole = stepsOf(project(many(100)));
    expect([stepsOf(project(from)), codes(project(from))]).toEqual([whole, []]);
    expect(stepsOf(project(swapped(from, 0, 10)))).toEqual(whole);
    const short = project(from.slice(0, 3));
    expect([stepsOf(short), codes(short)]).toEqual([whole.slice(0, 3), []]);
    const torn = project([from[0], from[2]]);
    expect([stepsOf(torn), torn.diagnostics]).toEqual([
      ['non-steer q', 'assistant 1'],
      [{ code: 'gap', seq: 501, detail: { from: 501, to: 501 } }],
    ]);
  });

  it('a list whose entry 0 arrives late starts there', () => {
    expect(project([log[1], log[2], log[0], ...log.slice(3)])).toEqual(project(log));
  });

  it('entries without seq are taken in their order', () => {
    const bare = log.map(({ seq: _, ...entry }) => entry);
    expect(project(bare)).toEqual(project(log));
  });

  it.each([-1, 1.5, Number.NaN, '3', null, 2 ** 53])(
    'an invalid seq (%s) is a diagnostic, and the entry counts',
    (seq) => {
      const view = project([log[0], { ...log[1], seq }]);
      expect([stepsOf(view), codes(view)]).toEqual([['non-steer q', 'assistant a'], ['bad_seq']]);
    },
  );

  it.each([
    [0, 9, 10, 11, 100],
    [2, 10, 9, 1_000, 20],
    [99, 100, 1_000, 101],
  ])('entries that wait for a gap are shown in the order of their numbers: %i and later ones', (...seqs) => {
    const view = project([...seqs].reverse().map((seq) => ({ ...log[0], messageId: `${seq}`, seq })));
    const [first, ...queue] = [...seqs].sort((a, b) => a - b).map(String);
    expect([view.cycles.map(({ id }) => id), view.queued.map(({ messageId }) => messageId)]).toEqual([[first], queue]);
  });

  it('unknown entries keep their place in the order', () => {
    const view = project(stamped([U('q'), { type: 'x' }, A('a'), S()]));
    expect([stepsOf(view), view.diagnostics]).toEqual([
      ['non-steer q', 'assistant a'],
      [{ code: 'unknown', seq: 1, detail: { type: 'x' } }],
    ]);
  });

  it('H-115 times have no effect: decreasing, missing, or far away', () => {
    const times = [5, 4, Number.NaN, 8.64e15, -1, Number.POSITIVE_INFINITY, 'now', null, 3];
    expect(project(log.map((entry, i) => ({ ...entry, at: times[i] })))).toEqual(project(log));
  });
});

describe('other conversations', () => {
  const child = stamped([U('task'), A('child'), C('k1'), T('k1'), S()], 'child-run').map((entry) => ({
    ...entry,
    conversationId: 'child',
  }));

  it("H-112 INV-8 a child's entries are ignored in the parent's view", () => {
    const mixed = log.flatMap((entry, i) => (child[i] ? [entry, child[i]] : [entry]));
    expect(project(mixed)).toEqual(project(log));
  });

  it.each([
    ['today', { conversationId: 'c', child: 'child' }, { child: 'child' }],
    ['in an old log', { conversationId: 'child' }, { conversationId: 'child' }],
  ])(
    "INV-8 an entry of a parent's log about its children belongs to the parent, %s: no gap, no other conversation",
    (_, ids, bare) => {
      const childEvent = { type: 'sub-agent', callId: 'c1', ...ids, phase: 'started', runId: 'r1' };
      const view = project(log);
      for (let at = 1; at <= log.length; at++) {
        const entries = [...log.slice(0, at), childEvent, ...log.slice(at)].map((entry, seq) => ({ ...entry, seq }));
        expect(project(entries)).toEqual(view);
        expect(project(entries.slice(at)).diagnostics.map(({ code }) => code)).not.toContain('gap');
      }
      const unnamed = log.map(({ conversationId: _, ...entry }) => entry);
      const { conversationId: __, ...unsaid } = childEvent;
      expect(project([{ ...unsaid, ...bare }, ...unnamed])).toEqual(project(unnamed));
    },
  );

  it('H-112 an entry without a conversation among others that have one is a diagnostic', () => {
    const lost = { ...A('whose?'), runId: 'r2' };
    const view = project([...log.slice(0, 2), lost, ...log.slice(2)]);
    expect(view.cycles).toEqual(project(log).cycles);
    expect(codes(view)).toEqual(['conversation_missing']);
  });
});
