/**
 * The contract between the runtime and a model. Invariant: a model yields parts and ends with `finish`. Anything else
 * (an exception, an end without `finish`) is a failed attempt. The run retries, never the model.
 */
import type { FinishReason, Json, Message, ModelSettings, Usage } from '../../machines/vocabulary.ts';
import { type ImageLimits, imageLimitsOf } from '../content/imageFormat.ts';
import { ConfigurationError, RunchartError } from '../errors.ts';
import { check, flag, nonEmptyText, number, numberOrInfinity, object, strings, type Validator } from '../validation.ts';

/** USD per million tokens. */
export interface Prices {
  /** For input that is neither read from a cache nor written to one. */
  input: number;
  /** For output, reasoning included. */
  output: number;
  /** For input that the provider reads from its cache. Default: the price of input. */
  cachedInput?: number;
  /** For input that the provider writes to its cache. Default: the price of input. */
  cacheWrite?: number;
}

/** A tool as a model receives it. */
export interface ToolSpec {
  /** The name that the model calls. */
  name: string;
  /** The description for the model. */
  description: string;
  /** JSON Schema of the arguments. */
  parameters: Json;
}

/** The settings of the request hold in place of the model's own. */
export interface ModelRequest extends ModelSettings {
  /** The system text; empty if there is none. */
  system: string;
  /** The messages so far. Every tool call in them has exactly one result. */
  messages: readonly Message[];
  /** The tools that the model may call. */
  tools: readonly ToolSpec[];
  /** The JSON Schema of the final answer, for a model with `nativeOutput`. */
  output?: { name: string; schema: Json };
}

/** A part of a streamed reply. A reply ends with `finish`. */
export type ModelPart =
  | { type: 'text-delta' | 'reasoning-delta'; text: string }
  /** `callId` and `name` come with the first piece at the latest, if the provider names them. */
  | { type: 'tool-call-delta'; index: number; callId?: string; name?: string; text: string }
  /** A complete call. `args` is the JSON text as the model wrote it. */
  | { type: 'tool-call'; callId: string; name: string; args: string; extra?: Json }
  /** `extra`: the data that the provider needs back with this reply. The assistant message contains it unchanged. */
  | { type: 'finish'; reason: FinishReason; usage?: Partial<Usage>; extra?: Json }
  | { type: 'diagnostic'; code: string; detail?: Json }
  /** Marks the text of this reply as a refusal. */
  | { type: 'refusal' };

/** A language model: one attempt at a streamed reply. Retries and time limits belong to the run. */
export interface Model {
  /** The name of the model in logs, costs and messages. */
  readonly id: string;
  /** The provider's name in traces, by the GenAI conventions of OpenTelemetry: `openai`, `anthropic`, `gcp.gemini`, … */
  readonly provider?: string;
  /** The most tokens of input and output in one call. Default: unknown, and the window is not watched. */
  readonly contextWindow?: number;
  /** The most output tokens of one reply. */
  readonly maxOutputTokens?: number;
  /**
   * The model itself enforces a JSON Schema on final answers. For other models, and where it refuses, the system text describes the
   * schema.
   */
  readonly nativeOutput?: boolean;
  /** Prices in USD per million tokens. Without them costs are unknown. */
  readonly prices?: Prices;
  /** Limits for images. Default: 2,000 pixels on the longer side and 4.5 MiB encoded. */
  readonly imageLimits?: ImageLimits;
  /**
   * Media types besides text, such as `image/*` and `application/pdf`. A message with another one is refused, and other parts of
   * the history become texts that name them. Without the list the model receives every part.
   */
  readonly accepts?: readonly string[];
  /** Values that must never be logged (the API key). */
  readonly secrets?: readonly string[];
  /** Makes one attempt: yields parts and ends with `finish`, or throws a ModelError. It must obey `context.signal`. */
  stream(request: ModelRequest, context: StreamContext): AsyncIterable<ModelPart>;
}

/** The key under which an adapter keeps the serialized messages of a conversation between requests. */
export const WRITTEN: unique symbol = Symbol('written');
/** The first messages of a conversation, serialized for a model. */
export interface WrittenMessages {
  /** The model that the text is for. */
  readonly model: string;
  /** The messages that the text contains. */
  readonly messages: readonly Message[];
  /** The text of the messages for the model. */
  readonly text: string;
}
/** The second argument of a model's `stream`. */
export interface StreamContext {
  /** Aborted when nobody needs the reply any more. */
  signal: AbortSignal;
  /** The number of this attempt, from 1. */
  attempt: number;
  /** One for each conversation. A map by messages would keep it alive until the next full garbage collection. */
  [WRITTEN]?: { last?: WrittenMessages };
}

