/**
 * The messages of every transport: one JSON object in each line or frame. Rule: input is validated before use, and an
 * unknown type is an error, never ignored.
 */
import type { Decision, Json, LogEntry, Settlement } from '../../machines/internal.ts';
import type { Content } from '../content/content.ts';
import type { RunResult } from '../conversation/run.ts';
import type { Live } from '../live.ts';
import { type Fields, fieldsOf, kindOf, malformed, textOf } from './clientActs.ts';

/** The id of a request, which its answer repeats. */
type Request = { requestId?: string };
/** A message from a client to `route`. */
export type Incoming = Request &
  (
    | { type: 'user-message'; conversation?: string; content: Content; kind?: 'steer' | 'followUp' }
    | { type: 'decision'; conversation: string; decision: Decision }
    | { type: 'settlement'; conversation: string; callId: string; how: Settlement }
    | { type: 'cancel' | 'resume' | 'close'; conversation: string }
    | { type: 'list' }
  );

/** A message from `route` to a client. */
export type Outgoing =
  /** Sent before the first entry of a conversation. */
  | {
      type: 'system-init';
      version: 1;
      conversation: string;
      cwd: string;
      model: string;
      tools: readonly string[];
      permissionMode: string;
    }
  | { type: 'entry'; conversation: string; entry: LogEntry }
  | { type: 'live'; conversation: string; signal: Live }
  /** A turn is over, and the transport waits for the next input. */
  | { type: 'turn-result'; conversation: string; result: RunResult }
  /** The last message of a conversation: after the only turn, or at its close. */
  | {
      type: 'result';
      conversation: string;
      subtype: RunResult['subtype'];
      result: string;
      turns: number;
      costUsd: number | null;
      exitReason: string;
    }
  | { type: 'answer'; requestId: string; value: Json }
  | { type: 'error'; code: string; message: string; requestId?: string };

/** A connection to one client that `route` serves. */
export interface Transport {
  /** Yields the messages of the client until it disconnects. */
  read(): AsyncIterable<Incoming>;
  /** Resolves when more may be written. */
  write(message: Outgoing): Promise<void>;
  /** Closes the connection. */
  close(): Promise<void>;
}

const FIELDS: Readonly<Record<string, readonly string[]>> = {
  'user-message': ['conversation', 'content', 'kind'],
  decision: ['conversation', 'decision'],
  settlement: ['conversation', 'callId', 'how'],
  cancel: ['conversation'],
  resume: ['conversation'],
  close: ['conversation'],
  list: [],
};

export interface ReadMessage {
  type: string;
  conversation: string | undefined;
  fields: Fields;
}

/** The conversation validates content, decisions and settlements. Throws RunchartError, code malformed. */
export function readIncoming(incoming: unknown): ReadMessage {
  const type = typeof incoming === 'object' && incoming !== null && 'type' in incoming ? incoming.type : undefined;
  const readFields = typeof type === 'string' && Object.hasOwn(FIELDS, type) ? FIELDS[type] : undefined;
  if (typeof type !== 'string' || !readFields) throw malformed(`type to be one of ${Object.keys(FIELDS).join(', ')}`);
  const fields = fieldsOf(incoming, ['type', 'requestId', ...readFields]);
  const conversation = textOf(fields, 'conversation');
  kindOf(fields);
  // Its sender would wait for an answer that never comes.
  if (fields.requestId !== undefined && requestIdOf(incoming) === undefined)
    throw malformed('requestId to be a text of at most 200 characters');
  if (conversation === undefined && type !== 'user-message' && type !== 'list') throw malformed('conversation, its id');
  return { type, conversation, fields };
}

/** Accepts any value, so that an error can name the request. */
export function requestIdOf(incoming: unknown): string | undefined {
  const id =
    typeof incoming === 'object' && incoming !== null && 'requestId' in incoming ? incoming.requestId : undefined;
  return typeof id === 'string' && id.length <= 200 ? id : undefined;
}
