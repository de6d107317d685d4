/**
 * The entries and live signals of one conversation for all its readers: one list, in which each reader has its own place.
 * Invariant: an item has the same cost for any length of the log and any number of readers. Items that no reader needs
 * are not kept. Readers stay when the conversation is released, and continue when it is opened again.
 */
import type { Subscription } from 'rxjs';
import type { LogEntry } from '../../../machines/internal.ts';
import type { Conversation } from '../../conversation/conversation.ts';
import type { Live } from '../../live.ts';
import { nextTurn } from '../../timeLimit.ts';
import { entriesOf } from '../followed/eitherConversation.ts';
import { joinedSignal } from './joinedSignal.ts';
import { shownEntry } from './shownDiagnostics.ts';

export type BroadcastItem = { readonly entry: LogEntry } | { readonly signal: Live };

/** An item in the list. A reader holds the last link that it has taken, and so all links after it. */
export interface BroadcastLink {
  /** Undefined for the beginning of the list. */
  item: BroadcastItem | undefined;
  /** The approximate size of all signals up to this link. */
  size: number;
  next: BroadcastLink | undefined;
}

export interface Reader {
  /** Items may have come, or the broadcast has ended. */
  wake(): void;
  end(): void;
  /** The seq of the next entry that the reader takes. */
  readonly next: number;
}

/** The approximate size of a signal, without serializing it. */
const sizeOf = (signal: Live): number =>
  64 + ('text' in signal ? signal.text.length : 0) + ('update' in signal ? 256 : 0);

/** The first entries are of the same log, as it was read twice. */
const isSameLog = (first: LogEntry | undefined, again: LogEntry | undefined): boolean =>
  first?.type === 'conversation' &&
  again?.type === 'conversation' &&
  first.createdAt === again.createdAt &&
  first.owner === again.owner;

export class Broadcast {
  #conversation: Conversation | undefined;
  #entries: readonly LogEntry[] = [];
  /** The first entry of the log: another log with the same id has a different one. */
  #beginning: LogEntry | undefined;
  /** The seq of the next entry of the list. */
  #listed = 0;
  #tail: BroadcastLink = { item: undefined, size: 0, next: undefined };
  /** A reader has taken the last link or begins after it, so that no signal may be joined to it. */
  #isTailTaken = true;
  #isReleased = false;
  #isWakeDue = false;
  readonly #readers = new Set<Reader>();
  readonly #subscriptions: Subscription[] = [];
  /** Called when the last reader has left. */
  readonly #abandoned: () => void;

  constructor(conversation: Conversation, abandoned: () => void = () => {}) {
    this.#abandoned = abandoned;
    this.attach(conversation);
  }

  isAttachedTo(conversation: Conversation): boolean {
    return this.#conversation === conversation;
  }

  /** It has readers, who depend on this conversation. */
  isReadAt(conversation: Conversation): boolean {
    return this.hasReaders && this.isAttachedTo(conversation);
  }

  /** Undefined while it is released. */
  get conversation(): Conversation | undefined {
    return this.#conversation;
  }

  get hasReaders(): boolean {
    return this.#readers.size > 0;
  }

  get tail(): BroadcastLink {
    return this.#tail;
  }

  /** The number of entries up to the last link. */
  get listed(): number {
    return this.#listed;
  }

  entryAt(seq: number): LogEntry | undefined {
    const entry = this.#entries[seq];
    return entry && shownEntry(entry);
  }

