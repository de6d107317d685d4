/**
 * Records which file versions the model has read in a conversation. Rule: the model cannot change a file that it has
 * not read, or that changed since. The records are in memory only, so after a restart files must be read again.
 */
import { createHash } from 'node:crypto';
import { type Refusal, refused } from './workspace.ts';

const CONVERSATIONS_MAX = 500;
const FILES_MAX = 5_000;

export const hashOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('base64');

export class KnownFiles {
  /** File hashes by conversation and path; the most recently used are last. */
  readonly #seen = new Map<string, Map<string, string>>();

  readonly #changes = new Map<string, Promise<unknown>>();

  /** Records that the model has seen this version of the file. */
  markSeen(conversationId: string, path: string, hash: string): void {
    const files = this.#seen.get(conversationId) ?? new Map<string, string>();
    this.#seen.delete(conversationId);
    this.#seen.set(conversationId, files);
    files.delete(path);
    files.set(path, hash);
    trim(files, FILES_MAX);
    trim(this.#seen, CONVERSATIONS_MAX);
  }

  /** Runs the changes of one file one after another, because calls of one round may run in parallel. */
  inTurn<T>(path: string, change: () => Promise<T>): Promise<T> {
    const turn = (this.#changes.get(path) ?? Promise.resolve()).then(change, change);
    this.#changes.set(path, turn);
    const removeQueued = (): void => {
      if (this.#changes.get(path) === turn) this.#changes.delete(path);
    };
    void turn.then(removeQueued, removeQueued);
    return turn;
  }

  /** The reason why a file with this content may not be changed; undefined if it may. */
  changeRefusal(conversationId: string, path: string, hash: string, name: string): Refusal | undefined {
    const seenHash = this.#seen.get(conversationId)?.get(path);
    if (seenHash === undefined)
      return refused('not_read', `${name} has not been read yet: read it first, then change it`);
    if (seenHash === hash) return undefined;
    return refused('stale_read', `${name} has changed since it was read: read it again, then change it`);
  }
}

/** Removes the least recently used keys. */
function trim(map: Map<string, unknown>, entriesMax: number): void {
  for (const key of map.keys()) {
    if (map.size <= entriesMax) return;
    map.delete(key);
  }
}
