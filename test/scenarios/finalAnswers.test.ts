/** A final answer with a schema is validated, and the log contains its value. */
import type { StandardSchemaV1 } from '@standard-schema/spec';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { ConfigurationError, createAgent, defineTool, memoryStore, type Plugin, type Run } from '../../src/index.ts';
import { bench, only } from '../support/agentBench.ts';
import { echoTool } from '../support/scenarioTools.ts';
import { call, during, finish, lines, scripted, t } from '../support/scriptedReplies.ts';

const output = z.object({ city: z.string(), degrees: z.number() });
const lisbon = { city: 'Lisbon', degrees: 18 };
const standard = (validate: StandardSchemaV1.Props['validate']): StandardSchemaV1 => ({
  '~standard': { version: 1, vendor: 'test', validate },
});
const good = JSON.stringify(lisbon);

describe('a final answer with a schema', () => {
  it('the result and the log contain the value that the schema returns, after the reply and before the stop', async () => {
    const { conversation, model } = await bench({ output, replies: [`\`\`\`json\n${good}\n\`\`\``] });
    const result = await conversation.send('hi').result;
    expect(result).toMatchObject({ termination: 'NaturalEnd', subtype: 'success', output: lisbon, turns: 1 });
    expect(only(conversation.log(), 'checkpoint', 'extension', 'run-stop')).toEqual([
      'checkpoint UserMessage',
      'checkpoint AssistantTurnCommitted',
      'extension',
      'run-stop completed end_turn',
      'checkpoint RunFinished',
    ]);
    expect(conversation.log().find(({ type }) => type === 'extension')).toMatchObject({ value: lisbon });
    expect(model.calls[0]?.system).toContain('"degrees":{"type":"number"}');
  });

  it('an invalid answer is requested again with its error, at most limits.outputRepairs times in a run; then the run fails', async () => {
    const replies = ['18 degrees', '{"city":5,"degrees":18}', '{}', good];
    const { conversation, model } = await bench({ output, replies });
    const result = await conversation.send('hi').result;
    expect(result).toMatchObject({
      termination: 'Error',
      reason: 'error',
      turns: 3,
      error: { code: 'output_invalid' },
    });
    expect('output' in result).toBe(false);
    expect(only(conversation.log(), 'continuation', 'run-stop')).toEqual([
      'continuation output',
      'continuation output',
      'run-stop error executor',
    ]);
    expect(lines(model.calls[1]?.messages ?? []).at(-1)).toContain('no JSON');
    expect(lines(model.calls[2]?.messages ?? []).at(-1)).toContain('city: ');
    expect(conversation.status).toBe('error');
    // Each run may repeat the request this often.
    expect(await conversation.send('again').result).toMatchObject({ output: lisbon });
  });

  it('it is not requested again without a remaining repair, and the last repair may save a run', async () => {
    const policies = (outputRepairs: number) => ({ limits: { outputRepairs } });
    const never = await bench({ output, replies: ['no'], policies: policies(0) });
    expect((await never.conversation.send('hi').result).error?.code).toBe('output_invalid');
    expect(never.model.calls).toHaveLength(1);
    const once = await bench({ output, replies: ['no', good], policies: policies(1) });
    expect((await once.conversation.send('hi').result).output).toEqual(lisbon);
  });

  it('only the answer after the tools is validated, not replies with calls or of runs that end otherwise', async () => {
    const { tool } = echoTool();
    const replies = [[t('I look.'), call('c1', 'echo', { m: 'a' })], [t('cut'), finish('length')], good];
    const { conversation } = await bench({ output, replies, tools: [tool] });
    expect(await conversation.send('hi').result).toMatchObject({ termination: 'Stopped', cause: 'max_tokens' });
    expect(only(conversation.log(), 'continuation', 'extension')).toEqual([]);
    expect((await conversation.send('again').result).output).toEqual(lisbon);
  });

  it('it is validated when the run would end, after steers and plugins that continue the run', async () => {
    let asked = 0;
    const plugin: Plugin = {
      name: 'again',
      naturalEnd: () => (asked++ === 0 ? { continue: 'Run the tests.' } : undefined),
    };
    const replies = [during(() => void conversation.steer('and Porto'), 'no JSON'), 'none either', good];
    const { conversation } = await bench({ output, replies, plugins: [plugin] });
    expect((await conversation.send('hi').result).output).toEqual(lisbon);
    expect(only(conversation.log(), 'continuation')).toEqual(['continuation stop_hook']);
  });

  it('it ends at the limit of turns like any other', async () => {
    const { conversation, model } = await bench({ output, replies: ['no'], policies: { limits: { turns: 1 } } });
    expect(await conversation.send('hi').result).toMatchObject({ termination: 'Stopped', cause: 'max_turns' });
    expect(only(conversation.log(), 'continuation')).toEqual([]);
    expect(model.calls).toHaveLength(1);
  });

  it('a schema of texts accepts any text, and a transformed value is stored as transformed', async () => {
    const { conversation, model } = await bench({ output: z.string().min(2), replies: ['42', 'yes, sir'] });
    expect((await conversation.send('hi').result).output).toBe('42');
    expect((await conversation.send('hi').result).output).toBe('yes, sir');
    expect(model.calls[0]?.system).toBe('');
    const doubled = await bench({ output: z.number().transform((n) => n * 2), replies: ['21'] });
    expect((await doubled.conversation.send('hi').result).output).toBe(42);
  });

  it('it is requested again if its schema throws', async () => {
    const strange = standard(async (text) => {
      if (text === 'bad') throw new Error('the schema broke');
      return { value: text };
    });
    const { conversation } = await bench({ output: strange, replies: ['bad', 'good'] });
    expect((await conversation.send('hi').result).output).toBe('good');
    expect(only(conversation.log(), 'continuation')).toEqual(['continuation output']);
  });
});

