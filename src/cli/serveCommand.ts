/**
 * `runchart serve`: the agent of `runchart run` for other programs, over HTTP or over its own standard input and output. Rule: it
 * listens on the loopback unless told otherwise; whoever lacks the token, names another host or comes from another page is refused
 * before anything is read.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import { Hono } from 'hono';
import { cors } from 'hono/cors';
import type { Agent } from '../agent.ts';
import { ConfigurationError } from '../errors.ts';
import { noConversation } from '../stores/store.ts';
import { createHandlers, route, stdioTransport } from '../transports/index.ts';
import { type AgentOptions, codingAgent } from './codingAgent.ts';
import { CANCELLED } from './exitCodes.ts';

export interface ServeOptions extends AgentOptions {
  host: string;
  port: string;
  origin?: string[];
  stdio?: boolean;
}

const TOKEN_MAX = 1024;
/** A request is sent within this time, or its connection is closed. */
const REQUEST_MS = 30_000;
const HEADERS_MS = 10_000;

/** Serves until the signal is aborted, and answers the exit code. Rejects with ConfigurationError. */
export async function serveCommand(options: ServeOptions, signal: AbortSignal): Promise<number> {
  const port = portOf(options.port);
  const { agent, cwd } = await codingAgent(options);
  try {
    const here = agentOf(agent, cwd);
    if (!options.stdio) return await listen(here, { host: options.host, port, origins: options.origin ?? [] }, signal);
    const routed = route(here, stdioTransport(), { multiTurn: true, drain: true });
    // The end of the input ends the service once the turns that were begun are told; a signal ends them.
    await Promise.race([routed, signal.aborted || once(signal, 'abort')]);
    return signal.aborted ? CANCELLED : 0;
  } finally {
    await agent.close();
  }
}

/** A session's tools work where it began: those of other directories are not served. */
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
    list: async () => (await agent.list()).filter((session) => session.cwd === cwd),
    run: (content, options) => agent.run(content, options),
    close: () => agent.close(),
  };
}

function portOf(given: string): number {
  const port = Number(given);
  if (/^\d{1,5}$/.test(given) && port <= 65_535) return port;
  throw new ConfigurationError(`expected a port from 0 to 65535, got ${given}`);
}

interface Place {
  host: string;
  port: number;
  /** Of pages that may ask. */
  origins: readonly string[];
}

async function listen(agent: Agent, { host, port, origins }: Place, signal: AbortSignal): Promise<number> {
  // Not an argument: those can be read by every user of the machine.
  const token = process.env.RUNCHART_TOKEN || randomBytes(32).toString('base64url');
  const hosts = new Set<string>();
  const app = guardedApp(agent, { token, hosts, origins });
  const server = createAdaptorServer({ fetch: app.fetch, overrideGlobalObjects: false }) as Server;
  server.requestTimeout = REQUEST_MS;
  server.headersTimeout = HEADERS_MS;
  const failed = once(server, 'error').then(([error]) => Promise.reject(error as Error));
  server.listen(port, host);
  await Promise.race([once(server, 'listening'), failed]);
  const bound = server.address() as AddressInfo;
  const shown = bound.family === 'IPv6' ? `[${bound.address}]` : bound.address;
  for (const name of [shown, host, 'localhost']) hosts.add(`${name}:${bound.port}`.toLowerCase());
  const url = `http://${shown}:${bound.port}`;
  process.stdout.write(`${JSON.stringify({ url, ...(process.env.RUNCHART_TOKEN ? {} : { token }) })}\n`);
  if (!signal.aborted) await Promise.race([once(signal, 'abort'), failed]);
  server.closeAllConnections();
  server.close();
  return 0;
}

interface Guard {
  token: string;
  /** Names that this server has, with its port. */
  hosts: ReadonlySet<string>;
  origins: readonly string[];
}

const refusal = (code: string, message: string) => ({ type: 'error', code, message }) as const;

function guardedApp(agent: Agent, { token, hosts, origins }: Guard): Hono {
  const handle = createHandlers(agent, { authorize: (request) => sameSecret(tokenOf(request), token) });
  const app = new Hono();
  app.use(async ({ req, json }, next) => {
    const host = req.header('host')?.toLowerCase() ?? '';
    // A page whose name was bound to this address would be of our origin otherwise.
    if (!hosts.has(host)) return json(refusal('forbidden', 'the host is not one of this server'), 403);
    const origin = req.header('origin');
    const own = origin === `http://${host}`;
    if (origin !== undefined && !own && !origins.includes(origin))
      return json(refusal('forbidden', 'the origin is not allowed: see --origin'), 403);
    return next();
  });
  if (origins.length > 0) {
    const allowHeaders = ['authorization', 'content-type', 'last-event-id'];
    app.use(cors({ origin: [...origins], allowMethods: ['GET', 'POST'], allowHeaders }));
  }
  app.all('*', ({ req }) => handle(req.raw));
  return app;
}

/** An EventSource cannot send a header, so for events alone the token may stand in the address. */
function tokenOf(request: Request): string {
  const given = /^Bearer (\S+)$/i.exec(request.headers.get('authorization') ?? '')?.[1];
  if (given !== undefined) return given;
  const { pathname, searchParams } = new URL(request.url);
  return request.method === 'GET' && pathname.endsWith('/events') ? (searchParams.get('token') ?? '') : '';
}

/** In a time that says nothing about where they differ. */
function sameSecret(given: string, wanted: string): boolean {
  if (given.length > TOKEN_MAX) return false;
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(wanted));
}
