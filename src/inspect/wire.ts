/**
 * What the inspector's server and its page say to each other: messages as JSON, several in one frame. Rule: what lasts is
 * numbered in order, so a page that comes late or comes back asks for what is behind the number it has; what comes from a page is read before it counts, and all of it but reading needs control.
 */
import type { Decision, Json, LogEntry, Settlement } from '../../machines/vocabulary.ts';
import type { Live } from '../live.ts';
import type { Chart } from './chart.ts';

export const WIRE = 1;

/** A transition as the chart has it: `chart.ts` finds it by these three. */
export type TakenTransition = {
  /** Id of the state that holds it. */
  source: string;
  /** Descriptor it stands under; empty for one that is taken at once. */
  event: string;
  /** Its place in the list under that descriptor. */
  index: number;
  /** Ids of the states it leads to; none where it stays. */
  targets: readonly string[];
  guard?: string;
};

export type StateValue = string | { readonly [key: string]: StateValue };
export type ActorStatus = 'active' | 'done' | 'error' | 'stopped';

/** Numbered; kept for who comes late, within bounds. `at` is in ms since 1970. */
export type Recorded = { n: number; at: number } & RecordedFact;
export type RecordedFact =
  /** Before the first actor that runs it. `chart` is its key: machines that are drawn alike share one. */
  | { type: 'chart'; chart: string; drawn: Chart }
  /**
   * A conversation of runchart; an app that runs machines of its own: it has no log then, and its id is the name of its
   * root; or a stored log, whose id is the name of its file: it has entries and no actors, and nothing of it moves.
   */
  | {
      type: 'conversation';
      conversation: string;
      of: 'runchart' | 'xstate' | 'file';
      /** Of a stored log: what could not be read. */
      unread?: readonly string[];
      /** Of an app: its actors take events from a page; one that is connected by its own inspector only tells. */
      takesEvents?: true;
      parent?: { conversation: string; callId: string };
    }
  /** `parent`: another actor. `chart`: none for what is no machine (a promise, a callback). `name`: its id within its parent. */
  | {
      type: 'actor';
      actor: string;
      conversation: string;
      parent?: string;
      name: string;
      chart?: string;
      value?: StateValue;
      /** It lived already when the observer came: what it did before is not known. */
      late?: true;
    }
  /** `from`: the actor that sent it; none for what came from outside. `isPart`: its type alone is told; `payload` asks for the rest. */
  | { type: 'event'; actor: string; from?: string; event: { type: string; [field: string]: Json }; isPart?: true }
  /** One microstep; `step` counts those of one event, from 0. Nothing taken: the event changed nothing. */
  | {
      type: 'transition';
      actor: string;
      step: number;
      event: string;
      taken: readonly TakenTransition[];
      value: StateValue;
    }
  /** It has settled behind an event. Told where value or status differ from what was told last, or for apps without transitions on their wire, of each. */
  | { type: 'settled'; actor: string; event: string; value: StateValue; status: ActorStatus }
  | { type: 'stopped'; actor: string; status: Exclude<ActorStatus, 'active'>; error?: string }
  | { type: 'entry'; conversation: string; entry: LogEntry /** Long values were cut to fit a frame. */; cut?: true }
  | { type: 'status'; conversation: string; status: ConversationState }
  | { type: 'closed'; conversation: string };

/** `gone`: the app that told of it has left. */
export type ConversationState = 'idle' | 'active' | 'waiting' | 'cancelling' | 'error' | 'gone';

/** What the server says and does not keep. */
export type Passing =
  /** First in every connection. `session` differs for each start of a server: with another one a page begins anew. */
  | {
      type: 'hello';
      wire: typeof WIRE;
      version: string;
      session: string;
      /** Decisions, cancels and messages are taken. */
      control: boolean;
      /** Number of the first record that follows, and of the one behind the last that there is now: what lies between is the past. */
      from: number;
      next: number;
      /** Records that are no longer kept. */
      dropped: number;
    }
  /** At most ten times a second each; text of one kind is joined. A page that comes late is told what is there of a reply, behind a `reset`. */
  | { type: 'live'; conversation: string; signal: Live }
  /** So many records since `from` were dropped before this page had them; those between them were told. */
  | { type: 'dropped'; from: number; count: number }
  | { type: 'answer'; ask: number; value: Json }
  | { type: 'refused'; ask: number; code: string; message: string };

export type ToPage = Recorded | Passing;

/** `ask` is a number of the page's own; exactly one `answer` or `refused` has it. */
export type FromPage =
  /** First in every connection. `from`: number of the first record wanted; 0 for all. Of another session than `session`: all. */
  | { type: 'subscribe'; from: number; session?: string }
  /** Answers the actor's context as it is now, without secrets and cut to bounds; null for one that is gone. */
  | { type: 'context'; ask: number; actor: string }
  /** Answers the whole event that the record of this number told of, without secrets and cut to bounds; null where it is kept no more. */
  | { type: 'payload'; ask: number; n: number }
  | ({ ask: number } & Control);

/** Refused with code `read_only` unless control is allowed. */
export type Control =
  /** Answers `{ receipt }`. */
  | { type: 'decide'; conversation: string; decision: Decision }
  | { type: 'settle'; conversation: string; callId: string; how: Settlement }
  | { type: 'resume' | 'cancel'; conversation: string }
  /** To an actor of an app that takes events. Answers `{ sent: true }`; refused where the actor does not take it as it stands. */
  | { type: 'event'; conversation: string; actor: string; event: { type: string; [field: string]: Json } }
  /** Without `kind` as the conversation's policy says. */
  | { type: 'send'; conversation: string; content: string; kind?: 'steer' | 'followUp' };

/** Characters of one frame. */
export const FRAME_MAX = 1024 * 1024;
/** Characters of one frame that a page may send. */
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

/** The messages of a frame of the server, without those of a later version. */
export function readFrame(text: string): ToPage[] {
  const frame = parsed(text);
  if (!Array.isArray(frame)) return [];
  return frame.filter((message) => isObject(message) && typeof message.type === 'string') as unknown as ToPage[];
}

const CONTROLS: Readonly<Record<Control['type'], (given: { readonly [field: string]: unknown }) => boolean>> = {
  decide: ({ decision }) => isObject(decision),
  settle: ({ callId, how }) => isId(callId) && isObject(how),
  resume: () => true,
  cancel: () => true,
  event: ({ actor, event }) => isId(actor) && isObject(event) && isId(event.type),
  send: ({ content, kind }) =>
    typeof content === 'string' && (kind === undefined || kind === 'steer' || kind === 'followUp'),
};

/** What a page asks; nothing for what is no request. Decisions and settlements are judged by the conversation. */
export function readRequest(text: string): FromPage | undefined {
  const given = text.length > REQUEST_MAX ? undefined : parsed(text);
  if (!isObject(given) || typeof given.type !== 'string') return undefined;
  const { type, ask, from, session, actor, conversation, n } = given;
  if (type === 'subscribe')
    return isNumber(from) ? { type, from, ...(typeof session === 'string' && { session }) } : undefined;
  if (!isNumber(ask)) return undefined;
  if (type === 'context') return isId(actor) ? { type, ask, actor } : undefined;
  if (type === 'payload') return isNumber(n) ? { type, ask, n } : undefined;
  const isControl = Object.hasOwn(CONTROLS, type) && CONTROLS[type as Control['type']](given);
  return isControl && isId(conversation) ? (given as unknown as FromPage) : undefined;
}
