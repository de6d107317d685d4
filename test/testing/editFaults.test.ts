/** The rows of a verdict table, and a person's edit of a call: a call that an example or the rules forbid must not run. */
import { describe, expect, it } from 'vitest';
import { editsOf, faultOfEdit, representatives, type VerdictRow } from '../../src/testing/agentPaths/verdictRows.ts';

const VERDICTS = ['runs', 'asks', 'blocked', 'refused'] as const;
const NEVER: readonly string[] = ['blocked', 'refused'];

it.each(VERDICTS.flatMap((verdict) => [undefined, ...VERDICTS].map((expected) => ({ verdict, expected }))))(
  'is a fault if it ran and is forbidden by the rules or by an example: $verdict, expected $expected',
  ({ verdict, expected }) => {
    const edit = { tool: 't', args: { b: 1 }, verdict, edge: false, ...(expected && { expected }) };
    const faultOf = (ran: boolean) => faultOfEdit({ tool: 't', args: { a: 1 } }, edit, ran);
    const isForbidden = NEVER.includes(verdict) || NEVER.includes(expected ?? verdict);
    expect(faultOf(false)).toBeUndefined();
    expect(faultOf(true) !== undefined).toBe(isForbidden);
    if (isForbidden) expect(faultOf(true)?.name).toBe('t({"a":1}), edited to {"b":1}, does not run');
  },
);

describe('the rows of a verdict table', () => {
  const row = (args: unknown, verdict: (typeof VERDICTS)[number], more: object = {}) =>
    ({ tool: 't', args, verdict, edge: false, ...more }) as VerdictRow;
  const argsOf = (rows: readonly VerdictRow[]) => rows.map(({ args }) => args);

  it('are represented by one for each tool, verdict, reason and end: the one at an edge, else the first', () => {
    const rows = [
      ...[row(1, 'runs'), row(2, 'runs', { edge: true }), row(3, 'runs', { edge: true })],
      ...[row(4, 'asks', { reason: 'permission' }), row(5, 'asks', { reason: 'permission' }), row(6, 'asks')],
      ...[row(7, 'runs', { end: 'failed' }), row(8, 'runs', { tool: 'u' }), row(9, 'blocked')],
    ];
    expect(argsOf(representatives(rows))).toEqual([2, 4, 6, 7, 8, 9]);
    expect(representatives([])).toEqual([]);
  });

  it('offer edits of a call: other arguments of its tool that its schema takes, one for each verdict, at most four', () => {
    const own = row({ a: 1, b: 2 }, 'asks');
    const rows = [
      ...[own, row({ b: 2, a: 1 }, 'runs'), row({ a: 2 }, 'runs', { tool: 'u' })],
      ...[row({ a: 3 }, 'refused', { reason: 'invalid_arguments' }), row({ a: 4 }, 'runs'), row({ a: 5 }, 'runs')],
      ...[
        row({ a: 6 }, 'blocked'),
        row({ a: 7 }, 'refused'),
        row({ a: 8 }, 'asks'),
        row({ a: 9 }, 'runs', { end: 'failed' }),
      ],
    ];
    expect(argsOf(editsOf(own, rows))).toEqual([{ a: 4 }, { a: 6 }, { a: 7 }, { a: 8 }]);
    expect(editsOf(own, [own])).toEqual([]);
  });
});
