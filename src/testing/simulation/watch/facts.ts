/**
 * What really happened outside the library, as far as the log has to agree with it. Rule: whoever did it writes it
 * down here; the invariants compare, and nothing here is decided by what the library says.
 */
import type { Json, LogEntry } from '../../../../machines/internal.ts';

/** A model that was asked, in the process with this number. */
export interface Stream {
  readonly signal: AbortSignal;
  readonly life: number;
  isOver: boolean;
  /** It was asked for a summary. */
  readonly sumsUp: boolean;
}

export class Facts {
  /** Every call of a model. */
  readonly streams: Stream[] = [];
  /** Texts that a model began to say, and those that it said to a proper end. */
  readonly begun = new Set<string>();
  readonly said = new Set<string>();
  /** What stands for earlier messages, as some log says it. */
  readonly summaries = new Set<string>();
  /** Calls that a check forbade when it was last asked, by conversation and call. */
  readonly blocked = new Set<string>();
  /** Arguments that a check put in place of a call's own when it was last asked, by conversation and call. */
  readonly rewritten = new Map<string, Json>();
  /** Forks, and what each was made of. */
  readonly forks = new Map<string, string>();
  /** How often the calls wrote to the state, by conversation and call. */
  readonly writes = new Map<string, number>();
  /** How often the simulated conversation was opened, or was to be. */
  openings = 0;
  /** Whose run it is, by the log in which it began. */
  readonly runs = new Map<string, string>();
  /** Who decided, as some log says it. */
  readonly deciders = new Set<string>();
  /** Deciders that the host's authorizer turned away. */
  readonly turnedAway = new Set<string>();
  /** Conversations with a run under way in the log, and when the next attempt of their model call may begin. */
  readonly running = new Map<string, number>();

  /** What a store refused to take; the library knows of it, and may tell it in other words, later or not at all. */
  #lost: LogEntry[] = [];
  /** The same of the processes before. */
  readonly #lostBefore: LogEntry[] = [];

  lose(entries: readonly LogEntry[]): void {
    this.#lost.push(...entries);
  }

  /** Who comes next was told of no refusal. */
  forgetLost(): void {
    this.#lostBefore.push(...this.#lost);
    this.#lost = [];
  }

  /** Whether some store refused such an entry, in the process that lives or in any. */
  hasLost(matches: (entry: LogEntry) => boolean, since: 'now' | 'ever' = 'now'): boolean {
    return this.#lost.some(matches) || (since === 'ever' && this.#lostBefore.some(matches));
  }

  /** Whether some store refused what was to become of the message. */
  hasLostMessage(messageId: string, since: 'now' | 'ever' = 'now'): boolean {
    return this.hasLost((entry) => 'messageId' in entry && entry.messageId === messageId, since);
  }

  /** A tool wrote to the state. */
  wrote(key: string): void {
    this.writes.set(key, (this.writes.get(key) ?? 0) + 1);
  }
}

/** A call among those of all conversations. */
export const callKey = (conversationId: string, callId: string): string => `${conversationId} ${callId}`;
