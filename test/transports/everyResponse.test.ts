/**
 * The common parts of every response of a handler: its headers, its methods and its place under a base path; and the limits of handlers
 * and sessions by default.
 */
import { describe, expect, it, onTestFinished } from 'vitest';
import * as z from 'zod';
import { createAgent, defineTool, memoryStore } from '../../src/index.ts';
import { jsonBody } from '../../src/transports/httpRequests.ts';
import {
  agUiHandler,
  createHandlers,
  type HandlerOptions,
  sessions,
  uiMessageHandler,
} from '../../src/transports/index.ts';
import { Quotas } from '../../src/transports/quotas.ts';
import { base64, dot } from '../support/samplePictures.ts';
import { call, deaf, scripted, t } from '../support/scriptedReplies.ts';

type Handler = (request: Request) => Promise<Response>;
type Asked = readonly [method: string, path: string, body?: unknown];

const ask = (handle: Handler, [method, path, body]: Asked): Promise<Response> =>
  handle(
    new Request(`http://h${path}`, {
      method,
      ...(body !== undefined && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    }),
  );

const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  parameters: z.object({}),
  needsApproval: true,
  execute: () => 'paid',
});

function agentOf(...replies: Parameters<typeof scripted>[0]) {
  const agent = createAgent({ model: scripted(replies), tools: [pay], store: memoryStore() });
  onTestFinished(() => agent.close());
  return agent;
}

/** A handler with a conversation `a` that has an image and a call that waits. */
async function house(options: Partial<HandlerOptions> = {}) {
  const agent = agentOf([call('c1', 'pay')], 'done', 'more');
  const handle = createHandlers(agent, { authorize: () => true, ...options });
  const base = options.basePath?.replace(/\/+$/, '') ?? '';
  await ask(handle, ['POST', `${base}/conversations`, { id: 'a' }]);
  const content = [{ type: 'image', mediaType: 'image/png', data: base64(dot) }];
  const sent = await ask(handle, ['POST', `${base}/conversations/a/messages`, { content }]);
  const { runId } = (await sent.json()) as { runId: string };
  await expect
    .poll(
      async () => ((await (await ask(handle, ['GET', `${base}/conversations/a`])).json()) as { status: string }).status,
    )
    .toBe('waiting');
  const { view } = (await (await ask(handle, ['GET', `${base}/conversations/a`])).json()) as { view: object };
  const [, hash = ''] = /blob:([\w-]+)/.exec(JSON.stringify(view)) ?? [];
  return { agent, handle, runId, hash };
}

/** Every path, with its methods; each request is accepted in this order. */
const routes = ({
  runId,
  hash,
}: {
  runId: string;
  hash: string;
}): readonly (readonly [path: string, allow: string, asked: readonly (readonly [...Asked, status: number])[]])[] => [
  [
    '/conversations',
    'GET, POST',
    [
      ['GET', '/conversations', undefined, 200],
      ['POST', '/conversations', { id: 'a' }, 200],
      ['POST', '/conversations', { id: 'b' }, 201],
    ],
  ],
  [
    '/conversations/a',
    'GET, DELETE',
    [
      ['GET', '/conversations/a', undefined, 200],
      ['DELETE', '/conversations/b', undefined, 204],
    ],
  ],
  ['/conversations/a/events', 'GET', [['GET', '/conversations/a/events', undefined, 200]]],
  [`/conversations/a/runs/${runId}`, 'GET', [['GET', `/conversations/a/runs/${runId}`, undefined, 200]]],
  [`/conversations/a/blobs/${hash}`, 'GET', [['GET', `/conversations/a/blobs/${hash}`, undefined, 200]]],
  [
    '/conversations/a/decisions',
    'POST',
    [['POST', '/conversations/a/decisions', { callId: 'c1', action: 'approve' }, 200]],
  ],
  [
    '/conversations/a/settlements',
    'POST',
    [['POST', '/conversations/a/settlements', { callId: 'c9', how: { didNotRun: true } }, 200]],
  ],
  [
    '/conversations/a/resume',
    'POST',
    [
      ['POST', '/conversations/a/resume', undefined, 202],
      ['POST', '/conversations/a/cancel', {}, 200],
    ],
  ],
  ['/conversations/a/cancel', 'POST', [['POST', '/conversations/a/cancel', undefined, 200]]],
  [
    '/conversations/a/messages',
    'POST',
    [
      ['POST', '/conversations/a/messages', { content: 'hi' }, 202],
      ['POST', '/conversations/a/cancel', {}, 200],
    ],
  ],
  [
    '/conversations/a/steer',
    'POST',
    [
      ['POST', '/conversations/a/steer', { content: 'hi' }, 202],
      ['POST', '/conversations/a/cancel', {}, 200],
    ],
  ],
  [
    '/conversations/a/follow-ups',
    'POST',
    [
      ['POST', '/conversations/a/follow-ups', { content: 'hi' }, 202],
      ['POST', '/conversations/a/cancel', {}, 200],
    ],
  ],
];

