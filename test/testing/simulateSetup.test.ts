/** Tests the validation of a simulation's options. An agent that cannot be simulated is a violation, not an error. */
import { describe, expect, it } from 'vitest';
import { type Agent, createAgent } from '../../src/index.ts';
import { type SimulationOptions, scriptedModel, simulate } from '../../src/testing/index.ts';

type Make = NonNullable<SimulationOptions['agent']>;

const good: Make = ({ ports, store }) => createAgent({ model: scriptedModel(Array(50).fill('hello')), store, ports });
const none = [Number.NaN, Number.POSITIVE_INFINITY, -1, 1.5, '3', null, 10n, {}, []];
const noLists = [5, null, 'abc', {}, new Uint8Array(3), [1.5], [-1], [Number.NaN], [1, '2'], [null]];

describe('a simulation', () => {
  it.each<[string, readonly unknown[], RegExp]>([
    ['seed', ['a', '1', 1.5, Number.NaN, 10n, null, 2 ** 53], /seed must be a whole number, got /],
    ['maxSteps', none, /maxSteps must be a whole number of at least 0, got /],
    ['tape', noLists, /tape must be a list of whole numbers of at least 0, got /],
    ['prefix', noLists, /prefix must be a list of whole numbers of at least 0, got /],
    ['agent', [5, null, {}, Promise.resolve()], /agent must be a function, got /],
    ['args', [5, null, [], { book: 5 }], /args must be lists of arguments by the names of tools, got /],
    ['invariants', [5, null, {}, [5]], /invariants must be a list of functions, got /],
    ['maxStep', [3], /the option maxStep is unknown; known are seed, agent, /],
  ])('is refused with an impossible %s before a life begins', async (key, values, expected) => {
    let made = 0;
    const agent: Make = (world) => {
      made += 1;
      return good(world);
    };
    for (const value of values) {
      const simulated = simulate({ seed: 1, agent, [key]: value });
      await expect(simulated).rejects.toThrow(expected);
      await expect(simulated).rejects.toMatchObject({ name: 'ConfigurationError', code: 'configuration' });
    }
    expect(made).toBe(0);
  });

  it('is refused without options, and without a seed', async () => {
    for (const options of [undefined, null, 5, [], {}, { tape: [1] }] as never[]) {
      await expect(simulate(options)).rejects.toMatchObject({ code: 'configuration' });
    }
  });

  it('takes any whole number as its seed, and any large number on its tape', async () => {
    for (const seed of [0, -1, -(2 ** 40), Number.MAX_SAFE_INTEGER]) {
      expect((await simulate({ seed, maxSteps: 2, agent: good })).violations).toEqual([]);
    }
    for (const tape of [[], [2 ** 31, 1e20, 0]]) {
      expect((await simulate({ seed: 1, maxSteps: 0, tape, agent: good })).violations).toEqual([]);
      expect((await simulate({ seed: 1, maxSteps: 2, prefix: tape, agent: good })).violations).toEqual([]);
    }
  });
});

/** Returns the value of `later` from its second call on. */
const second = (later: () => unknown): Make => {
  let calls = 0;
  return (world) => {
    calls += 1;
    return calls === 1 ? good(world) : (later() as Agent);
  };
};
const failing = (): never => {
  throw new Error('no key in the environment');
};

describe('an agent that cannot be simulated is the violation setup, in a complete report:', () => {
  it.each<[string, () => unknown, RegExp]>([
    ['one that is not made', failing, /threw Error: no key in the environment/],
    ['undefined', () => undefined, /must give an agent of createAgent at once, got undefined/],
    ['an object', () => ({}), /at once, got \{\}/],
    ['a promise of an agent', async () => ({ open() {}, close() {} }), /at once, got a promise/],
    ['a promise that rejects', async () => failing(), /at once, got a promise/],
  ])('%s, in the first process and in a later one', async (_, later, expected) => {
    const violations = [{ invariant: 'setup', detail: expect.stringMatching(expected) }];
    const report = await simulate({ seed: 1, agent: later as Make });
    expect(report).toMatchObject({ seed: 1, steps: 0, crashes: 0, log: [], violations });
    for (let seed = 1; seed <= 10; seed++) {
      expect((await simulate({ seed, agent: second(later) })).violations).toEqual(violations);
    }
  });

  it('one whose open throws or gives no promise breaks an invariant, and nothing is thrown at the caller', async () => {
    for (const open of [failing, () => undefined]) {
      const { violations } = await simulate({ seed: 1, agent: () => ({ open, close() {} }) as unknown as Agent });
      expect(violations).not.toEqual([]);
    }
  });
});
