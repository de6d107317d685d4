/**
 * The address, the registration and the end of a worker. The SDK is replaced: it needs a later Node.js than some that run the tests, and
 * takes no
 * part in this.
 */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { connect } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { ConfigurationError, createAgent } from '../../src/index.ts';
import { serveAgent } from '../../src/restate/index.ts';
import { scriptedModel } from '../../src/testing/index.ts';

const endpoints: { services: { name: string }[]; identityKeys?: string[] }[] = [];
vi.mock('@restatedev/restate-sdk', () => ({
  createEndpointHandler: (options: (typeof endpoints)[number]) => {
    endpoints.push(options);
    return () => undefined;
  },
  object: (made: object) => made,
  handlers: { object: { shared: () => undefined, exclusive: () => undefined } },
}));
const withNode = (node: string) =>
  vi.stubGlobal('process', Object.create(process, { versions: { value: { ...process.versions, node } } }));
beforeEach(() => {
  endpoints.length = 0;
  withNode('22.0.0');
});
afterEach(() => void vi.unstubAllGlobals());

describe('a worker', () => {
  const agent = createAgent({ model: scriptedModel([]) });
  /** A server's admin interface that gives this answer, and its received requests. */
  async function admin(status: number) {
    const asked: unknown[] = [];
    const server: Server = createServer((request, response) => {
      let text = '';
      request.on('data', (piece) => {
        text += piece;
      });
      request.on('end', () => {
        asked.push([request.method, request.url, request.headers['content-type'], JSON.parse(text)]);
        response.writeHead(status).end('as it is');
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    return { asked, address: `http://127.0.0.1:${(server.address() as AddressInfo).port}/any/path` };
  }
  const isListening = (url: string) =>
    new Promise<boolean>((resolve) => {
      const { port } = new URL(url);
      const server = createServer();
      server.once('error', () => resolve(true));
      server.listen(Number(port), '127.0.0.1', () => server.close(() => resolve(false)));
    });

  it.each(['20.19.0', '21.9.9'])('needs Node.js 22: not %s', async (version) => {
    withNode(version);
    await expect(serveAgent(agent)).rejects.toMatchObject({ code: 'configuration' });
    expect(endpoints).toEqual([]);
  });

  it('serves the conversations under the name of the service, to all or to the holders of a key', async () => {
    for (const options of [{}, { service: 'mine', identityKeys: ['publickeyv1_a'] }, { identityKeys: [] }]) {
      const worker = await serveAgent(agent, options);
      await worker.close();
    }
    expect(endpoints.map(({ services, identityKeys }) => [services.map(({ name }) => name), identityKeys])).toEqual([
      [['runchart', 'runchartInbox', 'runchartIndex'], undefined],
      [['mine', 'mineInbox', 'mineIndex'], ['publickeyv1_a']],
      [['runchart', 'runchartInbox', 'runchartIndex'], undefined],
    ]);
  });

  it('listens on the address and the port of its options', async () => {
    const first = await serveAgent(agent);
    const port = Number(new URL(first.url).port);
    await first.close();
    const second = await serveAgent(agent, { host: 'localhost', port });
    onTestFinished(() => second.close());
    expect(second.url).toBe(`http://localhost:${port}`);
  });

  it('ends the connections of the server with its close', async () => {
    const worker = await serveAgent(agent);
    const session = connect(worker.url);
    await once(session, 'connect');
    const over = once(session, 'close');
    session.on('error', () => undefined);
    session.request({ ':path': '/' }).on('error', () => undefined);
    await worker.close();
    await over;
    expect(session.destroyed).toBe(true);
  });

  it('listens on this machine until its close, and may close twice', async () => {
    const worker = await serveAgent(agent);
    expect(worker.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(await isListening(worker.url)).toBe(true);
    await worker.close();
    expect(await isListening(worker.url)).toBe(false);
    await worker.close();
  });

  it('registers itself at the address of its options, in place of an earlier registration', async () => {
    const { asked, address } = await admin(201);
    const worker = await serveAgent(agent, { admin: address });
    onTestFinished(() => worker.close());
    expect(asked).toEqual([['POST', '/deployments', 'application/json', { uri: worker.url, force: true }]]);
  });

  it('does not stay where the server refuses it or cannot be reached', async () => {
    const { asked, address } = await admin(409);
    const refused = await serveAgent(agent, { admin: address }).catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: 'unavailable', message: expect.stringContaining(': 409 as it is') });
    const [[, , , { uri }]] = asked as [[0, 0, 0, { uri: string }]];
    expect(await isListening(uri)).toBe(false);
    await expect(serveAgent(agent, { admin: 'http://127.0.0.1:1' })).rejects.toMatchObject({ code: 'unavailable' });
  });

  it('does not begin on a port that is taken', async () => {
    const first = await serveAgent(agent);
    onTestFinished(() => first.close());
    const { port } = new URL(first.url);
    const message = `cannot listen on 127.0.0.1, port ${port}: another program uses this port; choose another one, or 0 for any that is free (EADDRINUSE)`;
    await expect(serveAgent(agent, { port: Number(port) })).rejects.toThrow(new ConfigurationError(message));
  });

  it.each([
    { host: '' },
    { port: -1 },
    { port: 1.5 },
    { service: '1a' },
    { service: '' },
    { identityKeys: 'key' },
    { hub: { publish: () => undefined } },
    { admin: '' },
    { store: { open: () => undefined } },
  ])('refuses the options %j', async (options) => {
    await expect(serveAgent(agent, options as never)).rejects.toMatchObject({ code: 'configuration' });
  });
});
