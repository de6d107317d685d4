/** The choices that a message over HTTP may make for its request: only those that the server allows by name. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { createAgent, defineTool, memoryStore } from '../../src/index.ts';
import { agUiHandler, createHandlers, type HandlerOptions, uiMessageHandler } from '../../src/transports/index.ts';
import { scripted } from '../support/scriptedReplies.ts';

const read = defineTool({ name: 'read', description: '', parameters: z.object({}), execute: () => '' });

async function place(allow?: HandlerOptions['allow']) {
  const model = scripted(['own', 'own']);
  const small = scripted(['small', 'small']);
  const options = { models: { small, big: small }, outputs: { word: z.string(), city: z.object({}) }, tools: [read] };
  const store = memoryStore();
  const agent = createAgent({ model, store, ...options });
  const handle = createHandlers(agent, { authorize: () => 'ann', ...(allow && { allow }) });
  const post = async (path: string, body: object) => {
    const headers = { 'content-type': 'application/json' };
    const answer = await handle(
      new Request(`http://host${path}`, { method: 'POST', headers, body: JSON.stringify(body) }),
    );
    return { status: answer.status, ...((await answer.json()) as { code?: string }) };
  };
  await post('/conversations', { id: 'c' });
  const entries = async () => {
    const answer = await handle(new Request('http://host/conversations/c'));
    return ((await answer.json()) as { entries: number }).entries;
  };
  return { post, entries, agent, store };
}

const choices: readonly (readonly [string, object, HandlerOptions['allow']])[] = [
  ['a model', { model: 'small' }, { models: ['small'] }],
  ['a schema', { output: 'word' }, { outputs: ['word'] }],
  ['settings', { settings: { temperature: 0 } }, { settings: true }],
  ['tools', { tools: [] }, { tools: true }],
  ['a context', { context: { plan: 'pro' } }, { context: true }],
];

describe('a message over HTTP that chooses', () => {
  it.each(choices)(
    '%s is answered 403, not_allowed, where nothing is allowed, and nothing is logged',
    async (_, chosen) => {
      const on = await place();
      const before = await on.entries();
      const answer = await on.post('/conversations/c/messages', { content: 'hi', ...chosen });
      expect(answer).toMatchObject({ status: 403, code: 'not_allowed' });
      expect(await on.entries()).toBe(before);
      await on.agent.close();
    },
  );

  it.each(choices)('%s has it where the server allows it, and only that', async (_, chosen, allow) => {
    const on = await place(allow);
    expect(await on.post('/conversations/c/messages', { content: 'hi', ...chosen })).toMatchObject({ status: 202 });
    for (const [, other] of choices.filter(([, each]) => each !== chosen)) {
      expect(await on.post('/conversations/c/messages', { content: 'hi', ...other })).toMatchObject({ status: 403 });
    }
    await on.agent.close();
  });

  it('whileSuspended is refused, because only the server decides that', async () => {
    const on = await place({ models: ['small'], settings: true, tools: true, context: true });
    const before = await on.entries();
    for (const whileSuspended of ['denyAndRun', 'reject', 'nonsense']) {
      const answer = await on.post('/conversations/c/messages', { content: 'hi', whileSuspended });
      expect(answer).toMatchObject({
        status: 403,
        code: 'not_allowed',
        message: expect.stringMatching(/^whileSuspended is a policy that only the server decides/),
      });
    }
    expect(await on.entries()).toBe(before);
    await on.agent.close();
  });

  it.each([
    ['a model', { model: 'big' }],
    ['a schema', { output: 'city' }],
  ])('%s that the agent has and the server does not allow is answered 403', async (_, chosen) => {
    const on = await place({ models: ['small'], outputs: ['word'] });
    expect(await on.post('/conversations/c/messages', { content: 'hi', ...chosen })).toMatchObject({ status: 403 });
    await on.agent.close();
  });

  it('a value that the agent refuses is answered 400', async () => {
    const on = await place({ settings: true });
    const answer = await on.post('/conversations/c/messages', { content: 'hi', settings: { temprature: 1 } });
    expect(answer).toMatchObject({ status: 400, code: 'configuration' });
    await on.agent.close();
  });
});

it('a message over HTTP is logged with the name that authorize answered, which a client cannot set', async () => {
  const on = await place();
  expect(await on.post('/conversations/c/messages', { content: 'hi', by: 'eve' })).toMatchObject({ status: 403 });
  await on.post('/conversations/c/messages', { content: 'hi', by: 'ann' });
  await on.post('/conversations/c/follow-ups', { content: 'more' });
  await on.agent.close();
  const later = await createAgent({ model: scripted([]), store: on.store }).open('c');
  const senders = later.log().flatMap((entry) => (entry.type === 'user-message' ? [entry.by] : []));
  expect(senders).toEqual(['ann', 'ann']);
});

const pages = [
  [
    'uiMessageHandler',
    uiMessageHandler,
    (chosen: object) => ({
      id: 'c',
      messages: [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'hi' }] }],
      ...chosen,
    }),
  ],
  [
    'agUiHandler',
    agUiHandler,
    (chosen: object) => ({
      ...{ threadId: 'c', runId: 'r', state: {}, tools: [], context: [], forwardedProps: chosen },
      messages: [{ id: 'm1', role: 'user', content: 'hi' }],
    }),
  ],
] as const;

describe.each(pages)('a page of %s', (_, makeHandler, bodyOf) => {
  async function asked(chosen: object, allow?: HandlerOptions['allow']) {
    const [model, small] = [scripted(['own']), scripted(['small'])];
    const agent = createAgent({ model, store: memoryStore(), models: { small } });
    const handle = makeHandler(agent, { authorize: () => 'ann', ...(allow && { allow }) });
    const headers = { 'content-type': 'application/json' };
    const body = JSON.stringify(bodyOf(chosen));
    const answer = await handle(new Request('http://host/chat', { method: 'POST', headers, body }));
    const text = await answer.text();
    await agent.close();
    return { status: answer.status, text, calls: [model.calls.length, small.calls.length], store: agent.profile.store };
  }

  it('that chooses a model is answered 403, not_allowed, where nothing is allowed, and no model is called', async () => {
    const { status, text, calls } = await asked({ model: 'small' });
    expect([status, JSON.parse(text).code, calls]).toEqual([403, 'not_allowed', [0, 0]]);
  });

  it('has the model that it chooses where that is allowed, and its message the name that authorize answered', async () => {
    const { status, calls, store } = await asked(
      { model: 'small', context: { a: 1 } },
      { models: ['small'], context: true },
    );
    expect([status, calls]).toEqual([200, [0, 1]]);
    const later = await createAgent({ model: scripted([]), store }).open('c');
    expect(later.log().find(({ type }) => type === 'user-message')).toMatchObject({
      by: 'ann',
      model: 'small',
      context: { a: 1 },
    });
  });

  it('that chooses nothing has the agent’s own model', async () => {
    expect(await asked({})).toMatchObject({ status: 200, calls: [1, 0] });
  });
});
