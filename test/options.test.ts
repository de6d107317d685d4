/**
 * Tests every option of an agent, its parts and its methods: accepted values, and the refusal of all others by name.
 */
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import {
  type AgentOptions,
  ConfigurationError,
  createAgent,
  defineTool,
  memoryStore,
  type Plugin,
  subAgents,
} from '../src/index.ts';
import { modelValidator, pricesValidator } from '../src/models/model.ts';
import { agentValidator } from '../src/options.ts';
import { pluginValidator } from '../src/plugins/plugin.ts';
import { portsValidator } from '../src/runtime/hostPorts.ts';
import { toolValidator } from '../src/tools/tool.ts';
import { anything, type Validator } from '../src/validation.ts';
import { scripted } from './support/scriptedReplies.ts';

const model = scripted([]);
const tool = { name: 'a', description: '', parameters: z.object({}), execute: () => '' };

/** Returns the text of the refusal. Undefined if the value is accepted. */
function refusal(act: () => unknown): string | undefined {
  try {
    act();
    return undefined;
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigurationError);
    return (error as Error).message;
  }
}
async function rejection(act: () => Promise<unknown>): Promise<string | undefined> {
  const thrown = await act().then(
    () => undefined,
    (error: unknown) => error,
  );
  return thrown === undefined
    ? undefined
    : refusal(() => {
        throw thrown;
      });
}
const start = (options: object) => () => createAgent({ model, ...options } as AgentOptions);
const define = (options: object) => () => defineTool({ ...tool, ...options } as typeof tool);
const plugged = (plugin: unknown) => start({ plugins: [plugin] });
const playing = (fields: object) => start({ model: { ...model, ...fields } });
const costing = (prices: unknown) => playing({ prices });

const values: Record<string, unknown> = {
  null: null,
  text: 'x',
  empty: '',
  object: {},
  list: [1],
  none: [],
  NaN: Number.NaN,
  infinite: Number.POSITIVE_INFINITY,
  negative: -1,
  zero: 0,
  half: 0.5,
  true: true,
  false: false,
  function: () => undefined,
  symbol: Symbol('s'),
  big: 1n,
};
const all = Object.keys(values);
const except = (...taken: string[]): string[] => all.filter((name) => !taken.includes(name));

const phases =
  'runStart stepStart beforeInference afterInference beforeToolExecute afterToolExecute stepEnd naturalEnd preCompact runEnd'.split(
    ' ',
  );
const ports = ['now', 'newId', 'random', 'setTimer', 'scaleImage', 'journal', 'interpreter', 'execute'];
const rows = (keys: readonly string[], wrong: string[]) => Object.fromEntries(keys.map((key) => [key, wrong]));
const numbers = ['zero', 'half'];

/** For each table: the way to pass a value, and the refused values. */
const tables: [string, Validator, (key: string, value: unknown) => () => unknown, Record<string, string[]>][] = [
  [
    'createAgent',
    agentValidator,
    (key, value) => start({ [key]: value }),
    {
      model: all,
      instructions: except('text', 'empty'),
      tools: except('none'),
      plugins: except('none'),
      store: all,
      cwd: except('text'),
      inspect: except('function'),
      interpreter: all,
      logger: except('object'),
      secrets: except('none'),
      models: except('object'),
      outputs: except('object'),
      output: all,
      authorize: except('function'),
    },
  ],
  [
    'the ports',
    portsValidator,
    (key, value) => start({ ports: { [key]: value } }),
    { ...rows(ports, except('function')), store: all },
  ],
  [
    'a plugin',
    pluginValidator,
    (key, value) => plugged({ name: 'p', [key]: value }),
    { required: except('true', 'false'), ...rows(phases, except('function')) },
  ],
  [
    'a model',
    modelValidator,
    (key, value) => playing({ [key]: value }),
    {
      id: except('text'),
      contextWindow: except('infinite', ...numbers),
      maxOutputTokens: except('infinite', ...numbers),
      secrets: except('none'),
      nativeOutput: except('true', 'false'),
      accepts: except('none'),
    },
  ],
  [
    'prices',
    pricesValidator,
    (key, value) => costing({ input: 1, output: 1, [key]: value }),
    rows(['input', 'output', 'cachedInput', 'cacheWrite'], except(...numbers)),
  ],
  [
    'defineTool',
    toolValidator,
    (key, value) => define({ [key]: value }),
    {
      description: except('text', 'empty'),
      readOnly: except('true', 'false'),
      idempotent: except('true', 'false'),
      timeoutMs: except('infinite', ...numbers),
      group: all,
      needsApproval: except('true', 'false', 'function'),
    },
  ],
];

