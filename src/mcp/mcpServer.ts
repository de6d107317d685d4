/**
 * A connection to one MCP server, and its running calls. Invariant: a server's question to a person belongs to one
 * call. The protocol does not name the call, so calls that may change something run one after the other. A call stays
 * open at the server while a person answers. A promise of three lines keeps the order, so `p-queue` is not used.
 */
import { Client, type ElicitResult, type Transport } from '@modelcontextprotocol/client';
import type { Decision, Json } from '../../machines/vocabulary.ts';
import { RunchartError, thrownText } from '../errors.ts';
import { isObject } from '../validation.ts';

/** How a server is reached. A `transport` is made anew for each connection. */
export type McpServerOptions =
  | { command: string; args?: readonly string[]; env?: { [name: string]: string }; cwd?: string }
  | { url: string | URL; headers?: { [name: string]: string } }
  | { transport(): Transport | Promise<Transport> };

export type McpToolInfo = Awaited<ReturnType<Client['listTools']>>['tools'][number];
export type McpResult = Awaited<ReturnType<Client['callTool']>>;

/** What a server wants to know from a person before it goes on with a call. */
export interface Elicitation {
  message: string;
  /** JSON Schema of the answer. */
  requestedSchema: Json;
}
export type Settled = { kind: 'result'; result: McpResult } | { kind: 'elicitation'; elicitation: Elicitation };

interface Connection {
  readonly client: Client;
  /** Resolves with the client when the server has answered. */
  readonly ready: Promise<Client>;
}

interface CallUnderWay {
  /** JSON text of the arguments that the server has. */
  readonly args: string;
  readonly abort: AbortController;
  readonly result: Promise<McpResult>;
  /** What the server waits for, if it does. */
  asked: { answer(result: ElicitResult): void; elicitation: Elicitation } | undefined;
  /** Tells whoever waits for the call that a person is asked. */
  tell: (() => void) | undefined;
  /** What the person said before the server asked: the process that it had asked is gone. */
  early: Decision | undefined;
}

export interface McpCall {
  /** Of the call, unique among those of all conversations. */
  key: string;
  name: string;
  args: { [key: string]: unknown };
  readOnly: boolean;
  signal: AbortSignal;
  decision: Decision | undefined;
  progress(update: Json): void;
}

/** A server holds at most so many calls that wait for a person; the one that waits longest is given up then. */
const HELD_MAX = 64;
/** The calls' own limits end them: the protocol's are as long as a timer can be. */
const NO_LIMIT = 2 ** 31 - 1;

export class McpServer {
  readonly name: string;
  readonly #options: McpServerOptions;
  #connection: Connection | undefined;
  /** How often it was closed. */
  #closes = 0;
  /** Calls that wait for a person. */
  readonly #held = new Map<string, CallUnderWay>();
  /** Calls that run and wait for nobody. */
  readonly #running = new Map<CallUnderWay, { readOnly: boolean }>();
  #turn: Promise<unknown> = Promise.resolve();

  constructor(name: string, options: McpServerOptions) {
    this.name = name;
    this.#options = options;
  }

  /** Every tool of the server. Rejects with a RunchartError, `mcp`, where it cannot be reached. */
  async tools(): Promise<McpToolInfo[]> {
    const client = await this.#client();
    const { tools } = await client.listTools();
    return tools;
  }

  /** Runs a call until it has a result or the server asks a person; goes on with one that was asked about. */
  async call(call: McpCall): Promise<Settled> {
    const { key, decision } = call;
    const held = this.#held.get(key);
    const isAnswered = held && decision && decision.action !== 'edit';
    if (isAnswered && held.args === JSON.stringify(call.args)) {
      this.#held.delete(key);
      return this.#goOn(held, call, decision);
    }
    this.leave(key);
    // A plugin has changed the arguments since: the answer is about others.
    return this.#anew(isAnswered ? { ...call, decision: undefined } : call);
  }

