/**
 * A hub over the notifications of PostgreSQL, for workers and watchers in any number of processes. Invariant: signals of one
 * conversation arrive in their order, because one query at a time sends all that has come before it. Nothing depends on a signal: a
 * signal that cannot be sent is dropped, and a watcher that missed a part of a reply receives the whole reply again, or nothing of it.
 */
import type { Live } from '../../live.ts';
import { ChannelConnection } from '../../stores/postgres/channelConnection.ts';
import { Database, type PostgresPool } from '../../stores/postgres/database.ts';
import { joined, piecesOf } from '../../stores/postgres/liveFeed.ts';
import { NOTIFY } from '../../stores/postgres/statements.ts';
import { checkOptionsOf, object } from '../../validation.ts';
import type { HubSignal, LiveHub } from '../liveHub.ts';
import { type HubMessage, listsOf, payloadsOf, readPayload } from './hubMessages.ts';
import { StreamedSignals, WatchedReply } from './watchedReply.ts';

/** The options of `notifyHub`. */
export interface NotifyHubOptions {
  /** The channel of the notifications: 1 to 60 small letters, digits and underscores. Default: `runchart_live`. */
  channel?: string;
}

/** A hub over a pool; closing the hub does not close the pool. */
export type NotifyHub = LiveHub & {
  /** Releases its connection and drops unsent signals. Then the hub carries nothing. */
  close(): Promise<void>;
};

const optionsValidator = object({
  channel: {
    expected: '1 to 60 small letters, digits and underscores',
    test: (value) => typeof value === 'string' && /^[a-z_][a-z0-9_]{0,59}$/.test(value),
  },
});

/** Text is held for this time, so that more of it is sent together. */
const TEXT_MS = 50;
const RETRY_MS = 1000;
const ANSWER_MS = 10_000;
/** A reply of up to this length is repeated once a second, for watchers that join. A longer one is repeated less often. */
const REPEATED_CHARACTERS = 20_000;
const REPEAT_MS = 1000;
/** A reply is dropped after this time without a signal: its attempt is over. */
const SILENT_MS = 600_000;

interface Reply {
  readonly number: number;
  readonly streamed: StreamedSignals;
  /** The number of its signals that its watchers in this process received, and that were sent. */
  count: number;
  sent: number;
  /** The times of its last signal and of its last copy. */
  at: number;
  repeatedAt: number;
}

type Waiting =
  | Extract<HubMessage, { type: 'appended' | 'single' }>
  | { type: 'text'; id: string; reply: Reply; next: number; signals: Live[] };

/**
 * Carries live text from workers to watchers in other processes, over LISTEN and NOTIFY of PostgreSQL. `pool` is a pool of `pg` with at
 * least two connections; one of them listens from the first subscription on. Throws ConfigurationError for an invalid option.
 */
export function notifyHub(pool: PostgresPool, options: NotifyHubOptions = {}): NotifyHub {
  checkOptionsOf('notifyHub', options, optionsValidator);
  return new DatabaseHub(new Database(pool, 'notifyHub'), options.channel ?? 'runchart_live');
}

class DatabaseHub implements NotifyHub {
  readonly #name = crypto.randomUUID();
  readonly #database: Database;
  readonly #channel: string;
  readonly #connection: ChannelConnection;
  readonly #watched = new Map<string, WatchedReply>();
  /** The current replies of conversations of this process, the one with the latest signal last. */
  readonly #replies = new Map<string, Reply>();
  #repliesBegun = 0;
  readonly #waiting: Waiting[] = [];
  /** The last waiting signals of each conversation. */
  readonly #lastOf = new Map<string, Waiting>();
  #isSending = false;
  #isClosed = false;
  /** An announced entry ends the wait. */
  #mayHurry = false;
  /** Ends the wait before the next query. Undefined if there is none. */
  #endWait: (() => void) | undefined;

  constructor(database: Database, channel: string) {
    this.#database = database;
    this.#channel = channel;
    this.#connection = new ChannelConnection(database, channel, (payload) => this.#receive(payload));
  }

