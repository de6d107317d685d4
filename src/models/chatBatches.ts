/**
 * A response body → batches of parts, one for each network chunk. Rule: a batch never rejects; the parts that came
 * before a failure are in the same batch as the failure.
 */
import { chunkOf } from './chatChunk.ts';
import { ChatReply } from './chatReply.ts';
import { eventStream } from './eventStream.ts';
import type { ModelPart } from './model.ts';
import { type ResponseBody, readText } from './responseBody.ts';
import { parseJson } from './wireJson.ts';

type Batch = { parts: readonly ModelPart[] } & ({ kind: 'more' | 'end' } | { kind: 'fail'; failure: unknown });
/** Gives the next batch; after `end` or `fail` there is none. */
export type BatchSource = () => Promise<Batch>;

/**
 * What is still read after the finish reason (for usage and `[DONE]`) and after `[DONE]` (until the server closes, so
 * that the connection can be used again): in all so many bytes, and so long, whatever comes meanwhile.
 */
const PATIENCE = { finished: { bytes: 1024 * 1024, waitMs: 2000 }, done: { bytes: 64 * 1024, waitMs: 50 } } as const;
const WHOLE_BYTES = 8 * 1024 * 1024;

export function eventBatches(body: ResponseBody, secrets: readonly string[]): BatchSource {
  let parts: ModelPart[] = [];
  const reply = new ChatReply((part) => parts.push(part), secrets);
  const events = eventStream((data, name, cut) => reply.event(data, name, cut));
  let trailing = 0;
  let phase = reply.phase;
  let began = 0;

  async function nextBytes(): Promise<Uint8Array | undefined> {
    if (reply.phase === 'reading') return body.read();
    if (phase !== reply.phase) {
      phase = reply.phase;
      began = performance.now();
    }
    const patience = PATIENCE[reply.phase];
    const leftMs = began + patience.waitMs - performance.now();
    if (trailing > patience.bytes || leftMs <= 0) return undefined;
    try {
      const bytes = await body.readWithin(leftMs);
      trailing += 1 + (bytes?.length ?? 0);
      return bytes;
    } catch {
      reply.note('cut_after_finish');
      return undefined;
    }
  }

  return async () => {
    parts = [];
    try {
      const bytes = await nextBytes();
      if (bytes !== undefined) {
        events.push(bytes);
        return { parts, kind: 'more' };
      }
      events.end();
      reply.end();
      return { parts, kind: 'end' };
    } catch (failure) {
      return { parts, kind: 'fail', failure };
    }
  };
}

/** A completion that was not streamed, or an error body under status 200. */
export function wholeBatch(body: ResponseBody, secrets: readonly string[]): BatchSource {
  const parts: ModelPart[] = [];
  const reply = new ChatReply((part) => parts.push(part), secrets);
  return async () => {
    try {
      const value = parseJson(await readText(body, WHOLE_BYTES));
      reply.take(value === undefined ? { kind: 'malformed' } : chunkOf(value, 'message'));
      reply.end();
      return { parts, kind: 'end' };
    } catch (failure) {
      return { parts, kind: 'fail', failure };
    }
  };
}
