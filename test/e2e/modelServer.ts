/**
 * A chat completions server on the loopback for tests with real processes. Invariant: a test scripts each reply in wire
 * form, and no code under test produces a byte of it.
 */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

export interface Asked {
  model: string;
  messages: { role: string; content: unknown; tool_call_id?: string; tool_calls?: unknown[] }[];
  tools?: { function: { name: string } }[];
  authorization: string;
}

/** One reply in progress. */
export interface Reply {
  /** One chunk of choice 0. */
  delta(fields: object, finish?: string | null): void;
  text(...pieces: string[]): void;
  call(id: string, name: string, args: string): void;
  /** The finish reason, the usage, the end of the stream. */
  finish(reason: 'stop' | 'tool_calls'): void;
  /** An answer that is not a stream. */
  refuse(status: number, body: object): void;
  /** Resolves when the client has disconnected. */
  readonly gone: Promise<void>;
}
export type Script = (reply: Reply, asked: Asked) => void | Promise<void>;

export interface ModelServer {
  readonly baseURL: string;
  /** The requests so far. */
  readonly asked: readonly Asked[];
}

function replyTo(response: ServerResponse): Reply {
  const send = (fields: object): void => {
    if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(`data: ${JSON.stringify({ id: 'r', object: 'chat.completion.chunk', created: 1, ...fields })}\n\n`);
  };
  const delta: Reply['delta'] = (fields, finish = null) =>
    send({ choices: [{ index: 0, delta: fields, finish_reason: finish }] });
  return {
    delta,
    text: (...pieces) => {
      for (const content of pieces) delta({ content });
    },
    call: (id, name, args) =>
      delta({ tool_calls: [{ index: 0, id, type: 'function', function: { name, arguments: args } }] }),
    finish(reason) {
      delta({}, reason);
      send({ choices: [], usage: { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 } });
      response.end('data: [DONE]\n\n');
    },
    refuse: (status, body) =>
      void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body)),
    gone: new Promise((resolve) => response.on('close', resolve)),
  };
}

/** Serves one script a request, in order. A request after the last one is refused with 400. Ends with the test. */
export async function modelServer(...scripts: Script[]): Promise<ModelServer> {
  const asked: Asked[] = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const script = scripts[asked.length];
    const { authorization = '' } = request.headers;
    asked.push({ ...(JSON.parse(body) as Asked), authorization });
    const reply = replyTo(response);
    if (script) await script(reply, asked.at(-1) as Asked);
    else reply.refuse(400, { error: { message: 'the script has no more replies' } });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { baseURL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, asked };
}
