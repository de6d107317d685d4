/**
 * Requests that are limited to an owner. Invariant: every route of every handler answers for another owner's conversation exactly as for
 * a missing one, in any state.
 */
import { beforeEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { type Agent, createAgent, defineTool, memoryStore } from '../../src/index.ts';
import {
  type Authorized,
  agUiHandler,
  createHandlers,
  inProcessTransport,
  type Outgoing,
  route,
  sessions,
  uiMessageHandler,
} from '../../src/transports/index.ts';
import { call, finish, scripted } from '../support/scriptedReplies.ts';

const asking = defineTool({
  name: 'ask',
  description: 'Asks.',
  parameters: z.object({}),
  needsApproval: true,
  execute: () => 'done',
});

const MESSAGE = { content: 'go' };
/** Every route about one conversation. */
const ROUTES: [method: string, path: string, body?: object][] = [
  ['GET', ''],
  ['DELETE', ''],
  ['PUT', ''],
  ['GET', '/events'],
  ['GET', '/events?lastEventId=1'],
  ['GET', '/events?lastEventId=x'],
  ['POST', '/messages', MESSAGE],
  ['POST', '/messages', { nothing: true }],
  ['POST', '/steer', MESSAGE],
  ['POST', '/follow-ups', MESSAGE],
  ['POST', '/decisions', { callId: 'c', action: 'approve' }],
  ['POST', '/settlements', { callId: 'c', how: { didNotRun: true } }],
  ['POST', '/cancel', {}],
  ['POST', '/resume', {}],
  ['GET', '/messages'],
  ['GET', `/blobs/${'a'.repeat(64)}`],
  ['POST', '/blobs/a', {}],
  ['POST', '/events', {}],
  ['POST', '/unknown', {}],
];
const OTHERS = ['anns', 'open', 'waiting', 'free'];
const MISSING = 'never';

let agent: Agent;
beforeEach(async () => {
  agent = createAgent({
    model: scripted(['hello', [call('c', 'ask'), finish('tool-calls')]]),
    tools: [asking],
    store: memoryStore(),
  });
  await (await agent.open('anns', { owner: 'ann' })).close();
  await (await agent.open('free')).close();
  await (await agent.open('bobs', { owner: 'bob' })).close();
  await (await agent.open('open', { owner: 'ann' })).send('go').result;
  const waiting = await agent.open('waiting', { owner: 'ann' });
  await waiting.send('go').result;
  expect(waiting.status).toBe('waiting');
});

const asBob = { authorize: () => ({ by: 'bob', owner: 'bob' }) };
const request = (path: string, method: string, body?: unknown): Request =>
  new Request(`http://host${path}`, {
    method,
    ...(body !== undefined && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  });
/** Status, headers and text of an answer, without the id that was asked for. */
async function answerOf(response: Response, id: string) {
  const text = await response.text();
  return { status: response.status, headers: [...response.headers], text: text.replaceAll(id, 'ID') };
}
const logsOf = async (): Promise<unknown> => (await agent.list()).map((row) => row);

describe.each(OTHERS)('of a conversation that is not the caller’s own (%s)', (id) => {
  it.each(ROUTES)('%s /conversations/:id%s is answered as if there were none', async (method, path, body) => {
    const handle = createHandlers(agent, asBob);
    const before = await logsOf();
    const [others, missing] = [id, MISSING].map((each) =>
      handle(request(`/conversations/${each}${path}`, method, body)),
    );
    const answer = await answerOf((await others) as Response, id);
    expect(answer).toEqual(await answerOf((await missing) as Response, MISSING));
    expect(answer.status).toBeGreaterThanOrEqual(400);
    expect(await logsOf()).toEqual(before);
  });

  it('POST /conversations does not join it', async () => {
    const handle = createHandlers(agent, asBob);
    expect((await handle(request('/conversations', 'POST', { id }))).status).toBe(404);
  });

  const answers = [{ interruptId: '1/c', status: 'resolved', payload: true }];
  const approval = { state: 'approval-responded', approval: { id: '1/c', approved: true } };
  it.each([
    ['agUiHandler', agUiHandler, (threadId: string) => ({ threadId, runId: 'r', resume: answers })],
    [
      'uiMessageHandler',
      uiMessageHandler,
      (chat: string) => ({ id: chat, messages: [{ role: 'assistant', parts: [approval] }] }),
    ],
  ] as const)('%s answers an approval as if there were none', async (_, handlerOf, bodyOf) => {
    const handle = handlerOf(agent, asBob);
    const [others, missing] = [id, MISSING].map((each) => handle(request('/', 'POST', bodyOf(each))));
    const answer = await answerOf((await others) as Response, id);
    expect(answer).toEqual(await answerOf((await missing) as Response, MISSING));
    expect(answer.status).toBe(404);
  });

  it.each([
    [
      'agUiHandler',
      agUiHandler,
      (threadId: string) => ({ threadId, runId: 'r', messages: [{ id: 'm', role: 'user', content: 'go' }] }),
    ],
    [
      'uiMessageHandler',
      uiMessageHandler,
      (chat: string) => ({ id: chat, messages: [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'go' }] }] }),
    ],
  ] as const)('%s takes no message for it', async (_, handlerOf, bodyOf) => {
    const before = await logsOf();
    expect((await handlerOf(agent, asBob)(request('/', 'POST', bodyOf(id)))).status).toBe(404);
    expect(await logsOf()).toEqual(before);
  });

  it('sessions and a transport with an owner do not find it, whoever holds it', async () => {
    const shared = sessions(agent);
    for (const existing of [true, false])
      await expect(shared.acquire(id, { owner: 'bob', existing })).rejects.toMatchObject({ code: 'not_found' });
    const { server, client } = inProcessTransport();
    const outgoing: Outgoing[] = [];
    client.messages$.subscribe((message) => outgoing.push(message));
    const routed = route(agent, server, { owner: 'bob', drain: true });
    client.send({ type: 'user-message', conversation: id, requestId: 'm', content: 'go' });
    for (const type of ['cancel', 'resume', 'close'] as const) client.send({ type, conversation: id, requestId: type });
    client.send({ type: 'list', requestId: 'list' });
    const refused = () => outgoing.filter((message) => message.type === 'error' && message.code === 'not_found');
    await expect.poll(() => [refused().length, outgoing.length]).toEqual([4, 5]);
    client.close();
    await routed;
    expect(outgoing.flatMap((message) => (message.type === 'answer' ? [message.value] : [])).flat()).toMatchObject([
      { id: 'bobs' },
    ]);
    expect(JSON.stringify(outgoing)).not.toContain('system-init');
  });
});

