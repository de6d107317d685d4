/** Tests that options of a test without an effect are refused by name. */
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { createAgent, defineTool, subAgents } from '../../src/index.ts';
import { verdictOf } from '../../src/testing/agentPaths/pathOptions.ts';
import {
  type AgentPathsOptions,
  type AgentWorld,
  agentPaths,
  runScript,
  scriptedModel,
  simulate,
} from '../../src/testing/index.ts';

const act = defineTool({
  name: 'act',
  description: 'Acts.',
  parameters: z.object({ count: z.number().optional() }),
  execute: () => 'done',
});
const agent = (world: AgentWorld) => createAgent({ tools: [act], ...world });
const send = { do: 'send' };
const configuration = { name: 'ConfigurationError', code: 'configuration' };

async function refused(made: Promise<unknown>, message: string): Promise<void> {
  await expect(made).rejects.toThrow(message);
  await expect(made).rejects.toMatchObject(configuration);
}

describe('a script', () => {
  it.each<[unknown, string]>([
    [[], 'runScript needs a list of moves'],
    [undefined, 'runScript needs a list of moves'],
    ['send', 'runScript needs a list of moves'],
    [[null], 'move 1 must be an object'],
    [[{}], 'move 1: do must be one of "send", "steer"'],
    [[{ do: 'sned' }], 'got "sned"'],
    [[send, { do: 'toString' }], 'move 2: do must be one of'],
    [[send, { do: 'reply', txt: 'a' }], 'move 2 (reply): txt is unknown; known are do, text, calls, finish'],
    [[send, { do: 'reply', text: 5 }], 'move 2 (reply): text must be a string, got 5'],
    [[send, { do: 'reply', finish: 'stopp' }], 'move 2 (reply): finish must be one of "stop"'],
    [[send, { do: 'reply', calls: [{ name: 'act', arguments: {} }] }], 'calls[0].arguments is unknown'],
    [[send, { do: 'reply', calls: [{ name: 'act' }] }], 'calls[0].args is missing'],
    [[send, { do: 'reply', calls: {} }], 'move 2 (reply): calls must be a list'],
    [[send, { do: 'modelFails' }], 'move 2 (modelFails): retryable is missing'],
    [[send, { do: 'tool' }], 'move 2 (tool): call is missing'],
    [[send, { do: 'tool', call: 0 }], 'call must be a whole number of at least 1, got 0'],
    [[send, { do: 'tool', call: 1, made: 'timeout' }], 'made must be one of "fail", "timeOut", got "timeout"'],
    [[send, { do: 'decide', call: 1, action: 'allow' }], 'action must be one of'],
    [[send, { do: 'decide', call: 1, action: 'approve', args: {} }], 'args is for action "edit" only'],
    [[send, { do: 'decide', call: 1, action: 'edit', payload: 1 }], 'payload is for action "answer" only'],
    [[send, { do: 'settle', call: 1, how: 'retry', result: 1 }], 'result is for how "ran" only'],
    [[send, { do: 'cancel', during: 'runEnds' }], 'during must be one of'],
    [[send, { do: 'cancel', call: 1 }], 'move 2 (cancel): call is unknown'],
    [[{ do: 'send', fills: -1 }], 'fills must be a number of at least 0'],
  ])('%j is refused: %s', async (script, message) => {
    await refused(runScript(agent, script as never), message);
  });
});

