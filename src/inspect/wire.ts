/**
 * The protocol between the inspector's server and its page: JSON messages, several in a frame. Invariant: records are
 * numbered in order, so a page that reconnects requests the records after its last number. Messages of a page are
 * validated, and all but reads need control.
 */
import type { Decision, Json, LogEntry, Settlement } from '../../machines/vocabulary.ts';
import type { Live } from '../live.ts';
import type { Chart } from './chart.ts';

export const WIRE = 1;

/** A transition of a chart. These three fields identify it there, see `chart.ts`. */
export type TakenTransition = {
  /** The id of the state that has the transition. */
  source: string;
  /** The event descriptor; empty for an eventless transition. */
  event: string;
  /** Its index in the list of transitions with that descriptor. */
  index: number;
  /** The ids of the target states; empty if the transition stays in its state. */
  targets: readonly string[];
  guard?: string;
};

export type StateValue = string | { readonly [key: string]: StateValue };
export type ActorStatus = 'active' | 'done' | 'error' | 'stopped';
export type ActorState = { readonly actor: string; readonly value: StateValue; readonly status: ActorStatus };

/** Records are numbered, and kept within limits for pages that connect late. `at` is in ms since 1970. */
export type Recorded = { n: number; at: number } & RecordedFact;
export type RecordedFact =
  /** Comes before the first actor of this chart. `chart` is its key; machines with the same drawing share one. */
  | { type: 'chart'; chart: string; drawn: Chart }
  /**
   * A conversation of runchart, an XState app, or a stored log. An app has no log, and its id is the name of its root
   * actor. A stored log has entries but no actors, and its id is its file name.
   */
  | {
      type: 'conversation';
      conversation: string;
      of: 'runchart' | 'xstate' | 'file';
      /** The unreadable lines of a stored log. */
      unread?: readonly string[];
      /** Actors of this app accept events from a page. An app that connects with its own inspector only reports. */
      takesEvents?: true;
      parent?: { conversation: string; callId: string };
    }
  /**
   * `parent` is another actor. `chart` is absent if the logic is not a machine (a promise, a callback). `name` is its
   * id within its parent.
   */
  | {
      type: 'actor';
      actor: string;
      conversation: string;
      parent?: string;
      name: string;
      chart?: string;
      value?: StateValue;
      /** The actor ran before the observer started, so its earlier behaviour is unknown. */
      late?: true;
    }
  /**
   * `from` is the sending actor, absent for an event from outside. With `isPart`, only the type is included; `payload`
   * requests the rest.
   */
  | { type: 'event'; actor: string; from?: string; event: { type: string; [field: string]: Json }; isPart?: true }
  /**
   * One microstep. `step` counts the microsteps of one event from 0. An empty `taken` means that the event changed
   * nothing.
   */
  | {
      type: 'transition';
      actor: string;
      step: number;
      event: string;
      taken: readonly TakenTransition[];
      value: StateValue;
    }
  /**
   * The actor has settled after an event. Recorded if its value or status changed, and after each event for apps that
   * send no transitions.
   */
  | { type: 'settled'; actor: string; event: string; value: StateValue; status: ActorStatus }
  | { type: 'stopped'; actor: string; status: Exclude<ActorStatus, 'active'>; error?: string }
  | { type: 'entry'; conversation: string; entry: LogEntry /** Long values were cut to fit a frame. */; cut?: true }
  | { type: 'status'; conversation: string; status: ConversationState }
  | { type: 'closed'; conversation: string };

/** `gone`: the app that reported it has disconnected. */
export type ConversationState = 'idle' | 'active' | 'waiting' | 'cancelling' | 'error' | 'gone';

