/**
 * Signals of work in progress. Rule: never stored, and nothing that is stored depends on one; a listener that misses
 * them all still gets the same views. Who comes in the middle of a reply is first shown what there is of it, whole. A
 * `reset` tells it to drop what the run's current attempt streamed.
 */
import type { ConversationStatus, Json } from '../machines/vocabulary.ts';

export type { ConversationStatus };

/** `path`: ids of the calls down to the sub-agent that it comes from; none where it is the conversation's own. */
export type Live = { path?: readonly string[] } & (
  | { type: 'text-delta' | 'reasoning-delta'; runId: string; text: string }
  | { type: 'tool-input-delta'; runId: string; index: number; name?: string; text: string }
  | { type: 'reset'; runId: string }
  | { type: 'tool-progress'; runId: string; callId: string; elapsedMs: number; update: Json }
  | { type: 'status'; status: ConversationStatus }
  | { type: 'state'; state: { [key: string]: Json } }
);

/** What the current attempt of a model call has streamed, whole. */
export interface InFlight {
  readonly runId: string;
  readonly text: string;
  readonly reasoning: string;
  /** In the order in which they began. */
  readonly toolInputs: readonly { readonly index: number; readonly name?: string; readonly text: string }[];
}