function kept(path: string, { status, headers }: Response): void {
  const isBlob = path.includes('/blobs/') && status === 200;
  const shown = [
    status,
    path,
    headers.get('cache-control'),
    headers.get('x-content-type-options'),
    headers.get('content-type'),
  ];
  if (status === 204) return expect(shown.slice(0, 3)).toEqual([204, path, 'no-store']);
  expect(shown).toEqual([
    status,
    path,
    isBlob ? 'private, max-age=31536000, immutable' : 'no-store',
    'nosniff',
    isBlob ? 'image/png' : path.endsWith('/events') && status === 200 ? 'text/event-stream' : 'application/json',
  ]);
  if (status === 200 && path.endsWith('/events')) expect(headers.get('x-accel-buffering')).toBe('no');
}

describe('createHandlers', () => {
  it('answers every accepted request with its status, uncached and unguessed', async () => {
    const made = await house();
    for (const [, , asked] of routes(made))
      for (const [method, path, body, status] of asked) {
        const response = await ask(made.handle, [method, path, body]);
        expect([method, path, response.status]).toEqual([method, path, status]);
        kept(path, response);
        await response.body?.cancel();
      }
  });

  it('answers every other method of every path with 405 and the methods that it takes', async () => {
    const made = await house();
    for (const [path, allow] of routes(made))
      for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
        if (allow.split(', ').includes(method)) continue;
        const response = await ask(made.handle, [method, path]);
        expect([method, path, response.status, response.headers.get('allow')]).toEqual([method, path, 405, allow]);
        expect(await response.json()).toMatchObject({ type: 'error', code: 'method' });
        kept(path, response);
      }
  });

  it('answers an unauthorized request of every path and method with 401, and so does not reveal what exists', async () => {
    const made = await house();
    const strict = createHandlers(made.agent, { authorize: () => false });
    for (const path of [...routes(made).map(([path]) => path), '/conversations/none', '/elsewhere', '/'])
      for (const method of ['GET', 'POST', 'PUT', 'DELETE']) {
        const response = await ask(strict, [method, path]);
        expect([method, path, response.status]).toEqual([method, path, 401]);
        kept(path, response);
      }
  });

  it.each([
    '/',
    '/conversation',
    '/conversations/',
    '/conversations//messages',
    '/conversations/a/',
    '/conversations/a/nothing',
    '/conversations/a/messages/x',
    '/conversations/a/events/x',
    '/conversations/a/runs',
    '/conversations/a/blobs',
    '/conversations/a/runs/x/y',
    '/conversations/a/toString',
    '/Conversations',
    '/x/conversations',
  ])('%s is no path for any method', async (path) => {
    const { handle } = await house();
    for (const method of ['GET', 'POST', 'DELETE']) {
      const response = await ask(handle, [method, path]);
      expect([method, response.status, await response.json()]).toEqual([
        method,
        404,
        expect.objectContaining({ code: 'not_found' }),
      ]);
      kept(path, response);
    }
  });

  it.each(['/api', '/api/', '/api//', '/a/b', '/%20'])(
    'serves every path under the base path %s, and none beside it',
    async (basePath) => {
      const base = basePath.replace(/\/+$/, '');
      const made = await house({ basePath });
      for (const [, , asked] of routes(made))
        for (const [method, path, body, status] of asked) {
          const response = await ask(made.handle, [method, `${base}${path}`, body]);
          expect([method, path, response.status]).toEqual([method, path, status]);
          if (status === 201) expect(response.headers.get('location')).toBe(`${base}/conversations/b`);
          await response.body?.cancel();
        }
      for (const path of [
        '/conversations',
        `${base}x/conversations`,
        `${base}xconversations`,
        `/x${base}/conversations`,
        base,
      ])
        expect([path, (await ask(made.handle, ['GET', path])).status]).toEqual([path, 404]);
    },
  );

  it.each([
    ['/ü', '/%C3%BC'],
    ['/a b', '/a%20b'],
    ['api', '/api'],
    ['api/', '/api'],
  ])('serves the base path %j at %s, for pages of a chat too', async (basePath, path) => {
    const agent = agentOf('one');
    const handlers = [createHandlers, uiMessageHandler].map((make) => make(agent, { authorize: () => true, basePath }));
    const paths = [`${path}/conversations`, `${path}/a`];
    const answers = handlers.map((handle, at) => handle(new Request(`http://h${paths[at]}`)));
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200]);
  });

  it('adds the overview to the answer of every act, of a creation and of what is shown, where the address asks for it', async () => {
    const made = await house();
    const overview = { createdAt: expect.any(Number), entries: expect.any(Number), status: expect.any(String) };
    for (const [, , asked] of routes(made))
      for (const [method, path, body, status] of asked) {
        const isList = method === 'GET' && path === '/conversations';
        if (status === 204 || isList || /events|runs|blobs/.test(path)) continue;
        const answer = await (await ask(made.handle, [method, `${path}?overview`, body])).json();
        expect([path, answer]).toEqual([
          path,
          expect.objectContaining({ overview: expect.objectContaining(overview) }),
        ]);
        const plain = await (await ask(made.handle, ['GET', '/conversations/a'])).json();
        expect(plain).not.toHaveProperty('overview');
      }
  });
});