describe.each(tables)('the table of %s', (_, { fields = {} }, give, refused) => {
  it('has a row for every option', () => {
    const named = Object.keys(fields).filter((key) => fields[key] !== anything);
    expect(Object.keys(refused).sort()).toEqual(named.sort());
  });

  it.each(Object.entries(refused))('%s refuses what cannot work by its name, and takes the rest', (key, wrong) => {
    const refusedNames = all.filter((name) => refusal(give(key, values[name])) !== undefined);
    expect(refusedNames).toEqual(wrong);
    for (const name of wrong) expect(refusal(give(key, values[name]))).toMatch(new RegExp(`${key}|tools|plugin`));
  });
});

describe('createAgent', () => {
  it.each([undefined, null, 5, 'x', [[]], () => undefined])('refuses options that are %s', (options) => {
    expect(refusal(() => createAgent(options as never))).toMatch(/createAgent/);
  });

  it('requires a model', () => {
    expect(refusal(start({ model: undefined }))).toMatch(/needs a model, for example/);
  });

  it.each([null, 5, 'x', [[]]])('refuses ports that are %s, and an unknown port', (portsOption) => {
    expect(refusal(start({ ports: portsOption }))).toMatch(/the option ports must be an object/);
    expect(refusal(start({ ports: { sleep: () => undefined } }))).toMatch(/ports\.sleep is unknown; known are now, /);
  });

  it('a port that is undefined has its default', async () => {
    const agent = createAgent({ model, ports: { newId: undefined, now: undefined } } as never);
    expect((await agent.open()).id).toMatch(/.{8}/);
    await agent.close();
  });

  it('never quotes a secret or what a model holds', () => {
    const held = { id: 'm', apiKey: 'sk-hidden', secrets: ['sk-hidden'] };
    const fallbackModels = [held];
    const wrong = [
      { secrets: 'sk-hidden' },
      { secrets: ['sk-hidden', 5] },
      { model: held },
      { model: { ...model, ...held, secrets: 'sk-hidden' } },
      { model: { ...model, prices: { input: 'sk-hidden', output: 1 } }, secrets: 5 },
      { policies: { modelRetry: { fallbackModels } } },
    ];
    for (const options of wrong) expect(refusal(start(options))).toMatch(/^((?!sk-hidden).)+$/);
  });

  it('a fallback model, and the model of sub-agents, is looked at as the model is', () => {
    const odd = { ...model, id: 'odd', prices: { input: Number.NaN, output: 1 } };
    const refused = /the model odd: prices\.input must be a finite number of USD of at least 0, got NaN/;
    expect(refusal(start({ policies: { modelRetry: { fallbackModels: [odd] } } }))).toMatch(refused);
    expect(refusal(start({ tools: [subAgents({ model: odd })] }))).toMatch(refused);
    expect(refusal(playing({ id: undefined }))).toMatch(/a model needs an id/);
  });

  it.each([{}, { input: 1 }, { output: 1 }, null, 5, [[]]])('prices %j are refused', (prices) => {
    expect(refusal(costing(prices))).toMatch(/the model scripted: prices must /);
  });

  it('a model may be an instance of a class and hold what it needs', () => {
    class Own {
      readonly id = 'own';
      readonly client = {};
      stream = model.stream;
    }
    expect(refusal(start({ model: new Own() }))).toBeUndefined();
  });
});

describe('a plugin', () => {
  it('with an unknown phase is refused: a guard that is never called guards nothing', () => {
    const guard = { name: 'guard', beforeTool: () => ({ block: 'no' }) };
    expect(refusal(plugged(guard))).toMatch(/plugin "guard": the phase beforeTool is unknown; known are runStart, /);
  });

  it('may hold what it needs; an instance of a class may have methods of its own too', () => {
    class Counting implements Plugin {
      readonly name = 'counting';
      seen = 0;
      readonly note = () => this.count();
      count(): void {
        this.seen += 1;
      }
      runStart(): void {
        this.note();
      }
    }
    expect(refusal(plugged(new Counting()))).toBeUndefined();
    expect(refusal(plugged({ name: 'p', seen: 0, notes: [], runStart: undefined }))).toBeUndefined();
  });

  it.each([null, 5, 'x', {}, { name: '' }, { name: 5 }])('%j is none without a name', (plugin) => {
    expect(refusal(plugged(plugin))).toMatch(/a plugin needs a name/);
  });
});

