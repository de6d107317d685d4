/** A message chooses for its own request: the asking person, context, model, settings, tools and schema of the answer. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  ConfigurationError,
  ModelError,
  type ModelSettings,
  type Plugin,
  type RequestInfo,
  type SendOptions,
  subAgents,
} from '../../src/index.ts';
import { bench, entry, only, restart } from '../support/agentBench.ts';
import { asks, echoTool, gateTool } from '../support/scenarioTools.ts';
import { call, during, scripted } from '../support/scriptedReplies.ts';

const settings: ModelSettings = { temperature: 0.25, topP: 0.5, maxOutputTokens: 77, reasoningEffort: 'low' };
const everything = { by: 'ann', context: { plan: ['pro', null] }, model: 'small', settings, tools: ['echo'] };

/** A plugin that notes the origin in each of its phases. */
function notes() {
  const seen: { [phase: string]: RequestInfo[] } = {};
  const note = (phase: string) => (c: { origin: RequestInfo }) => {
    seen[phase] = [...(seen[phase] ?? []), c.origin];
  };
  const phases = ['runStart', 'stepStart', 'beforeInference', 'afterInference', 'stepEnd', 'runEnd'];
  const ofCalls = ['beforeToolExecute', 'afterToolExecute'];
  const plugin = {
    name: 'notes',
    ...Object.fromEntries([...phases, ...ofCalls].map((phase) => [phase, note(phase)])),
  } as unknown as Plugin;
  return { plugin, seen };
}

