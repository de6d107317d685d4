/**
 * How a call behaves, as the real agent showed it: what its gate said, how it ended, behind which decision. Rule: what was
 * seen is kept as the charts are told it; calls that the charts cannot tell apart are of one kind.
 */
import {
  type Completion,
  canonical,
  type EffectRequest,
  type EffectValue,
  type Json,
  type RoundCall,
  type Settings,
} from '../../../../machines/internal.ts';
import type { During } from '../../../scripts/moves.ts';
import type { Frame } from '../filledWindow.ts';

type OfCall = Extract<EffectRequest, { kind: 'gate' | 'tool' | 'afterTool' }>;

/** One call with its arguments. */
export interface Behaviour {
  readonly tool: string;
  readonly args: Json;
  readonly call: RoundCall;
  readonly idempotent: boolean;
  /** By request: kind, suspension, decision. */
  readonly answers: ReadonlyMap<string, EffectValue>;
  /** Arguments that a person may put in place of the call's own. */
  readonly edits: readonly Json[];
}

/** What the agent does around its calls. */
export interface Surroundings {
  /** What its phases say, by turn. */
  readonly phases: ReadonlyMap<string, EffectValue>;
  readonly frame: Frame;
  /** Turns before which a plugin wants earlier messages summed up. */
  readonly wanted: ReadonlySet<number>;
  /** Texts that its schema takes as a final answer, with what it makes of them; missing where any answer will do. */
  readonly answers?: ReadonlyMap<string, Json>;
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

/** `own`: the call's own arguments; what a person puts in their place is part of the key. */
function keyOf(request: OfCall, own?: Json): string {
  if (request.kind === 'afterTool') return `afterTool ${request.outcome}`;
  const { kind, suspension, decision } = request;
  const isOther = decision?.action === 'edit' && (own === undefined || canonical(decision.args) !== canonical(own));
  const edited = isOther ? ` ${canonical(decision.args)}` : '';
  return `${kind} ${suspension} ${decision?.action ?? ''}${edited}`;
}

export const phaseKey = (request: Extract<EffectRequest, { kind: 'phase' }>): string =>
  `${request.phases.join(' ')} ${request.turn} ${request.termination ?? ''}`;

/** What the agent is in the middle of while this request is open, as far as a move can come meanwhile. */
export function isDuring(request: EffectRequest, during: During): boolean {
  switch (request.kind) {
    case 'phase':
      return request.phases.some((phase) => phase === during);
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

const EDITED = /^\w+ \d+ edit ./;

/** Writes down what is answered while a script is played. */
export class Recorder {
  readonly phases = new Map<string, EffectValue>();
  readonly wanted = new Set<number>();
  /** Final answers are held to a schema. */
  isJudged = false;
  /** The schema has taken or refused the final answer. */
  isAnswered = false;
  /** What the schema made of the final answer. */
  answer: Json | undefined;
  readonly #calls = new Map<string, RoundCall>();
  readonly #answers = new Map<string, Map<string, EffectValue>>();
  readonly #starts = new Map<string, number>();

  readonly take = (request: EffectRequest, completion: Completion): void => {
    if (completion.type !== 'effect.done') return;
    const { value } = completion;
    if (value.kind === 'reply') for (const call of value.calls) this.#calls.set(call.callId, call);
    if (value.kind === 'reply' && value.judged) this.isJudged = true;
    if (isOfSchema(value)) this.isAnswered = true;
    if (value.kind === 'answer') this.answer = value.value;
    if (request.kind === 'phase' && !this.phases.has(phaseKey(request)))
      this.phases.set(phaseKey(request), isOfSchema(value) ? { kind: 'done' } : value);
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

  /** `own`: the arguments of the call. */
  answers(callId: string, own?: Json): ReadonlyMap<string, EffectValue> {
    const answers = this.#answers.get(callId) ?? new Map<string, EffectValue>();
    const suffix = own === undefined ? undefined : ` ${canonical(own)}`;
    const named = (key: string): string =>
      suffix !== undefined && EDITED.test(key) && key.endsWith(suffix) ? key.slice(0, -suffix.length) : key;
    return new Map([...answers].map(([key, value]) => [named(key), value]));
  }

  /** How the tool's last execution ended. */
  end(callId: string): EffectValue | undefined {
    return [...this.answers(callId)].filter(([key]) => key.startsWith('tool ')).at(-1)?.[1];
  }
}

/** Said of the final answer, and not by a plugin. */
export const isOfSchema = (value: EffectValue): boolean =>
  value.kind === 'answer' || (value.kind === 'continue' && value.why === 'output');

const PLAIN: Readonly<Record<OfCall['kind'], EffectValue>> = {
  gate: { kind: 'allow' },
  tool: { kind: 'succeeded', content: [{ type: 'text', text: 'done' }] },
  afterTool: { kind: 'shown', content: [{ type: 'text', text: 'done' }] },
};

/** What this call was seen to be answered: now, or under the same decision earlier. */
export function expectedOf({ answers, args }: Behaviour, request: OfCall): EffectValue | undefined {
  const seen = answers.get(keyOf(request, args));
  if (seen || request.kind === 'afterTool') return seen;
  for (let at = request.suspension - 1; at > 0; at--) {
    const before = answers.get(keyOf({ ...request, suspension: at }, args));
    if (before) return before;
  }
  return undefined;
}

/** What this call will be answered: as it was seen, else the plainest. */
export const answerFor = (behaviour: Behaviour, request: OfCall): EffectValue =>
  expectedOf(behaviour, request) ?? PLAIN[request.kind];

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

/** The answers for its own arguments. What a person puts in their place has stories of its own. */
const answersForOwn = ({ answers }: Behaviour): [key: string, value: EffectValue][] =>
  [...answers].filter(([key]) => !EDITED.test(key));

/** Equal for calls that the charts cannot tell apart. `byReading`: they can by `readOnly`. */
export function kindOf(behaviour: Behaviour, byReading: boolean): string {
  const { call, idempotent } = behaviour;
  const seen = answersForOwn(behaviour)
    .map(([key, value]) => [key, sightOf(value)])
    .sort();
  const { gated, readOnly } = call;
  // What cannot run is not asked about.
  if (call.refused) return JSON.stringify(['refused']);
  return JSON.stringify([gated, byReading && readOnly, idempotent, seen]);
}

/** What a call does to the round that it is in: calls of one role stand for each other beside a second one. */
export function roleOf(behaviour: Behaviour): string {
  if (behaviour.call.refused) return 'refused';
  const values = answersForOwn(behaviour).map(([, value]) => value);
  const seen = values.map(({ kind }) => kind);
  if (seen.includes('pending')) return 'waits';
  if (seen.includes('suspend')) return 'asks';
  if (seen.includes('block') || seen.includes('refuse')) return 'refused';
  const writes = values.flatMap((value) => (value.kind === 'succeeded' ? (value.writes ?? []) : []));
  return writes.length > 0 ? `runs ${JSON.stringify(writes)}` : 'runs';
}
