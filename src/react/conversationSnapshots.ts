/**
 * The state of a conversation that a component shows, as a store that React reads. Invariant: a snapshot is the same object until
 * something in it changes, so React renders only then. Reading a snapshot changes nothing in the conversation.
 */
import type { PendingCall } from '../../machines/vocabulary.ts';
import type { ConnectionState } from '../client/index.ts';
import type { Conversation } from '../conversation/conversation.ts';
import type { ConversationStatus, InFlight } from '../live.ts';
import type { ConversationView } from '../projector/index.ts';

/** A conversation of this process or of a server. */
export type ShownConversation = Pick<
  Conversation,
  'view' | 'view$' | 'live$' | 'inFlight' | 'pending' | 'status' | 'close'
> & { readonly connection?: ConnectionState; readonly connection$?: Signals };

/** An observable of any copy of rxjs. */
interface Signals {
  /** Subscribes an observer. */
  subscribe(observer: Observer): { unsubscribe(): void };
}
/** An observer of values. */
interface Observer {
  /** Receives a value. */
  next(value: unknown): void;
  /** Receives the error that ends the values. */
  error(error: unknown): void;
  /** Called when no more values come. */
  complete(): void;
}

/** The state of a conversation that `useConversation` returns. */
export interface ConversationSnapshot {
  /** The conversation as request cycles. */
  readonly view: ConversationView;
  /** The text that the current reply has streamed so far; null between replies. */
  readonly inFlight: InFlight | null;
  /** The calls that wait for a decision. */
  readonly pending: readonly PendingCall[];
  /** The state of the conversation. */
  readonly status: ConversationStatus;
  /** The state of the connection to the server. It is always `open` for a conversation of this process. */
  readonly connection: ConnectionState['state'];
}

function isSameReply(a: InFlight | null, b: InFlight | null): boolean {
  if (a === b || !a || !b) return a === b;
  if (a.runId !== b.runId || a.text !== b.text || a.reasoning !== b.reasoning) return false;
  return (
    a.toolInputs.length === b.toolInputs.length &&
    a.toolInputs.every(({ index, callId, name, text }, place) => {
      const other = b.toolInputs[place];
      return index === other?.index && callId === other.callId && name === other.name && text === other.text;
    })
  );
}

const isSamePending = (a: readonly PendingCall[], b: readonly PendingCall[]): boolean =>
  a.length === b.length &&
  a.every((call, index) => {
    const other = b[index];
    return call.suspension === other?.suspension && call.path.join('\n') === other.path.join('\n');
  });

export class ConversationSnapshots {
  readonly #conversation: ShownConversation;
  #last: ConversationSnapshot | undefined;

  constructor(conversation: ShownConversation) {
    this.#conversation = conversation;
  }

  readonly read = (): ConversationSnapshot => {
    const { inFlight, pending, status, connection } = this.#conversation;
    const view = this.#conversation.view();
    const state = connection?.state ?? 'open';
    const last = this.#last;
    const isSame =
      last?.view === view &&
      last.status === status &&
      last.connection === state &&
      isSameReply(last.inFlight, inFlight) &&
      isSamePending(last.pending, pending);
    if (last && isSame) return last;
    this.#last = Object.freeze({ view, inFlight, pending, status, connection: state });
    return this.#last;
  };

  readonly subscribe = (changed: () => void): (() => void) => {
    const { view$, live$, connection$ } = this.#conversation;
    let isSubscribed = true;
    const later = (): void => {
      if (isSubscribed) changed();
    };
    const observer: Observer = {
      next: () => {
        changed();
        // A status is signalled before every getter shows it.
        queueMicrotask(later);
      },
      error: changed,
      complete: changed,
    };
    const sources: (Signals | undefined)[] = [view$, live$, connection$];
    const subscriptions = sources.map((source) => source?.subscribe(observer));
    return () => {
      isSubscribed = false;
      for (const subscription of subscriptions) subscription?.unsubscribe();
    };
  };
}

const byConversation = new WeakMap<ShownConversation, ConversationSnapshots>();

/** The snapshots that all components share. */
export function snapshotsOf(conversation: ShownConversation): ConversationSnapshots {
  const snapshots = byConversation.get(conversation) ?? new ConversationSnapshots(conversation);
  byConversation.set(conversation, snapshots);
  return snapshots;
}
