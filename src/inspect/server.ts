/**
 * The inspector's server: the page, a stream for each connected page, and an endpoint for XState apps. Invariant: it
 * listens on the loopback interface only. It refuses a wrong host, a foreign origin or a missing token before it
 * reads anything. It is read-only unless it is started with control.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { listening } from '../transports/nodeHandler.ts';
import type { Observed } from './observed.ts';
import { PageConnection, type PageOptions } from './page.ts';
import { fileAt, fileHeaders, isDocument, type PageFiles } from './pageFiles.ts';
import type { RecordLog } from './recordLog.ts';
import { FRAME_MAX, REQUEST_MAX } from './wire.ts';
import { AppConnection } from './xstateApps.ts';

const HOST = '127.0.0.1';
const TOKEN_MAX = 1024;
/** The most simultaneous connections. */
const SOCKETS_MAX = 64;

export interface ServerOptions {
  port: number;
  control: boolean;
  version: string;
  records: RecordLog;
  observed: Observed;
  files: PageFiles;
  stallMs: number;
}

export interface InspectorServer {
  readonly url: string;
  readonly token: string;
  /** The number of connected pages. */
  readonly pages: number;
  /** The number of ignored messages from pages. */
  readonly ignored: number;
  close(): Promise<void>;
}

interface Refusal {
  status: 400 | 401 | 403 | 404 | 405 | 413;
  message: string;
}

/** Compares in constant time, so the duration does not reveal the first difference. */
function sameToken(candidate: string, expected: string): boolean {
  if (candidate.length > TOKEN_MAX) return false;
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(candidate), digest(expected));
}