  #anew(call: McpCall): Promise<Settled> {
    const closes = this.#closes;
    return call.readOnly ? this.#begin(call, closes) : this.#inTurn(() => this.#begin(call, closes));
  }

  /** The call that waits for a person is over: its question is called off, and it is cancelled at the server. */
  leave(key: string): void {
    const held = this.#held.get(key);
    this.#held.delete(key);
    held?.asked?.answer({ action: 'cancel' });
    held?.abort.abort();
  }

  /** Ends the connection, one that is being made too, and the calls so far. A later call connects anew. */
  async close(): Promise<void> {
    const connection = this.#connection;
    this.#closes += 1;
    this.#connection = undefined;
    for (const { abort } of [...this.#held.values(), ...this.#running.keys()]) abort.abort();
    this.#held.clear();
    await connection?.client.close().catch(() => undefined);
  }

  /** One after the other, each until it is over or waits for a person. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work, work);
    this.#turn = done.catch(() => undefined);
    return done;
  }

  async #begin({ name, args, ...call }: McpCall, closes: number): Promise<Settled> {
    call.signal.throwIfAborted();
    // It waited for its turn when the close came: it must not connect again.
    if (closes !== this.#closes) throw new RunchartError('closed', `the MCP server ${this.name} was closed`);
    const client = await this.#client();
    // To connect anew takes time, and what was cancelled meanwhile is never sent.
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
    const state = { asked: undefined, tell: undefined, early: call.decision };
    return this.#follow({ args: JSON.stringify(args), abort, result, ...state }, call);
  }

  #goOn(held: CallUnderWay, call: McpCall, decision: Decision): Promise<Settled> {
    const follow = (): Promise<Settled> => {
      held.asked?.answer(answerOf(decision));
      held.asked = undefined;
      return this.#follow(held, call);
    };
    return call.readOnly ? follow() : this.#inTurn(follow);
  }

  async #follow(call: CallUnderWay, { key, readOnly, signal }: Pick<McpCall, 'key' | 'readOnly' | 'signal'>) {
    const end = (): void => call.abort.abort(signal.reason);
    if (signal.aborted) end();
    signal.addEventListener('abort', end, { once: true });
    this.#running.set(call, { readOnly });
    const asked = new Promise<'asked'>((resolve) => {
      call.tell = () => resolve('asked');
    });
    try {
      const first = await Promise.race([call.result, asked]);
      if (first !== 'asked') return { kind: 'result' as const, result: first };
      const { elicitation } = call.asked ?? {};
      if (!elicitation) throw new RunchartError('mcp', `the server ${this.name} asked for nothing`);
      call.result.catch(() => undefined);
      this.#hold(key, call);
      return { kind: 'elicitation' as const, elicitation };
    } finally {
      signal.removeEventListener('abort', end);
      this.#running.delete(call);
    }
  }

  #hold(key: string, call: CallUnderWay): void {
    this.#held.set(key, call);
    const [oldest] = this.#held;
    if (this.#held.size <= HELD_MAX || !oldest) return;
    this.#held.delete(oldest[0]);
    oldest[1].asked?.answer({ action: 'cancel' });
  }

  /** The call that the server asks about: the one that may change something, else the only one that runs. */
  #asking(): CallUnderWay | undefined {
    const running = [...this.#running];
    const changing = running.find(([, { readOnly }]) => !readOnly);
    return changing?.[0] ?? (running.length === 1 ? running[0]?.[0] : undefined);
  }

  #elicit(elicitation: Elicitation): ElicitResult | Promise<ElicitResult> {
    const call = this.#asking();
    if (!call || call.asked) return { action: 'cancel' };
    const { early } = call;
    call.early = undefined;
    if (early && early.action !== 'edit') return answerOf(early);
    return new Promise((answer) => {
      call.asked = { answer, elicitation };
      call.tell?.();
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
    // A server that has ended is started again with the next call; the end of an older connection is not the end of this one.
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
  // Keys and tokens of this process are not for it: it gets what is named, and what every program needs.
  const own = { ...getDefaultEnvironment(), ...env };
  return new StdioClientTransport({ command, args: [...args], env: own, stderr: 'ignore', ...(cwd && { cwd }) });
}

/** What a person's decision says to the server. */
function answerOf(decision: Decision): ElicitResult {
  if (decision.action === 'deny') return { action: 'decline' };
  const given = decision.action === 'answer' && isObject(decision.payload) ? decision.payload : {};
  return { action: 'accept', content: given as NonNullable<ElicitResult['content']> };
}
