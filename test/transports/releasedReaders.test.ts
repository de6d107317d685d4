/**
 * The resources of a page that disconnects at any moment of its answer. Invariant: its conversation is released, and no
 * timer and no subscription of the answer remains. The run continues.
 */
import { once } from 'node:events';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createAgent } from '../../src/index.ts';
import { agUiHandler, createHandlers, type Sessions, sessions, uiMessageHandler } from '../../src/transports/index.ts';
import { deaf, type Reply, scripted, t } from '../support/scriptedReplies.ts';
import { Subscriptions } from '../support/subscriptions.ts';
import { flush, VirtualClock } from '../support/virtualClock.ts';
import { listening, openSocket } from './agentServer.ts';

const BEAT_MS = 15_000;
const authorize = (): boolean => true;
const HANDLERS = {
  uiMessageHandler: { make: uiMessageHandler, body: { id: 'c', messages: [userMessage('parts')] } },
  agUiHandler: { make: agUiHandler, body: { threadId: 'c', messages: [userMessage('content')] } },
} as const;
const NAMES = ['uiMessageHandler', 'agUiHandler'] as const;

function userMessage(field: 'parts' | 'content') {
  const content = field === 'parts' ? [{ type: 'text', text: 'hi' }] : 'hi';
  return { id: 'u1', role: 'user', [field]: content };
}

/** An agent whose conversations are counted while they are held. */
function place(replies: readonly Reply[]) {
  const clock = new VirtualClock();
  const { now, setTimer } = clock;
  const policies = { modelTimeout: { firstPartMs: 1e9, idleMs: 1e9 } };
  const agent = createAgent({ model: scripted(replies), policies, ports: { now, setTimer } });
  onTestFinished(() => agent.close());
  const inner = sessions(agent, { setTimer, idleMs: Number.POSITIVE_INFINITY });
  const count = { held: 0 };
  const subscriptions = new Subscriptions();
  const shared: Sessions = {
    close: () => inner.close(),
    async acquire(id, options) {
      const conversation = await inner.acquire(id, options);
      subscriptions.watch(conversation);
      count.held += 1;
      return conversation;
    },
    release(conversation) {
      count.held -= 1;
      inner.release(conversation);
    },
  };
  const remaining = () => ({ held: count.held, timers: clock.waiting, subscriptions: subscriptions.now });
  return { agent, clock, shared, setTimer, left: remaining };
}

describe.each(NAMES)('a page of %s', (name) => {
  const { make, body } = HANDLERS[name];

  async function asked(replies: readonly Reply[]) {
    const on = place(replies);
    const handle = make(on.agent, { authorize, sessions: on.shared, setTimer: on.setTimer, beatMs: BEAT_MS });
    const headers = { 'content-type': 'application/json' };
    const request = new Request('http://h/', { method: 'POST', headers, body: JSON.stringify(body) });
    const response = await handle(request);
    expect(response.status).toBe(200);
    await flush();
    const conversation = await on.shared.acquire('c');
    on.shared.release(conversation);
    return { ...on, conversation, stream: response.body as ReadableStream<Uint8Array> };
  }
  /** The resources of a run without any reader: the time-out of its model. */
  const RUN_ALONE = { held: 0, timers: 1, subscriptions: 0 };
  const NOTHING = { held: 0, timers: 0, subscriptions: 0 };

  it.each(['before its first byte', 'in the middle of the answer'] as const)(
    'one that goes away %s, while the model is silent, leaves its run alone',
    async (moment) => {
      const { conversation, stream, left } = await asked([deaf(t('a'))]);
      expect(left()).toMatchObject({ held: 1, subscriptions: 1, timers: 2 });
      if (moment === 'before its first byte') await stream.cancel();
      else {
        const reader = stream.getReader();
        await reader.read();
        // Waits for a silent model.
        for (let reads = 0; reads < 20; reads++) void reader.read().catch(() => undefined);
        await flush();
        await reader.cancel();
      }
      await flush();
      expect(conversation.status).toBe('active');
      expect(left()).toEqual(RUN_ALONE);
    },
  );

  it('a disconnect after the end leaves nothing, and neither does a second disconnect', async () => {
    const { stream, left } = await asked(['a']);
    const reader = stream.getReader();
    while (!(await reader.read()).done);
    await reader.cancel();
    await reader.cancel();
    await flush();
    expect(left()).toEqual(NOTHING);
  });

  it.each(['ends', 'falls silent'] as const)(
    'one that never reads is disconnected after two heartbeats if the run %s',
    async (how) => {
      const reply = how === 'ends' ? 'a' : deaf(t('a'));
      const { clock, stream, left } = await asked([reply]);
      await clock.advance(BEAT_MS);
      expect(left().held).toBe(1);
      await clock.advance(BEAT_MS);
      await flush();
      expect(left()).toEqual(how === 'ends' ? NOTHING : RUN_ALONE);
      await expect(stream.getReader().read()).rejects.toThrow('the reader is too slow');
    },
  );

  it('is not too slow if it reads one frame between two heartbeats', async () => {
    const { clock, stream, left } = await asked([[t('a'), t('b'), t('c')]]);
    const reader = stream.getReader();
    for (let beats = 0; beats < 5; beats++) {
      await clock.advance(BEAT_MS);
      expect((await reader.read()).done).toBe(false);
      expect(left().held).toBe(1);
    }
  });

  it('does not affect its run if it breaks its connection during the answer, over a real server', async () => {
    const on = place([deaf(t('a'))]);
    const port = await listening(make(on.agent, { authorize, sessions: on.shared, setTimer: on.setTimer }));
    const text = JSON.stringify(body);
    const socket = await openSocket(port, head('/', text.length) + text);
    await vi.waitFor(() => expect(on.left()).toMatchObject({ held: 1 }));
    await once(socket, 'data');
    socket.destroy();
    await expect.poll(on.left).toEqual(RUN_ALONE);
  });
});

