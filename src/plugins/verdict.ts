/**
 * Reads what a plugin says of a tool call. Rule: an answer of no known form blocks the call, like a check that failed;
 * nothing a plugin returns can pass for an allowance by mistake.
 */
import type { GateValue, Json } from '../../machines/index.ts';
import { bytesOf, ownArgsJson, toJson } from '../json.ts';
import { type ResultLimits, reasonText } from '../tools/result.ts';
import { isLiteral } from '../validation.ts';

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

/** Bounded like what a tool suspends its call with. */
function suspension(given: unknown, limits: ResultLimits): Extract<GateValue, { kind: 'suspend' }> {
  const { reason, payload } = (given ?? {}) as { reason?: unknown; payload?: unknown };
  if (typeof reason !== 'string') throw new TypeError('suspend needs a reason, a text');
  const suspend = { kind: 'suspend' as const, reason: reasonText(reason, limits) };
  if (payload === undefined) return suspend;
  const value = json('the payload of suspend', payload);
  if (bytesOf(JSON.stringify(value)) > limits.resultBytes) {
    throw new RangeError(`the payload of suspend is longer than ${limits.resultBytes} bytes`);
  }
  return { ...suspend, payload: value };
}

/** Nothing where the plugin has nothing to say. Throws where it says something that is no verdict. */
export function readVerdict(said: unknown, limits: ResultLimits): Verdict | undefined {
  if (said === undefined || said === null) return undefined;
  const expected = 'a check answers nothing, { block }, { suspend } or { args }';
  if (typeof said !== 'object') throw new TypeError(`${expected}, not a ${typeof said}`);
  const { block, suspend, args } = said as { block?: unknown; suspend?: unknown; args?: unknown };
  if (block !== undefined && typeof block !== 'string') throw new TypeError('block needs a reason, a text');
  if (block === undefined && suspend === undefined) {
    const strange = Object.keys(said).find((key) => !KEYS.includes(key));
    if (strange !== undefined) throw new TypeError(`${expected}, not ${strange}`);
    // What an instance says may stand where nobody looks.
    if (args === undefined && !isLiteral(said))
      throw new TypeError(`${expected}, not a list or an instance of a class`);
  }
  return {
    ...(block !== undefined && { block }),
    ...(suspend !== undefined && { suspend: suspension(suspend, limits) }),
    ...(args !== undefined && { args: ownArgsJson(json('args', args)) }),
  };
}
