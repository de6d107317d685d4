/**
 * What a conversation has cost, as a fold of its log: by call of a model, by run, by model, in all. Rule: a price that is not known is
 * never counted as 0; a sum with one in it is null, and what is known of it stands beside it.
 */
import { addUsage, type LogEntry, type Usage, type UsageCost, usageOf, zeroUsage } from '../../machines/internal.ts';

export interface Cost {
  /** Of models. */
  calls: number;
  usage: Usage;
  /** USD; null where a price is unknown. */
  costUsd: number | null;
  /** USD of the calls whose price is known. */
  knownUsd: number;
  /** Calls whose price is unknown. */
  unpriced: number;
}

export interface CallCost {
  runId: string | null;
  /** Of the run; missing where it was no turn of this conversation. */
  turn?: number;
  model: string;
  usage: Usage;
  /** USD; null where the price is unknown. */
  costUsd: number | null;
}

export interface ConversationCost {
  total: Cost;
  /** In the order of their first calls. */
  models: readonly (Cost & { model: string })[];
  runs: readonly (Cost & { runId: string | null })[];
  calls: readonly CallCost[];
}

/** What stands for the models of sub-agents: the log says what each used, and not how much of it by which model. */
const SUB_AGENTS = 'sub-agents';
/** Of a summary that does not say which model wrote it. */
const SUMMARIES = 'summaries';

const nothing: Cost = { calls: 0, usage: zeroUsage.usage, costUsd: 0, knownUsd: 0, unpriced: 0 };

/** A price that is no amount, in a log of another origin, is none. */
const amountOf = ({ costUsd }: UsageCost): number | null =>
  typeof costUsd === 'number' && Number.isFinite(costUsd) && costUsd >= 0 ? costUsd : null;

function plus(cost: Cost, call: CallCost): Cost {
  const { usage, costUsd } = addUsage(cost, call);
  const { calls, knownUsd, unpriced } = cost;
  const known = call.costUsd ?? 0;
  return {
    calls: calls + 1,
    usage,
    costUsd,
    knownUsd: knownUsd + known,
    unpriced: unpriced + (call.costUsd === null ? 1 : 0),
  };
}

/** What all calls of models in a log have cost, those of sub-agents and those for summaries included. */
export function costOf(entries: Iterable<LogEntry>): ConversationCost {
  const calls: CallCost[] = [];
  const models = new Map<string, Cost>();
  const runs = new Map<string | null, Cost>();
  let total = nothing;
  for (const entry of entries) {
    const used = usageOf(entry);
    if (!used) continue;
    const call: CallCost = { runId: entry.runId, ...modelOf(entry), usage: used.usage, costUsd: amountOf(used) };
    calls.push(call);
    total = plus(total, call);
    models.set(call.model, plus(models.get(call.model) ?? nothing, call));
    runs.set(call.runId, plus(runs.get(call.runId) ?? nothing, call));
  }
  return {
    total,
    models: [...models].map(([model, cost]) => ({ model, ...cost })),
    runs: [...runs].map(([runId, cost]) => ({ runId, ...cost })),
    calls,
  };
}

function modelOf(entry: LogEntry): Pick<CallCost, 'model' | 'turn'> {
  if (entry.type === 'model-reply') return { model: entry.model, turn: entry.turn };
  return { model: entry.type === 'compaction' ? (entry.model ?? SUMMARIES) : SUB_AGENTS };
}
