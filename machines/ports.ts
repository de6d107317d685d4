/**
 * The types of everything that crosses between the charts and the world: phases, effect requests and their answers, completions,
 * and the journal that a driver uses. Invariant: requests, values and entries are JSON.
 */
import type { RoundCall } from './calls.ts';
import type {
  AgentItem,
  Boundary,
  Decision,
  DecisionReceipt,
  Failure,
  FinishReason,
  Json,
  NewEntry,
  StoredPart,
  Termination,
  ToolOutcome,
  Usage,
} from './vocabulary.ts';

/** The phases in which a plugin may take part, by the names of the plugin contract. */
export type Phase =
  | 'runStart'
  | 'stepStart'
  | 'beforeInference'
  | 'afterInference'
  | 'beforeToolExecute'
  | 'afterToolExecute'
  | 'stepEnd'
  /** A plugin may continue where a reply would end the run. */
  | 'naturalEnd'
  /** Earlier messages are about to become a summary. */
  | 'preCompact'
  | 'runEnd';
/** The phases that a run asks for. The others belong to a tool call, which has its own effects. */
export type RunPhase = Exclude<Phase, 'beforeToolExecute' | 'afterToolExecute'>;
/** The phases that some plugin takes part in. Other phases ask nothing. */
export type Phases = Readonly<Record<Phase, boolean>>;

