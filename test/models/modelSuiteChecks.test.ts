/** Each case of the model suite fails for each model with exactly the fault that the case checks. */
import { describe, expect, it } from 'vitest';
import { failureOf } from '../../src/models/attemptFailure.ts';
import { type Model, ModelError, type ModelPart, type ModelRequest } from '../../src/models/model.ts';
import { openai } from '../../src/models/openai/openai.ts';
import { modelSuite } from '../../src/testing/modelSuite/modelSuite.ts';

type Parts = AsyncIterable<ModelPart>;
interface Fault {
  request?(request: ModelRequest): ModelRequest;
  parts?(parts: Parts): Parts;
  /** The model does not pass its signal on. */
  isDeaf?: true;
}

/** The cases of the suite by their group and name, for a model with the fault. */
function casesWith({ request = (asked) => asked, parts = (all) => all, isDeaf }: Fault) {
  const cases = new Map<string, () => Promise<void>>();
  let group = '';
  const makeModel = ({ baseURL }: { baseURL: string }): Model => {
    const model = openai('suite', { apiKey: 'key-of-the-suite', baseURL });
    const never = new AbortController().signal;
    return {
      id: 'faulty',
      stream: (asked, { signal, attempt }) =>
        parts(model.stream(request(asked), { signal: isDeaf ? never : signal, attempt })),
    };
  };
  modelSuite(makeModel, {
    describe(name, body) {
      group = name;
      body();
    },
    test: (name, body) => void cases.set(`${group} ${name}`, body),
  });
  return cases;
}

const each = (change: (part: ModelPart) => ModelPart[]): Fault => ({
  async *parts(parts) {
    for await (const part of parts) yield* change(part);
  },
});
const atEnd = (change: (parts: ModelPart[]) => ModelPart[]): Fault => ({
  async *parts(parts) {
    const all: ModelPart[] = [];
    for await (const part of parts) all.push(part);
    yield* change(all);
  },
});
const without = (type: ModelPart['type']): Fault => each((part) => (part.type === type ? [] : [part]));
const finishes = (reason: 'stop' | 'length' | 'tool-calls'): Fault =>
  each((part) => [part.type === 'finish' ? { ...part, reason } : part]);
const counts = (field: string, change: (count: number) => number | undefined): Fault =>
  each((part) => {
    if (part.type !== 'finish') return [part];
    const usage = part.usage as unknown as Record<string, number>;
    return [{ ...part, usage: { ...usage, [field]: change(usage[field] ?? 0) } } as unknown as ModelPart];
  });
/** The failure as it is, but for these fields. */
const fails = (fields: { code?: string; retryable?: boolean; retryAfterMs?: number | undefined }): Fault => ({
  async *parts(parts) {
    try {
      yield* parts;
    } catch (error) {
      const { code, retryable, retryAfterMs } = failureOf(error);
      const failure = { code, retryable, ...(retryAfterMs !== undefined && { retryAfterMs }), ...fields };
      throw new ModelError({ message: 'changed', ...failure } as never);
    }
  },
});
/** A failed or aborted reply ends as if it were complete. */
const endsWell: Fault = {
  async *parts(parts) {
    try {
      yield* parts;
    } catch {
      yield { type: 'finish', reason: 'stop' };
    }
  },
};
const calls = (change: (call: Extract<ModelPart, { type: 'tool-call' }>) => object): Fault =>
  each((part) => [part.type === 'tool-call' ? ({ ...part, ...change(part) } as ModelPart) : part]);
const asks = (change: (request: ModelRequest) => Partial<ModelRequest>): Fault => ({
  request: (request) => ({ ...request, ...change(request) }),
});
/** The messages with another text in their JSON. */
const replacing = (text: string, other: string): Fault =>
  asks(({ messages }) => ({ messages: JSON.parse(JSON.stringify(messages).replace(text, other)) }));
const isCall = ({ type }: ModelPart): boolean => type === 'tool-call';

const aborted: Readonly<Record<string, Fault>> = { 'ends as if it were whole': endsWell };
const final: Readonly<Record<string, Fault>> = {
  'reports a final failure': fails({ retryable: false }),
  'ends as if it were whole': endsWell,
};
const refused = (isPassing: boolean): Readonly<Record<string, Fault>> => ({
  'has another code': fails({ code: 'timeout' }),
  'has the wrong word on another attempt': fails({ retryable: !isPassing }),
  'ends as if it were whole': endsWell,
});

