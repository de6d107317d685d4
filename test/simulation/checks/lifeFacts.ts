/**
 * What happened outside the library and has to agree with the log. Rule: simulated models, tools, plugins and stores write
 * it down here as they do it; nothing here is read from the library, but where it says so.
 */
import type { Json, LogEntry } from '../../../machines/internal.ts';

/** One execution of a tool, in the process with this number. */
export interface Execution {
  readonly callId: string;
  readonly processId: number;
  readonly signal: AbortSignal;
  /** When it began, in simulated milliseconds. */
  readonly since: number;
  isOver: boolean;
}

export class LifeFacts {
  /** Executions of tools that are not over, nor aborted when somebody last looked. */
  readonly executions = new Set<Execution>();
  /** Texts that a model began to stream, and those of complete replies. */
  readonly begun = new Set<string>();
  readonly said = new Set<string>();
  /** Texts of the summaries in all logs, and whose log each is in. */
  readonly summaries = new Map<string, string>();
  /** Calls that a plugin blocked when it was last asked, by conversation and call. */
  readonly blocked = new Set<string>();
  /** Arguments that a plugin put in place of a call's own when it was last asked, by conversation and call. */
  readonly rewritten = new Map<string, Json>();
  /** The same that hooks put in their place before the call was suspended. */
  readonly hooked = new Map<string, Json>();
  /** The id of each fork, and of the conversation that it copies. */
  readonly forks = new Map<string, string>();
  /** How often the calls wrote to the state, by conversation and call. */
  readonly writes = new Map<string, number>();
  /** Some log is that of a sub-agent. */
  hasSubAgents = false;
  /** Until then a hook may be told that a conversation is closed, such as that of a sub-agent that has ended. */
  closesUntilMs = 0;
  /** How often the simulated conversation was opened, or was to be. */
  openings = 0;
  /** The conversation in whose log each run began. */
  readonly runs = new Map<string, string>();
  /** `by` of all decisions in all logs. */
  readonly deciders = new Set<string>();
  /** Deciders that the host's authorizer turned away. */
  readonly turnedAway = new Set<string>();
  /** Conversations with a run under way in the log, and when the next attempt of their model call may begin. */
  readonly running = new Map<string, number>();

  /** Entries that the store refused in this process: the library may write something else in their place. */
  #lost: LogEntry[] = [];
  /** The same of the processes before. */
  readonly #lostBefore: LogEntry[] = [];

  lose(entries: readonly LogEntry[]): void {
    this.#lost.push(...entries);
  }

  /** A new process begins, which knows of no refusal. */
  forgetLost(): void {
    this.#lostBefore.push(...this.#lost);
    this.#lost = [];
  }

  /** Whether the store refused such an entry, in the current process or in any. */
  hasLost(matches: (entry: LogEntry) => boolean, since: 'now' | 'ever' = 'now'): boolean {
    return this.#lost.some(matches) || (since === 'ever' && this.#lostBefore.some(matches));
  }

  /** Whether the store refused an entry about the message. */
  hasLostMessage(messageId: string, since: 'now' | 'ever' = 'now'): boolean {
    return this.hasLost((entry) => 'messageId' in entry && entry.messageId === messageId, since);
  }

  /** The arguments that a plugin, a hook or an edit put in place of a call's own, in the order in which they count. */
  argsInPlace(key: string, edited: Json | undefined): Json | undefined {
    return this.rewritten.get(key) ?? this.hooked.get(key) ?? edited;
  }

  /** A tool wrote to the state. */
  wrote(key: string): void {
    this.writes.set(key, (this.writes.get(key) ?? 0) + 1);
  }
}

/** Identifies a call among all conversations. */
export const callKey = (conversationId: string, callId: string): string => `${conversationId} ${callId}`;
