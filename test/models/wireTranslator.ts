/**
 * A loopback server with the wire of another vendor before the model suite's server of chat completions, so that the suite holds
 * adapters of that wire too. Invariant: it is written from the vendors' documentation and uses no code of the adapters. A client
 * that leaves it has left the suite's server, and a connection that is cut there is cut here.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createParser } from 'eventsource-parser';
import { onTestFinished } from 'vitest';

export interface Block {
  type: string;
  [field: string]: unknown;
}
export type Fields = { [field: string]: unknown };

/** One chunk of chat completions, as the suite's server sends it. */
export interface ChatChunk {
  choices?: {
    delta: {
      content?: string;
      reasoning_content?: string;
      tool_calls?: { index: number; id?: string; function: { name?: string; arguments: string } }[];
    };
    finish_reason: string | null;
  }[];
  usage?: { prompt_tokens: number; completion_tokens: number; [details: string]: unknown };
  error?: { message: string; type?: string };
}

export interface Wire {
  path: string;
  /** The body of the vendor's request as one of chat completions. */
  toChat(body: Fields): Fields;
  /** The body of a refusal in the vendor's form. */
  refusal(error: { message: string; type?: string }): Fields;
  /** Makes the translation of one reply: the vendor's events for each chunk, and for its regular end. */
  reply(): { chunk(chunk: ChatChunk): Block[]; end(): Block[] };
}

const frames = (events: readonly Block[]): string =>
  events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('');

async function bodyOf(request: IncomingMessage): Promise<Fields> {
  let text = '';
  for await (const piece of request) text += String(piece);
  return JSON.parse(text) as Fields;
}

async function answer(request: IncomingMessage, response: ServerResponse, wire: Wire, suite: string): Promise<void> {
  const body = await bodyOf(request);
  if (request.url !== wire.path) throw new Error(`expected ${wire.path}, got ${request.url}`);
  const left = new AbortController();
  response.on('close', () => left.abort());
  const answered = await fetch(`${suite}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(wire.toChat(body)),
    signal: left.signal,
  });
  if (answered.status !== 200) {
    const { error } = (await answered.json()) as { error: { message: string } };
    const wait = answered.headers.get('retry-after');
    response.writeHead(answered.status, { 'content-type': 'application/json', ...(wait && { 'retry-after': wait }) });
    response.end(JSON.stringify(wire.refusal(error)));
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.flushHeaders();
  const reply = wire.reply();
  const parser = createParser({
    onEvent({ data }) {
      const events = data === '[DONE]' ? reply.end() : reply.chunk(JSON.parse(data) as ChatChunk);
      response.write(frames(events));
    },
  });
  const decoder = new TextDecoder();
  for await (const bytes of answered.body as unknown as AsyncIterable<Uint8Array>)
    parser.feed(decoder.decode(bytes, { stream: true }));
  response.end();
}

/** The address of the translator, until the end of the test. */
export async function translated(wire: Wire, suite: string): Promise<string> {
  const server = createServer((request, response) => {
    answer(request, response, wire, suite).catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