describe('a conversation of another owner whose readers have used up clientsPerConversation', () => {
  const messages = [{ id: 'm', role: 'user', content: 'go', parts: [{ type: 'text', text: 'go' }] }];
  const running = (request: Request): Authorized => {
    const name = request.headers.get('user') ?? 'bob';
    return { by: name, owner: name };
  };
  const asked = (path: string, body?: object, user = 'bob') => {
    const asking = request(path, body ? 'POST' : 'GET', body);
    asking.headers.set('user', user);
    return asking;
  };
  const silent = {
    id: 'silent',
    async *stream() {
      await new Promise(() => {});
      yield { type: 'finish', reason: 'stop' } as const;
    },
  };

  it.each([
    ['createHandlers', createHandlers, (id: string) => asked(`/conversations/${id}/events`)],
    ['uiMessageHandler', uiMessageHandler, (id: string) => asked(`/chats/${id}/stream`)],
  ] as const)('is to %s as if there were none', async (name, handlerOf, read) => {
    const own = createAgent({ model: silent });
    await (await own.open('anns', { owner: 'ann' })).close();
    const handle = handlerOf(own, { authorize: running, limits: { clientsPerConversation: 1 } });
    const reading =
      name === 'createHandlers'
        ? await handle(asked('/conversations/anns/events', undefined, 'ann'))
        : await handle(asked('/chats', { id: 'anns', messages }, 'ann'));
    expect(reading.status).toBe(200);
    const others = await answerOf(await handle(read('anns')), 'anns');
    expect(others).toEqual(await answerOf(await handle(read(MISSING)), MISSING));
    const again = name === 'createHandlers' ? '/conversations/anns/events' : '/chats/anns/stream';
    expect((await handle(asked(again, undefined, 'ann'))).status).toBe(429);
    await reading.body?.cancel();
    await own.close();
  });

  it('takes no message of a page', async () => {
    const own = createAgent({ model: silent });
    const handle = uiMessageHandler(own, { authorize: running, limits: { clientsPerConversation: 1 } });
    const reading = await handle(asked('/chats', { id: 'anns', messages }, 'ann'));
    expect((await handle(asked('/chats', { id: 'anns', messages }))).status).toBe(404);
    await reading.body?.cancel();
    await own.close();
  });
});