const text = { role: 'user', id: 'm1', content: 'hi' };
const part = { role: 'user', id: 'm1', parts: [{ type: 'text', text: 'hi' }] };
const CHATS = [
  [
    'agUiHandler',
    agUiHandler,
    { threadId: 'a', messages: [text] },
    { threadId: 'none', messages: [], resume: [{ interruptId: 'x' }] },
  ],
  [
    'uiMessageHandler',
    uiMessageHandler,
    { id: 'a', messages: [part] },
    { id: 'none', messages: [{ role: 'assistant', id: 'x', parts: [] }] },
  ],
] as const;

describe.each(CHATS)('%s', (name, make, body, missing) => {
  it('streams uncached, unguessed and unbuffered, with its own mark', async () => {
    const {
      status,
      headers,
      body: stream,
    } = await ask(make(agentOf('one'), { authorize: () => true }), ['POST', '/', body]);
    const names = [
      'content-type',
      'cache-control',
      'x-content-type-options',
      'x-accel-buffering',
      'x-vercel-ai-ui-message-stream',
    ];
    const mark = name === 'uiMessageHandler' ? 'v1' : null;
    expect([status, ...names.map((each) => headers.get(each))]).toEqual([
      200,
      'text/event-stream',
      'no-store',
      'nosniff',
      'no',
      mark,
    ]);
    await stream?.cancel();
  });

  it('answers refusals uncached and unguessed', async () => {
    const handle = make(agentOf('one'), { authorize: () => true, basePath: '/chat' });
    for (const [asked, status] of [
      [['POST', '/elsewhere', body], 404],
      [['POST', '/chatty', body], 404],
      [['POST', '/chat', {}], 400],
      [['POST', '/chat', []], 400],
      [['POST', '/chat', missing], 404],
      [['PUT', '/chat', body], 405],
      [['GET', '/chat'], 405],
    ] as const) {
      const response = await ask(handle, asked);
      expect([asked, response.status]).toEqual([asked, status]);
      if (status === 405) expect(response.headers.get('allow')).toBe('POST');
      kept(asked[1], response);
    }
  });
});

it('uiMessageHandler answers a history, a stop and nothing to continue, and the paths of each take one method', async () => {
  const handle = uiMessageHandler(agentOf('one'), { authorize: () => true, basePath: '/chat' });
  await (await ask(handle, ['POST', '/chat', CHATS[1][2]])).text();
  for (const [asked, status, allow] of [
    [['GET', '/chat/a'], 200],
    [['GET', '/chat/none'], 200],
    [['POST', '/chat/a/stop'], 200],
    [['POST', '/chat/none/stop'], 404],
    [['GET', '/chat/a/stream'], 204],
    [['GET', '/chat/none/stream'], 204],
    [['POST', '/chat/a'], 405, 'GET'],
    [['POST', '/chat/a/stream'], 405, 'GET'],
    [['GET', '/chat/a/stop'], 405, 'POST'],
    [['GET', '/chat/a/other'], 404],
    [['GET', '/chat/a/stop/x'], 404],
    [['GET', '/chat//stream'], 404],
  ] as const) {
    const response = await ask(handle, asked);
    expect([asked, response.status, response.headers.get('allow')]).toEqual([asked, status, allow ?? null]);
    kept(asked[1], response);
  }
});

