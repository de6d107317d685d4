/**
 * The blobs that an entry names, for a copy of it. Invariant: blobs are stored beside the log that names them, so a copied
 * entry names those of its own log.
 */
import type { LogEntry, Message } from '../../../machines/internal.ts';

type Parts = Extract<LogEntry, { type: 'user-message' }>['content'];

/** Copies one blob. Resolves to the value that replaces the reference in the copied entry. */
export type CopyBlob = (reference: string, mediaType: string) => Promise<string>;

/** Copies the blobs of an entry, and returns the entry with the references of the copies. */
export async function withCopiedBlobs(entry: LogEntry, copyBlob: CopyBlob): Promise<LogEntry> {
  if (entry.type === 'history') {
    const messages: Message[] = [];
    for (const message of entry.messages) {
      messages.push({ ...message, content: await copied(message.content, copyBlob) });
    }
    return { ...entry, messages };
  }
  return 'content' in entry ? { ...entry, content: await copied(entry.content, copyBlob) } : entry;
}

async function copied(content: Parts, copyBlob: CopyBlob): Promise<Parts> {
  const parts: Parts = [];
  for (const part of content) {
    if (part.type === 'text' || !part.data.startsWith('blob:')) parts.push(part);
    else parts.push({ ...part, data: await copyBlob(part.data, part.mediaType) });
  }
  return parts;
}
