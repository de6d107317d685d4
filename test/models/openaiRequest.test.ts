import { getEventListeners } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { format, inspect } from 'node:util';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import type { Json } from '../../machines/vocabulary.ts';
import { ConfigurationError } from '../../src/errors.ts';
import { createAgent, defineTool } from '../../src/index.ts';
import { openai } from '../../src/models/openai/openai.ts';
import {
  callDelta,
  DONE,
  finished,
  finishIn,
  frame,
  KEY,
  play,
  request,
  served,
  textDelta,
  textIn,
  userSays,
} from './scriptedFetch.ts';

const good = frame(textDelta('hel'), textDelta('lo'), finished('stop')) + DONE;

interface Seen {
  method: string | undefined;
  url: string | undefined;
  headers: IncomingMessage['headers'];
  body: string;
  port: number | undefined;
}

const servers: Server[] = [];
/** A chat completions server on the loopback interface; `answer` writes the reply. */
async function serve(
  answer: (response: ServerResponse, at: number) => void,
): Promise<{ baseURL: string; seen: Seen[] }> {
  const seen: Seen[] = [];
  const server = createServer((asked, response) => {
    let body = '';
    asked.setEncoding('utf8');
    asked.on('data', (piece: string) => {
      body += piece;
    });
    asked.on('end', () => {
      const { method, url, headers } = asked;
      seen.push({ method, url, headers, body, port: asked.socket.remotePort });
      answer(response, seen.length);
    });
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { baseURL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, seen };
}
const answerGood = (response: ServerResponse): void => {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write(good.slice(0, 40));
  setTimeout(() => response.end(good.slice(40)), 2);
};

/** Returns a tool that only records the paths of its calls. */
function reader() {
  const calls: string[] = [];
  const tool = defineTool({
    name: 'read',
    description: 'reads',
    parameters: z.object({ path: z.string() }),
    execute: ({ path }) => {
      calls.push(path);
      return 'text';
    },
  });
  return { tool, calls };
}

afterEach(async () => {
  vi.unstubAllEnvs();
  vi.unstubAllGlobals();
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

describe('a request over HTTP', () => {
  it('posts one JSON body to the chat completions of the base URL, with the key', async () => {
    const { baseURL, seen } = await serve(answerGood);
    const model = openai('some/model', { apiKey: KEY, baseURL, headers: { 'X-Title': 'demo' } });
    const parameters: Json = { type: 'object', properties: { path: { type: 'string' } } };
    const { parts, error } = await play(
      model,
      request({
        system: 'be brief',
        messages: [userSays('héllo 🎉')],
        tools: [{ name: 'read', description: 'reads', parameters }],
        maxOutputTokens: 99,
        temperature: 0,
      }),
    );
    expect(error).toBeUndefined();
    expect(textIn(parts)).toBe('hello');
    expect(seen).toHaveLength(1);
    expect(seen[0]).toMatchObject({ method: 'POST', url: '/v1/chat/completions' });
    expect(seen[0]?.headers).toMatchObject({
      authorization: `Bearer ${KEY}`,
      'content-type': 'application/json',
      'x-title': 'demo',
    });
    expect(JSON.parse(seen[0]?.body ?? '')).toEqual({
      model: 'some/model',
      messages: [
        { role: 'system', content: 'be brief' },
        { role: 'user', content: 'héllo 🎉' },
      ],
      tools: [{ type: 'function', function: { name: 'read', description: 'reads', parameters } }],
      max_tokens: 99,
      temperature: 0,
      stream: true,
      stream_options: { include_usage: true },
    });
  });

  it('TRC-8 streams a completion over HTTP: text and calls in pieces come to one reply, with its reason and usage', async () => {
    const call = (fields: object) => callDelta({ index: 0, ...fields });
    const usage = { prompt_tokens: 12, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 4 } };
    const chunks = [
      textDelta('I lo'),
      textDelta('ok.'),
      call({ id: 'a', type: 'function', function: { name: 'read', arguments: '{"pa' } }),
      call({ function: { arguments: 'th":"x"}' } }),
      finished('tool_calls'),
      { choices: [], usage },
    ];
    const bytes = Buffer.from(frame(...chunks) + DONE);
    const { baseURL } = await serve((response, at) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      if (at > 1) return void response.end(good);
      // This is in the middle of an event, in any form that the network gives it.
      response.write(bytes.subarray(0, 300));
      setTimeout(() => response.end(bytes.subarray(300)), 2);
    });
    const { tool, calls } = reader();
    const agent = createAgent({ model: openai('m', { apiKey: KEY, baseURL }), tools: [tool] });
    const conversation = await agent.open();
    expect(await conversation.send('read x').result).toMatchObject({
      termination: 'NaturalEnd',
      text: 'hello',
      turns: 2,
    });
    expect(calls).toEqual(['x']);
    const replied = conversation.log().filter(({ type }) => type === 'agent-output' || type === 'model-reply');
    expect(replied.slice(0, 3)).toMatchObject([
      { item: { type: 'assistant', text: 'I look.' } },
      { item: { type: 'tool-call', callId: 'a', name: 'read', args: { path: 'x' } } },
      { finish: 'tool-calls', usage: { inputTokens: 12, outputTokens: 5, cachedInputTokens: 4 } },
    ]);
    await agent.close();
  });

  it('omits tools, limits and temperature unless they are set', async () => {
    const { baseURL, seen } = await serve(answerGood);
    await play(openai('m', { apiKey: KEY, baseURL }));
    expect(Object.keys(JSON.parse(seen[0]?.body ?? ''))).toEqual(['model', 'messages', 'stream', 'stream_options']);
  });

  it('keeps the connection for later calls', async () => {
    const { baseURL, seen } = await serve(answerGood);
    const model = openai('m', { apiKey: KEY, baseURL });
    for (let at = 0; at < 8; at += 1) expect(finishIn((await play(model)).parts)).toBeDefined();
    expect(seen).toHaveLength(8);
    // The client takes a moment to see that a connection is free, so a second one is in order.
    expect(new Set(seen.map((one) => one.port)).size).toBeLessThanOrEqual(2);
  });

  it('H-044 makes no request of its own after a failure', async () => {
    const { baseURL, seen } = await serve((response) => response.writeHead(503, { 'retry-after': '1' }).end('busy'));
    const { error } = await play(openai('m', { apiKey: KEY, baseURL }));
    expect(error).toMatchObject({ code: 'server', status: 503, retryAfterMs: 1000 });
    expect(seen).toHaveLength(1);
  });

  it('a server that drops the connection is a network failure', async () => {
    const { baseURL } = await serve((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(frame(textDelta('par')), () => response.destroy());
    });
    const { parts, error } = await play(openai('m', { apiKey: KEY, baseURL }));
    expect(textIn(parts)).toBe('par');
    expect(error).toMatchObject({ code: 'network', retryable: true });
  });

  it('an abort closes the connection and leaves no listener', async () => {
    let closed: () => void = () => {};
    const gone = new Promise<void>((resolve) => {
      closed = resolve;
    });
    const { baseURL } = await serve((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(frame(textDelta('a')));
      response.on('close', closed);
    });
    const controller = new AbortController();
    const model = openai('m', { apiKey: KEY, baseURL });
    const reading = async (): Promise<void> => {
      for await (const part of model.stream(request(), { signal: controller.signal, attempt: 1 })) {
        expect(part).toEqual({ type: 'text-delta', text: 'a' });
        setTimeout(() => controller.abort(), 1);
      }
    };
    await expect(reading()).rejects.toMatchObject({ name: 'AbortError' });
    await gone;
    expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
  });
});

describe('the options of openai()', () => {
  const bodyOf = async (options: object, asked = request()): Promise<Record<string, unknown>> => {
    let body = '';
    const send = async (_url: unknown, init?: RequestInit): Promise<Response> => {
      body = String(init?.body);
      return served([good]);
    };
    await play(openai('m', { apiKey: KEY, fetch: send as typeof fetch, ...options }), asked);
    return JSON.parse(body);
  };

  it('the output limit has the vendor’s newer name for the vendor’s own hosts only', async () => {
    vi.stubEnv('OPENAI_BASE_URL', '');
    expect(await bodyOf({ maxOutputTokens: 5 })).toMatchObject({ max_completion_tokens: 5 });
    expect(await bodyOf({ maxOutputTokens: 5, baseURL: 'https://eu.api.openai.com/v1' })).toHaveProperty(
      'max_completion_tokens',
    );
    expect(await bodyOf({ maxOutputTokens: 5, baseURL: 'https://api.openai.com.evil.test/v1' })).toHaveProperty(
      'max_tokens',
      5,
    );
    expect(await bodyOf({ maxOutputTokens: 5, baseURL: 'http://localhost:1/v1' })).not.toHaveProperty(
      'max_completion_tokens',
    );
  });

  it('the count of tokens is requested from every server but Mistral’s, which refuses the field and counts always', async () => {
    expect(await bodyOf({ baseURL: 'https://api.mistral.ai/v1' })).not.toHaveProperty('stream_options');
    for (const baseURL of ['http://localhost:1/v1', 'https://mistral.ai.evil.test/v1'])
      expect(await bodyOf({ baseURL })).toMatchObject({ stream_options: { include_usage: true } });
  });

  it('options are sent under the names of the API', async () => {
    const options = { temperature: 0.5, topP: 0.9, reasoningEffort: 'low', seed: 7, stop: ['a', 'b'] };
    expect(await bodyOf(options)).toMatchObject({
      temperature: 0.5,
      top_p: 0.9,
      reasoning_effort: 'low',
      seed: 7,
      stop: ['a', 'b'],
    });
  });

  it('a choice of tools is sent with tools only', async () => {
    const options = { toolChoice: 'required', parallelToolCalls: false };
    expect(Object.keys(await bodyOf(options))).toEqual(['model', 'messages', 'stream', 'stream_options']);
    const tools = [{ name: 'f', description: '', parameters: { type: 'object' } }];
    expect(await bodyOf(options, request({ tools }))).toMatchObject({
      tool_choice: 'required',
      parallel_tool_calls: false,
    });
  });

  it('the temperature of a request overrides the option', async () => {
    expect(await bodyOf({ temperature: 1 }, request({ temperature: 0 }))).toMatchObject({ temperature: 0 });
  });

  it('extraBody adds fields and overrides none of the library’s', async () => {
    const extraBody = { top_k: 3, provider: { order: ['a'] }, stream: false, model: 'other', max_tokens: 1 };
    expect(await bodyOf({ extraBody, maxOutputTokens: 5, baseURL: 'http://localhost:1/v1' })).toMatchObject({
      top_k: 3,
      provider: { order: ['a'] },
      stream: true,
      model: 'm',
      max_tokens: 5,
    });
  });

  it('printing or inspecting the model shows its description, and no secret', () => {
    const headers = { Authorization: 'Bearer proxy-token-1' };
    const model = openai('m', { apiKey: KEY, headers, baseURL: 'http://localhost:1/v1', contextWindow: 1000 });
    expect(model.secrets).toEqual([KEY, 'proxy-token-1']);
    const shown = [
      inspect(model, { depth: 10 }),
      inspect(model, { depth: 10, customInspect: false }),
      inspect({ agent: { model } }, { depth: 10 }),
      format('%o %O %j %s', model, model, model, model),
      JSON.stringify({ model }),
      `${model}`,
      JSON.stringify({ ...model }),
    ];
    for (const text of shown.slice(0, 5)) expect(text).toMatch(/m/);
    for (const text of shown) expect(text).not.toMatch(/proxy-token|sk-/);
    expect(JSON.parse(JSON.stringify(model))).toEqual({
      ...{ id: 'm', provider: 'openai', contextWindow: 1000, nativeOutput: true },
      accepts: [
        ...['image/*', 'application/pdf', 'audio/wav', 'audio/x-wav', 'audio/wave'],
        ...['audio/vnd.wave', 'audio/mpeg', 'audio/mp3'],
      ],
    });
  });

  it('describe the model, and the key is its secret', () => {
    const prices = { input: 1, output: 2 };
    const model = openai('m', { apiKey: KEY, contextWindow: 1000, maxOutputTokens: 10, prices });
    expect(model).toMatchObject({ id: 'm', contextWindow: 1000, maxOutputTokens: 10, prices, secrets: [KEY] });
  });

  it('a credential among the headers is a secret too', () => {
    const headers = { Authorization: 'Bearer proxy-token-1', 'X-Title': 'demo' };
    expect(openai('m', { apiKey: KEY, headers }).secrets).toEqual([KEY, 'proxy-token-1']);
  });

  it('key and base URL come from the environment', async () => {
    const { baseURL, seen } = await serve(answerGood);
    vi.stubEnv('OPENAI_API_KEY', ' sk-from-env ');
    vi.stubEnv('OPENAI_BASE_URL', baseURL);
    const model = openai('m');
    expect(model.secrets).toEqual(['sk-from-env']);
    expect((await play(model)).error).toBeUndefined();
    expect(seen[0]?.headers.authorization).toBe('Bearer sk-from-env');
  });

  it('after a 401 the environment is read again', async () => {
    const { baseURL, seen } = await serve((response, at) =>
      at === 1 ? response.writeHead(401).end() : answerGood(response),
    );
    vi.stubEnv('OPENAI_API_KEY', 'sk-old');
    const model = openai('m', { baseURL });
    expect((await play(model)).error).toMatchObject({ code: 'auth', status: 401 });
    vi.stubEnv('OPENAI_API_KEY', 'sk-new');
    expect((await play(model)).error).toBeUndefined();
    expect(seen.map((one) => one.headers.authorization)).toEqual(['Bearer sk-old', 'Bearer sk-new']);
    expect(model.secrets).toEqual(['sk-old', 'sk-new']);
    vi.stubEnv('OPENAI_API_KEY', '');
  });

  it('the global fetch is looked up when a call is made', async () => {
    const model = openai('m', { apiKey: KEY, baseURL: 'http://model.test/v1' });
    vi.stubGlobal('fetch', async () => served([good]));
    expect(textIn((await play(model)).parts)).toBe('hello');
  });

  it('URL and headers are built once', async () => {
    const seen: unknown[] = [];
    const send = async (_url: unknown, init?: RequestInit): Promise<Response> => {
      seen.push(init?.headers);
      return served([good]);
    };
    const model = openai('m', { apiKey: KEY, fetch: send as typeof fetch });
    await play(model);
    await play(model);
    expect(seen[0]).toBe(seen[1]);
  });

  it('a request that cannot be written as JSON is refused before it is sent', async () => {
    let deep: Json = [];
    for (let at = 0; at < 100_000; at += 1) deep = [deep];
    const tools = [{ name: 'f', description: '', parameters: deep }];
    const { error } = await play(openai('m', { apiKey: KEY, fetch: async () => served([good]) }), request({ tools }));
    expect(error).toMatchObject({ code: 'bad-request', retryable: false });
  });
});

describe('invalid options of openai()', () => {
  const refusal = (make: () => unknown): Error => {
    try {
      make();
    } catch (error) {
      expect(error).toBeInstanceOf(ConfigurationError);
      return error as Error;
    }
    throw new Error('it was not refused');
  };

  it.each([[undefined], ['']])('the key %j is refused with the remedy', (apiKey) => {
    vi.stubEnv('OPENAI_API_KEY', '');
    vi.stubEnv('OPENAI_ADMIN_KEY', 'admin');
    const { message } = refusal(() => openai('m', apiKey === undefined ? {} : { apiKey }));
    expect(message).toContain('OPENAI_API_KEY');
    expect(message).toContain('apiKey');
  });

  it('an unknown option is refused', () => {
    for (const key of ['apikey', 'maxTokens', 'timeout', 'organization']) {
      const { message } = refusal(() => openai('m', { apiKey: KEY, [key]: 'sk-value' }));
      expect(message).toContain(`the option ${key} is unknown; known are apiKey, baseURL, fetch`);
      expect(message).not.toContain('sk-');
    }
  });

  it.each([
    ['apiKey', 5],
    ['baseURL', new URL('http://user:sk-pass@localhost/v1')],
    ['fetch', 'fetch'],
    ['headers', { Authorization: ['sk-a'] }],
    ['headers', ['sk-a']],
    ['prices', 5],
    ['temperature', '1'],
    ['temperature', -1],
    ['topP', Number.NaN],
    ['reasoningEffort', ''],
    ['toolChoice', 5],
    ['seed', 0.5],
    ['stop', [1]],
    ['parallelToolCalls', 'no'],
    ['extraBody', []],
  ])('%s: %j', (key, value) => {
    const { message } = refusal(() => openai('m', { apiKey: KEY, [key]: value } as never));
    expect(message).toContain(`openai(): ${key} must be`);
    expect(message).not.toContain('sk-');
  });

  it('a key that is invalid in a header is refused without quoting it', () => {
    const { message } = refusal(() => openai('m', { apiKey: 'sk-line\nend' }));
    expect(message).toContain('line ends');
    expect(message).not.toContain('sk-line');
  });

  it.each([['localhost'], ['localhost:8080/v1'], ['ftp://x/v1']])('the base URL %s', (baseURL) => {
    expect(refusal(() => openai('m', { apiKey: KEY, baseURL })).message).toContain('OPENAI_BASE_URL');
  });

  it.each([[''], ['  '], [undefined]])('the model name %j', (name) => {
    refusal(() => openai(name as string, { apiKey: KEY }));
  });

  it.each([[0], [-1], [1.5], [Number.NaN]])('a context window of %d', (contextWindow) => {
    expect(refusal(() => openai('m', { apiKey: KEY, contextWindow })).message).toContain('contextWindow');
  });
});
