/**
 * What a phase answered, read before anything is done with it. Rule: a field that cannot be used is never dropped in
 * silence, since what the plugin wanted would not happen: the failure names plugin, phase and field.
 */
import type { Json, Phase } from '../../machines/index.ts';
import type { RequestPatch } from '../request.ts';
import { RequiredPluginError } from './plugin.ts';

/** What any phase may answer, by the keys that count. */
export interface PhaseAnswer {
  context?: string;
  terminate?: string;
  state?: { [key: string]: Json };
  request?: RequestPatch;
}

const isObject = (value: unknown): value is { [key: string]: unknown } =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isText = (value: unknown): boolean => typeof value === 'string';
const isSpec = (value: unknown): boolean =>
  isObject(value) && isText(value.name) && isText(value.description) && isObject(value.parameters);

interface Field {
  path: readonly [string] | readonly ['request', string];
  isFit(value: unknown): boolean;
  expected: string;
}
const FIELDS: readonly Field[] = [
  { path: ['context'], isFit: isText, expected: 'a text' },
  { path: ['terminate'], isFit: isText, expected: 'a text, the reason' },
  { path: ['request'], isFit: isObject, expected: 'an object' },
  { path: ['request', 'system'], isFit: isText, expected: 'a text' },
  {
    path: ['request', 'tools'],
    isFit: (value) => Array.isArray(value) && value.every(isSpec),
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

const came = (value: unknown): string =>
  value === null ? 'null' : Array.isArray(value) ? 'a list that holds something else' : `${typeof value}`;

const at = (answer: unknown, path: Field['path']): unknown =>
  path.reduce<unknown>((value, key) => (isObject(value) ? value[key] : undefined), answer);

/** Throws where a field is of another kind than the phase may answer. */
export function readAnswer(plugin: string, phase: Phase, answer: PhaseAnswer): PhaseAnswer {
  for (const { path, isFit, expected } of FIELDS) {
    const value = at(answer, path);
    if (value === undefined || isFit(value)) continue;
    const field = path.join('.');
    throw new RequiredPluginError(
      `the plugin ${JSON.stringify(plugin)} answered ${phase} with a ${field} that cannot be used: expected ${expected}, got ${came(value)}; leave ${field} out to change nothing`,
    );
  }
  return answer;
}
