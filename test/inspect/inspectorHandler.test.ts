/** The inspector in a server of your own, over real sockets: in node:http, below Express and below Hono. */
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import express from 'express';
import { Hono } from 'hono';
import { describe, expect, it } from 'vitest';
import { watchersOf } from '../../src/agent.ts';
import { createAgent } from '../../src/index.ts';
import { type InspectorHandlerOptions, inspectorHandler } from '../../src/inspect/index.ts';
import { inspectorHandlerOf } from '../../src/inspect/inspectorHandler.ts';
import type { PageFiles } from '../../src/inspect/pageFiles.ts';
import type { ToPage } from '../../src/inspect/wire.ts';
import { nodeHandler } from '../../src/transports/index.ts';
import { call, scripted } from '../support/scriptedReplies.ts';
import { approvedTool } from './approvalTool.ts';
import { kept } from './kept.ts';

const HTML = '<!doctype html><head><title>page</title></head><div id="page"></div>';
const FILES: PageFiles = new Map([
  ['/index.html', { mediaType: 'text/html; charset=utf-8', bytes: Buffer.from(HTML) }],
  ['/assets/page.js', { mediaType: 'text/javascript; charset=utf-8', bytes: Buffer.from('const page = 1;') }],
]);

const agentOf = (...replies: Parameters<typeof scripted>[0]) =>
  kept(createAgent({ model: scripted(replies), tools: [approvedTool] }));
const cookie = { cookie: 'session=right' };
const byCookie = (request: Request): boolean => request.headers.get('cookie') === 'session=right';
const options = (more: Partial<InspectorHandlerOptions> = {}): InspectorHandlerOptions => ({
  authorize: byCookie,
  basePath: '/inspector',
  ...more,
});
const handlerOf = (agent: ReturnType<typeof agentOf>, more: Partial<InspectorHandlerOptions> = {}, graceMs = 60_000) =>
  inspectorHandlerOf(agent, options(more), { files: () => FILES, graceMs });

async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  kept({
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** An open page without a screen. */
class Page {
  readonly messages: ToPage[] = [];
  readonly response: Response;
  id = '';
  isOver = false;
  readonly #base: string;
  readonly #leaving: AbortController;
  #wakes: (() => void)[] = [];
  #asks = 0;

  private constructor(base: string, response: Response, leaving: AbortController) {
    this.#base = base;
    this.response = response;
    this.#leaving = leaving;
  }

  static async open(base: string, from: number | undefined = 0, session?: string): Promise<Page> {
    const leaving = new AbortController();
    const response = await fetch(`${base}/events`, { headers: cookie, signal: leaving.signal });
    const page = kept(new Page(base, response, leaving));
    void page.#read();
    while (page.id === '') await page.#next();
    if (from !== undefined) await page.say({ type: 'subscribe', from, ...(session && { session }) });
    return page;
  }

  async #read(): Promise<void> {
    let text = '';
    const decoder = new TextDecoder();
    try {
      for await (const bytes of this.response.body ?? []) {
        text += decoder.decode(bytes, { stream: true });
        const events = text.split('\n\n');
        text = events.pop() ?? '';
        for (const event of events) this.#take(event);
      }
    } catch {}
    this.isOver = true;
    this.#wake();
  }

  #take(event: string): void {
    const data = /^data: (.*)$/m.exec(event)?.[1] ?? '';
    if (event.startsWith('event: page')) this.id = data;
    else if (data !== '') this.messages.push(...(JSON.parse(data) as ToPage[]));
    this.#wake();
  }

  #wake(): void {
    for (const wake of this.#wakes.splice(0)) wake();
  }

  #next(): Promise<void> {
    return new Promise((resolve) => void this.#wakes.push(resolve));
  }

  say(message: object): Promise<Response> {
    const headers = { ...cookie, 'content-type': 'application/json' };
    return fetch(`${this.#base}/requests?page=${this.id}`, { method: 'POST', headers, body: JSON.stringify(message) });
  }

  async see(fits: (message: ToPage) => boolean): Promise<ToPage> {
    for (;;) {
      const found = this.messages.find(fits);
      if (found) return found;
      await this.#next();
    }
  }

  async ended(): Promise<void> {
    while (!this.isOver) await this.#next();
  }

  async ask(request: object): Promise<ToPage> {
    const ask = ++this.#asks;
    expect((await this.say({ ...request, ask })).status).toBe(204);
    return this.see((message) => 'ask' in message && message.ask === ask);
  }

  close(): void {
    this.#leaving.abort();
  }
}

