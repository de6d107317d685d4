/** Serves the conversations of an agent to a Restate server. Rule: it listens on this machine only, unless `host` names another address. */
import { type Agent, engineAgentOf } from '../agent.ts';
import { ConfigurationError, RunchartError, thrownMessage } from '../errors.ts';
import type { LogStore } from '../stores/logStore.ts';
import { listening, portNumber } from '../transports/nodeHandler.ts';
import { checkOptionsOf, hasMethods, list, nonEmptyText, object } from '../validation.ts';
import type { BlobStore } from './blobStore.ts';
import { blobStoreOf, storeValidator } from './blobsOfStore.ts';
import { engineObjects } from './engineObjects.ts';
import { type LiveHub, processHub } from './liveHub.ts';
import type { Sdk } from './objectCalls.ts';

/** The options of `serveAgent`. */
export interface ServeOptions {
  /** The address to listen on. Default: 127.0.0.1. */
  host?: string;
  /** The port to listen on. Default: a free one. */
  port?: number;
  /** The name of the conversations in the engine. Default: `runchart`. */
  service?: string;
  /** The public keys of the server's requests (`publickeyv1_…`). Other requests are refused. Default: all requests are accepted. */
  identityKeys?: readonly string[];
  /** The destination of live signals. Default: watchers in this process. */
  hub?: object;
  /**
   * Keeps contents of more than 64 KiB, and the bytes of images and files: a blob store, or a store of conversations, such as
   * `postgresStore`, in which only blobs are written. Default: they are kept in the server.
   */
  store?: BlobStore | LogStore;
  /** The admin address of the server, such as `http://127.0.0.1:9070`. The worker registers itself there. Default: it does not. */
  admin?: string;
}

/** A worker that serves an agent. */
export interface ServedAgent {
  /** The address that is registered at the server. */
  readonly url: string;
  /** Ends the attempts of this worker. Another worker, or the next one, continues them. */
  close(): Promise<void>;
}

export const hubValidator = {
  expected: 'a hub with publish and subscribe',
  test: (value: unknown) => hasMethods(value, 'publish', 'subscribe'),
};

const optionsValidator = object({
  host: nonEmptyText,
  port: portNumber,
  service: {
    expected: 'a name of letters, digits, _ and -, beginning with a letter',
    test: (value: unknown) => typeof value === 'string' && /^[A-Za-z][\w-]*$/.test(value),
  },
  identityKeys: list(
    'keys that begin with publickeyv1_',
    (key) => nonEmptyText.test(key) && `${key}`.startsWith('publickeyv1_'),
  ),
  hub: hubValidator,
  store: storeValidator,
  admin: nonEmptyText,
});

/** Throws ConfigurationError for Node.js before 22, where the SDK does not work, or where it is not installed. */
async function loadSdk(): Promise<Sdk> {
  const [major = 0] = process.versions.node.split('.').map(Number);
  if (major < 22)
    throw new ConfigurationError(`runchart/restate needs Node.js 22 or later, this is ${process.version}`);
  try {
    return await import('@restatedev/restate-sdk');
  } catch (cause) {
    throw new ConfigurationError('serveAgent() needs the package @restatedev/restate-sdk: install it', { cause });
  }
}

/**
 * Serves the agent. Rejects with ConfigurationError for an invalid option, and for an agent that `createAgent` did not
 * make; with `unavailable` if the server does not take the registration.
 */
export async function serveAgent(agent: Agent, options: ServeOptions = {}): Promise<ServedAgent> {
  checkOptionsOf('serveAgent', options, optionsValidator);
  const { host = '127.0.0.1', port = 0, service = 'runchart', identityKeys = [], hub, store, admin } = options;
  const engineAgent = engineAgentOf(agent);
  if (!engineAgent) throw new ConfigurationError('serveAgent() takes an agent that createAgent() has made');
  const sdk = await loadSdk();
  const handler = sdk.createEndpointHandler({
    services: engineObjects({
      sdk,
      agent: engineAgent,
      service,
      hub: (hub as LiveHub | undefined) ?? processHub,
      store: blobStoreOf(store),
    }),
    ...(identityKeys.length > 0 && { identityKeys: [...identityKeys] }),
  });
  const { createServer } = await import('node:http2');
  const server = createServer(handler);
  const sessions = new Set<{ destroy(): void }>();
  server.on('session', (session) => {
    sessions.add(session);
    session.once('close', () => sessions.delete(session));
  });
  const { port: taken } = await listening(server, port, host);
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${taken}`;
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
      for (const session of sessions) session.destroy();
    });
  if (admin !== undefined)
    await register(admin, url).catch(async (error: unknown) => {
      await close();
      throw error;
    });
  return { url, close };
}

async function register(admin: string, url: string): Promise<void> {
  const body = JSON.stringify({ uri: url, force: true });
  const headers = { 'content-type': 'application/json' };
  let why: string;
  try {
    const response = await fetch(new URL('/deployments', admin), { method: 'POST', headers, body });
    if (response.ok) return;
    why = `${response.status} ${await response.text()}`;
  } catch (error) {
    why = thrownMessage(error);
  }
  throw new RunchartError('unavailable', `the server at ${admin} does not take the worker ${url}: ${why}`);
}
