/**
 * What the agent does by itself between two moves: gates, phases, looks at the window, commits. Rule: it is answered in the
 * order in which it is asked, and a move may come into the middle of it.
 */
import type { EffectRequest, EffectValue, LogEntry, LogState, Transcript } from '../../../../machines/internal.ts';
import { pendingCalls } from '../../../conversation/run.ts';
import { PHASES } from '../../../plugins/plugin.ts';
import type { ChartActor } from '../../../runtime/interpreter/chartActor.ts';
import type { ChartStatus } from '../../../runtime/status.ts';
import { predictedUse } from '../filledWindow.ts';
import type { During } from '../moves.ts';
import { answerFor, type Behaviour, isDuring, phaseKey, type Surroundings, turnOf } from './behaviour.ts';
import { keyOf, placeOf } from './place.ts';

/** Something that the agent did by itself, and in whose middle a move can come. */
export interface Passage {
  /** Where the charts stood. */
  readonly place: string;
  /** The state of the run, or of the conversation where none is under way. */
  readonly state: string;
  /** Calls wait for a person. */
  readonly waits: boolean;
  /** A message is not taken any more: it begins the next run. */
  readonly isOver: boolean;
}

const DURINGS: readonly During[] = [...PHASES, 'storing'];
const BY_ITSELF: ReadonlySet<EffectRequest['kind']> = new Set(['gate', 'phase', 'afterTool', 'context']);

export const duringsOf = (request: EffectRequest): readonly During[] =>
  DURINGS.filter((during) => isDuring(request, during));

const stateOf = ({ value }: ChartActor): string =>
  typeof value === 'string' ? value : (Object.keys(value as object)[0] ?? '');

export const passageOf = (root: ChartActor, chart: ChartStatus, logState: LogState): Passage => ({
  place: keyOf(placeOf(root)),
  state: stateOf(root.children.get('run') ?? root),
  waits: pendingCalls(logState).length > 0,
  isOver: chart.settledStatus(logState) !== undefined,
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
  readonly surroundings: Surroundings;
  readonly transcript: Transcript;
  readonly entries: readonly LogEntry[];
  readonly logState: LogState;
}

/** As the agent was seen to answer; `behaviour` is that of the call it is about. */
export function ownAnswer(
  request: EffectRequest,
  behaviour: Behaviour | undefined,
  { surroundings, transcript, entries, logState }: Scope,
): EffectValue {
  switch (request.kind) {
    case 'gate':
    case 'afterTool':
      return behaviour ? answerFor(behaviour, request) : { kind: 'allow' };
    case 'phase':
      return phaseAnswer(surroundings, request);
    case 'context': {
      const { frame } = surroundings;
      const wanted = surroundings.wanted.has(turnOf(request));
      return predictedUse(request, { transcript, entries, logState, frame, wanted });
    }
    default:
      return { kind: 'committed' };
  }
}