describe('defineTool', () => {
  it('refuses an unknown key: a misspelt approval would let the tool run without it', () => {
    const misspelt = define({ needsAproval: true });
    expect(refusal(misspelt)).toMatch(/tool "a": needsAproval is unknown; known are name, .*needsApproval/);
  });

  it.each(['read file', 'mcp.server/tool', 'năm', 'a\n', 'n'.repeat(65)])(
    'refuses the name %j, which no provider takes',
    (name) => {
      expect(refusal(define({ name }))).toMatch(/the name of the tool .* must be 1 to 64 of the characters/);
    },
  );

  it('a definition may be an instance of a class', () => {
    class Own {
      readonly name = 'a';
      readonly description = '';
      readonly parameters = tool.parameters;
      readonly cache = new Map();
      execute(): string {
        return '';
      }
    }
    expect(refusal(() => defineTool(new Own()))).toBeUndefined();
  });
});

describe('the verbs', () => {
  it.each([5, '', null, {}])('open refuses %j for an id', async (id) => {
    const agent = createAgent({ model });
    expect(await rejection(() => agent.open(id as string))).toMatch(/the id of a conversation must be a string/);
    await agent.close();
  });

  it.each([
    [{ foo: 5 }, /open: the option foo is unknown; known are history, cwd/],
    [{ cwd: 5 }, /open: cwd must be a string that is not empty, got 5/],
    [{ history: 'x' }, /open: history must be a list of messages/],
    [5, /the options of open must be an object, got 5/],
    [null, /the options of open must be an object, got null/],
  ])('open refuses the options %j', async (options, words) => {
    const agent = createAgent({ model });
    expect(await rejection(() => agent.open('x', options as object))).toMatch(words);
    await agent.close();
  });

  it.each([
    ['steer', /the options of send must be an object/],
    [null, /the options of send must be an object, got null/],
    [{ foo: 1 }, /send: the option foo is unknown; known are kind, messageId, output, signal, whileSuspended/],
    [{ kind: 'direct' }, /send: kind must be one of "steer", "followUp", got "direct"/],
    [{ signal: {} }, /send: signal must be an AbortSignal/],
  ])('send and agent.run refuse the options %j, and nothing is sent', async (options, words) => {
    const agent = createAgent({ model });
    const conversation = await agent.open();
    expect(refusal(() => conversation.send('x', options as object))).toMatch(words);
    expect(await rejection(() => agent.run('x', options as object))).toMatch(words);
    expect(conversation.log()).toHaveLength(1);
    await agent.close();
  });

  it('agent.run leaves no conversation of a message that is refused, even if the store cannot delete it', async () => {
    const store = memoryStore();
    const agent = createAgent({ model: scripted(['answer']), store });
    expect(await rejection(() => agent.run([]))).toMatch(/this content is empty/);
    expect(await rejection(() => agent.run('x', { model: 'none' }))).toMatch(/names "none"/);
    expect(await agent.list()).toEqual([]);
    expect((await agent.run('x')).text).toBe('answer');
    expect(await agent.list()).toHaveLength(1);
    const kept = createAgent({ model, store: { ...store, delete: () => Promise.reject(new Error('not allowed')) } });
    expect(await rejection(() => kept.run([]))).toMatch(/this content is empty/);
    // An id that is in use names an older conversation, which stays.
    const newId = (): string => 'used';
    const repeats = createAgent({ model: scripted(['first']), store, ports: { newId } });
    await repeats.run('x');
    expect(await rejection(() => repeats.run([]))).toMatch(/this content is empty/);
    expect((await repeats.list()).map(({ id }) => id)).toContain('used');
    await Promise.all([agent.close(), kept.close(), repeats.close()]);
  });

  it('subAgents refuses tools that are no list', () => {
    expect(refusal(() => subAgents({ tools: 'x' as never }))).toMatch(/tools must be a list of tools/);
  });
});
