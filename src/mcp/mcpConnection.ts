/**
 * One connection to an MCP server. Rule: it connects once, and reports its end once. Its errors name the server and quote the end of
 * its stderr, bounded, without control characters and without the secrets of the options.
 */
import type { Client, ElicitResult, StreamableHTTPClientTransport, Transport } from '@modelcontextprotocol/client';
import type { Json } from '../../machines/vocabulary.ts';
import { RunchartError, thrownText } from '../errors.ts';
import { redactor } from '../log/redact.ts';
import { beginning, printable } from '../printable.ts';
import { type McpAddress, type McpServerOptions, secretsOf } from './serverOptions.ts';
import type { ServerCommand } from './stdio/serverProcess.ts';

/** A server's question to a person, without whose answer a call cannot continue. */
export interface Elicitation {
  message: string;
  /** The JSON Schema of the answer. */
  requestedSchema: Json;
}

interface ConnectionOptions {
  name: string;
  server: McpServerOptions;
  /** The time to wait before it connects. */
  delayMs: number;
  elicit(elicitation: Elicitation): ElicitResult | Promise<ElicitResult>;
  toolsChanged(): void;
  /** It could not be made, or it ended by itself. */
  ended(): void;
}

/** The fate of a call whose connection failed: it was not carried out, its outcome is unknown, or only its answer was lost. */
export type Loss = 'unsent' | 'ended' | 'cut';

interface OpenTransport {
  transport: Transport;
  /** The end of the server's output on stderr, and the end of the server. */
  report(): { stderr: string; ending?: string | undefined };
  /** Ends the session at the server. */
  leave?(): Promise<void>;
}

/** Limits of an error's text. */
const STDERR_SHOWN = 2_000;
const REASON_SHOWN = 1_000;
const LEAVE_MS = 1_000;
/** A stream that broke is opened again this often. */
const STREAM_RETRIES = 2;
/** JSON-RPC code, from the range of servers, of an answer that was lost with its stream. */
const CUT = -32_099;
const UNAUTHORIZED = 401;
const HTTP_NOT_FOUND = 404;
const HTTP_BAD_REQUEST = 400;

// Sequences that drive a terminal: colours, titles and the like.
const ESC = String.fromCharCode(27);
const BEL = String.fromCharCode(7);
const SEQUENCES = new RegExp(
  `${ESC}(?:\\[[0-?]*[ -/]*[@-~]|\\][^${BEL}${ESC}]*(?:${BEL}|${ESC}\\\\)?|[@-Z\\\\-_])`,
  'g',
);
const CONTROLS = /[^\P{Cc}\n\t]/gu;
const plain = (text: string): string =>
  printable(text.replaceAll('\r\n', '\n').replace(SEQUENCES, '').replace(CONTROLS, ''));

const isNumber = (value: unknown): value is number => typeof value === 'number';
const fieldOf = (error: unknown, name: string): unknown => (error as { [name: string]: unknown } | null)?.[name];