describe('the choice of a message', () => {
  it('is part of its entry, field by field, and absent where nothing was chosen', async () => {
    const on = await bench({ tools: [echoTool().tool], models: { small: scripted(['a']) }, replies: ['b'] });
    await on.conversation.send('hi', everything).result;
    await on.conversation.send('again').result;
    const [first, second] = on.conversation.log().filter(({ type }) => type === 'user-message');
    expect(first).toMatchObject({ kind: 'direct', ...everything });
    expect(Object.keys(second ?? {})).not.toEqual(expect.arrayContaining(['by']));
    for (const key of Object.keys(everything)) expect(second).not.toHaveProperty(key);
  });

  it('is copied at the call, so that a later change of the host changes nothing', async () => {
    const on = await bench({ models: { small: scripted(['a']) }, replies: [] });
    const context = { list: [1] };
    const run = on.conversation.send('hi', { context, model: 'small' });
    context.list.push(2);
    await run.result;
    expect(on.conversation.log().find(({ type }) => type === 'user-message')).toMatchObject({ context: { list: [1] } });
  });

  it('is read once, so that what was checked is what is logged', async () => {
    const on = await bench({ replies: ['done'] });
    const names = ['ann', ''];
    const options: SendOptions = {
      get by() {
        return names.shift() ?? 'nobody';
      },
    };
    await on.conversation.send('hi', options).result;
    expect(on.conversation.log().find(({ type }) => type === 'user-message')).toMatchObject({ by: 'ann' });
    expect(names).toEqual(['']);
  });

  it('names the model of every call of the cycle, and the next cycle has the agent’s own again', async () => {
    const small = scripted([[call('c1', 'echo', { m: '' })], 'small'], { id: 'small-1' });
    const on = await bench({ tools: [echoTool().tool], models: { small }, replies: ['own'] });
    expect((await on.conversation.send('hi', { model: 'small' }).result).text).toBe('small');
    expect((await on.conversation.send('hi').result).text).toBe('own');
    const replies = on.conversation.log().flatMap((each) => (each.type === 'model-reply' ? [each.model] : []));
    expect(replies).toEqual(['small-1', 'small-1', 'scripted']);
    expect([small.calls.length, on.model.calls.length]).toEqual([2, 1]);
  });

  it('names a model that is also a fallback model: it is called no second time after its attempts are spent', async () => {
    const busy = () => new ModelError({ code: 'server' });
    const small = scripted([busy(), busy(), 'again'], { id: 'small-1' });
    const other = scripted(['other'], { id: 'other' });
    const modelRetry = { attempts: 2, baseMs: 0, fallbackModels: [small, other] };
    const on = await bench({ models: { small }, policies: { modelRetry } });
    const run = on.conversation.send('hi', { model: 'small' });
    await on.clock.until(run.result);
    expect(await run.text).toBe('other');
    expect([small.attempts, other.attempts]).toEqual([[1, 2], [3]]);
  });

  it('sets the model of each request, and a required tool holds until the request has its first call', async () => {
    const replies = [[call('c1', 'echo', { m: '' })], 'done', 'next'];
    const on = await bench({ tools: [echoTool().tool, echoTool('other').tool], replies });
    const toolChoice = { tool: 'echo' };
    await on.conversation.send('hi', { settings: { ...settings, toolChoice }, tools: ['echo'] }).result;
    await on.conversation.send('hi').result;
    const [first, second, third] = on.model.calls;
    expect(first).toMatchObject({ ...settings, toolChoice });
    expect(second).toMatchObject(settings);
    expect(second).not.toHaveProperty('toolChoice');
    expect([first, second].map((request) => request?.tools.map(({ name }) => name))).toEqual([['echo'], ['echo']]);
    for (const key of Object.keys(settings)) expect(third).not.toHaveProperty(key);
    expect(third?.tools).toHaveLength(2);
  });

  it.each(['auto', 'none'] as const)(
    'sets %s as the choice of tools for every call, also after one was called',
    async (toolChoice) => {
      const on = await bench({ tools: [echoTool().tool], replies: [[call('c1', 'echo', { m: '' })], 'done'] });
      await on.conversation.send('hi', { settings: { toolChoice } }).result;
      expect(on.model.calls.map((request) => request.toolChoice)).toEqual([toolChoice, toolChoice]);
    },
  );

  it('keeps a tool that was not chosen from running, as out of scope', async () => {
    const other = echoTool('other');
    const on = await bench({
      tools: [echoTool().tool, other.tool],
      replies: [[call('c1', 'other', { m: '' })], 'done'],
    });
    await on.conversation.send('hi', { tools: ['echo'] }).result;
    expect(only(on.conversation.log(), 'tool-result')).toEqual(['tool-result c1 failed out_of_scope']);
    expect(other.ran).toEqual([]);
  });

  it('keeps a plugin from offering a tool that was not chosen', async () => {
    const [echo, other] = [echoTool(), echoTool('other')];
    const spec = { name: 'other', description: '', parameters: { type: 'object' } };
    const plugin: Plugin = {
      name: 'offers',
      beforeInference: ({ request: { tools } }) => ({ request: { tools: [...tools, spec] } }),
    };
    const replies = [[call('c1', 'other', { m: '' })], 'done'];
    const on = await bench({ tools: [echo.tool, other.tool], plugins: [plugin], replies });
    await on.conversation.send('hi', { tools: ['echo'] }).result;
    expect(on.model.calls.map(({ tools }) => tools.map(({ name }) => name))).toEqual([['echo'], ['echo']]);
    expect(only(on.conversation.log(), 'tool-result')).toEqual(['tool-result c1 failed out_of_scope']);
    expect(other.ran).toEqual([]);
  });

  it('holds for a followUp that waits, a resumption, a retry and a restart', async () => {
    const tool = echoTool('ask');
    const small = scripted([[call('c1', 'ask', { m: '' })], 'small'], { id: 'small-1' });
    const options = { tools: [tool.tool], plugins: [asks().plugin], models: { small } };
    const held: { goOn(): void } = { goOn: () => undefined };
    const wait = new Promise<void>((resolve) => {
      held.goOn = resolve;
    });
    const on = await bench({ ...options, replies: [during(() => wait, 'own')] });
    const first = on.conversation.send('first');
    await entry(on.conversation, 'user-message');
    on.conversation.send('second', { ...everything, tools: ['ask'], kind: 'followUp', messageId: 'm2' });
    await entry(on.conversation, 'message-queued');
    expect(on.conversation.log().at(-1)).toMatchObject({ type: 'message-queued', by: 'ann', model: 'small' });
    held.goOn();
    await first.result;
    await entry(on.conversation, 'run-suspended');
    const later = await restart(on, options);
    expect(later.conversation.pending).toMatchObject([
      { callId: 'c1', origin: { messageId: 'm2', by: 'ann', context: everything.context } },
    ]);
    await later.conversation.decide({ callId: 'c1', action: 'approve' });
    expect((await later.conversation.resume().result).text).toBe('small');
    expect(small.calls.at(-1)).toMatchObject({ temperature: 0.25, tools: [{ name: 'ask' }] });
    expect(tool.contexts.at(-1)?.origin).toEqual({ messageId: 'm2', by: 'ann', context: everything.context });
  });

  it('reaches tools and every phase as the origin, and models not at all', async () => {
    const { plugin, seen } = notes();
    const tool = echoTool();
    const on = await bench({
      ...{ tools: [tool.tool], plugins: [plugin] },
      replies: [[call('c1', 'echo', { m: '' })], 'done'],
    });
    await on.conversation.send('hi', { by: 'ann', context: 'secret plan', messageId: 'm1' }).result;
    const origin = { messageId: 'm1', by: 'ann', context: 'secret plan' };
    expect(tool.contexts.map((context) => context.origin)).toEqual([origin]);
    expect(Object.keys(seen)).toHaveLength(8);
    for (const origins of Object.values(seen))
      expect(new Set(origins.map((each) => JSON.stringify(each)))).toEqual(new Set([JSON.stringify(origin)]));
    expect(JSON.stringify(on.model.calls)).not.toMatch(/ann|secret plan/);
  });

  it('is redacted in the log and for tools', async () => {
    const tool = echoTool();
    const on = await bench({
      ...{ tools: [tool.tool], secrets: ['sk-1234567890'] },
      replies: [[call('c1', 'echo', { m: '' })], 'done'],
    });
    await on.conversation.send('hi', { context: { key: 'sk-1234567890' }, by: 'sk-1234567890' }).result;
    expect(JSON.stringify([on.conversation.log(), tool.contexts[0]?.origin])).not.toContain('sk-1234567890');
    expect(tool.contexts[0]?.origin.context).toEqual({ key: expect.stringContaining('redacted') });
  });

  it('reaches the tools of sub-agents, which have the request’s model and only its tools', async () => {
    const tool = echoTool();
    const other = echoTool('other');
    const small = scripted(
      [
        [call('c1', 'spawn_agents', { tasks: [{ id: 'a', task: 'do' }] })],
        [call('c2', 'echo', { m: '' }), call('c3', 'other', { m: '' })],
        [call('c4', 'submit_result', { result: 'ok' })],
        'done',
      ],
      { id: 'small-1' },
    );
    const on = await bench({ tools: [tool.tool, other.tool, subAgents()], models: { small } });
    const options = { by: 'ann', model: 'small', tools: ['echo', 'spawn_agents'], messageId: 'm1' };
    expect(await on.conversation.send('hi', options).result).toMatchObject({ termination: 'NaturalEnd', text: 'done' });
    expect(tool.contexts.map(({ origin }) => origin)).toEqual([{ messageId: 'm1', by: 'ann' }]);
    expect(other.ran).toEqual([]);
    expect(small.calls[1]?.tools.map(({ name }) => name)).toEqual(['echo', 'submit_result']);
  });

  it('leaves a running cycle as it is where the message is a steer', async () => {
    const gate = gateTool();
    const on = await bench({
      ...{ tools: [gate.tool], models: { small: scripted([]) }, policies: { whileActive: 'steer' } },
      replies: [[call('c1', 'gate')], 'done'],
    });
    const run = on.conversation.send('hi', { by: 'ann' });
    await gate.begun('c1');
    on.conversation.send('faster', { by: 'bob', model: 'small' });
    gate.release('c1');
    expect((await run.result).text).toBe('done');
    const senders = on.conversation.log().flatMap((each) => (each.type === 'user-message' ? [each.by] : []));
    expect(senders).toEqual(['ann', 'bob']);
  });
});

