/**
 * `runchart serve`: serves the agent of `runchart run` to other programs over HTTP, or over standard input and
 * output. Invariant: it listens on the loopback interface by default. It refuses a missing token, a wrong host or a
 * foreign origin before it reads anything.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { Hono } from 'hono';
import { cors } from 'hono/cors';
import type { Agent } from '../agent.ts';
import { ConfigurationError } from '../errors.ts';
import { noConversation } from '../stores/logStore.ts';
import { createHandlers, nodeHandler, route, stdioTransport } from '../transports/index.ts';
import { listening, portIn } from '../transports/nodeHandler.ts';
import { type AgentOptions, codingAgent } from './codingAgent.ts';
import { CANCELLED } from './exitCodes.ts';
import { sessionsIn } from './sessions/sessionStore.ts';

export interface ServeOptions extends AgentOptions {
  host: string;
  port: string;
  origin?: string[];
  stdio?: boolean;
}

const TOKEN_MAX = 1024;
const HTTP_PORT = 80;
/** A connection is closed if its request takes longer. */
const REQUEST_MS = 30_000;
const HEADERS_MS = 10_000;

/** Serves until the signal is aborted. Resolves to the exit code, or rejects with ConfigurationError. */
export async function serveCommand(options: ServeOptions, signal: AbortSignal): Promise<number> {
  const port = portIn(options.port);
  for (const origin of options.origin ?? []) mustBeOrigin(origin);
  const { agent, cwd, close } = await codingAgent(options);
  try {
    const servedAgent = agentOf(agent, cwd);
    if (!options.stdio)
      return await listen(servedAgent, { host: options.host, port, origins: options.origin ?? [] }, signal);
    const routed = route(servedAgent, stdioTransport(), { multiTurn: true, drain: true });
    // The end of the input ends the service after the running turns were reported. A signal ends it at once.
    await Promise.race([routed, signal.aborted || once(signal, 'abort')]);
    return signal.aborted ? CANCELLED : 0;
  } finally {
    await close();
  }
}

/** Another spelling, for example with a slash at its end, would match no page. Throws ConfigurationError. */
function mustBeOrigin(text: string): void {
  const origin = URL.canParse(text) ? new URL(text).origin : undefined;
  // The origins of schemes that the platform does not know, such as those of extensions.
  const isOther = origin === 'null' && /^[a-z][a-z0-9+.-]*:\/\/[^/?#\s]+$/.test(text);
  if (text === 'null' || text === origin || isOther) return;
  const near = origin?.startsWith('http') ? `; did you mean ${origin}?` : '';
  throw new ConfigurationError(`expected --origin to be an origin, like https://app.example; got ${text}${near}`);
}

/** The tools of a session work in its first directory, so sessions of other directories are not served. */
function agentOf(agent: Agent, cwd: string): Agent {
  return {
    profile: agent.profile,
    async open(id, options) {
      const conversation = await agent.open(id, options);
      if (conversation.cwd === cwd) return conversation;
      await conversation.close();
      if (options?.existing) throw noConversation();
      throw new ConfigurationError(`the session ${conversation.id} works in another directory than this server`);
    },
    list: (options) => sessionsIn(cwd, agent, options),
    run: (content, options) => agent.run(content, options),
    close: () => agent.close(),
  };
}

interface Place {
  host: string;
  port: number;
  /** Allowed origins of pages. */
  origins: readonly string[];
}

async function listen(agent: Agent, { host, port, origins }: Place, signal: AbortSignal): Promise<number> {
  // The token is not an argument, because every user of the machine can read arguments.
  const token = process.env.RUNCHART_TOKEN || randomBytes(32).toString('base64url');
  const hosts = new Set<string>();
  const app = guardedApp(agent, { token, hosts, origins });
  const server = createServer(nodeHandler(async (request) => app.fetch(request)));
  server.requestTimeout = REQUEST_MS;
  server.headersTimeout = HEADERS_MS;
  const bound = await listening(server, port, host);
  const failed = once(server, 'error').then(([error]) => Promise.reject(error as Error));
  const shown = bound.family === 'IPv6' ? `[${bound.address}]` : bound.address;
  for (const name of [shown, host, 'localhost']) {
    hosts.add(`${name}:${bound.port}`.toLowerCase());
    // Clients leave out the default port.
    if (bound.port === HTTP_PORT) hosts.add(name.toLowerCase());
  }
  const url = `http://${shown}:${bound.port}`;
  process.stdout.write(`${JSON.stringify({ url, ...(process.env.RUNCHART_TOKEN ? {} : { token }) })}\n`);
  if (!signal.aborted) await Promise.race([once(signal, 'abort'), failed]);
  server.closeAllConnections();
  server.close();
  return 0;
}

interface Guard {
  token: string;
  /** The host names of this server, with its port. */
  hosts: ReadonlySet<string>;
  origins: readonly string[];
}

const refusal = (code: string, message: string) => ({ type: 'error', code, message }) as const;

function guardedApp(agent: Agent, { token, hosts, origins }: Guard): Hono {
  const handle = createHandlers(agent, { authorize: (request) => sameSecret(tokenOf(request), token) });
  const app = new Hono();
  app.use(async ({ req, json }, next) => {
    const host = req.header('host')?.toLowerCase() ?? '';
    // Otherwise a page whose DNS name points to this address would have this server's origin.
    if (!hosts.has(host)) return json(refusal('forbidden', 'the host is not one of this server'), 403);
    const origin = req.header('origin');
    const own = origin === `http://${host}`;
    if (origin !== undefined && !own && !origins.includes(origin))
      return json(refusal('forbidden', 'the origin is not allowed: see --origin'), 403);
    return next();
  });
  if (origins.length > 0) {
    const allowHeaders = ['authorization', 'content-type', 'last-event-id'];
    app.use(cors({ origin: [...origins], allowMethods: ['GET', 'POST', 'DELETE'], allowHeaders }));
  }
  app.all('*', ({ req }) => handle(req.raw));
  return app;
}

/** An EventSource cannot send a header, so for events the token may be in the address. */
function tokenOf(request: Request): string {
  const bearer = /^Bearer (\S+)$/i.exec(request.headers.get('authorization') ?? '')?.[1];
  if (bearer !== undefined) return bearer;
  const { pathname, searchParams } = new URL(request.url);
  return request.method === 'GET' && pathname.endsWith('/events') ? (searchParams.get('token') ?? '') : '';
}

/** Compares in constant time, so the duration does not reveal the first difference. */
function sameSecret(candidate: string, expected: string): boolean {
  if (candidate.length > TOKEN_MAX) return false;
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(candidate), digest(expected));
}
