/**
 * An MCP server, its connection and its running calls. Invariant: a server's question to a person belongs to one call. The
 * protocol does not name the call, so calls that may change something run one after the other. A call stays open at the
 * server while a person answers. A server that ended is connected again by the next call. A call that may have run is
 * repeated only if it only reads. A promise of three lines keeps the order, so `p-queue` is not used.
 */
import type { Client, ElicitResult } from '@modelcontextprotocol/client';
import type { Decision, Json } from '../../machines/vocabulary.ts';
import { RunchartError, thrownMessage } from '../errors.ts';
import { TIMER_MAX_MS } from '../timeLimit.ts';
import { isObject } from '../validation.ts';
import { type Elicitation, type Loss, McpConnection } from './mcpConnection.ts';
import type { McpServerOptions } from './serverOptions.ts';

export type McpToolInfo = Awaited<ReturnType<Client['listTools']>>['tools'][number];
export type McpResult = Awaited<ReturnType<Client['callTool']>>;

export type Settled = { kind: 'result'; result: McpResult } | { kind: 'elicitation'; elicitation: Elicitation };

interface RunningCall {
  readonly connection: McpConnection;
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
/** A list that does not come leaves the tools as they were. */
const LIST_MS = 10_000;
/** The pause before a connection after failures: none after the first, then this, doubled up to the longest. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;

/** The promise, or the abort if that comes first. */
async function unlessAborted<T>(signal: AbortSignal, promise: Promise<T>): Promise<T> {
  let leave = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    leave = () => reject(signal.reason);
    signal.addEventListener('abort', leave, { once: true });
  });
  if (signal.aborted) leave();
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', leave);
  }
}

