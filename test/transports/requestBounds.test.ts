/**
 * The edges of a request over HTTP: a body around the limit, with and without a stated length, and ids that an address
 * can contain only as escapes.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createAgent } from '../../src/index.ts';
import { jsonlStore } from '../../src/node.ts';
import { jsonBody } from '../../src/transports/httpRequests.ts';
import { agUiHandler, createHandlers, uiMessageHandler } from '../../src/transports/index.ts';
import { deaf, scripted, t } from '../support/scriptedReplies.ts';
import { readUntil } from './agentServer.ts';

const LIMIT = 1_000;

/** A body of exactly this many bytes, by a padding that the reader skips. */
const sized = (value: object, bytes: number): string => JSON.stringify(value).padEnd(bytes, ' ');
const text = { role: 'user', id: 'm1', content: 'hi' };
const part = { role: 'user', id: 'm1', parts: [{ type: 'text', text: 'hi' }] };

function agentOf() {
  const agent = createAgent({ model: scripted(['hello']) });
  onTestFinished(() => agent.close());
  return agent;
}
const options = { authorize: () => true, bodyBytesMax: LIMIT };
const HANDLERS = [
  ['createHandlers', createHandlers, '/conversations', { id: 'a' }],
  ['agUiHandler', agUiHandler, '/', { threadId: 'a', messages: [text] }],
  ['uiMessageHandler', uiMessageHandler, '/', { id: 'a', messages: [part] }],
] as const;

describe('a body around the limit', () => {
  const SIZES = [
    [LIMIT - 1, true],
    [LIMIT, true],
    [LIMIT + 1, false],
  ] as const;
  const LENGTHS = ['stated', 'not stated', 'stated as less'] as const;
  const table = HANDLERS.flatMap(([name, make, path, value]) =>
    SIZES.flatMap(([bytes, fits]) => LENGTHS.map((length) => ({ name, bytes, length, fits, make, path, value }))),
  );

  it.each(table)('$name, $bytes of 1000 bytes, length $length: accepted $fits', async (row) => {
    const { make, path, value, bytes, length, fits } = row;
    const body = new TextEncoder().encode(sized(value, bytes));
    const headers = {
      'content-type': 'application/json',
      ...(length !== 'not stated' && { 'content-length': String(length === 'stated' ? bytes : 1) }),
    };
    const stream = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let at = 0; at < body.length; at += 300) controller.enqueue(body.slice(at, at + 300));
        controller.close();
      },
    });
    const init = { method: 'POST', headers, body: stream, duplex: 'half' };
    const response = await make(agentOf(), options)(new Request(`http://host${path}`, init as RequestInit));
    const answer = await response.text();
    expect([response.ok, response.status]).toEqual(fits ? [true, expect.any(Number)] : [false, 413]);
    expect(answer.includes('too_large')).toBe(!fits);
  });
});

describe('a client that disconnects before its body is complete', () => {
  it.each(HANDLERS.flatMap(([name, make, path]) => ['500', undefined].map((length) => ({ name, make, path, length }))))(
    'is no failure of the server: $name, length $length',
    async ({ make, path, length }) => {
      const failures: object[] = [];
      const body = new ReadableStream<Uint8Array>({
        start: (controller) => controller.enqueue(new TextEncoder().encode('{"id"')),
        pull: (controller) => controller.error(Object.assign(new Error('aborted'), { code: 'ECONNRESET' })),
      });
      const headers = { 'content-type': 'application/json', ...(length !== undefined && { 'content-length': length }) };
      const handle = make(agentOf(), { ...options, logger: { error: (fact: object) => failures.push(fact) } });
      const init = { method: 'POST', headers, body, duplex: 'half' };
      const response = await handle(new Request(`http://host${path}`, init as RequestInit));
      expect([response.status, await response.json()]).toEqual([400, expect.objectContaining({ code: 'malformed' })]);
      expect(failures).toEqual([]);
    },
  );
});

