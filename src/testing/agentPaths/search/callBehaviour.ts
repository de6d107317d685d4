/**
 * The behaviour of a call, as observed on the real agent: the answer of its gate, its end, and the decision before it.
 * Invariant: answers are recorded as the charts receive them. Calls that the charts cannot distinguish have the same
 * kind.
 */
import {
  type Completion,
  canonical,
  type EffectRequest,
  type EffectValue,
  type Json,
  type RoundCall,
  type Settings,
  type StoredPart,
} from '../../../../machines/internal.ts';
import type { During } from '../../../scripts/moves.ts';
import type { Frame } from '../filledWindow.ts';
import { lengthClass } from './predictedLog.ts';

type OfCall = Extract<EffectRequest, { kind: 'gate' | 'tool' | 'afterTool' }>;

/** One call with its arguments. */
export interface Behaviour {
  readonly tool: string;
  readonly args: Json;
  readonly call: RoundCall;
  readonly idempotent: boolean;
  /** Answers by request: kind, suspension, decision. */
  readonly answers: ReadonlyMap<string, EffectValue>;
  /** Arguments that a person may use instead of the call's own. */
  readonly edits: readonly Json[];
}

/** The agent's behaviour outside its calls. */
export interface Surroundings {
  /** The answers of its phases, by turn. */
  readonly phases: ReadonlyMap<string, EffectValue>;
  readonly frame: Frame;
  /** The turns before which a plugin requests a summary of earlier messages. */
  readonly wanted: ReadonlySet<number>;
  /** Texts that its schema accepts as a final answer, with the parsed values. Undefined without a schema. */
  readonly answers?: ReadonlyMap<string, Json>;
}

/** The observed behaviour of an agent, before the search for paths. */
export interface AgentModel {
  readonly settings: Settings;
  readonly surroundings: Surroundings;
  readonly behaviours: readonly Behaviour[];
  readonly idempotent: ReadonlySet<string>;
}

const isOfCall = (request: EffectRequest): request is OfCall =>
  request.kind === 'gate' || request.kind === 'tool' || request.kind === 'afterTool';

/** `own`: the call's own arguments. A person's edit of them is part of the key. */
function keyOf(request: OfCall, own?: Json): string {
  if (request.kind === 'afterTool') return `afterTool ${request.outcome}`;
  const { kind, suspension, decision } = request;
  const isOther = decision?.action === 'edit' && (own === undefined || canonical(decision.args) !== canonical(own));
  const edited = isOther ? ` ${canonical(decision.args)}` : '';
  return `${kind} ${suspension} ${decision?.action ?? ''}${edited}`;
}

export const phaseKey = (request: Extract<EffectRequest, { kind: 'phase' }>): string =>
  `${request.phases.join(' ')} ${request.turn} ${request.termination ?? ''}`;

/** Returns true if a move can interrupt the activity of this open request. */
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

/** Returns the turn after a measurement of the window. */
export const turnOf = (request: Extract<EffectRequest, { kind: 'context' }>): number =>
  Number(/\/t(\d+)\/[^/]*$/.exec(request.id)?.[1] ?? 0);

const EDITED = /^\w+ \d+ edit ./;

/** Records the answers while a script is played. */
export class Recorder {
  readonly phases = new Map<string, EffectValue>();
  readonly wanted = new Set<number>();
  /** A schema validates final answers. */
  isJudged = false;
  /** The schema has accepted or rejected the final answer. */
  isAnswered = false;
  /** The value that the schema returned for the final answer. */
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

  /** Returns the first answer of the gate for the call. */
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

  /** Returns the end of the tool's last execution. */
  end(callId: string): EffectValue | undefined {
    return [...this.answers(callId)].filter(([key]) => key.startsWith('tool ')).at(-1)?.[1];
  }
}

/** Returns true if the final answer's schema, not a plugin, gave this value. */
export const isOfSchema = (value: EffectValue): boolean =>
  value.kind === 'answer' || (value.kind === 'continue' && value.why === 'output');

const PLAIN: Readonly<Record<OfCall['kind'], EffectValue>> = {
  gate: { kind: 'allow' },
  tool: { kind: 'succeeded', content: [{ type: 'text', text: 'done' }] },
  afterTool: { kind: 'shown', content: [{ type: 'text', text: 'done' }] },
};

/** Returns the observed answer for this call: for this request, or earlier under the same decision. */
export function expectedOf({ answers, args }: Behaviour, request: OfCall): EffectValue | undefined {
  const seen = answers.get(keyOf(request, args));
  if (seen || request.kind === 'afterTool') return seen;
  for (let at = request.suspension - 1; at > 0; at--) {
    const before = answers.get(keyOf({ ...request, suspension: at }, args));
    if (before) return before;
  }
  return undefined;
}

/** Returns the answer for this call: the observed one, or else the plainest. */
export const answerFor = (behaviour: Behaviour, request: OfCall): EffectValue =>
  expectedOf(behaviour, request) ?? PLAIN[request.kind];

/** Returns the parts of a value that the charts can read. */
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
      return ['succeeded', value.writes ?? {}, lengthClass(charactersIn(value.content))];
    case 'erred':
      return ['erred', value.code, value.retry !== undefined];
    case 'pending':
      return ['pending', value.within ?? false];
    default:
      return [value.kind];
  }
}

const charactersIn = (content: readonly StoredPart[]): number =>
  content.reduce((sum, part) => sum + (part.type === 'text' ? part.text.length : 0), 0);

/** Returns the answers for the call's own arguments. Edited arguments have their own stories. */
const answersForOwn = ({ answers }: Behaviour): [key: string, value: EffectValue][] =>
  [...answers].filter(([key]) => !EDITED.test(key));

/**
 * Returns equal texts for calls that the charts cannot distinguish. `byReading`: they distinguish calls by `readOnly`.
 */
export function kindOf(behaviour: Behaviour, byReading: boolean): string {
  const { call, idempotent } = behaviour;
  const seen = answersForOwn(behaviour)
    .map(([key, value]) => [key, sightOf(value)])
    .sort();
  const { gated, readOnly } = call;
  // A call that cannot run has no gate.
  if (call.refused) return JSON.stringify(['refused']);
  return JSON.stringify([gated, byReading && readOnly, idempotent, seen]);
}

/** Returns the effect of a call on its round. Calls with the same role can replace each other in a round. */
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
