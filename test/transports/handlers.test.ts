/** HTTP and SSE over a real server on loopback. */
import { connect } from 'node:net';
import { describe, expect, it, vi } from 'vitest';
import * as z from 'zod';
import { createAgent, defineTool, RunchartError, toolResult } from '../../src/index.ts';
import { createHandlers, type Sessions } from '../../src/transports/index.ts';
import { call, during, scripted, t } from '../support/scriptedReplies.ts';
import { events, type Place, type ReceivedEvents, served, stops } from './agentServer.ts';

const ask = defineTool({
  name: 'ask',
  description: 'Waits for a person.',
  parameters: z.object({}),
  needsApproval: true,
  execute: () => toolResult.success('done'),
});

function gate() {
  let goOn = (): void => {};
  const wait = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  return { wait, goOn: () => goOn() };
}

const seqs = ({ entries }: ReceivedEvents): number[] => entries.map(({ entry }) => entry.seq);
const view = async (place: Place, id: string) =>
  (await (await place.get(`/conversations/${id}`)).json()) as { status: string; entries: number; pending: unknown[] };

describe('requests', () => {
  it('start, send, show and list: an acknowledged act is durable', async () => {
    const place = await served(['hello']);
    const made = await place.post('/conversations', { id: 'a' });
    expect([made.status, made.headers.get('location')]).toEqual([201, '/conversations/a']);
    const sent = await place.post('/conversations/a/messages', { content: 'hi' });
    expect(sent.status).toBe(202);
    const { messageId } = (await sent.json()) as { messageId: string };
    const received = await events(place, 'a', stops());
    expect(received.entries.some(({ entry }) => entry.type === 'user-message' && entry.messageId === messageId)).toBe(
      true,
    );
    await expect.poll(() => view(place, 'a')).toMatchObject({ status: 'idle', view: { state: 'idle' } });
    const list = (await (await place.get('/conversations')).json()) as { id: string }[];
    expect(list.map(({ id }) => id)).toEqual(['a']);
    expect((await place.post('/conversations', { id: 'a' })).status).toBe(200);
  });

  it('a message that is repeated under its messageId has the same answer, and runs once', async () => {
    const { wait, goOn } = gate();
    const place = await served([during(() => wait, 'one')]);
    await place.ask('/conversations', { id: 'a' });
    const post = () => place.ask('/conversations/a/messages', { content: 'hi', messageId: 'm1' });
    const answer = { messageId: 'm1', runId: 'run_m1' };
    expect(await Promise.all([post(), post()])).toEqual([answer, answer]);
    expect(await post()).toEqual(answer);
    goOn();
    await events(place, 'a', stops());
    expect(await post()).toEqual(answer);
    await expect.poll(() => view(place, 'a')).toMatchObject({ status: 'idle' });
    const received = await events(place, 'a', stops());
    expect(received.entries.filter(({ entry }) => entry.type === 'user-message')).toHaveLength(1);
    expect((await place.post('/conversations/a/messages', { content: 'hi', messageId: 'a/b' })).status).toBe(400);
  });

  it('while busy a message is refused with its code, and a steer and a followUp are accepted', async () => {
    const { wait, goOn } = gate();
    const place = await served([during(() => wait, 'one'), 'two', 'three']);
    await place.ask('/conversations', { id: 'a' });
    await place.ask('/conversations/a/messages', { content: 'hi' });
    const busy = await place.post('/conversations/a/messages', { content: 'again' });
    expect([busy.status, ((await busy.json()) as { code: string }).code]).toEqual([409, 'agent_busy']);
    expect(await place.ask('/conversations/a/steer', { content: 'left' })).toHaveProperty('messageId');
    expect(await place.ask('/conversations/a/follow-ups', { content: 'then' })).toHaveProperty('messageId');
    goOn();
    const received = await events(place, 'a', stops(2));
    const kinds = received.entries.flatMap(({ entry }) => (entry.type === 'user-message' ? [entry.kind] : []));
    expect(kinds).toEqual(['direct', 'steer', 'followUp']);
  });

  it("decide and resume: the decider's name comes from authorize, not from the body", async () => {
    const place = await served([[call('c1', 'ask')], 'done'], { tools: [ask] }, { authorize: () => 'ann' });
    await place.ask('/conversations', { id: 'a' });
    await place.ask('/conversations/a/messages', { content: 'go' });
    await expect.poll(() => view(place, 'a')).toMatchObject({ status: 'waiting', pending: [{ callId: 'c1' }] });
    expect((await place.ask('/conversations/a/decisions', { callId: 'c1', action: 'maybe' })).code).toBe(
      'invalid_decision',
    );
    const approve = { callId: 'c1', action: 'approve', by: 'bob' };
    const stray = await place.ask('/conversations/a/decisions', { ...approve, args: { m: 'b' } });
    expect(stray.code).toBe('invalid_decision');
    expect(await place.ask('/conversations/a/decisions', approve)).toEqual({ receipt: 'applied' });
    expect(await place.ask('/conversations/a/decisions', approve)).toEqual({ receipt: 'duplicate' });
    expect(await place.ask('/conversations/a/settlements', { callId: 'c9', how: { didNotRun: true } })).toEqual({
      receipt: 'unknown',
    });
    expect(await place.ask('/conversations/a/resume')).toHaveProperty('runId');
    const { entries } = await events(place, 'a', stops());
    const decision = entries.find(({ entry }) => entry.type === 'decision')?.entry;
    expect(decision).toMatchObject({ decision: { by: 'ann' } });
  });

  it('a disconnect never stops a run; cancel does, and answers when the stop is durable', async () => {
    const { wait, goOn } = gate();
    const place = await served([during(() => wait, 'one'), during(() => new Promise(() => undefined), 'never')]);
    await place.ask('/conversations', { id: 'a' });
    await place.ask('/conversations/a/messages', { content: 'go' });
    await events(place, 'a', ({ entries }) => entries.length > 0);
    goOn();
    const { entries } = await events(place, 'a', stops());
    expect(entries.find(({ entry }) => entry.type === 'run-stop')?.entry).toMatchObject({ reason: 'completed' });
    await place.ask('/conversations/a/messages', { content: 'again' });
    expect(await place.ask('/conversations/a/cancel')).toEqual({ status: 'idle' });
    const after = await events(place, 'a', stops(2));
    expect(after.entries.filter(({ entry }) => entry.type === 'run-stop').at(-1)?.entry).toMatchObject({
      reason: 'interrupted',
    });
  });
});

