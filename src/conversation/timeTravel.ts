/**
 * A conversation as it was at any place of its log. Rule: a pure function of entries; nothing is opened, started or
 * called, and what it says of a place is what a process that read the log up to there would have known.
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

export interface Past {
  /** Seq of the first entry that is not counted. */
  readonly until: number;
  /** How the last cycle stood: nothing was said, a run was under way, it waited, or it was over. */
  readonly cycle: 'none' | 'running' | 'suspended' | 'stopped';
  readonly view: ConversationView;
  /** What the model would have been sent. */
  readonly messages: readonly Message[];
  readonly pending: readonly PendingCall[];
  readonly unsettled: readonly PendingCall[];
  readonly queue: readonly QueuedMessage[];
  readonly state: { readonly [key: string]: Json };
}

/**
 * The conversation behind its first `until` entries, none of them for 0; all of them where it is not given. Throws
 * ConfigurationError where `until` is no whole number or `entries` no list, and CorruptLogError for what is no entry, or
 * one without the fields of its type. Constant only in the length of the log.
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
