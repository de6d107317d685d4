/**
 * Copies conversations from one store to another. Invariant: a copy is read again and compared before it counts; one that
 * differs is removed. Sub-agents come first, so a log never names one that does not exist yet. A copy that was interrupted
 * has a mark in the target, and is made again.
 */
import { canonical, type Json, type LogEntry } from '../../../machines/internal.ts';
import { toBase64 } from '../../content/imageFormat.ts';
import { ConfigurationError, RunchartError } from '../../errors.ts';
import { storeValidator } from '../../runtime/hostPorts.ts';
import { isSubAgentOf, type LogHandle, type LogStore, mayExist, subAgentIds } from '../../stores/logStore.ts';
import { pageOf } from '../../stores/rowTable.ts';
import { sha256 } from '../../stores/sha256.ts';
import { callback, checkOptionsOf, invalidOption, object, text } from '../../validation.ts';
import { readLog } from '../open.ts';
import { type CopyBlob, withCopiedBlobs } from './copiedBlobs.ts';

/** The options of `copyConversations`. */
export interface CopyOptions {
  /** Only conversations of this owner. */
  owner?: string | undefined;
  /** Called with the number of conversations that are done, and of all. */
  onProgress?(done: number, of: number): void;
}

/** The result of `copyConversations`. */
export interface CopyResult {
  /** The conversations that were copied; their sub-agents do not count. */
  copied: number;
  /** The ids of those that exist in the target. They are not changed. */
  left: readonly string[];
}

/**
 * Copies every conversation that `from` lists, with its blobs and sub-agents. Rejects with SessionBusyError while one of them
 * is open, and with the errors of both stores. It can be repeated: conversations that were copied are skipped.
 */
export async function copyConversations(from: LogStore, to: LogStore, copying: CopyOptions = {}): Promise<CopyResult> {
  checkOptionsOf('copyConversations', copying, object({ owner: text, onProgress: callback }));
  const { owner, onProgress } = copying;
  for (const [what, store] of [
    ['what is copied', from],
    ['where it is copied to', to],
  ] as const)
    if (!storeValidator.test(store)) throw invalidOption(what, storeValidator, store);
  if (from === to) throw new ConfigurationError('copyConversations needs two stores, got one for both');
  const options = owner === undefined ? {} : { owner };
  const rows = pageOf(await from.list(options), options).reverse();
  const left: string[] = [];
  for (const [done, { id }] of rows.entries()) {
    onProgress?.(done, rows.length);
    if (!(await new Copy(from, to, id).make())) left.push(id);
  }
  onProgress?.(rows.length, rows.length);
  return { copied: rows.length - left.length, left };
}

/** The copy of one conversation. */
class Copy {
  readonly #from: LogStore;
  readonly #to: LogStore;
  readonly #id: string;
  /** The id of a log in the target that exists while the copy is made. No list shows it. */
  readonly #mark: string;

  constructor(from: LogStore, to: LogStore, id: string) {
    this.#from = from;
    this.#to = to;
    this.#id = id;
    this.#mark = `copy-${sha256(new TextEncoder().encode(JSON.stringify(id))).slice(0, 40)}`;
  }

