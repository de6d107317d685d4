/**
 * The demo's model: its own process, which serves the chat completions API on the loopback interface. Invariant: the
 * answer depends on the request only. The process prints its port once it listens, and ends with its standard input.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { type ChatRequest, scriptedReply } from './demoScript.ts';

const BODY_MAX = 1024 * 1024;
const PACE_MS = 6;

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > BODY_MAX) throw new Error('the request is too large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function refuse(response: ServerResponse, status: number, message: string): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ error: { message } }));
}

/** Splits text into pieces of a few characters, like the stream of a model. */
const pieces = (text: string): string[] => text.match(/\s*\S{1,12}\s?/gu) ?? [];

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method !== 'POST' || request.url !== '/v1/chat/completions') return refuse(response, 404, 'no such path');
  const text = await bodyOf(request);
  const body = JSON.parse(text) as ChatRequest;
  const { words, call } = scriptedReply(body);
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  const base = { id: 'chatcmpl-demo', object: 'chat.completion.chunk', created: 0, model: body.model };
  const send = async (fields: object): Promise<void> => {
    response.write(`data: ${JSON.stringify({ ...base, ...fields })}\n\n`);
    await pause(PACE_MS);
  };
  const delta = (fields: object, finish: string | null = null): Promise<void> =>
    send({ choices: [{ index: 0, delta: fields, finish_reason: finish }] });
  await delta({ role: 'assistant', content: '' });
  for (const piece of pieces(words)) await delta({ content: piece });
  const args = call ? JSON.stringify(call.args) : '';
  if (call) {
    const { id, name } = call;
    await delta({ tool_calls: [{ index: 0, id, type: 'function', function: { name, arguments: '' } }] });
    for (const piece of pieces(args)) await delta({ tool_calls: [{ index: 0, function: { arguments: piece } }] });
  }
  await delta({}, call ? 'tool_calls' : 'stop');
  const [promptTokens, completionTokens] = [text, words + args].map((countedText) =>
    Math.ceil(countedText.length / 4),
  ) as [number, number];
  const usage = {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  };
  await send({ choices: [], usage });
  response.end('data: [DONE]\n\n');
}

const server = createServer((request, response) => {
  answer(request, response).catch((error: unknown) => {
    if (response.headersSent) response.destroy();
    else refuse(response, 400, error instanceof Error ? error.message : String(error));
  });
});
server.listen(0, '127.0.0.1', () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`));
process.stdin.on('end', () => process.exit(0)).resume();
// Ctrl-C reaches the whole process group. The parent process decides when this one ends.
process.on('SIGINT', () => {});
