/**
 * Open conversations that many requests share. Rule: a request acquires a conversation, which opens or joins it, and
 * releases it. A conversation without holders and without work is closed after an idle time, or earlier if its slot is
 * needed. No run is ended for a slot: a request without a slot waits, and is refused after a time limit.
 */
import type { Agent } from '../agent.ts';
import type { Conversation } from '../conversation/conversation.ts';
import { ConfigurationError, LimitError, RunchartError } from '../errors.ts';
import { type Ports, platformPorts } from '../runtime/hostPorts.ts';
import { callback, checkOptionsOf, numberOrInfinity, object, whole } from '../validation.ts';

export interface SessionOptions {
  /** The time that an idle conversation stays open. Default: 60 s. */
  idleMs?: number;
  /** The most open conversations. Default: 200. A file store needs a few descriptors for each. */
  openMax?: number;
  /** The time that `acquire` waits for a slot. Default: 10 s. */
  waitMs?: number;
  setTimer?: Ports['setTimer'];
}

export interface AcquireOptions {
  /** The conversation must exist; otherwise RunchartError `not_found`. */
  existing?: boolean;
}

export interface Sessions {
  /**
   * Opens or joins a conversation. Rejects with the error of the opening, or with LimitError if no slot becomes free in
   * time.
   */
  acquire(id?: string, options?: AcquireOptions): Promise<Conversation>;
  /** Releases the conversation of one `acquire`. */
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
  /** Stops the idle timer, or the subscription that waits for the end of its work. */
  stopWatching?: (() => void) | undefined;
}

const optionsValidator = object({
  idleMs: numberOrInfinity(0),
  openMax: whole(1),
  waitMs: numberOrInfinity(0),
  setTimer: callback,
});

/** Throws ConfigurationError for an invalid option. */
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
  /** The least recently released come first. */
  readonly #open = new Set<Session>();
  readonly #named = new Map<string, Session>();
  /** Requests that wait for a slot, in order. */
  readonly #waiters: { admit(): void; refuse(error: Error): void }[] = [];
  /** Slots that belong to requests which have not opened their conversation yet. */
  #reservedSlots = 0;
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
      const openSession = id === undefined ? undefined : this.#named.get(id);
      if (!openSession) {
        if (this.#open.size + this.#reservedSlots >= this.#openMax) {
          await this.#awaitSlot();
          this.#reservedSlots -= 1;
          // Another request may have opened it in the meantime.
          if (id !== undefined && this.#named.has(id)) {
            this.#admit();
            continue;
          }
          if (this.#closed) throw closedError();
        }
        return this.#openSession(id, options);
      }
      if (!openSession.closing) {
        const joined = await this.#join(openSession).catch((error) => {
          // The request that opens it may not be allowed to create it.
          if (options.existing || (error as { code?: unknown } | null)?.code !== 'not_found') throw error;
        });
        if (joined) return joined;
        continue;
      }
      await openSession.closing;
    }
  }

  release(conversation: Conversation): void {
    const session = this.#named.get(conversation.id);
    if (session?.conversation !== conversation) return;
    if (session.holders === 0)
      throw new ConfigurationError(`${conversation.id} was given back more often than acquired`);
    session.holders -= 1;
    if (session.holders === 0) this.#watchIdle(session, conversation);
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const { refuse } of this.#waiters.splice(0)) refuse(closedError());
    await Promise.all([...this.#open].map((session) => this.#end(session)));
  }

  #join(session: Session): Promise<Conversation> {
    this.#stopWatching(session);
    session.holders += 1;
    return session.opening;
  }

  async #openSession(id: string | undefined, options: AcquireOptions): Promise<Conversation> {
    const session: Session = { opening: this.#agent.open(id, options), holders: 1 };
    this.#open.add(session);
    if (id !== undefined) this.#named.set(id, session);
    try {
      const conversation = await session.opening;
      session.conversation = conversation;
      this.#named.set(conversation.id, session);
      // The host may close the conversation itself.
      conversation.log$(Number.MAX_SAFE_INTEGER).subscribe({ complete: () => this.#forget(session, conversation.id) });
      return conversation;
    } catch (error) {
      this.#forget(session, id);
      throw error;
    }
  }

  #forget(session: Session, id: string | undefined): void {
    this.#stopWatching(session);
    // The slot becomes free when the store has released the conversation.
    if (session.closing) return;
    this.#open.delete(session);
    if (id !== undefined && this.#named.get(id) === session) this.#named.delete(id);
    this.#admit();
  }

  /** The conversation has no holders, so it is closed after the idle time. */
  #watchIdle(session: Session, conversation: Conversation): void {
    this.#open.delete(session);
    this.#open.add(session);
    if (!isWorking(conversation)) {
      if (this.#idleMs !== Number.POSITIVE_INFINITY)
        session.stopWatching = this.#setTimer(this.#idleMs, () => void this.#closeIdle(session, conversation));
      this.#admit();
      return;
    }
    const watching = conversation.live$.subscribe(({ type }) => {
      // The status is read in a microtask, after the chart has taken the event.
      if (type === 'status') queueMicrotask(() => this.#checkIdle(session, conversation));
    });
    session.stopWatching = () => watching.unsubscribe();
  }

  #checkIdle(session: Session, conversation: Conversation): void {
    if (session.holders > 0 || session.closing || !session.stopWatching || isWorking(conversation)) return;
    this.#stopWatching(session);
    this.#watchIdle(session, conversation);
  }

  /** Work may have begun automatically, for example a followUp. */
  #closeIdle(session: Session, conversation: Conversation): Promise<void> | void {
    session.stopWatching = undefined;
    return isWorking(conversation) ? this.#watchIdle(session, conversation) : this.#end(session);
  }

  #stopWatching(session: Session): void {
    session.stopWatching?.();
    session.stopWatching = undefined;
  }

  #end(session: Session): Promise<void> {
    this.#stopWatching(session);
    session.closing ??= this.#ended(session);
    return session.closing;
  }

  async #ended(session: Session): Promise<void> {
    const conversation = await session.opening.catch(() => undefined);
    // No request waits for the store's error here; the next opening reports it.
    await conversation?.close().catch(() => undefined);
    this.#open.delete(session);
    for (const [id, each] of this.#named) if (each === session) this.#named.delete(id);
    this.#admit();
  }

  /** Resolves with a slot for the caller. */
  #awaitSlot(): Promise<void> {
    return new Promise((resolve, reject) => {
      const stop = this.#setTimer(this.#waitMs, () => {
        this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
        reject(
          new LimitError(`${this.#openMax} conversations are open and in use (openMax), and none came free in time`),
        );
      });
      const waiter = {
        admit: () => {
          stop();
          this.#reservedSlots += 1;
          resolve();
        },
        refuse: (error: Error) => {
          stop();
          reject(error);
        },
      };
      this.#waiters.push(waiter);
      this.#admit();
    });
  }

  /** Admits waiting requests to free slots, and closes as many idle conversations as are needed. */
  #admit(): void {
    while (this.#waiters.length > 0 && this.#open.size + this.#reservedSlots < this.#openMax)
      this.#waiters.shift()?.admit();
    let toClose = this.#waiters.length - [...this.#open].filter(({ closing }) => closing).length;
    for (const session of this.#open) {
      if (toClose <= 0) return;
      const { conversation, holders, closing } = session;
      if (!conversation || holders > 0 || closing || isWorking(conversation)) continue;
      toClose -= 1;
      void this.#end(session);
    }
  }
}

const closedError = (): RunchartError => new RunchartError('closed', 'the sessions are closed');
