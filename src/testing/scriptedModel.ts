/**
 * A model whose replies are written down. Rule: one reply a call, in order; a call that nobody wrote a reply for is an
 * error that no retry hides.
 */
import { type Model, ModelError, type ModelPart, type ModelRequest, type Prices } from '../models/model.ts';

/**
 * Text stands for a reply of one text that ends the turn. `parts` are streamed as they are, `finish` included: without
 * one the attempt fails as a real stream would. `delayMs` passes before each part.
 */
export type ScriptedReply = string | { readonly parts: readonly ModelPart[]; readonly delayMs?: number };

/** A reply, a failure of the attempt, or what to answer to this very request. */
export type Script = readonly (ScriptedReply | ModelError | ((request: ModelRequest) => ScriptedReply))[];

export interface ScriptedModelOptions {
  prices?: Prices;
  contextWindow?: number;
}

export interface ScriptedModel extends Model {
  /** The requests so far, the unexpected ones included. */
  readonly calls: readonly ModelRequest[];
  /** How many replies nobody has asked for yet. */
  readonly remaining: number;
}

const partsOf = (reply: ScriptedReply): readonly ModelPart[] =>
  typeof reply === 'string'
    ? [
        { type: 'text-delta', text: reply },
        { type: 'finish', reason: 'stop' },
      ]
    : reply.parts;

/** Waits, or rejects with the signal's reason as soon as it is aborted. */
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

/** `stream` throws ModelError `unexpected-call` where the script has no reply left; the message names the request. */
export function scriptedModel(replies: Script, options: ScriptedModelOptions = {}): ScriptedModel {
  const calls: ModelRequest[] = [];
  const left = [...replies];
  return {
    id: 'scripted',
    ...options,
    calls,
    get remaining() {
      return left.length;
    },
    stream(request, { signal }) {
      calls.push(request);
      const next = left.shift();
      if (next === undefined) throw unexpected(calls.length, replies.length, request);
      if (next instanceof ModelError) return failed(next);
      return streamed(typeof next === 'function' ? next(request) : next, signal);
    },
  };
}

function unexpected(call: number, written: number, { messages }: ModelRequest): ModelError {
  const last = JSON.stringify(messages.at(-1) ?? null).slice(0, 200);
  return new ModelError({
    code: 'unexpected-call',
    retryable: false,
    message: `the script has ${written} replies and this is call ${call}; its last message is ${last}. Write a reply for it, or find out why the model is called again.`,
  });
}
