/**
 * The outcome of a phase effect: `REDUCERS` has one reducer for each phase, which folds the answer of a plugin into it. Rule: the
 * order of the plugins decides, so the first termination, continuation and block count.
 */
import type { Json, PhaseValue, RunPhase } from '../../machines/internal.ts';
import { toJson } from '../json.ts';
import type { PhaseAnswer } from './readAnswer.ts';

type ValueOf<Kind extends PhaseValue['kind']> = Extract<PhaseValue, { kind: Kind }>;

export interface PhaseOutcome {
  terminate?: ValueOf<'terminate'>;
  compact?: ValueOf<'compact'>;
  continuation?: string;
  writes?: { [key: string]: Json };
}

type Reducer = (outcome: PhaseOutcome, answer: PhaseAnswer, plugin: string) => PhaseOutcome;

const ignore: Reducer = (outcome) => outcome;

const terminate: Reducer = (outcome, answer, by) =>
  outcome.terminate || typeof answer.terminate !== 'string'
    ? outcome
    : { ...outcome, terminate: { kind: 'terminate', by, reason: answer.terminate } };

const continueRun: Reducer = (outcome, answer) => {
  const continuation = outcome.continuation ?? answer.continue;
  return continuation === undefined ? outcome : { ...outcome, continuation };
};

/** The instructions of all plugins, and the first block. */
const prepareSummary: Reducer = (outcome, answer, by) => {
  const instructions = [outcome.compact?.instructions, answer.instructions].filter(Boolean).join('\n');
  const block = outcome.compact?.block ?? (answer.block === undefined ? undefined : { by, reason: answer.block });
  return { ...outcome, compact: { kind: 'compact', ...(instructions && { instructions }), ...(block && { block }) } };
};

/** A copy of the state, because the plugin may change its own object later. */
const writeState: Reducer = (outcome, { state }) => {
  const json = toJson(state ?? {});
  if (json.kind !== 'parsed') return outcome;
  return { ...outcome, writes: { ...outcome.writes, ...(json.value as { [key: string]: Json }) } };
};

export const REDUCERS: Record<RunPhase, Reducer> = {
  runStart: writeState,
  stepStart: terminate,
  beforeInference: terminate,
  afterInference: terminate,
  stepEnd: terminate,
  naturalEnd: continueRun,
  preCompact: prepareSummary,
  runEnd: ignore,
};
