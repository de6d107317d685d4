/**
 * The hooks of a simulated life, at which a check can compare the state with the durable log. Invariant: no check draws
 * from the tape unless its comment allows it. A life is the same with and without checks.
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
  /** The drawn reply. A fault may cut it. */
  readonly parts: readonly ModelPart[];
  /** The model is asked for a summary of earlier messages. */
  readonly sumsUp: boolean;
}

/** Receives the promise of an act that was about to start. */
export type Afterwards = (done: Promise<unknown>) => void;

export interface LifeChecks {
  // The store.
  /** An entry is durable. */
  stored?(conversationId: string, entry: LogEntry): void;
  /** All entries of one append are durable. */
  appended?(conversationId: string, entries: readonly LogEntry[]): void;
  /** The store reports a failure for these entries. */
  refused?(entries: readonly LogEntry[]): void;
  /** A log refers to bytes that its blobs do not contain. */
  blobMissing?(conversationId: string, reference: string): void;

  // The model.
  called?(call: SimulatedCall): void;
  streamed?(part: ModelPart): void;
  /** Receives the parts of a complete reply before its last part is read. */
  replied?(parts: readonly ModelPart[]): void;

  // The host and its conversations.
  /** The simulated conversation is about to be opened. */
  opening?(): void;
  /** The conversation is open. `durable` is the number of stored entries when the opening began. */
  opened?(conversation: Conversation, durable: number): void;
  /** The conversation was opened a second time during the first opening. */
  openedTwice?(): void;
  /** A subscriber joins. `from` is its first entry. Returns a function that receives the subscriber's entries. */
  watching?(from: number): (entry: LogEntry) => void;
  /** Another conversation of the agent is open. */
  openedOther?(conversation: Conversation): void;
  /** The simulated conversation is about to be copied as `id`. */
  forking?(id: string): void;
  /** The copy is at rest. */
  forked?(): void;
  closing?(conversation: Conversation): void;
  /** A reader of the conversation unsubscribes and subscribes again. */
  rejoining?(): void;
  /** A message with this signal is about to be sent. */
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
  /** Only timers remain. */
  waiting?(conversation: Conversation | undefined): void;
  /** The conversation is at rest without faults. */
  atRest?(conversation: Conversation): void;
  /** The same, for the first time. The check may draw from the tape. */
  restedFirst?(conversation: Conversation): void;
  /** Called before a last crash. Returns a function that checks the conversation in the next process. */
  leaving?(conversation: Conversation): ((reopened: Conversation) => void) | undefined;
  /** Called after the last message. */
  restedLast?(conversation: Conversation): void;
  /** The process has died. The next one starts when the promise resolves. */
  crashed?(): void | Promise<void>;
  /** The life has ended. */
  over?(): Promise<void>;
}
