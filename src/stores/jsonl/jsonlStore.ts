/**
 * A store with one file for each conversation: `<directory>/<id>.jsonl`, its lease in `<id>.jsonl.lock/` and its blobs
 * in `<id>.blobs/`. Invariant: opening reports the first of not a file, busy, damaged. Only an open handle writes. A
 * delete can be repeated after a failure.
 */
import { readdir, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { ConfigurationError } from '../../errors.ts';
import { conversationSummary, newestFirst } from '../conversationSummary.ts';
import { type ConversationInfo, type LogStore, noConversation } from '../logStore.ts';
import { fileNameOf, idOf } from './fileName.ts';
import {
  codeOf,
  makeDirectory,
  refuseNames,
  refuseNoFolder,
  refuseOutside,
  resolveRegular,
  statNow,
  storeError,
} from './fileSystem.ts';
import { JsonlHandle } from './jsonlHandle.ts';
import { holderOf, takeLease } from './lease.ts';
import { display } from './lineFormat.ts';
import { type Durability, LogFile } from './logFile.ts';
import { beginsWithHeader, readableEntries } from './readDamagedLog.ts';

export interface JsonlStoreOptions {
  /** An append resolves after the write (`process`, the default) or after the disk has it (`power`). */
  durability?: Durability;
}

/** The directory is created (0700) when the first conversation is opened. Files get mode 0600. */
export function jsonlStore(directory: string, options: JsonlStoreOptions = {}): LogStore {
  const durability = durabilityIn(directory, options);
  const root = resolve(directory);
  const durable = durability === 'power';
  return {
    async open(id, { existing } = {}) {
      const name = join(root, fileNameOf(id));
      if (existing && !(await resolveRegular(name)).exists) throw noConversation();
      await makeDirectory(root, durable);
      // The lease belongs to the target file, so a link to it cannot open it a second time.
      const { path, exists, names } = await resolveRegular(name);
      if (exists) await refuseOutside(root, path);
      refuseNames(path, names);
      refuseNoFolder(blobFolder(path));
      const lease = await takeLease(leaseFolder(path), `conversation "${id}"`);
      try {
        const file = await LogFile.open(path, id, durability);
        return new JsonlHandle(id, file, lease, { folder: blobFolder(path), durable });
      } catch (error) {
        // The error of the log is thrown, even if the release fails too.
        await lease.release().catch(() => {});
        throw error;
      }
    },
    async list() {
      const conversations: ConversationInfo[] = [];
      for (const fileName of await namesIn(root)) {
        const id = idOf(fileName);
        const listed = id === null ? null : await listedAs(id, join(root, fileName));
        if (listed) conversations.push(listed);
      }
      return newestFirst(conversations);
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
        // The log is removed last. While it exists, the conversation is listed and can be deleted again.
        for (const part of [blobs, name, path]) await rm(part, { recursive: true, force: true });
      } catch (cause) {
        await lease.release().catch(() => {});
        throw storeError(`cannot delete conversation "${id}"`, cause);
      }
      await lease.remove();
    },
  };
}

/** Returns null for a sub-agent's log and for other files. An unreadable log does not hide the others. */
async function listedAs(id: string, name: string): Promise<ConversationInfo | null> {
  try {
    const { path } = await resolveRegular(name);
    if (!(await beginsWithHeader(path))) return null;
    const summary = conversationSummary(id);
    for await (const entry of readableEntries(path, id)) summary.add(entry);
    // An unreadable lease counts as held.
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

/** Beside the target file, for every link to it. */
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