describe('a message with its own schema', () => {
  it('the schema replaces that of the agent for this answer, and has no effect on the next one', async () => {
    const { conversation, model } = await bench({ output, replies: ['["a"]', good, 'plain'] });
    const own = conversation.send('a list', { output: z.array(z.string()) });
    expect((await own.result).output).toEqual(['a']);
    expect((await conversation.send('the weather').result).output).toEqual(lisbon);
    expect(model.calls[0]?.system).toContain('array');
    expect(model.calls[1]?.system).not.toContain('array');
  });

  it('the agent needs no schema, also for a followUp and a steer', async () => {
    let queued: Run | undefined;
    const replies = [
      during(() => {
        queued = conversation.send('then', { kind: 'followUp', output });
      }, 'free'),
      good,
      during(() => void conversation.send('as JSON', { kind: 'steer', output }), 'free'),
      'not yet',
      good,
      'free',
    ];
    const { conversation } = await bench({ replies });
    const first = await conversation.send('hi').result;
    expect([first.text, 'output' in first]).toEqual(['free', false]);
    expect((await queued?.result)?.output).toEqual(lisbon);
    expect((await conversation.send('more').result).output).toEqual(lisbon);
    expect((await conversation.send('bye').result).text).toBe('free');
  });

  it('the schema is kept for the rest of a request that waited for a decision', async () => {
    const { tool } = echoTool('ask', { needsApproval: true });
    const replies = [[call('c1', 'ask', { m: 'a' })], 'no JSON', good];
    const { conversation } = await bench({ replies, tools: [tool] });
    expect((await conversation.send('hi', { output }).result).termination).toBe('Suspended');
    await conversation.decide({ callId: 'c1', action: 'approve' });
    expect((await conversation.resume().result).output).toEqual(lisbon);
  });

  it('an invalid schema is refused before anything changes', async () => {
    const { conversation } = await bench({ replies: [] });
    const before = conversation.log().length;
    expect(() => conversation.send('hi', { output: {} as never })).toThrow(ConfigurationError);
    expect(conversation.log()).toHaveLength(before);
    expect(() => createAgent({ model: scripted([]), output: 'yes' as never })).toThrow(
      /output must be a Standard Schema/,
    );
  });

  it('a schema that its library cannot write as JSON Schema is refused before any model call', async () => {
    const dated = z.object({ due: z.coerce.date() });
    const refused = /output must be a Standard Schema that can be written as JSON Schema/;
    expect(() => createAgent({ model: scripted([]), output: dated })).toThrow(refused);
    expect(() => createAgent({ model: scripted([]), outputs: { dated } })).toThrow(ConfigurationError);
    const { conversation } = await bench({ replies: [] });
    const before = conversation.log().length;
    expect(() => conversation.send('hi', { output: dated })).toThrow(ConfigurationError);
    expect(conversation.log()).toHaveLength(before);
  });
});

it('the schema of the agent is used after a restart, and for agent.run', async () => {
  const store = memoryStore();
  const { tool } = echoTool('ask', { needsApproval: true });
  const first = await bench({ store, output, tools: [tool], replies: [[call('c1', 'ask', { m: 'a' })]] });
  await first.conversation.send('hi').result;
  await first.agent.close();
  const again = await bench({ store, output, tools: [tool], replies: ['no', good, good] });
  await again.conversation.decide({ callId: 'c1', action: 'deny' });
  expect((await again.conversation.resume().result).output).toEqual(lisbon);
  expect((await again.agent.run('hi')).output).toEqual(lisbon);
});

it('the schema of a message is not stored: a run that another process continues is not checked, and reports that', async () => {
  const store = memoryStore();
  const askTool = { ...{ name: 'ask', description: 'Asks.', parameters: z.object({}) }, needsApproval: true };
  const tools = [defineTool({ ...askTool, execute: () => 'yes' })];
  const first = createAgent({ model: scripted([[call('c1', 'ask')]]), tools, store });
  const begun = await first.open('c');
  await begun.send('which?', { output }).result;
  expect(begun.log().find(({ type }) => type === 'user-message')).toMatchObject({ outputSchema: 'unstored' });
  await first.close();
  const model = scripted(['no JSON', good]);
  const second = createAgent({ model, tools, store, output });
  const continued = await second.open('c');
  await continued.decide({ callId: 'c1', action: 'approve' });
  const result = await continued.resume().result;
  expect(result).toMatchObject({ termination: 'NaturalEnd', text: 'no JSON' });
  expect('output' in result).toBe(false);
  expect(only(continued.log(), 'diagnostic')).toEqual(['diagnostic output_unchecked']);
  expect(model.calls[0]?.system ?? '').not.toContain('JSON Schema');
  // The next request has the schema of the agent.
  expect(await continued.send('and?').result).toMatchObject({ output: lisbon });
  await second.close();
});
