/**
 * A connection to one MCP server, and its running calls. Invariant: a server's question to a person belongs to one
 * call. The protocol does not name the call, so calls that may change something run one after the other. A call stays
 * open at the server while a person answers. A promise of three lines keeps the order, so `p-queue` is not used.
 */
import { Client, type ElicitResult, type Transport } from '@modelcontextprotocol/client';
import type { Decision, Json } from '../../machines/vocabulary.ts';
import { RunchartError, thrownText } from '../errors.ts';
import { isObject } from '../validation.ts';

/** The options that reach a server. `transport` is called for each new connection. */
export type McpServerOptions =
  | { command: string; args?: readonly string[]; env?: { [name: string]: string }; cwd?: string }
  | { url: string | URL; headers?: { [name: string]: string } }
  | { transport(): Transport | Promise<Transport> };

export type McpToolInfo = Awaited<ReturnType<Client['listTools']>>['tools'][number];
export type McpResult = Awaited<ReturnType<Client['callTool']>>;

/** A server's question to a person, without whose answer a call cannot continue. */
export interface Elicitation {
  message: string;
  /** The JSON Schema of the answer. */
  requestedSchema: Json;
}
export type Settled = { kind: 'result'; result: McpResult } | { kind: 'elicitation'; elicitation: Elicitation };

interface Connection {
  readonly client: Client;
  /** Resolves with the client after the server has answered. */
  readonly ready: Promise<Client>;
}

interface RunningCall {
  /** The arguments as the server received them, as JSON text. */
  readonly args: string;
  readonly abort: AbortController;
  readonly result: Promise<McpResult>;
  /** The open question of the server, if there is one. */
  question: { answer(result: ElicitResult): void; elicitation: Elicitation } | undefined;
  /** Notifies the waiting caller that the server asks a person. */
  notifyAsked: (() => void) | undefined;
  /** The person's answer to an earlier process, before the server has asked again. */
  earlyDecision: Decision | undefined;
}

export interface McpCall {
  /** Identifies the call; unique across conversations. */
  key: string;
  name: string;
  args: { [key: string]: unknown };
  readOnly: boolean;
  signal: AbortSignal;
  decision: Decision | undefined;
  progress(update: Json): void;
}

/** The most calls of one server that wait for a person. Beyond it, the call that has waited longest is cancelled. */
const WAITING_MAX = 64;
/** The longest possible timer: the calls' own limits end them, not the protocol's. */
const NO_LIMIT = 2 ** 31 - 1;

export class McpServer {
  readonly name: string;
  readonly #options: McpServerOptions;
  #connection: Connection | undefined;
  /** The number of times it was closed. */
  #closes = 0;
  /** Calls that wait for a person. */
  readonly #waitingCalls = new Map<string, RunningCall>();
  /** Calls that run and do not wait. */
  readonly #running = new Map<RunningCall, { readOnly: boolean }>();
  #turn: Promise<unknown> = Promise.resolve();

  constructor(name: string, options: McpServerOptions) {
    this.name = name;
    this.#options = options;
  }

  /** All tools of the server. Rejects with a RunchartError (`mcp`) if the server cannot be reached. */
  async tools(): Promise<McpToolInfo[]> {
    const client = await this.#client();
    const { tools } = await client.listTools();
    return tools;
  }

  /** Runs a call until it has a result or the server asks a person. A call with an open question continues. */
  async call(call: McpCall): Promise<Settled> {
    const { key, decision } = call;
    const waiting = this.#waitingCalls.get(key);
    const isAnswered = waiting && decision && decision.action !== 'edit';
    if (isAnswered && waiting.args === JSON.stringify(call.args)) {
      this.#waitingCalls.delete(key);
      return this.#continueCall(waiting, call, decision);
    }
    this.abandon(key);
    // If a plugin has changed the arguments since, the answer does not apply to them.
    return this.#startCall(isAnswered ? { ...call, decision: undefined } : call);
  }

