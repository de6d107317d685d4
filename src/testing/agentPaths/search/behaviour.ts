/**
 * How a call behaves, as the real agent showed it: what its gate said, how it ended, behind which decision. Rule: what was
 * seen is kept as the charts are told it; calls that the charts cannot tell apart are of one kind.
 */
import type {
  Completion,
  EffectRequest,
  EffectValue,
  Json,
  RoundCall,
  Settings,
} from '../../../../machines/internal.ts';
import type { Frame } from '../filledWindow.ts';
import type { During } from '../moves.ts';

type OfCall = Extract<EffectRequest, { kind: 'gate' | 'tool' | 'afterTool' }>;

/** One call with its arguments. */
export interface Behaviour {
  readonly tool: string;
  readonly args: Json;
  readonly call: RoundCall;
  readonly idempotent: boolean;
  /** By request: kind, suspension, decision. */
  readonly answers: ReadonlyMap<string, EffectValue>;
}

/** What the agent does around its calls. */
export interface Surroundings {
  /** What its phases say, by turn. */
  readonly phases: ReadonlyMap<string, EffectValue>;
  readonly frame: Frame;
  /** Turns before which a plugin wants earlier messages summed up. */
  readonly wanted: ReadonlySet<number>;
}

/** All that is known of an agent before its paths are looked for. */
export interface AgentModel {
  readonly settings: Settings;
  readonly surroundings: Surroundings;
  readonly behaviours: readonly Behaviour[];
  readonly idempotent: ReadonlySet<string>;
}

const isOfCall = (request: EffectRequest): request is OfCall =>
  request.kind === 'gate' || request.kind === 'tool' || request.kind === 'afterTool';

function keyOf(request: OfCall): string {
  if (request.kind === 'afterTool') return `afterTool ${request.outcome}`;
  return `${request.kind} ${request.suspension} ${request.decision?.action ?? ''}`;
}

export const phaseKey = (request: Extract<EffectRequest, { kind: 'phase' }>): string =>
  `${request.phases.join(' ')} ${request.turn} ${request.termination ?? ''}`;

/** What the agent is in the middle of while this request is open, as far as a move can come meanwhile. */
export function isDuring(request: EffectRequest, during: During): boolean {
  switch (request.kind) {
    case 'phase':
      return during !== 'storing' && request.phases.includes(during);
    case 'gate':
      return during === 'beforeToolExecute';
    case 'afterTool':
      return during === 'afterToolExecute';
    case 'commit':
      return during === 'storing' && request.boundary === 'RunFinished';
    default:
      return false;
  }
}

/** The turn that a look at the window comes before. */
export const turnOf = (request: Extract<EffectRequest, { kind: 'context' }>): number =>
  Number(/\/t(\d+)\/[^/]*$/.exec(request.id)?.[1] ?? 0);

/** Writes down what is answered while a script is played. */
export class Recorder {
  readonly phases = new Map<string, EffectValue>();
  readonly wanted = new Set<number>();
  readonly #calls = new Map<string, RoundCall>();
  readonly #answers = new Map<string, Map<string, EffectValue>>();
  readonly #starts = new Map<string, number>();

  readonly take = (request: EffectRequest, completion: Completion): void => {
    if (completion.type !== 'effect.done') return;
    const { value } = completion;
    if (value.kind === 'reply') for (const call of value.calls) this.#calls.set(call.callId, call);
    if (request.kind === 'phase' && !this.phases.has(phaseKey(request))) this.phases.set(phaseKey(request), value);
    if (request.kind === 'context' && value.kind === 'context' && value.compactable) this.wanted.add(turnOf(request));
    if (!isOfCall(request)) return;
    const answers = this.#answers.get(request.callId) ?? new Map<string, EffectValue>();
    this.#answers.set(request.callId, answers);
    const key = keyOf(request);
    if (!answers.has(key)) answers.set(key, value);
    this.#starts.set(request.callId, (this.#starts.get(request.callId) ?? 0) + 1);
  };

  call(callId: string): RoundCall | undefined {
    return this.#calls.get(callId);
  }

  /** The first gate's word on the call. */
  gate(callId: string): EffectValue | undefined {
    return this.#answers.get(callId)?.get('gate 0 ');
  }

  answers(callId: string): ReadonlyMap<string, EffectValue> {
    return this.#answers.get(callId) ?? new Map();
  }

  /** How the tool's last execution ended. */
  end(callId: string): EffectValue | undefined {
    return [...this.answers(callId)].filter(([key]) => key.startsWith('tool ')).at(-1)?.[1];
  }
}

const PLAIN: Readonly<Record<OfCall['kind'], EffectValue>> = {
  gate: { kind: 'allow' },
  tool: { kind: 'succeeded', content: [{ type: 'text', text: 'done' }] },
  afterTool: { kind: 'shown', content: [{ type: 'text', text: 'done' }] },
};

/** What this call will be answered: as it was seen, else as it was seen under the same decision, else the plainest. */
export function answerFor({ answers }: Behaviour, request: OfCall): EffectValue {
  const seen = answers.get(keyOf(request));
  if (seen) return seen;
  if (request.kind === 'afterTool') return PLAIN.afterTool;
  const { kind, suspension, decision } = request;
  for (let at = suspension - 1; at > 0; at--) {
    const before = answers.get(`${kind} ${at} ${decision?.action ?? ''}`);
    if (before) return before;
  }
  return PLAIN[kind];
}

/** What the charts can see of a value. */
function sightOf(value: EffectValue): Json {
  switch (value.kind) {
    case 'allow':
      return ['allow', value.by ?? null, value.args !== undefined];
    case 'block':
    case 'refuse':
      return [value.kind, value.code];
    case 'suspend':
      return ['suspend', value.reason === 'permission'];
    case 'succeeded':
      return ['succeeded', value.writes ?? {}];
    case 'erred':
      return ['erred', value.code, value.retry !== undefined];
    case 'pending':
      return ['pending', value.within ?? false];
    default:
      return [value.kind];
  }
}

/** Equal for calls that the charts cannot tell apart. `byReading`: they can by `readOnly`. */
export function kindOf({ call, idempotent, answers }: Behaviour, byReading: boolean): string {
  const seen = [...answers].map(([key, value]) => [key, sightOf(value)]).sort();
  const { gated, readOnly } = call;
  // What cannot run is not asked about.
  if (call.refused) return JSON.stringify(['refused']);
  return JSON.stringify([gated, byReading && readOnly, idempotent, seen]);
}

/** What a call does to the round that it is in: calls of one role stand for each other beside a second one. */
export function roleOf({ call, answers }: Behaviour): string {
  if (call.refused) return 'refused';
  const seen = [...answers.values()].map(({ kind }) => kind);
  if (seen.includes('pending')) return 'waits';
  if (seen.includes('suspend')) return 'asks';
  if (seen.includes('block') || seen.includes('refuse')) return 'refused';
  const writes = [...answers.values()].flatMap((value) => (value.kind === 'succeeded' ? (value.writes ?? []) : []));
  return writes.length > 0 ? `runs ${JSON.stringify(writes)}` : 'runs';
}
