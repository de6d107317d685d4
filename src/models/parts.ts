/**
 * Reads what a model yields and throws. Rule: a model is foreign code; a part counts only where each of its fields has
 * its type, other values of a count are nothing, and reading never throws.
 */
import type { FinishReason, Json, ModelValue, Usage } from '../../machines/internal.ts';
import { RunchartError, thrownMessage } from '../errors.ts';
import { toJson } from '../json.ts';
import type { ModelPart } from './model.ts';

export const noUsage: Usage = {
  inputTokens: 0,
  outputTokens: 0,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
};
const COUNTS = Object.keys(noUsage) as (keyof Usage)[];
const REASONS: ReadonlySet<unknown> = new Set<FinishReason>([
  'stop',
  'tool-calls',
  'length',
  'content-filter',
  'pause',
]);

const textOr = (value: unknown, other: string): string => (typeof value === 'string' ? value : other);
const isCount = (value: unknown): value is number => typeof value === 'number' && value >= 0 && Number.isFinite(value);

function json(value: unknown): Json | undefined {
  if (value === undefined) return undefined;
  const read = toJson(value);
  return read.kind === 'parsed' ? read.value : undefined;
}

function readUsage(given: unknown): Usage {
  const usage = { ...noUsage };
  if (typeof given !== 'object' || given === null) return usage;
  for (const key of COUNTS) {
    const count = (given as Partial<Record<keyof Usage, unknown>>)[key];
    if (isCount(count)) usage[key] = count;
  }
  return usage;
}

function readCall(part: Extract<ModelPart, { type: 'tool-call' }>): ModelPart | undefined {
  if (typeof part.name !== 'string') return undefined;
  const extra = json(part.extra);
  const args = typeof part.args === 'object' && part.args !== null ? JSON.stringify(json(part.args)) : part.args;
  const call = { type: part.type, callId: textOr(part.callId, ''), name: part.name, args: textOr(args, '') };
  return extra === undefined ? call : { ...call, extra };
}

function read(part: ModelPart): ModelPart | undefined {
  switch (part.type) {
    case 'text-delta':
    case 'reasoning-delta':
      return typeof part.text === 'string' ? part : undefined;
    case 'tool-call-delta':
      return typeof part.text === 'string' && (part.name === undefined || typeof part.name === 'string')
        ? part
        : undefined;
    case 'tool-call':
      return readCall(part);
    case 'finish':
      return REASONS.has(part.reason) ? { ...part, usage: readUsage(part.usage) } : undefined;
    case 'diagnostic': {
      const detail = json(part.detail);
      const code = textOr(part.code, 'model');
      return detail === undefined ? { type: part.type, code } : { type: part.type, code, detail };
    }
    case 'refusal':
      return part;
    default:
      return undefined;
  }
}

/** The part, or nothing where it is none. */
export function readPart(part: ModelPart): ModelPart | undefined {
  try {
    return read(part);
  } catch {
    return undefined;
  }
}

type Failed = Omit<Extract<ModelValue, { kind: 'failed' }>, 'random' | 'model'>;
type Fields = { retryable?: unknown; retryAfterMs?: unknown };

/** What a thrown value means for the attempt; anything but a ModelError counts as a network error. */
export function failureOf(error: unknown): Failed {
  const message = thrownMessage(error);
  try {
    const { retryable, retryAfterMs } = error as Fields;
    // A ModelError of another copy of the library is one too.
    if (!RunchartError.isRunchartError(error) || typeof retryable !== 'boolean') throw error;
    const failed = { kind: 'failed' as const, code: String(error.code), message, retryable };
    return isCount(retryAfterMs) ? { ...failed, retryAfterMs } : failed;
  } catch {
    return { kind: 'failed', code: 'network', message, retryable: true };
  }
}