describe('the caller’s own conversations', () => {
  it('are made, listed, shown and deleted', async () => {
    const handle = createHandlers(agent, asBob);
    expect((await handle(request('/conversations', 'POST', { id: 'new' }))).status).toBe(201);
    const rows = (await (await handle(request('/conversations', 'GET'))).json()) as { id: string; owner: string }[];
    expect(rows.map(({ id, owner }) => [id, owner]).sort()).toEqual([
      ['bobs', 'bob'],
      ['new', 'bob'],
    ]);
    for (const id of ['new', 'bobs']) {
      expect((await handle(request(`/conversations/${id}`, 'GET'))).status).toBe(200);
      expect((await handle(request(`/conversations/${id}`, 'DELETE'))).status).toBe(204);
      expect((await handle(request(`/conversations/${id}`, 'GET'))).status).toBe(404);
    }
    expect((await agent.list()).length).toBe(OTHERS.length);
  });

  it.each([
    [{ by: 'bob', owner: '' }],
    [{ by: 'bob', owner: undefined }],
    [{ by: 'bob', owner: 5 }],
    [{ by: '', owner: 'bob' }],
    [{ owner: 'bob' }],
    [{}],
    [null],
    [['bob']],
  ])('authorize that answers %j refuses the request', async (who) => {
    const handle = createHandlers(agent, { authorize: () => who as never });
    expect((await handle(request('/conversations', 'GET'))).status).toBe(401);
  });

  it('are reached by a host that names no owner', async () => {
    const handle = createHandlers(agent, { authorize: () => ({ by: 'admin' }) });
    expect(((await (await handle(request('/conversations', 'GET'))).json()) as unknown[]).length).toBe(
      OTHERS.length + 1,
    );
    expect((await handle(request('/conversations/anns', 'GET'))).status).toBe(200);
  });

  it('are selected by ?owner=, which gives a caller with an owner no others', async () => {
    const idsFor = async (authorize: () => Authorized, owner: string): Promise<string[]> => {
      const answer = await createHandlers(agent, { authorize })(request(`/conversations?owner=${owner}`, 'GET'));
      return ((await answer.json()) as { id: string }[]).map(({ id }) => id);
    };
    expect(await idsFor(() => true, 'bob')).toEqual(['bobs']);
    expect(await idsFor(asBob.authorize, 'bob')).toEqual(['bobs']);
    expect(await idsFor(() => true, 'ann')).toContain('anns');
    expect(await idsFor(asBob.authorize, 'ann')).toEqual([]);
  });
});

describe('pages of the list over HTTP', () => {
  it('have 100 rows or at most limit, and continue at cursor', async () => {
    for (let at = 0; at < 105; at += 1) await (await agent.open(`p${at}`)).close();
    const handle = createHandlers(agent, { authorize: () => true });
    const page = async (query: string) =>
      (await (await handle(request(`/conversations${query}`, 'GET'))).json()) as { id: string; cursor: string }[];
    const first = await page('');
    expect(first.length).toBe(100);
    const rest = await page(`?limit=1000&cursor=${encodeURIComponent(first.at(-1)?.cursor ?? '')}`);
    expect([...first, ...rest].map(({ id }) => id)).toEqual((await agent.list()).map(({ id }) => id));
    expect((await page('?status=waiting')).map(({ id }) => id)).toEqual(['waiting']);
  });

  it.each([
    'limit=0',
    'limit=1001',
    'limit=x',
    'limit=',
    'limit=1.5',
    'status=x',
    'status=',
    'cursor=',
    'cursor=x',
    'owner=',
  ])('%s is 400', async (query) => {
    const handle = createHandlers(agent, { authorize: () => true });
    const response = await handle(request(`/conversations?${query}`, 'GET'));
    expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([400, 'malformed']);
  });
});

describe('while every place is taken', () => {
  it('a conversation that does not exist, or has another owner, is refused at once', async () => {
    const shared = sessions(agent, { openMax: 1, waitMs: 60_000 });
    await shared.acquire('bobs');
    const handle = createHandlers(agent, { ...asBob, sessions: shared });
    for (const id of [...OTHERS, MISSING]) {
      const response = await handle(request(`/conversations/${id}`, 'GET'));
      expect(response.status).toBe(404);
    }
    await shared.close();
  });
});

describe('a deletion', () => {
  it('cancels what runs, ends readers, and takes the sub-agents', async () => {
    const store = memoryStore();
    let began = (): void => {};
    const running = new Promise<void>((resolve) => {
      began = resolve;
    });
    const model = {
      id: 'm',
      async *stream(_: unknown, signal: AbortSignal) {
        began();
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))));
        yield { type: 'finish', reason: 'stop' } as const;
      },
    };
    const own = createAgent({ model: model as never, store });
    const handle = createHandlers(own, { authorize: () => true });
    await handle(request('/conversations', 'POST', { id: 'a' }));
    await handle(request('/conversations/a/messages', 'POST', MESSAGE));
    await running;
    const events = await handle(request('/conversations/a/events', 'GET'));
    expect((await handle(request('/conversations/a', 'DELETE'))).status).toBe(204);
    expect(await events.text()).toContain('run-stop');
    expect(await own.list()).toEqual([]);
    expect((await handle(request('/conversations/a', 'DELETE'))).status).toBe(404);
  });
});
