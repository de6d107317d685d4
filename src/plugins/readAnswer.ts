/**
 * Validates the answers of plugins to phases and to checks of tool calls. Rule: an unusable field is an error that names the
 * plugin, the phase and the field. A verdict of an unknown shape blocks the call, so no mistake counts as an allowance.
 */
import type { GateValue, Json, Phase } from '../../machines/internal.ts';
import type { Content } from '../content/content.ts';
import { bytesOf, ownArgsJson, toJson } from '../json.ts';
import { type ResultLimits, reasonText } from '../tools/toolResult.ts';
import { isLiteral, isObject } from '../validation.ts';
import type { RequestPatch } from './plugin.ts';

/** Ends the run as Error: a required plugin failed, or a plugin returned an unusable answer. */
export class RequiredPluginError extends Error {
  readonly code = 'plugin_error';
}

/** The fields of an answer, over all phases. */
export interface PhaseAnswer {
  context?: string;
  terminate?: string;
  continue?: string;
  instructions?: string;
  compact?: true | string;
  block?: string;
  state?: { [key: string]: Json };
  request?: RequestPatch;
  result?: Content;
}

const isText = (value: unknown): boolean => typeof value === 'string';
const isState = (value: unknown): boolean => {
  const json = toJson(value);
  return json.kind === 'parsed' && isObject(json.value);
};
const isSpec = (value: unknown): boolean =>
  isObject(value) && isText(value.name) && isText(value.description) && isObject(value.parameters);

const IN_STEPS: readonly Phase[] = ['stepStart', 'beforeInference', 'afterInference', 'stepEnd'];

interface Field {
  path: readonly [string] | readonly ['request', string];
  isFit(value: unknown): boolean;
  expected: string;
  /** The phases that may use the field. By default all phases. */
  phases?: readonly Phase[];
}
const FIELDS: readonly Field[] = [
  { path: ['context'], isFit: isText, expected: 'a text' },
  { path: ['terminate'], isFit: isText, expected: 'a text, the reason', phases: IN_STEPS },
  { path: ['continue'], isFit: isText, expected: 'a text, what the model is told', phases: ['naturalEnd'] },
  { path: ['instructions'], isFit: isText, expected: 'a text, what matters in a summary', phases: ['preCompact'] },
  {
    path: ['compact'],
    isFit: (value) => value === true || isText(value),
    expected: 'true, or a text, what matters in the summary',
    phases: ['stepStart', 'beforeInference'],
  },
  { path: ['block'], isFit: isText, expected: 'a text, the reason', phases: ['preCompact'] },
  { path: ['state'], isFit: isState, expected: 'an object of keys and JSON values', phases: ['runStart'] },
  {
    path: ['result'],
    isFit: (value) => isText(value) || Array.isArray(value),
    expected: 'a text or a list of parts',
    phases: ['afterToolExecute'],
  },
  { path: ['request'], isFit: isObject, expected: 'an object', phases: ['runStart', ...IN_STEPS] },
  { path: ['request', 'system'], isFit: isText, expected: 'a text' },
  {
    path: ['request', 'tools'],
    isFit: (value) => Array.isArray(value) && [...value].every(isSpec),
    expected: 'a list of { name, description, parameters }',
  },
  {
    path: ['request', 'maxOutputTokens'],
    isFit: (value) => Number.isInteger(value) && (value as number) > 0,
    expected: 'a positive whole number',
  },
  {
    path: ['request', 'temperature'],
    isFit: (value) => Number.isFinite(value) && (value as number) >= 0,
    expected: 'a number that is not negative',
  },
];

function typeNameOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list that holds something else';
  const json = toJson(value);
  return json.kind === 'refused' ? `a value that is no JSON: ${json.why}` : typeof value;
}

const at = (answer: unknown, path: Field['path']): unknown =>
  path.reduce<unknown>((value, key) => (isObject(value) ? value[key] : undefined), answer);

/** Returns the answer. Throws if a field has the wrong type, or belongs to another phase. */
export function readAnswer(plugin: string, phase: Phase, answer: PhaseAnswer): PhaseAnswer {
  for (const { path, isFit, expected: form, phases = [phase] } of FIELDS) {
    const value = at(answer, path);
    const has = phases.includes(phase);
    if (value === undefined || (has && isFit(value))) continue;
    const field = path.join('.');
    const expected = has ? form : `it in ${phases.join(', ')} only`;
    throw new RequiredPluginError(
      `the plugin ${JSON.stringify(plugin)} answered ${phase} with a ${field} that cannot be used: expected ${expected}, got ${typeNameOf(value)}; leave ${field} out to change nothing`,
    );
  }
  return answer;
}

interface Verdict {
  block?: string;
  suspend?: Extract<GateValue, { kind: 'suspend' }>;
  args?: Json;
}
const KEYS: readonly string[] = ['block', 'suspend', 'args'];

function json(what: string, value: unknown): Json {
  const read = toJson(value);
  if (read.kind === 'refused') throw new TypeError(`${what} is no JSON: ${read.why}`);
  return read.value;
}

/** The limits are the same as for a tool that suspends its call. */
function suspension(answer: unknown, limits: ResultLimits): Extract<GateValue, { kind: 'suspend' }> {
  const { reason, payload } = (answer ?? {}) as { reason?: unknown; payload?: unknown };
  if (typeof reason !== 'string') throw new TypeError('suspend needs a reason, a text');
  const suspend = { kind: 'suspend' as const, reason: reasonText(reason, limits) };
  if (payload === undefined) return suspend;
  const value = json('the payload of suspend', payload);
  if (bytesOf(JSON.stringify(value)) > limits.resultBytes) {
    throw new RangeError(`the payload of suspend is longer than ${limits.resultBytes} bytes`);
  }
  return { ...suspend, payload: value };
}

/** Undefined for an empty answer. Throws if the answer is no verdict. */
export function readVerdict(answer: unknown, limits: ResultLimits): Verdict | undefined {
  if (answer === undefined || answer === null) return undefined;
  const expected = 'a check answers nothing, { block }, { suspend } or { args }';
  if (typeof answer !== 'object') throw new TypeError(`${expected}, not a ${typeof answer}`);
  const { block, suspend, args } = answer as { block?: unknown; suspend?: unknown; args?: unknown };
  if (block !== undefined && typeof block !== 'string') throw new TypeError('block needs a reason, a text');
  if (block === undefined && suspend === undefined) {
    const strange = Object.keys(answer).find((key) => !KEYS.includes(key));
    if (strange !== undefined) throw new TypeError(`${expected}, not ${strange}`);
    // An instance of a class may have its fields in the prototype.
    if (args === undefined && !isLiteral(answer))
      throw new TypeError(`${expected}, not a list or an instance of a class`);
  }
  return {
    ...(block !== undefined && { block }),
    ...(suspend !== undefined && { suspend: suspension(suspend, limits) }),
    ...(args !== undefined && { args: ownArgsJson(json('args', args)) }),
  };
}
