/**
 * `nodeHandler` on real sockets. Invariant: a client receives the same bytes as through the web form, with any version of HTTP,
 * after other responses and through middleware. A client that leaves releases its reader.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { createGzip } from 'node:zlib';
import express from 'express';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createAgent } from '../../src/index.ts';
import { createHandlers, nodeHandler, sessions } from '../../src/transports/index.ts';
import { scripted, t } from '../support/scriptedReplies.ts';
import { openSocket, portOf, readUntil } from './agentServer.ts';

type Listener = (request: IncomingMessage, response: ServerResponse) => void;

async function served(around: (listener: Listener) => Listener = (listener) => listener) {
  const agent = createAgent({ model: scripted([[t('one '), t('two')], 'three', 'four']) });
  const inner = sessions(agent);
  const count = { held: 0 };
  const shared: typeof inner = {
    close: () => inner.close(),
    async acquire(id, options) {
      const conversation = await inner.acquire(id, options);
      count.held += 1;
      return conversation;
    },
    release(conversation) {
      count.held -= 1;
      inner.release(conversation);
    },
  };
  const handler = createHandlers(agent, { authorize: () => true, sessions: shared });
  onTestFinished(() => agent.close());
  const port = await portOf(createServer(around(nodeHandler(handler))));
  const conversation = await shared.acquire('a');
  await conversation.send('go').result;
  shared.release(conversation);
  return { agent, port, count, handler, conversation };
}

/** The bytes that a socket has received so far. */
function received(socket: Socket): { text: string } {
  const answer = { text: '' };
  socket.on('data', (data: Buffer) => {
    answer.text += data.toString('utf8');
  });
  return answer;
}

/** The body of a response in HTTP/1.1's chunked coding. */
function unchunked(body: string): string {
  let text = '';
  let rest = Buffer.from(body);
  for (;;) {
    const end = rest.indexOf('\r\n');
    const size = Number.parseInt(rest.subarray(0, end).toString(), 16);
    if (end < 0 || !size) return text;
    text += rest.subarray(end + 2, end + 2 + size).toString();
    rest = rest.subarray(end + 4 + size);
  }
}

const BEAT_MS = 123_456;
const EVENTS = 'GET /conversations/a/events HTTP/1.1\r\nHost: h\r\n\r\n';
const bodyOf = (text: string): string => text.slice(text.indexOf('\r\n\r\n') + 4);

/** Returns the first `length` characters that the web form streams. */
async function webForm(handler: (request: Request) => Promise<Response>, length: number): Promise<string> {
  const response = await handler(new Request('http://h/conversations/a/events'));
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  let text = '';
  while (text.length < length) text += new TextDecoder().decode((await reader.read()).value);
  await reader.cancel();
  return text;
}

const lastStop = (text: string): boolean => text.includes('"checkpoint":"RunFinished"') || text.includes('RunFinished');

describe('a stream of events', () => {
  it('has the bytes of the web form, in chunks, and keeps what is written while the model streams', async () => {
    const { port, handler, conversation } = await served();
    const socket = await openSocket(port, EVENTS);
    const answer = received(socket);
    await expect.poll(() => lastStop(answer.text)).toBe(true);
    expect(answer.text).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(answer.text).toMatch(/content-type: text\/event-stream\r\n/);
    const first = unchunked(bodyOf(answer.text));
    expect(first).toBe(await webForm(handler, first.length));
    await conversation.send('again').result;
    await expect.poll(() => unchunked(bodyOf(answer.text)).split('RunFinished').length).toBe(3);
    const ids = [...unchunked(bodyOf(answer.text)).matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id));
    expect(ids).toEqual(conversation.log().map(({ seq }) => seq));
  });

  it('has no chunks in HTTP/1.0, and ends with its connection', async () => {
    const { port, handler, conversation } = await served();
    const socket = await openSocket(port, 'GET /conversations/a/events HTTP/1.0\r\nHost: h\r\n\r\n');
    const answer = received(socket);
    await expect.poll(() => lastStop(answer.text)).toBe(true);
    const text = bodyOf(answer.text);
    expect(text).toBe(await webForm(handler, text.length));
    await conversation.close();
    await once(socket, 'close');
  });

  it('ends with the last chunk when the conversation is closed, and the connection serves the next request', async () => {
    const { port, conversation } = await served();
    const socket = await openSocket(port, EVENTS);
    const answer = received(socket);
    await expect.poll(() => lastStop(answer.text)).toBe(true);
    await conversation.close();
    await expect.poll(() => answer.text.endsWith('0\r\n\r\n')).toBe(true);
    answer.text = '';
    socket.write('GET /conversations/a HTTP/1.1\r\nHost: h\r\n\r\n');
    await expect.poll(() => answer.text).toMatch(/^HTTP\/1\.1 200 OK[\s\S]*"entries":/);
  });

  it('comes after the response of an earlier request of the same connection', async () => {
    const { port } = await served();
    const socket = await openSocket(port, `GET /conversations/a HTTP/1.1\r\nHost: h\r\n\r\n${EVENTS}`);
    const answer = received(socket);
    await expect.poll(() => lastStop(answer.text)).toBe(true);
    const [, first = '', second = ''] = answer.text.split('HTTP/1.1 200 OK');
    expect(first).toContain('"status":"idle"');
    expect(second).toContain('text/event-stream');
  });

  it('goes through middleware that replaces write() and end(), such as one that compresses', async () => {
    const { port } = await served((listener) => (request, response) => {
      const gzip = createGzip();
      const write: (data: Uint8Array) => boolean = response.write.bind(response);
      gzip.on('data', (data: Buffer): void => {
        write(data);
      });
      response.setHeader('content-encoding', 'gzip');
      Object.assign(response, {
        write: (data: Uint8Array): boolean => {
          gzip.write(data);
          gzip.flush();
          return true;
        },
      });
      listener(request, response);
    });
    const response = await fetch(`http://127.0.0.1:${port}/conversations/a/events`);
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    await readUntil(reader, lastStop);
    await reader.cancel();
    expect(response.headers.get('content-encoding')).toBe('gzip');
  });

  it.each([
    ['breaks', (socket: Socket): void => void socket.destroy()],
    ['is reset', (socket: Socket): void => void socket.resetAndDestroy()],
  ] as const)('releases its reader when its connection %s', async (_, leave) => {
    const { port, count } = await served();
    const socket = await openSocket(port, EVENTS);
    const answer = received(socket);
    await expect.poll(() => lastStop(answer.text)).toBe(true);
    leave(socket);
    await expect.poll(() => count.held).toBe(0);
  });
});

