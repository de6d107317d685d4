/**
 * `runchart serve` over HTTP, in this process: its address, its token, its refusals, other origins, and the resources that its end
 * releases.
 */
import { mkdir, mkdtemp, realpath, rm } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import { type AddressInfo, Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { type ServeOptions, serveCommand } from '../../src/cli/serveCommand.ts';
import { ConfigurationError } from '../../src/errors.ts';
import { jsonlStore } from '../../src/stores/jsonl/jsonlStore.ts';
import { modelServer } from '../e2e/modelServer.ts';
import { hangs } from '../e2e/runDirectory.ts';

let root = '';
beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'runchart-serve-')));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  await mkdir(join(root, 'work'));
  vi.stubEnv('XDG_CONFIG_HOME', join(root, 'config'));
  vi.stubEnv('XDG_STATE_HOME', join(root, 'state'));
  vi.stubEnv('OPENAI_API_KEY', 'sk-serve-0123456789');
  vi.stubEnv('OPENAI_BASE_URL', 'http://127.0.0.1:9/v1');
  vi.stubEnv('RUNCHART_TOKEN', undefined);
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

const LOCAL = { host: '127.0.0.1', port: '0', model: 'm1' };
const sessions = () => join(root, 'state', 'runchart');

/** A server of this process, with the one line that it prints. */
async function serving(options: Partial<ServeOptions> = {}) {
  let printed = '';
  const write = vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    printed += String(text);
    return true;
  });
  const listens = vi.spyOn(Server.prototype, 'listen');
  const stop = new AbortController();
  const ended = serveCommand({ ...LOCAL, cwd: join(root, 'work'), ...options }, stop.signal);
  const end = (): Promise<number> => {
    stop.abort();
    return ended;
  };
  onTestFinished(() => void end().catch(() => undefined));
  await Promise.race([ended, vi.waitUntil(() => printed.endsWith('\n'), { timeout: 20_000, interval: 2 })]);
  write.mockRestore();
  const line = JSON.parse(printed) as { url: string; token: string };
  return { ...line, line, end, server: listens.mock.contexts.at(-1) };
}

interface Answer {
  status: number;
  headers: NodeJS.Dict<string | string[]>;
  body: string;
}

/** `fetch` sets Host and Origin itself, so this does not use it. */
function asked(url: string, headers: Record<string, string> = {}, method = 'GET', body?: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { headers, method, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (piece: string) => {
        text += piece;
      });
      // A connection that the server closes ends the answer too.
      response.on('error', () => undefined);
      response.on('close', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }));
    });
    sent.on('error', reject).end(body);
  });
}

describe('the line that it prints', () => {
  test('is its address and a token of its own, another one for each start', async () => {
    const [one, two] = [await serving(), await serving()];
    for (const { line, url } of [one, two]) {
      expect(line).toEqual({ url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/), token: expect.any(String) });
      expect(url).not.toMatch(/:0$/);
    }
    expect(one.token).toMatch(/^[\w-]{43}$/);
    expect(one.token).not.toBe(two.token);
  });

  test('does not repeat a token of RUNCHART_TOKEN, which is the token then, and an empty one is none', async () => {
    vi.stubEnv('RUNCHART_TOKEN', 'chosen-token');
    const { line, url } = await serving();
    expect(Object.keys(line)).toEqual(['url']);
    expect((await asked(`${url}/conversations`, { authorization: 'Bearer chosen-token' })).status).toBe(200);
    vi.stubEnv('RUNCHART_TOKEN', '');
    const open = await serving();
    expect(open.token).toMatch(/^[\w-]{43}$/);
    expect((await asked(`${open.url}/conversations`, { authorization: 'Bearer ' })).status).toBe(401);
  });

  test('has an address of IPv6 in brackets, and the server answers to it', async () => {
    const { url, token } = await serving({ host: '::1' });
    expect(url).toMatch(/^http:\/\/\[::1\]:\d+$/);
    expect((await asked(`${url}/conversations`, { authorization: `Bearer ${token}` })).status).toBe(200);
  });
});

