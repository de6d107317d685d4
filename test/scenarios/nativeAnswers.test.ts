/** Final answers for which the provider itself enforces a schema, and answers while they stream. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { ModelError, type Run } from '../../src/index.ts';
import { bench, only } from '../support/agentBench.ts';
import { echoTool } from '../support/scenarioTools.ts';
import { call, deaf, during, lines, type Reply, scripted, t } from '../support/scriptedReplies.ts';

const output = z.object({ city: z.string(), degrees: z.number() });
const good = '{"city":"Lisbon","degrees":18}';
const refusal = new ModelError({ code: 'bad-request', status: 400, message: 'no such schema' });
const native = (replies: readonly Reply[]) => Object.assign(scripted(replies), { nativeOutput: true });

describe('a model with nativeOutput', () => {
  it('receives the JSON Schema with each request of the run, and no description of it', async () => {
    const model = native([[call('c1', 'echo', { m: '' })], good]);
    const on = await bench({ model, output, tools: [echoTool().tool] });
    expect((await on.conversation.send('hi').result).output).toEqual({ city: 'Lisbon', degrees: 18 });
    for (const { output: sent, system } of model.calls) {
      expect(sent).toMatchObject({ name: 'final_answer', schema: { type: 'object', required: ['city', 'degrees'] } });
      expect(system).not.toContain('JSON Schema');
    }
  });

  it('that refuses the schema is asked once more, with a description, in the same attempt; and it is remembered', async () => {
    const model = native([refusal, good, good]);
    const on = await bench({ model, output });
    expect((await on.conversation.send('hi').result).output).toEqual({ city: 'Lisbon', degrees: 18 });
    await on.conversation.send('again').result;
    expect(model.calls.map((request) => request.output !== undefined)).toEqual([true, false, false]);
    expect(model.calls.map(({ system }) => system.includes('JSON Schema'))).toEqual([false, true, true]);
    expect(only(on.conversation.log(), 'model-retry')).toEqual([]);
  });

  it('whose request is refused for another reason fails as it would without a schema, and nothing is remembered', async () => {
    const model = native([refusal, refusal, good]);
    const on = await bench({ model, output });
    expect((await on.conversation.send('hi').result).error).toMatchObject({ code: 'bad-request' });
    await on.conversation.send('again').result;
    expect(model.calls.map((request) => request.output !== undefined)).toEqual([true, false, true]);
  });

  it('that ignores the schema receives it when its answer does not fit', async () => {
    const model = native(['about 18', good]);
    const on = await bench({ model, output });
    expect((await on.conversation.send('hi').result).output).toEqual({ city: 'Lisbon', degrees: 18 });
    expect(lines(model.calls[1]?.messages ?? []).at(-1)).toContain('"degrees":{"type":"number"}');
  });

  it('receives nothing for a schema of texts, which every reply fits', async () => {
    const model = native(['18']);
    const on = await bench({ model, output: z.string() });
    expect((await on.conversation.send('hi').result).output).toBe('18');
    expect(model.calls[0]).not.toHaveProperty('output');
  });

  it('has a fallback that receives a description', async () => {
    const model = native([new ModelError({ code: 'server' })]);
    const second = scripted([good], { id: 'second' });
    const modelRetry = { attempts: 1, fallbackModels: [second] };
    const on = await bench({ model, output, policies: { modelRetry } });
    expect((await on.conversation.send('hi').result).output).toEqual({ city: 'Lisbon', degrees: 18 });
    expect(second.calls[0]).not.toHaveProperty('output');
    expect(second.calls[0]?.system).toContain('JSON Schema');
  });
});

describe('partialOutput', () => {
  const read = async ({ partialOutput }: Run) => {
    const values: unknown[] = [];
    for await (const value of partialOutput) values.push(value);
    return values;
  };

  it.each(['I', 'Infinity', 'N', 'NaN', '-I', '[N'])(
    'gives no value for words that begin as no JSON does: %s',
    async (word) => {
      const replies = [[t(word), t(' will look')], good];
      const on = await bench({ replies, output, policies: { limits: { outputRepairs: 1 } } });
      const run = on.conversation.send('hi');
      const values = await read(run);
      const answer = { city: 'Lisbon', degrees: 18 };
      expect(values).toEqual([...(word === '[N' ? [[]] : []), answer, answer]);
    },
  );

  it('gives the answer as it grows, each value once, and last the validated value', async () => {
    const grown = z.object({ city: z.string(), degrees: z.number().transform(String) });
    const parts = ['```json\n', '{"ci', 'ty":"Lis', 'bon"', ',"degrees":', '18', '}\n```'].map(t);
    const on = await bench({ replies: [parts], output: grown });
    const run = on.conversation.send('hi');
    expect(await read(run)).toEqual([
      {},
      { city: 'Lis' },
      { city: 'Lisbon' },
      { city: 'Lisbon', degrees: 18 },
      { city: 'Lisbon', degrees: '18' },
    ]);
  });

  it('begins again after an attempt that broke, and after an answer that did not fit', async () => {
    const broken = during(() => undefined, new ModelError({ code: 'server' }));
    const half: Reply = async function* () {
      yield t('{"city":"Par');
      throw new ModelError({ code: 'server' });
    };
    const on = await bench({
      replies: [half, broken, '{"city":5}', good],
      output,
      policies: { modelRetry: { baseMs: 0 } },
    });
    const run = on.conversation.send('hi');
    const values = read(run);
    await on.clock.advance(600_000);
    expect(await values).toEqual([
      { city: 'Par' },
      { city: 5 },
      { city: 'Lisbon', degrees: 18 },
      { city: 'Lisbon', degrees: 18 },
    ]);
  });

  it.each<[string, readonly Reply[], unknown[]]>([
    ['fails', [new ModelError({ code: 'auth' })], []],
    ['has no schema', ['hello'], []],
    ['never fits', ['x', 'y', 'z'], []],
  ])('ends without an error where the run %s', async (_, replies, expected) => {
    const on = await bench({ replies, ...(replies.length === 3 && { output }) });
    expect(await read(on.conversation.send('hi'))).toEqual(expected);
  });

  it('ends where the run is cancelled, and gives the last value to who reads a run that is over', async () => {
    const on = await bench({ replies: [deaf(t('{"city":"Par')), good], output });
    const values = read(on.conversation.send('hi'));
    await new Promise<void>((resolve) => {
      on.conversation.live$.subscribe(({ type }) => type === 'text-delta' && resolve());
    });
    await on.conversation.cancel();
    expect(await values).toEqual([{ city: 'Par' }]);
    const second = on.conversation.send('hi');
    await second.result;
    expect(await read(second)).toEqual([{ city: 'Lisbon', degrees: 18 }]);
  });
});
