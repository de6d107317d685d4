/**
 * The moments of a simulated life at which somebody may compare what happens with the durable log. Rule: no check draws from
 * the tape, except where its comment allows it, so a life is the same with and without checks.
 */
import type { Decision, DecisionReceipt, LogEntry } from '../../../machines/internal.ts';
import type { Conversation } from '../../conversation/conversation.ts';
import type { Receipt } from '../../conversation/receipts.ts';
import type { Run } from '../../conversation/run.ts';
import type { ModelPart, ModelRequest, StreamContext } from '../../models/model.ts';
import type { CallerSignal } from './callerSignal.ts';

export interface SimulatedCall {
  readonly request: ModelRequest;
  readonly context: StreamContext;
  /** The reply that was drawn. A fault may cut it. */
  readonly parts: readonly ModelPart[];
  /** The model is asked for a summary of earlier messages. */
  readonly sumsUp: boolean;
}

/** Receives the promise of an act that was about to begin. */
export type Afterwards = (done: Promise<unknown>) => void;

export interface LifeChecks {
  // The store.
  /** An entry is durable. */
  stored?(conversationId: string, entry: LogEntry): void;
  /** The entries of one append are durable, all of them. */
  appended?(conversationId: string, entries: readonly LogEntry[]): void;
  /** The store reports a failure for these entries. */
  refused?(entries: readonly LogEntry[]): void;
  /** A log names bytes that are not beside it. */
  blobMissing?(conversationId: string, reference: string): void;

  // The model.
  called?(call: SimulatedCall): void;
  streamed?(part: ModelPart): void;
  /** The parts of a whole reply, before the last one is read. */
  replied?(parts: readonly ModelPart[]): void;

  // The host and its conversations.
  /** The simulated conversation is about to be opened. */
  opening?(): void;
  /** It is open; `durable`: how many entries were stored when it began to open. */
  opened?(conversation: Conversation, durable: number): void;
  /** It is open a second time, while the first opening lasts. */
  openedTwice?(): void;
  /** A subscriber joins. Returns what receives the entries that it is shown, `from` is the first. */
  watching?(from: number): (entry: LogEntry) => void;
  /** Another conversation of the agent is open. */
  openedOther?(conversation: Conversation): void;
  /** The copy `id` of the simulated conversation is about to be made. */
  forking?(id: string): void;
  /** The copy has come to rest. */
  forked?(): void;
  closing?(conversation: Conversation): void;
  /** A reader of the conversation leaves and joins again. */
  rejoining?(): void;
  /** A message is about to be sent with this signal. */
  signalGiven?(caller: CallerSignal): void;
  runBegan?(run: Run): void;
  messageQueued?(receipt: Receipt): void;
  decided?(decision: Decision, receipt: DecisionReceipt): void;
  /** An act of the host failed. */
  failed?(act: string, error: unknown): void;
  cancelling?(conversation: Conversation): Afterwards;
  withdrawing?(run: Run): Afterwards | undefined;
  aborting?(caller: CallerSignal): (() => void) | undefined;
  /** A part of the agent, such as its plugins, acts. May draw from the tape. */
  act?(conversation: Conversation): void;

  // The loop.
  stepped?(): void;
  /** Nothing but timers is left. */
  waiting?(conversation: Conversation | undefined): void;
  /** The conversation is at rest without faults. */
  atRest?(conversation: Conversation): void;
  /** The same, for the first time. May draw from the tape. */
  restedFirst?(conversation: Conversation): void;
  /** Before a last crash. Returns what compares the conversation of the next process. */
  leaving?(conversation: Conversation): ((reopened: Conversation) => void) | undefined;
  /** After the last message. */
  restedLast?(conversation: Conversation): void;
  /** The process died; the next one begins when this resolves. */
  crashed?(): void | Promise<void>;
  /** The life is over. */
  over?(): Promise<void>;
}
