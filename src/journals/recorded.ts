/**
 * The lines of a recording. Invariant: a recording contains a run's inputs in order, and nothing that follows from
 * them. Deliveries have their times. Each line is JSON. `append` counts the appends from 0.
 */
import type { Completion, Failure } from '../../machines/internal.ts';

/** A line of a recording: a delivery to the charts, or the fate of an append. */
export type RecordedDelivery =
  /** The charts logged entries at their start, before the first delivery. */
  | { kind: 'opened'; at: number }
  | { kind: 'delivery'; at: number; completion: Completion }
  /** An append that was not durable at once. */
  | { kind: 'waiting'; append: number }
  /** The append is durable now. */
  | { kind: 'landed'; append: number }
  | { kind: 'failed'; append: number; error: Failure }
  /** The failure of this append came as a separate delivery, because a cancel did not wait for it. */
  | { kind: 'overtaken'; append: number }
  /** The append failed while another one was queued, and its entries became part of that one. */
  | { kind: 'carried'; append: number };

/** Receives each line of a conversation when it happens. */
export type RecordingSink = (line: RecordedDelivery, conversationId: string) => void;
