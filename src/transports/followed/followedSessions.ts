/**
 * The conversations of other processes that requests of this process use. Rule: a conversation is followed while it has holders or
 * readers, and for an idle time after that. It takes no slot of the open conversations.
 */
import type { Conversation } from '../../conversation/conversation.ts';
import { ConfigurationError, SessionBusyError } from '../../errors.ts';
import { type Ports, platformPorts } from '../../runtime/hostPorts.ts';
import { noConversation } from '../../stores/logStore.ts';
import { awaitAll } from '../../timeLimit.ts';
import { FollowedConversation, followedOf } from './followedConversation.ts';
import { type LinkOptions, type SharedStore, StoreLink } from './storeLink.ts';

export interface FollowedOptions {
  store: SharedStore;
  idleMs: number;
  setTimer: Ports['setTimer'];
  /** Opens the conversation here. Rejects with SessionBusyError if another process holds it. */
  takeOver<T>(id: string, act: (conversation: Conversation) => Promise<T>): Promise<T>;
  hasReaders(conversation: Conversation): boolean;
  /** The entries that were stored are here. */
  began(conversation: Conversation): void;
}

interface Followed {
  conversation: FollowedConversation;
  beginning: Promise<void>;
  holders: number;
  stopIdle: () => void;
}

/** The shortest interval between checks whether the readers of a conversation have left. */
const READERS_MS = 1000;

/** A host sees no difference. */
const asConversation = (conversation: FollowedConversation): Conversation => conversation as unknown as Conversation;

export class FollowedSessions {
  readonly #options: FollowedOptions;
  readonly #followed = new Map<string, Followed>();

  constructor(options: FollowedOptions) {
    this.#options = options;
  }

  has(id: string): boolean {
    return this.#followed.has(id);
  }

  /** The conversation is followed, and belongs to another owner. */
  isOfOther(id: string, { owner }: { owner?: string | undefined }): boolean {
    const followed = this.#followed.get(id)?.conversation;
    return followed !== undefined && followed.entries.length > 0 && owner !== undefined && followed.owner !== owner;
  }

  /** A process held the conversation when it was acquired last. */
  isHeld(id: string): boolean {
    return this.#followed.get(id)?.conversation.isHeld !== false;
  }

  /** Why a conversation that is open here can answer no request: this process has stalled, and another one may have it. */
  async lossOf(id: string): Promise<SessionBusyError | undefined> {
    const isHeld = (await this.#options.store.stillHolds?.(id)) ?? true;
    return isHeld ? undefined : new SessionBusyError(`another process has taken conversation "${id}" over`);
  }

  /** Joins the conversation, with every entry that was stored at the call. Rejects with `not_found`, also for another owner. */
  async acquire(id: string, { owner }: { owner?: string | undefined }): Promise<Conversation> {
    const followed = this.#followed.get(id) ?? this.#begin(id);
    followed.stopIdle();
    followed.holders += 1;
    try {
      await followed.beginning;
      await followed.conversation.sync();
      if (owner !== undefined && followed.conversation.owner !== owner) throw noConversation();
      return asConversation(followed.conversation);
    } catch (error) {
      this.#letGo(followed);
      throw error;
    }
  }

  /** False for a conversation that this process holds. */
  release(conversation: Conversation): boolean {
    if (!followedOf(conversation)) return false;
    const followed = this.#followed.get(conversation.id);
    if (!followed || asConversation(followed.conversation) !== conversation) return true;
    if (followed.holders === 0)
      throw new ConfigurationError(`${conversation.id} was given back more often than acquired`);
    this.#letGo(followed);
    return true;
  }

  async close(): Promise<void> {
    await awaitAll([...this.#followed.values()].map((followed) => this.#end(followed)));
  }

  #begin(id: string): Followed {
    const { store, setTimer, takeOver, began } = this.#options;
    const options: LinkOptions = {
      id,
      store,
      setTimer,
      newId: platformPorts.newId,
      report: (error) => console.warn({ event: 'subscriber-failed', error }),
      takeOver: (act) => takeOver(id, act),
    };
    const link = new StoreLink(options);
    const conversation = new FollowedConversation({ link, setTimer, newId: options.newId });
    const beginning = conversation.sync().then(() => began(asConversation(conversation)));
    const followed: Followed = { conversation, beginning, holders: 0, stopIdle: () => {} };
    this.#followed.set(id, followed);
    link.whenEnded(() => this.#forget(followed));
    link.begin();
    // The next request begins again.
    beginning.catch(() => this.#end(followed));
    return followed;
  }

  #letGo(followed: Followed): void {
    followed.holders -= 1;
    if (followed.holders === 0) this.#watchIdle(followed);
  }

  #watchIdle(followed: Followed, leastMs = 0): void {
    const { idleMs, setTimer, hasReaders } = this.#options;
    if (idleMs === Number.POSITIVE_INFINITY || followed.conversation.isEnded) return;
    followed.stopIdle = setTimer(Math.max(idleMs, leastMs), () => {
      if (hasReaders(asConversation(followed.conversation))) this.#watchIdle(followed, READERS_MS);
      else void this.#end(followed);
    });
  }

  async #end(followed: Followed): Promise<void> {
    this.#forget(followed);
    await followed.conversation.close();
  }

  #forget(followed: Followed): void {
    followed.stopIdle();
    const { id } = followed.conversation;
    if (this.#followed.get(id) === followed) this.#followed.delete(id);
  }
}
