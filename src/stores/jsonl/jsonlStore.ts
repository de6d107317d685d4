/**
 * A store with one file for each conversation: `<directory>/<id>.jsonl`, its lease in `<id>.jsonl.lock/` and its blobs
 * in `<id>.blobs/`. Invariant: opening reports the first of not a file, busy, damaged. Only an open handle writes. A
 * delete can be repeated after a failure.
 */
import { rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { LogEntry } from '../../../machines/vocabulary.ts';
import { ConfigurationError } from '../../errors.ts';
import { display } from '../entryJson.ts';
import {
  type Durability,
  isSubAgentOf,
  type LogStore,
  noConversation,
  refuseOtherOwner,
  type StoreOpening,
  subAgentIds,
  withLookup,
} from '../logStore.ts';
import { fileNameOf, hasFileName } from './fileName.ts';
import {
  makeDirectory,
  refuseNames,
  refuseNoFolder,
  refuseOutside,
  resolveRegular,
  statNow,
  storeError,
} from './fileSystem.ts';
import { JsonlHandle } from './jsonlHandle.ts';
import { type Lease, takeLease } from './lease.ts';
import { LogFile } from './logFile.ts';
import { OpenFiles } from './openFiles.ts';
import { readableEntries } from './readDamagedLog.ts';
import { FileRows } from './rows/fileRows.ts';

/** The options of `jsonlStore`. */
export interface JsonlStoreOptions {
  /** An append resolves after the write (`process`, the default) or after the disk has it (`power`). */
  durability?: Durability;
}

/** Conversations whose files stay open between appends. Each has two: its log and its lease. */
const MAX_OPEN = 200;

/** The directory is created (0700) when the first conversation is opened. Files get mode 0600. */
export function jsonlStore(directory: string, options: JsonlStoreOptions = {}): LogStore {
  const durability = durabilityIn(directory, options);
  const root = resolve(directory);
  const durable = durability === 'power';
  const files = new OpenFiles(MAX_OPEN);
  const rows = new FileRows(root);

  async function openFiles(name: string, path: string, { id, existing, owner }: StoreOpening & { id: string }) {
    const lease = await takeLease(leaseFolder(path), `conversation "${id}"`);
    let file: LogFile | undefined;
    try {
      if (owner !== undefined) refuseOtherOwner(await firstEntry(name, id), owner);
      file = await LogFile.open(path, id, durability);
      // An opening without an append leaves a file without entries.
      if (existing && file.next === 0) throw noConversation();
      const row = await rows.opened(id, path, { next: file.next, stamp: file.openedAs });
      return new JsonlHandle(id, file, lease, {
        files,
        blobs: { folder: blobFolder(path), durable },
        row: {
          appended: (entries) => rows.appended(id, row, entries),
          closing: (stamp) => rows.closing(id, row, stamp),
        },
      });
    } catch (error) {
      // The error of the log is thrown, even if the release fails too.
      await file?.close().catch(() => {});
      await lease.release().catch(() => {});
      throw error;
    }
  }

  const store: LogStore = {
    async open(id, { existing, owner } = {}) {
      if (existing && typeof id === 'string' && !hasFileName(id)) throw noConversation();
      const name = join(root, fileNameOf(id));
      if (existing && !(await resolveRegular(name)).exists) throw noConversation();
      // This precedes the lease, because another owner must not learn that the conversation is open.
      if (owner !== undefined) refuseOtherOwner(await firstEntry(name, id), owner);
      await makeDirectory(root, durable);
      // The lease belongs to the target file, so a link to it cannot open it a second time.
      const { path, exists, names } = await resolveRegular(name);
      if (exists) await refuseOutside(root, path);
      refuseNames(path, names);
      refuseNoFolder(blobFolder(path));
      const handle = await files.use(() => openFiles(name, path, { id, existing, owner }));
      files.keep(handle);
      return handle;
    },
    list: (listing = {}) => rows.list(listing),
    async delete(id) {
      const ids = await deleteFamily(root, id);
      await rows.deleted(ids);
    },
  };
  return withLookup(store, async (id, owner) => {
    if (!hasFileName(id)) return false;
    const name = join(root, fileNameOf(id));
    const first = (await resolveRegular(name)).exists ? await firstEntry(name, id) : undefined;
    if (first === undefined) return false;
    return owner === undefined || (first.type === 'conversation' && first.owner === owner);
  });
}

/** The first readable entry of a log; undefined for an empty one and for another file. */
async function firstEntry(name: string, id: string): Promise<LogEntry | undefined> {
  const { path, exists } = await resolveRegular(name);
  if (!exists) return undefined;
  for await (const entry of readableEntries(path, id)) return entry;
  return undefined;
}

/** The same by id. A log may name anything as its sub-agent. */
async function firstEntryIn(root: string, id: string): Promise<LogEntry | undefined> {
  try {
    return await firstEntry(join(root, fileNameOf(id)), id);
  } catch {
    return undefined;
  }
}

/** A log that is to be deleted, under its lease. */
interface Doomed {
  id: string;
  name: string;
  path: string;
  lease: Lease;
}

/** Deletes a conversation and its sub-agents, or nothing while one of them is open. Returns their ids. */
async function deleteFamily(root: string, id: string): Promise<string[]> {
  const family: Doomed[] = [];
  try {
    const seen = new Set([id]);
    for (const each of seen) {
      const doomed = await leased(root, each);
      if (!doomed) continue;
      family.push(doomed);
      for (const child of await childrenOf(root, doomed)) seen.add(child);
    }
  } catch (error) {
    for (const { lease } of family) await lease.release().catch(() => {});
    throw error;
  }
  // The conversation is deleted last. While it exists, it is listed and can be deleted again.
  for (const [left, doomed] of [...family.entries()].reverse()) {
    try {
      // Likewise its log.
      for (const part of [blobFolder(doomed.path), doomed.name, doomed.path])
        await rm(part, { recursive: true, force: true });
    } catch (cause) {
      for (const { lease } of family.slice(0, left + 1)) await lease.release().catch(() => {});
      throw storeError(`cannot delete conversation "${doomed.id}"`, cause);
    }
    await doomed.lease.remove();
  }
  return family.map((doomed) => doomed.id);
}

/** Takes the lease of a log; undefined if nothing is left of it. */
async function leased(root: string, id: string): Promise<Doomed | undefined> {
  const name = join(root, fileNameOf(id));
  const { path, exists } = await resolveRegular(name);
  if (exists) await refuseOutside(root, path);
  refuseNoFolder(blobFolder(path));
  if (!exists && ![leaseFolder(path), blobFolder(path)].some(statNow)) return undefined;
  return { id, name, path, lease: await takeLease(leaseFolder(path), `conversation "${id}"`) };
}

/** The sub-agents that the log names, if their logs name it as their parent. A log that cannot be read names none. */
async function childrenOf(root: string, { id, path }: Doomed): Promise<string[]> {
  const entries: LogEntry[] = [];
  try {
    for await (const entry of readableEntries(path, id)) if (entry.type === 'sub-agent') entries.push(entry);
  } catch {
    return [];
  }
  const children: string[] = [];
  for (const child of subAgentIds(entries)) {
    if (isSubAgentOf(await firstEntryIn(root, child), id)) children.push(child);
  }
  return children;
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