/** An effect that a chart asks its host for. The host answers under its id. */
export type EffectRequest =
  | {
      kind: 'phase';
      id: string;
      runId: string;
      turn: number;
      /** The phases run one after the other, in this order. */
      phases: RunPhase[];
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
  /**
   * Asks how full the context window is. Above these shares the answer names prunable results and a place for a summary.
   */
  | { kind: 'context'; id: string; pruneAbove?: number; compactAbove?: number }
  /** `ofCycle`: the time of earlier runs of the cycle counts too. */
  | { kind: 'timer'; id: string; ms: number; ofCycle?: true }
  /** Reports to the host that a run is over; there is no answer. */
  | { kind: 'ended'; id: string; runId: string; result: RunOutput }
  /** Reports the outcome of an act to the host; there is no answer. `id`: the id of the act. */
  | { kind: 'answer'; id: string; outcome: ActOutcome; suspension?: number };

/** A report of a chart to its host. Reports have no answer. */
export type Report = Extract<EffectRequest, { kind: 'ended' | 'answer' }>;
export const REPORT_KINDS: ReadonlySet<EffectRequest['kind']> = new Set<Report['kind']>(['ended', 'answer']);

/** The outcome of an act of the host. For a decision it is the receipt. */
export type ActOutcome =
  /** The message starts a run. */
  | 'started'
  /** The active run takes the message before its next model call. */
  | 'steered'
  | 'queued'
  /** The message is queued. The waiting cycle continues, because each of its calls is decided. */
  | 'resumed'
  /** The message ends the waiting cycle and starts a run. */
  | 'superseding'
  /** A resumption or a queued followUp starts a run. */
  | 'continued'
  /** A run, or a cancel, is under way already. */
  | 'joined'
  | 'cancelled'
  | 'nothing'
  /** The message was removed from the queue, or withdrawn before it was queued. */
  | 'returned'
  /** Later entries continue from an earlier place of the log. */
  | 'rewound'
  | DecisionReceipt;

/** The end of a run, as the host receives it. */
export interface RunOutput {
  /** The id of the run. */
  runId: string;
  /** The end state of the chart. */
  termination: Termination;
  /** The reason for the end. */
  cause?: string;
  /** The failure that ended the run. */
  error?: Failure;
  /** False where the end of the run could not be stored. */
  durable: boolean;
}

/** The answer to a `phase` effect. */
export type PhaseValue =
  | { kind: 'done'; writes?: { [key: string]: Json } }
  /** `stopped`: the run counts as stopped, not as completed by a plugin. */
  | { kind: 'terminate'; by: string; reason: string; stopped?: true }
  /** The run continues, and the model receives the reason: a plugin asked for it, or the final answer does not fit its schema. */
  | { kind: 'continue'; text: string; why: 'stop_hook' | 'output' }
  /** The final answer after its schema has parsed it. */
  | { kind: 'answer'; value: Json }
  /** Instructions for the summary, or the reason why none is made. */
  | { kind: 'compact'; instructions?: string; block?: { by: string; reason: string } };
/** The answer to a `model` effect. */
export type ModelValue =
  | {
      kind: 'reply';
      items: AgentItem[];
      /** Data that the provider needs back with the reply. */
      extra?: Json;
      calls: RoundCall[];
      finish: FinishReason;
      /** The reply has no visible text and no calls. */
      empty: boolean;
      /** If this reply ends the run, its text must fit a schema. */
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
      /** 0 to 1, chosen by the host. */
      random: number;
      model: string;
      /** The index of the next model that may be called: it was not called before, and accepts the request. Default: the one after this. */
      nextModel?: number;
      /** The model answered, and its answer cannot be used. */
      spent?: { usage: Usage; costUsd: number | null };
      /** Of a summary: the text that stays word for word. */
      kept?: string;
    };
/** The answer to a `summary` effect. */
export interface SummaryValue {
  /** The kind of the answer. */
  kind: 'summary';
  /** The summary. */
  text: string;
  /** The tokens of the summary. */
  usage: Usage;
  /** The cost in USD; null where the price is unknown. */
  costUsd: number | null;
  /** The id of the model that wrote it. */
  model: string;
}
/** The answer to a `gate` effect. */
export type GateValue =
  | { kind: 'allow'; by?: string; args?: Json }
  | { kind: 'block'; code: string; text: string }
  | { kind: 'refuse'; code: string; text: string }
  /** `args`: the arguments that wait, where they differ from those in the log. */
  | { kind: 'suspend'; reason: string; payload?: Json; args?: Json };
/** The answer to a `tool` effect. */
export type ToolValue =
  | { kind: 'succeeded'; content: StoredPart[]; writes?: { [key: string]: Json } }
  /** `retry`: the tool may be executed again; `random` is 0 to 1, chosen by the host. */
  | { kind: 'erred'; content: StoredPart[]; code: string; retry?: { random: number } }
  /** `within`: calls of its sub-agents wait, each under limits of its own. */
  | { kind: 'pending'; reason: string; payload?: Json; within?: true };
/** The answer to a `context` effect. In tokens: the next request plus the space reserved for its reply, and the window. */
export interface ContextValue {
  /** The kind of the answer. */
  kind: 'context';
  /** The tokens of the next request and the reserved space. */
  used: number;
  /** The tokens of the context window. */
  limit: number;
  /** A warning is active: usage exceeded its limit before. */
  warned: boolean;
  /** Calls whose old results can be removed, and the usage without them. */
  prunable?: { callIds: string[]; used: number };
  /** Messages up to here can become a summary, to make space or on request (`instructions`). */
  compactable?: { upToSeq: number; instructions?: string };
}
/** The answer to an effect, by its kind. */
export type EffectValue =
  | PhaseValue
  | ModelValue
  | GateValue
  | ToolValue
  | { kind: 'shown'; content: StoredPart[] }
  | ContextValue
  | SummaryValue
  | { kind: 'committed' };

/** The answer to an `ask`. The actor that asked receives it. */
export type EffectDone = { type: 'effect.done'; id: string; value: EffectValue };
/** The time of a timer is over. */
export type TimerElapsed = { type: 'timer.elapsed'; id: string };
/** The runtime itself failed (an executor, a required plugin). A failure of a tool or model is not this. */
export type EffectFailed = { type: 'effect.failed'; id: string; cause: string; error: Failure };
/** The entries of a step could not be stored. Nothing that the step asked for was started. */
export type AppendFailed = { type: 'append.failed'; error: Failure; lost: readonly NewEntry[] };

/** An input of the charts: an answer, a failure, an act of the host, or entries that no chart decides about. */
export type Completion =
  | EffectDone
  | TimerElapsed
  | EffectFailed
  | AppendFailed
  | { type: 'note'; entries: readonly NewEntry[] /** Answered when they are durable. */; actId?: string }
  | { type: 'act'; event: { type: string }; priority?: 'cancel' };

/** A completion with the time of its entries. The order of deliveries determines the run. */
export interface Delivery {
  /** The time of the entries, in milliseconds since 1970. */
  at: number;
  /** The event for the charts. */
  completion: Completion;
}

/**
 * The functions that a host provides for one conversation. Every journal must keep these rules. Deliveries have one order: a
 * cancel comes first, and all others come in the order of their arrival. Nothing is delivered for a dropped id. If an effect
 * answers inside `start`, the answer is queued. `append` numbers the entries, and returns undefined if they are durable at once.
 */
export interface Journal {
  /** Starts an effect. */
  start(request: EffectRequest): void;
  /** Ends every effect whose id is `prefix` or under it, in reverse start order. */
  drop(prefix: string): void;
  /** Adds a completion, for example an answer to an effect. */
  put(completion: Completion): void;
  /** Returns the next delivery, or undefined. */
  take(): Delivery | undefined;
  /** Called when something can be taken. */
  bell(ring: () => void): void;
  /** `carried`: the entries begin with those of the append before, which was refused while this one was queued. */
  append(entries: readonly NewEntry[], at: number, carried: boolean): void | Promise<void>;
}
