/**
 * The interface of a durable engine for a conversation: one attempt of the invocation that holds it. Invariant: records are JSON, and a
 * later attempt receives the same records.
 */
import type { Delivery, Json, LogEntry } from '../../../machines/internal.ts';
import type { Act, ActAnswer } from '../../stores/logStore.ts';

/** An act, and where its answer goes. */
export interface WaitingAct {
  readonly act: Act;
  readonly to: string;
}

/**
 * One recorded item. `acts`: the number of acts that the conversation had received before it. `of`: the sub-agent that receives it.
 */
export type ChainItem = { acts: number; at: number } & (
  | { kind: 'delivery'; delivery: Delivery; of?: string }
  /** A sub-agent is being opened. */
  | { kind: 'opening'; of: string }
  | { kind: 'answers'; answers: readonly { to: string; answer: ActAnswer }[] }
  /** An earlier attempt may have started a tool that must not be repeated. */
  | { kind: 'lost' }
  /** Nothing has happened for a while. The engine sees that the attempt is alive. */
  | { kind: 'beat' }
  /** For a while, nothing but timers has been under way. */
  | { kind: 'waiting' }
  /** Nothing is under way. */
  | { kind: 'rest' }
  /** The run is long: another invocation continues it from here. */
  | { kind: 'continued' }
  /** The conversation cannot be opened. */
  | { kind: 'refused'; code: string; message: string }
);

/** A timer of the conversation, or of its sub-agent. It elapses at the time `until`. */
export interface EngineTimer {
  readonly id: string;
  readonly until: number;
  readonly of?: string;
}

/** Receives acts and timers while an attempt waits for the engine. */
export interface AttemptListener {
  /** Acts wait. */
  rung(): Promise<void>;
  elapsed(timer: EngineTimer): void;
}

/** Something that an attempt received from the engine. */
export type RecordedLine =
  | { readonly kind: 'step'; readonly name: string; readonly value: Json }
  | { readonly kind: 'acts'; readonly acts: readonly WaitingAct[] }
  /** Acts without an answer of a run whose chain is not repeated: the first line, if there is one. */
  | { readonly kind: 'left'; readonly acts: readonly WaitingAct[] }
  /** Acts came during the step that follows. */
  | { readonly kind: 'bell' }
  /** A timer elapsed during the step that follows. */
  | { readonly kind: 'elapsed'; readonly timer: EngineTimer }
  | { readonly kind: 'log'; readonly length: number; readonly of?: string };

/** The record of an active run by the invocations before this one. */
export interface CarriedRun {
  /** The version of the charts that led to it. */
  readonly version: number;
  readonly lines: readonly RecordedLine[];
}

/** The log of a conversation, and the version of the charts that wrote its end; 0 for a conversation without a log. */
export interface StoredLog {
  readonly entries: LogEntry[];
  readonly version: number;
}

/** The functions of an engine for one attempt of an invocation that holds a conversation. */
export interface EngineAttempt {
  readonly conversationId: string;
  /** Another id for each attempt. */
  readonly attempt: string;
  /** Aborted when another attempt takes the place of this one. */
  readonly signal: AbortSignal;
  /** The most characters of the JSON of one delivery. */
  readonly charactersMost: number;
  /**
   * The bytes of images and files, of the conversation or of its sub-agent. `put` returns a reference at once; the next step waits until
   * the bytes are stored.
   */
  blobsOf(
    subAgent?: string,
  ): { put(bytes: Uint8Array, mediaType: string): string; get(reference: string): Promise<Uint8Array> } | undefined;
  /**
   * Executes `act` and records its result as JSON. A later attempt receives the record. `listener` receives the acts and timers that
   * come during the step. Rejects if this attempt is over.
   */
  step<T>(name: string, act: () => T | Promise<T>, listener?: AttemptListener): Promise<T>;
  /** Starts a timer of the engine, which also runs while there is no attempt. A later step or `listen` reports its end. */
  startTimer(timer: EngineTimer): void;
  /** Waits for acts or the end of a timer, and resolves after `listener` has received it. The engine needs no attempt until then. */
  listen(listener: AttemptListener): Promise<void>;
  /** Takes the acts that wait, in order. `isListening`: further ones ring during the next step. */
  takeActs(isListening: boolean): Promise<readonly WaitingAct[]>;
  /** Undefined where no run is under way. */
  readCarried(): Promise<CarriedRun | undefined>;
  /** The log of the conversation, or of its sub-agent, with the entries that were appended so far. */
  readLog(subAgent?: string): Promise<StoredLog>;
  /** Stores entries that charts of this version wrote. */
  append(entries: readonly LogEntry[], version: number, subAgent?: string): void;
  answer(to: string, answer: ActAnswer): void;
  /** Appends these lines to the kept ones, and starts the invocation that continues. */
  carryOn(run: CarriedRun): void;
  /** Removes the kept lines. */
  dropCarried(): void;
}