  publish(id: string, signal: HubSignal): void {
    if (this.#isClosed) return;
    if (signal.type === 'appended') this.#publishAppended(id, signal);
    else if ('text' in signal.signal || signal.signal.type === 'reset') this.#publishText(id, signal);
    else {
      this.#watched.get(id)?.takeSingle(signal.next, signal.signal);
      this.#put({ type: 'single', id, next: signal.next, signal: signal.signal });
    }
    void this.#send(signal.type === 'live');
  }

  subscribe(id: string, receive: (signal: HubSignal) => void): () => void {
    if (this.#isClosed) return () => {};
    this.#connection.listen();
    const watched = this.#watched.get(id) ?? new WatchedReply();
    const isFirst = !watched.isWatched;
    this.#watched.set(id, watched);
    const leave = watched.watch(receive);
    if (isFirst) this.#repeatHere(id, watched);
    return () => {
      leave();
      if (!watched.isWatched && this.#watched.get(id) === watched) this.#watched.delete(id);
    };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#take();
    this.#watched.clear();
    this.#replies.clear();
    this.#endWait?.();
    this.#connection.close();
  }

  #publishAppended(id: string, { length, isReplyOpen = false }: HubSignal & { type: 'appended' }): void {
    if (this.#replies.get(id)?.streamed.landed(length, isReplyOpen)) this.#replies.delete(id);
    this.#watched.get(id)?.takeAppended(length, isReplyOpen);
    this.#put({ type: 'appended', id, length, isReplyOpen });
  }

  #publishText(id: string, { next, signal }: HubSignal & { type: 'live' }): void {
    const reply = this.#replies.get(id) ?? this.#newReply();
    reply.at = this.#database.time.now();
    // The last one has the latest signal.
    this.#replies.delete(id);
    this.#replies.set(id, reply);
    for (const piece of piecesOf(signal)) {
      reply.streamed.add(next, piece);
      const key = this.#keyOf(reply.number);
      this.#watched.get(id)?.takeText({ reply: key, from: reply.count, next, signals: [piece] });
      reply.count += 1;
      this.#putText(id, reply, next, piece);
    }
  }

  #newReply(): Reply {
    const at = this.#database.time.now();
    for (const [id, reply] of this.#replies) {
      if (at - reply.at < SILENT_MS) break;
      this.#replies.delete(id);
    }
    this.#repliesBegun += 1;
    return { number: this.#repliesBegun, streamed: new StreamedSignals(), count: 0, sent: 0, at, repeatedAt: at };
  }

  #keyOf(reply: number, hub: string = this.#name): string {
    return `${hub}/${reply}`;
  }

  /** A reply that this process streams, for its first watcher here. */
  #repeatHere(id: string, watched: WatchedReply): void {
    const reply = this.#replies.get(id);
    const { soFar } = reply?.streamed ?? {};
    if (!reply || !soFar) return;
    const parts = soFar.length;
    for (const [part, { next, signal }] of soFar.entries())
      watched.takeSoFar({
        ...{ reply: this.#keyOf(reply.number), upTo: reply.count, part, parts, next, signals: [signal] },
      });
  }

  #put(waiting: Waiting): void {
    this.#waiting.push(waiting);
    this.#lastOf.set(waiting.id, waiting);
  }