it('a reader that takes a part of a long frame between any two beats stays connected, and receives all of it', async () => {
  const text = 'x'.repeat(1_048_576);
  const facts: object[] = [];
  let beat = (): void => {};
  let beats = 0;
  const agent = createAgent({ model: scripted(['done']) });
  onTestFinished(() => agent.close());
  const handler = createHandlers(agent, {
    authorize: () => true,
    logger: { debug: (fact) => void facts.push(fact) },
    beatMs: BEAT_MS,
    setTimer: (ms, fire) => {
      if (ms === BEAT_MS) beat = fire;
      return () => {};
    },
  });
  const conversation = await agent.open('a');
  await conversation.send(text).result;
  await conversation.close();
  const listener = nodeHandler(handler);
  const port = await portOf(
    createServer((request, response) => {
      const { socket } = response;
      const write = socket?.write.bind(socket);
      // Full after each slice, and empty again after the next beat, as with a client that reads slowly.
      if (socket && write)
        socket.write = (bytes: Uint8Array | string) => {
          write(bytes);
          setImmediate(() => {
            beats += 1;
            beat();
            socket.emit('drain');
          });
          return false;
        };
      listener(request, response);
    }),
  );
  const response = await fetch(`http://127.0.0.1:${port}/conversations/a/events`);
  const read = await readUntil(response.body?.getReader(), lastStop);
  expect(read).toContain(text);
  expect(beats).toBeGreaterThan(10);
  expect(facts).toEqual([]);
});

describe('other requests', () => {
  it.each<[string, (text: string) => unknown, object?]>([
    ['JSON', (text) => (text === '' ? {} : JSON.parse(text))],
    ['a text', (text) => text],
    ['bytes', (text) => Buffer.from(text)],
    ['JSON, and kept as a text', (text) => JSON.parse(text), { rawBody: '{"content":"hi"}' }],
    ['JSON, and kept as bytes', (text) => JSON.parse(text), { rawBody: Buffer.from('{"content":"hi"}') }],
  ])('a body that a parser has read as %s is read again', async (_, read, kept = {}) => {
    const { port } = await served((listener) => (request, response) => {
      let text = '';
      request.on('data', (data: Buffer) => {
        text += data.toString('utf8');
      });
      request.on('end', () => listener(Object.assign(request, { body: read(text) }, kept), response));
    });
    const response = await fetch(`http://127.0.0.1:${port}/conversations/a/messages`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ content: 'hi' }),
    });
    expect([response.status, await response.json()]).toMatchObject([202, { messageId: expect.any(String) }]);
  });

  it.each([
    ['HEAD', '/conversations/a', 405],
    ['GET', '/conversations/b', 404],
    ['POST', '/conversations/a/messages', 415],
  ])('%s %s is %i', async (method, path, status) => {
    const { port } = await served();
    const { status: answered } = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      ...(method === 'POST' && { body: 'x' }),
    });
    expect(answered).toBe(status);
  });

  it('a handler that throws is 500, and the next request of the connection is answered', async () => {
    let calls = 0;
    const server = createServer(
      nodeHandler(async () => {
        calls += 1;
        if (calls === 1) throw new Error('no');
        return new Response('yes');
      }),
    );
    const url = `http://127.0.0.1:${await portOf(server)}/`;
    expect((await fetch(url)).status).toBe(500);
    expect(await (await fetch(url)).text()).toBe('yes');
  });

  it('a request without a body stays one, if a parser has made an object of it', async () => {
    const app = express().use(express.json({ type: () => true }));
    const { port, conversation } = await served((listener) => app.use(listener as never) as never);
    const response = await fetch(`http://127.0.0.1:${port}/conversations/a/cancel`, { method: 'POST' });
    expect([response.status, await response.json()]).toEqual([200, { status: conversation.status }]);
  });
});
