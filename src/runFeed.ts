/**
 * What a run shows: its entries, and its signals to whoever follows it. Rule: live signals are taken only while somebody
 * follows a run.
 */
import type { LogEntry } from '../machines/internal.ts';
import type { Live } from './live.ts';
import type { RunHandle, RunSource } from './run.ts';
import type { Runtime } from './runtime/runtime.ts';

type Item = LogEntry | Live;
type Take = (item: Item) => void;

export class RunFeed implements RunSource {
  readonly #runtime: Runtime;
  readonly #followers = new Map<string, Set<Take>>();

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
    runtime.log.listen((entry) => {
      if (entry.runId !== null) this.#tell(entry.runId, entry);
    });
  }

  entriesOf({ id, since, until }: RunHandle): readonly LogEntry[] {
    if (since === undefined) return [];
    return this.#runtime.log.entries.slice(since, until).filter((entry) => entry.runId === id);
  }

  follow({ id }: RunHandle, take: Take): () => void {
    const followers = this.#followers.get(id) ?? new Set<Take>();
    this.#followers.set(id, followers);
    followers.add(take);
    const signals = this.#runtime.live.signals$.subscribe((signal) => {
      if (this.#runOf(signal) === id) take(signal);
    });
    return () => {
      signals.unsubscribe();
      followers.delete(take);
      if (followers.size === 0) this.#followers.delete(id);
    };
  }

  /** What a sub-agent does is shown by the run that its call is open in. */
  #runOf(signal: Live): string | undefined {
    const { known, runId } = this.#runtime;
    if (signal.path) return known.open.has(signal.path[0] ?? '') ? runId : undefined;
    return 'runId' in signal ? signal.runId : undefined;
  }

  #tell(runId: string, item: Item): void {
    const followers = this.#followers.get(runId);
    if (followers) for (const take of followers) take(item);
  }
}
