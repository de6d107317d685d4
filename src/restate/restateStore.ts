/**
 * The conversations of an engine, as a store that many processes share. Invariant: no log is opened here, because the engine's workers
 * hold it; readers follow it and send acts to it. An act that is sent again keeps its id and has one effect.
 */
import type { Json, LogEntry } from '../../machines/internal.ts';
import { ConfigurationError, RunchartError, SessionBusyError, thrownMessage } from '../errors.ts';
import type { Live } from '../live.ts';
import { errorOfCode } from '../remote/errorOfCode.ts';
import type { ConversationRow } from '../stores/conversationRow.ts';
import {
  type Act,
  type ActAnswer,
  type ConversationInfo,
  type ListOptions,
  type LogHandle,
  type LogStore,
  noConversation,
} from '../stores/logStore.ts';
import { pageOf } from '../stores/rowTable.ts';
import type { BlobStore } from './blobStore.ts';
import { ContentStore } from './contentStore.ts';
import { engineRow, isListing } from './listedRows.ts';
import type { HubSignal, LiveHub } from './liveHub.ts';
import { INDEX_SHARDS, objectNames, wholeEntries } from './objectCalls.ts';

/** The intervals between requests for entries: right after a signal, while a run is active, and otherwise. */
const POLL_MS = { first: 5, running: 100, most: 1000 } as const;

export interface RestateStoreOptions {
  ingress: string;
  service: string;
  hub: LiveHub;
  /** Keeps large contents. */
  store?: BlobStore | undefined;
}

/** The id as one part of a path. Throws ConfigurationError for an id that would be another path, or none. */
function pathSegment(id: string): string {
  // A URL resolves dots also where they are encoded.
  if (id !== '.' && id !== '..' && !/\p{Surrogate}/u.test(id)) return encodeURIComponent(id);
  throw new ConfigurationError(
    `an engine takes ids of well-formed text other than . and .., not ${JSON.stringify(id.slice(0, 40))}`,
  );
}

export class RestateStore implements LogStore {
  readonly #ingress: string;
  readonly #names: ReturnType<typeof objectNames>;
  readonly #hub: LiveHub;
  readonly #store: BlobStore | undefined;

  constructor({ ingress, service, hub, store }: RestateStoreOptions) {
    this.#ingress = ingress.replace(/\/+$/, '');
    this.#names = objectNames(service);
    this.#hub = hub;
    this.#store = store;
  }

  async open(id: string): Promise<LogHandle> {
    throw new SessionBusyError(`the conversation ${id} is held by the engine`);
  }