  #startCall(call: McpCall): Promise<Settled> {
    const closes = this.#closes;
    return call.readOnly ? this.#begin(call, closes) : this.#inTurn(() => this.#begin(call, closes));
  }

  /** Ends a call that waited for a person: its question is withdrawn, and the server receives a cancellation. */
  abandon(key: string): void {
    const waiting = this.#waitingCalls.get(key);
    this.#waitingCalls.delete(key);
    waiting?.question?.answer({ action: 'cancel' });
    waiting?.abort.abort();
  }

  /** Ends the connection, including one that is being made, and the current calls. A later call reconnects. */
  async close(): Promise<void> {
    const connection = this.#connection;
    this.#closes += 1;
    this.#connection = undefined;
    for (const { abort } of [...this.#waitingCalls.values(), ...this.#running.keys()]) abort.abort();
    this.#waitingCalls.clear();
    await connection?.client.close().catch(() => undefined);
  }

  /** Runs the work after all earlier work has ended or waits for a person. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work, work);
    this.#turn = done.catch(() => undefined);
    return done;
  }

  async #begin({ name, args, ...call }: McpCall, closes: number): Promise<Settled> {
    call.signal.throwIfAborted();
    // The server was closed while this call waited for its turn, so the call must not reconnect.
    if (closes !== this.#closes) throw new RunchartError('closed', `the MCP server ${this.name} was closed`);
    const client = await this.#client();
    // Reconnecting takes time, and a call that was cancelled in between must not be sent.
    call.signal.throwIfAborted();
    const abort = new AbortController();
    const result = client.callTool(
      { name, arguments: args },
      {
        signal: abort.signal,
        timeout: NO_LIMIT,
        onprogress: ({ progress, total, message }) =>
          call.progress({ progress, ...(total !== undefined && { total }), ...(message !== undefined && { message }) }),
      },
    );
    const state = { question: undefined, notifyAsked: undefined, earlyDecision: call.decision };
    return this.#follow({ args: JSON.stringify(args), abort, result, ...state }, call);
  }

  #continueCall(waiting: RunningCall, call: McpCall, decision: Decision): Promise<Settled> {
    const follow = (): Promise<Settled> => {
      waiting.question?.answer(answerOf(decision));
      waiting.question = undefined;
      return this.#follow(waiting, call);
    };
    return call.readOnly ? follow() : this.#inTurn(follow);
  }

  async #follow(call: RunningCall, { key, readOnly, signal }: Pick<McpCall, 'key' | 'readOnly' | 'signal'>) {
    const end = (): void => call.abort.abort(signal.reason);
    if (signal.aborted) end();
    signal.addEventListener('abort', end, { once: true });
    this.#running.set(call, { readOnly });
    const questionAsked = new Promise<'asked'>((resolve) => {
      call.notifyAsked = () => resolve('asked');
    });
    try {
      const first = await Promise.race([call.result, questionAsked]);
      if (first !== 'asked') return { kind: 'result' as const, result: first };
      const { elicitation } = call.question ?? {};
      if (!elicitation) throw new RunchartError('mcp', `the server ${this.name} asked for nothing`);
      call.result.catch(() => undefined);
      this.#keepWaiting(key, call);
      return { kind: 'elicitation' as const, elicitation };
    } finally {
      signal.removeEventListener('abort', end);
      this.#running.delete(call);
    }
  }

  #keepWaiting(key: string, call: RunningCall): void {
    this.#waitingCalls.set(key, call);
    const [oldest] = this.#waitingCalls;
    if (this.#waitingCalls.size <= WAITING_MAX || !oldest) return;
    this.#waitingCalls.delete(oldest[0]);
    oldest[1].question?.answer({ action: 'cancel' });
  }

  /** The call that the server's question belongs to: the one that may change something, or the only one that runs. */
  #askingCall(): RunningCall | undefined {
    const running = [...this.#running];
    const changing = running.find(([, { readOnly }]) => !readOnly);
    return changing?.[0] ?? (running.length === 1 ? running[0]?.[0] : undefined);
  }

  #elicit(elicitation: Elicitation): ElicitResult | Promise<ElicitResult> {
    const call = this.#askingCall();
    if (!call || call.question) return { action: 'cancel' };
    const { earlyDecision: early } = call;
    call.earlyDecision = undefined;
    if (early && early.action !== 'edit') return answerOf(early);
    return new Promise((answer) => {
      call.question = { answer, elicitation };
      call.notifyAsked?.();
    });
  }

  #client(): Promise<Client> {
    this.#connection ??= this.#connect();
    return this.#connection.ready;
  }

  #connect(): Connection {
    const client = new Client({ name: 'runchart', version: '1' }, { capabilities: { elicitation: { form: {} } } });
    client.setRequestHandler('elicitation/create', ({ params }) =>
      'requestedSchema' in params
        ? this.#elicit({ message: params.message, requestedSchema: params.requestedSchema as Json })
        : { action: 'cancel' },
    );
    // The next call restarts a server that has ended. The end of an older connection does not affect a newer one.
    const forget = (): void => {
      if (this.#connection?.client === client) this.#connection = undefined;
    };
    client.onclose = forget;
    const ready = this.#connected(client).catch((error: unknown) => {
      forget();
      const message = `the MCP server ${this.name} cannot be reached: ${thrownText(error)}`;
      throw new RunchartError('mcp', message, { cause: error });
    });
    return { client, ready };
  }

  async #connected(client: Client): Promise<Client> {
    const transport = await transportOf(this.#options);
    if (this.#connection?.client !== client) {
      await transport.close();
      throw new Error('it was closed meanwhile');
    }
    await client.connect(transport);
    return client;
  }
}

async function transportOf(options: McpServerOptions): Promise<Transport> {
  if ('transport' in options) return options.transport();
  if ('url' in options) {
    const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
    const { url, headers } = options;
    return new StreamableHTTPClientTransport(new URL(url), { requestInit: { ...(headers && { headers }) } });
  }
  const { getDefaultEnvironment, StdioClientTransport } = await import('@modelcontextprotocol/client/stdio');
  const { command, args = [], env, cwd } = options;
  // The server must not receive this process's keys and tokens. It gets the variables that the host names and those
  // that every program needs.
  const own = { ...getDefaultEnvironment(), ...env };
  return new StdioClientTransport({ command, args: [...args], env: own, stderr: 'ignore', ...(cwd && { cwd }) });
}

/** A person's decision as an answer to the server. */
function answerOf(decision: Decision): ElicitResult {
  if (decision.action === 'deny') return { action: 'decline' };
  const content = decision.action === 'answer' && isObject(decision.payload) ? decision.payload : {};
  return { action: 'accept', content: content as NonNullable<ElicitResult['content']> };
}
