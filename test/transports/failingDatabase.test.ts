/**
 * A process whose database fails for a moment, while it has readers and receives requests for the conversations of another process.
 */
import { describe, expect, it, onTestFinished } from 'vitest';
import { createAgent, type Model, RunchartError } from '../../src/index.ts';
import { createHandlers, type SessionOptions, sessions } from '../../src/transports/index.ts';
import { sharedMemoryStore } from '../support/sharedMemoryStore.ts';
import { readUntil } from './agentServer.ts';

const authorize = (): boolean => true;
const model: Model = {
  id: 'wrong',
  stream() {
    throw new Error('the wrong process asks its model');
  },
};

/** Another process holds the conversation `c`. */
async function heldElsewhere() {
  const { agent: holder, store } = process();
  await holder.open('c');
  return process({}, store);
}

/** A process with this store, and its handlers. */
function process(options: SessionOptions = {}, store = sharedMemoryStore()) {
  const agent = createAgent({ model, store });
  const shared = sessions(agent, options);
  onTestFinished(() => shared.close().then(() => agent.close()));
  const handler = createHandlers(agent, { authorize, sessions: shared });
  const ask = (path: string, init: RequestInit = {}) => handler(new Request(`http://here/conversations${path}`, init));
  return { agent, store, ask };
}

describe('a process whose database fails for a moment', () => {
  it('ends the streams of its readers where it cannot follow any more, so that they go elsewhere', async () => {
    const { store, ask } = await heldElsewhere();
    const { follow } = store;
    let fail = (): void => {};
    store.follow = async function* (id, from) {
      const failure = new Promise<never>((_, reject) => {
        fail = () => reject(new RunchartError('unavailable', 'the database does not answer'));
      });
      const items = follow(id, from)[Symbol.asyncIterator]();
      for (;;) {
        const next = await Promise.race([items.next(), failure]);
        if (next.done) return;
        yield next.value;
      }
    };
    const { body } = await ask('/c/events');
    const reader = body?.getReader();
    await readUntil(reader, (text) => text.includes('event: entry'));
    fail();
    await expect(readUntil(reader, () => false)).rejects.toThrow('the stream ended early');
  });

  it('ends the streams of readers whose conversation was idle here, if it cannot begin to follow it', async () => {
    const { store, ask } = process({ idleMs: 10 });
    const headers = { 'content-type': 'application/json' };
    await ask('', { method: 'POST', headers, body: '{"id":"c"}' });
    const { body } = await ask('/c/events');
    const reader = body?.getReader();
    await readUntil(reader, (text) => text.includes('event: entry'));
    // It is closed when it has been idle, and followed from then on.
    store.stateOf = async () => {
      throw new RunchartError('store', 'the disk of the database is full');
    };
    await expect(readUntil(reader, () => false)).rejects.toThrow('the stream ended early');
  });

  it('answers the next request', async () => {
    const { store, ask } = await heldElsewhere();
    const { stateOf } = store;
    store.stateOf = async () => {
      throw new RunchartError('store', 'the database restarts');
    };
    expect((await ask('/c')).status).toBe(500);
    store.stateOf = stateOf;
    expect((await ask('/c')).status).toBe(200);
  });
});
