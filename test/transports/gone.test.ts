/** Missing and deleted conversations, and readers that stop reading, on a clock that a test moves. */
import { readdirSync } from 'node:fs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type AgentOptions, createAgent, memoryStore, subAgents } from '../../src/index.ts';
import { jsonlStore } from '../../src/node.ts';
import { createHandlers, sessions } from '../../src/transports/index.ts';
import { type Reply, scripted, t } from '../support/scriptedReplies.ts';
import { byTask, childOf, spawn, submit } from '../support/subAgentBench.ts';
import { temporaryFolder } from '../support/temporaryFolder.ts';
import { flush, VirtualClock } from '../support/virtualClock.ts';

function handled(replies: readonly Reply[], options: Partial<AgentOptions> = {}, waitingMax?: number) {
  const clock = new VirtualClock();
  const store = options.store ?? memoryStore();
  const { now, setTimer } = clock;
  const agent = createAgent({ model: scripted(replies), ...options, store, ports: { now, setTimer } });
  onTestFinished(() => agent.close());
  const shared = sessions(agent, { setTimer, idleMs: 1000 });
  const handle = createHandlers(agent, {
    ...{ authorize: () => true, sessions: shared, setTimer },
    ...(waitingMax !== undefined && { waitingMax }),
  });
  const get = (path: string) => handle(new Request(`http://host${path}`));
  const post = (path: string, body: object = {}) =>
    handle(
      new Request(`http://host${path}`, {
        method: 'POST',
        body: JSON.stringify(body),
        headers: { 'content-type': 'application/json' },
      }),
    );
  return { agent, store, clock, handle, get, post };
}

const PATHS = ['/conversations/a', '/conversations/a/events'];
const ACTS = [
  ['messages', { content: 'hi' }],
  ['steer', { content: 'hi' }],
  ['follow-ups', { content: 'hi' }],
  ['decisions', { callId: 'c', action: 'approve' }],
  ['settlements', { callId: 'c', how: { didNotRun: true } }],
  ['cancel', {}],
  ['resume', {}],
] as const;

describe('a conversation that does not exist', () => {
  it('it is 404 on every path, before its creation and after its deletion, and no path creates it again by accident', async () => {
    const directory = temporaryFolder();
    const { get, post, clock, store } = handled(['one'], { store: jsonlStore(directory) });
    const all = async () => [
      ...(await Promise.all(PATHS.map(async (path) => (await get(path)).status))),
      ...(await Promise.all(ACTS.map(async ([act, body]) => (await post(`/conversations/a/${act}`, body)).status))),
    ];
    const gone = Array.from({ length: PATHS.length + ACTS.length }, () => 404);
    expect(await all()).toEqual(gone);
    expect(readdirSync(directory)).toEqual([]);
    expect((await post('/conversations', { id: 'a' })).status).toBe(201);
    expect((await post('/conversations', { id: 'a' })).status).toBe(200);
    expect((await post('/conversations/a/messages', { content: 'hi' })).status).toBe(202);
    await expect
      .poll(async () => ((await (await get('/conversations/a')).json()) as { status: string }).status)
      .toBe('idle');
    await clock.advance(2000);
    // It is closed now: another holder may open it, or delete it.
    await expect
      .poll(() =>
        store.delete('a').then(
          () => 'deleted',
          () => 'busy',
        ),
      )
      .toBe('deleted');
    expect(await all()).toEqual(gone);
    expect(await (await get('/conversations')).json()).toEqual([]);
    expect((await post('/conversations', { id: 'a' })).status).toBe(201);
  });

  it('a sub-agent has no path of its own: its root conversation shows it and accepts its decisions', async () => {
    const model = byTask({ alpha: [[submit('s', 'A')]] });
    const { get, post } = handled([[spawn('p', 'alpha')], 'done'], { tools: [subAgents({ model })] });
    await post('/conversations', { id: 'c' });
    await post('/conversations/c/messages', { content: 'hi' });
    await expect
      .poll(async () => ((await (await get('/conversations/c')).json()) as { status: string }).status)
      .toBe('idle');
    expect((await get(`/conversations/${encodeURIComponent(childOf('p', 'a'))}`)).status).toBe(404);
  });

  it('a request that creates it while another one only looks for it receives it', async () => {
    const { agent } = handled([]);
    const shared = sessions(agent);
    const looked = shared.acquire('a', { existing: true }).catch((error: { code: string }) => error.code);
    const [made, found] = await Promise.all([shared.acquire('a'), looked]);
    expect(made.id).toBe('a');
    expect(found).toBe('not_found');
  });
});

describe('a reader of events', () => {
  async function reading(replies: readonly Reply[] = ['hi', 'ho'], waitingMax?: number) {
    const place = handled(replies, {}, waitingMax);
    await place.post('/conversations', { id: 'a' });
    const response = await place.get('/conversations/a/events');
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    const text = async (): Promise<string> => {
      const { value, done } = await reader.read();
      return done ? 'the end' : new TextDecoder().decode(value);
    };
    return { ...place, text };
  }

  it('it is disconnected after 15 s without reading while something waits, and not before', async () => {
    const late = await reading();
    await late.post('/conversations/a/messages', { content: 'go' });
    await late.clock.advance(15_000);
    await expect(late.text()).rejects.toThrow(/too slow/);
    const slow = await reading();
    await slow.post('/conversations/a/messages', { content: 'go' });
    for (const _ of [1, 2]) {
      await slow.clock.advance(14_999);
      expect(await slow.text()).toMatch(/retry|event/);
      await slow.clock.advance(1);
    }
    await slow.post('/conversations/a/messages', { content: 'again' });
    await slow.clock.advance(15_000);
    await expect(slow.text()).rejects.toThrow(/too slow/);
  });

  it('if it has read everything, it receives a heartbeat every 15 s, and is not disconnected', async () => {
    const { clock, text } = await reading();
    expect(await text()).toContain('retry');
    expect(await text()).toContain('event: entry');
    for (let beat = 0; beat < 4; beat += 1) {
      const next = text();
      await flush();
      await clock.advance(15_000);
      expect(await next).toBe(': still connected\n\n');
    }
  });

  it('a reader that reads is never too slow, however much is streamed in total', async () => {
    const flood = async function* () {
      for (let i = 0; i < 50; i++) {
        yield t('x'.repeat(1_000));
        await flush();
      }
      yield { type: 'finish' as const, reason: 'stop' as const };
    };
    const { post, text } = await reading([flood], 10_000);
    await post('/conversations/a/messages', { content: 'go' });
    let received = '';
    while (!received.includes('"run-stop"') && !received.endsWith('the end')) received += await text();
    expect(received).toContain('"run-stop"');
    expect(received.match(/x{1000}/g)?.length).toBeGreaterThanOrEqual(50);
  });
});