  #take(): Waiting[] {
    this.#lastOf.clear();
    return this.#waiting.splice(0);
  }

  /** Joins the text to the waiting signals of its conversation. */
  #putText(id: string, reply: Reply, next: number, signal: Live): void {
    const last = this.#lastOf.get(id);
    if (last?.type !== 'text' || last.reply !== reply || last.next !== next)
      return this.#put({ type: 'text', id, reply, next, signals: [signal] });
    const one = joined(last.signals.at(-1), signal);
    if (one) last.signals.splice(-1, 1, one);
    else last.signals.push(signal);
  }

  /** Drops the waiting signals, so the watchers of their replies need a copy. */
  #lose(): void {
    for (const waiting of this.#take()) if (waiting.type === 'text') lost(waiting.reply);
  }

  async #send(mayWait: boolean): Promise<void> {
    if (this.#isSending) {
      if (!mayWait && this.#mayHurry) this.#endWait?.();
      return;
    }
    this.#isSending = true;
    // The signals of this turn are sent together.
    await this.#wait(mayWait ? TEXT_MS : 0, true);
    while (this.#waiting.length > 0) {
      const isSent = await this.#sendAll();
      if (!isSent) {
        await this.#wait(RETRY_MS, false);
        // Signals that came meanwhile are too old to be sent.
        this.#lose();
      } else if (this.#waiting.length > 0) await this.#wait(this.#isUrgent ? 0 : TEXT_MS, true);
    }
    this.#isSending = false;
  }

  get #isUrgent(): boolean {
    return this.#waiting.some(({ type }) => type === 'appended');
  }

  async #wait(ms: number, mayHurry: boolean): Promise<void> {
    if (ms === 0 || this.#isClosed) return;
    this.#mayHurry = mayHurry;
    await new Promise<void>((resolve) => {
      const stopTimer = this.#database.time.setTimer(ms, resolve);
      this.#endWait = () => {
        stopTimer();
        resolve();
      };
    });
    this.#endWait = undefined;
  }

  /** False if the database does not answer. */
  async #sendAll(): Promise<boolean> {
    const waiting = this.#take();
    try {
      for (const payload of payloadsOf(this.#name, this.#messagesOf(waiting)))
        await this.#database.query(NOTIFY, [this.#channel, payload], ANSWER_MS);
      return true;
    } catch {
      for (const each of waiting) if (each.type === 'text') lost(each.reply);
      return false;
    }
  }

  #messagesOf(waiting: readonly Waiting[]): HubMessage[] {
    const lastOf = new Map(waiting.map((each, index) => [each.type === 'text' ? each.reply : undefined, index]));
    return waiting.flatMap((each, index) => {
      if (each.type !== 'text') return [each];
      const { id, reply, next } = each;
      const messages = listsOf(id, each.signals).map((signals): HubMessage => {
        const from = reply.sent;
        reply.sent += signals.length;
        return { type: 'text', id, reply: reply.number, from, next, signals };
      });
      return lastOf.get(reply) === index ? [...messages, ...this.#copyOf(id, reply)] : messages;
    });
  }

  /** The whole reply for watchers that joined during it, from time to time. */
  #copyOf(id: string, reply: Reply): HubMessage[] {
    const { soFar, size } = reply.streamed;
    const now = this.#database.time.now();
    if (!soFar || now - reply.repeatedAt < REPEAT_MS * Math.max(1, size / REPEATED_CHARACTERS)) return [];
    // The reply may have been stored meanwhile.
    if (this.#replies.get(id) !== reply) return [];
    reply.repeatedAt = now;
    const lists = soFar.flatMap(({ next, signal }) => listsOf(id, [signal]).map((signals) => ({ next, signals })));
    const about = { id, type: 'so-far', reply: reply.number, upTo: reply.sent, parts: lists.length } as const;
    return lists.map((list, part) => ({ ...about, part, ...list }));
  }

  #receive(payload: string): void {
    const { hub, messages } = readPayload(payload) ?? {};
    // Watchers of this process have received its own signals.
    if (hub === undefined || hub === this.#name) return;
    for (const message of messages ?? []) {
      const watched = this.#watched.get(message.id);
      if (message.type === 'appended') watched?.takeAppended(message.length, message.isReplyOpen);
      else if (message.type === 'single') watched?.takeSingle(message.next, message.signal);
      else if (message.type === 'text') watched?.takeText({ ...message, reply: this.#keyOf(message.reply, hub) });
      else watched?.takeSoFar({ ...message, reply: this.#keyOf(message.reply, hub) });
    }
  }
}

/** The next signal of the reply is sent with a copy of all before it. */
function lost(reply: Reply): void {
  // Its watchers find a gap.
  reply.sent += 1;
  reply.repeatedAt = Number.NEGATIVE_INFINITY;
}
