/**
 * Signals of work in progress. Invariant: signals are never stored, and nothing stored depends on one. A listener that
 * misses them all still gets the same views. A listener that joins during a reply first receives the text so far.
 */
import type { ConversationStatus, Json } from '../machines/vocabulary.ts';

export type { ConversationStatus };

/**
 * A signal of work in progress, such as a text delta. `path`: the ids of the calls down to the signal's sub-agent.
 * Undefined for the conversation's own signals.
 */
export type Live = { path?: readonly string[] } & (
  | { type: 'text-delta' | 'reasoning-delta'; runId: string; text: string }
  /** `callId`: the id that the provider gives the call. The log has another one if an earlier call has this id. */
  | { type: 'tool-input-delta'; runId: string; index: number; callId?: string; name?: string; text: string }
  | { type: 'reset'; runId: string }
  | { type: 'tool-progress'; runId: string; callId: string; elapsedMs: number; update: Json }
  | { type: 'status'; status: ConversationStatus }
  | { type: 'state'; state: { [key: string]: Json } }
);

/** The complete text that the current attempt of a model call has streamed. */
export interface InFlight {
  /** The run of the reply. */
  readonly runId: string;
  /** The visible text so far. */
  readonly text: string;
  /** The reasoning so far. */
  readonly reasoning: string;
  /** In the order in which they began. */
  readonly toolInputs: readonly {
    readonly index: number;
    readonly callId?: string;
    readonly name?: string;
    readonly text: string;
  }[];
}
