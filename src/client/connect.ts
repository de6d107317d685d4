/**
 * Connects to a server of `createHandlers`. Rule: a conversation has the same members as in the server's process.
 * After `close` nothing is left open.
 */
import { ConfigurationError } from '../errors.ts';
import { platformPorts } from '../runtime/hostPorts.ts';
import type { ConversationInfo, ListOptions } from '../stores/logStore.ts';
import { callback, checkOptionsOf, nonEmptyText, numberOrInfinity, object } from '../validation.ts';
import { overviewIn } from './remoteConnection.ts';
import { badAnswer, type ClientOptions, closedClient, ServerCalls } from './serverCalls.ts';
import { ServerConversation } from './serverConversation.ts';

/** The agent behind a server of `createHandlers`, as a page or another process uses it. */
export interface RemoteAgent {
  /**
   * Creates or joins a conversation on the server; resolves when its entries are here. Rejects with the server's error, or
   * with RunchartError `network`, `bad_answer` or `unauthorized`.
   */
  open<Output = unknown>(id?: string): Promise<ServerConversation<Output>>;
  /** Without a `limit`: all rows. An `owner` selects among the conversations that the server's `authorize` allows. */
  list(options?: ListOptions): Promise<ConversationInfo[]>;
  /** Ends every connection. Runs continue on the server. */
  close(): Promise<void>;
}

const optionsValidator = object({
  baseURL: nonEmptyText,
  headers: {
    expected: 'an object of texts, or a function that returns one',
    test: (value) => typeof value === 'function' || (typeof value === 'object' && value !== null),
    secret: true,
  },
  fetch: callback,
  silenceMs: numberOrInfinity(1),
  logger: { expected: 'a logger', test: (value) => typeof value === 'object' && value !== null },
  setTimer: callback,
  newId: callback,
  random: callback,
});

/**
 * Makes a client for an agent behind `createHandlers`. Throws ConfigurationError for an invalid option. Nothing is
 * requested yet.
 */
export function connect(options: ClientOptions): RemoteAgent {
  checkOptionsOf('connect', options, optionsValidator);
  if (options?.baseURL === undefined)
    throw new ConfigurationError('connect needs baseURL, the address before /conversations');
  return new Client(options);
}

class Client implements RemoteAgent {
  readonly #options: ClientOptions;
  readonly #calls: ServerCalls;
  readonly #abort = new AbortController();
  readonly #open = new Set<ServerConversation>();

  constructor(options: ClientOptions) {
    const { setTimer = platformPorts.setTimer, random = platformPorts.random } = options;
    this.#options = options;
    this.#calls = new ServerCalls({ ...options, setTimer, random });
  }

  async open<Output = unknown>(id?: string): Promise<ServerConversation<Output>> {
    const { newId = platformPorts.newId, setTimer = platformPorts.setTimer, silenceMs = 40_000 } = this.#options;
    const { signal } = this.#abort;
    // The client chooses the id, so a repeated request creates nothing more.
    const body = { id: id ?? newId() };
    const answer = await this.#call('POST', '/conversations?overview', { body });
    const { id: conversationId, overview } = answer as { id?: unknown; overview?: unknown };
    if (typeof conversationId !== 'string') throw badAnswer('the id of the conversation');
    const { entries } = overviewIn(overview);
    if (signal.aborted) throw closedClient();
    const report = (error: unknown): void => this.#report(error);
    const closed = (): void => void this.#open.delete(conversation);
    const options = { id: conversationId, calls: this.#calls, silenceMs, setTimer, newId, report, closed };
    const conversation = new ServerConversation<Output>(options);
    this.#open.add(conversation);
    try {
      await conversation.begin(entries);
      if (signal.aborted) throw closedClient();
      return conversation;
    } catch (error) {
      await conversation.close();
      throw error;
    }
  }

  async list(options: ListOptions = {}): Promise<ConversationInfo[]> {
    const { limit, status, owner } = options;
    let { cursor } = options;
    const rows: ConversationInfo[] = [];
    for (;;) {
      const size = Math.min(1000, (limit ?? Number.POSITIVE_INFINITY) - rows.length);
      const filters = { ...(status && { status }), ...(owner !== undefined && { owner }) };
      const query = { limit: `${size}`, ...filters, ...(cursor !== undefined && { cursor }) };
      const page = await this.#call('GET', `/conversations?${new URLSearchParams(query)}`, {});
      if (!Array.isArray(page)) throw badAnswer('a list of conversations');
      rows.push(...(page as ConversationInfo[]));
      cursor = rows.at(-1)?.cursor;
      if (page.length < size || cursor === undefined || rows.length === limit) return rows;
    }
  }

  async close(): Promise<void> {
    this.#abort.abort();
    await Promise.all([...this.#open].map((conversation) => conversation.close()));
  }

  #call(method: 'GET' | 'POST', path: string, { body }: { body?: object }): Promise<unknown> {
    const { signal } = this.#abort;
    if (signal.aborted) throw closedClient();
    return this.#calls.call(method, path, { ...(body && { body }), signal });
  }

  #report(error: unknown): void {
    const { logger = console } = this.#options;
    logger.warn?.({ event: 'subscriber-failed', error });
  }
}
