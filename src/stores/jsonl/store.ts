/**
 * The store of one file a conversation: `<directory>/<id>.jsonl`, its lease in `<id>.jsonl.lock/` and its blobs in
 * `<id>.blobs/`. Rule: opening reports the first of not a file, busy, damaged; only an open handle writes; a later
 * delete finishes what an earlier one could not.
 */
import { readdir, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { ConfigurationError } from '../../errors.ts';
import { conversationSummary, newestFirst } from '../conversationSummary.ts';
import { type ConversationInfo, type LogStore, noConversation } from '../store.ts';
import {
  codeOf,
  makeDirectory,
  refuseNames,
  refuseNoFolder,
  refuseOutside,
  resolveRegular,
  statNow,
  storeError,
} from './disk.ts';
import { fileNameOf, idOf } from './fileName.ts';
import { display } from './format.ts';
import { JsonlHandle } from './handle.ts';
import { holderOf, takeLease } from './lease.ts';
import { beginsWithHeader, readableEntries } from './lenient.ts';
import { type Durability, LogFile } from './logFile.ts';

export interface JsonlStoreOptions {
  /** An append is acknowledged after the write (`process`, the default) or after the disk has it (`power`). */
  durability?: Durability;
}

/** Conversations as files of a directory, which is created (0700) when the first one is opened; files get 0600. */
export function jsonlStore(directory: string, options: JsonlStoreOptions = {}): LogStore {
  const durability = durabilityIn(directory, options);
  const root = resolve(directory);
  const durable = durability === 'power';
  return {
    async open(id, { existing } = {}) {
      const name = join(root, fileNameOf(id));
      if (existing && !(await resolveRegular(name)).exists) throw noConversation();
      await makeDirectory(root, durable);
      // The lease belongs to the file itself, so that a link to it is no second way in.
      const { path, exists, names } = await resolveRegular(name);
      if (exists) await refuseOutside(root, path);
      refuseNames(path, names);
      refuseNoFolder(blobFolder(path));
      const lease = await takeLease(leaseFolder(path), `conversation "${id}"`);
      try {
        const file = await LogFile.open(path, id, durability);
        return new JsonlHandle(id, file, lease, { folder: blobFolder(path), durable });
      } catch (error) {
        // What refused the log is told, whatever refuses the lease.
        await lease.release().catch(() => {});
        throw error;
      }
    },
    async list() {
      const found: ConversationInfo[] = [];
      for (const fileName of await namesIn(root)) {
        const id = idOf(fileName);
        const listed = id === null ? null : await listedAs(id, join(root, fileName));
        if (listed) found.push(listed);
      }
      return newestFirst(found);
    },
    async delete(id) {
      const name = join(root, fileNameOf(id));
      const { path, exists } = await resolveRegular(name);
      if (exists) await refuseOutside(root, path);
      const blobs = blobFolder(path);
      refuseNoFolder(blobs);
      if (!exists && ![leaseFolder(path), blobs].some(statNow)) return;
      const lease = await takeLease(leaseFolder(path), `conversation "${id}"`);
      try {
        // The log last: as long as it is there, the conversation is listed and can be deleted again.
        for (const part of [blobs, name, path]) await rm(part, { recursive: true, force: true });
      } catch (cause) {
        await lease.release().catch(() => {});
        throw storeError(`cannot delete conversation "${id}"`, cause);
      }
      await lease.remove();
    },
  };
}

/** Null for what is no conversation of its own. One log that cannot be read at all does not hide the others. */
async function listedAs(id: string, name: string): Promise<ConversationInfo | null> {
  try {
    const { path } = await resolveRegular(name);
    if (!(await beginsWithHeader(path))) return null;
    const summary = conversationSummary(id);
    for await (const entry of readableEntries(path, id)) summary.add(entry);
    // A lease that does not tell is held by somebody, as far as anyone can know.
    return summary.result(await holderOf(leaseFolder(path)).catch(() => 'other' as const));
  } catch {
    return null;
  }
}

async function namesIn(root: string): Promise<string[]> {
  try {
    return await readdir(root);
  } catch (cause) {
    if (codeOf(cause) === 'ENOENT') return [];
    throw storeError(`cannot list ${root}`, cause);
  }
}

function leaseFolder(path: string): string {
  return `${path}.lock`;
}

/** Beside the file itself, by whichever link it is opened. */
function blobFolder(path: string): string {
  return path.endsWith('.jsonl') ? path.replace(/\.jsonl$/, '.blobs') : `${path}.blobs`;
}

function durabilityIn(directory: string, options: JsonlStoreOptions): Durability {
  if (typeof directory !== 'string' || directory === '') {
    throw new ConfigurationError(`jsonlStore expects the path of a directory, got ${display(directory)}`);
  }
  const stray = Object.keys(options).find((key) => key !== 'durability');
  if (stray !== undefined) throw new ConfigurationError(`jsonlStore knows no option "${stray}", only durability`);
  const { durability = 'process' } = options;
  if (durability === 'process' || durability === 'power') return durability;
  throw new ConfigurationError(`durability is 'process' or 'power', got ${display(durability)}`);
}