export class McpConnection {
  /** Rejects with RunchartError `mcp` if the server cannot be reached. */
  readonly ready: Promise<Client>;
  readonly #options: ConnectionOptions;
  readonly #redact: <T>(value: T) => T;
  readonly #closing = new AbortController();
  #client: Client | undefined;
  #open: OpenTransport | undefined;
  #hasEnded = false;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#redact = redactor([], [secretsOf(options.server)]);
    this.ready = this.#connect().catch((error: unknown) => {
      this.#end();
      if (RunchartError.isRunchartError(error)) throw error;
      const isUnauthorized =
        fieldOf(error, 'name') === 'UnauthorizedError' || fieldOf(error, 'status') === UNAUTHORIZED;
      throw this.error(isUnauthorized ? 'requires an authorization' : 'cannot be reached', error);
    });
    this.ready.catch(() => undefined);
  }

  /** It is closed, or it ended. */
  get isOver(): boolean {
    return this.#hasEnded;
  }

  /** Does not wait for a connection that is being made. */
  async close(): Promise<void> {
    this.#hasEnded = true;
    this.#closing.abort();
    await this.#open?.leave?.();
    // A client that has only begun to connect does not have its transport yet.
    await (this.#client?.transport ? this.#client : this.#open?.transport)?.close().catch(() => undefined);
  }

  error(what: string, cause: unknown): RunchartError {
    const { stderr = '', ending } = this.#open?.report() ?? {};
    const reason = beginning(this.#shown(typeof cause === 'string' ? cause : thrownText(cause)), REASON_SHOWN);
    // The first line of a long text may begin within a secret.
    const lines = this.#shown(stderr).trim();
    const shown = lines.length > STDERR_SHOWN ? lines.slice(-STDERR_SHOWN).replace(/^[^\n]*\n/, '') : lines;
    const message = [
      `the MCP server ${this.#options.name} ${what}: ${reason}${ending === undefined ? '' : `; ${ending}`}`,
      ...(shown === '' ? [] : [`; its stderr ends with:\n${shown}`]),
    ].join('');
    return new RunchartError('mcp', message, { cause });
  }

  /** Text of the server without secrets and control characters. Without its control characters a text may contain another secret. */
  #shown(text: string): string {
    return this.#redact(plain(this.#redact(text)));
  }

  /** The loss of the connection that the error describes; undefined if the server answered. */
  lossOf(error: unknown): Loss | undefined {
    const code = fieldOf(error, 'code');
    if (code === 'CONNECTION_CLOSED') return 'ended';
    if (code === CUT) return 'cut';
    // The server did not read the last message.
    if (code === 'EPIPE' || code === 'NOT_CONNECTED' || fieldOf(error, 'message') === 'Not connected') return 'unsent';
    const status = fieldOf(error, 'status');
    if (isNumber(status)) return status === HTTP_NOT_FOUND || status === HTTP_BAD_REQUEST ? 'unsent' : undefined;
    if (!(error instanceof TypeError)) return undefined;
    return fieldOf(error.cause, 'code') === 'ECONNREFUSED' ? 'unsent' : 'ended';
  }

  #end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#options.ended();
  }

  async #connect(): Promise<Client> {
    const { server, delayMs, elicit, toolsChanged } = this.#options;
    await delay(delayMs, this.#closing.signal);
    const { Client: McpClient } = await loadPackage();
    const wasClosed = (): boolean => this.#closing.signal.aborted;
    if (wasClosed()) throw closedMeanwhile();
    const opening = openTransport(server, () => this.#lost());
    // A transport that is there at once is connected in this turn, so that a close finds it.
    const open = 'then' in opening ? await opening : opening;
    this.#open = open;
    if (wasClosed()) {
      await open.transport.close();
      throw closedMeanwhile();
    }
    const client = new McpClient(
      { name: 'runchart', version: '1' },
      {
        capabilities: { elicitation: { form: {} } },
        listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: toolsChanged } },
      },
    );
    client.setRequestHandler('elicitation/create', ({ params }) =>
      'requestedSchema' in params
        ? elicit({ message: params.message, requestedSchema: params.requestedSchema as Json })
        : { action: 'cancel' },
    );
    client.onclose = () => this.#end();
    this.#client = client;
    await client.connect(open.transport);
    return client;
  }

  /** A stream to the server could not be opened again. */
  #lost(): void {
    this.#end();
    void this.#client?.close().catch(() => undefined);
  }
}

const closedMeanwhile = (): Error => new Error('it was closed meanwhile');

function delay(ms: number, signal: AbortSignal): Promise<void> | undefined {
  if (ms <= 0) return undefined;
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(closedMeanwhile());
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop);
      resolve();
    }, ms);
    signal.addEventListener('abort', stop, { once: true });
  });
}

async function loadPackage(): Promise<typeof import('@modelcontextprotocol/client')> {
  try {
    return await import('@modelcontextprotocol/client');
  } catch (cause) {
    const message = 'mcpTools needs the package @modelcontextprotocol/client: npm install @modelcontextprotocol/client';
    throw new RunchartError('mcp', message, { cause });
  }
}

