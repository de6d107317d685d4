/**
 * The door between charts and world. Charts touch the world by three declared actions only: `ask` starts an effect,
 * `drop` ends what is under a prefix, `log` writes entries. Their parameters are pure functions of context and event,
 * so `transition()` of any chart shows its effects as plain records. The implementations here do nothing; a driver
 * provides its own. Rule: everything in a request, a value or an entry is JSON.
 */
import type { RoundCall } from './calls.ts';
import type {
  AgentItem,
  Boundary,
  Decision,
  Failure,
  FinishReason,
  Json,
  NewEntry,
  StoredPart,
  Termination,
  ToolOutcome,
  Usage,
} from './vocabulary.ts';

/** The phases a plugin may take part in, by the names of the plugin contract. */
export type Phase =
  | 'runStart'
  | 'stepStart'
  | 'beforeInference'
  | 'afterInference'
  | 'beforeToolExecute'
  | 'afterToolExecute'
  | 'stepEnd'
  /** Not among the document's: where a reply would end the run, somebody may go on. */
  | 'naturalEnd'
  /** Nor this one: earlier messages are about to become a summary. */
  | 'preCompact'
  | 'runEnd';
/** Which phases somebody takes part in. A phase nobody registered for asks nothing. */
export type Phases = Readonly<Record<Phase, boolean>>;

export type EffectRequest =
  | {
      kind: 'phase';
      id: string;
      runId: string;
      turn: number;
      /** Run one after the other, in this order. */
      phases: Phase[];
      failure?: Failure;
      termination?: Termination;
      limitMs?: number;
    }
  | { kind: 'model'; id: string; runId: string; turn: number; attempt: number; model: number }
  /** Asks a model for a summary of the messages up to `upToSeq`. */
  | {
      kind: 'summary';
      id: string;
      runId: string;
      attempt: number;
      model: number;
      upToSeq: number;
      instructions?: string;
    }
  | { kind: 'gate'; id: string; runId: string; callId: string; suspension: number; decision?: Decision }
  | {
      kind: 'tool';
      id: string;
      runId: string;
      callId: string;
      suspension: number;
      idempotencyKey: string;
      decision?: Decision;
    }
  | {
      kind: 'afterTool';
      id: string;
      runId: string;
      callId: string;
      outcome: ToolOutcome | 'suspended';
      content: StoredPart[];
      code?: string;
    }
  | { kind: 'commit'; id: string; boundary: Boundary }
  /** Asks how full the context window is. Above these shares, also what could be pruned, and where a summary could end. */
  | { kind: 'context'; id: string; pruneAbove?: number; compactAbove?: number }
  /** `ofCycle`: the time that earlier runs of the cycle took counts too. */
  | { kind: 'timer'; id: string; ms: number; ofCycle?: true }
  /** Tells the host that a run is over; it has no answer. */
  | { kind: 'ended'; id: string; runId: string; result: RunOutput };

export interface RunOutput {
  runId: string;
  termination: Termination;
  cause?: string;
  error?: Failure;
  /** False where the run's end could not be stored. */
  durable: boolean;
}

export type PhaseValue =
  | { kind: 'done'; writes?: { [key: string]: Json } }
  /** `stopped`: the run counts as stopped, not as one that a plugin has completed. */
  | { kind: 'terminate'; by: string; reason: string; stopped?: true }
  /** The run goes on, and the model is told why: a plugin wants it, or the final answer does not fit its schema. */
  | { kind: 'continue'; text: string; why: 'stop_hook' | 'output' }
  /** The final answer, as its schema takes it. */
  | { kind: 'answer'; value: Json }
  /** How earlier messages are to be summed up, or why they are not. */
  | { kind: 'compact'; instructions?: string; block?: { by: string; reason: string } };