export class McpServer {
  readonly name: string;
  readonly #options: McpServerOptions;
  /** Called with the tools whenever they were listed again. */
  onTools: ((tools: readonly McpToolInfo[]) => void) | undefined;
  /** The capabilities that the server declared when its tools were first listed. */
  capabilities: ReturnType<Client['getServerCapabilities']>;
  /** Why it is not connected after a failure, until the next connection works. */
  problem: string | undefined;
  #connection: McpConnection | undefined;
  /** Connections that failed or ended by themselves since the last answer, and when the last one did. */
  #failures = { count: 0, at: 0 };
  /** The list that is being fetched, and whether it has changed since it was requested. */
  #listing: { done: Promise<void>; isStale: boolean } | undefined;
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
    const connection = this.#connected();
    const client = await connection.ready;
    this.capabilities = client.getServerCapabilities();
    try {
      return await listed(client);
    } catch (error) {
      throw connection.error('did not list its tools', error);
    }
  }

  /** Carries out a request that only reads, and repeats it once if its connection fails. */
  read<T>(signal: AbortSignal, request: (client: Client, signal: AbortSignal) => Promise<T>): Promise<T> {
    return this.#repeating({ readOnly: true, signal }, this.#closes, async (connection) =>
      request(await connection.ready, signal),
    );
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

  /** Whether the call is open at the server, because a person has to answer. */
  isWaiting(key: string): boolean {
    return this.#waitingCalls.has(key);
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
    await connection?.close();
  }

  /** Runs the work after all earlier work has ended or waits for a person. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work, work);
    this.#turn = done.catch(() => undefined);
    return done;
  }

  async #begin({ name, args, ...call }: McpCall, closes: number): Promise<Settled> {
    return this.#repeating(call, closes, async (connection) => {
      const client = await connection.ready;
      const abort = new AbortController();
      const result = client.callTool(
        { name, arguments: args },
        {
          signal: abort.signal,
          // The calls' own limits end them, not the protocol's.
          timeout: TIMER_MAX_MS,
          onprogress: ({ progress, total, message }) =>
            call.progress({
              ...{ progress, ...(total !== undefined && { total }) },
              ...(message !== undefined && { message }),
            }),
        },
      );
      const state = { question: undefined, notifyAsked: undefined, earlyDecision: call.decision };
      return this.#follow({ connection, args: JSON.stringify(args), abort, result, ...state }, call);
    });
  }

  /** Connects and acts; after a loss of the connection again, if the act cannot have had an effect twice. */
  async #repeating<T>(
    { readOnly, signal }: Pick<McpCall, 'readOnly' | 'signal'>,
    closes: number,
    act: (connection: McpConnection) => Promise<T>,
  ): Promise<T> {
    const repeats: Record<Loss, number> = { unsent: 1, ended: readOnly ? 1 : 0, cut: readOnly ? 1 : 0 };
    for (;;) {
      signal.throwIfAborted();
      // The server was closed while this call waited for its turn, so the call must not reconnect.
      if (closes !== this.#closes) throw new RunchartError('closed', `the MCP server ${this.name} was closed`);
      const connection = this.#connected();
      // Reconnecting takes time, and a call that was cancelled in between must not be sent.
      await unlessAborted(signal, connection.ready);
      signal.throwIfAborted();
      try {
        const value = await act(connection);
        this.#failures.count = 0;
        // A list that the call changed is known before its result.
        if (this.#listing) await unlessAborted(signal, this.#listing.done);
        return value;
      } catch (error) {
        const loss = signal.aborted || closes !== this.#closes ? undefined : connection.lossOf(error);
        if (loss === undefined) throw error;
        if (loss !== 'cut') await this.#drop(connection);
        if (repeats[loss] === 0) throw connectionError(connection, error);
        repeats[loss] -= 1;
      }
    }
  }

  #continueCall(waiting: RunningCall, call: McpCall, decision: Decision): Promise<Settled> {
    const follow = async (): Promise<Settled> => {
      waiting.question?.answer(answerOf(decision));
      waiting.question = undefined;
      try {
        return await this.#follow(waiting, call);
      } catch (error) {
        const { connection } = waiting;
        throw call.signal.aborted || !connection.lossOf(error) ? error : connectionError(connection, error);
      }
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

  #connected(): McpConnection {
    if (this.#connection) return this.#connection;
    const { count, at } = this.#failures;
    const pauseMs = count < 2 ? 0 : Math.min(FIRST_PAUSE_MS * 2 ** (count - 2), LONGEST_PAUSE_MS);
    const connection = new McpConnection({
      name: this.name,
      server: this.#options,
      delayMs: pauseMs - (performance.now() - at),
      elicit: (elicitation) => this.#elicit(elicitation),
      toolsChanged: () => this.#listAgain(connection),
      ended: () => this.#forget(connection),
    });
    this.#connection = connection;
    connection.ready.then(
      () => {
        this.problem = undefined;
      },
      (error: unknown) => {
        this.problem = thrownMessage(error);
      },
    );
    // A server that was started again may have other tools.
    if (count > 0) connection.ready.then(() => this.#listAgain(connection)).catch(() => undefined);
    return connection;
  }

  /** The next call connects again. The end of an older connection does not affect a newer one. */
  #forget(connection: McpConnection): void {
    if (this.#connection !== connection) return;
    this.#connection = undefined;
    this.problem = connection.error('has ended', 'the next call connects to it again').message;
    this.#failures = { count: this.#failures.count + 1, at: performance.now() };
  }

  async #drop(connection: McpConnection): Promise<void> {
    this.#forget(connection);
    await connection.close();
  }

  #listAgain(connection: McpConnection): void {
    if (this.#listing) {
      this.#listing.isStale = true;
      return;
    }
    const listing = { isStale: true, done: Promise.resolve() };
    listing.done = this.#list(connection, listing);
    this.#listing = listing;
  }

  /** Fetches the list until it has not changed meanwhile. */
  async #list(connection: McpConnection, listing: { isStale: boolean }): Promise<void> {
    try {
      const client = await connection.ready;
      while (listing.isStale && this.#connection === connection) {
        listing.isStale = false;
        const tools = await listed(client);
        if (this.#connection === connection) this.onTools?.(tools);
      }
    } catch {
      // The tools stay as they were: the next call or the next notice lists them again.
    } finally {
      this.#listing = undefined;
    }
  }
}

const listed = async (client: Client): Promise<McpToolInfo[]> =>
  client.getServerCapabilities()?.tools
    ? (await client.listTools(undefined, { timeout: LIST_MS, cacheMode: 'refresh' })).tools
    : [];

const connectionError = (connection: McpConnection, error: unknown): RunchartError =>
  connection.error('ended before it answered, so nobody knows whether the call had an effect', error);

/** A person's decision as an answer to the server. */
function answerOf(decision: Decision): ElicitResult {
  if (decision.action === 'deny') return { action: 'decline' };
  const content = decision.action === 'answer' && isObject(decision.payload) ? decision.payload : {};
  return { action: 'accept', content: content as NonNullable<ElicitResult['content']> };
}
