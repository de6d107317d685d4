/** The types of final answers: the output type of the schema is the type of the result, for an agent or one request. */
import { expect, expectTypeOf, it } from 'vitest';
import { z } from 'zod';
import { type Agent, type Conversation, createAgent, memoryStore, type Run, type RunResult } from '../../src/index.ts';
import { scripted } from '../support/scriptedReplies.ts';

const city = z.object({ name: z.string(), people: z.number().transform(String) });
type City = { name: string; people: string };

it('createAgent({ output }) types its conversations, runs and results by the output of the schema', async () => {
  const agent = createAgent({ model: scripted(['{"name":"Bern","people":7}']), store: memoryStore(), output: city });
  expectTypeOf(agent).toEqualTypeOf<Agent<City>>();
  const conversation = await agent.open();
  expectTypeOf(conversation).toEqualTypeOf<Conversation<City>>();
  expectTypeOf(conversation.resume()).toEqualTypeOf<Run<City>>();
  expectTypeOf(conversation.send).toBeCallableWith('which?', { kind: 'steer' });
  expectTypeOf(agent.run).returns.resolves.toEqualTypeOf<RunResult<City>>();
  const { output } = await conversation.send('which?').result;
  expectTypeOf(output).toEqualTypeOf<City | undefined>();
  expect(output).toEqual({ name: 'Bern', people: '7' });
  await agent.close();
});

it('send({ output }) types its own run, and no others', async () => {
  const agent = createAgent({ model: scripted(['3', 'hello']) });
  expectTypeOf(agent).toEqualTypeOf<Agent<unknown>>();
  const conversation = await agent.open();
  const run = conversation.send('how many?', { output: z.number() });
  expectTypeOf(run).toEqualTypeOf<Run<number>>();
  expect((await run.result).output).toBe(3);
  expectTypeOf(conversation.send('hi', { signal: new AbortController().signal })).toEqualTypeOf<Run<unknown>>();
  await agent.close();
});

it('a typed agent is assignable to any agent', () => {
  expectTypeOf<Agent<City>>().toExtend<Agent>();
  expectTypeOf<Conversation<City>>().toExtend<Conversation>();
  expectTypeOf<Run<City>>().toExtend<Run>();
});
