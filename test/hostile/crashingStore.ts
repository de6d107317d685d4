/**
 * A process that dies. Invariant: from the n-th append on nothing is stored or answered, as after a power failure.
 * Earlier entries are available to the next opener, and no lease blocks it.
 */
import type { LogEntry, LogHandle, LogStore } from '../../src/index.ts';

export interface Disk {
  /** A store on this disk. It dies at its `appends`-th append, or when `dies` returns true for the entries. */
  store(dies?: (entries: readonly LogEntry[]) => boolean): LogStore & { readonly dead: boolean };
  log(id: string): readonly LogEntry[];
}

export function disk(): Disk {
  const logs = new Map<string, LogEntry[]>();
  const stored = (id: string): LogEntry[] => {
    const log = logs.get(id) ?? [];
    logs.set(id, log);
    return log;
  };
  return {
    log: (id) => stored(id).slice(),
    store(dies = () => false) {
      let dead = false;
      const handleOf = (log: LogEntry[]): LogHandle => ({
        async *read(from = 0) {
          // Serialized, as in a file.
          yield* (JSON.parse(JSON.stringify(log)) as LogEntry[]).slice(from);
        },
        append(entries) {
          if (!dead && !dies(entries)) {
            log.push(...entries);
            return Promise.resolve();
          }
          dead = true;
          return new Promise(() => undefined);
        },
        close: async () => undefined,
      });
      return {
        get dead() {
          return dead;
        },
        open: async (id) => handleOf(stored(id)),
        list: async () => [],
        delete: async () => undefined,
      };
    },
  };
}

/** Dies at its `count`-th append, counted from 1. */
export function atAppend(count: number): () => boolean {
  let remaining = count;
  return () => {
    remaining -= 1;
    return remaining <= 0;
  };
}
