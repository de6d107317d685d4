/**
 * Removes a session together with the stored contents of its files. Invariant: contents that a copy of the session needs stay, because a
 * fork has the requests of its original.
 */
import { SessionBusyError } from '../../errors.ts';
import type { LogStore } from '../../stores/logStore.ts';
import { FileHistory } from '../undo/fileHistory.ts';
import type { SessionPlace } from './sessionPlace.ts';

/** Rejects with SessionBusyError, before anything is removed. */
export async function removeSession({ store, history }: Pick<SessionPlace, 'store' | 'history'>, id: string) {
  const messageIds = await messagesOf(store, id);
  const sessions = await store.list();
  const createdAt = sessions.find((session) => session.id === id)?.createdAt;
  await store.delete(id);
  // A copy has the first entry of its original.
  const copies = sessions.filter((session) => session.id !== id && session.createdAt === createdAt);
  const needed = new Set<string>();
  for (const copy of copies) for (const messageId of await neededBy(copy.id, messageIds, store)) needed.add(messageId);
  await new FileHistory(history).forget(messageIds.filter((messageId) => !needed.has(messageId)));
}

/** Returns all of them if another session is in use, because its log cannot be read now. The limit of the history removes them later. */
async function neededBy(id: string, messageIds: readonly string[], store: LogStore): Promise<readonly string[]> {
  try {
    return await messagesOf(store, id);
  } catch {
    return messageIds;
  }
}

/** The requests of a session. A damaged log names none. */
async function messagesOf(store: LogStore, id: string): Promise<string[]> {
  const messageIds: string[] = [];
  try {
    const handle = await store.open(id, { existing: true });
    try {
      for await (const entry of handle.read()) if (entry.type === 'user-message') messageIds.push(entry.messageId);
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (error instanceof SessionBusyError) throw error;
  }
  return messageIds;
}
