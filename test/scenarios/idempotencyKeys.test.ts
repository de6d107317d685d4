/**
 * The idempotency key of an execution. Repetitions of one start have the same key; every other start has another key.
 */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { forkConversation } from '../../src/conversation/copies/fork.ts';
import { createAgent, defineTool, type LogStore, memoryStore } from '../../src/index.ts';
import { call, scripted } from '../support/scriptedReplies.ts';

/** A tool that records its keys, and an agent that calls it once and then answers. */
function paying(store: LogStore, { callId = 'c1', idempotent = false, replies = [call(callId, 'pay')] } = {}) {
  const keys: string[] = [];
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    parameters: z.object({}),
    idempotent,
    execute: (_, { idempotencyKey }) => {
      keys.push(idempotencyKey);
      return 'paid';
    },
  });
  const model = scripted([...(replies.length > 0 ? [replies] : []), 'done']);
  return { agent: createAgent({ model, tools: [pay], store }), keys };
}

async function paidIn(store: LogStore, id: string, callId: string): Promise<string[]> {
  const { agent, keys } = paying(store, { callId });
  await (await agent.open(id)).send('pay').result;
  await agent.close();
  return keys;
}

/** A fork after the start of the call: it contains the start and not the outcome. */
async function forkInCall(store: LogStore, idempotent: boolean) {
  const before = paying(store, { idempotent });
  const conversation = await before.agent.open('c');
  await conversation.send('pay').result;
  const place = conversation.log().findIndex(({ type }) => type === 'tool-started') + 1;
  await before.agent.close();
  await forkConversation(store, 'c', 'fork', place);
  const after = paying(store, { idempotent, replies: [] });
  return { before, after, forked: await after.agent.open('fork') };
}

describe('the idempotency key of a call', () => {
  it('a fork that runs a started idempotent call again keeps the key', async () => {
    const { before, after, forked } = await forkInCall(memoryStore(), true);
    expect((await forked.resume().result).text).toBe('done');
    expect(after.keys).toEqual(['c/c1/0']);
    expect(after.keys).toEqual(before.keys);
  });

  it('a fork that retries an unknown call keeps the key', async () => {
    const { before, after, forked } = await forkInCall(memoryStore(), false);
    expect(await forked.settle('c1', { retry: true })).toBe('applied');
    expect((await forked.resume().result).text).toBe('done');
    expect(after.keys).toEqual(before.keys);
  });

  it('a call that had not started at the fork has a key of the fork', async () => {
    const store = memoryStore();
    const { agent } = paying(store, { replies: [] });
    await (await agent.open('c')).send('hi').result;
    await agent.close();
    await forkConversation(store, 'c', 'fork');
    expect(await paidIn(store, 'fork', 'c1')).toEqual(['fork/c1/0']);
  });

  it('calls have different keys even if their joined conversations and ids are equal', async () => {
    const store = memoryStore();
    const first = await paidIn(store, 'user', '42/c1');
    const second = await paidIn(store, 'user/42', 'c1');
    const third = await paidIn(store, 'user%2F42', 'c1');
    expect([...first, ...second, ...third]).toEqual(['user/42%2Fc1/0', 'user%2F42/c1/0', 'user%252F42/c1/0']);
  });

  it('plain ids are part of the key unchanged', async () => {
    expect(await paidIn(memoryStore(), 'demo', 'call_1')).toEqual(['demo/call_1/0']);
  });
});
