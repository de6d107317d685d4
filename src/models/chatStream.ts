/**
 * One model call over HTTP: request out, parts in. Rule: it ends with `finish`, with a ModelError, or with the
 * caller's abort reason; in each case the body is closed and the caller's signal holds no listener.
 */
import { abortGate } from './abortGate.ts';
import { type BatchSource, eventBatches, wholeBatch } from './chatBatches.ts';
import { networkError, statusError } from './httpErrors.ts';
import { ModelError, type ModelPart } from './model.ts';
import { excerpt } from './providerError.ts';
import { openBody, type ResponseBody, readText } from './responseBody.ts';

/** What is read of a body that is only quoted. */
const QUOTED_BYTES = 64 * 1024;
const QUOTED_WAIT_MS = 2000;

/** Where and how a call goes out. */
export interface ChatCall {
  url: string;
  secrets: readonly string[];
  /** Sends the request. May reject with anything. */
  send(signal: AbortSignal): Promise<Response>;
}

/** One generator, and one batch for each network chunk: a delta costs a yield and nothing else. */
export async function* chatStream(call: ChatCall, signal: AbortSignal): AsyncGenerator<ModelPart, void> {
  const gate = abortGate(signal);
  let body: ResponseBody | undefined;
  try {
    gate.check();
    const response = await gate.race(call.send, (late) => openBody(late).close());
    const opened = openBody(response);
    body = opened;
    gate.stage(opened.close);
    const source = await batchesOf(response, opened, call);
    for (let more = true; more; ) {
      const batch = await source();
      // A body that was closed by the abort looks like one that has ended.
      gate.check();
      for (const part of batch.parts) {
        yield part;
        gate.check();
      }
      if (batch.kind === 'fail') throw batch.failure;
      more = batch.kind === 'more';
    }
  } catch (error) {
    gate.check();
    throw networkError(error, call.url, call.secrets);
  } finally {
    gate.close();
    body?.close();
  }
}

async function batchesOf(response: Response, body: ResponseBody, call: ChatCall): Promise<BatchSource> {
  const quoted = (): Promise<string> => readText(body, QUOTED_BYTES, QUOTED_WAIT_MS).catch(() => '');
  if (!response.ok) throw statusError(response, await quoted(), call.secrets, Date.now());
  const type = (response.headers.get('content-type') ?? '').split(';')[0]?.trim().toLowerCase() ?? '';
  // A server that names no type is taken at its bytes: without a chunk in them the reply is incomplete.
  if (type === 'text/event-stream' || type === '') return eventBatches(body, call.secrets);
  if (type === 'application/json') return wholeBatch(body, call.secrets);
  const said = excerpt(await quoted(), call.secrets);
  const came = `the model server answered with ${excerpt(type, [])} instead of text/event-stream`;
  throw new ModelError({
    code: 'content-type',
    status: response.status,
    message: `${came}: check the base URL and any proxy before it. It said: ${said}`,
  });
}