/** The models that each case refuses. */
const FAULTS: Readonly<Record<string, Readonly<Record<string, Fault>>>> = {
  'a reply text comes in pieces as it is streamed, and ends with a finish': {
    'comes at once': atEnd((parts) => [
      { type: 'text-delta', text: parts.map((part) => (part.type === 'text-delta' ? part.text : '')).join('') },
      ...parts.filter(({ type }) => type !== 'text-delta'),
    ]),
    'lacks a piece': each((part) => (part.type === 'text-delta' && part.text === 'lo' ? [] : [part])),
    'has no finish': without('finish'),
    'has another finish': finishes('length'),
    'has a part after its finish': each((part) =>
      part.type === 'finish' ? [part, { type: 'text-delta', text: '' }] : [part],
    ),
  },
  'a reply reasoning comes apart from text': {
    'reports it as text': each((part) => [part.type === 'reasoning-delta' ? { ...part, type: 'text-delta' } : part]),
    'is dropped': without('reasoning-delta'),
    'takes the text with it': each((part) => [
      part.type === 'text-delta' ? { ...part, type: 'reasoning-delta' } : part,
    ]),
    'is cut': each((part) => (part.type === 'reasoning-delta' && part.text === 'yes' ? [] : [part])),
  },
  'a reply calls made side by side come whole and in order, each with its id and its arguments': {
    'are in another order': atEnd((parts) => [
      ...parts.filter((part) => isCall(part)).reverse(),
      ...parts.filter((part) => !isCall(part)),
    ]),
    'have other ids': calls(({ callId }) => ({ callId: `${callId}1` })),
    'have another name': calls(() => ({ name: 'see' })),
    'have no arguments': calls(() => ({ args: '{}' })),
    'lack one': each((part) => (part.type === 'tool-call' && part.callId === 'b' ? [] : [part])),
    'are no reason of the finish': finishes('stop'),
  },
  'a reply a server that says stop although it called a tool has called it': {
    'is believed': finishes('stop'),
    'loses the call': without('tool-call'),
    'has the call twice': each((part) => (isCall(part) ? [part, part] : [part])),
  },
  'a reply a reply that was cut by its length says so': { 'reports a whole reply': finishes('stop') },
  'a reply token counts come with the finish, those of the cache among the input': {
    ...Object.fromEntries(
      ['inputTokens', 'outputTokens', 'cachedInputTokens', 'reasoningTokens'].flatMap((field) => [
        [`lack ${field}`, counts(field, () => undefined)],
        [`have one more in ${field}`, counts(field, (count) => count + 1)],
      ]),
    ),
    'have the cache beside the input': counts('inputTokens', (count) => count - 7),
  },
  'a request system text, tools and messages reach the server, each result directly behind its calls': {
    'lacks the system text': asks(() => ({ system: '' })),
    'lacks the tools': asks(() => ({ tools: [] })),
    'has another tool': asks(({ tools }) => ({ tools: tools.map((tool) => ({ ...tool, name: 'see' })) })),
    'has a tool twice': asks(({ tools }) => ({
      tools: [...tools, ...tools.map((tool) => ({ ...tool, name: 'see' }))],
    })),
    'has another system text': asks(() => ({ system: 'be long' })),
    'has another description of a tool': asks(({ tools }) => ({
      tools: tools.map((tool) => ({ ...tool, description: 'x' })),
    })),
    'has other parameters of a tool': asks(({ tools }) => ({
      tools: tools.map((tool) => ({ ...tool, parameters: {} })),
    })),
    'has another text of the user': replacing('go', 'stop'),
    'has other arguments in a call': replacing('"args":{"at":"b"}', '"args":{}'),
    'has another name in a call': replacing('"callId":"b","name":"look"', '"callId":"b","name":"see"'),
    'has another text in a result': replacing('saw b', 'saw'),
    'lacks the first message': asks(({ messages }) => ({ messages: messages.slice(1) })),
    'has its results in another order': asks(({ messages: [first, second, a, b] }) => ({
      messages: [first, second, b, a].flatMap((message) => message ?? []),
    })),
  },
  'a request an image of the user reaches the server byte for byte': {
    'loses the image': asks(() => ({ messages: [{ role: 'user', content: [{ type: 'text', text: 'x' }] }] })),
    'changes a byte': asks(({ messages }) => ({
      messages: JSON.parse(JSON.stringify(messages).replace('iVBORw0K', 'iVBORw0L')),
    })),
  },
  'an abort before the call asks nobody': { 'asks all the same': { isDeaf: true } },
  'an abort while the server is silent ends the call': aborted,
  'an abort before the first chunk ends the call': aborted,
  'an abort in the middle of the reply ends the call, and nothing comes behind it': {
    ...aborted,
    'has changed its text': each((part) => [part.type === 'text-delta' ? { ...part, text: 'aa' } : part]),
  },
  'an abort in the middle of a call ends it, and the call is not made': {
    ...aborted,
    'is made of its beginning': each((part) => [
      part.type === 'text-delta' ? part : { type: 'tool-call', callId: 'a', name: 'look', args: '{}' },
    ]),
  },
  ...Object.fromEntries(
    [400, 401, 403, 404, 429, 500, 503].map((status) => {
      const [code, isPassing] = {
        ...{ 400: ['bad-request', false], 401: ['auth', false], 403: ['auth', false], 404: ['not-found', false] },
        ...{ 429: ['rate-limit', true], 500: ['server', true], 503: ['server', true] },
      }[status] as [string, boolean];
      const words = isPassing ? 'worth' : 'not worth';
      return [`a failure with status ${status} is ${code}, ${words} another attempt`, refused(isPassing)];
    }),
  ),
  'a failure tells the wait that the server asks for': {
    'tells none': fails({ retryAfterMs: undefined }),
    'tells seconds': fails({ retryAfterMs: 7 }),
  },
  'a failure for want of credit is not worth another attempt': {
    'reports a rate limit': fails({ code: 'rate-limit' }),
    'reports that it is worth another attempt': fails({ retryable: true }),
  },
  'a failure of a connection that is cut is worth another attempt': final,
  'a failure of a reply without a finish reason is worth another attempt': final,
  'a failure of a reply without a chunk is worth another attempt': final,
  'a failure in the stream fails the attempt, though text came before it': final,
};

it('every case has faults', () => {
  expect(Object.keys(FAULTS).sort()).toEqual([...casesWith({}).keys()].sort());
});

describe.each(Object.entries(FAULTS))('%s', (name, faults) => {
  it('passes a model without a fault', async () => {
    await casesWith({}).get(name)?.();
  });

  it.each(Object.entries(faults))('fails where it %s', async (_, fault) => {
    await expect(casesWith(fault).get(name)?.()).rejects.toMatchObject({ code: 'ERR_ASSERTION' });
  });
});
