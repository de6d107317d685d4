/**
 * A new conversation that begins as another one did. Rule: entries are copied and nothing is executed; the one that is
 * forked is read and left as it is; calls that were cut off are closed when the new one is opened, as after a crash.
 */
import type { LogEntry } from '../machines/index.ts';
import { ConfigurationError } from './errors.ts';
import type { LogHandle, LogStore } from './stores/store.ts';

type Parts = Extract<LogEntry, { type: 'user-message' }>['content'];

/** Blobs stand beside the log that names them. */
async function copied(content: Parts, from: LogHandle, to: LogHandle): Promise<Parts> {
  const { getBlob } = from;
  if (!getBlob || !to.putBlob) return content;
  const parts: Parts = [];
  for (const part of content) {
    if (part.type !== 'image' || !part.data.startsWith('blob:')) parts.push(part);
    else parts.push({ ...part, data: await to.putBlob(await getBlob.call(from, part.data), part.mediaType) });
  }
  return parts;
}

async function forkedEntry(entry: LogEntry, id: string, from: LogHandle, to: LogHandle): Promise<LogEntry> {
  // The id there is the sub-agent's, of which it tells.
  const forked = entry.type === 'sub-agent' ? { ...entry } : { ...entry, conversationId: id };
  // What a sub-agent's log begins with makes a conversation that somebody holds by itself.
  if (forked.type === 'conversation') delete forked.parent;
  return 'content' in forked ? { ...forked, content: await copied(forked.content, from, to) } : forked;
}

/**
 * Copies the first `until` entries of a conversation, all of them where it is not given, into the new conversation `to`.
 * Rejects with ConfigurationError where there is nothing to copy or `to` exists already, and with SessionBusyError while
 * somebody has either of them open.
 */
export async function forkConversation(store: LogStore, from: string, to: string, until?: number): Promise<void> {
  if (from === to) throw new ConfigurationError(`a fork needs an id of its own, got ${JSON.stringify(to)} for both`);
  const source = await store.open(from);
  try {
    const target = await store.open(to);
    try {
      for await (const _ of target.read()) {
        throw new ConfigurationError(`the conversation ${JSON.stringify(to)} exists already; fork into a new id`);
      }
      const entries: LogEntry[] = [];
      for await (const entry of source.read()) {
        if (until !== undefined && entry.seq >= until) break;
        entries.push(await forkedEntry(entry, to, source, target));
      }
      if (entries.length === 0) throw new ConfigurationError(`${JSON.stringify(from)} has no entries to fork`);
      await target.append(entries, 0);
    } finally {
      await target.close();
    }
  } finally {
    await source.close();
  }
}
