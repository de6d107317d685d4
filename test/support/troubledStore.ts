/**
 * A store around another one, whose appends can be slow, failing or unanswered. Invariant: the append's entries or number alone determine
 * its fate. Every attempted append is recorded.
 */
import { type LogEntry, type LogHandle, type LogStore, memoryStore, RunchartError } from '../../src/index.ts';
import type { VirtualClock } from './virtualClock.ts';

/**
 * The outcome of an append: stored at once, a wait (in virtual time, or for a promise), no answer, or a failure that
 * stores nothing.
 */
export type Fate = 'stored' | 'failed' | 'stuck' | { afterMs: number; fails?: true } | { after: Promise<void> };
export type Fates = (entries: readonly LogEntry[], number: number) => Fate;

export interface TroubledStore extends LogStore {
  /** Entries of every attempted append, in order. */
  readonly tried: readonly (readonly LogEntry[])[];
  /** Sets the outcome of later appends; the default is `stored`. */
  trouble(fates: Fates): void;
}

/**
 * `synchronous`: appends answer at once, like the memory store's. Otherwise each takes at least one turn of the event
 * loop.
 */
export function troubledStore(
  options: { clock?: VirtualClock; synchronous?: boolean; inner?: LogStore; fates?: Fates } = {},
): TroubledStore {
  const { clock, synchronous = false, inner = memoryStore() } = options;
  const tried: LogEntry[][] = [];
  let fates: Fates = options.fates ?? (() => 'stored');
  const failure = (): Error => new RunchartError('store', 'the disk is full');

  function troubled(handle: LogHandle): LogHandle {
    const fateOf = (entries: readonly LogEntry[]): Fate => {
      tried.push([...entries]);
      return fates(entries, tried.length - 1);
    };
    const wait = (ms: number): Promise<void> => {
      if (!clock) throw new Error('a wait needs the virtual clock');
      return new Promise((resolve) => void clock.setTimer(ms, resolve));
    };
    return {
      read: (from) => handle.read(from),
      close: () => handle.close(),
      async append(entries, expectedSeq) {
        const fate = fateOf(entries);
        if (fate === 'failed') throw failure();
        if (fate === 'stuck') await new Promise(() => undefined);
        if (typeof fate === 'object' && 'after' in fate) await fate.after;
        else if (typeof fate === 'object') {
          await wait(fate.afterMs);
          if (fate.fails) throw failure();
        }
        await handle.append(entries, expectedSeq);
      },
      ...(synchronous && {
        appendNow(entries: readonly LogEntry[], expectedSeq: number) {
          if (fateOf(entries) !== 'stored') throw failure();
          handle.appendNow?.(entries, expectedSeq);
        },
      }),
    };
  }

  return {
    tried,
    trouble(next) {
      fates = next;
    },
    open: async (id) => troubled(await inner.open(id)),
    list: () => inner.list(),
    delete: (id) => inner.delete(id),
  };
}

/** True for an append that ends in this checkpoint. */
export const commits = (entries: readonly LogEntry[], boundary: string): boolean =>
  entries.some((entry) => entry.type === 'checkpoint' && entry.boundary === boundary);

/** The attempted checkpoints, durable or not. */
export const boundariesOf = (entries: readonly LogEntry[]): string[] =>
  entries.flatMap((entry) => (entry.type === 'checkpoint' ? [entry.boundary] : []));