const isEntry =
  (type: string) =>
  (message: ToPage): boolean =>
    message.type === 'entry' && message.entry.type === type;

describe('the inspector in a server of your own', () => {
  it('serves its page below the base path, and nothing else', async () => {
    const handler = handlerOf(agentOf());
    const get = (path: string, headers: object = cookie, method = 'GET') =>
      handler(new Request(`http://host${path}`, { method, headers: headers as Record<string, string> }));
    const page = await get('/inspector/');
    expect(page.status).toBe(200);
    expect(await page.text()).toContain('<meta name="runchart-connection" content="events">');
    expect(page.headers.get('content-security-policy')).toContain("connect-src 'self';");
    expect(page.headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
    expect(page.headers.get('referrer-policy')).toBe('no-referrer');
    expect((await get('/inspector/index.html')).status).toBe(200);
    expect(await (await get('/inspector/assets/page.js')).text()).toBe('const page = 1;');
    const redirect = await get('/inspector?log=a.jsonl');
    expect([redirect.status, redirect.headers.get('location')]).toEqual([308, './inspector/?log=a.jsonl']);
    for (const path of [
      '/',
      '/index.html',
      '/inspectors/',
      '/inspector/else',
      '/other/inspector/',
      '/inspector//',
      '/events',
    ])
      expect((await get(path)).status, path).toBe(404);
    for (const path of ['/inspector/../package.json', '/inspector/%2e%2e/x', '/inspector/assets/..%2findex.html'])
      expect((await get(path)).status, path).toBe(404);
    expect((await get('/inspector/', cookie, 'POST')).status).toBe(405);
    expect((await get('/inspector/events', cookie, 'POST')).headers.get('allow')).toBe('GET');
    expect((await get('/inspector/', cookie, 'HEAD')).headers.get('content-length')).not.toBe('0');
  });

  it('asks authorize for all but the public files of the page', async () => {
    let answer: unknown = false;
    const handler = handlerOf(agentOf(), { authorize: (() => answer) as never });
    const status = async (path: string): Promise<number> =>
      (await handler(new Request(`http://host/inspector${path}`))).status;
    const all = async (): Promise<number[]> => [
      await status('/'),
      await status('/events'),
      await status('/assets/page.js'),
    ];
    expect(await all()).toEqual([401, 401, 200]);
    answer = '';
    expect(await all()).toEqual([401, 401, 200]);
    // Such an answer limits the caller to the conversations of an owner, and the page shows all.
    answer = { by: 'ada', owner: 'ada' };
    expect(await all()).toEqual([403, 403, 200]);
    answer = 'ada';
    expect(await status('/')).toBe(200);
    const post = new Request('http://host/inspector/requests?page=x', { method: 'POST', body: '{}' });
    expect((await handler(post)).status).toBe(404);
    answer = false;
    expect((await handler(new Request(post.url, { method: 'POST', body: '{}' }))).status).toBe(401);
  });

  it('refuses the requests of other sites, and lets a link open the page', async () => {
    const handler = handlerOf(agentOf());
    const status = async (path: string, headers: Record<string, string>): Promise<number> => {
      const response = await handler(
        new Request(`http://host:80/inspector${path}`, { headers: { ...cookie, host: 'host', ...headers } }),
      );
      await response.body?.cancel();
      return response.status;
    };
    for (const path of ['/', '/events', '/assets/page.js']) {
      expect(await status(path, {}), path).toBe(200);
      expect(await status(path, { 'sec-fetch-site': 'same-origin' }), path).toBe(200);
      expect(await status(path, { 'sec-fetch-site': 'none' }), path).toBe(200);
      expect(await status(path, { 'sec-fetch-site': 'cross-site' }), path).toBe(403);
      expect(await status(path, { 'sec-fetch-site': 'same-site' }), path).toBe(403);
      expect(await status(path, { origin: 'http://host' }), path).toBe(200);
      // A proxy may have other names than the server.
      expect(await status(path, { origin: 'https://public.example', 'sec-fetch-site': 'same-origin' }), path).toBe(200);
      for (const origin of [
        'https://evil.example',
        'null',
        'http://host.evil.example',
        'http://host:81',
        'http://evil/host',
      ])
        expect(await status(path, { origin }), `${path} ${origin}`).toBe(403);
    }
    const link = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' };
    expect([await status('/', link), await status('/events', link)]).toEqual([200, 403]);
  });

  it('shows conversations that were open before and those that follow; read-only without control', async () => {
    const agent = agentOf([call('c1', 'note', { text: 'a' })], 'Done.');
    const before = await agent.open('before');
    const handler = handlerOf(agent);
    const base = `${await listening(createServer(nodeHandler(handler)))}/inspector`;
    const page = await Page.open(base);
    expect(await page.see(({ type }) => type === 'hello')).toMatchObject({ control: false });
    await page.see((message) => message.type === 'conversation' && message.conversation === 'before');
    const after = await agent.open('after');
    await page.see((message) => message.type === 'conversation' && message.conversation === 'after');
    await before.send('Take a note').result;
    await page.see(isEntry('tool-suspended'));
    await page.see(({ type }) => type === 'transition');
    const decision = { callId: 'c1', action: 'approve' };
    const refused = await page.ask({ type: 'decide', conversation: 'before', decision });
    expect(refused).toMatchObject({ type: 'refused', code: 'read_only' });
    expect(before.pending).toHaveLength(1);
    await after.close();
    await page.see((message) => message.type === 'closed' && message.conversation === 'after');
  });

  it('with control decisions have the name that authorize returns, whatever the page sends', async () => {
    const agent = agentOf([call('c1', 'note', { text: 'a' })], 'Done.', 'Hello.');
    const authorize = (request: Request): string | false => byCookie(request) && 'ada';
    const handler = handlerOf(agent, { control: true, authorize });
    const base = `${await listening(createServer(nodeHandler(handler)))}/inspector`;
    const conversation = await agent.open('acts');
    await conversation.send('Take a note').result;
    const page = await Page.open(base);
    const decision = { callId: 'c1', action: 'approve', by: 'mallory' };
    const decided = await page.ask({ type: 'decide', conversation: 'acts', decision });
    expect(decided).toMatchObject({ type: 'answer', value: { receipt: 'applied' } });
    await page.ask({ type: 'resume', conversation: 'acts' });
    await page.see(isEntry('run-stop'));
    await page.ask({ type: 'send', conversation: 'acts', content: 'Hello' });
    const log = JSON.stringify(conversation.log());
    expect(log).toContain('"by":"ada"');
    expect(log).not.toContain('mallory');
    const messages = conversation.log().filter(({ type }) => type === 'user-message');
    expect(messages.at(-1)).toMatchObject({ by: 'ada' });
  });

  it('a request of an unknown page, another type of body or a large one is refused', async () => {
    const base = `${await listening(createServer(nodeHandler(handlerOf(agentOf()))))}/inspector`;
    const page = await Page.open(base);
    const post = async (body: string, type = 'application/json', id = page.id): Promise<number> => {
      const headers = { ...cookie, 'content-type': type };
      return (await fetch(`${base}/requests?page=${id}`, { method: 'POST', headers, body })).status;
    };
    expect(await post('{}', 'application/json', 'unknown')).toBe(404);
    expect(await post('{}', 'text/plain')).toBe(415);
    expect(await post('{')).toBe(400);
    expect(await post(JSON.stringify('x'.repeat(65_536)))).toBe(413);
    expect(await post('{"type":"nothing"}')).toBe(204);
    page.close();
    await expect.poll(() => post('{}')).toBe(404);
  });

  it('a page that connects again goes on after its last record; after the grace it begins anew', async () => {
    const agent = agentOf('One.', 'Two.', 'Three.');
    const base = `${await listening(createServer(nodeHandler(handlerOf(agent, {}, 50))))}/inspector`;
    const conversation = await agent.open('again');
    const page = await Page.open(base);
    const { session, next } = (await page.see(({ type }) => type === 'hello')) as { session: string; next: number };
    const second = await Page.open(base, next, session);
    page.close();
    await conversation.send('One').result;
    await second.see(isEntry('run-stop'));
    expect(await second.see(({ type }) => type === 'hello')).toMatchObject({ session, from: next });
    expect(watchersOf(agent).size).toBe(2);
    second.close();
    // The handler itself watches the agent too.
    await expect.poll(() => watchersOf(agent).size).toBe(1);
    const third = await Page.open(base, next, session);
    const hello = (await third.see(({ type }) => type === 'hello')) as { session: string; from: number };
    expect(hello.from).toBe(0);
    expect(hello.session).not.toBe(session);
    await third.see(isEntry('run-stop'));
  });

  it('at most 64 pages are open, and all end with the agent', async () => {
    const agent = agentOf();
    const handler = handlerOf(agent);
    const base = `${await listening(createServer(nodeHandler(handler)))}/inspector`;
    const pages = await Promise.all(Array.from({ length: 64 }, () => Page.open(base)));
    expect((await fetch(`${base}/events`, { headers: cookie })).status).toBe(429);
    await agent.close();
    await Promise.all(pages.map((page) => page.ended()));
    expect((await fetch(`${base}/events`, { headers: cookie })).status).toBe(503);
  });

  it('refuses a page after the agent was closed while no page was open', async () => {
    const agent = agentOf();
    const handler = handlerOf(agent);
    await agent.close();
    const events = await handler(new Request('http://host/inspector/events', { headers: cookie }));
    await events.body?.cancel();
    expect(events.status).toBe(503);
  });

  it.each(['/für uns', '/tools:inspector'])('answers below the path %s', async (basePath) => {
    const handler = handlerOf(agentOf(), { basePath });
    const { href } = new URL(basePath, 'http://host');
    const { status, headers } = await handler(new Request(href, { headers: cookie }));
    const page = new URL(headers.get('location') ?? '', href).href;
    expect([status, page]).toEqual([308, `${href}/`]);
    expect((await handler(new Request(page, { headers: cookie }))).status).toBe(200);
  });

  it('refuses invalid options', () => {
    const agent = agentOf();
    const made = (handlerOptions: object) => () => inspectorHandler(agent, handlerOptions as InspectorHandlerOptions);
    expect(made({})).toThrow('inspectorHandler needs authorize');
    expect(made({ authorize: () => true, basePath: 'inspector' })).toThrow('a path such as /inspector');
    expect(made({ authorize: () => true, basePath: '/inspector/' })).toThrow('a path such as /inspector');
    expect(made({ authorize: () => true, token: 'x' })).toThrow('token');
  });
});

describe('below other routers', () => {
  const mounted: readonly [string, (agent: ReturnType<typeof agentOf>) => Server][] = [
    [
      'Express with the whole path, after a parser of bodies',
      (agent) => {
        const app = express();
        app.use(express.json());
        app.all(/^\/inspector(\/|$)/, nodeHandler(handlerOf(agent)));
        return createServer(app);
      },
    ],
    [
      'Express that removes the path',
      (agent) => {
        const app = express();
        app.use('/inspector', nodeHandler(handlerOf(agent, { basePath: '' })));
        return createServer(app);
      },
    ],
    [
      'Hono with the whole path',
      (agent) => {
        const app = new Hono();
        const handler = handlerOf(agent);
        app.all('/inspector', ({ req }) => handler(req.raw));
        app.all('/inspector/*', ({ req }) => handler(req.raw));
        return createServer(getRequestListener(app.fetch, { overrideGlobalObjects: false }));
      },
    ],
    [
      'Hono that removes the path',
      (agent) =>
        createServer(
          getRequestListener(new Hono().mount('/inspector', handlerOf(agent, { basePath: '' })).fetch, {
            overrideGlobalObjects: false,
          }),
        ),
    ],
  ];

  it.each(mounted)('%s', async (_, serverOf) => {
    const agent = agentOf('Hello.');
    const server = serverOf(agent);
    const foreign: string[] = [];
    server.on('upgrade', ({ url }, socket) => {
      foreign.push(`${url}`);
      socket.end('HTTP/1.1 101 Switching Protocols\r\n\r\n');
    });
    const origin = await listening(server);
    const page = await fetch(`${origin}/inspector/`, { headers: cookie });
    expect(await page.text()).toContain('runchart-connection');
    expect((await fetch(`${origin}/inspector/assets/page.js`)).status).toBe(200);
    expect((await fetch(`${origin}/else`, { headers: cookie })).status).toBe(404);
    const watching = await Page.open(`${origin}/inspector`);
    await (await agent.open('mounted')).send('Hello').result;
    await watching.see(isEntry('run-stop'));
    // Upgrades are the host's own.
    const socket = connect(Number(new URL(origin).port), '127.0.0.1');
    socket.write('GET /inspector/events HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    await new Promise((resolve) => socket.once('data', resolve));
    socket.destroy();
    expect(foreign).toEqual(['/inspector/events']);
  });
});
