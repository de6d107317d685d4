/** The conditions of each arrow of RUN (docs/internals/lifecycle.md, State Machine). */
import type { Phase } from '../../machines/index.ts';
import { legsOf } from './anyChart.invariants.ts';
import type { ChartInvariant, Trace } from './edgeTrace.ts';
import { hold } from './invariants.ts';
import { type Facts, factsOf, inputOf, json, limitOf } from './runFacts.ts';

export const cameAs = ({ event }: Trace, type: string): boolean => event?.type === type;
/** An arrow, and the condition for it on events and facts. */
type Arrow = readonly [leg: string, when: (trace: Trace, facts: Facts) => boolean];
const hasReply = ({ reply }: Facts): boolean => reply !== undefined;
export const isEmpty = (trace: Trace, { reply }: Facts): boolean =>
  reply?.empty === true && inputOf(trace).settings.policies.onEmptyReply !== 'accept';
/**
 * Returns true if a reply without calls does not end the run, because the model continues or has another message to
 * read.
 */
const goesOn = (trace: Trace, facts: Facts): boolean =>
  facts.reply?.finish === 'pause' ||
  isEmpty(trace, facts) ||
  (facts.steers.length > 0 && facts.reply?.finish !== 'length') ||
  facts.settled > 0;
const isPlain = (facts: Facts): boolean => facts.made.length === 0 && !facts.terminated;
const isFull = (trace: Trace, { context }: Facts): boolean => {
  const { exhaust } = inputOf(trace).settings.context ?? {};
  return (
    context !== undefined &&
    exhaust !== undefined &&
    (context.prunable?.used ?? context.used) / context.limit >= exhaust
  );
};
/** Returns true if a reply was cut, and a summary of earlier messages frees space for the rest. */
const isCutShort = (trace: Trace, { reply }: Facts): boolean =>
  reply?.finish === 'length' && trace.answer?.kind === 'context' && trace.answer.compactable !== undefined;
const waits = (trace: Trace): boolean => inputOf(trace).settings.policies.onPartialSuspend === 'wait';
/** Returns for each call of the last round whether it still waits. */
const inRound = ({ round, suspended }: Facts): boolean[] =>
  round.map((callId) => suspended.some((each) => each.callId === callId));
const isQuiet = (trace: Trace, ...phases: Phase[]): boolean =>
  phases.every((phase) => !inputOf(trace).settings.phases[phase]);
/** Returns true if the run was resumed with undecided calls only, whatever the end of the previous run. */
const isUndecided = (trace: Trace, { suspended, steers }: Facts): boolean =>
  inputOf(trace).trigger.kind !== 'message' && suspended.length > 0 && steers.length === 0;
const isDone = ({ event }: Trace): boolean => event?.type === 'effect.done';
export const wasStopped = ({ event }: Trace): boolean =>
  event?.type === 'xstate.done.actor.round' &&
  (event as unknown as { output: { kind: string } }).output.kind === 'stopped';

const ARROWS: readonly Arrow[] = [
  ['RunStart → CommitUser', (trace) => isQuiet(trace, 'runStart') || isDone(trace)],
  ['CommitUser → ResumeReplay0', isDone],
  ['ResumeReplay0 → CommitReplay0', (_, { replayed, stillOpen }) => replayed > 0 && !stillOpen],
  ['ResumeReplay0 → LoopTop', (trace, facts) => facts.replayed === 0 && !facts.stillOpen && !isUndecided(trace, facts)],
  ['ResumeReplay0 → Suspended', (trace, facts) => facts.replayed === 0 && isUndecided(trace, facts)],
  [
    'CommitReplay0 → LoopTop',
    (trace, { suspended, settled }) => suspended.length === 0 || (settled > 0 && !waits(trace)),
  ],
  [
    'CommitReplay0 → Suspended',
    (trace, { suspended, settled }) => suspended.length > 0 && (settled === 0 || waits(trace)),
  ],
  ['ResumeToolCall → StepPrepare', (_, { gate }) => !gate],
  [
    'StepPrepare → Terminate',
    (trace, facts) => trace.answer?.kind === 'terminate' || isFull(trace, facts) || limitOf(trace, facts) !== undefined,
  ],
  [
    'StepPrepare → LlmCall',
    (trace, facts) =>
      trace.answer?.kind !== 'terminate' && !isFull(trace, facts) && limitOf(trace, facts) === undefined,
  ],
  ['LlmCall → AfterInference', ({ answer }) => answer?.kind === 'reply'],
  [
    'AfterInference → CommitAssistant',
    (trace) => isQuiet(trace, 'afterInference', 'stepEnd') || trace.answer?.kind !== 'reply',
  ],
  [
    'CommitAssistant → Terminate',
    (trace, facts) =>
      facts.terminated ||
      (facts.made.length === 0 &&
        facts.reply?.finish === 'length' &&
        !goesOn(trace, facts) &&
        (!isCutShort(trace, facts) || limitOf(trace, facts) !== undefined)),
  ],
  ['CommitAssistant → ToolRound', (_, facts) => facts.made.length > 0 && !facts.terminated],
  [
    'CommitAssistant → LoopTop',
    (trace, facts) =>
      isPlain(facts) &&
      (goesOn(trace, facts) || trace.answer?.kind === 'continue' || isCutShort(trace, facts)) &&
      !facts.stillOpen,
  ],
  [
    'CommitAssistant → Suspended',
    (trace, facts) => isPlain(facts) && !goesOn(trace, facts) && facts.suspended.length > 0 && !facts.stillOpen,
  ],
  [
    'CommitAssistant → NaturalEnd',
    (trace, facts) =>
      isPlain(facts) &&
      hasReply(facts) &&
      !goesOn(trace, facts) &&
      trace.answer?.kind !== 'continue' &&
      (isQuiet(trace, 'naturalEnd') ||
        facts.reply?.finish !== 'stop' ||
        trace.answer?.kind === 'done' ||
        trace.answer?.kind === 'answer') &&
      facts.suspended.length === 0 &&
      !facts.stillOpen,
  ],
  [
    'ToolRound → CommitTool',
    (trace, facts) =>
      cameAs(trace, 'xstate.done.actor.round') && !wasStopped(trace) && !facts.conflict && !facts.failure,
  ],
  ['CommitTool → ResumeAfterTool', isDone],
  [
    'ResumeAfterTool → Suspended',
    (trace, facts) =>
      !facts.stillOpen && (inRound(facts).every(Boolean) || (waits(trace) && inRound(facts).some(Boolean))),
  ],
  [
    'ResumeAfterTool → LoopTop',
    (trace, facts) =>
      !facts.stillOpen && inRound(facts).some((still) => !still) && !(waits(trace) && inRound(facts).some(Boolean)),
  ],
  [
    'RunEnd → CommitFinished',
    (trace) =>
      isQuiet(trace, 'runEnd') || isDone(trace) || cameAs(trace, 'run.cancelled') || cameAs(trace, 'append.failed'),
  ],
];

export const arrowInvariants: readonly ChartInvariant[] = ARROWS.map(
  ([leg, when]): ChartInvariant => ({
    says: `run-lifecycle, State Machine: ${leg} is taken only when the document allows it`,
    holds: (trace) => {
      if (!legsOf(trace).some(([from, to]) => `${from} → ${to}` === leg)) return;
      hold(when(trace, factsOf(trace)), json({ ...factsOf(trace), event: trace.event }));
    },
  }),
);
