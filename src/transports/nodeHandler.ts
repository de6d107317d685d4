/**
 * Serves a handler of the web by a server of Node. Rule: frames of event streams go to sockets as they are, and wait where
 * a socket is full. Everything else goes through `Request` and `Response`. Modules of Node are loaded with the first request, so that
 * this file runs wherever `Request` and `Response` exist. A port that cannot be used is a ConfigurationError.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { ConfigurationError, thrownMessage } from '../errors.ts';
import { onDemand } from '../onDemand.ts';
import type { Validator } from '../validation.ts';
import type { Frames } from './events/eventFrames.ts';
import { type EventStream, eventStreamOf, type FrameSink } from './events/serverSentEvents.ts';

/** A handler of web requests. */
type WebHandler = (request: Request) => Promise<Response>;
type Listener = (request: IncomingMessage, response: ServerResponse) => unknown;

const loadServer = onDemand(async () => ({
  ...(await import('@hono/node-server')),
  ...(await import('@hono/node-server/utils/response')),
  ServerResponse: (await import('node:http')).ServerResponse,
}));

/** A socket receives this much of long frames at once, so that a slow but steady reader is seen to read. */
const SLICE = 65_536;

/** The request and the response are those of `node:http`, or of Express, Connect and the like. */
export function nodeHandler(handler: WebHandler): (request: object, response: object) => void {
  let listener: Listener | undefined;
  const loadListener = async (): Promise<Listener> => {
    listener ??= await listenerOf(handler);
    return listener;
  };
  return (incoming, outgoing) => {
    const request = withReadBody(incoming as IncomingMessage);
    const response = outgoing as ServerResponse;
    if (listener) return void listener(request, response);
    loadListener().then(
      (loaded) => loaded(request, response),
      () => response.destroy(),
    );
  };
}

async function listenerOf(handler: WebHandler): Promise<Listener> {
  const { getRequestListener, RESPONSE_ALREADY_SENT, ServerResponse } = await loadServer();
  const answer = async (request: Request, { outgoing }: { outgoing: unknown }): Promise<Response> => {
    const answered = await handler(request);
    if (!(outgoing instanceof ServerResponse)) return answered;
    const stream = eventStreamOf(answered);
    if (!stream) return answered;
    sendEvents(stream, answered, outgoing);
    return RESPONSE_ALREADY_SENT;
  };
  return getRequestListener(answer as Parameters<typeof getRequestListener>[0], { overrideGlobalObjects: false });
}

/** A parser of Express may have read the body. The handler receives it as JSON again. */
function withReadBody(request: IncomingMessage): IncomingMessage {
  const { body, rawBody } = request as { body?: unknown; rawBody?: unknown };
  // The server reads a `rawBody` of bytes, and no other one.
  if (body === undefined || !request.readableEnded || Buffer.isBuffer(rawBody)) return request;
  // A parser makes an object of no bytes too.
  const isEmpty = request.headers['content-length'] === '0';
  const text = isEmpty ? '' : typeof body === 'string' ? body : JSON.stringify(body);
  return Object.assign(request, { rawBody: Buffer.isBuffer(body) ? body : Buffer.from(text) });
}

function sendEvents(stream: EventStream, { status, headers }: Response, response: ServerResponse): void {
  if (response.destroyed || response.writableEnded) return stream.leave();
  response.writeHead(status, Object.fromEntries(headers));
  response.flushHeaders();
  const sink = new SocketSink(stream, response);
  response.on('close', () => stream.leave());
  response.on('error', () => stream.leave());
  stream.open(sink);
  sink.resume();
}

/** If node:http made the response, the frames bypass it: each reader receives the same bytes. */
class SocketSink implements FrameSink {
  readonly #stream: EventStream;
  readonly #response: ServerResponse;
  readonly #isPlain: boolean;
  /** The part of the last frames that the socket has not taken. */
  #rest: Uint8Array | undefined;
  #drained: Socket | ServerResponse | undefined;

