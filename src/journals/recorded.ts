/**
 * The lines of a recording. Rule: they hold what a run took from outside and in which order, and nothing that follows
 * from it: deliveries with their times, and of appends only what a replay cannot know. Each line is JSON; `append`
 * counts the appends of the recording from 0.
 */
import type { Completion, Failure } from '../../machines/internal.ts';

export type RecordedDelivery =
  /** The charts logged something as they started, before anything was delivered. */
  | { kind: 'opened'; at: number }
  | { kind: 'delivery'; at: number; completion: Completion }
  /** An append that was not durable at once. */
  | { kind: 'waiting'; append: number }
  /** It is durable now. */
  | { kind: 'landed'; append: number }
  | { kind: 'failed'; append: number; error: Failure }
  /** The failure of this append came back as a delivery of its own, since a cancel did not wait for it. */
  | { kind: 'overtaken'; append: number }
  /** It failed with another one in line behind it, and its entries are part of that one. */
  | { kind: 'carried'; append: number };

/** Hears each line of one conversation as it happens. */
export type RecordingSink = (line: RecordedDelivery, conversationId: string) => void;
