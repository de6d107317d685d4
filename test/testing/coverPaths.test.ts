import { describe, expect, it } from 'vitest';
import { assign, setup } from 'xstate';
import { coverPaths } from '../../src/testing/chartPaths/coverPaths.ts';

/** A door that locks itself after a knock, and counts for ever how often it was opened. */
const door = setup({
  types: {} as {
    context: { knocks: number; opened: number };
    events: { type: 'knock' } | { type: 'open'; by: string } | { type: 'remove' };
  },
  guards: { enough: ({ context }) => context.knocks > 0 },
}).createMachine({
  id: 'DOOR',
  context: { knocks: 0, opened: 0 },
  initial: 'Closed',
  states: {
    Closed: {
      on: {
        knock: { actions: assign({ knocks: ({ context }) => Math.min(1, context.knocks + 1) }) },
        open: [{ guard: 'enough', target: 'Locked' }, { target: 'Open' }],
      },
    },
    Open: {
      entry: assign({ opened: ({ context }) => context.opened + 1 }),
      on: { open: { target: 'Closed' }, remove: { target: 'Gone' } },
    },
    Locked: { on: { open: { target: 'Closed', actions: assign({ knocks: 0 }) } } },
    Gone: { type: 'final' },
  },
});
const cases = {
  knock: [{ type: 'knock' }],
  open: [
    { type: 'open', by: 'ann' },
    { type: 'open', by: 'bob' },
  ],
  remove: [{ type: 'remove' }],
};
const knocks = ({ knocks: count }: { knocks: number }) => count;
type Value = string;

describe('coverPaths', () => {
  it('takes every case in every state that the projection distinguishes', () => {
    const paths = coverPaths(door, { input: undefined, cases, projection: knocks });
    const taken = new Set<string>();
    for (const { start, steps } of paths) {
      let at = start?.state;
      for (const { event, state } of steps) {
        taken.add(`${at?.value as Value} ${at?.context.knocks} ${JSON.stringify(event)}`);
        at = state;
      }
    }
    // Closed takes 3 cases with and without a knock, Open takes 3, and Locked takes 2.
    expect(taken.size).toBe(6 + 3 + 2);
  });

  it('ends each path in a final state where one can be reached, and gives each a name of its own', () => {
    const paths = coverPaths(door, { input: undefined, cases, projection: knocks });
    expect(paths.map(({ steps }) => steps.at(-1)?.state.status)).toEqual(paths.map(() => 'done'));
    expect(new Set(paths.map(({ name }) => name)).size).toBe(paths.length);
  });

  it('finds events listed under a wildcard descriptor', () => {
    const machine = setup({ types: {} as { events: { type: 'tool.done' } | { type: 'tool.failed' } } }).createMachine({
      initial: 'A',
      states: { A: { on: { 'tool.*': { target: 'B' } } }, B: { type: 'final' } },
    });
    const wild = { 'tool.*': [{ type: 'tool.done' }, { type: 'tool.failed' }] };
    const paths = coverPaths(machine, { input: undefined, cases: wild, projection: () => null });
    expect(paths.map(({ steps }) => steps.map(({ event }) => event.type))).toEqual([['tool.done'], ['tool.failed']]);
  });

  it('refuses a projection that merges states that guards distinguish, and names the chart', () => {
    const coarse = () => coverPaths(door, { input: undefined, cases, projection: () => null });
    expect(coarse).toThrow(/the projection of DOOR merges states that its guards or assigns tell apart/);
  });

  it('stops at its limit and explains what lets a graph grow', () => {
    const all = ({ opened }: { opened: number }) => opened;
    const endless = () => coverPaths(door, { input: undefined, cases, projection: all, limit: 500 });
    expect(endless).toThrow(/explored 500 steps of DOOR without an end. Let the projection leave out what only grows/);
  });

  it('returns one path without steps for a chart that takes no event', () => {
    const still = setup({}).createMachine({ initial: 'A', states: { A: { type: 'final' } } });
    const paths = coverPaths(still, { input: undefined, cases: {}, projection: () => null });
    expect(paths.map(({ steps }) => steps.length)).toEqual([0]);
  });

  it('throws what a context factory throws, instead of giving no paths', () => {
    const broken = setup({ types: {} as { input: { name: string }; context: { name: string } } }).createMachine({
      context: ({ input }) => ({ name: input.name }),
    });
    expect(() => coverPaths(broken, { input: undefined, cases: {}, projection: () => null })).toThrow(TypeError);
  });

  it.each([undefined, { cases }, { cases: [], projection: knocks }, { projection: knocks }])(
    'names the options that it needs where it receives %j',
    (options) => {
      expect(() => coverPaths(door, options as never)).toThrow(
        'coverPaths needs cases, an object with lists of events',
      );
    },
  );
});
