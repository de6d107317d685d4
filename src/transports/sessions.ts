/**
 * Living conversations, shared by many requests. Rule: who acquires one opens or joins it and gives it back; one that
 * nobody holds and that does no work is closed when it has been idle for a while, or earlier where its place is needed. A run is
 * never ended for a place: who finds none waits, and is refused after a time.
 */
import type { Agent } from '../agent.ts';
import type { Conversation } from '../conversation/conversation.ts';
import { ConfigurationError, LimitError, RunchartError } from '../errors.ts';
import { type Ports, platformPorts } from '../runtime/hostPorts.ts';
import { callback, checkOptionsOf, numberOrInfinity, object, whole } from '../validation.ts';

export interface SessionOptions {
  /** How long a conversation stays open that nobody holds and that does no work: 60 s. */
  idleMs?: number;
  /** How many are open at once: 200. A store of files needs a few descriptors for each. */
  openMax?: number;
  /** How long an `acquire` waits for a place: 10 s. */
  waitMs?: number;
  setTimer?: Ports['setTimer'];
}

export interface AcquireOptions {
  /** One that is there already, or RunchartError `not_found`. */
  existing?: boolean;
}

export interface Sessions {
  /** Opens or joins. Rejects with what opening rejects with, and with LimitError where no place comes free in time. */
  acquire(id?: string, options?: AcquireOptions): Promise<Conversation>;
  /** Gives back what one `acquire` answered. */
  release(conversation: Conversation): void;
  /** Closes every conversation, held or not; the agent stays open. */
  close(): Promise<void>;
}

interface Session {
  /** Undefined while it opens. */
  conversation?: Conversation;
  opening: Promise<Conversation>;
  closing?: Promise<void>;
  holders: number;
  /** Stops what waits for the end of its idleness or of its work. */
  unwatch?: (() => void) | undefined;
}

const optionsValidator = object({
  idleMs: numberOrInfinity(0),
  openMax: whole(1),
  waitMs: numberOrInfinity(0),
  setTimer: callback,
});

/** Throws ConfigurationError for an option that cannot work. */
export function sessions(agent: Agent, options: SessionOptions = {}): Sessions {
  checkOptionsOf('sessions', options, optionsValidator);
  return new LivingSessions(agent, options);
}

const isWorking = ({ status }: Conversation): boolean => status === 'active' || status === 'cancelling';

class LivingSessions implements Sessions {
  readonly #agent: Agent;
  readonly #idleMs: number;
  readonly #openMax: number;
  readonly #waitMs: number;
  readonly #setTimer: Ports['setTimer'];
  /** Least recently given back first. */
  readonly #open = new Set<Session>();
  readonly #named = new Map<string, Session>();
  /** Who waits for a place, in order. */
  readonly #line: { admit(): void; refuse(error: Error): void }[] = [];
  /** Places that were given to waiters who have not opened yet. */
  #admitted = 0;
  #closed = false;

  constructor(agent: Agent, { idleMs = 60_000, openMax = 200, waitMs = 10_000, setTimer }: SessionOptions) {
    this.#agent = agent;
    this.#idleMs = idleMs;
    this.#openMax = openMax;
    this.#waitMs = waitMs;
    this.#setTimer = setTimer ?? platformPorts.setTimer;
  }

  async acquire(id?: string, options: AcquireOptions = {}): Promise<Conversation> {
    for (;;) {
      if (this.#closed) throw closedError();
      const known = id === undefined ? undefined : this.#named.get(id);
      if (!known) {
        if (this.#open.size + this.#admitted >= this.#openMax) {
          await this.#place();
          this.#admitted -= 1;
          // Somebody else may have opened it meanwhile.
          if (id !== undefined && this.#named.has(id)) {
            this.#admit();
            continue;
          }
          if (this.#closed) throw closedError();
        }
        return this.#begin(id, options);
      }
      if (!known.closing) {
        const joined = await this.#join(known).catch((error) => {
          // Who opens it meanwhile may not make it.
          if (options.existing || (error as { code?: unknown } | null)?.code !== 'not_found') throw error;
        });
        if (joined) return joined;
        continue;
      }
      await known.closing;
    }
  }

