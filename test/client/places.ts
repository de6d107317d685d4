/** The same conversation twice: in this process, and behind a server on loopback. */
import { createServer, type RequestListener, type Server } from 'node:http';
import { connect as connectSocket, createServer as createProxy, type Socket } from 'node:net';
import type { Observable } from 'rxjs';
import { onTestFinished } from 'vitest';
import { type ClientOptions, connect, type RemoteAgent, type RemoteConversation } from '../../src/client/index.ts';
import { type AgentOptions, type Conversation, createAgent, type Live, type LogEntry } from '../../src/index.ts';
import { createHandlers, type HandlerOptions, nodeHandler } from '../../src/transports/index.ts';
import { portOf } from '../transports/agentServer.ts';

export type Either = Conversation | RemoteConversation;

/** Short waits, so that a test does not wait for a repetition. */
export const quick = { random: () => 0, setTimer: quickTimer } satisfies Partial<ClientOptions>;

function quickTimer(ms: number, fire: () => void): () => void {
  const timer = setTimeout(fire, ms < 30_000 ? Math.min(ms, 30) : ms);
  return () => clearTimeout(timer);
}

/** A client of the server, until the end of the test. */
export function clientOf(base: string, options: Partial<ClientOptions> = {}): RemoteAgent {
  const client = connect({ baseURL: base, ...quick, ...options });
  onTestFinished(() => client.close());
  return client;
}

export interface World {
  name: 'embedded' | 'remote';
  open(id?: string): Promise<Either>;
  /** The process ends, and another one begins with the same store. */
  restart(): Promise<void>;
}

type AgentMaker = () => AgentOptions;

export function embedded(options: AgentMaker): World {
  let agent = createAgent(options());
  onTestFinished(() => agent.close());
  return {
    name: 'embedded',
    open: (id) => agent.open(id),
    async restart() {
      await agent.close();
      agent = createAgent(options());
    },
  };
}

export interface RestartingServer {
  base: string;
  /** Closes the agent and the connections, and serves another agent at the same address. */
  restart(): Promise<void>;
}

/** A server of an agent; `around` may intercept a request before the handlers. */
export async function serverOf(
  options: AgentMaker,
  {
    handling = {},
    around = (listener) => listener,
  }: { handling?: Partial<HandlerOptions>; around?: (listener: RequestListener) => RequestListener } = {},
): Promise<RestartingServer> {
  let agent = createAgent(options());
  const listenerOf = (): RequestListener =>
    around(nodeHandler(createHandlers(agent, { authorize: () => true, ...handling })));
  let listener = listenerOf();
  const server: Server = createServer((request, response) => listener(request, response));
  onTestFinished(() => agent.close());
  const base = `http://127.0.0.1:${await portOf(server)}`;
  return {
    base,
    async restart() {
      await agent.close();
      server.closeAllConnections();
      agent = createAgent(options());
      listener = listenerOf();
    },
  };
}

/** `by`: the name that the server authenticates. */
export async function remote(options: AgentMaker, by?: string): Promise<World> {
  const allow = { models: ['other'], settings: true, tools: true, context: true };
  const server = await serverOf(options, { handling: { allow, authorize: () => by ?? true } });
  const client = clientOf(server.base);
  return { name: 'remote', open: (id) => client.open(id), restart: () => server.restart() };
}

/** A proxy that cuts its connections on request, until the end of the test. */
export async function proxyOf(base: string): Promise<{ base: string; cut(): number; opened(): number }> {
  const sockets = new Set<Socket>();
  let opened = 0;
  const proxy = createProxy((inner) => {
    opened += 1;
    const outer = connectSocket(Number(new URL(base).port), '127.0.0.1');
    const pair = [inner, outer] as const;
    for (const socket of pair) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        sockets.delete(socket);
        for (const other of pair) other.destroy();
      });
    }
    inner.pipe(outer);
    outer.pipe(inner);
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    proxy.close();
  });
  return {
    base: `http://127.0.0.1:${(proxy.address() as { port: number }).port}`,
    cut() {
      const count = sockets.size;
      for (const socket of sockets) socket.destroy();
      return count;
    },
    opened: () => opened,
  };
}

/** The values that a subscriber has received. */
export function collected<T>(source: Observable<T>): T[] {
  const values: T[] = [];
  source.subscribe({ next: (value) => void values.push(value) });
  return values;
}

/** Ids and times differ between two lives: each id becomes a number in the order of its appearance. */
export function comparable<T>(value: T): T {
  const ids = new Map<string, string>();
  const text = JSON.stringify(value, (key, field: unknown) =>
    ['at', 'createdAt', 'cwd', 'waitMs', 'elapsedMs'].includes(key) ? 0 : field,
  ).replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, (id) => {
    if (!ids.has(id)) ids.set(id, `id${ids.size}`);
    return ids.get(id) ?? '';
  });
  return JSON.parse(text) as T;
}

/** All public values of a conversation. */
export const shown = (conversation: Either) => {
  const { id, owner, status, state, pending, unsettled, queue, inFlight } = conversation;
  const [view, log, messages] = [conversation.view(), conversation.log(), conversation.messages()];
  return { id, owner, status, state, pending, unsettled, queue, inFlight, view, log, messages };
};

export const textOf = (signals: readonly (Live | LogEntry)[]): string => {
  let text = '';
  for (const signal of signals) {
    if (signal.type === 'reset') text = '';
    if (signal.type === 'text-delta') text += signal.text;
  }
  return text;
};
