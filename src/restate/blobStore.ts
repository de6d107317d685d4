/**
 * Where contents are kept that are too large for an engine, and a directory that keeps them. Invariant: a name always has the same
 * bytes, so a repeated attempt stores them again without harm.
 */
import { ConfigurationError, CorruptLogError } from '../errors.ts';
import { blobReference } from '../stores/blobReference.ts';
import { sha256 } from '../stores/sha256.ts';

/** A place for large contents, which workers share. Yours may be a bucket or a table. */
export interface BlobStore {
  /** Stores bytes of a conversation. The name is the SHA-256 of the bytes, in hexadecimal digits. */
  put(conversationId: string, name: string, bytes: Uint8Array): Promise<void>;
  /** Resolves with the bytes of a name. Rejects if there are none. */
  get(conversationId: string, name: string): Promise<Uint8Array>;
  /** Deletes all bytes of a conversation. */
  delete(conversationId: string): Promise<void>;
}

/** The place of a conversation: its id in a form that fits a path and a column. */
export const placeOf = (conversationId: string): string => sha256(new TextEncoder().encode(conversationId));

/** The bytes, if they have this name. Throws CorruptLogError for others. */
export function ofName(name: string, bytes: Uint8Array): Uint8Array {
  if (sha256(bytes) === name) return bytes;
  throw new CorruptLogError('corrupt', `the contents ${name} were changed in the blob store`);
}

export const MEDIA_TYPE = 'application/octet-stream';

/** Keeps contents in a directory that all workers share. Files are synced to the disk. Throws ConfigurationError for no path. */
export function blobDirectory(path: string): BlobStore {
  if (typeof path !== 'string' || path === '')
    throw new ConfigurationError(`blobDirectory() needs the path of a directory, got ${JSON.stringify(path)}`);
  const folderOf = (id: string): string => `${path}/${placeOf(id)}`;
  const files = () => import('../stores/jsonl/blobFiles.ts');
  return {
    async put(id, _, bytes) {
      const { putBlob } = await files();
      await putBlob(folderOf(id), bytes, MEDIA_TYPE, true);
    },
    async get(id, name) {
      const { getBlob } = await files();
      return getBlob(folderOf(id), blobReference(name, MEDIA_TYPE));
    },
    async delete(id) {
      const { deleteBlobs } = await files();
      await deleteBlobs(folderOf(id));
    },
  };
}
