import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  type AgentOptions,
  type Conversation,
  createAgent,
  defineTool,
  type Model,
  ModelError,
} from '../../src/index.ts';
import { openai } from '../../src/models/openai/openai.ts';
import { callDelta, DONE, delta, finished, frame, KEY, served, textDelta } from '../models/scriptedFetch.ts';
import { entriesOf, opened, plainTool, settle, stillClock, until } from './hostileAgent.ts';
import { watchEachTest } from './hostileChecks.ts';

watchEachTest();

type Answer = (request: Request, signal: AbortSignal) => Response | Promise<Response>;

/** A chat model over an injected fetch, and its sent requests. */
function chat(answer: Answer, more: object = {}) {
  const requests: { messages: { role: string }[] }[] = [];
  const fetch: typeof globalThis.fetch = async (input, init) => {
    requests.push(JSON.parse(String(init?.body)) as (typeof requests)[number]);
    return answer(input as Request, init?.signal ?? new AbortController().signal);
  };
  return { model: openai('test-model', { apiKey: KEY, baseURL: 'http://model.test/v1', fetch, ...more }), requests };
}

async function world(model: Model, more: Partial<AgentOptions> = {}) {
  const clock = stillClock();
  const ports = { now: clock.now, setTimer: clock.setTimer, random: () => 0 };
  return { clock, conversation: await opened({ model, ports, ...more }) };
}
const spoken = (text: string): Response => served([frame(textDelta(text), finished('stop')), DONE]);
const failing = (status: number, error: object, headers: object = {}): Response =>
  new Response(JSON.stringify({ error }), { status, headers: { 'content-type': 'application/json', ...headers } });

/** Waits until a condition is true, with real turns of the event loop, which streams need. */
const done = async (conversation: Conversation): Promise<void> => until(() => conversation.status !== 'active');

describe('H-034 endless empty replies', () => {
  const empties: [string, () => Response][] = [
    ['no text', () => served([frame(finished('stop')), DONE])],
    ['an empty text', () => served([frame(textDelta(''), finished('stop')), DONE])],
    ['blanks', () => served([frame(textDelta(' \n\t'), finished('stop')), DONE])],
    ['invalid calls', () => served([frame(finished('tool_calls')), DONE])],
  ];
  test.each(empties)('%s: three in a row end the run', async (_, answer) => {
    const { model, requests } = chat(answer);
    const { conversation } = await world(model);
    const { termination, cause } = await conversation.send('go').result;
    expect([termination, cause, requests.length]).toEqual(['Stopped', 'empty_replies', 3]);
  });

  test('a reply with text in between resets the count', async () => {
    let count = 0;
    const { model, requests } = chat(() => {
      count += 1;
      return count === 3 ? spoken('there you are') : served([frame(finished('stop')), DONE]);
    });
    const { conversation } = await world(model);
    expect((await conversation.send('go').result).text).toBe('there you are');
    expect(requests).toHaveLength(3);
  });
});

describe('H-036 the same call without end', () => {
  const calling = (): Response => {
    const call = { index: 0, id: 'same', type: 'function', function: { name: 'look', arguments: '{"a":1,"b":[2]}' } };
    return served([frame(callDelta(call), finished('tool_calls')), DONE]);
  };
  const look = (answer: () => unknown) =>
    defineTool({ name: 'look', description: '', parameters: z.looseObject({}), execute: answer });

  test('it ends the run long before the limit of turns', async () => {
    const { model, requests } = chat(calling);
    const { conversation } = await world(model, { tools: [look(() => 'nothing new')] });
    const { termination, cause, turns } = await conversation.send('go').result;
    expect([termination, cause, turns, requests.length]).toEqual(['Stopped', 'no_progress', 8, 8]);
  });

  test('the same is true if every call fails in the same way', async () => {
    const { model } = chat(calling);
    const { conversation } = await world(model, { tools: [look(() => Promise.reject(new Error('no')))] });
    expect((await conversation.send('go').result).cause).toBe('no_progress');
  });

  test('the same is true for an unknown tool', async () => {
    const { model } = chat(calling);
    const { conversation } = await world(model, { tools: [plainTool('other', () => 1)] });
    expect((await conversation.send('go').result).cause).toBe('no_progress');
  });

  test('a result that changes counts as progress', async () => {
    let count = 0;
    const { model } = chat(calling);
    const tools = [look(() => (count += 1))];
    const { conversation } = await world(model, { tools, policies: { limits: { turns: 20 } } });
    expect((await conversation.send('go').result).cause).toBe('max_turns');
  });
});

