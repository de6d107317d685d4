/**
 * Reads what a plugin says of a tool call. Rule: an answer of no known form blocks the call, like a check that failed;
 * nothing a plugin returns can pass for an allowance by mistake.
 */
import type { GateValue, Json } from '../../machines/index.ts';
import { toJson } from '../json.ts';

export interface Verdict {
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

function suspension(given: unknown): Extract<GateValue, { kind: 'suspend' }> {
  const { reason, payload } = (given ?? {}) as { reason?: unknown; payload?: unknown };
  if (typeof reason !== 'string') throw new TypeError('suspend needs a reason, a text');
  const suspend = { kind: 'suspend' as const, reason };
  return payload === undefined ? suspend : { ...suspend, payload: json('the payload of suspend', payload) };
}

/** Nothing where the plugin has nothing to say. Throws where it says something that is no verdict. */
export function readVerdict(said: unknown): Verdict | undefined {
  if (said === undefined || said === null) return undefined;
  const expected = 'a check answers nothing, { block }, { suspend } or { args }';
  if (typeof said !== 'object') throw new TypeError(`${expected}, not a ${typeof said}`);
  const keys = Object.keys(said);
  if (keys.length > 0 && !keys.some((key) => KEYS.includes(key))) throw new TypeError(`${expected}, not ${keys[0]}`);
  const { block, suspend, args } = said as { block?: unknown; suspend?: unknown; args?: unknown };
  if (block !== undefined && typeof block !== 'string') throw new TypeError('block needs a reason, a text');
  return {
    ...(block !== undefined && { block }),
    ...(suspend !== undefined && { suspend: suspension(suspend) }),
    ...(args !== undefined && { args: json('args', args) }),
  };
}