export type ModelValue =
  | {
      kind: 'reply';
      items: AgentItem[];
      /** What the provider wants back with the reply. */
      extra?: Json;
      calls: RoundCall[];
      finish: FinishReason;
      /** Without visible text and without calls. */
      empty: boolean;
      /** It has a schema to fit, if it ends the run. */
      judged?: true;
      usage: Usage;
      costUsd: number | null;
      model: string;
    }
  | {
      kind: 'failed';
      code: string;
      message: string;
      retryable: boolean;
      retryAfterMs?: number;
      /** 0 to 1, from the host. */
      random: number;
      model: string;
      /** Where the model answered, and its answer is of no use. */
      spent?: { usage: Usage; costUsd: number | null };
      /** Of a summary: what stays word for word all the same. */
      kept?: string;
    };
export interface SummaryValue {
  kind: 'summary';
  text: string;
  usage: Usage;
  costUsd: number | null;
  model: string;
}
export type GateValue =
  | { kind: 'allow'; by?: string; args?: Json }
  | { kind: 'block'; code: string; text: string }
  | { kind: 'refuse'; code: string; text: string }
  /** `args`: what waits, where it is not what the log has of the call. */
  | { kind: 'suspend'; reason: string; payload?: Json; args?: Json };
export type ToolValue =
  | { kind: 'succeeded'; content: StoredPart[]; writes?: { [key: string]: Json } }
  /** `retry`: the tool may be executed again; `random` is 0 to 1, from the host. */
  | { kind: 'erred'; content: StoredPart[]; code: string; retry?: { random: number } }
  /** `within`: it is calls of its sub-agents that wait, each within limits of its own. */
  | { kind: 'pending'; reason: string; payload?: Json; within?: true };
/** Tokens: the next request with the room kept for its reply, and the window. */
export interface ContextValue {
  kind: 'context';
  used: number;
  limit: number;
  /** A warning stands: use was above it before. */
  warned: boolean;
  /** Calls whose old results can go, and what is used without them. */
  prunable?: { callIds: string[]; used: number };
  /** Messages up to here can become a summary, so that there is room, or because somebody wants it: `instructions`. */
  compactable?: { upToSeq: number; instructions?: string };
}
export type EffectValue =
  | PhaseValue
  | ModelValue
  | GateValue
  | ToolValue
  | { kind: 'shown'; content: StoredPart[] }
  | ContextValue
  | SummaryValue
  | { kind: 'committed' };

/** The answer to an `ask`; it goes to the actor that asked. */
export type EffectDone = { type: 'effect.done'; id: string; value: EffectValue };
export type TimerElapsed = { type: 'timer.elapsed'; id: string };
/** The runtime itself failed (an executor, a required plugin): never a tool's or a model's own failure. */
export type EffectFailed = { type: 'effect.failed'; id: string; cause: string; error: Failure };
/** A step's entries could not be stored; nothing that the step asked for was started. */
export type AppendFailed = { type: 'append.failed'; error: Failure; lost: readonly NewEntry[] };

/** What comes in through the door: answers, failures, acts of the host, and entries that no chart has a say in. */
export type Completion =
  | EffectDone
  | TimerElapsed
  | EffectFailed
  | AppendFailed
  | { type: 'note'; entries: readonly NewEntry[] }
  | { type: 'act'; event: { type: string }; priority?: 'cancel' };

/** A completion with the time that its entries carry. The order of deliveries is the run. */
export interface Delivery {
  at: number;
  completion: Completion;
}

/**
 * What a host does for one conversation. Properties that every journal keeps: one total order of deliveries, cancel
 * first and then first in, first out; nothing is delivered for a dropped id; an answer given inside `start` is
 * queued, never re-entered; `append` stamps seq and answers nothing where the entries are durable at once.
 */
export interface Journal {
  start(request: EffectRequest): void;
  /** Ends every effect whose id is `prefix` or under it, in reverse start order. */
  drop(prefix: string): void;
  put(completion: Completion): void;
  take(): Delivery | undefined;
  /** Called when something can be taken. */
  bell(ring: () => void): void;
  /** `carried`: they begin with those of the append before, which was refused when this one stood in line behind it. */
  append(entries: readonly NewEntry[], at: number, carried: boolean): void | Promise<void>;
}
