/**
 * What a run shows: its entries, and its signals to whoever follows it. Rule: live signals are taken only while somebody
 * follows a run.
 */
import type { Subscription } from 'rxjs';
import type { LogEntry } from '../machines/index.ts';
import type { Live } from './live.ts';
import type { RunHandle, RunSource } from './run.ts';
import type { Runtime } from './runtime.ts';

type Item = LogEntry | Live;
type Take = (item: Item) => void;

export class RunFeed implements RunSource {
  readonly #runtime: Runtime;
  readonly #followers = new Map<string, Set<Take>>();
  #signals: Subscription | undefined;

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
    this.#signals ??= this.#runtime.live.subscribe((signal) => {
      if ('runId' in signal) this.#tell(signal.runId, signal);
    });
    return () => {
      followers.delete(take);
      if (followers.size === 0) this.#followers.delete(id);
      if (this.#followers.size > 0) return;
      this.#signals?.unsubscribe();
      this.#signals = undefined;
    };
  }

  #tell(runId: string, item: Item): void {
    const followers = this.#followers.get(runId);
    if (followers) for (const take of followers) take(item);
  }
}