  async list(options: ListOptions = {}): Promise<ConversationInfo[]> {
    if (isListing(this.#store)) return this.#store.listRows(this.#names.conversation, options);
    const shards = Array.from({ length: INDEX_SHARDS }, (_, shard) =>
      this.#call<ConversationRow[]>(this.#names.index, String(shard), 'list'),
    );
    const rows = (await Promise.all(shards)).flat();
    return pageOf(
      rows.map(engineRow).filter((row) => row !== null),
      options,
    );
  }

  /** A run that is under way ends first by itself: cancel it before. */
  async delete(id: string): Promise<void> {
    await this.#call(this.#names.conversation, id, 'remove');
  }

  async stateOf(id: string): Promise<{ length: number; isHeld: boolean }> {
    const { length } = await this.#read(id, Number.MAX_SAFE_INTEGER);
    return { length, isHeld: true };
  }

  async act(id: string, act: Act): Promise<Json> {
    const kept = await new ContentStore(this.#store, id).shorten(act);
    const answer = await this.#call<ActAnswer>(this.#names.conversation, id, 'ask', kept, act.actId);
    if ('value' in answer) return answer.value;
    throw errorOfCode(answer.error.code, answer.error.message);
  }

  follow(id: string, from = 0): AsyncIterableIterator<LogEntry | Live> {
    const follower = new Follower(this.#hub, id, from, (next) => this.#read(id, next));
    const items = follower.items();
    return {
      next: () => items.next(),
      return: () => {
        follower.stop();
        return items.return(undefined);
      },
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  }

  async #read(id: string, from: number): Promise<{ length: number; entries: LogEntry[] }> {
    const request = { from, isWhole: this.#store === undefined };
    const page = await this.#call<{ length: number; entries: unknown[] }>(
      this.#names.conversation,
      id,
      'read',
      request,
    );
    return { length: page.length, entries: await wholeEntries(new ContentStore(this.#store, id), page.entries) };
  }

  /** Rejects with `unavailable` where the engine or its workers cannot be reached. */
  async #call<T>(object: string, key: string, handler: string, body?: unknown, requestId?: string): Promise<T> {
    const url = `${this.#ingress}/${object}/${pathSegment(key)}/${handler}`;
    const headers: Record<string, string> = { ...(requestId !== undefined && { 'idempotency-key': requestId }) };
    if (body !== undefined) headers['content-type'] = 'application/json';
    let status = '';
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers,
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      if (response.ok) return (text === '' ? undefined : JSON.parse(text)) as T;
      status = `${response.status} ${text.slice(0, 200)}`;
    } catch (error) {
      status = thrownMessage(error);
    }
    throw new RunchartError(
      'unavailable',
      `the engine at ${this.#ingress} does not answer ${object}/${handler}: ${status}`,
    );
  }
}

/** One reader of a conversation. */
class Follower {
  readonly #hub: LiveHub;
  readonly #id: string;
  readonly #read: (from: number) => Promise<{ length: number; entries: LogEntry[] }>;
  #next: number;
  #signals: (HubSignal & { type: 'live' })[] = [];
  /** Entries of this number exist, or are about to. */
  #announced = 0;
  #isStopped = false;
  #isRunning = false;
  #wake: () => void = () => {};

  constructor(
    hub: LiveHub,
    id: string,
    from: number,
    read: (from: number) => Promise<{ length: number; entries: LogEntry[] }>,
  ) {
    this.#hub = hub;
    this.#id = id;
    this.#next = Math.max(0, Math.ceil(from) || 0);
    this.#read = read;
  }

  stop(): void {
    this.#isStopped = true;
    this.#wake();
  }

  async *items(): AsyncGenerator<LogEntry | Live> {
    const leave = this.#hub.subscribe(this.#id, (signal) => this.#receive(signal));
    let wait: number = POLL_MS.first;
    let isKnown = false;
    try {
      while (!this.#isStopped) {
        if (!isKnown || !this.#isSignalDue) {
          const { length, entries } = await this.#page(isKnown);
          if (length === 0 && !isKnown) throw noConversation();
          // It was deleted, and may have been made again.
          if (length < this.#next) return;
          isKnown = true;
          for (const entry of entries) {
            this.#next = entry.seq + 1;
            this.#follow(entry);
            yield entry;
          }
          if (entries.length > 0) wait = POLL_MS.first;
          if (this.#next < length) continue;
        }
        for (let signal = this.#due(); signal && !this.#isStopped; signal = this.#due()) yield signal;
        if (this.#isStopped) return;
        await this.#pause(wait);
        wait = Math.min(2 * wait, this.#isRunning ? POLL_MS.running : POLL_MS.most);
        if (this.#announced > this.#next) wait = Math.min(wait, 4 * POLL_MS.first);
      }
    } finally {
      leave();
    }
  }

  /** A reader that has entries waits for an engine that does not answer: no other one has its conversation. */
  async #page(isKnown: boolean): Promise<{ length: number; entries: LogEntry[] }> {
    for (let wait: number = POLL_MS.running; ; wait = Math.min(2 * wait, POLL_MS.most)) {
      try {
        return await this.#read(this.#next);
      } catch (error) {
        if (!isKnown || this.#isStopped || !RunchartError.isRunchartError(error) || error.code !== 'unavailable')
          throw error;
        await this.#pause(wait);
      }
    }
  }

  #follow({ type }: LogEntry): void {
    if (type === 'run-started' || type === 'run-resumed') this.#isRunning = true;
    if (type === 'run-stop' || type === 'run-suspended') this.#isRunning = false;
  }

  #receive(signal: HubSignal): void {
    if (signal.type === 'appended') this.#announced = Math.max(this.#announced, signal.length);
    else this.#signals.push(signal);
    this.#wake();
  }

  /** There is nothing to read: a signal for this place waits, and no further entry was announced. */
  get #isSignalDue(): boolean {
    return this.#announced <= this.#next && this.#signals[0]?.next === this.#next;
  }

  /** The next signal after the entries that have been read. */
  #due(): Live | undefined {
    for (;;) {
      const [first] = this.#signals;
      if (!first || first.next > this.#next) return undefined;
      this.#signals.shift();
      if (first.next === this.#next) return first.signal;
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