  constructor(stream: EventStream, response: ServerResponse) {
    this.#stream = stream;
    this.#response = response;
    // Middleware that compresses or watches replaces write() of the response.
    this.#isPlain = !Object.hasOwn(response, 'write') && !Object.hasOwn(response, 'end');
  }

  write(frames: Frames): boolean {
    const { socket } = this.#response;
    // A response that waits for others in a pipeline has no socket yet.
    if (!this.#isPlain || !socket) return this.#send(this.#response, frames.bytes);
    return this.#send(socket, this.#response.chunkedEncoding ? chunkOf(frames) : frames.bytes);
  }

  resume(): void {
    this.#stream.resume();
  }

  end(): void {
    this.#response.end();
  }

  cut(): void {
    this.#response.destroy();
  }

  #send(target: Socket | ServerResponse, bytes: Uint8Array): boolean {
    let at = 0;
    while (at < bytes.length) {
      const isTaken = target.write(bytes.length <= SLICE ? bytes : bytes.subarray(at, at + SLICE));
      at += SLICE;
      if (isTaken) continue;
      this.#rest = at < bytes.length ? bytes.subarray(at) : undefined;
      this.#waitForDrain(target);
      return false;
    }
    return true;
  }

  #waitForDrain(target: Socket | ServerResponse): void {
    if (this.#drained === target) return;
    this.#drained = target;
    target.once('drain', () => {
      this.#drained = undefined;
      const rest = this.#rest;
      this.#rest = undefined;
      if (!rest) return this.#stream.resume();
      this.#stream.progress();
      if (this.#send(target, rest)) this.#stream.resume();
    });
  }
}

/** The frames as one chunk of HTTP/1.1, made once for all readers. */
function chunkOf(frames: Frames): Uint8Array {
  frames.chunk ??= Buffer.concat([
    Buffer.from(`${frames.bytes.length.toString(16)}\r\n`, 'latin1'),
    frames.bytes,
    Buffer.from('\r\n', 'latin1'),
  ]);
  return frames.chunk;
}

const PORT_MAX = 65_535;
const isPort = (value: unknown): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= PORT_MAX;

export const portNumber: Validator = { expected: `a port from 0 to ${PORT_MAX}`, test: isPort };

/** Reads the port of a command line. Throws ConfigurationError. */
export function portIn(text: string): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && isPort(port)) return port;
  throw new ConfigurationError(`expected ${portNumber.expected}, got ${text}`);
}

/** A server of Node.js, of any protocol. */
interface Server {
  once(event: 'error', listener: (error: Error) => void): unknown;
  off(event: 'error', listener: (error: Error) => void): unknown;
  listen(port: number, host: string, listener: () => void): unknown;
  address(): string | BoundAddress | null;
}

interface BoundAddress {
  address: string;
  family: string;
  port: number;
}

/** The reasons for which a system refuses a port, with remedies. */
const REASONS: { readonly [code: string]: string } = {
  EADDRINUSE: 'another program uses this port; choose another one, or 0 for any that is free',
  EACCES: 'this user may not use this port; choose one above 1023, or 0 for any that is free',
  EADDRNOTAVAIL: 'this machine has no such address',
};

/** Resolves to the address when the server listens. Rejects with ConfigurationError. */
export function listening(server: Server, port: number, host: string): Promise<BoundAddress> {
  return new Promise((resolve, reject) => {
    const refuse = (cause: Error & { code?: string }): void => {
      const code = cause.code ?? '';
      const why = Object.hasOwn(REASONS, code) ? `${REASONS[code]} (${code})` : thrownMessage(cause);
      reject(new ConfigurationError(`cannot listen on ${host}, port ${port}: ${why}`, { cause }));
    };
    server.once('error', refuse);
    server.listen(port, host, () => {
      server.off('error', refuse);
      resolve(server.address() as BoundAddress);
    });
  });
}
