/** Sockets at the inspector's server: its close ends them all in any state, and a disconnected page is not counted. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { Observed } from '../../src/inspect/observed.ts';
import { RecordLog } from '../../src/inspect/recordLog.ts';
import { type InspectorServer, startServer } from '../../src/inspect/server.ts';

const file = { mediaType: 'text/html', bytes: Buffer.from('<!doctype html>page') };

async function started(): Promise<InspectorServer> {
  const records = new RecordLog(() => 0);
  const observed = new Observed(records);
  const files = new Map([['/index.html', file]]);
  return startServer({ port: 0, control: false, version: '0', records, observed, files, stallMs: 1000 });
}

/** The bytes of a client; `says`: its answer before the server is closed. */
const CLIENTS = {
  'sent nothing': { bytes: () => '' },
  'sent half of its head': { bytes: ({ host }) => `GET / HTTP/1.1\r\nHost: ${host}\r\n` },
  'sent something other than HTTP': { bytes: () => 'nonsense\r\n\r\n', says: ' 400 ' },
  'keeps its connection after the page': {
    bytes: ({ host, token }) => `GET /?token=${token} HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
    says: ' 200 ',
  },
  'was refused a stream': { bytes: ({ host }) => upgrade('/ws', host), says: ' 401 ' },
  'asked for an unknown stream': {
    bytes: ({ host, token }) => upgrade(`/none?token=${token}`, host),
    says: ' 404 ',
  },
  watches: { bytes: ({ host, token }) => upgrade(`/ws?token=${token}`, host), says: ' 101 ', pages: 1 },
  'watches as an app': { bytes: ({ host, token }) => upgrade(`/app?token=${token}`, host), says: ' 101 ' },
} as const satisfies Record<
  string,
  { bytes(server: { host: string; token: string }): string; says?: string; pages?: number }
>;

const upgrade = (path: string, host: string): string =>
  `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
  'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n';

/** A client that never ends its own side. */
async function client(port: number, bytes: string): Promise<{ socket: Socket; read(): string }> {
  let text = '';
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  onTestFinished(() => void socket.destroy());
  socket.on('data', (chunk) => {
    text += String(chunk);
  });
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  if (bytes !== '') socket.write(bytes);
  return { socket, read: () => text };
}

it.each(Object.entries(CLIENTS))(
  'a client that %s does not delay the close, the first or the second',
  async (_, act) => {
    const { bytes, says = '', pages = 0 }: { bytes: (typeof act)['bytes']; says?: string; pages?: number } = act;
    const server = await started();
    const { host, port } = new URL(server.url);
    const { token } = server;
    const { read } = await client(Number(port), bytes({ host, token }));
    await expect.poll(read).toContain(says);
    expect(server.pages).toBe(pages);
    await Promise.all([server.close(), server.close()]);
    await server.close();
    await expect.poll(() => server.pages).toBe(0);
    await expect(client(Number(port), '')).rejects.toThrow('ECONNREFUSED');
  },
);

it('a page that ends its connection is no longer counted, and the next one is', async () => {
  const server = await started();
  onTestFinished(() => server.close());
  const { host, port } = new URL(server.url);
  for (const _ of ['first', 'second']) {
    const { socket, read } = await client(Number(port), upgrade(`/ws?token=${server.token}`, host));
    await expect.poll(read).toContain(' 101 ');
    expect(server.pages).toBe(1);
    socket.destroy();
    await expect.poll(() => server.pages).toBe(0);
  }
});
