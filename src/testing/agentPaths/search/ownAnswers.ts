/**
 * The agent's own work between two moves: gates, phases, measurements of the window, commits. Invariant: requests are
 * answered in their order, and a move can interrupt the work.
 */
import {
  type EffectRequest,
  type EffectValue,
  isOver,
  type LogEntry,
  type LogState,
  type Settings,
} from '../../../../machines/internal.ts';
import { pendingCalls } from '../../../conversation/run.ts';
import { PHASES } from '../../../plugins/plugin.ts';
import type { ChartActor } from '../../../runtime/interpreter/chartActor.ts';
import type { During } from '../../../scripts/moves.ts';
import type { EffectAnswer } from '../../chartPaths/scriptedJournal.ts';
import { predictedUse } from '../filledWindow.ts';
import { answerFor, type Behaviour, isDuring, phaseKey, type Surroundings, turnOf } from './callBehaviour.ts';
import { type Sight, sightOf } from './chartPlace.ts';
import type { PredictedLog } from './predictedLog.ts';

/** The progress of a call. */
export interface CallCourse {
  /** The call has a result and never runs again. */
  readonly isOver: boolean;
  /** The facts that determine its future, if it has one. */
  readonly facts: readonly unknown[];
  /** The code of its result. */
  readonly code: string | undefined;
}

/**
 * Returns the progress of each call of a log, by call id. A call without a result, or with an unknown one, may run
 * again.
 */
export function coursesOf({ calls, unsettled }: LogState): ReadonlyMap<string, CallCourse> {
  const courses = new Map<string, CallCourse>();
  for (const record of calls.values()) {
    const { callId, status, settled, suspension, ran, late, decisions, used, code } = record;
    const decided = [...decisions].map(([number, { action }]) => [number, action, used.has(number)]);
    courses.set(callId, {
      isOver: isOver(record) && !unsettled.has(callId),
      facts: [status, settled, suspension, ran, late, decided],
      code,
    });
  }
  return courses;
}

/** A piece of the agent's own work that a move can interrupt. */
export interface Passage {
  /** The states of the charts. */
  readonly sight: Sight;
  /** The state of the run, or of the conversation if no run is active. */
  readonly state: string;
  readonly courses: ReadonlyMap<string, CallCourse>;
  /** Some call waits for a person. */
  readonly waits: boolean;
}

const DURINGS: readonly During[] = [...PHASES, 'storing'];
const BY_ITSELF: ReadonlySet<EffectRequest['kind']> = new Set(['gate', 'phase', 'afterTool', 'context']);

export const duringsOf = (request: EffectRequest): readonly During[] =>
  DURINGS.filter((during) => isDuring(request, during));

const stateOf = ({ value }: ChartActor): string =>
  typeof value === 'string' ? value : (Object.keys(value as object)[0] ?? '');

export const passageOf = (root: ChartActor, logState: LogState): Passage => ({
  sight: sightOf(root),
  state: stateOf(root.children.get('run') ?? root),
  courses: coursesOf(logState),
  waits: pendingCalls(logState).length > 0,
});

/** Returns the request to answer now, or undefined if a move comes first. */
export function nextByItself(
  requests: readonly EffectRequest[],
  during: During | undefined,
): { next: EffectRequest | undefined; isHeld: boolean } {
  const waits = (request: EffectRequest): boolean => during !== undefined && isDuring(request, during);
  const commit = requests.find((request) => request.kind === 'commit' && !waits(request));
  const first = requests.find(({ kind }) => BY_ITSELF.has(kind));
  return { next: commit ?? (first && !waits(first) ? first : undefined), isHeld: requests.some(waits) };
}

/**
 * Returns the observed answer at this turn. An answer to a summary applies at any turn, because it was observed at only
 * one.
 */
export function phaseAnswer({ phases }: Surroundings, request: Extract<EffectRequest, { kind: 'phase' }>): EffectValue {
  const observed = phases.get(phaseKey(request));
  if (observed || !request.phases.includes('preCompact')) return observed ?? { kind: 'done' };
  return [...phases].find(([key]) => key.startsWith('preCompact '))?.[1] ?? { kind: 'done' };
}

interface Scope {
  readonly settings: Settings;
  readonly surroundings: Surroundings;
  readonly log: PredictedLog;
  /** The text of the last reply. */
  readonly replied: string;
}

export type OwnAnswer = Exclude<EffectAnswer, { type: 'timer.elapsed' }>;

/** Returns the agent's observed answer. `behaviour` belongs to the call of the request. */
export function ownAnswer(request: EffectRequest, behaviour: Behaviour | undefined, scope: Scope): OwnAnswer {
  const { surroundings, log } = scope;
  const done = (value: EffectValue): OwnAnswer => ({ type: 'effect.done', value });
  switch (request.kind) {
    case 'gate':
    case 'afterTool':
      return done(behaviour ? answerFor(behaviour, request) : { kind: 'allow' });
    case 'phase':
      return endAnswer(request, scope) ?? done(pluginsAnswer(request, scope));
    case 'context': {
      const { frame } = surroundings;
      const wanted = surroundings.wanted.has(turnOf(request));
      return done(
        predictedUse(request, {
          transcript: log.transcript,
          entries: log.entries,
          logState: log.logState,
          frame,
          wanted,
        }),
      );
    }
    default:
      return done({ kind: 'committed' });
  }
}

/** Returns the answer of plugins and hooks. They may continue one run only a limited number of times. */
function pluginsAnswer(
  request: Extract<EffectRequest, { kind: 'phase' }>,
  { settings, surroundings, log }: Scope,
): EffectValue {
  const answer = phaseAnswer(surroundings, request);
  if (answer.kind !== 'continue') return answer;
  const times = continuationsIn(log.entries, request.runId, 'stop_hook');
  return times < settings.policies.maxStopContinues ? answer : { kind: 'done' };
}

/**
 * Returns the result of the schema for a final answer, or undefined without a schema or if a plugin continues the run.
 */
function endAnswer(request: Extract<EffectRequest, { kind: 'phase' }>, scope: Scope): OwnAnswer | undefined {
  const { settings, surroundings, log, replied } = scope;
  const { answers } = surroundings;
  if (!answers || !request.phases.includes('naturalEnd')) return undefined;
  if (pluginsAnswer(request, scope).kind === 'continue') return undefined;
  const value = answers.get(replied);
  if (value !== undefined) return { type: 'effect.done', value: { kind: 'answer', value } };
  if (continuationsIn(log.entries, request.runId, 'output') < settings.policies.limits.outputRepairs)
    return { type: 'effect.done', value: { kind: 'continue', why: 'output', text: 'again' } };
  const error = { code: 'output_invalid', message: 'the answer does not fit its schema' };
  return { type: 'effect.failed', cause: 'executor', error };
}

/** Returns how often this run was continued, either to repair its final answer or by a plugin or hook. */
export const continuationsIn = (entries: readonly LogEntry[], runId: string, why: 'output' | 'stop_hook'): number =>
  entries.filter((entry) => entry.runId === runId && entry.type === 'continuation' && entry.why === why).length;