/** A stream whose parts come several at a time may deliver them together, which saves a promise for each part. */
export const BATCHES: unique symbol = Symbol('batches');
export interface PartBatches {
  /** Undefined at the end. Rejects like the stream. */
  next(): Promise<readonly ModelPart[] | undefined>;
  /** Called when no further parts are needed. */
  close(): void;
}
export interface BatchedParts extends AsyncIterable<ModelPart> {
  [BATCHES](): PartBatches;
}

/** The code of a failed attempt. docs/errors.md says which codes are retried. */
export type ModelErrorCode =
  | 'auth'
  | 'rate-limit'
  | 'quota'
  | 'bad-request'
  | 'not-found'
  | 'server'
  | 'network'
  | 'timeout'
  | 'stream-incomplete'
  | 'bad-frame'
  | 'content-type'
  | 'content-filter'
  | (string & {});

const RETRYABLE: ReadonlySet<string> = new Set([
  'rate-limit',
  'server',
  'network',
  'timeout',
  'stream-incomplete',
  'bad-frame',
  'content-type',
  'frame-too-large',
  'provider',
]);

/** Codes that no status makes retryable. */
const FINAL: ReadonlySet<string> = new Set(['auth', 'quota', 'bad-request', 'not-found', 'content-filter']);
const passes = (status: number): boolean => [408, 409, 425, 429].includes(status) || status >= 500;

/**
 * The reason of a failed attempt. Delays are in milliseconds. The default of `retryable` follows from the code, and
 * for a model's own codes from the HTTP status.
 */
export class ModelError extends RunchartError {
  /** The HTTP status of the server's answer, if there was one. */
  readonly status?: number;
  /** Whether another attempt can succeed. */
  readonly retryable: boolean;
  /** The pause that the server demands, in milliseconds. */
  readonly retryAfterMs?: number;

  constructor(o: {
    code: ModelErrorCode;
    message?: string;
    status?: number;
    retryable?: boolean;
    retryAfterMs?: number;
    cause?: unknown;
  }) {
    super(o.code, o.message ?? `the model call failed (${o.code})`, o.cause === undefined ? {} : { cause: o.cause });
    const byStatus = o.status !== undefined && !FINAL.has(o.code) && passes(o.status);
    this.retryable = o.retryable ?? (RETRYABLE.has(o.code) || byStatus);
    if (o.status !== undefined) this.status = o.status;
    if (o.retryAfterMs !== undefined) this.retryAfterMs = o.retryAfterMs;
  }
}

/** Formats of calls in the text of a reply. Their parser is loaded on demand. */
export const textCallFormats = ['tool_call', 'function', 'fence', 'json'] as const;
export type TextCallFormat = (typeof textCallFormats)[number];

/** Other fields of models and prices are allowed. */
const open = { refuses: () => false };
// Marked as pure, so that a bundle which calls no model is without them.
export const modelValidator = /* @__PURE__ */ (() =>
  object(
    {
      id: nonEmptyText,
      contextWindow: numberOrInfinity(0),
      maxOutputTokens: numberOrInfinity(0),
      secrets: strings,
      nativeOutput: flag,
      accepts: strings,
    },
    open,
  ))();
export const pricesValidator = /* @__PURE__ */ (() => {
  const price: Validator = { ...number(0), expected: 'a finite number of USD of at least 0' };
  return object({ input: price, output: price, cachedInput: price, cacheWrite: price }, open);
})();

/** Throws ConfigurationError for a model that cannot be called, or whose cost cannot be computed. */
export function checkModel(model: Model): void {
  const { id, prices } = model;
  if (id === undefined) throw new ConfigurationError('a model needs an id: it names the model in the log');
  const name = `the model ${String(id)}: `;
  check(name, model, modelValidator, name);
  imageLimitsOf(model);
  if (prices === undefined) return;
  check(`${name}prices`, prices, pricesValidator);
  if (prices.input === undefined || prices.output === undefined) {
    throw new ConfigurationError(`${name}prices must hold input and output; leave prices out where they are not known`);
  }
}
