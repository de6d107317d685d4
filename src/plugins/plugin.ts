/**
 * A plugin is an object of phases (docs/internals/lifecycle.md, Phases). Invariant: each phase may do what its return
 * type allows and no more. A plugin receives frozen values and never the charts.
 */
import type {
  Decision,
  Json,
  LogEntry,
  Message,
  Phase,
  Phases,
  RequestInfo,
  StoredPart,
  Termination,
  ToolCall,
  ToolOutcome,
} from '../../machines/internal.ts';
import type { ContentPart } from '../content/content.ts';
import { ConfigurationError } from '../errors.ts';
import type { ModelRequest } from '../models/model.ts';
import type { Tool } from '../tools/tool.ts';
import { callback, check, flag, isLiteral, nonEmptyText, object } from '../validation.ts';

/** The argument of each phase of a plugin. */
export interface PhaseContext {
  /** The message that the request began with, also of a sub-agent's parent. `context` is as logged, without secrets. */
  origin: RequestInfo;
  /** The id of the conversation. */
  conversationId: string;
  /** The id of the run. */
  runId: string;
  /**
   * The number of the last model call within the request, from 1. The phases before a call have the number of calls so far: it is 0
   * in `runStart`, `stepStart` and `beforeInference` of a new request.
   */
  turn: number;
  /** The directory in which tools start. */
  cwd: string;
  /** Aborted when the phase is over or the run is cancelled. */
  signal: AbortSignal;
  /** Returns the log so far. */
  log(): readonly LogEntry[];
  /** Returns the messages that a model call would contain now. */
  messages(): Message[];
}
/** A value, or a promise of one. */
type Awaitable<T> = T | Promise<T>;
/** Changes of the next request to the model. */
export type RequestPatch = Partial<Pick<ModelRequest, 'system' | 'tools' | 'maxOutputTokens' | 'temperature'>>;

/** The next request, with the parts that phases may read and change. */
export interface RequestDraft {
  /** The instructions of the agent. */
  readonly instructions: string;
  /** The first model, before any fallback. */
  readonly model: { readonly id: string };
  /** The request as it would be sent now. */
  preview(): ModelRequest;
  /** Starts a new request and discards the patches of a request that was never sent. */
  begin(): void;
  addContext(text: string | undefined): void;
  patch(patch: RequestPatch): void;
}

/** Phases run in plugin order, each with a limit (30 s, 5 s for runEnd, then a diagnostic; a gate that times out blocks). */
export interface Plugin {
  /** The name of the plugin in the log, in causes and in diagnostics. */
  name: string;
  /**
   * A phase that throws: beforeToolExecute blocks the call; any other is a diagnostic, or ends the run where `required`. An
   * error in runEnd is always a diagnostic, since the run has ended.
   */
  required?: boolean;
  /** Runs once at the start of a run. `context` becomes a text for the model, and `state` is written. */
  runStart?(c: PhaseContext): Awaitable<void | { context?: string; state?: { [key: string]: Json } }>;
  /**
   * `compact`: earlier messages become a summary before this call, however full the window is. A text is an instruction for the summary.
   */
  stepStart?(c: PhaseContext): Awaitable<void | { context?: string; compact?: true | string }>;
  /** Runs before each model call. It can change the request, add a text for the model, or end the run. */
  beforeInference?(
    c: PhaseContext & { request: ModelRequest },
  ): Awaitable<void | { terminate: string } | { request?: RequestPatch; context?: string; compact?: true | string }>;
  /** Runs after each model call, failed ones included. It can end the run. */
  afterInference?(
    c: PhaseContext & { reply?: { text: string; calls: ToolCall[] }; error?: { code: string; message: string } },
  ): Awaitable<void | { terminate: string }>;
  /** Runs again when a suspended call is replayed, then with `decision` set. */
  beforeToolExecute?(
    c: PhaseContext & { call: ToolCall; tool: Tool; decision?: Decision },
  ): Awaitable<void | { block: string } | { suspend: { reason: string; payload?: Json } } | { args: Json }>;
  /** Runs after each call. It can replace the result or add a text for the model. */
  afterToolExecute?(
    c: PhaseContext & { call: ToolCall; outcome: ToolOutcome | 'suspended'; result: StoredPart[] },
  ): Awaitable<void | { result?: string | ContentPart[]; context?: string }>;
  /** Runs after the calls of a reply. */
  stepEnd?(c: PhaseContext): Awaitable<void>;
  /** A reply is about to end the run. `continue` calls the model again with this text (policy `maxStopContinues`). */
  naturalEnd?(c: PhaseContext): Awaitable<void | { continue: string }>;
  /**
   * Earlier messages are about to become a summary. The answer adds an instruction for the summary, or blocks it. `source`: a plugin or a
   * person requested it (`manual`), or the window is full (`auto`).
   */
  preCompact?(
    c: PhaseContext & { source: 'auto' | 'manual' },
  ): Awaitable<void | { instructions: string } | { block: string }>;
  /** Runs once at the end of a run, after everything else. */
  runEnd?(c: PhaseContext & { termination: Termination }): Awaitable<void>;
}

export const PHASES: readonly Phase[] = [
  'runStart',
  'stepStart',
  'beforeInference',
  'afterInference',
  'beforeToolExecute',
  'afterToolExecute',
  'stepEnd',
  'naturalEnd',
  'preCompact',
  'runEnd',
];

/** The phases that at least one plugin implements. */
export const phasesOf = (plugins: readonly Plugin[]): Phases =>
  Object.fromEntries(PHASES.map((phase) => [phase, plugins.some((plugin) => callback.test(plugin[phase]))])) as Record<
    Phase,
    boolean
  >;

export const PHASE_MS = 30_000;

/**
 * Refuses misspelt phases, because a check that is never called protects nothing. Other fields of an object or an instance of a
 * class are ignored.
 */
export const pluginValidator = object(
  { ...Object.fromEntries(PHASES.map((phase) => [phase, callback])), required: flag },
  { refuses: (value, plugin) => isLiteral(plugin) && callback.test(value) },
);

/** Throws ConfigurationError for missing, unknown or unusable fields. */
export function checkPlugin(plugin: Plugin): void {
  if (!nonEmptyText.test(plugin?.name)) throw new ConfigurationError('a plugin needs a name');
  const name = `plugin "${plugin.name}": `;
  check(name, plugin, pluginValidator, name, `${name}the phase `);
}
