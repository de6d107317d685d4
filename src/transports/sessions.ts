/**
 * Open conversations that many requests share. Rule: a request acquires a conversation, which opens or joins it, and
 * releases it. A conversation without holders and without work is closed after an idle time, or earlier if its slot is needed. No run
 * is ended for a slot: a request waits for one, up to a time limit. A conversation that another process holds is followed.
 */
import { type Agent, type AgentWatcher, watchersOf } from '../agent.ts';
import type { Conversation } from '../conversation/conversation.ts';
import { ConfigurationError, LimitError, RunchartError } from '../errors.ts';
import { type Ports, platformPorts } from '../runtime/hostPorts.ts';
import { mayExist, noConversation } from '../stores/logStore.ts';
import { awaitAll } from '../timeLimit.ts';
import { callback, checkOptionsOf, numberOrInfinity, object, whole } from '../validation.ts';
import { Broadcast } from './events/broadcast.ts';
import { watchStatus } from './followed/eitherConversation.ts';
import { FollowedSessions } from './followed/followedSessions.ts';
import { isShared } from './followed/storeLink.ts';

/** The options of `sessions`. */
export interface SessionOptions {
  /** The time that an idle conversation stays open. Default: 60 s. */
  idleMs?: number;
  /** The most open conversations. Default: 200. A file store needs a few descriptors for each. */
  openMax?: number;
  /** The time that `acquire` waits for a slot. Default: 10 s. */
  waitMs?: number;
  /** The timer of a test. Default: the timer of the platform. */
  setTimer?: Ports['setTimer'];
}

/** The options of `acquire`. */
export interface AcquireOptions {
  /** The conversation must exist; otherwise RunchartError `not_found`. */
  existing?: boolean;
  /** Limits the caller to this owner: a new conversation gets it, and any other one is RunchartError `not_found`. */
  owner?: string | undefined;
}

/** The open conversations of an agent, shared by its transports. */
export interface Sessions {
  /** Opens or joins a conversation, also one of another process. Rejects with its error, or LimitError if no slot is free in time. */
  acquire(id?: string, options?: AcquireOptions): Promise<Conversation>;
  /** Releases the conversation of one `acquire`. */
  release(conversation: Conversation): void;
  /** Passes the broadcast of an existing conversation to `begin`, which adds a reader at once. Readers do not keep it open. */
  follow?<T>(id: string, options: Pick<AcquireOptions, 'owner'>, begin: (broadcast: Broadcast) => T): Promise<T>;
  /** Closes every conversation, held or not; the agent stays open. */
  close(): Promise<void>;
}

interface Session {
  /** Undefined while it opens. */
  conversation?: Conversation;
  opening: Promise<Conversation>;
  closing?: Promise<void>;
  holders: number;
  /** Stops the idle timer, or the watch for the end of its work. */
  stopWatching?: (() => void) | undefined;
}

const optionsValidator = object({
  idleMs: numberOrInfinity(0),
  openMax: whole(1),
  waitMs: numberOrInfinity(0),
  setTimer: callback,
});

/** Opens conversations for several transports, which share them. Throws ConfigurationError for an invalid option. */
export function sessions(agent: Agent, options: SessionOptions = {}): Sessions {
  checkOptionsOf('sessions', options, optionsValidator);
  return new LivingSessions(agent, options);
}

/** A caller that is limited to an owner cannot reach a conversation without an owner. */
const isOf = (conversation: Conversation, { owner }: AcquireOptions): boolean =>
  owner === undefined || conversation.owner === owner;
const isWorking = ({ status }: Conversation): boolean => status === 'active' || status === 'cancelling';

/** The number of attempts to find a conversation that another process is creating or deleting. */
const ATTEMPTS = 20;
const AGAIN_MS = 50;