describe('events', () => {
  it('a client that reconnects at any entry receives the rest, without gap or repetition', async () => {
    const place = await served([[t('x'), call('c1', 'nope')], 'done']);
    await place.ask('/conversations', { id: 'a' });
    await place.ask('/conversations/a/messages', { content: 'go' });
    const whole = await events(place, 'a', stops());
    expect(seqs(whole)).toEqual(whole.entries.map((_, index) => index));
    expect(whole.entries.map(({ id }) => Number(id))).toEqual(seqs(whole));
    expect(whole.entries.length).toBeGreaterThan(8);
    for (let last = 0; last < whole.entries.length - 1; last++) {
      const rest = await events(place, 'a', stops(), `${last}`);
      expect(rest.entries).toEqual(whole.entries.slice(last + 1));
    }
  });

  it.each([1, 1_000, 999_999_999])(
    'a client that names an entry %i beyond the end of the log receives a reset, then the log from entry 0',
    async (beyond) => {
      const place = await served(['hello', 'again']);
      await place.ask('/conversations', { id: 'a' });
      await place.ask('/conversations/a/messages', { content: 'go' });
      const whole = await events(place, 'a', stops());
      await expect.poll(() => view(place, 'a')).toMatchObject({ status: 'idle' });
      const length = (await view(place, 'a')).entries;
      const received = await events(place, 'a', ({ entries }) => entries.length === length, `${length - 1 + beyond}`);
      expect(received.live[0]).toEqual({ type: 'reset', runId: '' });
      expect(seqs(received)).toEqual(Array.from({ length }, (_, index) => index));
      expect(received.entries.slice(0, whole.entries.length)).toEqual(whole.entries);
    },
  );

  it('a client that has the whole log receives no reset, and continues with the next entry', async () => {
    const place = await served(['hello', 'again']);
    await place.ask('/conversations', { id: 'a' });
    const length = (await view(place, 'a')).entries;
    const next = events(place, 'a', ({ entries }) => entries.length > 0, `${length - 1}`);
    await place.ask('/conversations/a/messages', { content: 'go' });
    const { entries, live } = await next;
    expect([entries[0]?.entry.seq, live.some(({ type }) => type === 'reset')]).toEqual([length, false]);
  });

  it.each([
    ['the header', '', '2', 3],
    ['the address', '?lastEventId=2', undefined, 3],
    // A browser reconnects with the original address, and its header is newer.
    ['the header, even if the address names an older one', '?lastEventId=2', '4', 5],
    ['neither', '', undefined, 0],
  ])('the first reported entry is the one after the last that a client names in %s', async (_, query, last, first) => {
    const place = await served(['done']);
    await place.ask('/conversations', { id: 'a' });
    await place.ask('/conversations/a/messages', { content: 'go' });
    await events(place, 'a', stops());
    const received = await events(place, 'a', ({ entries }) => entries.length > 0, last, query);
    expect(received.entries[0]?.entry.seq).toBe(first);
  });

  it('a client that disconnects and reconnects after each entry of an active run misses and repeats nothing', async () => {
    const place = await served(
      Array.from({ length: 6 }, (_, index) =>
        during(() => new Promise((r) => setTimeout(r, 10)), index < 5 ? [call(`c${index}`, 'nope')] : 'done'),
      ),
    );
    await place.ask('/conversations', { id: 'a' });
    await place.ask('/conversations/a/messages', { content: 'go' });
    const got: ReceivedEvents['entries'] = [];
    while (!stops()({ entries: got, live: [] })) {
      const last = got.at(-1)?.id;
      const { entries } = await events(place, 'a', (received) => received.entries.length >= 1, last);
      got.push(...entries);
    }
    expect(got.map(({ entry }) => entry.seq)).toEqual(got.map((_, index) => index));
  });

  it('a client that connects during a reply receives a reset and the whole text so far, then the rest', async () => {
    const { wait, goOn } = gate();
    const reply = async function* () {
      yield t('first ');
      await wait;
      yield t('last');
      yield { type: 'finish' as const, reason: 'stop' as const };
    };
    const place = await served([reply]);
    await place.ask('/conversations', { id: 'a' });
    await place.ask('/conversations/a/messages', { content: 'go' });
    const streamedText = (received: ReceivedEvents): string =>
      received.live.reduce((text, signal) => {
        if (signal.type === 'reset') return '';
        return signal.type === 'text-delta' ? text + signal.text : text;
      }, '');
    const first = await events(place, 'a', (received) => streamedText(received) === 'first ');
    setTimeout(goOn, 50);
    const second = await events(place, 'a', stops(), first.entries.at(-1)?.id);
    expect(second.live.filter(({ type }) => type === 'reset' || type === 'text-delta')[0]).toMatchObject({
      type: 'reset',
    });
    expect(streamedText({ ...second, live: [...first.live, ...second.live] })).toBe('first last');
  });

  it('a reader that stops reading is disconnected, and the run continues', async () => {
    // More than the buffers of both ends of a connection.
    const PIECES = 250;
    const flood = async function* () {
      for (let i = 0; i < PIECES; i++) {
        yield t('x'.repeat(65_536));
        if (i % 20 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
      yield { type: 'finish' as const, reason: 'stop' as const };
    };
    const { wait, goOn } = gate();
    const facts: object[] = [];
    const logger = { debug: (fact: object) => void facts.push(fact) };
    const handling = { waitingMax: 262_144, beatMs: 200, logger };
    const place = await served([during(() => wait, 'ready'), flood], {}, handling);
    await place.ask('/conversations', { id: 'a' });
    const { port, hostname } = new URL(place.base);
    const socket = connect(Number(port), hostname);
    socket.pause();
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
    socket.on('error', () => undefined);
    socket.write(`GET /conversations/a/events HTTP/1.1\r\nHost: ${hostname}:${port}\r\n\r\n`);
    await place.ask('/conversations/a/messages', { content: 'go' });
    goOn();
    await expect.poll(async () => (await view(place, 'a')).status).toBe('idle');
    await place.ask('/conversations/a/messages', { content: 'flood' });
    await expect.poll(async () => (await view(place, 'a')).status, { timeout: 30_000 }).toBe('idle');
    await expect.poll(() => facts).toEqual([{ event: 'reader-disconnected', conversation: 'a' }]);
    socket.resume();
    let read = 0;
    socket.on('data', (chunk) => {
      read += chunk.length;
    });
    await closed;
    expect(read).toBeLessThan(PIECES * 65_536);
    expect(await view(place, 'a')).toMatchObject({ status: 'idle' });
  });

  it('a disconnected listener leaves no resources', async () => {
    const released = vi.fn();
    const place = await served(['hi']);
    const conversation = await place.agent.open('a');
    const shared = { acquire: async () => conversation, release: released, close: async () => undefined };
    const own = await served([], {}, { sessions: shared, authorize: () => true });
    await own.agent.open('a');
    for (let i = 0; i < 5; i++) await events(own, 'a', ({ entries }) => entries.length > 0);
    await expect.poll(() => released.mock.calls.length).toBe(5);
  });
});

describe('refused requests have a code and leave no trace', () => {
  const cases: [
    string,
    string,
    { method?: string; body?: string; headers?: Record<string, string> },
    number,
    string,
  ][] = [
    ['a conversation that does not exist', '/conversations/b', {}, 404, 'not_found'],
    ['its events', '/conversations/b/events', {}, 404, 'not_found'],
    ['a message to it', '/conversations/b/messages', { body: '{"content":"x"}' }, 404, 'not_found'],
    ['another path', '/elsewhere', {}, 404, 'not_found'],
    ['a path that leads out (H-313)', '/conversations/..%2f..%2fetc%2fpasswd', {}, 404, 'not_found'],
    ['half an escape', '/conversations/%E0%A4%A', {}, 404, 'not_found'],
    ['two slashes (H-313)', '//', {}, 404, 'not_found'],
    ['another method', '/conversations/a/cancel', { method: 'GET' }, 405, 'method'],
    ['PUT', '/conversations/a', { method: 'PUT' }, 405, 'method'],
    ['not JSON', '/conversations/a/messages', { body: '{' }, 400, 'malformed'],
    ['a list', '/conversations/a/messages', { body: '[]' }, 400, 'malformed'],
    ['no content', '/conversations/a/messages', { body: '{}' }, 400, 'malformed'],
    ['content without a kind', '/conversations/a/messages', { body: '{"content":42}' }, 400, 'configuration'],
    ['content without a part', '/conversations/a/messages', { body: '{"content":[]}' }, 400, 'configuration'],
    ['content without text', '/conversations/a/messages', { body: '{"content":""}' }, 400, 'configuration'],
    ['a steer without text', '/conversations/a/steer', { body: '{"content":""}' }, 400, 'configuration'],
    [
      'a follow-up of empty texts',
      '/conversations/a/follow-ups',
      { body: '{"content":[{"type":"text","text":""}]}' },
      400,
      'configuration',
    ],
    ['a part without a kind', '/conversations/a/messages', { body: '{"content":[null]}' }, 400, 'configuration'],
    ['an unknown field', '/conversations/a/messages', { body: '{"content":"x","cwd":"/"}' }, 400, 'malformed'],
    ['__proto__', '/conversations/a/messages', { body: '{"content":"x","__proto__":{"a":1}}' }, 400, 'malformed'],
    ['another kind', '/conversations/a/messages', { body: '{"content":"x","kind":"direct"}' }, 400, 'malformed'],
    [
      'a form of a page',
      '/conversations/a/messages',
      { body: 'x', headers: { 'content-type': 'text/plain' } },
      415,
      'content_type',
    ],
    [
      'a form of a page that also names JSON',
      '/conversations/a/messages',
      { body: '{"content":"x"}', headers: { 'content-type': 'text/plain; x=application/json' } },
      415,
      'content_type',
    ],
    [
      'an overlong body',
      '/conversations/a/messages',
      { body: JSON.stringify({ content: 'x'.repeat(5000) }) },
      413,
      'too_large',
    ],
    ['an invalid id', '/conversations', { body: '{"id":7}' }, 400, 'malformed'],
    ['another Last-Event-ID', '/conversations/a/events', { headers: { 'last-event-id': '-1' } }, 400, 'malformed'],
    [
      '1,500 levels',
      '/conversations/a/decisions',
      { body: `{"callId":"c","action":"answer","payload":${'['.repeat(1500)}${']'.repeat(1500)}}` },
      400,
      'invalid_decision',
    ],
  ];

  it.each(cases)('%s', async (_, path, { method, body, headers = {} }, status, code) => {
    const place = await served([], {}, { bodyBytesMax: 4096 });
    await place.ask('/conversations', { id: 'a' });
    const before = await view(place, 'a');
    const type: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' };
    const response = await fetch(place.base + path, {
      method: method ?? (body === undefined ? 'GET' : 'POST'),
      headers: { ...type, ...headers },
      ...(body !== undefined && { body }),
    });
    expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([status, code]);
    expect(await view(place, 'a')).toEqual(before);
    expect((await place.agent.list()).length).toBe(1);
  });

  it.each([
    'application/json',
    'application/json; charset=utf-8',
    'Application/JSON;charset=UTF-8',
    'application/json ;x=y',
  ])('a message of the type %s is accepted', async (type) => {
    const place = await served(['done']);
    await place.ask('/conversations', { id: 'a' });
    const { status } = await place.post('/conversations/a/messages', { content: 'go' }, { 'content-type': type });
    expect(status).toBe(202);
  });

  it.each([
    ['PUT', '/conversations', 'GET, POST'],
    ['PUT', '/conversations/a', 'GET, DELETE'],
    ['POST', '/conversations/a/events', 'GET'],
    ['GET', '/conversations/a/messages', 'POST'],
    ['OPTIONS', '/conversations/a/cancel', 'POST'],
  ])('%s %s is 405, and Allow names the methods of the path', async (method, path, allow) => {
    const place = await served([]);
    await place.ask('/conversations', { id: 'a' });
    const { status, headers } = await fetch(place.base + path, { method });
    expect([status, headers.get('allow')]).toEqual([405, allow]);
  });

  it.each([
    ['false', () => false],
    ['an empty name', () => ''],
    [
      'a throw',
      () => {
        throw new Error('no');
      },
    ],
    ['something else', () => 1 as unknown as boolean],
  ])('authorize returns %s: 401 for every path, and nothing is created', async (_, authorize) => {
    const place = await served([], {}, { authorize });
    for (const path of ['/conversations', '/conversations/a', '/conversations/a/events', '/x'])
      expect((await place.get(path)).status).toBe(401);
    expect((await place.post('/conversations', { id: 'a' })).status).toBe(401);
    expect(await place.agent.list()).toEqual([]);
  });

  it('an internal error discloses only its code', async () => {
    const place = await served([], {}, {});
    place.agent.list = async () => {
      throw new Error('password=1234');
    };
    const response = await place.get('/conversations');
    const text = await response.text();
    expect([response.status, text.includes('1234'), text.includes('internal')]).toEqual([500, false, true]);
  });
});

describe('a failure', () => {
  const conflicts = ['agent_busy', 'cancellation_in_progress', 'session_busy'].map((code) => [code, 409] as const);
  const wrong = ['malformed', 'configuration', 'invalid_decision'].map((code) => [code, 400] as const);
  const others = [
    ['unauthorized', 401],
    ['decision_refused', 403],
    ['not_found', 404],
    ['limit', 429],
    ['closed', 503],
    ['store', 500],
    ['corrupt_log', 500],
    ['something_new', 500],
  ] as const;
  it.each([...conflicts, ...wrong, ...others])(
    'of code %s is answered with %i, with Retry-After if another attempt may succeed',
    async (code, status) => {
      const agent = createAgent({ model: scripted([]) });
      const refusing: Sessions = {
        acquire: () => Promise.reject(new RunchartError(code, 'it is refused')),
        release() {},
        close: async () => {},
      };
      const answer = createHandlers(agent, { authorize: () => true, sessions: refusing });
      const requests = [new Request('http://x/conversations/a'), new Request('http://x/conversations/a/events')];
      for (const request of requests) {
        const response = await answer(request);
        expect([response.status, await response.json()]).toMatchObject([status, { code }]);
        expect(response.headers.get('retry-after')).toBe(status === 429 || status === 503 ? '1' : null);
      }
    },
  );
});

it('a wrapper of an agent without a profile deletes no conversation, and its work goes on', async () => {
  const { wait, goOn } = gate();
  const agent = createAgent({ model: scripted([during(() => wait, 'done')]) });
  const wrapper = { open: agent.open.bind(agent), list: agent.list.bind(agent) } as typeof agent;
  const handler = createHandlers(wrapper, { authorize: () => true });
  const conversation = await agent.open('a');
  const run = conversation.send('hi');
  const deleted = await handler(new Request('http://here/conversations/a', { method: 'DELETE' }));
  expect([deleted.status, await deleted.json()]).toMatchObject([405, { code: 'method' }]);
  goOn();
  expect(await run.text).toBe('done');
  await agent.close();
});
