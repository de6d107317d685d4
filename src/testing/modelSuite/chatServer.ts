/**
 * A chat completions server on the loopback interface for the model suite, and the required contents of an arriving request. Invariant:
 * the case determines the answer to each request. The server does not depend on the model that calls
 * it, and only the public format of requests counts, so each adapter may add fields.
 */
import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Json } from '../../../machines/vocabulary.ts';

export interface Answer {
  status?: number;
  headers?: Record<string, string>;
  /** The chunks of the stream, or the body of an error. */
  chunks?: readonly Json[];
  /** The end of the response after the chunks. `headers`: not even the headers are sent. */
  end?: 'done' | 'close' | 'cut' | 'hang' | 'headers';
}

export interface ChatServer {
  readonly baseURL: string;
  /** The received bodies. */
  readonly requests: readonly { [field: string]: Json }[];
  /** Resolves when the first body has arrived. */
  readonly asked: Promise<void>;
  /** The number of exchanges that the caller left. */
  readonly left: number;
  close(): Promise<void>;
}

async function bodyOf(request: IncomingMessage): Promise<{ [field: string]: Json }> {
  let text = '';
  for await (const piece of request) text += String(piece);
  return JSON.parse(text) as { [field: string]: Json };
}

function write(response: ServerResponse, answer: Answer): void {
  const { status = 200, headers = {}, chunks = [], end = 'done' } = answer;
  if (end === 'headers') return;
  if (status !== 200) {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(chunks[0] ?? {}));
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream', ...headers });
  for (const chunk of chunks) response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  if (end === 'done') response.end('data: [DONE]\n\n');
  if (end === 'close') response.end();
  // The written bytes are sent before the connection is destroyed.
  if (end === 'cut') setTimeout(() => response.destroy(), 20);
}

export async function chatServer(answer: Answer): Promise<ChatServer> {
  const requests: { [field: string]: Json }[] = [];
  let leftCount = 0;
  let arrived = (): void => undefined;
  const asked = new Promise<void>((resolve) => {
    arrived = resolve;
  });
  const server = createServer((request, response) => {
    response.on('close', () => {
      if (!response.writableFinished) leftCount += 1;
    });
    bodyOf(request).then(
      (body) => {
        requests.push(body);
        arrived();
        write(response, answer);
      },
      () => response.destroy(),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    baseURL: `http://127.0.0.1:${port}/v1`,
    requests,
    asked,
    get left() {
      return leftCount;
    },
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

const chunk = (fields: { [field: string]: Json }): Json => ({
  ...{ id: 'reply', object: 'chat.completion.chunk', created: 1, model: 'suite' },
  ...fields,
});
/** Returns one delta of the reply. */
export const delta = (fields: { [field: string]: Json }): Json =>
  chunk({ choices: [{ index: 0, delta: fields, finish_reason: null }] });
export const ends = (reason: string): Json => chunk({ choices: [{ index: 0, delta: {}, finish_reason: reason }] });
export const used = (usage: Json): Json => chunk({ choices: [], usage });
export const callPiece = (index: number, id: string, name: string, text: string): Json =>
  delta({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: text } }] });
export const callRest = (index: number, text: string): Json =>
  delta({ tool_calls: [{ index, function: { arguments: text } }] });

export interface ReceivedRequest {
  messages?: {
    role: string;
    content?: unknown;
    tool_call_id?: string;
    tool_calls?: { id?: string; function?: { name?: string; arguments?: string } }[];
  }[];
  tools?: { function?: { name: string; description?: string; parameters?: { properties?: object } } }[];
}

/** Asserts that each text, call and schema has arrived. A content is a text or a list of parts. */
export function hasContents({ messages = [], tools = [] }: ReceivedRequest): void {
  const calls = messages.flatMap(({ tool_calls: list = [] }) => list);
  assert.deepEqual(
    calls.map((call) => [call.id, call.function?.name, JSON.parse(call.function?.arguments ?? 'null')]),
    [
      ['a', 'look', { at: 'a' }],
      ['b', 'look', { at: 'b' }],
    ],
  );
  for (const [index, text] of Object.entries({ 0: 'be brief', 1: 'go', 3: 'saw a', 4: 'saw b' })) {
    const { role, content } = messages[Number(index)] ?? {};
    assert.ok(JSON.stringify(content ?? null).includes(text), `the text of the ${role} message is not ${text}`);
  }
  const [look] = tools;
  assert.equal(look?.function?.description, 'looks at a place');
  assert.deepEqual(Object.keys(look?.function?.parameters?.properties ?? {}), ['at']);
}
