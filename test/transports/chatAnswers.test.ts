/**
 * Every kind of request to every handler of chats, in every status, under every policy. Invariant: each answer has a
 * status, a body and an end, and a refused request calls no model.
 */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type Agent, createAgent, defineTool, type Policies } from '../../src/index.ts';
import { agUiHandler, sessions, uiMessageHandler } from '../../src/transports/index.ts';
import { asks, echoTool } from '../support/scenarioTools.ts';
import { call, finish, type Reply, scripted, t } from '../support/scriptedReplies.ts';

type Name = 'agUi' | 'ui';
const HANDLERS = { agUi: agUiHandler, ui: uiMessageHandler } as const;
/** The events at the start and the end of an answer. */
const ENDS: Readonly<Record<Name, readonly [string, RegExp]>> = {
  agUi: ['RUN_STARTED', /^(RUN_FINISHED|RUN_ERROR)$/],
  ui: ['start', /^(finish|abort)$/],
};

const STATUSES = ['idle', 'active', 'waiting', 'error', 'cancelled'] as const;
type Status = (typeof STATUSES)[number];
const WHILE_ACTIVE = ['reject', 'steer', 'followUp'] as const;
const WHILE_SUSPENDED = ['denyAndRun', 'reject', 'followUp'] as const;

const user = (id: string, text: unknown): Record<Name, object> => ({
  agUi: { threadId: 'c', runId: 'r', messages: [{ id, role: 'user', content: text }] },
  ui: { id: 'c', messages: [{ id, role: 'user', parts: typeof text === 'string' ? [{ type: 'text', text }] : text }] },
});
const answer = (interruptId: string): Record<Name, object> => ({
  agUi: { threadId: 'c', runId: 'r', messages: [], resume: [{ interruptId, status: 'resolved', payload: true }] },
  ui: {
    id: 'c',
    messages: [
      {
        id: 'a',
        role: 'assistant',
        parts: [
          {
            type: 'dynamic-tool',
            toolCallId: 'c1',
            state: 'approval-responded',
            approval: { id: interruptId, approved: true },
          },
        ],
      },
    ],
  },
});

const REQUESTS: Readonly<Record<string, Record<Name, object>>> = {
  'a message': user('new', 'more'),
  'the earlier message': user('first', 'hi'),
  'an answer to the waiting call': answer('1/c1'),
  'an answer to nothing': answer('1/c9'),
};
const MALFORMED: Readonly<Record<string, Record<Name, object>>> = {
  'content of another type': user('new', 5),
  'content without a part': user('new', []),
  'content without text': user('new', ''),
  'content of empty texts': user('new', [{ type: 'text', text: '' }]),
  'an invalid part': user('new', ['x', 5]),
  'an invalid text': user('new', [{ type: 'text', text: 5 }]),
  'a file without its bytes': user('new', [{ type: 'file', mediaType: 'image/png' }]),
  'no content': user('new', undefined),
  'no message': { agUi: { threadId: 'c', messages: [] }, ui: { id: 'c', messages: [] } },
  'an invalid id': user('a/b', 'more'),
  'an invalid last message': {
    agUi: { threadId: 'c', messages: [{ id: 'new', role: 'user', content: 'more' }, 5] },
    ui: { id: 'c', messages: [{ id: 'new', role: 'user', parts: [{ type: 'text', text: 'more' }] }, 5] },
  },
  'invalid answers': {
    agUi: { threadId: 'c', messages: [], resume: [5] },
    ui: { id: 'c', messages: [{ id: 'a', role: 'assistant', parts: 5 }] },
  },
  'a value instead of a list': {
    agUi: { threadId: 'c', messages: [{ id: 'new', role: 'user', content: 'more' }], tools: 5 },
    ui: { id: 'c', messages: 5 },
  },
  'an answer to an unnamed question': {
    agUi: { threadId: 'c', messages: [], resume: [{ status: 'resolved', payload: true }] },
    ui: { id: 'c', messages: [{ id: 'a', role: 'assistant' }] },
  },
  'answers that are not a list': {
    agUi: { threadId: 'c', messages: [{ id: 'new', role: 'user', content: 'more' }], resume: 5 },
    ui: { id: 'c', messages: [{ id: 'a', role: 'assistant', parts: ['x'] }] },
  },
};

