/**
 * Readers of conversations that are closed for lack of work. Invariant: they stay connected and take no slot. When the conversation is
 * opened again they receive its next entries, without gap or repetition.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it, onTestFinished } from 'vitest';
import { watchersOf } from '../../src/agent.ts';
import { createAgent, type LogEntry } from '../../src/index.ts';
import { createHandlers, sessions } from '../../src/transports/index.ts';
import { during, type Reply, scripted, t } from '../support/scriptedReplies.ts';
import { flush, VirtualClock } from '../support/virtualClock.ts';

const BEAT_MS = 1e9;

function place(replies: readonly Reply[], options: { idleMs?: number; openMax?: number }) {
  const clock = new VirtualClock();
  const { now, setTimer } = clock;
  const agent = createAgent({ model: scripted(replies), ports: { now, setTimer } });
  onTestFinished(() => agent.close());
  const shared = sessions(agent, { setTimer, ...options });
  const handler = createHandlers(agent, { authorize: () => true, sessions: shared, setTimer, beatMs: BEAT_MS });
  const post = (path: string, body: object) =>
    handler(
      new Request(`http://h${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
    );
  return { agent, clock, shared, handler, post };
}

/** Reads events in the background. */
async function reader(handler: (request: Request) => Promise<Response>, id: string) {
  const response = await handler(new Request(`http://h/conversations/${id}/events`));
  expect(response.status).toBe(200);
  const source = (response.body as ReadableStream<Uint8Array>).getReader();
  const stream = { text: '', isOver: false, leave: () => source.cancel() };
  void (async () => {
    for (;;) {
      const { done, value } = await source.read();
      if (done) break;
      stream.text += new TextDecoder().decode(value);
    }
    stream.isOver = true;
  })();
  const entries = (): LogEntry[] =>
    [...stream.text.matchAll(/^event: entry\ndata: (.*)$/gm)].map(([, data = '']) => JSON.parse(data) as LogEntry);
  return { stream, entries };
}

const isOpen = async (agent: ReturnType<typeof createAgent>, id: string): Promise<boolean> => {
  const opened = await agent.open(id).catch(() => undefined);
  await opened?.close();
  return opened === undefined;
};

it('an idle conversation with readers is closed, and they receive what comes when it is opened again', async () => {
  const { agent, clock, handler, post } = place(['one', [t('two '), t('words')], 'three'], { idleMs: 1_000 });
  await post('/conversations', { id: 'a' });
  await post('/conversations/a/messages', { content: 'go' });
  const readers = await Promise.all([reader(handler, 'a'), reader(handler, 'a')]);
  for (let turn = 2; turn <= 3; turn++) {
    await clock.advance(1_000);
    expect(await isOpen(agent, 'a')).toBe(false);
    await post('/conversations/a/messages', { content: 'again' });
    await flush(10);
  }
  const late = await reader(handler, 'a');
  await flush();
  const shown = (await (await handler(new Request('http://h/conversations/a'))).json()) as { entries: number };
  for (const { entries, stream } of [...readers, late]) {
    expect(entries().map(({ seq }) => seq)).toEqual(Array.from({ length: shown.entries }, (_, seq) => seq));
    expect(stream.isOver).toBe(false);
  }
  expect(readers[0]?.stream.text).toContain('"type":"text-delta","runId":');
  for (const { stream } of [...readers, late]) await stream.leave();
});

it('any number of idle conversations with readers leave every slot free', async () => {
  const { handler, post } = place([], { openMax: 2 });
  const readers = [];
  for (let index = 0; index < 10; index++) {
    await post('/conversations', { id: `c${index}` });
    readers.push(await reader(handler, `c${index}`));
  }
  expect((await handler(new Request('http://h/conversations/c0'))).status).toBe(200);
  expect(readers.every(({ stream }) => !stream.isOver)).toBe(true);
  for (const { stream } of readers) await stream.leave();
});

it('a reader of a conversation at work receives everything, though the reader holds nothing', async () => {
  let goOn = (): void => {};
  const wait = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const { clock, handler, post } = place([during(() => wait, 'done')], { idleMs: 1_000 });
  await post('/conversations', { id: 'a' });
  await post('/conversations/a/messages', { content: 'go' });
  const { stream, entries } = await reader(handler, 'a');
  await clock.advance(10_000);
  goOn();
  await flush(10);
  expect(entries().some(({ type }) => type === 'run-stop')).toBe(true);
  await stream.leave();
});

it.each(['the host closes the conversation', 'the sessions are closed'])('readers end when %s', async (how) => {
  const { shared, handler, post } = place([], {});
  await post('/conversations', { id: 'a' });
  const { stream } = await reader(handler, 'a');
  if (how === 'the sessions are closed') await shared.close();
  else await (await shared.acquire('a')).close();
  await flush();
  expect(stream.isOver).toBe(true);
});

