/**
 * Readers of one conversation that come, leave and come again, in every order. Invariant: a reader receives each live
 * signal once while it is there, and nothing is subscribed while there is none. One that was too slow continues with
 * the current status and state.
 */
import { expect, it, onTestFinished } from 'vitest';
import { type Conversation, runtimeOf } from '../../src/conversation/conversation.ts';
import { createAgent, type Live } from '../../src/index.ts';
import { Broadcast } from '../../src/transports/events/broadcast.ts';
import { ClientFeed } from '../../src/transports/events/clientFeed.ts';
import { scripted } from '../support/scriptedReplies.ts';

async function opened(): Promise<Conversation> {
  const agent = createAgent({ model: scripted([]) });
  onTestFinished(() => agent.close());
  return agent.open('a');
}
const progress = (update: number): Live => ({ type: 'tool-progress', runId: 'r', callId: 'c', elapsedMs: 0, update });

/** The updates that a feed has now. */
function taken(feed: ClientFeed): number[] {
  const updates: number[] = [];
  for (let item = feed.takeNow(); item; item = feed.takeNow())
    if ('signal' in item && item.signal.type === 'tool-progress') updates.push(item.signal.update as number);
  return updates;
}

type Act = 'join' | 'leave' | 'signal';
const ACTS: readonly Act[] = ['join', 'leave', 'signal'];
const LENGTH = 7;

it(`each receives what is sent while it is there, once, in all orders of ${LENGTH} joins, leaves and signals`, async () => {
  const conversation = await opened();
  const { live } = runtimeOf(conversation);
  const wrong: string[] = [];
  for (let number = 0; number < ACTS.length ** LENGTH; number += 1) {
    const acts = Array.from({ length: LENGTH }, (_, at) => ACTS[Math.floor(number / ACTS.length ** at) % ACTS.length]);
    const broadcast = new Broadcast(conversation);
    const readers: { feed: ClientFeed; expected: number[]; received: number[] }[] = [];
    const gone: typeof readers = [];
    for (const [index, act] of acts.entries()) {
      if (act === 'join')
        readers.push({ feed: new ClientFeed(broadcast, 0, { sizeMax: 1e6 }), expected: [], received: [] });
      else if (act === 'signal') {
        for (const { expected } of readers) expected.push(index);
        live.next(progress(index));
      } else {
        const leaving = readers.shift();
        if (leaving) {
          leaving.received.push(...taken(leaving.feed));
          leaving.feed.close();
          gone.push(leaving);
        }
      }
      for (const { feed, received } of readers) received.push(...taken(feed));
      if (live.observed !== readers.length > 0) wrong.push(`${acts.join(' ')}: subscribed after ${index}`);
    }
    for (const { feed } of readers) feed.close();
    for (const { expected, received } of [...gone, ...readers])
      if (expected.join() !== received.join()) wrong.push(`${acts.join(' ')}: ${received} in place of ${expected}`);
  }
  expect(wrong).toEqual([]);
});

it('a slow reader continues with the status and the state of that moment, as often as it is too slow', async () => {
  const conversation = await opened();
  const { live } = runtimeOf(conversation);
  const feed = new ClientFeed(new Broadcast(conversation), 0, { sizeMax: 1_000 });
  taken(feed);
  for (let time = 1; time <= 3; time += 1) {
    live.next({ type: 'status', status: 'active' });
    for (let update = 0; update < 20; update += 1) live.next(progress(update));
    live.next({ type: 'status', status: 'idle' });
    const signals: Live[] = [];
    for (let item = feed.takeNow(); item; item = feed.takeNow()) if ('signal' in item) signals.push(item.signal);
    expect(signals.slice(-2)).toEqual([
      { type: 'status', status: conversation.status },
      { type: 'state', state: conversation.state },
    ]);
  }
  feed.close();
});
