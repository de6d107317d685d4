/** A person's edit of a call, judged: whatever an example or the agent's rules forbid must not run. */
import { expect, it } from 'vitest';
import { faultOfEdit } from '../../src/testing/agentPaths/verdictRows.ts';

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
