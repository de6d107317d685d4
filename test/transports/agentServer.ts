/** An agent with a real loopback server, and a client that reads its events. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import { createParser } from 'eventsource-parser';
import { onTestFinished } from 'vitest';
import { type AgentOptions, createAgent, type Live, type LogEntry } from '../../src/index.ts';
import { createHandlers, type HandlerOptions, nodeHandler } from '../../src/transports/index.ts';
import { type Reply, scripted } from '../support/scriptedReplies.ts';

export interface Place {
  agent: ReturnType<typeof createAgent>;
  base: string;
  get(path: string, headers?: Record<string, string>): Promise<Response>;
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<Response>;
  /** Posts, and returns the JSON. */
  ask(path: string, body?: unknown): Promise<Record<string, unknown>>;
}

export async function served(
  replies: readonly Reply[],
  options: Partial<AgentOptions> = {},
  handling: Partial<HandlerOptions> = {},
): Promise<Place> {
  const agent = createAgent({ model: scripted(replies), ...options });
  const fetchHandler = createHandlers(agent, { authorize: () => true, ...handling });
  onTestFinished(() => agent.close());
  const base = `http://127.0.0.1:${await portOf(createServer(nodeHandler(fetchHandler)))}`;
  const get = (path: string, headers: Record<string, string> = {}) => fetch(base + path, { headers });
  const post = (path: string, body?: unknown, headers: Record<string, string> = {}) =>
    fetch(base + path, {
      method: 'POST',
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
  const ask = async (path: string, body?: unknown) =>
    (await (await post(path, body)).json()) as Record<string, unknown>;
  return { agent, base, get, post, ask };
}

/** A loopback server until the end of the test; returns its port. */
export async function listening(
  fetch: (request: Request) => Promise<Response>,
  { requestTimeout = 60_000, connectionsCheckingInterval = 30_000 } = {},
): Promise<number> {
  const serverOptions = { requestTimeout, headersTimeout: requestTimeout, connectionsCheckingInterval };
  const server = createAdaptorServer({ fetch, overrideGlobalObjects: false, serverOptions }) as Server;
  return portOf(server);
}

/** Starts the server until the end of the test. */
export async function portOf(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** Connects, writes the text, and keeps the connection until the end of the test. */
export async function openSocket(port: number, text: string): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  socket.write(text);
  return socket;
}

export interface ReceivedEvents {
  entries: { id: string; entry: LogEntry }[];
  live: Live[];
}

/** Reads events until enough have arrived or the stream ends, then disconnects. */
export async function events(
  place: Place,
  id: string,
  enough: (received: ReceivedEvents) => boolean,
  lastEventId?: string,
  query = '',
): Promise<ReceivedEvents> {
  const disconnect = new AbortController();
  const headers: Record<string, string> = lastEventId === undefined ? {} : { 'last-event-id': lastEventId };
  const response = await fetch(`${place.base}/conversations/${id}/events${query}`, {
    headers,
    signal: disconnect.signal,
  });
  if (!response.ok || !response.body) throw new Error(`status ${response.status}`);
  const received: ReceivedEvents = { entries: [], live: [] };
  const parser = createParser({
    onEvent({ id: seq = '', event, data }) {
      if (enough(received)) return;
      if (event === 'entry') received.entries.push({ id: seq, entry: JSON.parse(data) as LogEntry });
      else received.live.push(JSON.parse(data) as Live);
    },
  });
  const decoder = new TextDecoder();
  const reader = response.body.getReader();
  while (!enough(received)) {
    const { done, value } = await reader.read();
    if (done) break;
    parser.feed(decoder.decode(value, { stream: true }));
  }
  disconnect.abort();
  return received;
}

export const stops = (n = 1) => {
  return ({ entries }: ReceivedEvents) => entries.filter(({ entry }) => entry.type === 'run-stop').length >= n;
};

/** Reads until there is enough. Rejects if the stream ends before. */
export async function readUntil(
  reader: ReadableStreamDefaultReader<Uint8Array> | undefined,
  isEnough: (text: string) => boolean,
): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  while (!isEnough(text)) {
    const next = await reader?.read();
    if (!next || next.done) throw new Error(`the stream ended early, after: ${text}`);
    text += decoder.decode(next.value, { stream: true });
  }
  return text;
}
