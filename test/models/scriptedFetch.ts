/**
 * A chat completions server without a network: a `fetch` that answers with the bytes of a test, split as the test
 * requires. Invariant: these bytes are plain text of this file, not made by the tested code.
 */
import type { Message } from '../../machines/vocabulary.ts';
import type { Model, ModelError, ModelPart, ModelRequest } from '../../src/models/model.ts';
import { type OpenAIOptions, openai } from '../../src/models/openai/openai.ts';

const encoder = new TextEncoder();
export const utf8 = (text: string): Uint8Array => encoder.encode(text);

/** One chunk of choice 0. */
export const delta = (fields: object | null, finish: string | null = null) => ({
  choices: [{ index: 0, delta: fields, finish_reason: finish }],
});
export const textDelta = (content: string) => delta({ content });
/** A chunk with tool call pieces. */
export const callDelta = (...calls: object[]) => delta({ tool_calls: calls });
export const finished = (reason: string) => delta({}, reason);

export const frame = (...chunks: unknown[]): string =>
  chunks.map((chunk) => `data: ${typeof chunk === 'string' ? chunk : JSON.stringify(chunk)}\n\n`).join('');
export const DONE = 'data: [DONE]\n\n';

type Piece = string | Uint8Array;
interface Served {
  status?: number;
  headers?: Record<string, string>;
  /** The behaviour of the body after its last piece. */
  end?: 'close' | 'hang' | Error;
  /** Called when the body is cancelled. */
  cancelled?: () => void;
}

/** A streaming response: each piece is one network chunk. */
export function served(pieces: readonly Piece[], options: Served = {}): Response {
  let at = 0;
  const { end = 'close' } = options;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const piece = pieces[at];
      at += 1;
      if (piece !== undefined) controller.enqueue(typeof piece === 'string' ? utf8(piece) : piece);
      else if (end === 'close') controller.close();
      else if (end === 'hang') return new Promise<void>(() => {});
      else controller.error(end);
    },
    cancel() {
      options.cancelled?.();
    },
  });
  const headers = options.headers ?? { 'content-type': 'text/event-stream' };
  return new Response(body, { status: options.status ?? 200, headers });
}

export const KEY = 'sk-test-0123456789';

/** A model whose every call gets this answer. */
export const modelOf = (answer: () => Response | Promise<Response>, options: OpenAIOptions = {}): Model =>
  openai('test-model', { apiKey: KEY, baseURL: 'http://model.test/v1', fetch: async () => answer(), ...options });

export const userSays = (text: string): Message => ({ role: 'user', content: [{ type: 'text', text }] });
export const request = (fields: Partial<ModelRequest> = {}): ModelRequest => ({
  system: '',
  messages: [userSays('hello')],
  tools: [],
  ...fields,
});

export interface Played {
  parts: ModelPart[];
  error: ModelError | undefined;
}

/** Returns all parts of one call and the error that it threw. */
export async function play(model: Model, asked = request(), signal = new AbortController().signal): Promise<Played> {
  const parts: ModelPart[] = [];
  try {
    for await (const part of model.stream(asked, { signal, attempt: 1 })) parts.push(part);
  } catch (error) {
    return { parts, error: error as ModelError };
  }
  return { parts, error: undefined };
}

export const playPieces = (pieces: readonly Piece[], options?: Served): Promise<Played> =>
  play(modelOf(() => served(pieces, options)));

export const textIn = (parts: readonly ModelPart[]): string =>
  parts.map((part) => (part.type === 'text-delta' ? part.text : '')).join('');
export const codesIn = (parts: readonly ModelPart[]): string[] =>
  parts.flatMap((part) => (part.type === 'diagnostic' ? [part.code] : []));
export const callsIn = (parts: readonly ModelPart[]) =>
  parts.flatMap((part) => (part.type === 'tool-call' ? [{ id: part.callId, name: part.name, args: part.args }] : []));
export const finishIn = (parts: readonly ModelPart[]) => parts.find((part) => part.type === 'finish');
