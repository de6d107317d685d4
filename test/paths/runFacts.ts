/**
 * The history of a RUN, from its events alone: replies, calls, steers and decisions. Invariant: nothing is read from
 * the context of the chart.
 */

import type { Slot, ToolCallOutput } from '../../machines/calls.ts';
import type { CompactionOutput } from '../../machines/compaction/compaction.machine.ts';
import type { UsageCost } from '../../machines/counters.ts';
import type {
  ContextValue,
  HeldDecision,
  ModelValue,
  QueuedMessage,
  RoundCall,
  RunInput,
} from '../../machines/index.ts';
import type { ToolRoundOutput } from '../../machines/tools/toolRound.machine.ts';
import { documented, enters, legsOf } from './anyChart.invariants.ts';
import type { Trace } from './edgeTrace.ts';
import { hold } from './invariants.ts';

export const inputOf = ({ input }: Trace): RunInput => input as RunInput;
export const json = (value: unknown): string => JSON.stringify(value) ?? 'undefined';
export const same = (what: string, is: unknown, due: unknown): void =>
  hold(json(is) === json(due), `${what}: ${json(is)}, and ${json(due)} is due`);
export const idsOf = (calls: readonly { call: { callId: string } }[]): string[] => calls.map(({ call }) => call.callId);

export interface Facts {
  /** The turn of the current model call, or of the last one. */
  turn: number;
  replies: number;
  emptyReplies: number;
  tokens: number;
  costUsd: number;
  unpriced: number;
  reply: Extract<ModelValue, { kind: 'reply' }> | undefined;
  /** The failures since the model call began. */
  failures: readonly Extract<ModelValue, { kind: 'failed' }>[];
  /** The calls of the last reply whose round is not finished. */
  made: readonly RoundCall[];
  /** The calls of the last round that were started or have a result. */
  round: readonly string[];
  suspended: readonly { callId: string; suspension: number }[];
  kept: RunInput['kept'];
  reruns: RunInput['reruns'];
  steers: readonly QueuedMessage[];
  decisions: readonly HeldDecision[];
  /** A gate was open before this step and is still open. */
  stillOpen: boolean;
  gate: boolean;
  /** The calls replayed and settled since the last model call began, and the number settled when its reply arrived. */
  replayed: number;
  settled: number;
  settledDuringReply: number;
  terminated: boolean;
  context: ContextValue | undefined;
  /** The steer that cut the running round. */
  cut: 'Cancelled' | 'Error' | undefined;
  /** The round that ends in this step wrote one key twice. */
  conflict: boolean;
  /** A tool failed, and the policy ends the run. */
  failure: boolean;
}

function begun(trace: Trace): Facts {
  const { suspended, kept, reruns, decisions, steers, counters } = inputOf(trace);
  return {
    turn: counters.turns,
    replies: counters.turns,
    emptyReplies: counters.emptyReplies,
    tokens: counters.tokens,
    costUsd: counters.costUsd,
    unpriced: counters.unpriced,
    reply: undefined,
    failures: [],
    made: [],
    round: [],
    suspended: suspended.map(({ call, suspension }) => ({ callId: call.callId, suspension })),
    kept,
    reruns,
    steers,
    decisions,
    stillOpen: false,
    gate: false,
    replayed: 0,
    settled: 0,
    settledDuringReply: 0,
    terminated: false,
    context: undefined,
    cut: undefined,
    conflict: false,
    failure: false,
  };
}

const factsByTrace = new WeakMap<Trace, Facts>();
/** Returns the facts after the event of this step, before the chart handles it. */
export function factsOf(trace: Trace): Facts {
  const cached = factsByTrace.get(trace);
  if (cached) return cached;
  const before = trace.before ? carriedOf(trace.before) : begun(trace);
  const facts = taken(trace, { ...before, conflict: false });
  if (trace.spawned.some(({ src }) => src === 'resumeToolCall')) facts.gate = true;
  if (enters(trace, 'LlmCall')) Object.assign(facts, { turn: facts.replies + 1, failures: [] });
  factsByTrace.set(trace, facts);
  return facts;
}

/** Returns the facts after the step. */
export function carriedOf(trace: Trace): Facts {
  const facts = { ...factsOf(trace), stillOpen: factsOf(trace).gate };
  if (enters(trace, 'LlmCall')) Object.assign(facts, { replayed: 0, settled: 0, settledDuringReply: 0 });
  if (legsOf(trace).some(([from, to]) => from === 'ResumeAfterTool' && to === 'LoopTop')) facts.kept = [];
  const delivered = trace.now('user-message').map(({ messageId }) => messageId);
  facts.steers = facts.steers.filter(({ messageId }) => !delivered.includes(messageId));
  return facts;
}

/** The usage of sub-agents and summaries counts towards the limits. */
function spentBy(facts: Facts, spent: UsageCost | undefined): Facts {
  if (!spent) return facts;
  const { usage, costUsd } = spent;
  return {
    ...facts,
    tokens: facts.tokens + usage.inputTokens + usage.outputTokens,
    costUsd: facts.costUsd + (costUsd ?? 0),
    unpriced: facts.unpriced + (costUsd === null ? 1 : 0),
  };
}

