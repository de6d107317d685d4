/**
 * Failures of the server: a client receives their code and a general message, and the logger of the handler the whole error. Invariant:
 * no answer contains a path, an address or a name of the server's machine.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import {
  CorruptLogError,
  createAgent,
  type LogStore,
  memoryStore,
  type Plugin,
  RunchartError,
  SessionBusyError,
  StoreConflictError,
} from '../../src/index.ts';
import { jsonlStore } from '../../src/node.ts';
import {
  agUiHandler,
  createHandlers,
  inProcessTransport,
  route,
  sessions,
  uiMessageHandler,
} from '../../src/transports/index.ts';
import { scripted } from '../support/scriptedReplies.ts';

const PLACE = '/srv/secret-place/a.jsonl';
const FAILURES: readonly (readonly [code: string, status: number, error: Error])[] = [
  ['store', 500, new RunchartError('store', `cannot open ${PLACE}: EACCES`)],
  ['internal', 500, new RunchartError('internal', `Error: ${PLACE}`)],
  ['corrupt', 500, new CorruptLogError('corrupt', `line 3 of ${PLACE} cannot be read`, 3)],
  ['version', 500, new CorruptLogError('version', `${PLACE} is newer`)],
  ['not_a_file', 500, new CorruptLogError('not_a_file', `${PLACE} is a link`)],
  ['unavailable', 503, new RunchartError('unavailable', `the server at ${PLACE} does not answer`)],
  ['closed', 503, new RunchartError('closed', `the store of ${PLACE} is closed`)],
  ['session_busy', 409, new SessionBusyError(`${PLACE} is open in process 12 on secret-place`)],
  ['store_conflict', 500, new StoreConflictError(`the store changed: ${PLACE} grew`)],
  ['EACCES', 500, new RunchartError('EACCES', `EACCES: ${PLACE}`)],
];

function failing(error: Error): LogStore {
  const store = memoryStore();
  return { ...store, open: (id, ...more) => (id === 'a' ? Promise.reject(error) : store.open(id, ...more)) };
}

const chat = { id: 'a', messages: [{ id: 'u1', role: 'user', parts: [{ type: 'text', text: 'hi' }] }] };
const thread = { threadId: 'a', messages: [{ id: 'u1', role: 'user', content: 'hi' }] };
const HANDLERS = [
  ['createHandlers', createHandlers, '/conversations', { id: 'a' }],
  ['uiMessageHandler', uiMessageHandler, '/', chat],
  ['agUiHandler', agUiHandler, '/', thread],
] as const;

it.each(HANDLERS.flatMap((each) => FAILURES.map((failure) => [each[0], ...failure, ...each] as const)))(
  '%s answers the failure %s with %i and no detail, and its logger receives all',
  async (_, code, status, error, _name, make, path, body) => {
    const agent = createAgent({ model: scripted([]), store: failing(error) });
    onTestFinished(() => agent.close());
    const facts: object[] = [];
    const handle = make(agent, { authorize: () => true, logger: { error: (fact) => facts.push(fact) } });
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
    const response = await handle(new Request(`http://h${path}`, init));
    const answer = (await response.json()) as { code: string; message: string };
    expect(response.status).toBe(status);
    expect(answer).toEqual({ type: 'error', code, message: expect.stringMatching(/^[a-z]/) });
    expect(answer.message).not.toMatch(/secret-place|process 12/);
    expect(facts).toEqual([{ event: 'request-failed', code, message: error.message, error }]);
  },
);

it('a message that the disk refuses, and the result of its run, name no file of the server', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'secret-place-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const store = memoryStore();
  const full: LogStore = {
    ...store,
    open: async (id, ...more) => {
      const handle = await store.open(id, ...more);
      const append = async (entries: Parameters<typeof handle.append>[0], expectedSeq: number): Promise<void> => {
        if (entries.some(({ type }) => type === 'model-reply'))
          throw Object.assign(new Error(`ENOSPC: no space left on device, write '${directory}'`), { code: 'ENOSPC' });
        return handle.append(entries, expectedSeq);
      };
      return { read: (from) => handle.read(from), append, close: () => handle.close() };
    },
  };
  const agent = createAgent({ model: scripted(['hello']), store: full });
  onTestFinished(() => agent.close());
  const facts: { message?: unknown }[] = [];
  const handle = createHandlers(agent, { authorize: () => true, logger: { error: (fact) => facts.push(fact) } });
  const ask = (method: string, path: string, body?: unknown): Promise<Response> =>
    handle(
      new Request(`http://h/conversations${path}`, {
        method,
        headers: { 'content-type': 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      }),
    );
  await ask('POST', '', { id: 'a' });
  const { runId } = (await (await ask('POST', '/a/messages', { content: 'hi' })).json()) as { runId: string };
  await expect.poll(async () => (await ask('GET', `/a/runs/${runId}`)).status).toBe(200);
  const result = await (await ask('GET', `/a/runs/${runId}`)).text();
  expect(JSON.parse(result)).toMatchObject({ cause: 'store', error: { message: expect.any(String) } });
  expect(result).not.toContain('secret-place');
  expect(String(facts.at(-1)?.message)).toContain('secret-place');
});

it('a damaged log of the JSONL store is answered without its path', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'secret-place-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const agent = createAgent({ model: scripted([]), store: jsonlStore(directory) });
  onTestFinished(() => agent.close());
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, 'a.jsonl'), '{"not":"a header"}\n');
  const handle = createHandlers(agent, { authorize: () => true, logger: {} });
  const response = await handle(new Request('http://h/conversations/a'));
  expect(response.status).toBe(500);
  expect(await response.text()).not.toContain('secret-place');
});

it('a transport of JSON lines is answered in the same way', async () => {
  const { server, client } = inProcessTransport();
  const error = new RunchartError('store', `cannot open ${PLACE}`);
  const agent = createAgent({ model: scripted([]), store: failing(error) });
  onTestFinished(() => agent.close());
  const facts: object[] = [];
  const routed = route(agent, server, { logger: { error: (fact) => facts.push(fact) } });
  const answer = new Promise((resolve) => client.messages$.subscribe(resolve));
  client.send({ type: 'user-message', conversation: 'a', content: 'hi', requestId: 'r' });
  expect(await answer).toMatchObject({ type: 'error', code: 'store', requestId: 'r' });
  expect(JSON.stringify(await answer)).not.toContain('secret-place');
  expect(facts).toEqual([{ event: 'request-failed', code: 'store', message: error.message, error }]);
  client.close();
  await routed;
});

it('a client reads a diagnostic without the message of a server error, and the log of the server has all of it', async () => {
  const plugin: Plugin = {
    name: 'notes',
    runStart: () => {
      throw new Error(`ENOENT: no such file, open '${PLACE}'`);
    },
  };
  const agent = createAgent({ model: scripted(['hello']), store: memoryStore(), plugins: [plugin] });
  onTestFinished(() => agent.close());
  const conversation = await agent.open('a');
  await conversation.send('hi').result;
  const logged = conversation.log().find(({ type }) => type === 'diagnostic');
  expect(logged).toMatchObject({ code: 'plugin_error', detail: { message: expect.stringContaining(PLACE) } });
  await conversation.close();

  const shared = sessions(agent);
  const handle = createHandlers(agent, { authorize: () => true, logger: {}, sessions: shared });
  const shown = await (await handle(new Request('http://h/conversations/a'))).text();
  const { reader, text } = await eventsUntil(handle, 'run-stop');
  await reader.cancel();
  const { server, client } = inProcessTransport();
  const routed = route(agent, server, { multiTurn: true, logger: {}, sessions: shared });
  const messages: unknown[] = [];
  client.messages$.subscribe((message) => messages.push(message));
  client.send({ type: 'resume', conversation: 'a' });
  await expect.poll(() => JSON.stringify(messages)).toContain('run-stop');
  client.close();
  await routed;

  for (const received of [shown, text, JSON.stringify(messages)]) {
    expect(received).toContain('"code":"plugin_error"');
    expect(received).toContain('"plugin":"notes"');
    expect(received).not.toContain('secret-place');
  }
});

it('a client reads a diagnostic of a later run without the message of a server error', async () => {
  let fails = false;
  const plugin: Plugin = {
    name: 'notes',
    runStart: () => {
      if (fails) throw new Error(`cannot open ${PLACE}`);
    },
  };
  const agent = createAgent({ model: scripted(['one', 'two']), store: memoryStore(), plugins: [plugin] });
  onTestFinished(() => agent.close());
  const handle = createHandlers(agent, { authorize: () => true, logger: {} });
  const send = (path: string, body: object): Promise<Response> => {
    const headers = { 'content-type': 'application/json' };
    return handle(
      new Request(`http://h/conversations${path}`, { method: 'POST', headers, body: JSON.stringify(body) }),
    );
  };
  await send('', { id: 'a' });
  await send('/a/messages', { content: 'hi' });
  const before = await eventsUntil(handle, 'run-stop');
  fails = true;
  await send('/a/messages', { content: 'again' });
  const text = before.text + (await readUntil(before.reader, 'run-stop'));
  await before.reader.cancel();
  expect(text).toContain('plugin_error');
  expect(text).not.toContain('secret-place');
});

type Bytes = ReadableStreamDefaultReader<Uint8Array>;

async function readUntil(reader: Bytes, type: string): Promise<string> {
  let text = '';
  while (!text.includes(`"type":"${type}"`)) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`the stream ended: ${text}`);
    text += new TextDecoder().decode(value);
  }
  return text;
}

/** What a client reads of the conversation until an entry of this type. */
async function eventsUntil(handle: (request: Request) => Promise<Response>, type: string) {
  const response = await handle(new Request('http://h/conversations/a/events'));
  const reader = response.body?.getReader() as Bytes;
  return { reader, text: await readUntil(reader, type) };
}
