/** Simultaneous messages over HTTP, or over another transport, on a slow store: each answer names its own message. */
import { expect, it, onTestFinished } from 'vitest';
import { createAgent, type LogEntry } from '../../src/index.ts';
import { inProcessTransport, type Outgoing, route } from '../../src/transports/index.ts';
import { during, scripted } from '../support/scriptedReplies.ts';
import { troubledStore } from '../support/troubledStore.ts';
import { served } from './agentServer.ts';

type Accepting = Extract<LogEntry, { type: 'user-message' | 'message-queued' }>;

/** An active run on a store whose appends a test delays or rejects; `kept` contains its stored entries. */
async function busy() {
  let goOn = (): void => {};
  const wait = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const kept = troubledStore();
  const store = troubledStore({ inner: kept });
  const options = { store, policies: { whileActive: 'steer' as const, queueDrain: 'all' as const } };
  const place = await served([during(() => wait, 'one'), 'two', 'three', 'four'], options);
  await place.ask('/conversations', { id: 'a' });
  await place.ask('/conversations/a/messages', { content: 'go' });
  return { place, store, kept: () => kept.tried.flat(), goOn };
}

type Busy = Awaited<ReturnType<typeof busy>>;

/** The message of an answer as it is in the log at the moment of the answer. */
async function answered({ place, kept }: Busy, path: string, body: object, text: string) {
  const answer = await place.ask(`/conversations/a/${path}`, { content: text, ...body });
  const stored = kept().filter((entry): entry is Accepting => {
    if (entry.type !== 'user-message' && entry.type !== 'message-queued') return false;
    return entry.content.some((part) => part.type === 'text' && part.text === text);
  });
  return { text, answer, stored: stored.map(({ messageId }) => messageId) };
}

const forms = [
  ['messages, which the policy takes as steers', 'messages', {}],
  ['messages of kind steer', 'messages', { kind: 'steer' }],
  ['messages of kind followUp', 'messages', { kind: 'followUp' }],
  ['steers', 'steer', {}],
  ['follow-ups', 'follow-ups', {}],
] as const;

it.each(forms)(
  '%s that arrive together: each answer names its own message, and arrives when that one is in the log',
  async (_, path, body) => {
    const on = await busy();
    on.store.trouble(() => ({ after: new Promise((resolve) => setTimeout(resolve, 15)) }));
    const texts = ['first', 'second', 'third', 'fourth'];
    const answers = await Promise.all(texts.map((text) => answered(on, path, body, text)));
    for (const { text, answer, stored } of answers) {
      expect(stored, text).toHaveLength(1);
      expect(answer, text).toMatchObject({ messageId: stored[0] });
    }
    expect(new Set(answers.map(({ answer }) => answer.messageId)).size).toBe(texts.length);
    on.goOn();
  },
);

it('of simultaneous steers, one that the store rejects is answered as not stored, and each other one with its own id', async () => {
  const on = await busy();
  let tried = 0;
  on.store.trouble((entries) => {
    if (!JSON.stringify(entries).includes('second')) return 'stored';
    tried += 1;
    return 'failed';
  });
  const asked = ['first', 'second', 'third'].map((text) => answered(on, 'messages', {}, text));
  const [first, , third] = await Promise.all([asked[0], expect.poll(() => tried).toBeGreaterThan(0), asked[2]]);
  on.goOn();
  const second = await asked[1];
  for (const each of [first, third]) expect(each?.answer.messageId).toBe(each?.stored[0]);
  expect(second).toMatchObject({ stored: [], answer: { type: 'error', code: 'store' } });
});

it('the same is true for a transport with one message a line', async () => {
  const kept = troubledStore();
  const store = troubledStore({ inner: kept });
  const agent = createAgent({ model: scripted([during(() => new Promise(() => undefined), 'never')]), store });
  onTestFinished(() => agent.close());
  const { server, client } = inProcessTransport();
  const answers = new Map<string, { messageId: string; stored: boolean }>();
  client.messages$.subscribe((message: Outgoing) => {
    if (message.type !== 'answer') return;
    const { messageId } = message.value as { messageId: string };
    const isOf = (entry: LogEntry): boolean => 'messageId' in entry && entry.messageId === messageId;
    answers.set(message.requestId, { messageId, stored: kept.tried.flat().some(isOf) });
  });
  void route(agent, server);
  const send = (requestId: string, more: object = {}): void =>
    client.send({ type: 'user-message', conversation: 'a', content: requestId, requestId, ...more });
  send('go');
  await expect.poll(() => answers.size).toBe(1);
  store.trouble(() => ({ after: new Promise((resolve) => setTimeout(resolve, 15)) }));
  for (const requestId of ['first', 'second', 'third']) send(requestId, { kind: 'steer' });
  await expect.poll(() => answers.size).toBe(4);
  expect(new Set([...answers.values()].map(({ messageId }) => messageId)).size).toBe(4);
  expect([...answers.values()].filter(({ stored }) => !stored)).toEqual([]);
});
