/**
 * The interface for plugins of the library that follow runs and the work within them: calls of models and executions of tools.
 * Rule: an observer never throws. `around` calls `act` exactly once and returns its promise.
 */
import type { Json, LogEntry, LogState, RunOutput, ToolCall, ToolValue, Usage } from '../../machines/internal.ts';
import type { Attempted } from '../models/attempt.ts';
import type { Model, ModelRequest } from '../models/model.ts';
import type { Plugin } from './plugin.ts';

/** A registered symbol, so that two copies of the library in one program share it. */
export const OBSERVES_WORK: unique symbol = Symbol.for('runchart.observesWork') as never;

/** One attempt of a model call, or one execution of a tool. */
export type Work = {
  runId: string;
  /** The run no longer needs the value. A time-out does not count. */
  isCancelled(): boolean;
} & (
  | { kind: 'model'; model: Pick<Model, 'id' | 'provider'>; request: ModelRequest; costOf(usage: Usage): number | null }
  | { kind: 'tool'; call: ToolCall }
);
export type WorkValue = Attempted | ToolValue;

export type EndedRun = Pick<RunOutput, 'runId' | 'termination' | 'cause' | 'error'> & {
  usage: Usage;
  /** Null where a price is unknown. */
  costUsd: number | null;
};

export interface WorkObserver {
  /** A message or a resumption asks for a run. Called before `send()` or `resume()` returns. */
  requested(runId: string): void;
  /** The run will not begin. */
  withdrawn(runId: string): void;
  /** The entry is durable. The work that it permits has not started. */
  logged(entry: LogEntry): void;
  around<Value extends WorkValue>(work: Work, act: () => Promise<Value>): Promise<Value>;
  ended(run: EndedRun): void;
}

export interface ObservedConversation {
  id: string;
  /** The live log, not a copy. */
  entries: readonly LogEntry[];
  logState: Pick<LogState, 'calls'>;
  redact<T>(value: T): T;
  /** Logs an `extension` entry of the run. */
  note(runId: string, name: string, value: Json): void;
}

export interface ObservesWork {
  [OBSERVES_WORK]?(conversation: ObservedConversation): WorkObserver;
}

/** The observers of a conversation as one. Undefined where no plugin follows work. */
export function workObserverOf(
  plugins: readonly (Plugin & ObservesWork)[],
  conversation: ObservedConversation,
): WorkObserver | undefined {
  const observers = plugins.flatMap((plugin) => plugin[OBSERVES_WORK]?.(conversation) ?? []);
  if (observers.length < 2) return observers[0];
  const all = (act: (observer: WorkObserver) => void): void => observers.forEach(act);
  return {
    requested: (runId) => all((observer) => observer.requested(runId)),
    withdrawn: (runId) => all((observer) => observer.withdrawn(runId)),
    logged: (entry) => all((observer) => observer.logged(entry)),
    around: (work, act) => observers.reduceRight((inner, observer) => () => observer.around(work, inner), act)(),
    ended: (run) => all((observer) => observer.ended(run)),
  };
}
