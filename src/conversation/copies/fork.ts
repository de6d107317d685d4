/**
 * A new conversation with the beginning of another one. Invariant: entries are copied and nothing is executed. The source is
 * read and stays unchanged. Interrupted calls are closed when the new conversation is opened, as after a crash. Its
 * sub-agents are copied too, with new ids.
 */
import type { LogEntry } from '../../../machines/internal.ts';
import { ConfigurationError } from '../../errors.ts';
import { checkId } from '../../options.ts';
import { storeValidator } from '../../runtime/hostPorts.ts';
import type { LogHandle, LogStore } from '../../stores/logStore.ts';
import { type ForkedSubAgents, forkedSubAgents, withForkedIds } from '../../subAgents/forkIds.ts';
import { checkPlace, invalidOption } from '../../validation.ts';
import { readLog } from '../open.ts';
import { type CopyBlob, withCopiedBlobs } from './copiedBlobs.ts';

type Parent = NonNullable<Extract<LogEntry, { type: 'conversation' }>['parent']>;

/** One log to copy. */
interface Copy {
  from: string;
  to: string;
  /** The parent of the new conversation. */
  parent?: Parent;
  /** The number of entries to copy. */
  placeIn(log: readonly LogEntry[]): number;
}

/** Without blobs in one of the stores, references are copied as they are. */
const copyBlobOf =
  (from: LogHandle, to: LogHandle): CopyBlob =>
  async (reference, mediaType) =>
    from.getBlob && to.putBlob ? to.putBlob(await from.getBlob(reference), mediaType) : reference;

const ownerOf = ([first]: readonly LogEntry[]): string | undefined =>
  first?.type === 'conversation' ? first.parent?.conversationId : undefined;

class Fork {
  readonly #store: LogStore;
  /** Empty logs, and logs that this fork wrote. */
  readonly #empty = new Set<string>();
  readonly #written = new Set<string>();

  constructor(store: LogStore) {
    this.#store = store;
  }

  /** Resolves with the number of copied entries. Sub-agents come first, so a log never names one that does not exist yet. */
  async copy({ from, to, parent, placeIn }: Copy): Promise<number> {
    const source = await this.#store.open(from);
    try {
      const log = await readLog(source, from);
      if (log.length === 0) this.#empty.add(from);
      const place = placeIn(log);
      const target = await this.#openEmpty(to, parent);
      try {
        if (place === 0) return 0;
        const { family, placeOf } = forkedSubAgents(log, place, from, to);
        for (const subAgent of family.values()) {
          const { callId } = subAgent;
          const own = { conversationId: to, callId };
          await this.copy({
            from: subAgent.from,
            to: subAgent.to,
            parent: own,
            placeIn: (entries) => placeOf(subAgent, entries),
          });
        }
        const entries: LogEntry[] = [];
        for (const entry of log.slice(0, place)) {
          entries.push(await this.#entry(entry, { to, parent, family, source, target }));
        }
        await target.append(entries, 0);
        this.#empty.delete(to);
        this.#written.add(to);
        return entries.length;
      } finally {
        await target.close();
      }
    } finally {
      await source.close();
    }
  }

  /** Deletes logs that were only read, and those of a fork that failed. */
  async clear(failed: boolean): Promise<void> {
    const left = failed ? [...this.#written, ...this.#empty] : this.#empty;
    for (const id of left) await this.#store.delete(id).catch(() => undefined);
  }

  async #openEmpty(id: string, parent: Parent | undefined): Promise<LogHandle> {
    const handle = await this.#store.open(id);
    try {
      const written = await readLog(handle, id);
      if (written.length === 0) {
        this.#empty.add(id);
        return handle;
      }
      // The conversation is about to be made. Existing entries remain from a deleted one or from an interrupted fork.
      const isLeft = parent !== undefined && ownerOf(written) === parent.conversationId;
      if (!isLeft)
        throw new ConfigurationError(`the conversation ${JSON.stringify(id)} exists already; fork into a new id`);
    } catch (error) {
      await handle.close();
      throw error;
    }
    await handle.close();
    await this.#store.delete(id);
    return this.#openEmpty(id, parent);
  }

  async #entry(
    entry: LogEntry,
    to: { to: string; parent: Parent | undefined; family: ForkedSubAgents; source: LogHandle; target: LogHandle },
  ): Promise<LogEntry> {
    const { family, parent, source, target } = to;
    const forked = { ...withForkedIds({ ...entry, conversationId: to.to }, family) };
    if (forked.type === 'conversation') {
      // The copy of a sub-agent has a parent only if that is copied too.
      delete forked.parent;
      if (parent) forked.parent = parent;
    }
    return withCopiedBlobs(forked, copyBlobOf(source, target));
  }
}

/**
 * Copies the first `until` entries (default: all) of a conversation into the new conversation `to`, and the logs of the
 * sub-agents that they name. Rejects with ConfigurationError for an invalid `store`, id or `until`, where there is nothing to
 * copy, or where `to` exists. Rejects with SessionBusyError while one of the logs is open elsewhere.
 */
export async function forkConversation(store: LogStore, from: string, to: string, until?: number): Promise<void> {
  if (!storeValidator.test(store)) throw invalidOption('what a fork is kept in', storeValidator, store);
  checkId(from);
  checkId(to);
  if (from === to) throw new ConfigurationError(`a fork needs an id of its own, got ${JSON.stringify(to)} for both`);
  checkPlace(until, 1);
  const fork = new Fork(store);
  let count = 0;
  try {
    count = await fork.copy({ from, to, placeIn: (log) => Math.min(until ?? log.length, log.length) });
    if (count === 0) throw new ConfigurationError(`${JSON.stringify(from)} has no entries to fork`);
  } finally {
    await fork.clear(count === 0);
  }
}