describe('a request', () => {
  test('needs one of the hosts of the server with its port, in letters of any case', async () => {
    for (const hostName of ['127.0.0.1', 'localhost']) {
      const { url, token } = await serving({ host: hostName });
      const { port } = new URL(url);
      const statusOf = async (host: string) =>
        (await asked(`${url}/conversations`, { authorization: `Bearer ${token}`, host })).status;
      for (const host of [new URL(url).host, `localhost:${port}`, `LocalHost:${port}`])
        expect([hostName, host, await statusOf(host)]).toEqual([hostName, host, 200]);
      for (const host of ['localhost', `localhost:${Number(port) + 1}`, `x.localhost:${port}`, `0.0.0.0:${port}`])
        expect([hostName, host, await statusOf(host)]).toEqual([hostName, host, 403]);
    }
  });

  test('to port 80 names the host without it, as every client does', async ({ skip }) => {
    const isFree = await new Promise((resolve) => {
      const probe = createServer()
        .on('error', () => resolve(false))
        .listen(80, '127.0.0.1', () => probe.close(() => resolve(true)));
    });
    // Only some users may listen there.
    if (!isFree) return skip();
    const { url, token } = await serving({ port: '80' });
    const statusOf = async (headers: Record<string, string>) =>
      (await asked(`${url}/conversations`, { authorization: `Bearer ${token}`, ...headers })).status;
    expect(await statusOf({})).toBe(200);
    expect(await statusOf({ host: '127.0.0.1:80' })).toBe(200);
    expect(await statusOf({ host: 'localhost', origin: 'http://localhost' })).toBe(200);
    expect(await statusOf({ host: 'x.localhost' })).toBe(403);
  });

  test.each([
    ['http://localhost:3000/', 'did you mean http://localhost:3000?'],
    ['https://app.example:443', 'did you mean https://app.example?'],
    ['https://App.example/chat', 'did you mean https://app.example?'],
    ['app.example', 'got app.example'],
    ['localhost:3000', 'got localhost:3000'],
    ['*', 'got *'],
    ['', 'like https://app.example'],
  ])('from a page with --origin %j would never be allowed, so the option is refused', async (origin, why) => {
    const started = serveCommand({ ...LOCAL, origin: ['https://app.example', origin] }, new AbortController().signal);
    await expect(started).rejects.toThrow(ConfigurationError);
    await expect(started).rejects.toThrow(why);
  });

  test('from a page of another scheme may be allowed', async () => {
    const origin = 'vscode-webview://abc';
    const { url, token } = await serving({ origin: [origin] });
    expect((await asked(`${url}/conversations`, { authorization: `Bearer ${token}`, origin })).status).toBe(200);
  });

  test('from a page needs an allowed origin, the whole of it', async () => {
    const { url, token } = await serving({ origin: ['http://page.example', 'https://two.example'] });
    const statusOf = async (origin: string) =>
      (await asked(`${url}/conversations`, { authorization: `Bearer ${token}`, origin })).status;
    for (const origin of [url, 'http://page.example', 'https://two.example'])
      expect([origin, await statusOf(origin)]).toEqual([origin, 200]);
    const foreign = [
      'http://page.example.evil',
      'http://page.example:81',
      'https://page.example',
      'page.example',
      'null',
    ];
    for (const origin of [...foreign, url.replace('http:', 'https:'), `${url}0`, ''])
      expect([origin, await statusOf(origin)]).toEqual([origin, 403]);
    const refused = await asked(`${url}/conversations`, { origin: 'null' });
    expect(JSON.parse(refused.body)).toEqual({
      type: 'error',
      code: 'forbidden',
      message: 'the origin is not allowed: see --origin',
    });
  });

  test('needs the token in its header; only a request for events may have it in its address', async () => {
    const token = 't'.repeat(1_024);
    vi.stubEnv('RUNCHART_TOKEN', token);
    const { url } = await serving();
    const statusOf = async (authorization: string | undefined, path = '/conversations', method = 'GET') =>
      (await asked(url + path, authorization === undefined ? {} : { authorization }, method)).status;
    for (const authorization of [`Bearer ${token}`, `bearer ${token}`, `BEARER ${token}`])
      expect(await statusOf(authorization)).toBe(200);
    const wrong = [
      token,
      `Basic ${token}`,
      `Bearer ${token}t`,
      `Bearer ${token.slice(1)}`,
      `Bearer ${token} x`,
      'Bearer',
    ];
    for (const each of wrong) expect([each, await statusOf(each)]).toEqual([each, 401]);
    expect(await statusOf(undefined, `/conversations/none/events?token=${token}`)).toBe(404);
    expect(await statusOf('Bearer wrong', `/conversations/none/events?token=${token}`)).toBe(401);
    for (const [path, method] of [
      ['/conversations', 'GET'],
      ['/conversations', 'POST'],
      ['/conversations/none', 'GET'],
      ['/conversations/none', 'DELETE'],
      ['/conversations/none/events', 'POST'],
      ['/conversations/none/events', 'DELETE'],
      ['/conversations/none/messages', 'POST'],
      ['/nothing', 'GET'],
    ] as const)
      expect([method, path, await statusOf(undefined, `${path}?token=${token}`, method)]).toEqual([method, path, 401]);
  });

  test('that is slow is bounded in time', async () => {
    const { server } = await serving();
    expect(server).toMatchObject({ requestTimeout: 30_000, headersTimeout: 10_000 });
  });
});

