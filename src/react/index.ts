/**
 * `runchart/react`: hooks for conversations of this process and of a server. Invariant: a component that is unmounted leaves nothing
 * open. On a server a component renders the state of the conversation at that moment.
 */
import { useEffect, useState, useSyncExternalStore } from 'react';
import { type ConversationSnapshot, type ShownConversation, snapshotsOf } from './conversationSnapshots.ts';
import {
  type ClosableConversation,
  type ConversationKey,
  type ConversationOpener,
  holdConversation,
} from './sharedConversations.ts';

export type { ConversationSnapshot, ShownConversation } from './conversationSnapshots.ts';

type Opening<C> = { key: ConversationKey; agent: ConversationOpener<C> } & ({ conversation: C } | { error: unknown });

/**
 * Opens a conversation with the component, and closes it after the component has gone; null until it is open. Components
 * share the conversation of an id. Without an id the component has a new one of its own. Throws the error of the opening,
 * so that an error boundary shows it.
 */
export function useAgent<C extends ClosableConversation>(agent: ConversationOpener<C>, id?: string): C | null {
  const [own] = useState<object>(() => ({}));
  const key = id ?? own;
  const [opened, setOpened] = useState<Opening<C> | null>(null);
  useEffect(() => {
    let isWanted = true;
    const { opening, release } = holdConversation(agent, key);
    opening.then(
      (conversation) => isWanted && setOpened({ key, agent, conversation }),
      (error: unknown) => isWanted && setOpened({ key, agent, error }),
    );
    return () => {
      isWanted = false;
      release();
      // The conversation may be closed when the component needs it again.
      setOpened(null);
    };
  }, [agent, key]);
  if (opened === null || opened.key !== key || opened.agent !== agent) return null;
  if ('error' in opened) throw opened.error;
  return opened.conversation;
}

const nothing = { read: () => null, subscribe: () => () => {} };

/**
 * A hook that returns the state of a conversation, or null for null. The component renders again when something of the state
 * changes.
 */
export function useConversation(conversation: ShownConversation): ConversationSnapshot;
export function useConversation(conversation: ShownConversation | null): ConversationSnapshot | null;
export function useConversation(conversation: ShownConversation | null): ConversationSnapshot | null {
  const { read, subscribe } = conversation ? snapshotsOf(conversation) : nothing;
  return useSyncExternalStore<ConversationSnapshot | null>(subscribe, read, read);
}
