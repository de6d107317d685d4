/**
 * A model with scripted replies. Invariant: one reply for each call, in order. A call without a reply is an error
 * that no retry hides.
 */
import { ConfigurationError } from '../errors.ts';
import { type Model, ModelError, type ModelPart, type ModelRequest, type Prices } from '../models/model.ts';
import { beginning } from '../printable.ts';
import { check, checkOptionsOf, choice, display, isList, isObject, number, object, text } from '../validation.ts';

/**
 * A string is a reply of one text that ends the turn. `parts` are streamed unchanged, `finish` included: without one
 * the attempt fails like a real stream. `delayMs` passes before each part.
 */
export type ScriptedReply = string | { readonly parts: readonly ModelPart[]; readonly delayMs?: number };

/** A reply, a failure of the attempt, or a function that returns the reply to this request. */
export type Script = readonly (ScriptedReply | ModelError | ((request: ModelRequest) => ScriptedReply))[];

/** The options of `scriptedModel`. */
export interface ScriptedModelOptions {
  /** Prices in USD per million tokens. */
  prices?: Prices;
  /** The most tokens of input and output in one call. */
  contextWindow?: number;
}

/** A model for tests: it gives scripted replies and records the requests. */
export interface ScriptedModel extends Model {
  /** The requests so far, with unexpected ones. */
  readonly calls: readonly ModelRequest[];
  /** The number of unused replies. */
  readonly remaining: number;
}

const partsOf = (reply: ScriptedReply): readonly ModelPart[] =>
  typeof reply === 'string'
    ? [
        { type: 'text-delta', text: reply },
        { type: 'finish', reason: 'stop' },
      ]
    : reply.parts;

/** Waits. Rejects with the signal's reason as soon as it is aborted. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop);
      resolve();
    }, ms);
    signal.addEventListener('abort', stop, { once: true });
  });
}

async function* streamed(reply: ScriptedReply, signal: AbortSignal): AsyncGenerator<ModelPart> {
  const delayMs = typeof reply === 'string' ? undefined : reply.delayMs;
  for (const part of partsOf(reply)) {
    if (delayMs !== undefined) await pause(delayMs, signal);
    yield part;
  }
}

// biome-ignore lint/correctness/useYield: an attempt that fails yields nothing.
async function* failed(error: ModelError): AsyncGenerator<ModelPart> {
  throw error;
}

const reply = object({ parts: { expected: 'a list of parts', test: isList }, delayMs: number(0) });
const modelOptions = object({ prices: object({}, { refuses: () => false }), contextWindow: number(1) });
/** The required fields of a part, by its type. */
const PARTS: Readonly<Record<ModelPart['type'], readonly string[]>> = {
  'text-delta': ['text'],
  'reasoning-delta': ['text'],
  'tool-call-delta': ['text'],
  'tool-call': ['callId', 'name', 'args'],
  finish: ['reason'],
  diagnostic: ['code'],
  refusal: [],
};
const finishReasons = choice('stop', 'tool-calls', 'length', 'content-filter', 'pause');

/** Throws ConfigurationError, with the position, for an invalid reply. */
function checkReply(place: string, scripted: unknown): void {
  if (typeof scripted === 'string') return;
  if (!isObject(scripted) || scripted.parts === undefined)
    throw new ConfigurationError(
      `${place} must be a string, { parts, delayMs? }, a ModelError or a function, got ${display(scripted)}`,
    );
  check(place, scripted, reply, `${place}: `);
  for (const [index, part] of (scripted.parts as readonly unknown[]).entries()) {
    const name = `${place}: parts[${index}]`;
    if (!isObject(part)) throw new ConfigurationError(`${name} must be an object, got ${display(part)}`);
    check(`${name}.type`, part.type ?? null, choice(...Object.keys(PARTS)));
    for (const field of PARTS[part.type as ModelPart['type']]) check(`${name}.${field}`, part[field] ?? null, text);
    if (part.type === 'finish') check(`${name}.reason`, part.reason, finishReasons);
  }
}

/**
 * Creates a model for tests, which gives the scripted replies in their order. `stream` throws ModelError `unexpected-call`
 * if the script has no reply left. The message names the request.
 */
export function scriptedModel(replies: Script, options: ScriptedModelOptions = {}): ScriptedModel {
  if (!isList(replies)) throw new ConfigurationError(`scriptedModel needs a list of replies, got ${display(replies)}`);
  checkOptionsOf('scriptedModel', options, modelOptions);
  for (const [index, each] of replies.entries())
    if (typeof each !== 'function' && !(each instanceof ModelError))
      checkReply(`scriptedModel: reply ${index + 1}`, each);
  const calls: ModelRequest[] = [];
  const unused = [...replies];
  return {
    id: 'scripted',
    ...options,
    calls,
    get remaining() {
      return unused.length;
    },
    stream(request, { signal }) {
      calls.push(request);
      const next = unused.shift();
      if (next === undefined) throw unexpected(calls.length, replies.length, request);
      if (next instanceof ModelError) return failed(next);
      if (typeof next !== 'function') return streamed(next, signal);
      const returned = next(request);
      checkReply(`scriptedModel: what the function for call ${calls.length} returned`, returned);
      return streamed(returned, signal);
    },
  };
}

function unexpected(call: number, written: number, { messages }: ModelRequest): ModelError {
  const last = beginning(JSON.stringify(messages.at(-1) ?? null), 200);
  return new ModelError({
    code: 'unexpected-call',
    retryable: false,
    message: `the script has ${written} replies and this is call ${call}; its last message is ${last}. Write a reply for it, or find out why the model is called again.`,
  });
}