describe('H-042 a provider that requests a long wait', () => {
  const busy = (seconds: string) => () =>
    failing(429, { message: 'slow down', type: 'rate_limit' }, { 'retry-after': seconds });

  test('a wait of days fails at once', async () => {
    const { model, requests } = chat(busy('277403'));
    const { conversation, clock } = await world(model);
    const { termination, error } = await conversation.send('go').result;
    expect([termination, error?.code, requests.length, clock.waiting]).toEqual(['Error', 'rate-limit', 1, 0]);
  });

  test('a wait of seconds lasts exactly as long as requested', async () => {
    let count = 0;
    const { model, requests } = chat((...args) => {
      count += 1;
      return count === 1 ? busy('7')() : spoken(String(args.length));
    });
    const { conversation, clock } = await world(model);
    const { result } = conversation.send('go');
    await until(() => entriesOf(conversation.log(), 'model-retry').length === 1);
    expect(entriesOf(conversation.log(), 'model-retry')[0]?.waitMs).toBe(7_000);
    await clock.advance(6_999);
    expect(requests).toHaveLength(1);
    await clock.advance(1);
    expect((await result).termination).toBe('NaturalEnd');
  });

  test('a cancel does not wait', async () => {
    const { model, requests } = chat(busy('50'));
    const { conversation, clock } = await world(model);
    const run = conversation.send('go');
    await until(() => entriesOf(conversation.log(), 'model-retry').length === 1);
    const before = clock.now();
    await run.cancel();
    expect([(await run.result).termination, clock.now() - before, requests.length]).toEqual(['Cancelled', 0, 1]);
    expect(clock.waiting).toBe(0);
  });
});

test.each([
  ['H-043 a spent quota', 429, { message: 'You exceeded your quota', code: 'insufficient_quota' }, 'quota'],
  ['a refused key', 401, { message: 'bad key' }, 'auth'],
  ['a request the provider cannot take', 400, { message: 'bad' }, 'bad-request'],
  ['an unknown model', 404, { message: 'no such model' }, 'not-found'],
])('%s ends the run after one attempt', async (_, status, error, code) => {
  const { model, requests } = chat(() => failing(status, error));
  const { conversation } = await world(model);
  const result = await conversation.send('go').result;
  expect([result.termination, result.cause, result.error?.code, requests.length]).toEqual(['Error', 'model', code, 1]);
  expect(JSON.stringify([result, conversation.log()])).not.toContain(KEY);
});

test.each([500, 502, 503, 504, 529])(
  "H-044 an endless status of %i is tried four times, because the client's own retries are off",
  async (status) => {
    const { model, requests } = chat(() => failing(status, { message: 'down' }));
    const { conversation, clock } = await world(model);
    const { result } = conversation.send('go');
    for (let turn = 0; turn < 20 && conversation.status === 'active'; turn++) {
      await settle();
      await clock.advance(60_000);
    }
    expect([(await result).termination, requests.length]).toEqual(['Error', 4]);
    expect(entriesOf(conversation.log(), 'model-retry').map(({ waitMs }) => waitMs)).toEqual([1_000, 2_000, 4_000]);
  },
);

describe('H-045 a cancel while the stream is read', () => {
  test('a cancel that the client swallows is still an interruption, never a completion', async () => {
    const { model } = chat((_, signal) => {
      // Ends normally after an abort.
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          controller.enqueue(new TextEncoder().encode(frame(textDelta('half a '))));
          signal.addEventListener('abort', () => controller.close());
        },
      });
      return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
    });
    const { conversation, clock } = await world(model);
    const run = conversation.send('go');
    await settle();
    await settle();
    await run.cancel();
    expect(await run.result).toMatchObject({ termination: 'Cancelled', reason: 'interrupted', text: '' });
    expect(entriesOf(conversation.log(), 'run-stop').map(({ reason }) => reason)).toEqual(['interrupted']);
    expect(entriesOf(conversation.log(), 'agent-output')).toEqual([]);
    expect(clock.waiting).toBe(0);
  });

  test('a cancel does not wait for a client that ignores it', async () => {
    const { model } = chat(() => served([frame(delta({ content: 'half' }))], { end: 'hang' }));
    const { conversation } = await world(model);
    const run = conversation.send('go');
    await settle();
    await run.cancel();
    expect((await run.result).termination).toBe('Cancelled');
  });

  test('a cancel ends a request that is never answered', async () => {
    const { model } = chat(() => new Promise(() => undefined));
    const { conversation } = await world(model);
    const run = conversation.send('go');
    await settle();
    await conversation.cancel();
    await done(conversation);
    expect((await run.result).termination).toBe('Cancelled');
  });

  test('a cancel keeps the partial reply under partialReply keep', async () => {
    const { model } = chat(() => served([frame(delta({ content: 'half' }))], { end: 'hang' }));
    const { conversation } = await world(model, { policies: { partialReply: 'keep' } });
    const run = conversation.send('go');
    let streamed = '';
    const listening = conversation.live$.subscribe((signal) => {
      if (signal.type === 'text-delta') streamed += signal.text;
    });
    await until(() => streamed === 'half');
    await run.cancel();
    listening.unsubscribe();
    const [output] = entriesOf(conversation.log(), 'agent-output');
    expect(output?.item).toEqual({ type: 'assistant', text: 'half', flag: 'interrupted' });
  });
});

test('a model without a key is refused at its creation, and its name is a text', () => {
  expect(() => openai('', { apiKey: KEY })).toThrow(/name/);
  expect(() => createAgent({ model: undefined as never })).toThrow(/model/);
  expect(new ModelError({ code: 'server' }).retryable).toBe(true);
});
