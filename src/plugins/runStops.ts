/**
 * Runs that a hook stopped: they call no model any more and end as Stopped. Rule: the stop is in the log. If the run ends as
 * Suspended first, the stop applies to the run that resumes it, in this process or another.
 */
import type { Json, LogEntry } from '../../machines/internal.ts';

const CODE = 'hook_stopped';

export class RunStops {
  readonly #around: { entries: readonly LogEntry[]; diagnose(code: string, detail?: Json): void };
  /** The reason by run id. */
  readonly #reasons = new Map<string, string>();
  /** The reason of a stopped run that this one resumes; undefined if there was none. */
  readonly #inheritedReasons = new Map<string, string | undefined>();

  constructor(around: { entries: readonly LogEntry[]; diagnose(code: string, detail?: Json): void }) {
    this.#around = around;
  }

  /** The first reason counts. */
  stop(runId: string, reason: string): void {
    if (this.#reasons.has(runId)) return;
    this.#reasons.set(runId, reason);
    this.#around.diagnose(CODE, { runId, reason });
  }

  /** The reason why this run, or a run that it resumes, was stopped. */
  of(runId: string): string | undefined {
    if (!this.#inheritedReasons.has(runId))
      this.#inheritedReasons.set(runId, inheritedReason(this.#around.entries, runId));
    return this.#reasons.get(runId) ?? this.#inheritedReasons.get(runId);
  }

  /** The reason why this run itself was stopped. */
  ofItself(runId: string): string | undefined {
    return this.#reasons.get(runId);
  }

  forget(runId: string): void {
    this.#reasons.delete(runId);
    this.#inheritedReasons.delete(runId);
  }
}

/** Searches the log for the earlier runs of the cycle. */
function inheritedReason(entries: readonly LogEntry[], runId: string): string | undefined {
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