it.each(HANDLERS)('a body that authorize has read is a failure of the server: %s', async (_, make, path, value) => {
  const failures: object[] = [];
  const logger = { error: (fact: object) => failures.push(fact) };
  const handle = make(agentOf(), { logger, authorize: async (request) => (await request.text()) !== '' });
  const headers = { 'content-type': 'application/json' };
  const init = { method: 'POST', headers, body: JSON.stringify(value) };
  expect((await handle(new Request(`http://host${path}`, init))).status).toBe(500);
  expect(failures).toHaveLength(1);
});

describe('a conversation whose id is no plain word', () => {
  const IDS = ['a b', 'a/b', '/a', 'a?b=c', 'a#b', 'a%2Fb', '%', 'a\\b', 'ü', '😀', 'a+b', 'a;b', 'a"b', 'a:b', '...'];

  it.each(IDS)('%j is reached at the location that its creation names, for every request', async (id) => {
    const agent = agentOf();
    const handle = createHandlers(agent, { ...options, basePath: '/api' });
    const ask = (path: string, body?: object) =>
      handle(
        new Request(new URL(path, 'http://host'), {
          method: body ? 'POST' : 'GET',
          ...(body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
        }),
      );
    const made = await ask('/api/conversations', { id });
    expect([made.status, await made.json()]).toEqual([201, expect.objectContaining({ id })]);
    const location = made.headers.get('location') ?? '';
    expect(await (await ask(location)).json()).toMatchObject({ id });
    expect((await ask(`${location}/messages`, { content: 'hi' })).status).toBe(202);
    const events = (await ask(`${location}/events`)).body?.getReader();
    await readUntil(events, (text) => text.includes(JSON.stringify(id)));
    await events?.cancel();
    expect((await agent.list()).map((listed) => listed.id)).toEqual([id]);
  });

  it.each(['.', '..', '\ud800', 'a\udc00b'])(
    '%j cannot be in an address, so it is refused and nothing is created',
    async (id) => {
      const agent = agentOf();
      const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ id }) };
      const response = await createHandlers(agent, options)(new Request('http://host/conversations', init));
      expect([response.status, await response.json()]).toEqual([400, expect.objectContaining({ code: 'malformed' })]);
      expect(await agent.list()).toEqual([]);
    },
  );
});

describe('an id that a store of files cannot keep', () => {
  it.each(['a/b', '../a', 'a\\b', 'a\nb', 'ü'.repeat(40)])('%j is that of a missing conversation', async (id) => {
    const directory = await mkdtemp(join(tmpdir(), 'runchart-ids-'));
    const agent = createAgent({ model: scripted(['hello']), store: jsonlStore(directory) });
    onTestFinished(() => agent.close().finally(() => rm(directory, { recursive: true })));
    const path = encodeURIComponent(id);
    const handle = createHandlers(agent, options);
    for (const rest of ['', '/events', '/blobs/a'])
      expect((await handle(new Request(`http://host/conversations/${path}${rest}`))).status).toBe(404);
    expect((await handle(new Request(`http://host/conversations/${path}`, { method: 'DELETE' }))).status).toBe(404);
    const history = await uiMessageHandler(agent, options)(new Request(`http://host/chats/${path}`));
    expect([history.status, await history.json()]).toEqual([200, []]);
    const headers = { 'content-type': 'application/json' };
    const creation = { method: 'POST', headers, body: JSON.stringify({ id }) };
    expect((await handle(new Request('http://host/conversations', creation))).status).toBe(400);
  });
});