it('readers of a conversation that was closed for lack of work end when the sessions are closed', async () => {
  const { clock, shared, handler, post } = place([], { idleMs: 1_000 });
  await post('/conversations', { id: 'a' });
  const { stream } = await reader(handler, 'a');
  await clock.advance(1_000);
  expect(stream.isOver).toBe(false);
  await shared.close();
  await flush();
  expect(stream.isOver).toBe(true);
});

it('readers of a conversation that was closed for lack of work end when the agent is closed', async () => {
  const { agent, clock, handler, post } = place([], { idleMs: 1_000 });
  await post('/conversations', { id: 'a' });
  await post('/conversations', { id: 'b' });
  const readers = [await reader(handler, 'a'), await reader(handler, 'b')];
  await clock.advance(500);
  expect((await handler(new Request('http://h/conversations/b'))).status).toBe(200);
  await clock.advance(500);
  expect(await isOpen(agent, 'a')).toBe(false);
  expect(await isOpen(agent, 'b')).toBe(true);
  await agent.close();
  await flush();
  expect(readers.map(({ stream }) => stream.isOver)).toEqual([true, true]);
});

it('waiting readers follow a conversation that the host opens itself, and wait again when the host closes it', async () => {
  const { agent, clock, handler, post } = place(['one', 'two', 'three'], { idleMs: 1_000 });
  await post('/conversations', { id: 'a' });
  await post('/conversations/a/messages', { content: 'go' });
  const { stream, entries } = await reader(handler, 'a');
  await clock.advance(1_000);
  const opened = await agent.open('a');
  await opened.send('again').result;
  await flush(10);
  const length = opened.log().length;
  expect(entries().map(({ seq }) => seq)).toEqual(Array.from({ length }, (_, seq) => seq));
  expect(stream.text).toContain('two');
  await opened.close();
  await flush();
  expect(stream.isOver).toBe(false);
  await post('/conversations/a/messages', { content: 'once more' });
  await flush(10);
  const seqs = entries().map(({ seq }) => seq);
  expect(seqs.length).toBeGreaterThan(length);
  expect(seqs).toEqual(seqs.map((_, seq) => seq));
  expect(stream.text).toContain('three');
  await stream.leave();
});

it('an agent keeps nothing of handlers whose readers have left', async () => {
  const { agent, handler, post } = place([], {});
  await post('/conversations', { id: 'a' });
  expect(watchersOf(agent).size).toBe(0);
  const readers = [await reader(handler, 'a'), await reader(handler, 'a')];
  expect(watchersOf(agent).size).toBe(1);
  for (const { stream } of readers) await stream.leave();
  expect(watchersOf(agent).size).toBe(0);
});

describe('the memory of a conversation that is closed and has no reader any more', () => {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');

  it.each(['leave before it is closed', 'leave after it is closed', 'were never there'] as const)(
    'nothing keeps it, whether its readers %s',
    async (how) => {
      const { clock, shared, handler, post } = place(['one', 'two'], { idleMs: 1_000 });
      const live = async (id: string): Promise<WeakRef<object>[]> => {
        await post('/conversations', { id });
        await post(`/conversations/${id}/messages`, { content: 'go' });
        const readers = how === 'were never there' ? [] : [await reader(handler, id), await reader(handler, id)];
        const leave = async (): Promise<void> => {
          for (const { stream } of readers) await stream.leave();
        };
        const conversation = await shared.acquire(id);
        const kept = [conversation, readers.length > 0 && (await shared.follow?.(id, {}, (broadcast) => broadcast))];
        shared.release(conversation);
        if (how === 'leave before it is closed') await leave();
        await clock.advance(1_000);
        await leave();
        return kept.flatMap((each) => (each ? [new WeakRef<object>(each)] : []));
      };
      const kept = await live('a');
      // The clock keeps its latest timer, and what this closes.
      await live('b');
      const remaining = () => kept.filter((each) => each.deref() !== undefined).length;
      for (let round = 0; round < 20 && remaining() > 0; round += 1) {
        await flush();
        collect();
      }
      expect(remaining()).toBe(0);
      // The sessions themselves are still in use.
      shared.release(await shared.acquire('a'));
    },
  );
});

it('readers of a deleted conversation receive nothing of another one that gets its id', async () => {
  const { agent, clock, handler, post, shared } = place(['a secret'], { idleMs: 1_000 });
  const alice = await shared.acquire('a', { owner: 'alice' });
  shared.release(alice);
  const parked = await reader(handler, 'a');
  await clock.advance(1_000);
  expect(await isOpen(agent, 'a')).toBe(false);
  await agent.profile.store.delete('a');
  await clock.advance(1);
  shared.release(await shared.acquire('a', { owner: 'bob' }));
  await post('/conversations/a/messages', { content: 'hello from bob' });
  await flush(10);
  expect(parked.stream.isOver).toBe(true);
  expect(parked.stream.text).not.toContain('bob');
});
