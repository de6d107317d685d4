/**
 * COMPACTION: earlier messages become a summary, so that a request fits the context window
 * (docs/internals/lifecycle.md, COMPACTION). A run enters it before a model call and continues after each of its ends.
 * Invariant: one entry replaces one range. If the model gives no summary, the log contains a notice, and the range is
 * skipped. An interrupted compaction logs nothing.
 */
import { setup } from 'xstate';
import type { UsageCost } from '../counters.ts';
import {
  attemptsOf,
  failureOf,
  fallsBack,
  firstAttempt,
  type ModelCallContext,
  type ModelCallInput,
  retries,
  stemOf,
  waitIsOver,
} from '../modelCall.machine.ts';
import type { EffectDone, EffectRequest, PhaseValue, SummaryValue, TimerElapsed } from '../ports.ts';
import { ask, type Chart, type ConfigOf, type FinalEvent, type Guards, log, update } from '../verbs.ts';
import type { NewEntry } from '../vocabulary.ts';
import { verbs } from '../xstateVerbs.ts';

export interface CompactionInput extends ModelCallInput {
  /** The last entry whose message goes into the summary. */
  upToSeq: number;
  /** A plugin or hook takes part in the phase `preCompact`. */
  heard: boolean;
  /** The instructions of the plugin or person that requested the compaction. */
  instructions?: string;
}

export interface CompactionContext extends ModelCallContext {
  upToSeq: number;
  heard: boolean;
  /** The required contents of the summary, from the requester and from hooks. */
  instructions: string | undefined;
  /** The usage of the model for its summary. */
  spent: UsageCost | undefined;
}

export type CompactionEvent = EffectDone | TimerElapsed;
/** The output of `compactionMachine`. */
export interface CompactionOutput {
  /** The fate of the earlier messages. */
  kind: 'compacted' | 'dropped' | 'blocked';
  /** The usage and cost of the summary. */
  spent: UsageCost | undefined;
}
type Args = { context: CompactionContext; event: CompactionEvent };

const preCompactAnswer = ({ event }: Args): Extract<PhaseValue, { kind: 'compact' }> | undefined =>
  event.type === 'effect.done' && event.value.kind === 'compact' ? event.value : undefined;

const summaryIn = ({ event }: Args): SummaryValue | undefined =>
  event.type === 'effect.done' && event.value.kind === 'summary' ? event.value : undefined;

function askPhase({ context }: Args): EffectRequest | undefined {
  const { runId, turn, heard } = context;
  return heard ? { kind: 'phase', id: `${stemOf(context)}/hear`, runId, turn, phases: ['preCompact'] } : undefined;
}

function askSummary({ context }: { context: CompactionContext }): EffectRequest {
  const { runId, attempts, upToSeq, instructions } = context;
  const { attempt, model } = attempts;
  const id = `${stemOf(context)}/summary/${attempt}`;
  return { kind: 'summary', id, runId, attempt, model, upToSeq, ...(instructions !== undefined && { instructions }) };
}

function takeInstructions(args: Args): Partial<CompactionContext> {
  const all = [args.context.instructions, preCompactAnswer(args)?.instructions].filter((each) => each !== undefined);
  return { instructions: all.length > 0 ? all.join('\n') : undefined };
}

/** The usage of a model counts even if its summary cannot be used. */
function countSummary(args: Args): Partial<CompactionContext> {
  const summary = summaryIn(args);
  if (summary) return { spent: { usage: summary.usage, costUsd: summary.costUsd } };
  const { event } = args;
  return { spent: event.type === 'effect.done' && event.value.kind === 'failed' ? event.value.spent : undefined };
}

function compactionEntries(args: Args): NewEntry[] {
  const { runId, upToSeq } = args.context;
  const summary = summaryIn(args);
  if (!summary) return [];
  const { text, usage, costUsd, model } = summary;
  return [{ runId, type: 'compaction', upToSeq, summary: text, usage, costUsd, model }];
}

const DROPPED = '[Earlier messages were removed to make room. They could not be summed up.]';

/** The request fits without the earlier messages, although no summary replaces them. */
function droppedEntries({ context, event }: Args): NewEntry[] {
  const { runId, upToSeq, spent } = context;
  const { code, message } = failureOf(event);
  const kept = event.type === 'effect.done' && event.value.kind === 'failed' ? event.value.kept : undefined;
  const text = `Earlier messages could not be summed up and were left out (${code}: ${message}).`;
  return [
    { runId, type: 'compaction', upToSeq, summary: kept ? `${DROPPED}\n\n${kept}` : DROPPED, ...spent },
    { runId, type: 'notice', code: 'compaction_failed', text },
  ];
}

function blockedEntries(args: Args): NewEntry[] {
  const { by, reason } = preCompactAnswer(args)?.block ?? { by: '', reason: '' };
  const text = `${by} kept earlier messages from being summed up: ${reason}`;
  return [{ runId: args.context.runId, type: 'notice', code: 'compaction_blocked', text }];
}

const guards = {
  retries,
  fallsBack,
  waitIsOver,
  nobodyHears: ({ context }: Args) => !context.heard,
  blocked: (args: Args) => preCompactAnswer(args)?.block !== undefined,
  summedUp: (args: Args) => summaryIn(args) !== undefined,
} satisfies Guards<CompactionContext, CompactionEvent>;

const compactionSetup = () =>
  setup({
    types: {} as {
      context: CompactionContext;
      events: CompactionEvent;
      input: CompactionInput;
      output: CompactionOutput;
    },
    actions: verbs<CompactionContext, CompactionEvent>(),
    guards,
  });

const config = {
  id: 'COMPACTION',
  context: ({ input }) => ({
    ...input,
    within: '/compaction',
    attempts: firstAttempt,
    instructions: input.instructions,
    spent: undefined,
  }),
  output: ({ context, event }) => ({
    kind: (event as FinalEvent<CompactionOutput['kind']>).output,
    spent: context.spent,
  }),
  initial: 'Hearing',
  states: {
    // Hooks may name the required contents of the summary, or block the compaction.
    Hearing: {
      entry: ask(askPhase),
      always: { guard: 'nobodyHears', target: 'Summarizing' },
      on: {
        'effect.done': [
          { guard: 'blocked', target: 'Blocked', actions: log(blockedEntries) },
          { target: 'Summarizing', actions: update(takeInstructions) },
        ],
      },
    },
    Summarizing: {
      initial: 'attempting',
      states: attemptsOf(askSummary),
      on: {
        'effect.done': [
          {
            guard: 'summedUp',
            target: 'Compacted',
            actions: [log(compactionEntries), update(countSummary)],
          },
          { target: 'Dropped', actions: [update(countSummary), log(droppedEntries)] },
        ],
      },
    },
    Compacted: { type: 'final', output: 'compacted' },
    Dropped: { type: 'final', output: 'dropped' },
    Blocked: { type: 'final', output: 'blocked' },
  },
} satisfies ConfigOf<typeof compactionSetup>;

export const compactionChart: Chart = { id: config.id, config, implementations: { guards, actors: {} } };
/** The chart COMPACTION: it makes space in the context window. */
export const compactionMachine = /* @__PURE__ */ (() => compactionSetup().createMachine(config))();
