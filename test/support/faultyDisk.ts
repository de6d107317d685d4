/**
 * A disk that outlives processes, and failing stores on it. Invariant: stored entries remain. A killed store stores and
 * answers nothing more. The number of an append alone determines its outcome.
 */
import { type LogEntry, type LogHandle, type LogStore, RunchartError, StoreConflictError } from '../../src/index.ts';
import type { Chance } from './seededChance.ts';
import type { VirtualClock } from './virtualClock.ts';

/** `acked: false`: the entries are stored, and the append rejects. */
type Fate = 'stored' | 'failed' | 'stuck' | 'unacked' | { afterMs: number; fails: boolean };
export type Fates = (number: number) => Fate;

/** Most stores fail seldom, some always, some are slow, and some stop answering after one append. */
export function randomFates(chance: Chance): Fates {
  const at = chance.below(20);
  const slow = (): Fate => ({ afterMs: chance.one([5, 30, 60, 85, 120, 300]), fails: false });
  const kinds: readonly [Fates, ...Fates[]] = [
    () => 'stored',
    (number) => (number === at ? 'failed' : 'stored'),
    (number) => (number === at ? 'unacked' : 'stored'),
    (number) => (number >= at ? 'failed' : 'stored'),
    (number) => (number >= at && number < at + 3 ? 'failed' : 'stored'),
    (number) => (number >= at ? 'stuck' : 'stored'),
    (number) => (number === at ? { afterMs: chance.one([30, 70, 300]), fails: true } : 'stored'),
    slow,
    () => (chance.odds(0.15) ? 'failed' : slow()),
    () => (chance.odds(0.3) ? { afterMs: chance.one([30, 70, 300]), fails: true } : slow()),
    () => (chance.odds(0.2) ? 'failed' : 'stored'),
  ];
  return chance.one(kinds);
}

export interface FaultyStore extends LogStore {
  kill(): void;
  /** True if some append was never answered. */
  readonly stuck: boolean;
}

export function faultyStore(log: LogEntry[], clock: VirtualClock, fates: Fates, synchronous: boolean): FaultyStore {
  let dead = false;
  let stuck = false;
  let number = 0;
  const write = (entries: readonly LogEntry[], expectedSeq: number): void => {
    if (log.length !== expectedSeq) throw new StoreConflictError(`expected ${expectedSeq}, the log has ${log.length}`);
    log.push(...(JSON.parse(JSON.stringify(entries)) as LogEntry[]));
  };
  const failure = (): Error => new RunchartError('store', 'the disk is full');
  const never = (): Promise<never> => new Promise(() => undefined);
  const next = (): Fate => fates(number++);
  const handle: LogHandle = {
    async *read(from = 0) {
      yield* (JSON.parse(JSON.stringify(log)) as LogEntry[]).slice(from);
    },
    async append(entries, expectedSeq) {
      const fate = next();
      if (fate === 'stuck') stuck = true;
      if (dead || fate === 'stuck') return never();
      if (typeof fate === 'object') await new Promise<void>((resolve) => void clock.setTimer(fate.afterMs, resolve));
      if (dead) return never();
      if (fate === 'failed' || (typeof fate === 'object' && fate.fails)) throw failure();
      write(entries, expectedSeq);
      if (fate === 'unacked') throw failure();
    },
    close: async () => undefined,
    ...(synchronous && {
      appendNow(entries: readonly LogEntry[], expectedSeq: number) {
        const fate = next();
        if (dead || fate !== 'stored') throw failure();
        write(entries, expectedSeq);
      },
    }),
  };
  return {
    kill: () => {
      dead = true;
    },
    get stuck() {
      return stuck;
    },
    open: async () => handle,
    list: async () => [],
    delete: async () => undefined,
  };
}
