/**
 * Reads what a host sends: decisions and settlements. Rule: nothing from outside reaches a chart unparsed; what is
 * malformed is refused with what was expected, what came and what to do, and nothing is changed.
 */
import type { Decision, Json } from '../machines/index.ts';
import { InvalidDecisionError } from './errors.ts';
import { toJson } from './json.ts';

const BYTES_MAX = 1_048_576;
const ACTIONS: readonly string[] = ['approve', 'deny', 'edit', 'answer'];

function hasProto(value: unknown, depth = 0): boolean {
  if (typeof value !== 'object' || value === null || depth > 64) return false;
  if (Object.hasOwn(value, '__proto__')) return true;
  return Object.values(value).some((child) => hasProto(child, depth + 1));
}

function refuse(expected: string): never {
  throw new InvalidDecisionError(`a decision needs ${expected}; nothing was changed`);
}

function textField(given: { [key: string]: Json }, key: string): string | undefined {
  const value = given[key];
  if (value === undefined) return undefined;
  return typeof value === 'string' ? value : refuse(`${key} to be a text`);
}

/** A decision as it may enter the log. Throws InvalidDecisionError. */
export function readDecision(input: unknown): Decision {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) refuse('to be an object');
  if (hasProto(input)) refuse('no key __proto__, at any depth');
  const json = toJson(input);
  if (json.kind === 'refused') refuse(`to be JSON (${json.why})`);
  if (JSON.stringify(json.value).length > BYTES_MAX) refuse(`to be at most ${BYTES_MAX} bytes`);
  const given = json.value as { [key: string]: Json };
  const { callId, suspension, action } = given;
  if (typeof callId !== 'string' || callId === '') refuse('callId, the id of the call');
  const known = typeof suspension === 'number' && Number.isInteger(suspension) && suspension >= 1;
  if (suspension !== undefined && !known) refuse('suspension to be a whole number from 1 on');
  if (typeof action !== 'string' || !ACTIONS.includes(action)) refuse(`action, one of ${ACTIONS.join(', ')}`);
  const by = textField(given, 'by');
  const base = { callId, ...(known && { suspension }), ...(by !== undefined && { by }) };
  switch (action) {
    case 'deny': {
      const reason = textField(given, 'reason');
      return reason === undefined ? { ...base, action } : { ...base, action, reason };
    }
    case 'edit':
      return given.args === undefined ? refuse('args, the new arguments') : { ...base, action, args: given.args };
    case 'answer':
      return Object.hasOwn(given, 'payload')
        ? { ...base, action, payload: given.payload ?? null }
        : refuse('payload, the answer');
    default:
      return { ...base, action: 'approve' };
  }
}