describe('a page of another origin', () => {
  test.each(['/conversations', '/conversations/s', '/conversations/s/messages', '/conversations/s/events'])(
    'may use every method and header of %s, and read the answer',
    async (path) => {
      const { url, token } = await serving({ origin: ['http://page.example'] });
      const origin = 'http://page.example';
      const preflight = await asked(url + path, { origin, 'access-control-request-method': 'DELETE' }, 'OPTIONS');
      expect(preflight.status).toBe(204);
      const listOf = (name: string) => String(preflight.headers[name]).toLowerCase().split(',');
      expect(listOf('access-control-allow-methods')).toEqual(['get', 'post', 'delete']);
      expect(listOf('access-control-allow-headers')).toEqual(['authorization', 'content-type', 'last-event-id']);
      expect(preflight.headers['access-control-allow-origin']).toBe(origin);
      for (const authorization of [`Bearer ${token}`, 'Bearer wrong']) {
        const { headers } = await asked(url + path, { origin, authorization }, 'POST');
        expect(headers['access-control-allow-origin']).toBe(origin);
      }
    },
  );

  test('reads nothing if no origin is allowed', async () => {
    const { url } = await serving();
    const { headers, status } = await asked(`${url}/conversations`, { origin: 'http://page.example' }, 'OPTIONS');
    expect([status, headers['access-control-allow-origin']]).toEqual([403, undefined]);
  });
});

describe('the port', () => {
  test.each(['65536', '99999', '123456', '-1', '1e3', '0x50', '80.5', ' 80', '', 'http', '８０'])(
    '%j is a usage error, before anything starts',
    async (port) => {
      const listens = vi.spyOn(Server.prototype, 'listen');
      const serve = serveCommand({ ...LOCAL, model: '', port }, AbortSignal.abort());
      await expect(serve).rejects.toThrow(new ConfigurationError(`expected a port from 0 to 65535, got ${port}`));
      expect(listens).not.toHaveBeenCalled();
    },
  );

  test('65535 and 0 are ports', async () => {
    for (const port of ['0', '00080', '65535'])
      await expect(serveCommand({ ...LOCAL, model: '', port, cwd: root }, AbortSignal.abort())).rejects.toThrow(
        'no model is chosen',
      );
  });

  test('of another program is an error', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void taken.close());
    await vi.waitUntil(() => taken.listening);
    const port = String((taken.address() as AddressInfo).port);
    await expect(
      serveCommand({ ...LOCAL, port, cwd: join(root, 'work') }, new AbortController().signal),
    ).rejects.toThrow(
      new ConfigurationError(
        `cannot listen on 127.0.0.1, port ${port}: another program uses this port; choose another one, or 0 for any that is free (EADDRINUSE)`,
      ),
    );
  });
});

describe('the end', () => {
  test('closes open streams, ends the run, and releases the session', async () => {
    const model = await modelServer(hangs);
    vi.stubEnv('OPENAI_BASE_URL', model.baseURL);
    const { url, token, end } = await serving();
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    await asked(`${url}/conversations`, headers, 'POST', '{"id":"s"}');
    const events = asked(`${url}/conversations/s/events`, headers);
    await asked(`${url}/conversations/s/messages`, headers, 'POST', '{"content":"go"}');
    await vi.waitUntil(() => model.asked.length > 0, { timeout: 20_000, interval: 5 });
    expect(await end()).toBe(0);
    expect((await events).status).toBe(200);
    await expect(asked(`${url}/conversations`, headers)).rejects.toThrow('ECONNREFUSED');
    const handle = await jsonlStore(sessions()).open('s', { existing: true });
    const types: string[] = [];
    for await (const { type } of handle.read()) types.push(type);
    await handle.close();
    expect(types).toContain('run-stop');
  });

  test('comes at once if the signal was aborted before', async () => {
    const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
    expect(await serveCommand({ ...LOCAL, cwd: join(root, 'work') }, AbortSignal.abort())).toBe(0);
    expect(write).toHaveBeenCalledOnce();
  });
});

test('a session of another directory is refused and not held, whether it is read or begun again', async () => {
  const store = jsonlStore(sessions());
  const handle = await store.open('other');
  const head = { seq: 0, at: 1, runId: null, type: 'conversation', schema: 1, createdAt: 1 } as const;
  await handle.append([{ ...head, conversationId: 'other', cwd: root }], 0);
  await handle.close();
  const { url, token } = await serving();
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const refusals = [
    await asked(`${url}/conversations/other`, headers),
    await asked(`${url}/conversations/other/messages`, headers, 'POST', '{"content":"go"}'),
    await asked(`${url}/conversations`, headers, 'POST', '{"id":"other"}'),
  ];
  expect(refusals.map(({ status, body }) => [status, JSON.parse(body).code])).toEqual([
    [404, 'not_found'],
    [404, 'not_found'],
    [400, 'configuration'],
  ]);
  expect(JSON.parse((await asked(`${url}/conversations`, headers)).body)).toEqual([]);
  await (await store.open('other')).close();
});
