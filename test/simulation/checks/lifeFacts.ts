/**
 * The facts from outside the library that must agree with the log. Invariant: simulated models, tools, plugins and
 * stores record them. No fact is read from the library, unless its comment allows it.
 */
import type { Json, LogEntry } from '../../../machines/internal.ts';

/** One execution of a tool, in the process with this number. */
export interface Execution {
  readonly callId: string;
  readonly processId: number;
  readonly signal: AbortSignal;
  /** Its start in simulated milliseconds. */
  readonly since: number;
  isOver: boolean;
}

export class LifeFacts {
  /** The tool executions that had neither ended nor been aborted at the last check. */
  readonly executions = new Set<Execution>();
  /** The texts that a model began to stream, and those of complete replies. */
  readonly begun = new Set<string>();
  readonly completeTexts = new Set<string>();
  /** The texts of the summaries in all logs, each with the id of its log. */
  readonly summaries = new Map<string, string>();
  /** The calls that a plugin blocked at its last answer, by conversation and call. */
  readonly blocked = new Set<string>();
  /** A plugin's latest arguments in place of a call's own, by conversation and call. */
  readonly rewritten = new Map<string, Json>();
  /** The same for hooks, before the call was suspended. */
  readonly hooked = new Map<string, Json>();
  /** The id of each fork, and of its original. */
  readonly forks = new Map<string, string>();
  /** The number of writes to the state, by conversation and call. */
  readonly writes = new Map<string, number>();
  /** Some log belongs to a sub-agent. */
  hasSubAgents = false;
  /** Until this time a hook may receive the close of a conversation, such as that of an ended sub-agent. */
  closesUntilMs = 0;
  /** The number of openings of the simulated conversation, with the attempted ones. */
  openings = 0;
  /**
   * The newest message with a schema of its own, in the active cycle of each conversation: the opening in which it was sent, and the
   * process in which it counts.
   */
  readonly ownSchemas = new Map<string, { opening: number; processId: number }>();
  /** The conversation in whose log each run began. */
  readonly runs = new Map<string, string>();
  /** The `by` of all decisions in all logs. */
  readonly deciders = new Set<string>();
  /** The deciders that the host's authorizer rejected. */
  readonly turnedAway = new Set<string>();
  /** The conversations with an active run in the log, and the earliest time of the next attempt of their model call. */
  readonly running = new Map<string, number>();

  /** The entries that the store refused in this process. The library may write other ones in their place. */
  #lost: LogEntry[] = [];
  /** The same for earlier processes. */
  readonly #lostBefore: LogEntry[] = [];

  lose(entries: readonly LogEntry[]): void {
    this.#lost.push(...entries);
  }

  /** Called when a new process begins, which has no refusals yet. */
  forgetLost(): void {
    this.#lostBefore.push(...this.#lost);
    this.#lost = [];
  }

  /** Returns true if the store refused such an entry, in the current process or in any. */
  hasLost(matches: (entry: LogEntry) => boolean, since: 'now' | 'ever' = 'now'): boolean {
    return this.#lost.some(matches) || (since === 'ever' && this.#lostBefore.some(matches));
  }

  /** Returns true if the store refused an entry about the message. */
  hasLostMessage(messageId: string, since: 'now' | 'ever' = 'now'): boolean {
    return this.hasLost((entry) => 'messageId' in entry && entry.messageId === messageId, since);
  }

  /** Returns the arguments of a plugin, a hook or an edit in place of a call's own, by precedence. */
  argsInPlace(key: string, edited: Json | undefined): Json | undefined {
    return this.rewritten.get(key) ?? this.hooked.get(key) ?? edited;
  }

  /** Counts a tool's write to the state. */
  wrote(key: string): void {
    this.writes.set(key, (this.writes.get(key) ?? 0) + 1);
  }
}

/** Returns a key that is unique among the calls of all conversations. */
export const callKey = (conversationId: string, callId: string): string => `${conversationId} ${callId}`;
