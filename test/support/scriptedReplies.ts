/**
 * A model that follows a script, and records its requests. Invariant: a call after the end of the script is a failure
 * that is not retried. Every request is checked for its pairing of calls and results.
 */
import { afterEach, expect } from 'vitest';
import type { Message, Model, ModelPart, ModelRequest, Prices } from '../../src/index.ts';
import { ModelError } from '../../src/index.ts';
import { pairingFaults } from '../../src/testing/pairingFaults.ts';
import { finish, t } from './replyParts.ts';

export { call, finish, t } from './replyParts.ts';

type Stream = (request: ModelRequest, context: { signal: AbortSignal; attempt: number }) => AsyncIterable<ModelPart>;
/** Text, parts (a matching `finish` is added if none is present), an error to throw, or a custom stream. */
export type Reply = string | readonly ModelPart[] | Error | Stream;

function complete(parts: readonly ModelPart[]): readonly ModelPart[] {
  if (parts.some((part) => part.type === 'finish')) return parts;
  return [...parts, finish(parts.some((part) => part.type === 'tool-call') ? 'tool-calls' : 'stop')];
}

async function* spoken(reply: string | readonly ModelPart[] | Error): AsyncGenerator<ModelPart> {
  if (reply instanceof Error) throw reply;
  yield* complete(typeof reply === 'string' ? [t(reply)] : reply);
}

/** Calls `act` when the model is called, then replies. */
export const during = (act: () => unknown, reply: string | readonly ModelPart[] | Error): Stream =>
  async function* () {
    await act();
    yield* spoken(reply);
  };

/** Streams some parts, then hangs forever and ignores the signal. */
export const deaf = (...parts: ModelPart[]): Stream =>
  async function* () {
    yield* parts;
    await new Promise(() => undefined);
  };

export interface ScriptedModel extends Model {
  readonly calls: readonly ModelRequest[];
  /** For each call, whether its signal is aborted. */
  readonly signals: readonly AbortSignal[];
  readonly attempts: readonly number[];
}

let faults: string[] = [];
afterEach(() => {
  const pairingFaults = faults;
  faults = [];
  expect(pairingFaults).toEqual([]);
});

export function scripted(
  replies: readonly Reply[],
  options: { id?: string; provider?: string; prices?: Prices; contextWindow?: number; maxOutputTokens?: number } = {},
): ScriptedModel {
  const script = [...replies];
  const calls: ModelRequest[] = [];
  const signals: AbortSignal[] = [];
  const attempts: number[] = [];
  return {
    id: 'scripted',
    ...options,
    calls,
    signals,
    attempts,
    stream(request, context) {
      calls.push({ ...request, messages: [...request.messages] });
      signals.push(context.signal);
      attempts.push(context.attempt);
      faults.push(...pairingFaults(request.messages));
      const reply = script.shift();
      if (reply === undefined) return spoken(new ModelError({ code: 'bad-request', message: 'beyond the script' }));
      return typeof reply === 'function' ? reply(request, context) : spoken(reply);
    },
  };
}

/** Messages as short lines: `user hi`, `assistant ok +c1`, `c1 text` or `c1! text` for an error. */
export const lines = (messages: readonly Message[]): string[] =>
  messages.map((message) => {
    const text = message.content.map((part) => (part.type === 'text' ? part.text : `[${part.mediaType}]`)).join('');
    if (message.role === 'tool') return `${message.callId}${message.isError ? '!' : ''} ${text}`;
    if (message.role === 'user') return `user ${text}`;
    return ['assistant', text, ...message.toolCalls.map(({ callId }) => `+${callId}`)].filter(Boolean).join(' ');
  });
