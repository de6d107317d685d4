/**
 * The same server by hand, as a careful person writes it for this one job: a loop over the model and its tools, a log of JSON
 * lines, one stringify an event, and server-sent events with a replay. `web`: as a function from `Request` to `Response`.
 */
import { open, readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { createAdaptorServer } from '@hono/node-server';
import { nextProbe, serve, withProbe } from './remote.mjs';
import { finishedReplies, lookup, scriptedReply } from './scriptedReply.mjs';

const [form, directory] = process.argv.slice(2);
const conversations = new Map();

class Conversation {
  constructor(id, entries) {
    this.id = id;
    this.entries = entries;
    this.messages = [];
    this.readers = new Set();
  }

  /** An entry is sent after the write of its line. */
  async append(...added) {
    const lines = added.map((entry) => {
      const stored = { seq: this.entries.length, at: Date.now(), ...entry };
      this.entries.push(stored);
      return { seq: stored.seq, text: JSON.stringify(stored) };
    });
    this.file ??= await open(join(directory, `${this.id}.jsonl`), 'a');
    await this.file.write(lines.map(({ text }) => `${text}\n`).join(''));
    for (const { seq, text } of lines) this.send(`id: ${seq}\nevent: entry\ndata: ${text}\n\n`);
  }

  send(frame) {
    for (const reader of this.readers) reader(frame);
  }

  async reply(prompt, signal) {
    const isAfterTools = this.messages.at(-1).role === 'tool';
    let text = '';
    const calls = [];
    for await (const part of scriptedReply({ prompt, isAfterTools, signal })) {
      if (part.type === 'text-delta') {
        text += part.text;
        this.send(`event: live\ndata: ${JSON.stringify({ type: part.type, runId: this.runId, text: part.text })}\n\n`);
      } else if (part.type === 'tool-call') calls.push(part);
    }
    return { text, calls };
  }

  async run(prompt) {
    const { signal } = this.abort;
    try {
      for (;;) {
        const { text, calls } = await this.reply(prompt, signal);
        signal.throwIfAborted();
        this.messages.push({ role: 'assistant', text, calls });
        await this.append({ type: 'assistant-message', runId: this.runId, text, calls });
        if (calls.length === 0) return await this.append({ type: 'run-stop', runId: this.runId, reason: 'completed' });
        const call = async ({ callId, args }) => ({ role: 'tool', callId, text: await lookup(JSON.parse(args)) });
        const results = await Promise.all(calls.map(call));
        this.messages.push(...results);
        await this.append(...results.map((result) => ({ type: 'tool-result', runId: this.runId, ...result })));
      }
    } catch (error) {
      await this.append({ type: 'run-stop', runId: this.runId, reason: signal.aborted ? 'cancelled' : error.message });
    } finally {
      this.abort = undefined;
    }
  }

  async receive(content) {
    this.runId = `run_${this.entries.length}`;
    this.abort = new AbortController();
    this.messages.push({ role: 'user', text: content });
    await this.append({ type: 'user-message', runId: this.runId, content });
    this.running = this.run(content);
    return this.runId;
  }

  async cancel() {
    this.abort?.abort();
    await this.running;
  }
}

async function conversationOf(id) {
  const existing = conversations.get(id);
  if (existing) return existing;
  const text = await readFile(join(directory, `${id}.jsonl`), 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  const entries = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const read = new Conversation(id, entries);
  conversations.set(id, read);
  return read;
}

/** `{ status, value }`, or the conversation whose events are wanted. */
async function answer(method, path, readBody) {
  const [, , id, act] = path.split('/');
  if (method === 'POST' && id === undefined) {
    const { id: wanted } = JSON.parse(await readBody());
    conversations.set(wanted, new Conversation(wanted, []));
    await conversations.get(wanted).append({ type: 'conversation', id: wanted });
    return { status: 201, value: { id: wanted } };
  }
  const conversation = await conversationOf(decodeURIComponent(id));
  if (!conversation) return { status: 404, value: { type: 'error', code: 'not_found' } };
  if (act === 'messages') {
    const { content } = JSON.parse(await readBody());
    return { status: 202, value: { runId: await conversation.receive(content) } };
  }
  if (act === 'cancel') {
    await conversation.cancel();
    return { status: 200, value: { status: 'idle' } };
  }
  if (act === 'events') return { conversation };
  return { status: 200, value: { id, entries: conversation.entries } };
}

const framesFrom = ({ entries }, from) =>
  entries
    .slice(from)
    .map((entry) => `id: ${entry.seq}\nevent: entry\ndata: ${JSON.stringify(entry)}\n\n`)
    .join('');
const JSON_HEADERS = { 'content-type': 'application/json' };
const EVENT_HEADERS = { 'content-type': 'text/event-stream', 'cache-control': 'no-store' };

async function bodyOf(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

async function listener(request, response) {
  const { conversation, status, value } = await answer(request.method, request.url, () => bodyOf(request));
  if (!conversation) return response.writeHead(status, JSON_HEADERS).end(JSON.stringify(value));
  response.writeHead(200, EVENT_HEADERS);
  response.write(framesFrom(conversation, Number(request.headers['last-event-id'] ?? -1) + 1));
  const reader = (frame) => response.write(frame);
  conversation.readers.add(reader);
  response.on('close', () => conversation.readers.delete(reader));
}

const encoder = new TextEncoder();
async function webHandler(request) {
  const { conversation, status, value } = await answer(request.method, new URL(request.url).pathname, () =>
    request.text(),
  );
  if (!conversation) return new Response(JSON.stringify(value), { status, headers: JSON_HEADERS });
  let reader;
  const body = new ReadableStream({
    start(controller) {
      controller.enqueue(
        encoder.encode(framesFrom(conversation, Number(request.headers.get('last-event-id') ?? -1) + 1)),
      );
      reader = (frame) => controller.enqueue(encoder.encode(frame));
      conversation.readers.add(reader);
    },
    cancel: () => conversation.readers.delete(reader),
  });
  return new Response(body, { headers: EVENT_HEADERS });
}

const server = form === 'web' ? createAdaptorServer({ fetch: webHandler }) : createServer(withProbe(listener));
// The clients keep their connections between rounds.
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', 4096, () =>
  serve({
    port: () => server.address().port,
    finishedReplies,
    async cancel({ id }) {
      const probe = nextProbe();
      const since = performance.now();
      await conversations.get(id).cancel();
      return { cancel: performance.now() - since, probe: await probe };
    },
  }),
);
