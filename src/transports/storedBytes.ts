/**
 * The bytes of an image or a file that a conversation refers to, as a response. Invariant: no reference of another conversation is
 * read. A browser shows only bytes that begin like an image; all other bytes are a download without their type.
 */
import type { Attachment, LogEntry } from '../../machines/internal.ts';
import { imageType } from '../content/imageFormat.ts';
import type { Conversation } from '../conversation/conversation.ts';
import { RunchartError } from '../errors.ts';
import { bytesOf, entriesOf } from './followed/eitherConversation.ts';
import { notFound } from './httpRequests.ts';

function* attachmentsIn(entries: readonly LogEntry[]): Generator<Attachment> {
  for (const entry of entries) {
    const contents = entry.type === 'history' ? entry.messages : 'content' in entry ? [entry] : [];
    for (const { content } of contents) for (const part of content) if (part.type !== 'text') yield part;
  }
}

/** The part whose reference has this hash. Bytes that are an image for one part may be a file for another one. */
function attachmentOf(conversation: Conversation, hash: string): Attachment | undefined {
  const found = [...attachmentsIn(entriesOf(conversation))].filter(
    ({ data }) => data.startsWith('blob:') && data.split(':')[1] === hash,
  );
  return found.find(({ type }) => type === 'image') ?? found[0];
}

/** A browser sends the ETag with `W/` where something on the way has compressed the bytes. */
const isKnown = (header: string | null, etag: string): boolean =>
  header?.split(',').some((each) => [etag, `W/${etag}`, '*'].includes(each.trim())) === true;

/** The name comes from its sender. */
function disposition(part: Attachment): string {
  const name = part.type === 'file' && part.name !== undefined ? part.name.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '') : '';
  const encoded = encodeURIComponent(name).replace(/['()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`);
  return encoded === '' ? 'attachment' : `attachment; filename*=UTF-8''${encoded}`;
}

async function readBytes(conversation: Conversation, reference: string): Promise<Uint8Array> {
  try {
    const bytes = await bytesOf(conversation, reference);
    if (bytes) return bytes;
  } catch (error) {
    // The message of a store may contain a path of the server.
    if (RunchartError.isRunchartError(error) && error.code === 'unavailable') throw error;
    throw new RunchartError('store', 'the bytes cannot be read: the store has lost them, or failed', { cause: error });
  }
  throw notFound();
}

/** Rejects with RunchartError `not_found` for a hash that no entry of the conversation refers to. */
export async function blobResponse(conversation: Conversation, hash: string, { headers }: Request): Promise<Response> {
  const part = attachmentOf(conversation, hash);
  if (!part) throw notFound();
  const etag = `"${encodeURIComponent(hash)}"`;
  const kept = { etag, 'cache-control': 'private, max-age=31536000, immutable' };
  if (isKnown(headers.get('if-none-match'), etag)) return new Response(null, { status: 304, headers: kept });
  const bytes = await readBytes(conversation, part.data);
  const shownType = part.type === 'image' ? imageType(bytes) : undefined;
  return new Response(bytes as Uint8Array<ArrayBuffer>, {
    headers: {
      ...kept,
      'content-type': shownType ?? 'application/octet-stream',
      'content-length': `${bytes.length}`,
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; sandbox",
      ...(shownType === undefined && { 'content-disposition': disposition(part) }),
    },
  });
}
