/**
 * The processes of an agent under test, one after another, with their clock, their ids, and the store that outlives
 * them. Invariant: a timer of a dead process never fires, and its handles of the store are closed.
 */
import type { LogEntry } from '../../../machines/internal.ts';
import type { Ports } from '../../runtime/hostPorts.ts';
import type { LogHandle, LogStore } from '../../stores/logStore.ts';
import { memoryStore } from '../../stores/memory.ts';
import { TestClock } from './testClock.ts';

const BEGINNING = 1_700_000_000_000;

/** A store in memory. */
export class SurvivingStore implements LogStore {
  readonly #inner = memoryStore();
  readonly #torn = new Map<string, LogEntry[]>();
  #handles: LogHandle[] = [];

  async open(id: string): Promise<LogHandle> {
    const handle = await this.#inner.open(id);
    const torn = this.#torn.get(id) ?? [];
    this.#torn.delete(id);
    if (torn[0]) handle.appendNow?.(torn, torn[0].seq);
    this.#handles.push(handle);
    return handle;
  }

  /** Stores the first entries of an append that the crash interrupts. The next process finds them in the log. */
  tear(id: string, entries: readonly LogEntry[]): void {
    this.#torn.set(id, [...(this.#torn.get(id) ?? []), ...entries]);
  }

  list() {
    return this.#inner.list();
  }

  delete(id: string): Promise<void> {
    return this.#inner.delete(id);
  }

  /** The process has died, so the next one may open each log. */
  crashed(): void {
    for (const handle of this.#handles.splice(0)) void handle.close();
  }
}

export class AgentProcesses {
  readonly clock = new TestClock(BEGINNING);
  /** Number of the current process. */
  processId = 0;
  #ids = 0;

  /** Returns a function that returns true while the current process is alive. */
  lifeline(): () => boolean {
    const { processId } = this;
    return () => processId === this.processId;
  }

  /** The clock and the ids of the current process. */
  timePorts(): Pick<Ports, 'now' | 'newId' | 'setTimer'> {
    const isAlive = this.lifeline();
    return {
      now: this.clock.now,
      setTimer: (ms, fire) => (isAlive() ? this.clock.setTimer(ms, fire) : () => undefined),
      newId: () => {
        this.#ids += 1;
        return `id${this.#ids}`;
      },
    };
  }

  /** Ends the process. */
  crash(): void {
    this.clock.forget();
    this.processId += 1;
  }
}
