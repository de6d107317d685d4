/**
 * Requests that a handler refuses, again and again, with limits that one request uses up. Invariant: a refused request is not counted,
 * for every refusal at every moment.
 */
import { expect, it, onTestFinished } from 'vitest';
import { createAgent, type LogStore, memoryStore } from '../../src/index.ts';
import { agUiHandler, createHandlers, type Sessions, sessions, uiMessageHandler } from '../../src/transports/index.ts';
import { deaf, scripted, t } from '../support/scriptedReplies.ts';

const TIMES = 3;
const LIMITS = { requests: 1, clients: 1, clientsPerConversation: 1, bodiesBytes: 400, creationsPerMinute: 1 };
type Wanted = readonly [method: string, path: string, body?: unknown, headers?: { [name: string]: string }];

const chat = (id: unknown) => ({ id, messages: [{ id: 'u1', role: 'user', parts: [{ type: 'text', text: 'hi' }] }] });
const thread = (threadId: unknown) => ({ threadId, messages: [{ id: 'u1', role: 'user', content: 'hi' }] });
const LONG = { content: 'x'.repeat(500) };
/** `anns` is a conversation of somebody else, and the store cannot open `broken`. */
const IDS = ['anns', 'broken', 'never'] as const;

const HANDLERS: readonly (readonly [
  name: string,
  make: typeof createHandlers | typeof uiMessageHandler | typeof agUiHandler,
  good: readonly Wanted[],
  refused: readonly Wanted[],
])[] = [
  [
    'createHandlers',
    createHandlers,
    [
      ['GET', '/conversations/mine/events'],
      ['POST', '/conversations', { id: 'new' }],
    ],
    [
      ...IDS.flatMap((id): Wanted[] => [
        ['GET', `/conversations/${id}/events`],
        ['GET', `/conversations/${id}/events?overview=1`],
        ['GET', `/conversations/${id}`],
        ['POST', `/conversations/${id}/messages`, { content: 'hi' }],
      ]),
      ['GET', '/conversations/mine/events', undefined, { 'last-event-id': 'x' }],
      ['POST', '/conversations/mine/events', {}],
      ['POST', '/conversations/mine/messages', LONG],
      ['POST', '/conversations/mine/messages', { nothing: 1 }],
      ['POST', '/conversations', { id: 'anns' }],
      ['POST', '/conversations', { id: 'broken' }],
      ['POST', '/conversations', { id: '..' }],
      ['POST', '/conversations', 'no object'],
      ['GET', '/elsewhere'],
      ['GET', '/conversations/mine/events', undefined, { 'x-caller': 'nobody' }],
    ],
  ],
  ...(
    [
      ['uiMessageHandler', uiMessageHandler, chat],
      ['agUiHandler', agUiHandler, thread],
    ] as const
  ).map(
    ([name, make, body]) =>
      [
        name,
        make,
        [['POST', '/', body('new')]],
        [
          ['POST', '/', body('anns')],
          ['POST', '/', body('broken')],
          ['POST', '/', body(5)],
          ['POST', '/', { ...body('mine'), messages: 'none' }],
          ['POST', '/', { ...body('mine'), messages: [{ role: 'nobody' }] }],
          ['POST', '/', { ...body('mine'), padding: LONG }],
          ['PUT', '/', body('mine')],
          ['POST', '/', body('mine'), { 'x-caller': 'nobody' }],
        ],
      ] as const,
  ),
];

/** A store that cannot open one conversation. */
function breaking(): LogStore {
  const store = memoryStore();
  return {
    ...store,
    open: (id, ...more) => (id === 'broken' ? Promise.reject(new Error('no disk')) : store.open(id, ...more)),
  };
}

const cases = HANDLERS.flatMap(([name, make, good, refused]) =>
  (['its own sessions', 'sessions of the host'] as const).flatMap((kind) =>
    refused.map(
      (wanted) =>
        [name, kind, wanted.slice(0, 2).join(' '), JSON.stringify(wanted.slice(2)), make, good, wanted] as const,
    ),
  ),
);

it.each(cases)('%s with %s: a refused %s %s counts for nothing', async (_, kind, _of, _with, make, good, refused) => {
  const agent = createAgent({ model: scripted(Array.from({ length: 9 }, () => deaf(t('a')))), store: breaking() });
  onTestFinished(() => agent.close());
  for (const [id, owner] of [
    ['anns', 'ann'],
    ['mine', 'bob'],
  ] as const)
    await (await agent.open(id, { owner })).close();
  const host = sessions(agent);
  const bare: Sessions = {
    acquire: (id, options) => host.acquire(id, options),
    release: (conversation) => host.release(conversation),
    close: () => host.close(),
  };
  const handle = make(agent, {
    authorize: ({ headers }) => headers.get('x-caller') === null && { by: 'bob', owner: 'bob' },
    limits: LIMITS,
    ...(kind === 'sessions of the host' && { sessions: bare }),
  });
  const ask = ([method, path, body, headers]: Wanted): Promise<Response> =>
    handle(
      new Request(`http://h${path}`, {
        method,
        headers: { 'content-type': 'application/json', ...headers },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      }),
    );
  const answers = [];
  for (let times = 0; times < TIMES; times += 1) answers.push((await ask(refused)).status);
  expect(answers[0]).toBeGreaterThanOrEqual(400);
  expect(answers).toEqual(Array(TIMES).fill(answers[0]));
  for (const each of good) expect((await ask(each)).status).toBeLessThan(300);
});
