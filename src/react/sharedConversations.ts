/**
 * The conversations that components have open, by agent and id. Invariant: components that want the same conversation share
 * one, so none of them is refused because another has it. A conversation is closed once no component has had it for a
 * moment: React takes a component away and puts it back at once in StrictMode. An id is opened again only after its close.
 */

export interface ClosableConversation {
  close(): Promise<void>;
}

export interface ConversationOpener<C> {
  open(id?: string): Promise<C>;
}

export interface SharedConversation<C> {
  readonly opening: Promise<C>;
  /** Called once by each component that holds it. */
  release(): void;
}

/** The id, or an object of the component for a conversation without one. */
export type ConversationKey = string | object;

interface Held<C> {
  readonly opening: Promise<C>;
  holders: number;
  stopClosing?: (() => void) | undefined;
}

class OpenConversations<C extends ClosableConversation> {
  readonly #agent: ConversationOpener<C>;
  readonly #open = new Map<ConversationKey, Held<C>>();
  readonly #closing = new Map<ConversationKey, Promise<void>>();

  constructor(agent: ConversationOpener<C>) {
    this.#agent = agent;
  }

  hold(key: ConversationKey): SharedConversation<C> {
    const held = this.#open.get(key) ?? this.#begin(key);
    held.holders += 1;
    held.stopClosing?.();
    held.stopClosing = undefined;
    let isReleased = false;
    const release = (): void => {
      if (isReleased) return;
      isReleased = true;
      held.holders -= 1;
      if (held.holders === 0) this.#closeLater(key, held);
    };
    return { opening: held.opening, release };
  }

  #begin(key: ConversationKey): Held<C> {
    const open = (): Promise<C> => (typeof key === 'string' ? this.#agent.open(key) : this.#agent.open());
    const closing = this.#closing.get(key);
    const held: Held<C> = { opening: closing ? closing.then(open) : open(), holders: 0 };
    // Another component may try again after a failure.
    held.opening.catch(() => this.#forget(key, held));
    this.#open.set(key, held);
    return held;
  }

  #closeLater(key: ConversationKey, held: Held<C>): void {
    const timer = setTimeout(() => this.#close(key, held), 0);
    held.stopClosing = () => clearTimeout(timer);
  }

  #close(key: ConversationKey, held: Held<C>): void {
    this.#forget(key, held);
    const closing = held.opening
      .then((conversation) => conversation.close())
      // The next opening reports the error.
      .catch(() => undefined)
      .then(() => {
        if (this.#closing.get(key) === closing) this.#closing.delete(key);
      });
    this.#closing.set(key, closing);
  }

  #forget(key: ConversationKey, held: Held<C>): void {
    if (this.#open.get(key) === held) this.#open.delete(key);
  }
}

const byAgent = new WeakMap<object, OpenConversations<ClosableConversation>>();

/** Opens the conversation of this key, or joins the components that have it. */
export function holdConversation<C extends ClosableConversation>(
  agent: ConversationOpener<C>,
  key: ConversationKey,
): SharedConversation<C> {
  const open = (byAgent.get(agent) as OpenConversations<C> | undefined) ?? new OpenConversations(agent);
  byAgent.set(agent, open as unknown as OpenConversations<ClosableConversation>);
  return open.hold(key);
}
