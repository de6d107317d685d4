/**
 * Complete logs for checks in another environment: another language, another time zone, a browser. Invariant: JSON
 * only. Each log is named after its content; the stories themselves are in the tests beside this file.
 */
import fc from 'fast-check';
import { anyEvent, log } from './arbitraries.ts';
import { A, C, queued, R, reply, S, stamped, T, U } from './events.ts';

const suspended = (...waiting: string[]) => ({ type: 'run-suspended', waiting });
const resumed = (of: string) => ({ type: 'run-resumed', of });

/** Names and ids whose case or order depends on the language. */
export const tricky = ['FIND', 'WRITE', 'EDIT', 'LİST', 'fınd', 'ÉDIT', 'BASH', 'i', 'I'];
/** Calls with those names, at times that increase and decrease. */
export const trickyLog = stamped([
  U('q'),
  A('ß'),
  ...tricky.map((name, i) => C(`İ${i}`, name)),
  T('İ8'),
  T('İ0'),
  A('ok'),
  S(),
]).map((entry, i) => ({ ...entry, at: (i % 3) * 8.64e12 }));

/** By name. */
export const scenarioLogs: Readonly<Record<string, readonly unknown[]>> = {
  'no event': [],
  'S000-01 one request': [U('hi'), A('hello'), S('completed', 'end_turn')],
  'S000-03 texts do not merge': [U('q'), R('think'), A('a'), A('b'), S()],
  'S000-04 groups by adjacency': [
    U('q'),
    A('x'),
    ...['ls', 'read', 'bash', 'read', 'edit', 'write', 'foo'].map((name, i) => C(`${i}`, name)),
    S(),
  ],
  'S000-06 results are not steps': [U('q'), A('x'), C('c1'), T('c1'), C('c2'), T('c2'), S()],
  'S000-07 a steer inside a cycle': [U('q'), A('x'), C('c1'), T('c1'), U('use B', 'steer'), A('ok'), S()],
  'S000-09 followUps in a row': [U('a'), U('b', 'followUp'), U('c', 'followUp'), A('1'), S(), A('2'), S(), A('3'), S()],
  'S000-10 a steer before a followUp': stamped([
    U('P'),
    queued('S', 'steer'),
    queued('F'),
    A('A1'),
    U('S', 'steer'),
    A('A2'),
    S(),
    U('F', 'followUp'),
    A('A3'),
    S(),
  ]),
  'S000-19 rounds': [
    U('q'),
    A('t'),
    C('c1'),
    reply(),
    T('c1'),
    U('S', 'steer'),
    C('c2'),
    reply(2),
    T('c2'),
    A('e'),
    S(),
  ],
  'a suspension and its resume': [
    ...stamped([U('q'), C('a'), C('b'), suspended('a', 'b')]),
    ...stamped([resumed('r1'), T('a'), T('b', '', 'failed'), A('done'), S()], 'r2', 4),
  ],
  'a suspension that still waits': stamped([U('q'), A('x'), C('a'), suspended('a')]),
  'out of order, repeated, torn': [2, 0, 1, 1, 5, 9].flatMap((at) => trickyLog[at] ?? []),
  'events that do not fit': [
    S(),
    A('x'),
    T('c'),
    U('q', 'steer'),
    T('x'),
    C('c1'),
    C('c1'),
    null,
    42,
    { type: 'x' },
    S(),
    S(),
  ],
  'names that depend on the language': trickyLog,
  'text of all planes': [
    U('İıß\u0130'),
    A('👩‍🚀 \ud800 \u2028 日本語 \u202e'),
    C('ǆ', 'READ', { '\u0049': 'ı' }),
    S('error', 'ſ'),
  ],
};

const mixed = fc.array(fc.oneof({ weight: 4, arbitrary: anyEvent }, { weight: 1, arbitrary: fc.jsonValue() }));

/** Random logs, some with values that are not events. The same seed gives the same logs everywhere. */
export const randomLogs = (seed: number, number: number): readonly (readonly unknown[])[] =>
  fc.sample(fc.oneof(log, mixed), { seed, numRuns: number });