describe('a name that the agent does not have', () => {
  const refused: readonly (readonly [string, SendOptions & { [key: string]: unknown }, RegExp])[] = [
    ['a model', { model: 'big' }, /model names "big".*known are small/],
    ['a tool', { tools: ['echo', 'rm'] }, /tools names "rm".*known are echo/],
    ['a schema', { output: 'invoice' }, /output names "invoice".*known are city/],
    ['a tool to choose', { settings: { toolChoice: { tool: 'rm' } } }, /toolChoice names "rm"/],
    [
      'a tool to choose that the request leaves out',
      { tools: [], settings: { toolChoice: { tool: 'echo' } } },
      /toolChoice/,
    ],
    ['a setting', { settings: { temprature: 1 } as ModelSettings }, /settings\.temprature is unknown/],
    ['a reader', { by: '' }, /by must be a text of 1 to 200/],
    ['a context that is no JSON', { context: { when: new Date() } as never }, /context must be JSON/],
    ['a context of 65 KiB', { context: 'x'.repeat(66_000) }, /context must be JSON of at most 65536 bytes/],
  ];
  it.each(refused)('is refused by send, and nothing is logged: %s', async (_, options, why) => {
    const tools = [echoTool().tool];
    const on = await bench({ tools, models: { small: scripted([]) }, outputs: { city: z.object({}) } });
    const length = on.conversation.log().length;
    expect(() => on.conversation.send('hi', options)).toThrow(ConfigurationError);
    expect(() => on.conversation.send('hi', options)).toThrow(why);
    expect(on.conversation.log()).toHaveLength(length);
  });

  it.each([
    ['model', { model: 'small' }, 'createAgent({ models })'],
    ['output', { output: 'city' }, 'createAgent({ outputs })'],
  ])(
    'ends a run that a later process continues with Error, code configuration, and calls no model: %s',
    async (_, options, hint) => {
      const ask = { tools: [echoTool('ask').tool], plugins: [asks().plugin] };
      const reply = [call('c1', 'ask', { m: '' })];
      const named = { models: { small: scripted([reply]) }, outputs: { city: z.object({}) } };
      const on = await bench({ ...ask, ...named, replies: [reply] });
      await on.conversation.send('hi', options).result;
      const later = await restart(on, { ...ask, replies: ['never'] });
      await later.conversation.decide({ callId: 'c1', action: 'approve' });
      const result = await later.conversation.resume().result;
      expect(result).toMatchObject({ termination: 'Error', error: { code: 'configuration' } });
      expect(result.error?.message).toContain(hint);
      expect(later.model.calls).toEqual([]);
    },
  );
});

