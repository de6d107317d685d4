/** The end of a session that `route()` serves for one turn: the result, then SessionEnd, then the end of its streams. */
import { describe, expect, it, onTestFinished } from 'vitest';
import * as z from 'zod';
import { createAgent, defineTool, ModelError, toolResult } from '../../src/index.ts';
import { type HookOptions, hooks } from '../../src/node.ts';
import {
  type Incoming,
  inProcessTransport,
  type RouteOptions,
  route,
  sessions,
  type Transport,
} from '../../src/transports/index.ts';
import { call, type Reply, scripted, t } from '../support/scriptedReplies.ts';

const wait = defineTool({
  name: 'wait',
  description: 'Waits for an answer.',
  parameters: z.object({}),
  execute: (_, { decision }) => (decision ? 'answered' : toolResult.pending({ reason: 'later' })),
});

/** An agent with hooks on a transport. `happened`: kinds of messages and hooks, in order, without entries and signals. */
function served(replies: readonly Reply[], options: RouteOptions = {}, isGone: () => boolean = () => false) {
  const happened: string[] = [];
  const record = { run: ({ event }: { event: string }) => void happened.push(event) };
  const watched: HookOptions = { SessionStart: [record], Stop: [record], SessionEnd: [record] };
  const agent = createAgent({ model: scripted(replies), tools: [wait], plugins: [hooks(watched)] });
  onTestFinished(() => agent.close());
  const { server, client } = inProcessTransport();
  const transport: Transport = {
    read: () => server.read(),
    close: () => server.close(),
    async write(message) {
      if (message.type === 'result' && isGone()) throw new Error('the reader has left');
      if (!['entry', 'live', 'system-init', 'answer'].includes(message.type)) happened.push(message.type);
      await server.write(message);
    },
  };
  const shared = options.sessions === undefined ? {} : { sessions: sessions(agent) };
  const ended = route(agent, transport, { ...options, ...shared });
  const send = (message: object) => client.send({ conversation: 'a', ...message } as Incoming);
  const user = (content: string) => send({ type: 'user-message', content });
  const happens = (...wanted: string[]) => expect.poll(() => [...happened], { interval: 5 }).toEqual(wanted);
  const ends = () => happened.filter((each) => each === 'SessionEnd').length;
  return { agent, client, ended, happened, user, send, happens, ends };
}

const TURN = ['SessionStart', 'Stop', 'result', 'SessionEnd'];

describe('a router without multiTurn', () => {
  it('TRC-15 fires SessionEnd after the result and before the streams of the conversation complete', async () => {
    const { agent, happened, user, happens, ends } = served(['one']);
    const opened = agent.open.bind(agent);
    agent.open = async (...args) => {
      const conversation = await opened(...args);
      conversation.log$().subscribe({ complete: () => happened.push('log complete') });
      return conversation;
    };
    user('hi');
    await happens(...TURN, 'log complete');
    await agent.close();
    expect(ends()).toBe(1);
  });

  it('each further message of the transport is a session of its own, which continues the log', async () => {
    const { agent, user, happens } = served(['one', 'two']);
    user('hi');
    await happens(...TURN);
    user('again');
    await happens(...TURN, ...TURN);
    const again = await agent.open('a');
    expect(again.log().filter(({ type }) => type === 'user-message')).toHaveLength(2);
  });

  it('a message that arrives during the end is answered by the next session', async () => {
    const { user, happens, happened } = served(['one', 'two']);
    const push = happened.push.bind(happened);
    happened.push = (each: string) => {
      if (each === 'result' && !happened.includes('result')) user('again');
      return push(each);
    };
    user('hi');
    await happens(...TURN, ...TURN);
  });

  it('SessionEnd fires once after a failed and after a cancelled run', async () => {
    const failed = served([new ModelError({ code: 'bad-request', message: 'no' })]);
    failed.user('hi');
    await failed.happens('SessionStart', 'result', 'SessionEnd');
    let isAsked = false;
    const cancelled = served([
      async function* () {
        isAsked = true;
        yield t('x');
        await new Promise(() => undefined);
      },
    ]);
    cancelled.user('hi');
    await expect.poll(() => isAsked).toBe(true);
    cancelled.send({ type: 'cancel' });
    await cancelled.happens('SessionStart', 'result', 'SessionEnd');
    for (const { agent, ends } of [failed, cancelled]) {
      await agent.close();
      expect(ends()).toBe(1);
    }
  });

  it('SessionEnd fires once if the reader leaves before the result', async () => {
    const { agent, user, happens, ends } = served(['one'], {}, () => true);
    user('hi');
    await happens('SessionStart', 'Stop', 'SessionEnd');
    await agent.close();
    expect(ends()).toBe(1);
  });

  it('a session with a waiting call has not ended: SessionEnd fires after the result of its last run', async () => {
    const { user, send, happens } = served([[call('c1', 'wait')], 'done']);
    user('hi');
    await happens('SessionStart', 'result');
    send({ type: 'decision', decision: { callId: 'c1', action: 'answer', payload: 1 } });
    send({ type: 'resume' });
    await happens('SessionStart', 'result', 'Stop', 'result', 'SessionEnd');
  });

  it('a conversation of shared sessions stays open after the result', async () => {
    const { agent, user, happens, ends } = served(['one'], {
      sessions: sessions(createAgent({ model: scripted([]) })),
    });
    user('hi');
    await happens('SessionStart', 'Stop', 'result');
    await agent.close();
    expect(ends()).toBe(1);
  });

  it('with drain it resolves after SessionEnd', async () => {
    const { client, ended, user, happened } = served(['one'], { drain: true });
    user('hi');
    await expect.poll(() => happened.length, { interval: 1 }).toBeGreaterThan(0);
    client.close();
    await ended;
    expect(happened).toEqual(TURN);
  });
});

it('with multiTurn SessionEnd waits for the close of the conversation', async () => {
  const { agent, user, happens } = served(['one', 'two'], { multiTurn: true });
  user('hi');
  await happens('SessionStart', 'Stop', 'turn-result');
  user('again');
  await happens('SessionStart', 'Stop', 'turn-result', 'Stop', 'turn-result');
  await agent.close();
  await happens('SessionStart', 'Stop', 'turn-result', 'Stop', 'turn-result', 'SessionEnd');
});
