/**
 * The cost of a conversation, as a fold of its log: by model call, by run, by model, and in total. Invariant: an unknown price
 * never counts as 0. A sum that contains one is null, and the sum of the known prices is given separately.
 */
import {
  addUsage,
  fieldsOf,
  isCount,
  type Json,
  type LogEntry,
  readUsage,
  subAgentUsageOf,
  type Usage,
  usageOf,
  zeroUsage,
} from '../../machines/internal.ts';

/** Counts and prices of some model calls. */
export interface Cost {
  /** Of models. */
  calls: number;
  /** The sum of their tokens. */
  usage: Usage;
  /** USD; null where a price is unknown. */
  costUsd: number | null;
  /** USD of the calls whose price is known. */
  knownUsd: number;
  /** Calls whose price is unknown. */
  unpriced: number;
}

/** The price of one model call. */
export interface CallCost {
  /** The run of the call; null outside a run. */
  runId: string | null;
  /** The number of the turn in the run; absent if the call was no turn of this conversation. */
  turn?: number;
  /** The id of the model. */
  model: string;
  /** The tokens of the call. */
  usage: Usage;
  /** USD; null where the price is unknown. */
  costUsd: number | null;
  /** The number of a sub-agent's calls of one model, which its parent's log counts together; absent for a single call. */
  calls?: number;
  /** The conversation of the sub-agent that made them. */
  subAgent?: string;
}

/** The prices of a conversation, by model, by run and by call. */
export interface ConversationCost {
  /** The sum of all calls. */
  total: Cost;
  /** In the order of their first calls. */
  models: readonly (Cost & { model: string })[];
  /** The sum of each run. */
  runs: readonly (Cost & { runId: string | null })[];
  /** Each call, in the order of the log. */
  calls: readonly CallCost[];
}

/** Names the models of sub-agents in a log without their usage per model. */
const SUB_AGENTS = 'sub-agents';
/** Names the model of a summary that records none. */
const SUMMARIES = 'summaries';

const nothing: Cost = { calls: 0, usage: zeroUsage.usage, costUsd: 0, knownUsd: 0, unpriced: 0 };

/** A price of a foreign log that is not an amount counts as unknown. */
const amountOf = ({ costUsd }: { costUsd?: unknown }): number | null => (isCount(costUsd) ? costUsd : null);

function plus(cost: Cost, call: CallCost): Cost {
  const { usage, costUsd } = addUsage(cost, call);
  const { calls, knownUsd, unpriced } = cost;
  const callUsd = call.costUsd ?? 0;
  const made = call.calls ?? 1;
  return {
    calls: calls + made,
    usage,
    costUsd,
    knownUsd: knownUsd + callUsd,
    unpriced: unpriced + (call.costUsd === null ? made : 0),
  };
}

/** Returns the cost of all model calls in a log, including those of sub-agents and for summaries. */
export function costOf(entries: Iterable<LogEntry>): ConversationCost {
  const calls: CallCost[] = [];
  const models = new Map<string, Cost>();
  const runs = new Map<string | null, Cost>();
  let total = nothing;
  for (const entry of entries) {
    for (const call of callsOf(entry)) {
      calls.push(call);
      total = plus(total, call);
      models.set(call.model, plus(models.get(call.model) ?? nothing, call));
      runs.set(call.runId, plus(runs.get(call.runId) ?? nothing, call));
    }
  }
  return {
    total,
    models: [...models].map(([model, cost]) => ({ model, ...cost })),
    runs: [...runs].map(([runId, cost]) => ({ runId, ...cost })),
    calls,
  };
}

function callsOf(entry: LogEntry): CallCost[] {
  const used = usageOf(entry);
  if (!used) return [];
  const child = subAgentUsageOf(entry);
  const uses = child && entry.type === 'extension' ? modelUses(entry.value) : [];
  if (child && uses.length > 0)
    return uses.map((each) => ({ ...each, runId: entry.runId, subAgent: child.conversationId }));
  return [{ runId: entry.runId, ...modelOf(entry), usage: used.usage, costUsd: amountOf(used) }];
}

/** The use of one model by one sub-agent. */
type ModelUse = Omit<CallCost, 'runId'>;
const isModelUse = (value: unknown): value is ModelUse => {
  const { model, calls } = fieldsOf(value);
  return typeof model === 'string' && isCount(calls);
};

/** The use of each model by a sub-agent; empty if the entry does not contain it in a readable form. */
function modelUses(value: Json): ModelUse[] {
  const { models } = fieldsOf(value);
  if (!Array.isArray(models) || !models.every(isModelUse)) return [];
  return models.map((each) => ({ ...each, usage: readUsage(each.usage), costUsd: amountOf(each) }));
}

function modelOf(entry: LogEntry): Pick<CallCost, 'model' | 'turn'> {
  if (entry.type === 'model-reply') return { model: entry.model, turn: entry.turn };
  return { model: entry.type === 'compaction' ? (entry.model ?? SUMMARIES) : SUB_AGENTS };
}
