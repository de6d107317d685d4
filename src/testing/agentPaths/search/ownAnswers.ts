/**
 * What the agent does by itself between two moves: gates, phases, looks at the window, commits. Rule: it is answered in the
 * order in which it is asked, and a move may come into the middle of it.
 */
import type { EffectRequest, EffectValue, LogEntry, LogState, Settings } from '../../../../machines/internal.ts';
import { pendingCalls } from '../../../conversation/run.ts';
import { PHASES } from '../../../plugins/plugin.ts';
import type { ChartActor } from '../../../runtime/interpreter/chartActor.ts';
import type { During } from '../../../scripts/moves.ts';
import type { EffectAnswer } from '../../chartPaths/scriptedJournal.ts';
import { predictedUse } from '../filledWindow.ts';
import { answerFor, type Behaviour, isDuring, phaseKey, type Surroundings, turnOf } from './callBehaviour.ts';
import { type Sight, sightOf } from './chartPlace.ts';
import type { PredictedLog } from './predictedLog.ts';

/** How far a call is. */
export interface CallCourse {
  /** It has a result, and never runs again. */
  readonly isOver: boolean;
  /** What its future depends on, if it has one. */
  readonly facts: readonly unknown[];
  /** How its result came about. */
  readonly code: string | undefined;
}

/** The course of each call of a log, by call id. A call that has no result, or one that is unknown, may run again. */
export function coursesOf({ calls, unsettled }: LogState): ReadonlyMap<string, CallCourse> {
  const courses = new Map<string, CallCourse>();
  for (const record of calls.values()) {
    const { callId, status, settled, suspension, ran, late, decisions, used, code } = record;
    const isOver = status === 'ended' && settled !== 'retry' && !unsettled.has(callId);
    const decided = [...decisions].map(([number, { action }]) => [number, action, used.has(number)]);
    courses.set(callId, { isOver, facts: [status, settled, suspension, ran, late, decided], code });
  }
  return courses;
}

/** Something that the agent did by itself, and in whose middle a move can come. */
export interface Passage {
  /** Where the charts stood. */
  readonly sight: Sight;
  /** The state of the run, or of the conversation where none is under way. */
  readonly state: string;
  readonly courses: ReadonlyMap<string, CallCourse>;
  /** Calls wait for a person. */
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

/** What is answered now; nothing where a move is to come first. */
export function nextByItself(
  requests: readonly EffectRequest[],
  during: During | undefined,
): { next: EffectRequest | undefined; isHeld: boolean } {
  const waits = (request: EffectRequest): boolean => during !== undefined && isDuring(request, during);
  const commit = requests.find((request) => request.kind === 'commit' && !waits(request));
  const first = requests.find(({ kind }) => BY_ITSELF.has(kind));
  return { next: commit ?? (first && !waits(first) ? first : undefined), isHeld: requests.some(waits) };
}

/** As it was heard at this turn; a summary is heard of at any turn as at the one where it was looked at. */
export function phaseAnswer({ phases }: Surroundings, request: Extract<EffectRequest, { kind: 'phase' }>): EffectValue {
  const known = phases.get(phaseKey(request));
  if (known || !request.phases.includes('preCompact')) return known ?? { kind: 'done' };
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

/** As the agent was seen to answer; `behaviour` is that of the call it is about. */
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

/** What plugins and hooks answer: they may continue one run so often, and no more. */
function pluginsAnswer(
  request: Extract<EffectRequest, { kind: 'phase' }>,
  { settings, surroundings, log }: Scope,
): EffectValue {
  const answer = phaseAnswer(surroundings, request);
  if (answer.kind !== 'continue') return answer;
  const times = continuationsIn(log.entries, request.runId, 'stop_hook');
  return times < settings.policies.maxStopContinues ? answer : { kind: 'done' };
}

/** What becomes of a final answer that is held to a schema; undefined where nothing is, or where a plugin goes on. */
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

/** How often this run was continued: to mend its final answer, or by a plugin or hook. */
export const continuationsIn = (entries: readonly LogEntry[], runId: string, why: 'output' | 'stop_hook'): number =>
  entries.filter((entry) => entry.runId === runId && entry.type === 'continuation' && entry.why === why).length;