function gate() {
  let open = (): void => {};
  const wait = new Promise<void>((resolve) => {
    open = () => resolve();
  });
  return { wait, open: () => open() };
}

/** A conversation in this status, after a first message. */
async function scene(
  name: Name,
  status: Status,
  policies: Partial<Policies>,
  whileSuspended?: Policies['whileSuspended'],
) {
  const { wait, open } = gate();
  const slow = async function* () {
    await wait;
    yield t('slow');
    yield finish('stop');
  };
  const waits: Reply = [call('c1', 'ask', { m: '' })];
  const first: Readonly<Record<Status, Reply>> = {
    ...{ idle: 'first', active: slow, waiting: waits, cancelled: waits },
    error: [call('c1', 'boom', {})],
  };
  const model = scripted([first[status], ...Array<Reply>(4).fill('more')]);
  const limits = status === 'error' ? { limits: { turns: 1 } } : {};
  const agent: Agent = createAgent({
    model,
    tools: [echoTool('ask').tool],
    plugins: [asks().plugin],
    policies: { ...policies, ...limits },
  });
  const shared = sessions(agent);
  const handler = HANDLERS[name](agent, {
    authorize: () => true,
    sessions: shared,
    ...(whileSuspended && { whileSuspended }),
  });
  const post = (body: object): Promise<Response> =>
    handler(
      new Request('http://here/', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
    );
  const begun = await post(user('first', 'hi')[name]);
  const conversation = await shared.acquire('c');
  if (status !== 'active') await begun.text();
  else await expect.poll(() => model.calls.length).toBe(1);
  if (status === 'cancelled') await conversation.cancel();
  return { agent, model, conversation, post, open };
}

const typesIn = (text: string): string[] =>
  [...text.matchAll(/^data: {"type":"([^"]+)"/gm)].map(([, type]) => type ?? '');

describe.each(['agUi', 'ui'] as const)('%s', (name) => {
  const [begins, ends] = ENDS[name];
  const rows = STATUSES.flatMap((status) =>
    Object.keys(REQUESTS).flatMap((request) =>
      (status === 'active' ? WHILE_ACTIVE : WHILE_SUSPENDED).map((policy) => [request, status, policy] as const),
    ),
  );

  it.each(rows)(
    '%s while the conversation is %s, under %s, has an answer that ends',
    async (request, status, policy) => {
      const isActive = status === 'active';
      const policies = isActive ? { whileActive: policy as Policies['whileActive'] } : {};
      const asked = isActive ? undefined : (policy as Policies['whileSuspended']);
      const { agent, conversation, post, open } = await scene(name, status, policies, asked);
      const body = REQUESTS[request]?.[name] ?? {};
      const response = await post(body);
      open();
      const text = await response.text();
      const isRefused = request === 'a message' && policy === 'reject' && (isActive || status === 'waiting');
      if (isRefused) {
        expect([response.status, JSON.parse(text)]).toMatchObject([409, { code: 'agent_busy' }]);
      } else {
        const types = typesIn(text);
        expect([response.status, types[0]]).toEqual([200, begins]);
        expect([
          types.at(-1),
          types.filter((type) => ends.test(type)).length,
          types.filter((type) => type === begins).length,
        ]).toEqual([expect.stringMatching(ends), 1, 1]);
        expect(text.endsWith(name === 'ui' ? 'data: [DONE]\n\n' : '\n\n')).toBe(true);
      }
      // A request that was not refused can continue: the waiting page is asked.
      if (conversation.status === 'waiting' && !isRefused) expect(text).toContain('c1');
      await expect.poll(() => conversation.status).toMatch(/^(idle|waiting|error)$/);
      await agent.close();
    },
  );

  it.each(Object.keys(MALFORMED).flatMap((request) => STATUSES.map((status) => [request, status] as const)))(
    '%s while the conversation is %s is 400, changes nothing and calls no model',
    async (request, status) => {
      const { agent, model, conversation, post, open } = await scene(name, status, {});
      const [length, calls] = [conversation.log().length, model.calls.length];
      const response = await post(MALFORMED[request]?.[name] ?? {});
      expect([response.status, (await response.json()).code]).toEqual([
        400,
        expect.stringMatching(/^(malformed|configuration)$/),
      ]);
      expect([conversation.log().length, model.calls.length]).toEqual([length, calls]);
      open();
      await agent.close();
    },
  );

  it.each(['stop', 'tool-calls', 'length', 'content-filter', 'pause'] as const)(
    'a reply of any parts that finishes with %s has one start and one end',
    async (reason) => {
      const parts = {
        text: t('Hi.'),
        thought: { type: 'reasoning-delta', text: 'Hm.' } as const,
        call: call('c1', 'echo', { m: 'a' }),
      };
      const subsets = Array.from({ length: 8 }, (_, bits) =>
        Object.values(parts).filter((_part, index) => bits & (1 << index)),
      );
      for (const [index, subset] of subsets.entries()) {
        const model = scripted([[...subset, finish(reason)], ...Array<Reply>(9).fill('more')]);
        const agent = createAgent({ model, tools: [echoTool().tool] });
        const handler = HANDLERS[name](agent, { authorize: () => true });
        const init = { method: 'POST', headers: { 'content-type': 'application/json' } };
        const body = JSON.stringify(user(`m${index}`, 'hi')[name]);
        const text = await (await handler(new Request('http://here/', { ...init, body }))).text();
        const types = typesIn(text);
        expect([index, types[0], types.filter((type) => type === begins).length]).toEqual([index, begins, 1]);
        expect([index, types.at(-1), types.filter((type) => ends.test(type)).length]).toEqual([
          index,
          expect.stringMatching(ends),
          1,
        ]);
        await agent.close();
      }
    },
  );
});

describe('several answers in one request', () => {
  const yes = (id: string) => ({ interruptId: `1/${id}`, status: 'resolved', payload: true });
  const ENTRIES: readonly (readonly [string, unknown])[] = [
    ['has no payload', { interruptId: '1/c2', status: 'resolved' }],
    ['has an unknown status', { ...yes('c2'), status: 'odd' }],
    ['approves with a text', { ...yes('c2'), payload: { approved: 'yes' } }],
    ['approves new arguments', { ...yes('c2'), payload: { approved: true, args: {} } }],
    ['has an unknown action', { ...yes('c2'), payload: { action: 'allow' } }],
    ['edits without arguments', { ...yes('c2'), payload: { action: 'edit' } }],
    ['answers a question of permission', { ...yes('c2'), payload: { action: 'answer', payload: 1 } }],
    ['is no object', 5],
    ['names no interrupt', { status: 'resolved', payload: true }],
    ['names an interrupt by a number', { ...yes('c2'), interruptId: 5 }],
  ];
  it.each(ENTRIES)('are all refused if one %s, and nothing is decided', async (_, entry) => {
    const gate = [call('c1', 'pay', {}), call('c2', 'pay', {})];
    const pay = defineTool({
      ...{ name: 'pay', description: 'Pays.', parameters: z.object({}), needsApproval: true },
      execute: () => 'paid',
    });
    const agent = createAgent({ model: scripted([gate, 'more']), tools: [pay] });
    const shared = sessions(agent);
    const handler = agUiHandler(agent, { authorize: () => true, sessions: shared });
    const headers = { 'content-type': 'application/json' };
    const post = (body: object): Promise<Response> =>
      handler(new Request('http://here/', { method: 'POST', headers, body: JSON.stringify(body) }));
    await (await post(user('first', 'hi').agUi)).text();
    const conversation = await shared.acquire('c');
    const length = conversation.log().length;
    const answered = await post({ threadId: 'c', messages: [], resume: [yes('c1'), entry] });
    expect(answered.status).toBe(400);
    expect([conversation.log().length, conversation.pending.length]).toEqual([length, 2]);
    await agent.close();
  });
});
