/**
 * A conversation as it was at any place of its log. Invariant: a pure function of entries. Nothing is opened, started or called, and the
 * result equals that of a process whose log ends there.
 */
import {
  applyEntry,
  emptyLogState,
  type Json,
  type LogEntry,
  type Message,
  modelMessages,
  type PendingCall,
  type QueuedMessage,
} from '../../machines/internal.ts';
import { readable } from '../log/entryShape.ts';
import { type ConversationView, project } from '../projector/index.ts';
import { checkPlace, invalidOption, isList } from '../validation.ts';
import { pendingCalls, unsettledCalls } from './run.ts';

/** A conversation as it was at an earlier entry. */
export interface Past {
  /** Seq of the first entry that is not counted. */
  readonly until: number;
  /** The state of the last cycle: none, running, suspended or stopped. */
  readonly cycle: 'none' | 'running' | 'suspended' | 'stopped';
  /** The view at that entry. */
  readonly view: ConversationView;
  /** The messages that a model call would have contained. */
  readonly messages: readonly Message[];
  /** The calls that waited for a decision. */
  readonly pending: readonly PendingCall[];
  /** The calls whose outcome was unknown. */
  readonly unsettled: readonly PendingCall[];
  /** The messages that were not delivered. */
  readonly queue: readonly QueuedMessage[];
  /** The values that tools and plugins had written. */
  readonly state: { readonly [key: string]: Json };
}

/**
 * The conversation after its first `until` entries: none for 0, all by default. Throws ConfigurationError where `until` is
 * not a whole number or `entries` is not a list, and CorruptLogError for an invalid entry. Takes time in proportion to the
 * length of the log.
 */
export function pastOf(entries: readonly LogEntry[], until?: number): Past {
  if (!isList(entries)) throw invalidOption('a log', { expected: 'a list of entries', secret: true }, entries);
  checkPlace(until, 0);
  const counted = entries.slice(0, until);
  const logState = emptyLogState();
  for (const entry of counted) applyEntry(logState, readable(entry));
  return {
    until: counted.length,
    cycle: logState.cycle,
    view: project(counted),
    messages: modelMessages(counted),
    pending: pendingCalls(logState),
    unsettled: unsettledCalls(logState),
    queue: logState.queue.slice(),
    state: Object.fromEntries(logState.state),
  };
}
