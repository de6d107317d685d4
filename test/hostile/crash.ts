/**
 * A process that dies. Rule: from the n-th append on nothing is stored and nothing is answered, as when the power went;
 * what was stored before is there for the next opener, without a lease in the way.
 */
import type { LogEntry, LogHandle, LogStore } from '../../src/index.ts';

export interface Disk {
  /** A store on this disk; it dies at its `appends`-th append, or when `dies` says so of the entries. */
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
          // Through text, as from a file.
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
  let left = count;
  return () => {
    left -= 1;
    return left <= 0;
  };
}
