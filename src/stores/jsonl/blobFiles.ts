/**
 * The blobs of a conversation: files that are named by the SHA-256 of their bytes. Invariant: a file appears complete
 * or not at all, and its bytes are checked when they are read. `write-file-atomic` is not used: it follows links,
 * reuses an existing temporary file and does not sync the directory.
 */
import { createHash, randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { CorruptLogError, RunchartError } from '../../errors.ts';
import { blobReference, checkMediaType, hashIn } from '../blobReference.ts';
import {
  codeOf,
  makeDirectory,
  openRegular,
  refuseNoFolder,
  storeError,
  syncDirectory,
  writeAll,
} from './fileSystem.ts';

const { O_CREAT, O_EXCL, O_RDONLY, O_WRONLY } = constants;

/** Resolves to `blob:<sha256>:<mediaType>`. Throws ConfigurationError for an invalid media type. */
export async function putBlob(folder: string, bytes: Uint8Array, mediaType: string, durable: boolean): Promise<string> {
  checkMediaType(mediaType);
  const hash = hashOf(bytes);
  refuseNoFolder(folder);
  await makeDirectory(folder, durable);
  const draft = join(folder, `${hash}.${randomUUID()}`);
  try {
    const file = await openRegular(draft, O_WRONLY | O_CREAT | O_EXCL);
    try {
      await writeAll(file, bytes);
      if (durable) await file.datasync();
    } finally {
      await file.close();
    }
    await rename(draft, join(folder, hash));
    if (durable) await syncDirectory(folder);
  } catch (cause) {
    await rm(draft, { force: true }).catch(() => {});
    throw storeError(`cannot store a blob in ${folder}`, cause);
  }
  return blobReference(hash, mediaType);
}

/** Throws RunchartError `store` for an invalid or unknown reference, CorruptLogError for changed bytes. */
export async function getBlob(folder: string, reference: string): Promise<Uint8Array> {
  const hash = hashIn(reference);
  refuseNoFolder(folder);
  const path = join(folder, hash);
  let bytes: Uint8Array;
  try {
    bytes = await contentOf(path);
  } catch (cause) {
    if (codeOf(cause instanceof RunchartError ? cause.cause : cause) !== 'ENOENT') throw storeError(path, cause);
    throw new RunchartError('store', `no blob ${hash} beside this log`, { cause });
  }
  if (hashOf(bytes) === hash) return bytes;
  throw new CorruptLogError('corrupt', `the blob ${path} does not hold what was stored`);
}

/** Throws RunchartError `store` where the system refuses. */
export async function deleteBlobs(folder: string): Promise<void> {
  refuseNoFolder(folder);
  await rm(folder, { recursive: true, force: true }).catch((cause) => {
    throw storeError(`cannot delete ${folder}`, cause);
  });
}

async function contentOf(path: string): Promise<Uint8Array> {
  const file = await openRegular(path, O_RDONLY);
  try {
    const bytes = await file.readFile();
    return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length);
  } finally {
    await file.close();
  }
}

function hashOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