  /** The conversation was opened, for the first time or again. */
  attach(conversation: Conversation): void {
    this.#isReleased = false;
    if (this.#conversation === conversation) return;
    const beginning = this.#beginning;
    // It may have been followed before.
    this.#detach();
    this.#conversation = conversation;
    this.#entries = entriesOf(conversation);
    [this.#beginning] = this.#entries;
    if (this.#readers.size === 0) return;
    // Another log has the same id now, perhaps that of another owner.
    if (this.#entries.length < this.#listed || !isSameLog(beginning, this.#beginning)) return this.end();
    this.#list();
    this.#subscribe(true);
    this.#wakeLater();
  }

  /** The conversation is going to be closed for lack of work. Its readers stay. */
  release(): void {
    this.#isReleased = true;
  }

  /** Ends every reader. */
  end(): void {
    this.#detach();
    for (const reader of this.#readers) reader.end();
  }

  /** Adds a reader, or adds a slow one again. It takes the links after the current tail. */
  join(reader: Reader): void {
    const isFirst = this.#readers.size === 0;
    this.#readers.add(reader);
    if (isFirst) {
      this.#listed = this.#entries.length;
      this.#subscribe(false);
    }
    this.#list();
    this.#isTailTaken = true;
  }

  leave(reader: Reader): void {
    if (!this.#readers.delete(reader) || this.#readers.size > 0) return;
    for (const subscription of this.#subscriptions.splice(0)) subscription.unsubscribe();
    this.#abandoned();
  }

  /** The text that the current reply has streamed so far, as signals; none between replies. */
  inFlight(): Live[] {
    const signals: Live[] = [];
    this.#conversation?.live$.subscribe((signal) => void signals.push(signal)).unsubscribe();
    return signals;
  }

  /** Signals that replace the earlier ones of their kind. */
  current(): Live[] {
    const conversation = this.#conversation;
    if (!conversation) return [];
    const { status, state } = conversation;
    return [
      { type: 'status', status },
      { type: 'state', state },
    ];
  }

  get inFlightRunId(): string | undefined {
    return this.#conversation?.inFlight?.runId;
  }

  /** A reader has taken this link. */
  taken(link: BroadcastLink): void {
    if (link === this.#tail) this.#isTailTaken = true;
  }

  /** Without its conversation, the log is kept only until every reader has read it. */
  forgetEntries(): void {
    if (this.#conversation || this.#entries.length === 0) return;
    for (const { next } of this.#readers) if (next < this.#listed) return;
    this.#entries = [];
  }

  #subscribe(isReplayed: boolean): void {
    const conversation = this.#conversation;
    if (!conversation) return;
    let isTaking = isReplayed;
    const log = conversation.log$(this.#entries.length).subscribe({
      next: () => {
        this.#list();
        this.#wakeLater();
      },
      complete: () => this.#completed(conversation),
    });
    const live = conversation.live$.subscribe((signal) => {
      if (isTaking) this.#addSignal(signal);
    });
    isTaking = true;
    this.#subscriptions.push(log, live);
  }

  #completed(conversation: Conversation): void {
    if (this.#conversation !== conversation) return;
    this.#list();
    if (!this.#isReleased) return this.end();
    this.#detach();
    this.forgetEntries();
    this.#wakeLater();
  }

  #detach(): void {
    this.#conversation = undefined;
    for (const subscription of this.#subscriptions.splice(0)) subscription.unsubscribe();
  }

  /** An entry comes before every signal that was sent after its append. */
  #list(): void {
    for (let entry = this.#entries[this.#listed]; entry; entry = this.#entries[this.#listed]) {
      this.#listed += 1;
      this.#add({ entry: shownEntry(entry) }, 64);
    }
  }

  #addSignal(signal: Live): void {
    this.#list();
    const { item } = this.#tail;
    const last = !this.#isTailTaken && item && 'signal' in item ? item.signal : undefined;
    const joined = last && joinedSignal(last, signal);
    if (joined && 'text' in signal) {
      this.#tail.item = { signal: joined };
      this.#tail.size += signal.text.length;
    } else this.#add({ signal }, sizeOf(signal));
    this.#wakeLater();
  }

  #add(item: BroadcastItem, size: number): void {
    const link: BroadcastLink = { item, size: this.#tail.size + size, next: undefined };
    this.#tail.next = link;
    this.#tail = link;
    this.#isTailTaken = false;
  }

  /** One wake for everything that comes in this turn of the event loop. */
  #wakeLater(): void {
    if (this.#isWakeDue) return;
    this.#isWakeDue = true;
    void nextTurn().then(() => {
      this.#isWakeDue = false;
      for (const reader of this.#readers) reader.wake();
    });
  }
}

const broadcasts = new WeakMap<Conversation, Broadcast>();

/** The broadcast of an open conversation. */
export function broadcastOf(conversation: Conversation): Broadcast {
  const broadcast = broadcasts.get(conversation) ?? new Broadcast(conversation);
  broadcasts.set(conversation, broadcast);
  return broadcast;
}
