/**
 * Bounds the files that a store keeps open. Invariant: at most `most` conversations have open files. The files of a
 * conversation stay open between its appends until others need their place; those that were used last stay the longest.
 */
export interface FileOwner {
  readonly hasOpenFiles: boolean;
  /** Closes the files until they are needed again. */
  suspend(): Promise<void>;
}

export class OpenFiles {
  readonly #most: number;
  #inUse = 0;
  /** Conversations with open files that are not in use, the longest unused first. */
  readonly #unused = new Set<FileOwner>();
  readonly #waiting: (() => void)[] = [];

  constructor(most: number) {
    this.#most = most;
  }

  /** Runs work that opens or uses the files of one conversation. It waits while too many others are in use. */
  async use<T>(work: () => Promise<T>, owner?: FileOwner): Promise<T> {
    while (this.#inUse >= this.#most) await new Promise<void>((resolve) => void this.#waiting.push(resolve));
    this.#inUse += 1;
    if (owner) this.#unused.delete(owner);
    try {
      await this.#makeRoom();
      return await work();
    } finally {
      this.#inUse -= 1;
      if (owner) this.keep(owner);
      this.#waiting.shift()?.();
    }
  }

  /** The files of the owner may stay open until others need their place. */
  keep(owner: FileOwner): void {
    if (owner.hasOpenFiles) this.#unused.add(owner);
  }

  async #makeRoom(): Promise<void> {
    for (const owner of this.#unused) {
      if (this.#unused.size + this.#inUse <= this.#most) return;
      this.#unused.delete(owner);
      await owner.suspend();
    }
  }
}