  /** Resolves to false if the target has a conversation of this id. */
  async make(): Promise<boolean> {
    const isInterrupted = (await firstIn(this.#to, this.#mark)) !== undefined;
    const isThere = await this.#isThere();
    if (isThere && !isInterrupted) return false;
    if (!isInterrupted) await this.#setMark();
    if (isThere) await this.#to.delete(this.#id);
    await this.#copy(this.#id, undefined, new Set([this.#id]));
    await this.#to.delete(this.#mark);
    return true;
  }

  /** A conversation that is open in the target exists. */
  async #isThere(): Promise<boolean> {
    try {
      return (await firstIn(this.#to, this.#id)) !== undefined;
    } catch (error) {
      if (RunchartError.isRunchartError(error) && error.code === 'session_busy') return true;
      throw error;
    }
  }

  /** It has the copied conversation as its parent, like the log of a sub-agent. */
  async #setMark(): Promise<void> {
    const parent = { conversationId: this.#id, callId: 'copy' };
    const place = { seq: 0, at: 0, conversationId: this.#mark, runId: null };
    const mark: LogEntry = { ...place, type: 'conversation', schema: 1, cwd: '', createdAt: 0, parent };
    await opened(this.#to, this.#mark, (handle) => handle.append([mark], 0));
  }

  async #copy(id: string, parentId: string | undefined, copying: Set<string>): Promise<void> {
    await opened(this.#from, id, async (source) => {
      const log = await readLog(source, id);
      if (parentId !== undefined && !isSubAgentOf(log[0], parentId)) return;
      // Before its own sub-agents are copied, since those of the old log are deleted with it.
      if (parentId !== undefined) await this.#removeOld(id, parentId);
      for (const child of subAgentIds(log)) {
        if (copying.has(child) || !(await firstIn(this.#from, child))) continue;
        copying.add(child);
        await this.#copy(child, id, copying);
      }
      await this.#write(id, log, source);
    });
  }

  /** A sub-agent without its conversation remains from a copy that was interrupted. */
  async #removeOld(id: string, parentId: string): Promise<void> {
    const first = await firstIn(this.#to, id);
    if (first === undefined) return;
    if (isSubAgentOf(first, parentId)) return this.#to.delete(id);
    throw new ConfigurationError(
      `conversation ${JSON.stringify(this.#id)} has the sub-agent ${JSON.stringify(id)}, and the target has another conversation of that id: rename or delete it there`,
    );
  }

  async #write(id: string, log: readonly LogEntry[], source: LogHandle): Promise<void> {
    const hashes = new Map<string, string>();
    try {
      const wanted = await opened(this.#to, id, async (target) => {
        const copyBlob = copyBlobOf(source, target, hashes);
        const entries: LogEntry[] = [];
        for (const entry of log) entries.push(await withCopiedBlobs(entry, copyBlob));
        await target.append(entries, 0);
        return entries;
      });
      await opened(this.#to, id, (copy) => compare(id, wanted, copy, hashes));
    } catch (error) {
      await this.#to.delete(id).catch(() => undefined);
      throw error;
    }
  }
}

/** A log without blobs has base64 in their place. `hashes` receives the reference of each copy. */
const copyBlobOf =
  (from: LogHandle, to: LogHandle, hashes: Map<string, string>): CopyBlob =>
  async (reference, mediaType) => {
    if (!from.getBlob) return reference;
    const bytes = await from.getBlob(reference);
    if (!to.putBlob) return toBase64(bytes);
    const copied = await to.putBlob(bytes, mediaType);
    hashes.set(copied, sha256(bytes));
    return copied;
  };

async function opened<T>(store: LogStore, id: string, use: (handle: LogHandle) => Promise<T>): Promise<T> {
  const handle = await store.open(id);
  try {
    return await use(handle);
  } finally {
    await handle.close();
  }
}

/** The first entry of a log; undefined if there is none. Creates nothing. */
async function firstIn(store: LogStore, id: string): Promise<LogEntry | undefined> {
  if (!(await mayExist(store, id))) return undefined;
  let handle: LogHandle;
  try {
    handle = await store.open(id, { existing: true });
  } catch (error) {
    if (RunchartError.isRunchartError(error) && error.code === 'not_found') return undefined;
    throw error;
  }
  try {
    for await (const entry of handle.read()) return entry;
    return undefined;
  } finally {
    await handle.close();
  }
}

/** The order of fields is ignored, and so are values that JSON omits. */
const jsonOf = (entry: LogEntry): string => canonical(JSON.parse(JSON.stringify(entry)) as Json);

/** Throws RunchartError `store` if the copy has other entries, or other bytes. */
async function compare(
  id: string,
  wanted: readonly LogEntry[],
  copy: LogHandle,
  hashes: ReadonlyMap<string, string>,
): Promise<void> {
  const refuse = (what: string): never => {
    throw new RunchartError('store', `the copy of conversation ${JSON.stringify(id)} differs and was removed: ${what}`);
  };
  const log = await readLog(copy, id);
  if (log.length !== wanted.length) refuse(`it has ${log.length} entries, expected ${wanted.length}`);
  for (const [seq, entry] of wanted.entries())
    if (jsonOf(entry) !== jsonOf(log[seq] as LogEntry)) refuse(`entry ${seq} (${entry.type}) is another one`);
  for (const [reference, hash] of hashes) {
    const bytes = await copy.getBlob?.(reference);
    if (!bytes || sha256(bytes) !== hash) refuse(`the bytes of ${reference} are other ones`);
  }
}