describe('by default', () => {
  const refuses = (act: () => unknown): boolean => {
    try {
      act();
      return false;
    } catch {
      return true;
    }
  };
  const countUntilRefused = (act: (count: number) => unknown): number => {
    let count = 0;
    while (count < 10_000 && !refuses(() => act(count))) count += 1;
    return count;
  };

  it('the quotas are 1,000 requests, 64 MiB of bodies, 5,000 readers, 2,000 of one conversation, and 1,000 creations a minute', () => {
    const quotas = () => new Quotas({}, () => 0);
    const [requests, one, readers, own, creations] = [quotas(), quotas(), quotas(), quotas(), quotas()];
    expect(countUntilRefused(() => requests.beginRequest())).toBe(1_000);
    expect(countUntilRefused((count) => readers.beginClient(`${count % 10}`))).toBe(5_000);
    expect(countUntilRefused(() => own.beginClient('a'))).toBe(2_000);
    expect(countUntilRefused(() => creations.beginCreation())).toBe(1_000);
    const request = one.beginRequest();
    request.addBytes(64 * 1_048_576);
    expect(refuses(() => request.addBytes(1))).toBe(true);
  });

  it.each([
    [8 * 1_048_576, true],
    [8 * 1_048_576 + 1, false],
  ])('a body of %i bytes is read: %s', async (bytes, isRead) => {
    const headers = { 'content-type': 'application/json', 'content-length': `${bytes}` };
    const request = new Request('http://h/', { method: 'POST', headers, body: '{}' });
    const read = jsonBody(request, {});
    if (isRead) expect(await read).toEqual({});
    else await expect(read).rejects.toMatchObject({ code: 'too_large' });
  });

  /** The timers that begin until the test ends. */
  function timers() {
    const begun: number[] = [];
    const setTimer = (ms: number): (() => void) => {
      begun.push(ms);
      return () => undefined;
    };
    return { begun, setTimer };
  }
  const MAKERS = [
    ['createHandlers', createHandlers, ['POST', '/conversations', { id: 'a' }]],
    ['agUiHandler', agUiHandler, ['POST', '/', CHATS[0][2]]],
    ['uiMessageHandler', uiMessageHandler, ['POST', '/', CHATS[1][2]]],
  ] as const;

  it.each(
    MAKERS.flatMap(([name, make, asked]) => [undefined, 1_234].map((idleMs) => [name, idleMs, make, asked] as const)),
  )('a conversation of %s stays open for 60 s, or for limits.idleMs: %s', async (_, idleMs, make, asked) => {
    const { begun, setTimer } = timers();
    const handle = make(agentOf('one'), { authorize: () => true, setTimer, ...(idleMs && { limits: { idleMs } }) });
    await (await ask(handle, asked)).text();
    await expect.poll(() => begun.filter((ms) => ms !== 15_000)).toContain(idleMs ?? 60_000);
  });

  it.each(MAKERS.flatMap(([name, make]) => [undefined, 777].map((beatMs) => [name, beatMs, make] as const)))(
    'a reader of %s receives a sign of life each 15 s, or each beatMs: %s',
    async (name, beatMs, make) => {
      const { begun, setTimer } = timers();
      const handle = make(agentOf(deaf(t('a'))), { authorize: () => true, setTimer, ...(beatMs && { beatMs }) });
      if (name === 'createHandlers') await ask(handle, ['POST', '/conversations', { id: 'a' }]);
      const asked =
        name === 'createHandlers'
          ? (['GET', '/conversations/a/events'] as const)
          : (['POST', '/', name === 'agUiHandler' ? CHATS[0][2] : CHATS[1][2]] as const);
      const { body } = await ask(handle, asked);
      expect(begun).toContain(beatMs ?? 15_000);
      await body?.cancel();
    },
  );

  it.each(MAKERS)(
    '%s keeps at most limits.openMax conversations open, and a request waits 10 s for a place',
    async (name, make) => {
      const { begun, setTimer } = timers();
      const handle = make(agentOf(deaf(t('a')), deaf(t('b'))), {
        authorize: () => true,
        setTimer,
        limits: { openMax: 1 },
      });
      const begin = async (id: string): Promise<Response> => {
        if (name === 'agUiHandler') return ask(handle, ['POST', '/', { ...CHATS[0][2], threadId: id }]);
        if (name === 'uiMessageHandler') return ask(handle, ['POST', '/', { ...CHATS[1][2], id }]);
        const made = await ask(handle, ['POST', '/conversations', { id }]);
        return made.ok ? ask(handle, ['POST', `/conversations/${id}/messages`, { content: 'hi' }]) : made;
      };
      expect((await begin('a')).ok).toBe(true);
      void begin('b').catch(() => undefined);
      await expect.poll(() => begun).toContain(10_000);
    },
  );

  it('sessions keep 200 conversations open, and the next one waits 10 s for a place', async () => {
    const { begun, setTimer } = timers();
    const shared = sessions(agentOf(), { setTimer });
    onTestFinished(() => shared.close());
    for (let count = 0; count < 200; count += 1) await shared.acquire(`${count}`);
    expect(begun).toEqual([]);
    const waiting = shared.acquire('more').catch((error: { code: string }) => error.code);
    await expect.poll(() => begun).toEqual([10_000]);
    await shared.close();
    expect(await waiting).toBe('closed');
  });
});
