/** The inspector's server over real sockets: the requests that it accepts, and its answers. */
import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import { describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { ConfigurationError, createAgent } from '../../src/index.ts';
import { type Inspector, startInspector } from '../../src/inspect/index.ts';
import { Observed } from '../../src/inspect/observed.ts';
import { RecordLog } from '../../src/inspect/recordLog.ts';
import { type InspectorServer, startServer } from '../../src/inspect/server.ts';
import { call, scripted } from '../support/scriptedReplies.ts';
import { approvedTool, SECRET } from './approvalTool.ts';
import { kept } from './kept.ts';
import { Watcher } from './pageWatcher.ts';

const EVIL = '<img src=x onerror=alert(1)></script>';

const portOf = ({ url }: { url: string }): number => Number(new URL(url).port);

/** The answer of a server to some bytes, up to its first line. */
function firstLine(port: number, bytes: string, host = '127.0.0.1'): Promise<string> {
  return new Promise((resolve, reject) => {
    let response = '';
    const socket = connect(port, host, () => socket.write(bytes));
    socket.on('data', (chunk) => {
      response += String(chunk);
      if (response.includes('\r\n')) socket.destroy();
    });
    socket.on('error', reject);
    socket.on('close', () => resolve(response.split('\r\n')[0] ?? ''));
  });
}

const upgrade = (path: string, headers: readonly string[]): string =>
  [
    `GET ${path} HTTP/1.1`,
    ...headers,
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    '\r\n',
  ].join('\r\n');

async function bareServer(port = 0): Promise<InspectorServer & { records: RecordLog }> {
  const records = new RecordLog(() => 0);
  const observed = new Observed(records);
  const files = new Map([['/index.html', { mediaType: 'text/html', bytes: Buffer.from('<!doctype html>page') }]]);
  const options = { port, control: false, version: '0', records, observed, files, stallMs: 1000 };
  return Object.assign(kept(await startServer(options)), { records });
}

describe('access to the server', () => {
  it('H-300 no address except the loopback answers', async () => {
    const { url } = await bareServer();
    expect(new URL(url).hostname).toBe('127.0.0.1');
    const others = Object.values(networkInterfaces()).flatMap((list = []) => list.filter(({ internal }) => !internal));
    for (const { address, family } of others) {
      if (family !== 'IPv4') continue;
      await expect(firstLine(portOf({ url }), 'GET / HTTP/1.1\r\n\r\n', address)).rejects.toThrow(/ECONNREFUSED/);
    }
  });

  it('a port of another program is an error that names the cause', async () => {
    const port = portOf(await bareServer());
    const refused = startInspector({ port });
    await expect(refused).rejects.toBeInstanceOf(ConfigurationError);
    await expect(refused).rejects.toThrow(
      `cannot listen on 127.0.0.1, port ${port}: another program uses this port; choose another one, or 0 for any that is free (EADDRINUSE)`,
    );
  });

  it.runIf(process.getuid?.() === 0)(
    'the default port of http may be missing in the host, as browsers write it',
    async () => {
      const { token } = await bareServer(80);
      const ask = (host: string) => firstLine(80, `GET /?token=${token} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
      for (const host of ['127.0.0.1', '127.0.0.1:80', 'localhost']) expect(await ask(host)).toContain(' 200 ');
      expect(await ask('evil.example')).toContain(' 403 ');
    },
  );

  it('H-301 H-302 H-303 H-304 a stream needs our host, our origin or none, and the token', async () => {
    const server = await bareServer();
    const port = portOf(server);
    const { token } = server;
    const ask = (path: string, ...headers: string[]): Promise<string> => firstLine(port, upgrade(path, headers));
    const host = `Host: 127.0.0.1:${port}`;
    const right = `/ws?token=${token}`;
    expect(await ask(right, host)).toContain(' 101 ');
    expect(await ask(right, host, `Origin: http://127.0.0.1:${port}`)).toContain(' 101 ');
    expect(await ask(right, `Host: LOCALHOST:${port}`)).toContain(' 101 ');
    expect(await ask('/ws', host, `Authorization: Bearer ${token}`)).toContain(' 101 ');
    expect(await ask(right, host, 'Origin: https://evil.example')).toContain(' 403 ');
    expect(await ask(right, host, 'Origin: null')).toContain(' 403 ');
    expect(await ask(right, host, `Origin: http://localhost:${port + 1}`)).toContain(' 403 ');
    expect(await ask(right, 'Host: rebind.evil.example')).toContain(' 403 ');
    expect(await ask(right, `Host: 127.0.0.1`)).toContain(' 403 ');
    expect(await ask('/ws', host)).toContain(' 401 ');
    expect(await ask('/ws?token=', host)).toContain(' 401 ');
    expect(await ask(`/ws?token=${token.slice(1)}`, host)).toContain(' 401 ');
    const swapped = [...token].map((letter) => (/[a-z]/.test(letter) ? letter.toUpperCase() : letter.toLowerCase()));
    expect(await ask(`/ws?token=${swapped.join('')}`, host)).toContain(' 401 ');
    expect(await ask(`/ws?token=${'x'.repeat(2000)}`, host)).toContain(' 413 ');
    expect(await ask(`/ws?token=${'x'.repeat(1024 * 1024)}`, host)).toContain(' 413 ');
    expect(await ask(`/else?token=${token}`, host)).toContain(' 404 ');
    // An app of this machine may be a separate page; it can only send reports.
    expect(await ask(`/app?token=${token}`, host, 'Origin: http://localhost:5173')).toContain(' 101 ');
    expect(await ask(`/app?token=${token}`, host, 'Origin: https://evil.example')).toContain(' 403 ');
    expect(await ask('/app', host)).toContain(' 401 ');
  });

  it('an app may be any page of this machine, and no page whose origin only looks like one', async () => {
    const server = await bareServer();
    const port = portOf(server);
    const ask = (origin: string): Promise<string> =>
      firstLine(port, upgrade(`/app?token=${server.token}`, [`Host: 127.0.0.1:${port}`, `Origin: ${origin}`]));
    const names = ['localhost', '127.0.0.1', '[::1]'];
    for (const name of names)
      for (const origin of [`http://${name}`, `https://${name}`, `http://${name}:5173`])
        expect(await ask(origin), origin).toContain(' 101 ');
    const before = [
      'http://evil.',
      'http://evil-',
      'http://me@',
      'http://me:5173@',
      'ftp://',
      'chrome-extension://',
      '',
    ];
    const after = [
      '.evil.example',
      '.',
      '-evil',
      ':5173.evil.example',
      ':5173x',
      ':',
      '@evil.example',
      '/',
      '?',
      '#',
      ' x',
    ];
    for (const name of names) {
      const origins = [...before.map((text) => text + name), ...after.map((text) => `http://${name}${text}`)];
      for (const origin of [...origins, `http://${name},http://${name}`])
        expect(await ask(origin), origin).toContain(' 403 ');
    }
  });

  it('H-302 H-303 the page needs our host and the token, and forbids all files except its own', async () => {
    const server = await bareServer();
    const port = portOf(server);
    const get = (path: string, host = `127.0.0.1:${port}`): Promise<string> =>
      firstLine(port, `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    expect(await get(`/?token=${server.token}`)).toContain(' 200 ');
    expect(await get('/')).toContain(' 401 ');
    expect(await get('/index.html')).toContain(' 401 ');
    expect(await get(`/?token=${server.token}`, 'rebind.evil.example')).toContain(' 403 ');
    const page = await fetch(server.url);
    expect(await page.text()).toContain('page');
    const policy = page.headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'self'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain('unsafe');
    expect(page.headers.get('x-content-type-options')).toBe('nosniff');
    expect(page.headers.get('referrer-policy')).toBe('no-referrer');
  });

  it('H-313 paths that lead out, unusual methods and old protocols are refused', async () => {
    const server = await bareServer();
    const port = portOf(server);
    const host = `Host: 127.0.0.1:${port}\r\n\r\n`;
    for (const path of ['/../../etc/passwd', '/%2e%2e/%2e%2e/etc/passwd', '//', '/..%2f..%2fetc/passwd', '/\\..\\x'])
      expect(await firstLine(port, `GET ${path}?token=${server.token} HTTP/1.1\r\n${host}`), path).toContain(' 404 ');
    expect(await firstLine(port, `OPTIONS * HTTP/1.1\r\n${host}`)).toContain(' 404 ');
    expect(await firstLine(port, `POST /?token=${server.token} HTTP/1.1\r\n${host}`)).toContain(' 405 ');
    expect(await firstLine(port, 'GET /\r\n\r\n')).toContain(' 400 ');
    expect(await firstLine(port, 'nonsense\r\n\r\n')).toContain(' 400 ');
  });

  it('H-305 an invalid request of a page is counted and has no effect', async () => {
    const server = await bareServer();
    const page = kept(await Watcher.open(server.url));
    await page.see('hello');
    const before = server.records.next;
    const nonsense = [
      '{"type":"@xstate.event","event":{"type":"APPROVE"}}',
      'not json',
      '[]',
      'null',
      '{"type":"subscribe","from":0}',
      '{"type":"decide","ask":1}',
      '{"type":"__proto__","ask":1,"conversation":"c"}',
    ];
    for (const line of nonsense) page.say(line);
    const answer = await page.ask({ type: 'context', actor: 'nobody' });
    expect(answer).toMatchObject({ type: 'answer', value: null });
    expect(server.ignored).toBe(nonsense.length);
    expect(server.records.next).toBe(before);
  });

  it('H-301 H-302 H-303 similar names, tokens beside a wrong one and whole addresses are refused', async () => {
    const server = await bareServer();
    const port = portOf(server);
    const { token } = server;
    const ask = (path: string, ...headers: string[]): Promise<string> => firstLine(port, upgrade(path, headers));
    const right = `/ws?token=${token}`;
    for (const host of [
      '127.0.0.1',
      `127.0.0.1:${port}.evil.example`,
      `localhost.:${port}`,
      `[::1]:${port}`,
      `x@127.0.0.1:${port}`,
      '',
    ])
      expect(await ask(right, `Host: ${host}`), host).toMatch(/ 40[03] /);
    const host = `Host: 127.0.0.1:${port}`;
    for (const origin of [
      `http://127.0.0.1:${port}.evil.example`,
      `https://127.0.0.1:${port}`,
      `http://localhost:${port}`,
      'file://',
      'null',
    ])
      expect(await ask(right, host, `Origin: ${origin}`), origin).toContain(' 403 ');
    expect(await ask(`/ws?token=wrong&token=${token}`, host)).toContain(' 401 ');
    expect(await ask(right, host, 'Authorization: Bearer wrong')).toContain(' 401 ');
    expect(await ask(`http://evil.example/ws?token=${token}`, host)).toContain(' 404 ');
    expect(await ask(`/ws/../ws?token=${token}`, host)).toContain(' 404 ');
  });

  it('H-305 reports of an app with prototypes, endless depth and markup have no effect, and one overlong frame ends the app alone', async () => {
    const server = await bareServer();
    const app = new WebSocket(server.url.replace('http', 'ws').replace('/?', '/app?'));
    await new Promise((resolve) => app.once('open', resolve));
    const deep = `${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`;
    const states = `${'{"initial":"a","states":{"a":'.repeat(5000)}{}${'}}'.repeat(5000)}`;
    const reports = [
      `{"type":"@xstate.actor","sessionId":"__proto__","name":${JSON.stringify(EVIL)},"rootId":"constructor","snapshot":{"value":{"__proto__":{"polluted":"yes"}}}}`,
      `{"type":"@xstate.actor","sessionId":"deep","name":"deep","definition":${JSON.stringify(states)}}`,
      `{"type":"@xstate.event","sessionId":"deep","event":{"type":"GO","deep":${deep}}}`,
      `{"type":"@xstate.snapshot","sessionId":"deep","snapshot":{"status":"toString","value":${deep},"context":${deep}}}`,
      `{"type":"@xstate.event","sessionId":"__proto__","sourceId":"constructor","event":{"type":"__proto__","__proto__":{"polluted":"yes"}}}`,
    ];
    for (const text of reports) app.send(text);
    const page = kept(await Watcher.open(server.url));
    const event = await page.see('event', ({ event: { type } }) => type === '__proto__');
    expect(JSON.stringify(event).length).toBeLessThan(2000);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    app.send('x'.repeat(1024 * 1024 + 1));
    expect(await new Promise((resolve) => app.once('close', resolve))).toBe(1009);
    expect(await page.ask({ type: 'context', actor: 'a0' })).toMatchObject({ type: 'answer' });
  });

  it('a frame of a page beyond 64 KiB ends its connection alone', async () => {
    const server = await bareServer();
    const large = new WebSocket(server.url.replace('http', 'ws').replace('/?', '/ws?'));
    const code = await new Promise((resolve) => {
      large.once('open', () => large.send('x'.repeat(65 * 1024)));
      large.once('close', resolve);
    });
    expect(code).toBe(1009);
    const other = kept(await Watcher.open(server.url));
    expect(await other.see('hello')).toMatchObject({ control: false });
  });
});

describe('messages to a page', () => {
  const watched = async (control: boolean) => {
    const inspector: Inspector = kept(await startInspector({ control }));
    const model = scripted([
      [{ type: 'text-delta', text: `Key ${SECRET} ${EVIL}` }, call('c1', 'note', { text: 'hello' })],
      'Noted.',
    ]);
    const agent = kept(createAgent({ model, tools: [approvedTool], secrets: [SECRET], inspect: inspector.observe }));
    const conversation = await agent.open('watched');
    return { inspector, agent, conversation };
  };

  it('H-309 a page that connects after the run receives all of it, in order, without secrets', async () => {
    const { inspector, conversation } = await watched(false);
    await conversation.send(`Use ${SECRET}`).result;
    const page = kept(await Watcher.open(inspector.url));
    await page.see('entry', ({ entry }) => entry.type === 'checkpoint' && entry.boundary === 'RunFinished');
    const numbers = page.messages.flatMap((message) => ('n' in message ? [message.n] : []));
    expect(numbers).toEqual(numbers.map((_, index) => index));
    expect(page.all('entry').map(({ entry }) => entry)).toEqual(conversation.log());
    expect(page.all('chart').map(({ drawn }) => drawn.name)).toContain('RUN');
    const suspended = page.all('transition').filter(({ taken }) => taken.some(({ targets }) => targets.length > 0));
    expect(suspended.length).toBeGreaterThan(10);
    await page.see('status', ({ status }) => status === 'waiting');
    const [run] = page.all('actor').filter(({ name }) => name === 'run');
    const messageText = JSON.stringify(page.messages);
    expect(messageText).toContain(JSON.stringify(EVIL).slice(1, -1));
    expect(messageText).not.toContain(SECRET);
    // A context is sent on request.
    const root = page.all('actor').find(({ parent }) => parent === undefined);
    const context = await page.ask({ type: 'context', actor: root?.actor ?? '' });
    expect(context).toMatchObject({ type: 'answer', value: { settings: {} } });
    expect(JSON.stringify(context)).not.toContain(SECRET);
    expect(await page.ask({ type: 'context', actor: run?.actor ?? '' })).toMatchObject({ value: null });
  });

  it('a page that reconnects requests the missing records', async () => {
    const { inspector, conversation } = await watched(false);
    const first = kept(await Watcher.open(inspector.url));
    const { session } = await first.see('hello');
    await conversation.send('Go.').result;
    const last = await first.see('entry', ({ entry }) => entry.type === 'run-suspended');
    first.close();
    await conversation.cancel();
    const second = kept(await Watcher.open(inspector.url, last.n + 1, session));
    await second.see('entry', ({ entry }) => entry.type === 'run-stop');
    expect(second.all('hello')[0]?.from).toBe(last.n + 1);
    expect(second.messages.every((message) => !('n' in message) || message.n > last.n)).toBe(true);
    const other = kept(await Watcher.open(inspector.url, last.n + 1, 'of another start'));
    expect(await other.see('hello')).toMatchObject({ from: 0 });
  });

  it('a read-only page decides nothing, and its requests are refused', async () => {
    const { inspector, conversation } = await watched(false);
    await conversation.send('Go.').result;
    const page = kept(await Watcher.open(inspector.url));
    const decision = { callId: 'c1', suspension: 1, action: 'approve' } as const;
    for (const request of [
      { type: 'decide', conversation: 'watched', decision } as const,
      { type: 'resume', conversation: 'watched' } as const,
      { type: 'cancel', conversation: 'watched' } as const,
      { type: 'send', conversation: 'watched', content: 'more' } as const,
    ])
      expect(await page.ask(request)).toMatchObject({ type: 'refused', code: 'read_only' });
    expect(conversation.pending).toHaveLength(1);
    expect(conversation.log().some(({ type }) => type === 'decision')).toBe(false);
  });

  it('with control a person decides and resumes from the page, and a refusal has its code', async () => {
    const { inspector, conversation } = await watched(true);
    await conversation.send('Go.').result;
    const page = kept(await Watcher.open(inspector.url));
    const decide = (decision: object) =>
      page.ask({ type: 'decide', conversation: 'watched', decision: decision as never });
    expect(await decide({ callId: 'c1', suspension: 1, action: 'shrug' })).toMatchObject({ code: 'invalid_decision' });
    expect(await page.ask({ type: 'resume', conversation: 'another' })).toMatchObject({ code: 'not_found' });
    const answer = await decide({ callId: 'c1', suspension: 1, action: 'approve' });
    expect(answer).toMatchObject({ type: 'answer', value: { receipt: 'applied' } });
    await page.ask({ type: 'resume', conversation: 'watched' });
    await page.see('entry', ({ entry }) => entry.type === 'run-stop' && entry.reason === 'completed');
    const [decided] = conversation.log().filter(({ type }) => type === 'decision');
    expect(decided).toMatchObject({ decision: { by: 'inspector' } });
    const sent = await page.ask({ type: 'send', conversation: 'watched', content: 'And now?' });
    expect(sent).toMatchObject({ type: 'answer', value: { runId: expect.any(String) } });
  });
});