describe('a request id', () => {
  const CALLERS: readonly (readonly [string, readonly (string | undefined)[], number])[] = [
    ['one caller', ['ann', 'ann', 'ann'], 1],
    ['one caller without a name', [undefined, undefined], 1],
    ['two callers', ['ann', 'bob'], 2],
    ['a caller with a name and one without', ['ann', undefined], 2],
    ['callers whose names and ids are alike together', ['ann', 'an'], 2],
  ];
  it.each(
    CALLERS.flatMap(([who, callers, count]) => ['r', 'n', '","r', 'null'].map((id) => ({ who, callers, count, id }))),
  )(
    'of $who, $id: $count of $callers.length messages are sent, since no caller receives the answer of another',
    async ({ callers, count, id }) => {
      const model = scripted(['one', 'two', 'three']);
      const agent = createAgent({ model });
      onTestFinished(() => agent.close());
      const handler = createHandlers(agent, { authorize: ({ headers }) => headers.get('x-by') ?? true });
      const ask = async (path: string, by: string | undefined, body?: object): Promise<Record<string, unknown>> => {
        const headers = { 'content-type': 'application/json', ...(by !== undefined && { 'x-by': by }) };
        const init = body ? { method: 'POST', headers, body: JSON.stringify(body) } : { headers };
        return (await (await handler(new Request(`http://host${path}`, init))).json()) as Record<string, unknown>;
      };
      await ask('/conversations', undefined, { id: 'a' });
      const answers: unknown[] = [];
      for (const by of callers) {
        const request = encodeURIComponent(by === 'an' ? `n${id}` : id);
        answers.push((await ask(`/conversations/a/messages?request=${request}`, by, { content: 'hi' })).runId);
        await expect.poll(async () => (await ask('/conversations/a', by)).status).toBe('idle');
      }
      expect([new Set(answers).size, model.calls.length]).toEqual([count, count]);
    },
  );
});

describe('a request under an id', () => {
  /** A conversation whose queue takes one message, with a run that does not end. */
  async function busy() {
    const agent = createAgent({ model: scripted([deaf(t('a')), 'b', 'c']), policies: { limits: { queue: 1 } } });
    onTestFinished(() => agent.close());
    const handler = createHandlers(agent, options);
    const ask = async (path: string, body: object): Promise<[number, Record<string, unknown>]> => {
      const headers = { 'content-type': 'application/json' };
      const init = { method: 'POST', headers, body: JSON.stringify(body) };
      const response = await handler(new Request(`http://host/conversations${path}`, init));
      return [response.status, (await response.json()) as Record<string, unknown>];
    };
    await ask('', { id: 'a' });
    await ask('/a/messages', { content: 'go' });
    return ask;
  }

  it('that was refused acts when it is repeated, and its repetitions have that answer', async () => {
    const ask = await busy();
    const [, { messageId }] = await ask('/a/follow-ups', { content: 'first' });
    const second = () => ask('/a/follow-ups?request=r', { content: 'second' });
    expect(await second()).toMatchObject([429, { code: 'limit' }]);
    await ask('/a/cancel', { runId: `run_${messageId}` });
    const accepted = await second();
    expect(accepted).toEqual([202, { messageId: expect.any(String) }]);
    expect(await second()).toEqual(accepted);
  });

  it('that is empty is never a repetition', async () => {
    const ask = await busy();
    const steer = (content: string) => ask('/a/steer?request=', { content });
    await steer('one');
    expect(await steer('two')).toMatchObject([429, { code: 'limit' }]);
  });
});

describe('the bytes of a body count against the bytes of all bodies', () => {
  // A body of a stated length is read without a stream up to 16,384 bytes.
  const SIZES = [20, 16_383, 16_384, 16_385, 70_000];
  it.each(SIZES.flatMap((bytes) => ['stated', 'not stated'].map((length) => [bytes, length] as const)))(
    '%i bytes, length %s: exactly as many count',
    async (bytes, length) => {
      let counted = 0;
      const addBytes = (more: number): void => {
        counted += more;
      };
      const headers = {
        'content-type': 'application/json',
        ...(length === 'stated' && { 'content-length': String(bytes) }),
      };
      const request = new Request('http://host/', { method: 'POST', headers, body: sized({ id: 'a' }, bytes) });
      expect(await jsonBody(request, { quota: { addBytes, end: () => {} } })).toEqual({ id: 'a' });
      expect(counted).toBe(bytes);
    },
  );
});