/** Messages of the server that are not kept. */
export type Passing =
  /**
   * The first message of every connection. `session` differs for each start of the server: a page with another one
   * starts again.
   */
  | {
      type: 'hello';
      wire: typeof WIRE;
      version: string;
      session: string;
      /** Decisions, cancels and messages are allowed. */
      control: boolean;
      /**
       * The number of the first record that follows, and the number of the next new one. The records between them are
       * the past.
       */
      from: number;
      next: number;
      /** The number of records that are no longer kept. */
      dropped: number;
    }
  /**
   * At most ten times a second each. Text of one kind is joined. A page that connects late receives a `reset`, then
   * the current text of the reply.
   */
  | { type: 'live'; conversation: string; signal: Live }
  /** This number of records since `from` was dropped before sending. The others were sent. */
  | { type: 'dropped'; from: number; count: number }
  /**
   * The current states of all running actors. Sent after moves were dropped, because the last known state of an actor may
   * be wrong then.
   */
  | { type: 'states'; states: readonly ActorState[] }
  | { type: 'answer'; ask: number; value: Json }
  | { type: 'refused'; ask: number; code: string; message: string };

export type ToPage = Recorded | Passing;

/** `ask` is a number that the page chooses. Exactly one `answer` or `refused` contains it. */
export type FromPage =
  /**
   * The first message of every connection. `from`: number of the first wanted record, 0 for all. If `session` is not
   * the server's, all are sent.
   */
  | { type: 'subscribe'; from: number; session?: string }
  /** Answers the current context of the actor, without secrets and within limits, or null for an actor that is gone. */
  | { type: 'context'; ask: number; actor: string }
  /**
   * Answers the whole event of the record with this number, without secrets and within limits. Answers null if the
   * event is no longer kept.
   */
  | { type: 'payload'; ask: number; n: number }
  | ({ ask: number } & Control);

/** Refused with code `read_only` unless control is allowed. */
export type Control =
  /** Answers `{ receipt }`. */
  | { type: 'decide'; conversation: string; decision: Decision }
  | { type: 'settle'; conversation: string; callId: string; how: Settlement }
  | { type: 'resume' | 'cancel'; conversation: string }
  /**
   * Sends an event to an actor of an app that accepts events. Answers `{ sent: true }`. Refused if the actor does not
   * accept it now.
   */
  | { type: 'event'; conversation: string; actor: string; event: { type: string; [field: string]: Json } }
  /** Without `kind` the conversation's policy decides. */
  | { type: 'send'; conversation: string; content: string; kind?: 'steer' | 'followUp' };

/** The most characters in one frame. */
export const FRAME_MAX = 1024 * 1024;
/** The most characters in one frame from a page. */
export const REQUEST_MAX = 64 * 1024;

const isObject = (value: unknown): value is { readonly [field: string]: unknown } =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isNumber = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
const isId = (value: unknown): value is string => typeof value === 'string' && value !== '' && value.length <= 500;

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns the messages of a frame of the server. Messages without a type are ignored. */
export function readFrame(text: string): ToPage[] {
  const frame = parsed(text);
  if (!Array.isArray(frame)) return [];
  return frame.filter((message) => isObject(message) && typeof message.type === 'string') as unknown as ToPage[];
}

const CONTROLS: Readonly<Record<Control['type'], (request: { readonly [field: string]: unknown }) => boolean>> = {
  decide: ({ decision }) => isObject(decision),
  settle: ({ callId, how }) => isId(callId) && isObject(how),
  resume: () => true,
  cancel: () => true,
  event: ({ actor, event }) => isId(actor) && isObject(event) && isId(event.type),
  send: ({ content, kind }) =>
    typeof content === 'string' && (kind === undefined || kind === 'steer' || kind === 'followUp'),
};

/** Returns the request, or undefined if it is invalid. The conversation validates decisions and settlements. */
export function readRequest(text: string): FromPage | undefined {
  const request = text.length > REQUEST_MAX ? undefined : parsed(text);
  if (!isObject(request) || typeof request.type !== 'string') return undefined;
  const { type, ask, from, session, actor, conversation, n } = request;
  if (type === 'subscribe')
    return isNumber(from) ? { type, from, ...(typeof session === 'string' && { session }) } : undefined;
  if (!isNumber(ask)) return undefined;
  if (type === 'context') return isId(actor) ? { type, ask, actor } : undefined;
  if (type === 'payload') return isNumber(n) ? { type, ask, n } : undefined;
  const isControl = Object.hasOwn(CONTROLS, type) && CONTROLS[type as Control['type']](request);
  return isControl && isId(conversation) ? (request as unknown as FromPage) : undefined;
}
