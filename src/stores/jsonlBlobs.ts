/**
 * Bytes beside a log, one file a content. Rule: a file's name is the SHA-256 of what it holds, it appears whole or not
 * at all, and nothing is handed out that does not have its name's hash.
 */
import { createHash, randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { ConfigurationError, CorruptLogError, RunchartError } from '../errors.ts';
import {
  codeOf,
  makeDirectory,
  openRegular,
  refuseNoFolder,
  storeError,
  syncDirectory,
  writeAll,
} from './jsonlDisk.ts';

const { O_CREAT, O_EXCL, O_RDONLY, O_WRONLY } = constants;
const MEDIA_TYPE = /^[\w.+-]{1,64}\/[\w.+-]{1,64}(; ?[\w.+-]{1,64}=[\w.+-]{1,64}){0,4}$/;

/** `blob:<sha256>:<mediaType>`. Throws ConfigurationError for a media type that is none. */
export async function putBlob(folder: string, bytes: Uint8Array, mediaType: string, durable: boolean): Promise<string> {
  if (!MEDIA_TYPE.test(mediaType)) {
    throw new ConfigurationError(`expected a media type such as image/png, got ${JSON.stringify(mediaType)}`);
  }
  const hash = hashOf(bytes);
  refuseNoFolder(folder);
  await makeDirectory(folder, durable);
  const half = join(folder, `${hash}.${randomUUID()}`);
  try {
    const file = await openRegular(half, O_WRONLY | O_CREAT | O_EXCL);
    try {
      await writeAll(file, bytes);
      if (durable) await file.datasync();
    } finally {
      await file.close();
    }
    await rename(half, join(folder, hash));
    if (durable) await syncDirectory(folder);
  } catch (cause) {
    await rm(half, { force: true }).catch(() => {});
    throw storeError(`cannot store a blob in ${folder}`, cause);
  }
  return `blob:${hash}:${mediaType}`;
}

/**
 * From the first folder that has it. Throws RunchartError `store` for a reference that is none or leads to nothing,
 * CorruptLogError for changed bytes.
 */
export async function getBlob(folders: readonly string[], reference: string): Promise<Uint8Array> {
  const hash = hashIn(reference);
  if (hash === null) {
    const got = JSON.stringify(reference)?.slice(0, 200);
    throw new RunchartError('store', `expected a reference blob:<sha256>:<media type>, got ${got}`);
  }
  folders.forEach(refuseNoFolder);
  let missing: unknown;
  for (const path of folders.map((folder) => join(folder, hash))) {
    try {
      const bytes = await contentOf(path);
      if (hashOf(bytes) === hash) return bytes;
    } catch (cause) {
      if (codeOf(cause instanceof RunchartError ? cause.cause : cause) !== 'ENOENT') throw storeError(path, cause);
      missing = cause;
      continue;
    }
    throw new CorruptLogError('corrupt', `the blob ${path} does not hold what was stored`);
  }
  throw new RunchartError('store', `no blob ${hash} beside this log`, { cause: missing });
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

function hashIn(reference: string): string | null {
  const [, hash, mediaType] = /^blob:([0-9a-f]{64}):(.+)$/.exec(reference) ?? [];
  return hash !== undefined && mediaType !== undefined && MEDIA_TYPE.test(mediaType) ? hash : null;
}

function hashOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