const head = (path: string, length: number): string =>
  `POST ${path} HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`;

describe('a client that sends half of a body', () => {
  const SENDERS = [
    ['createHandlers', '/conversations/c/messages', '{"content":"hi"}'],
    ['createHandlers, a new conversation', '/conversations', '{"id":"c"}'],
    ...NAMES.map((name) => [name, '/', JSON.stringify(HANDLERS[name].body)] as const),
  ] as const;
  const WAYS = ['breaks its connection', 'ends its side', 'sends nothing more'] as const;
  it.each(SENDERS.flatMap(([name, path, body]) => WAYS.map((way) => [name, way, path, body] as const)))(
    'sent to %s and then %s it starts nothing and leaves nothing',
    async (name, way, path, body) => {
      const on = place([]);
      const options = { authorize, sessions: on.shared, setTimer: on.setTimer };
      const handle =
        name === 'uiMessageHandler' || name === 'agUiHandler'
          ? HANDLERS[name].make(on.agent, options)
          : createHandlers(on.agent, options);
      const requests = { begun: 0, ended: 0 };
      const port = await listening(
        async (request) => {
          requests.begun += 1;
          return handle(request).finally(() => {
            requests.ended += 1;
          });
        },
        { requestTimeout: way === 'sends nothing more' ? 100 : 60_000, connectionsCheckingInterval: 20 },
      );
      const socket = await openSocket(port, head(path, body.length) + body.slice(0, body.length / 2));
      const closed = once(socket.resume(), 'close');
      await expect.poll(() => requests.begun).toBe(1);
      if (way === 'breaks its connection') socket.destroy();
      if (way === 'ends its side') socket.end();
      await expect.poll(() => requests.ended).toBe(1);
      await closed;
      expect(on.left()).toEqual({ held: 0, timers: 0, subscriptions: 0 });
      expect(await on.agent.list()).toEqual([]);
    },
  );
});

it.each(['messages', 'steer', 'follow-ups'])('a client whose %s were accepted leaves nothing', async (path) => {
  const on = place(['a', 'b', 'c']);
  const handle = createHandlers(on.agent, { authorize, sessions: on.shared, setTimer: on.setTimer });
  const post = (to: string, body: object): Promise<Response> =>
    handle(
      new Request(`http://h${to}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
    );
  await post('/conversations', { id: 'c' });
  for (let times = 0; times < 3; times++) {
    expect((await post(`/conversations/c/${path}`, { content: 'hi' })).status).toBe(202);
    await expect.poll(on.left).toEqual({ held: 0, timers: 0, subscriptions: 0 });
  }
});