type Came = { type: string } & Record<string, unknown>;
function taken(trace: Trace, facts: Facts): Facts {
  const event = (trace.event ?? { type: '' }) as Came;
  switch (event.type) {
    case 'effect.done':
      return answered(trace, facts);
    case 'message.steered':
      return { ...facts, steers: [...facts.steers, event.message as QueuedMessage] };
    case 'message.returned':
      return { ...facts, steers: facts.steers.filter(({ messageId }) => messageId !== event.messageId) };
    case 'decision.arrived':
      return { ...facts, decisions: [...facts.decisions, event.held as HeldDecision] };
    case 'sub-agent.changed':
      return spentBy(facts, event.spent as UsageCost);
    case 'xstate.done.actor.compaction':
      return spentBy(facts, (event.output as CompactionOutput).spent);
    case 'call.suspended': {
      const { callId, suspension } = event.output as ToolCallOutput;
      return { ...facts, suspended: [...facts.suspended, { callId, suspension }] };
    }
    case 'call.settled':
      return settled(trace, facts, event.output as ToolCallOutput);
    case 'xstate.done.actor.gate':
      return { ...facts, gate: false, stillOpen: false };
    case 'xstate.done.actor.round':
      return collected(trace, facts, event.output as ToolRoundOutput);
    case 'run.cancelled':
    case 'timer.elapsed':
      return {
        ...facts,
        cut: event.type === 'timer.elapsed' && !String(event.id).endsWith('/deadline') ? facts.cut : 'Cancelled',
      };
    case 'append.failed':
    case 'effect.failed':
      return { ...facts, cut: 'Error' };
    default:
      return facts;
  }
}

function answered({ answer, before }: Trace, facts: Facts): Facts {
  switch (answer?.kind) {
    case 'reply': {
      const { empty, calls } = answer;
      return {
        ...spentBy(facts, answer),
        reply: answer,
        replies: facts.turn,
        emptyReplies: empty ? facts.emptyReplies + 1 : 0,
        made: calls,
        round: [],
        terminated: false,
        settledDuringReply: facts.settled,
      };
    }
    case 'failed':
      return { ...facts, failures: [...facts.failures, answer] };
    case 'terminate':
      return {
        ...facts,
        terminated: before !== undefined && documented('RUN', before.state.value) === 'AfterInference',
      };
    case 'context':
      return { ...facts, context: answer };
    default:
      return facts;
  }
}

const failsRun = (trace: Trace): boolean => inputOf(trace).settings.policies.onToolFailure === 'failRun';

function settled(trace: Trace, facts: Facts, output: ToolCallOutput): Facts {
  const { callId, outcome, suspension } = output;
  const others = facts.suspended.filter((each) => each.callId !== callId);
  const again = outcome === 'suspended';
  return {
    ...facts,
    suspended: again ? [...others, { callId, suspension }] : others,
    kept: facts.kept.filter(({ call }) => call.callId !== callId),
    reruns: facts.reruns.filter(({ call }) => call.callId !== callId),
    decisions: facts.decisions.filter(
      (held) => held.callId !== callId || held.suspension > suspension || (again && held.suspension === suspension),
    ),
    replayed: facts.replayed + 1,
    settled: facts.settled + (again ? 0 : 1),
    failure: facts.failure || (failsRun(trace) && output.failure !== undefined),
  };
}

function isConflict(slots: readonly Slot[]): boolean {
  const written = slots.flatMap(({ output }) => Object.entries(output?.writes ?? {}));
  return written.some(([key, value]) =>
    written.some(([other, second]) => other === key && json(second) !== json(value)),
  );
}

function collected(trace: Trace, facts: Facts, { kind, slots, steered }: ToolRoundOutput): Facts {
  const conflict = kind === 'collected' && isConflict(slots);
  if (kind === 'stopped' || conflict) return { ...facts, conflict };
  const isAnswered = ({ status, call }: Slot): boolean =>
    status === 'queued' && (steered !== undefined || call.refused !== undefined);
  const turns = slots.filter((slot) => !isAnswered(slot));
  const kept = turns.flatMap(({ call, status }, index) =>
    status === 'queued' ? [{ call, behind: turns[index - 1]?.call.callId ?? '' }] : [],
  );
  return {
    ...facts,
    made: [],
    round: slots.filter((slot) => slot.status !== 'queued' || isAnswered(slot)).map(({ call }) => call.callId),
    kept: [...facts.kept, ...kept],
    failure: facts.failure || (failsRun(trace) && slots.some(({ output }) => output?.failure)),
  };
}

/** Returns the cause of the limit that stops the run now. */
export function limitOf(trace: Trace, { replies, emptyReplies, tokens, costUsd, unpriced }: Facts): string | undefined {
  const { settings, trigger } = inputOf(trace);
  const { limits } = settings.policies;
  if (trigger.kind === 'retry') return 'end_turn';
  if (replies >= limits.turns) return 'max_turns';
  if (limits.costUsd !== false && (unpriced > 0 || costUsd >= limits.costUsd)) return 'max_budget';
  if (limits.tokens !== false && tokens >= limits.tokens) return 'max_total_tokens';
  return emptyReplies >= limits.emptyReplies ? 'empty_replies' : undefined;
}
