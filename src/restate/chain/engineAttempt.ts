/**
 * The interface of a durable engine for a conversation: one attempt of the invocation that holds it. Invariant: records are JSON, and a
 * later attempt receives the same records.
 */
import type { CycleRequest, Delivery, Json, LogEntry, RunOutput } from '../../../machines/internal.ts';
import type { SpentUsage } from '../../runtime/subAgentPort.ts';
import type { Act, ActAnswer } from '../../stores/logStore.ts';

/** The surroundings of a sub-agent, as its parent knows them when it asks something of it. */
export interface SubAgentPlace {
  readonly parent: { readonly conversationId: string; readonly callId: string };
  /** The name of the tool that spawned it. */
  readonly tool: string;
  readonly cwd: string;
  readonly owner?: string;
  /** The request that it works on. */
  readonly request: CycleRequest;
  /** What the family has spent, with the first `upTo` entries of the sub-agent. Undefined where nothing limits it. */
  readonly spent?: SpentUsage;
  readonly upTo: number;
  /** Ids of other calls of the family. */
  readonly taken: readonly string[];
}

/** An act, and where its answer goes. `place`: the parent of this sub-agent asks. */
export interface WaitingAct {
  readonly act: Act;
  readonly to: string;
  readonly place?: SubAgentPlace;
}

/** How the last run ended. */
export type RunEnd = Pick<RunOutput, 'termination' | 'cause' | 'error'>;

/** What a sub-agent reports to its parent: entries of its log, answers to acts, and that nothing is under way. */
export type SubAgentNews =
  | { readonly kind: 'entries'; readonly entries: readonly LogEntry[] }
  | { readonly kind: 'answer'; readonly to: string; readonly answer: ActAnswer }
  | { readonly kind: 'rest'; readonly end?: RunEnd };

/** News of the sub-agent `of`. */
export interface WaitingNews {
  readonly of: string;
  readonly news: SubAgentNews;
}

/** Something in the inbox of a conversation. */
export type Waiting = WaitingAct | WaitingNews;

export const isNews = (waiting: Waiting): waiting is WaitingNews => 'news' in waiting;

/** One recorded item. `acts`: what the conversation had received from its inbox before it. */
export type ChainItem = { acts: number; at: number } & (
  | { kind: 'delivery'; delivery: Delivery }
  /** The acts of these ids go to sub-agents. */
  | { kind: 'asked'; ids: readonly string[] }
  /** News of sub-agents arrive. Here `acts` contains them. */
  | { kind: 'news' }
  /** A sub-agent is being opened. */
  | { kind: 'opening'; of: string }
  /** The parent of a sub-agent that a client has opened to read it asks something. */
  | { kind: 'parent' }
  | { kind: 'answers'; answers: readonly { to: string; answer: ActAnswer }[] }
  /** An earlier attempt may have started a tool that must not be repeated. */
  | { kind: 'lost' }
  /** Nothing has happened for a while. The engine sees that the attempt is alive. */
  | { kind: 'beat' }
  /** For a while, nothing but timers has been under way. */
  | { kind: 'waiting' }
  /** Nothing is under way. `end`: of the last run of a sub-agent. */
  | { kind: 'rest'; end?: RunEnd }
  /** The run is long: another invocation continues it from here. */
  | { kind: 'continued' }
  /** The conversation cannot be opened. */
  | { kind: 'refused'; code: string; message: string }
);

/** A timer of the conversation. It elapses at the time `until`. */
export interface EngineTimer {
  readonly id: string;
  readonly until: number;
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
  | { readonly kind: 'acts'; readonly acts: readonly Waiting[] }
  /** Acts without an answer of a run whose chain is not repeated: the first line, if there is one. `place`: of a sub-agent. */
  | { readonly kind: 'left'; readonly acts: readonly WaitingAct[]; readonly place?: SubAgentPlace }
  /** Acts came during the step that follows. */
  | { readonly kind: 'bell' }
  /** A timer elapsed during the step that follows. */
  | { readonly kind: 'elapsed'; readonly timer: EngineTimer }
  | { readonly kind: 'log'; readonly length: number; readonly of?: string; readonly isUnderWay?: boolean };

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
  /** Another invocation is about to continue its run. */
  readonly isUnderWay?: boolean;
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
  /** The bytes of images and files. `put` returns a reference at once; the next step waits until the bytes are stored. */
  readonly blobs:
    | { put(bytes: Uint8Array, mediaType: string): string; get(reference: string): Promise<Uint8Array> }
    | undefined;
  /**
   * Executes `act` and records its result as JSON. A later attempt receives the record. `listener` receives the acts and timers that
   * come during the step. Rejects if this attempt is over.
   */
  step<T>(name: string, act: () => T | Promise<T>, listener?: AttemptListener): Promise<T>;
  /** Starts a timer of the engine, which also runs while there is no attempt. A later step or `listen` reports its end. */
  startTimer(timer: EngineTimer): void;
  /** Waits for acts or the end of a timer, and resolves after `listener` has received it. The engine needs no attempt until then. */
  listen(listener: AttemptListener): Promise<void>;
  /** Takes what waits in the inbox, in order. `isListening`: further acts ring during the next step. */
  takeActs(isListening: boolean): Promise<readonly Waiting[]>;
  /** Undefined where no run is under way. */
  readCarried(): Promise<CarriedRun | undefined>;
  /** The log of the conversation. That of a sub-agent is read when nothing holds the sub-agent. */
  readLog(subAgent?: string): Promise<StoredLog>;
  /** Stores entries that charts of this version wrote. */
  append(entries: readonly LogEntry[], version: number): void;
  answer(to: string, answer: ActAnswer): void;
  /** Sends something to the inbox of a sub-agent or of the parent. It arrives after what was sent there before. */
  tell(conversationId: string, waiting: Waiting): void;
  /** Appends these lines to the kept ones, and starts the invocation that continues. */
  carryOn(run: CarriedRun): void;
  /** Removes the kept lines. */
  dropCarried(): void;
}
