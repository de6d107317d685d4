/**
 * Signals of work in progress. Rule: never stored, and nothing that is stored depends on one; a listener that misses
 * them all still gets the same views. A `reset` tells it to drop what the run's current attempt streamed.
 */
import type { Json } from '../machines/vocabulary.ts';

/** `waiting`: the last cycle is suspended and nothing runs. `error` is a kind of idle: it takes the next message. */
export type ConversationStatus = 'idle' | 'active' | 'waiting' | 'cancelling' | 'error';

export type Live =
  | { type: 'text-delta' | 'reasoning-delta'; runId: string; text: string }
  | { type: 'tool-input-delta'; runId: string; index: number; name?: string; text: string }
  | { type: 'reset'; runId: string }
  | { type: 'tool-progress'; runId: string; callId: string; elapsedMs: number; update: Json }
  | { type: 'status'; status: ConversationStatus }
  | { type: 'state'; state: { [key: string]: Json } };
