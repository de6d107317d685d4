/**
 * What the model has seen of the files of a conversation. Rule: a file that it has not read, or that has changed since, is
 * not changed by it; this is kept in memory alone, so after a restart files are read again first.
 */
import { createHash } from 'node:crypto';
import { type Refusal, refused } from './workspace.ts';

const CONVERSATIONS_MAX = 500;
const FILES_MAX = 5_000;

export const hashOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('base64');

export class KnownFiles {
  /** Hashes by path, by conversation; the ones used last are last. */
  readonly #seen = new Map<string, Map<string, string>>();

  readonly #changes = new Map<string, Promise<unknown>>();

  /** The model has seen the file as it is now. */
  saw(conversationId: string, path: string, hash: string): void {
    const files = this.#seen.get(conversationId) ?? new Map<string, string>();
    this.#seen.delete(conversationId);
    this.#seen.set(conversationId, files);
    files.delete(path);
    files.set(path, hash);
    trim(files, FILES_MAX);
    trim(this.#seen, CONVERSATIONS_MAX);
  }

  /** One change of a file after the other: those of one round may come at once. */
  alone<T>(path: string, change: () => Promise<T>): Promise<T> {
    const turn = (this.#changes.get(path) ?? Promise.resolve()).then(change, change);
    this.#changes.set(path, turn);
    const over = (): void => {
      if (this.#changes.get(path) === turn) this.#changes.delete(path);
    };
    void turn.then(over, over);
    return turn;
  }

  /** Why a file with this content may not be changed; undefined where it may. */
  fault(conversationId: string, path: string, hash: string, name: string): Refusal | undefined {
    const seen = this.#seen.get(conversationId)?.get(path);
    if (seen === undefined) return refused('not_read', `${name} has not been read yet: read it first, then change it`);
    if (seen === hash) return undefined;
    return refused('stale_read', `${name} has changed since it was read: read it again, then change it`);
  }
}

/** Drops what was used longest ago. */
function trim(map: Map<string, unknown>, most: number): void {
  for (const key of map.keys()) {
    if (map.size <= most) return;
    map.delete(key);
  }
}