describe('a schema by its name', () => {
  it('types nothing, is checked, and holds after a restart', async () => {
    const outputs = { city: z.object({ name: z.string() }) };
    const ask = { tools: [echoTool('ask').tool], plugins: [asks().plugin], outputs };
    const on = await bench({ ...ask, replies: [[call('c1', 'ask', { m: '' })]] });
    await on.conversation.send('where?', { output: 'city' }).result;
    const later = await restart(on, { ...ask, replies: ['no', '{"name":"Bern"}'] });
    await later.conversation.decide({ callId: 'c1', action: 'approve' });
    expect((await later.conversation.resume().result).output).toEqual({ name: 'Bern' });
    expect(only(later.conversation.log(), 'continuation')).toHaveLength(1);
  });

  it('precedes the agent’s own, which holds for other requests', async () => {
    const on = await bench({ output: z.number(), outputs: { word: z.string() }, replies: ['seven', '7'] });
    expect((await on.conversation.send('a', { output: 'word' }).result).output).toBe('seven');
    expect((await on.conversation.send('b').result).output).toBe(7);
  });
});

it('a retry of another model than the agent’s own is logged under the name of that model', async () => {
  const { ModelError } = await import('../../src/index.ts');
  const failing = new ModelError({ code: 'server' });
  const small = scripted([failing, 'done'], { id: 'small-1' });
  const on = await bench({ models: { small }, policies: { modelRetry: { baseMs: 0 } } });
  const run = on.conversation.send('hi', { model: 'small' });
  await entry(on.conversation, 'model-retry');
  await on.clock.advance(60_000);
  expect((await run.result).text).toBe('done');
  expect(on.conversation.log().find(({ type }) => type === 'model-retry')).toMatchObject({ model: 'small-1' });
});