  release(conversation: Conversation): void {
    const session = this.#named.get(conversation.id);
    if (session?.conversation !== conversation) return;
    if (session.holders === 0)
      throw new ConfigurationError(`${conversation.id} was given back more often than acquired`);
    session.holders -= 1;
    if (session.holders === 0) this.#rest(session, conversation);
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const { refuse } of this.#line.splice(0)) refuse(closedError());
    await Promise.all([...this.#open].map((session) => this.#end(session)));
  }

  #join(session: Session): Promise<Conversation> {
    this.#stopWatching(session);
    session.holders += 1;
    return session.opening;
  }

  async #begin(id: string | undefined, options: AcquireOptions): Promise<Conversation> {
    const session: Session = { opening: this.#agent.open(id, options), holders: 1 };
    this.#open.add(session);
    if (id !== undefined) this.#named.set(id, session);
    try {
      const conversation = await session.opening;
      session.conversation = conversation;
      this.#named.set(conversation.id, session);
      // Somebody may close it behind our back.
      conversation.log$(Number.MAX_SAFE_INTEGER).subscribe({ complete: () => this.#forget(session, conversation.id) });
      return conversation;
    } catch (error) {
      this.#forget(session, id);
      throw error;
    }
  }

  #forget(session: Session, id: string | undefined): void {
    this.#stopWatching(session);
    // A place is free once the store has let go.
    if (session.closing) return;
    this.#open.delete(session);
    if (id !== undefined && this.#named.get(id) === session) this.#named.delete(id);
    this.#admit();
  }

  /** Nobody holds it: it is closed once it has been idle long enough. */
  #rest(session: Session, conversation: Conversation): void {
    this.#open.delete(session);
    this.#open.add(session);
    if (!isWorking(conversation)) {
      if (this.#idleMs !== Number.POSITIVE_INFINITY)
        session.unwatch = this.#setTimer(this.#idleMs, () => void this.#retire(session, conversation));
      this.#admit();
      return;
    }
    const watching = conversation.live$.subscribe(({ type }) => {
      // What is told follows the chart; what counts is what can be read behind it.
      if (type === 'status') queueMicrotask(() => this.#look(session, conversation));
    });
    session.unwatch = () => watching.unsubscribe();
  }

  #look(session: Session, conversation: Conversation): void {
    if (session.holders > 0 || session.closing || !session.unwatch || isWorking(conversation)) return;
    this.#stopWatching(session);
    this.#rest(session, conversation);
  }

  /** Something may have begun by itself, a followUp for example. */
  #retire(session: Session, conversation: Conversation): Promise<void> | void {
    session.unwatch = undefined;
    return isWorking(conversation) ? this.#rest(session, conversation) : this.#end(session);
  }

  #stopWatching(session: Session): void {
    session.unwatch?.();
    session.unwatch = undefined;
  }

  #end(session: Session): Promise<void> {
    this.#stopWatching(session);
    session.closing ??= this.#ended(session);
    return session.closing;
  }

  async #ended(session: Session): Promise<void> {
    const conversation = await session.opening.catch(() => undefined);
    // What a store says of its letting go is nobody's answer here; the next opening is told.
    await conversation?.close().catch(() => undefined);
    this.#open.delete(session);
    for (const [id, each] of this.#named) if (each === session) this.#named.delete(id);
    this.#admit();
  }

  /** Resolves with a place that is the caller's. */
  #place(): Promise<void> {
    return new Promise((resolve, reject) => {
      const stop = this.#setTimer(this.#waitMs, () => {
        this.#line.splice(this.#line.indexOf(waiter), 1);
        reject(
          new LimitError(`${this.#openMax} conversations are open and in use (openMax), and none came free in time`),
        );
      });
      const waiter = {
        admit: () => {
          stop();
          this.#admitted += 1;
          resolve();
        },
        refuse: (error: Error) => {
          stop();
          reject(error);
        },
      };
      this.#line.push(waiter);
      this.#admit();
    });
  }

  /** Lets waiters in where there are places, and makes places of what is idle, as many as are waited for. */
  #admit(): void {
    while (this.#line.length > 0 && this.#open.size + this.#admitted < this.#openMax) this.#line.shift()?.admit();
    let wanted = this.#line.length - [...this.#open].filter(({ closing }) => closing).length;
    for (const session of this.#open) {
      if (wanted <= 0) return;
      const { conversation, holders, closing } = session;
      if (!conversation || holders > 0 || closing || isWorking(conversation)) continue;
      wanted -= 1;
      void this.#end(session);
    }
  }
}

const closedError = (): RunchartError => new RunchartError('closed', 'the sessions are closed');
