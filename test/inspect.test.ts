import { expect, it } from 'vitest';
import { createAgent, type Model } from '../src/index.ts';
import { nextTurn } from '../src/timeLimit.ts';
import { unhandledRejections } from './support/unhandledRejections.ts';

const model: Model = {
  id: 'scripted',
  async *stream() {
    yield { type: 'text-delta', text: 'done' };
    yield { type: 'finish', reason: 'stop' };
  },
};

it('an inspect observer sees the charts move, and one that throws does not touch the run', async () => {
  const seen = new Set<string>();
  const agent = createAgent({
    model,
    inspect: (event) => {
      seen.add((event as { type: string }).type);
      throw new Error('observer');
    },
  });
  const conversation = await agent.open();
  const result = await conversation.send('hi').result;
  expect(result.termination).toBe('NaturalEnd');
  expect(seen).toContain('@xstate.microstep');
  await agent.close();
});

it('an inspect observer whose promise rejects leaves no unhandled rejection', async () => {
  const unhandled = unhandledRejections();
  const agent = createAgent({ model, inspect: async () => Promise.reject(new Error('observer')) });
  const conversation = await agent.open();
  expect((await conversation.send('hi').result).termination).toBe('NaturalEnd');
  await agent.close();
  await nextTurn();
  expect(unhandled).toEqual([]);
});

it.each(['compiled', 'xstate'] as const)(
  'createAgent takes the interpreter %s, and both write the same log',
  async (name) => {
    const written = async (interpreter: 'compiled' | 'xstate'): Promise<string[]> => {
      const agent = createAgent({ model, interpreter });
      const conversation = await agent.open('same');
      await conversation.send('hi').result;
      const types = conversation.log().map(({ type }) => type);
      await agent.close();
      return types;
    };
    expect(await written(name)).toEqual(await written('xstate'));
    expect(await written(name)).toContain('run-stop');
  },
);

it('an unknown interpreter is refused', () => {
  expect(() => createAgent({ model, interpreter: 'fast' as never })).toThrow(
    /interpreter must be one of "compiled", "xstate"/,
  );
});