function openTransport(options: McpServerOptions, lost: () => void): OpenTransport | Promise<OpenTransport> {
  if ('url' in options) return openAddress(options, lost);
  if ('command' in options) return openProcess(options);
  const made = options.transport();
  const opened = (transport: Transport): OpenTransport => ({ transport, report: () => ({ stderr: '' }) });
  return 'then' in made ? made.then(opened) : opened(made);
}

async function openProcess(options: ServerCommand): Promise<OpenTransport> {
  const { getDefaultEnvironment, StdioClientTransport } = await import('@modelcontextprotocol/client/stdio');
  const { command, args = [], env, cwd } = options;
  // The server must not receive this process's keys and tokens. It gets the variables that the host names and those
  // that every program needs.
  const own = { ...getDefaultEnvironment(), ...env };
  const { process } = globalThis as { process?: { platform?: string } };
  if (process?.platform !== 'win32') {
    const { ServerProcess } = await import('./stdio/serverProcess.ts');
    const transport = new ServerProcess(options, own);
    return { transport: transport as Transport, report: () => transport };
  }
  // The package finds `npx.cmd` and the like.
  const transport = new StdioClientTransport({
    command,
    args: [...args],
    env: own,
    stderr: 'pipe',
    ...(cwd && { cwd }),
  });
  let stderr = '';
  transport.stderr?.on('data', (chunk: unknown) => {
    stderr = (stderr + String(chunk)).slice(-STDERR_SHOWN);
  });
  return { transport, report: () => ({ stderr }) };
}

async function openAddress(options: McpAddress, lost: () => void): Promise<OpenTransport> {
  const { StreamableHTTPClientTransport: HttpTransport } = await import('@modelcontextprotocol/client');
  const { url, headers, authProvider } = options;
  const timers = new Set<ReturnType<typeof setTimeout>>();
  const transport = new HttpTransport(new URL(url), {
    requestInit: { ...(headers && { headers }) },
    ...(authProvider && { authProvider }),
    reconnectionOptions: {
      ...{ initialReconnectionDelay: 1_000, maxReconnectionDelay: 30_000, reconnectionDelayGrowFactor: 1.5 },
      maxRetries: Number.MAX_SAFE_INTEGER,
    },
    // The transport of the package keeps one timer only, and does not report a stream that is lost.
    reconnectionScheduler: (reconnect, delayMs, attempt) => {
      if (attempt >= STREAM_RETRIES) return lost();
      const timer = setTimeout(() => {
        timers.delete(timer);
        reconnect();
      }, delayMs);
      timers.add(timer);
      return () => {
        for (const each of timers) clearTimeout(each);
        timers.clear();
      };
    },
  });
  answerLostStreams(transport);
  return { transport, report: () => ({ stderr: '' }), leave: () => leaveSession(transport) };
}

/** A request whose stream ends without an answer would wait for ever. */
function answerLostStreams(transport: StreamableHTTPClientTransport): void {
  const send = transport.send.bind(transport);
  transport.send = (message, options) => {
    const id = !Array.isArray(message) && 'method' in message && 'id' in message ? message.id : undefined;
    if (id === undefined) return send(message, options);
    const onRequestStreamEnd = (): void => {
      options?.onRequestStreamEnd?.();
      const error = { code: CUT, message: 'the connection broke before the answer came' };
      transport.onmessage?.({ jsonrpc: '2.0', id, error });
    };
    return send(message, { ...options, onRequestStreamEnd });
  };
}

/** The server can forget the session. It has a second for that. */
async function leaveSession(transport: StreamableHTTPClientTransport): Promise<void> {
  if (transport.sessionId === undefined) return;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, LEAVE_MS);
  });
  await Promise.race([transport.terminateSession().catch(() => undefined), over]);
  clearTimeout(timer);
}
