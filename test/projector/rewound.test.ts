/** Views of a log that was rewound: the superseded cycles, and the entries after the rewind. */
import { describe, expect, it } from 'vitest';
import { createProjector, project } from '../../src/projector/index.ts';
import { A, C, codes, S, stamped, stepsOf, suspendedCall, U } from './events.ts';

const CYCLES = ['a', 'b', 'c', 'd'];
/** The entries of each cycle; the first is its root. */
const LENGTH = 3;
const log = CYCLES.flatMap((id, at) => stamped([U(id), A(`to ${id}`), S()], `r${at}`, at * LENGTH));
const rewound = (toSeq: unknown, seq = log.length) => ({
  ...{ seq, at: seq, conversationId: 'c', runId: null, type: 'rewound', toSeq },
});
const supersededIn = (entries: readonly unknown[]): string[] =>
  project(entries).cycles.flatMap(({ id, superseded }) => (superseded ? [id] : []));

describe('a rewound log', () => {
  it.each(Array.from({ length: log.length + 1 }, (_, at) => at - 1))(
    'to entry %i has superseded the cycles that began after it, and no other',
    (toSeq) => {
      expect(supersededIn([...log, rewound(toSeq)])).toEqual(CYCLES.filter((_, at) => at * LENGTH > toSeq));
      expect(codes(project([...log, rewound(toSeq)]))).toEqual([]);
    },
  );

  it('marks them in views that were read before, one entry at a time, and changes no earlier view', () => {
    const projector = createProjector();
    for (const entry of log) projector.push(entry);
    const before = projector.view();
    const shown = JSON.stringify(before);
    projector.push(rewound(4));
    expect(projector.view()).toEqual(project([...log, rewound(4)]));
    expect(JSON.stringify(before)).toBe(shown);
    expect(projector.view().cycles[1]).toBe(before.cycles[1]);
  });

  it('again to an earlier place supersedes more, and to a later one nothing back', () => {
    for (const [first, second, superseded] of [
      [7, 3, ['c', 'd']],
      [3, 7, ['c', 'd']],
      [0, 0, ['b', 'c', 'd']],
    ] as const)
      expect(supersededIn([...log, rewound(first), rewound(second, log.length + 1)])).toEqual(superseded);
  });

  it('is idle, and the next message begins a cycle that is not superseded', () => {
    const open = log.slice(0, -1);
    expect(project(open).state).toBe('active');
    const after = [...open, rewound(5, open.length)];
    expect(project(after).state).toBe('idle');
    const view = project([...after, ...stamped([U('new'), A('x')], 'r9', after.length)]);
    expect(view.cycles.map(({ id, superseded }) => [id, superseded ?? false])).toEqual([
      ['a', false],
      ['b', false],
      ['c', true],
      ['d', true],
      ['new', false],
    ]);
    expect([stepsOf(view), view.state]).toEqual([['non-steer new', 'assistant x'], 'active']);
  });

  it('is not continued by a resumption of a run before it', () => {
    const waiting = stamped([U('q'), C('call'), suspendedCall('call'), { type: 'run-suspended', waiting: ['call'] }]);
    const resumed = { ...rewound(0, 5), type: 'run-resumed', of: 'r1', runId: 'r2' };
    const view = project([...waiting, rewound(-1, 4), resumed]);
    expect([view.state, codes(view)]).toEqual(['idle', ['not_last']]);
    expect(project([...waiting, { ...resumed, seq: 4 }])).toMatchObject({ state: 'active', diagnostics: [] });
  });

  it.each([undefined, null, '3', 1.5, Number.NaN, 2 ** 53])('to %s is malformed, and changes nothing', (toSeq) => {
    const view = project([...log, rewound(toSeq)]);
    expect(view.cycles).toEqual(project(log).cycles);
    expect(view.diagnostics).toEqual([
      { code: 'malformed', seq: log.length, detail: { type: 'rewound', field: 'toSeq' } },
    ]);
  });
});

it('a seq of -0 is 0, also in a diagnostic', () => {
  const view = project([{ seq: -0, type: 'odd' }]);
  expect(Object.is(view.diagnostics[0]?.seq, 0)).toBe(true);
});