describe('an option', () => {
  it.each<[string, unknown, string]>([
    ['bounds', { round: 1 }, 'bounds.round is unknown; known are rounds, calls'],
    ['bounds', { calls: -1 }, 'bounds.calls must be a whole number of at least 0, got -1'],
    ['bounds', { calls: '2' }, 'bounds.calls must be a whole number'],
    ['bounds', [], 'bounds must be an object'],
    ['moves', ['cancle'], 'moves[0] must be one of "cancel"'],
    ['cover', 'all', 'cover must be one of'],
    ['examples', [], 'examples must be an object by the names of tools'],
    ['examples', { act: {} }, 'examples.act must be a list'],
    ['examples', { act: [{ arguments: {} }] }, 'examples.act[0].arguments is unknown; known are args, then'],
    ['examples', { act: [{}] }, 'examples.act[0].args is missing'],
    // biome-ignore lint/suspicious/noThenProperty: what follows from the arguments; nobody awaits an example.
    ['examples', { act: [{ args: {}, then: 'run' }] }, 'examples.act[0].then must be one of "runs"'],
    ['examples', { act: [], pay: [] }, "examples names the tool pay; the agent's tools are act"],
    ['expect', { pay: () => 'runs' }, 'expect names the tool pay'],
    ['expect', { act: 'runs' }, 'expect.act must be a function'],
    ['stubs', ['pay'], 'stubs names the tool pay'],
    ['stubs', 'none', "stubs must be 'all' or a list of names"],
  ])('%s: %j is refused by both calls', async (name, value, message) => {
    const options = { [name]: value } as AgentPathsOptions;
    await refused(agentPaths(agent, options), message);
    await refused(runScript(agent, [send] as never, options), message);
  });

  it('that is not in an object is refused, as is what makes no agent', async () => {
    for (const options of [[], 5, 'all', null] as never[]) {
      await refused(agentPaths(agent, options), 'the options of agentPaths must be an object');
      await refused(runScript(agent, [send] as never, options), 'the options of runScript must be an object');
    }
    await refused(agentPaths(createAgent({ model: scriptedModel([]) }) as never), 'agentPaths needs a function');
    await refused(runScript({} as never, [send] as never), 'runScript needs a function');
  });

  it('expect returns verdicts and nothing else', async () => {
    for (const verdict of ['run', undefined, true, 'failed']) {
      const options = { expect: { act: () => verdict as never } };
      await refused(agentPaths(agent, options), 'what expect.act returns for {} must be one of "runs"');
    }
  });

  it('names long arguments for which expect returns no verdict, never with half a character', () => {
    for (const length of [198, 199, 200]) {
      let message = '';
      try {
        verdictOf('act', `${'x'.repeat(length)}😀`, 'run');
      } catch (error) {
        message = (error as Error).message;
      }
      expect(message).toContain('what expect.act returns for "xxx');
      expect(message).toMatch(/^\P{Surrogate}*$/u);
    }
  });

  it('may name the tools of sub-agents', async () => {
    const spawning = (world: AgentWorld) => createAgent({ tools: [subAgents({ tools: [act] })], ...world });
    const options = { examples: { act: [{ args: {} }] }, stubs: ['act'] };
    await runScript(spawning, [send, { do: 'reply' }] as never, options);
    await refused(
      runScript(spawning, [send] as never, { stubs: ['submit'] }),
      "the agent's tools are spawn_agents, act",
    );
  });

  it('args of simulate names tools that the agent has', async () => {
    await refused(
      simulate({ seed: 1, agent, args: { pay: [{}] } }),
      "args names the tool pay; the agent's tools are act",
    );
    expect((await simulate({ seed: 1, agent, maxSteps: 2, args: { act: [{}] } })).violations).toEqual([]);
  });
});

describe('a scripted model', () => {
  it.each<[unknown, string]>([
    ['hello', 'scriptedModel needs a list of replies, got "hello"'],
    [[5], 'reply 1 must be a string, { parts, delayMs? }, a ModelError or a function, got 5'],
    [[{ text: 'a' }], 'reply 1 must be a string, { parts, delayMs? }'],
    [[new Error('no')], 'reply 1 must be a string'],
    [['a', { parts: 'b' }], 'reply 2: parts must be a list of parts'],
    [[{ parts: [], delay: 5 }], 'reply 1: delay is unknown; known are parts, delayMs'],
    [[{ parts: ['a'] }], 'reply 1: parts[0] must be an object, got "a"'],
    [[{ parts: [{ type: 'text', text: 'a' }] }], 'reply 1: parts[0].type must be one of "text-delta"'],
    [[{ parts: [{ type: 'text-delta' }] }], 'reply 1: parts[0].text must be a string'],
    [[{ parts: [{ type: 'tool-call', callId: 'a', name: 'b', args: {} }] }], 'parts[0].args must be a string'],
  ])('%j is refused: %s', (replies, message) => {
    expect(() => scriptedModel(replies as never)).toThrow(message);
  });

  it('refuses what a function returns when it is called', () => {
    const model = scriptedModel([() => undefined as never]);
    const request = { system: '', messages: [], tools: [] };
    expect(() => model.stream(request, { signal: new AbortController().signal, attempt: 1 })).toThrow(
      'scriptedModel: what the function for call 1 returned must be a string',
    );
  });

  it('refuses options that it does not have', () => {
    expect(() => scriptedModel([], { price: {} } as never)).toThrow('scriptedModel: the option price is unknown');
  });
});