const LOOPBACK = /^https?:\/\/(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/;

/** Checks requests by the names of this server and by its token. */
class Guard {
  readonly token: string = randomBytes(32).toString('base64url');
  readonly #hosts = new Set<string>();

  /** Sets the names of this server. */
  listensOn(port: number): void {
    for (const host of [HOST, 'localhost']) {
      this.#hosts.add(`${host}:${port}`);
      // A browser omits the default port.
      if (port === 80) this.#hosts.add(host);
    }
  }

  /**
   * Returns undefined if the request is allowed. With `apps`, other pages on the loopback interface are allowed too.
   */
  refusal(
    { headers, httpVersion }: IncomingMessage,
    query: string | undefined,
    { apps = false } = {},
  ): Refusal | undefined {
    // HTTP/0.9 requests have no headers, so no host.
    if (httpVersion === '0.9') return { status: 400, message: 'expected HTTP/1.1' };
    const host = headers.host?.toLowerCase() ?? '';
    // Otherwise a page whose DNS name points to this address would have this server's origin.
    if (!this.#hosts.has(host)) return { status: 403, message: 'the host is not one of this inspector' };
    const { origin } = headers;
    const isOurs = origin === undefined || origin === `http://${host}` || (apps && LOOPBACK.test(origin));
    if (!isOurs) return { status: 403, message: 'the origin is not allowed' };
    if (query === undefined) return undefined;
    const bearer = /^Bearer (\S+)$/i.exec(headers.authorization ?? '')?.[1];
    const token = bearer ?? new URLSearchParams(query).get('token') ?? '';
    if (token.length > TOKEN_MAX) return { status: 413, message: 'the token is too long' };
    if (sameToken(token, this.token)) return undefined;
    return { status: 401, message: 'the token is missing or wrong: open the address that the inspector told' };
  }
}

const sourcesOf = (port: number): string => `'self' ws://${HOST}:${port} ws://localhost:${port}`;

/** Resolves once the server listens. Rejects with ConfigurationError. */
export async function startServer(options: ServerOptions): Promise<InspectorServer> {
  const guard = new Guard();
  const server = createServer((request, response) => answer(request, response, guard, options.files));
  server.headersTimeout = 10_000;
  server.requestTimeout = 30_000;
  server.on('clientError', onBadRequest);
  const sockets = new Sockets(guard, options);
  server.on('upgrade', (request, socket, head) => sockets.upgrade(request, socket, head));
  const { port } = await listening(server, options.port, HOST);
  guard.listensOn(port);
  const { token } = guard;
  return {
    url: `http://${HOST}:${port}/?token=${token}`,
    token,
    get pages() {
      return sockets.pages;
    },
    get ignored() {
      return sockets.ignored;
    },
    async close() {
      sockets.close();
      server.closeAllConnections();
      await new Promise<void>((resolve) => void server.close(() => resolve()));
    },
  };
}

function onBadRequest(error: NodeJS.ErrnoException, socket: Duplex): void {
  const status = error.code === 'HPE_HEADER_OVERFLOW' ? '413 Payload Too Large' : '400 Bad Request';
  if (socket.writable) socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\n\r\n`);
  else socket.destroy();
}

/** Returns the raw path and the query. Nothing is resolved, so no path can leave the folder. */
function partsOf({ url = '' }: IncomingMessage): [path: string, query: string] {
  const cut = url.indexOf('?');
  return cut < 0 ? [url, ''] : [url.slice(0, cut), url.slice(cut + 1)];
}

function answer(request: IncomingMessage, response: ServerResponse, guard: Guard, files: PageFiles): void {
  const [path, query] = partsOf(request);
  const file = fileAt(files, path);
  const refused =
    guard.refusal(request, isDocument(path) ? query : undefined) ?? (file ? wrongMethod(request) : NOT_FOUND);
  const headers = fileHeaders(sourcesOf(request.socket.localPort ?? 0));
  if (refused || !file) {
    const { status, message } = refused ?? NOT_FOUND;
    response.writeHead(status, { ...headers, 'content-type': 'text/plain; charset=utf-8' }).end(`${message}\n`);
    return;
  }
  response.writeHead(200, { ...headers, 'content-type': file.mediaType, 'content-length': file.bytes.byteLength });
  response.end(request.method === 'HEAD' ? undefined : file.bytes);
}

const NOT_FOUND: Refusal = { status: 404, message: 'there is no such page' };
const wrongMethod = ({ method }: IncomingMessage): Refusal | undefined =>
  method === 'GET' || method === 'HEAD' ? undefined : { status: 405, message: 'only GET is answered' };

const REASONS = { 400: 'Bad Request', 401: 'Unauthorized', 403: 'Forbidden', 404: 'Not Found' } as const;

/** Ends a socket with an answer. The HTTP server no longer tracks this socket, so it must be destroyed here. */
function refuse(socket: Duplex, answer: string): void {
  socket.once('finish', () => socket.destroy());
  socket.end(answer);
}

/** Accepts pages at `/ws` and XState apps at `/app`. */
class Sockets {
  readonly #guard: Guard;
  readonly #options: ServerOptions;
  readonly #session = randomBytes(12).toString('base64url');
  readonly #pages = new WebSocketServer({ noServer: true, maxPayload: REQUEST_MAX, perMessageDeflate: false });
  readonly #apps = new WebSocketServer({ noServer: true, maxPayload: FRAME_MAX, perMessageDeflate: false });
  readonly #connections = new Set<AppConnection>();
  ignored = 0;

  constructor(guard: Guard, options: ServerOptions) {
    this.#guard = guard;
    this.#options = options;
  }

  get pages(): number {
    return this.#pages.clients.size;
  }

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const [path, query] = partsOf(request);
    const isApp = path === '/app';
    const isKnown = isApp || path === '/ws';
    const isFull = this.#pages.clients.size + this.#apps.clients.size >= SOCKETS_MAX;
    const refused = this.#guard.refusal(request, query, { apps: isApp }) ?? (isKnown ? undefined : NOT_FOUND);
    socket.on('error', () => socket.destroy());
    if (refused || isFull) {
      const status = refused?.status ?? 503;
      const reason = REASONS[status as keyof typeof REASONS] ?? 'Refused';
      refuse(socket, `HTTP/1.1 ${status} ${reason}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
      return;
    }
    if (isApp) this.#apps.handleUpgrade(request, socket, head, (opened) => this.#app(opened));
    else this.#pages.handleUpgrade(request, socket, head, (opened) => this.#page(opened));
  }

  close(): void {
    for (const socket of [...this.#pages.clients, ...this.#apps.clients]) socket.terminate();
    this.#pages.close();
    this.#apps.close();
  }

  #page(socket: WebSocket): void {
    const channel = {
      send: (text: string) => socket.send(text),
      get waiting() {
        return socket.bufferedAmount;
      },
      drop: () => socket.terminate(),
    };
    const page = new PageConnection(channel, { ...this.#pageOptions(), session: this.#session });
    socket.on('message', (bytes, isBinary) => {
      const { ignored } = page;
      page.receive(isBinary ? '' : String(bytes));
      this.ignored += page.ignored - ignored;
    });
    // The close event follows a broken or too large frame.
    socket.on('error', () => {});
    socket.on('close', () => page.close());
  }

  #pageOptions(): Omit<PageOptions, 'session'> {
    const { records, observed, version, control, stallMs } = this.#options;
    return {
      records,
      observed,
      version,
      control,
      stallMs,
      now: () => performance.now(),
      setTimer(ms, fire) {
        const timer = setTimeout(fire, ms);
        return () => clearTimeout(timer);
      },
      appContext: (actor) => {
        for (const app of this.#connections) {
          const context = app.contextOf(actor);
          if (context !== null) return context;
        }
        return null;
      },
      appStates: () => [...this.#connections].flatMap((app) => [...app.states()]),
    };
  }

  #app(socket: WebSocket): void {
    const app = new AppConnection(this.#options.records, this.#options.observed);
    this.#connections.add(app);
    socket.on('message', (bytes, isBinary) => {
      if (isBinary || !app.receive(String(bytes))) this.ignored += 1;
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      this.#connections.delete(app);
      app.close();
    });
  }
}