class LivingSessions implements Sessions {
  readonly #agent: Agent;
  readonly #idleMs: number;
  readonly #openMax: number;
  readonly #waitMs: number;
  readonly #setTimer: Ports['setTimer'];
  /** The least recently released come first. */
  readonly #open = new Set<Session>();
  readonly #named = new Map<string, Session>();
  /** The broadcasts of conversations that are open or have readers. */
  readonly #broadcasts = new Map<string, Broadcast>();
  /** Added to the agent while there are broadcasts, so that the agent keeps nothing of sessions without readers. */
  readonly #watcher: AgentWatcher = {
    opened: (conversation) => this.#followHost(conversation),
    closed: () => {
      this.#endReaders();
      void this.#followed?.close();
    },
  };
  /** Requests that wait for a slot, in order. */
  readonly #waiters: { admit(): void; refuse(error: Error): void }[] = [];
  /** Slots that belong to requests which have not opened their conversation yet. */
  #reservedSlots = 0;
  readonly #followed: FollowedSessions | undefined;
  #closed = false;

  constructor(agent: Agent, { idleMs = 60_000, openMax = 200, waitMs = 10_000, setTimer }: SessionOptions) {
    this.#agent = agent;
    this.#idleMs = idleMs;
    this.#openMax = openMax;
    this.#waitMs = waitMs;
    this.#setTimer = setTimer ?? platformPorts.setTimer;
    const store = (agent as Partial<Agent>).profile?.store;
    if (isShared(store)) this.#followed = this.#following(store);
  }

  async acquire(id?: string, options: AcquireOptions = {}): Promise<Conversation> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return (await this.#join(id, options)) ?? (await this.#acquireHere(id, options));
      } catch (error) {
        if (id === undefined || !this.#followed || this.#closed) throw error;
        try {
          if (codeOf(error) === 'session_busy') return await this.#followed.acquire(id, options);
          throw error;
        } catch (failure) {
          // It was deleted at this moment, or is being created and has no entry yet.
          const isOthers = options.existing || this.#followed.isOfOther(id, options);
          if (isOthers || codeOf(failure) !== 'not_found') throw failure;
          if (attempt === ATTEMPTS) throw error !== failure || !options.owner ? beingCreated() : failure;
        }
        await new Promise<void>((resolve) => this.#setTimer(AGAIN_MS, resolve));
      }
    }
  }

  /** Joins the conversation as it is followed; undefined if it is not, or if nobody holds it any more. */
  async #join(id: string | undefined, options: AcquireOptions): Promise<Conversation | undefined> {
    if (id === undefined || !this.#followed?.has(id) || this.#named.has(id)) return undefined;
    const conversation = await this.#followed.acquire(id, options);
    if (this.#followed.isHeld(id)) return conversation;
    this.release(conversation);
    return undefined;
  }

  /** Opens or joins the conversation in this process. */
  async #acquireHere(id: string | undefined, options: AcquireOptions): Promise<Conversation> {
    for (;;) {
      if (this.#closed) throw closedError();
      const openSession = id === undefined ? undefined : this.#named.get(id);
      if (!openSession) {
        if (this.#open.size + this.#reservedSlots >= this.#openMax) {
          await this.#refuseMissing(id, options);
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
        const joined = await this.#joinSession(openSession).catch((error) => {
          // The request that opens it may not be allowed to create it.
          if (options.existing || codeOf(error) !== 'not_found') throw error;
        });
        if (!joined) continue;
        const refusal = isOf(joined, options) ? await this.#followed?.lossOf(joined.id) : noConversation();
        if (!refusal) return joined;
        this.release(joined);
        throw refusal;
      }
      await openSession.closing;
    }
  }

  /** A missing conversation is refused at once, and does not wait for a slot. */
  async #refuseMissing(id: string | undefined, { existing, owner }: AcquireOptions): Promise<void> {
    if (!existing || id === undefined) return;
    // A wrapper of an agent may have no profile.
    const { profile }: Partial<Agent> = this.#agent;
    if (!(await mayExist(profile?.store, id, owner))) throw noConversation();
  }

  release(conversation: Conversation): void {
    if (this.#followed?.release(conversation)) return;
    const session = this.#named.get(conversation.id);
    if (session?.conversation !== conversation) return;
    if (session.holders === 0)
      throw new ConfigurationError(`${conversation.id} was given back more often than acquired`);
    session.holders -= 1;
    if (session.holders === 0) this.#watchIdle(session, conversation);
  }

  async follow<T>(
    id: string,
    { owner }: Pick<AcquireOptions, 'owner'>,
    begin: (broadcast: Broadcast) => T,
  ): Promise<T> {
    const conversation = await this.acquire(id, { existing: true, owner });
    try {
      return begin(this.#broadcastOf(conversation));
    } finally {
      this.release(conversation);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#endReaders();
    for (const { refuse } of this.#waiters.splice(0)) refuse(closedError());
    watchersOf(this.#agent).delete(this.#watcher);
    await awaitAll([this.#followed?.close(), ...[...this.#open].map((session) => this.#end(session))]);
  }

  #following(store: ConstructorParameters<typeof FollowedSessions>[0]['store']): FollowedSessions {
    return new FollowedSessions({
      store,
      idleMs: this.#idleMs,
      setTimer: this.#setTimer,
      hasReaders: (conversation) => this.#broadcasts.get(conversation.id)?.isReadAt(conversation) === true,
      takeOver: async (id, act) => {
        const conversation = await this.#acquireHere(id, { existing: true });
        try {
          return await act(conversation);
        } finally {
          this.release(conversation);
        }
      },
      began: (conversation) => {
        watchersOf(this.#agent).add(this.#watcher);
        if (!this.#named.has(conversation.id)) this.#broadcasts.get(conversation.id)?.attach(conversation);
      },
    });
  }

  #joinSession(session: Session): Promise<Conversation> {
    this.#stopWatching(session);
    session.holders += 1;
    return session.opening;
  }

  async #openSession(id: string | undefined, options: AcquireOptions): Promise<Conversation> {
    const { existing = false, owner } = options;
    const opening = this.#agent.open(id, { existing, ...(owner !== undefined && { owner }) });
    const session: Session = { opening, holders: 1 };
    this.#open.add(session);
    if (id !== undefined) this.#named.set(id, session);
    try {
      const conversation = await session.opening;
      session.conversation = conversation;
      this.#named.set(conversation.id, session);
      this.#broadcasts.get(conversation.id)?.attach(conversation);
      // The host may close the conversation itself.
      conversation.log$(Number.MAX_SAFE_INTEGER).subscribe({ complete: () => this.#forget(session, conversation.id) });
      return conversation;
    } catch (error) {
      this.#forget(session, id);
      throw error;
    }
  }

  #broadcastOf(conversation: Conversation): Broadcast {
    const { id } = conversation;
    const existing = this.#broadcasts.get(id);
    if (existing?.isAttachedTo(conversation)) return existing;
    const broadcast: Broadcast = new Broadcast(conversation, () => {
      if (this.#broadcasts.get(id) === broadcast) this.#broadcasts.delete(id);
      if (this.#broadcasts.size === 0 && !this.#followed) watchersOf(this.#agent).delete(this.#watcher);
    });
    this.#broadcasts.set(id, broadcast);
    watchersOf(this.#agent).add(this.#watcher);
    return broadcast;
  }

  /** A conversation that the sessions open is attached again afterwards, and then its readers end with it. */
  #followHost(conversation: Conversation): void {
    const broadcast = this.#broadcasts.get(conversation.id);
    broadcast?.attach(conversation);
    broadcast?.release();
  }

  #endReaders(): void {
    for (const broadcast of this.#broadcasts.values()) broadcast.end();
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
    // The status is read in a microtask, after the chart has taken the event.
    session.stopWatching = watchStatus(conversation, () => {
      queueMicrotask(() => this.#checkIdle(session, conversation));
    });
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
    if (conversation && !this.#closed) this.#broadcasts.get(conversation.id)?.release();
    // No request waits for the store's error here; the next opening reports it.
    await conversation?.close().catch(() => undefined);
    this.#open.delete(session);
    for (const [id, each] of this.#named) if (each === session) this.#named.delete(id);
    this.#admit();
    if (conversation) await this.#followReaders(conversation.id);
  }

  /** Another process may open the conversation that readers here wait for. Those who cannot follow it connect to another process. */
  async #followReaders(id: string): Promise<void> {
    if (!this.#followed || this.#closed || !this.#broadcasts.get(id)?.hasReaders) return;
    const followed = await this.#followed.acquire(id, {}).catch(() => this.#broadcasts.get(id)?.end());
    if (followed && !this.#named.has(id)) this.#broadcasts.get(id)?.attach(followed);
    if (followed) this.release(followed);
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

const beingCreated = (): RunchartError => new RunchartError('unavailable', 'another process is creating it: try again');
const codeOf = (error: unknown): unknown => (error as { code?: unknown } | null)?.code;
const closedError = (): RunchartError => new RunchartError('closed', 'the sessions are closed');
