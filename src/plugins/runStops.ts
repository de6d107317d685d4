/**
 * Runs that a hook has stopped: no further model call, and Stopped at their end. Rule: it is in the log from then on, so that a run
 * which ends Suspended instead hands it on to the run that resumes it, in this process or another.
 */
import type { Json, LogEntry } from '../../machines/internal.ts';

const CODE = 'hook_stopped';

export class RunStops {
  readonly #around: { entries: readonly LogEntry[]; diagnose(code: string, detail?: Json): void };
  /** Why, by run. */
  readonly #own = new Map<string, string>();
  /** Why one that it resumes was; undefined for a run that was looked up and goes on. */
  readonly #handed = new Map<string, string | undefined>();

  constructor(around: { entries: readonly LogEntry[]; diagnose(code: string, detail?: Json): void }) {
    this.#around = around;
  }

  /** The first one counts. */
  stop(runId: string, reason: string): void {
    if (this.#own.has(runId)) return;
    this.#own.set(runId, reason);
    this.#around.diagnose(CODE, { runId, reason });
  }

  /** Why this run, or one that it resumes, was stopped. */
  of(runId: string): string | undefined {
    if (!this.#handed.has(runId)) this.#handed.set(runId, handedOn(this.#around.entries, runId));
    return this.#own.get(runId) ?? this.#handed.get(runId);
  }

  /** Why this run itself was. */
  ofItself(runId: string): string | undefined {
    return this.#own.get(runId);
  }

  forget(runId: string): void {
    this.#own.delete(runId);
    this.#handed.delete(runId);
  }
}

/** Looks back over the runs of its cycle. */
function handedOn(entries: readonly LogEntry[], runId: string): string | undefined {
  const runs = new Set([runId]);
  for (let at = entries.length - 1; at >= 0; at -= 1) {
    const entry = entries[at];
    if (entry?.type === 'run-resumed' && entry.runId !== null && runs.has(entry.runId)) runs.add(entry.of);
    if (entry?.type === 'run-started' && entry.runId !== null && runs.has(entry.runId)) break;
  }
  if (runs.size === 1) return undefined;
  for (let at = entries.length - 1; at >= 0; at -= 1) {
    const entry = entries[at];
    if (entry?.type !== 'diagnostic' || entry.code !== CODE) continue;
    const { runId: of, reason } = (entry.detail ?? {}) as { runId?: Json; reason?: Json };
    if (typeof of === 'string' && runs.has(of)) return typeof reason === 'string' ? reason : 'a hook stopped it';
  }
  return undefined;
}
