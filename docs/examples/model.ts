/**
 * A model of one's own: a server that speaks chat completions, by `fetch` alone. It passes `modelSuite`. Images of tool
 * results and calls whose pieces have no index are left out here; `openai` of `runchart/openai` knows them.
 */
import { type FinishReason, type Message, type Model, ModelError, type ModelPart, type ModelRequest } from 'runchart';
import { modelSuite } from 'runchart/testing';

// #region errors
const CODES = new Map([
  [400, 'bad-request'],
  [401, 'auth'],
  [403, 'auth'],
  [404, 'not-found'],
  [429, 'rate-limit'],
]);

async function refused(response: Response): Promise<ModelError> {
  const said = await response.text();
  const { status } = response;
  const code = said.includes('insufficient_quota')
    ? 'quota'
    : (CODES.get(status) ?? (status >= 500 ? 'server' : 'bad-request'));
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN);
  const wait = Number.isNaN(seconds) ? {} : { retryAfterMs: seconds * 1000 };
  return new ModelError({ code, status, message: said.slice(0, 500), ...wait });
}
// #endregion

function wire(message: Message): object {
  const content = message.content.map((part) =>
    part.type === 'text'
      ? { type: 'text', text: part.text }
      : {
          type: 'image_url',
          image_url: {
            url: /^(data|https?):/.test(part.data) ? part.data : `data:${part.mediaType};base64,${part.data}`,
          },
        },
  );
  if (message.role === 'tool') return { role: 'tool', tool_call_id: message.callId, content };
  if (message.role === 'user' || message.toolCalls.length === 0) return { role: message.role, content };
  const calls = message.toolCalls.map(({ callId, name, args }) => {
    return { id: callId, type: 'function', function: { name, arguments: JSON.stringify(args) } };
  });
  return { role: 'assistant', content: content.length === 0 ? null : content, tool_calls: calls };
}

function bodyOf(model: string, { system, messages, tools, maxOutputTokens }: ModelRequest): string {
  const first = system === '' ? [] : [{ role: 'system', content: system }];
  return JSON.stringify({
    model,
    messages: [...first, ...messages.map(wire)],
    ...(tools.length > 0 && { tools: tools.map((tool) => ({ type: 'function', function: tool })) }),
    ...(maxOutputTokens !== undefined && { max_tokens: maxOutputTokens }),
    stream: true,
    stream_options: { include_usage: true },
  });
}

interface Chunk {
  error?: { message?: string };
  choices?: {
    delta?: {
      content?: string;
      reasoning_content?: string;
      tool_calls?: { index: number; id?: string; function?: { name?: string; arguments?: string } }[];
    };
    finish_reason?: string | null;
  }[];
  usage?: {
    prompt_tokens: number;
    completion_tokens: number;
    prompt_tokens_details?: { cached_tokens?: number };
    completion_tokens_details?: { reasoning_tokens?: number };
  } | null;
}

/** The data of each event. */
async function* events(body: AsyncIterable<Uint8Array>): AsyncGenerator<Chunk> {
  const decoder = new TextDecoder();
  let held = '';
  for await (const bytes of body) {
    const lines = (held + decoder.decode(bytes, { stream: true })).split('\n');
    held = lines.pop() ?? '';
    for (const line of lines) {
      const data = line.startsWith('data: ') ? line.slice(6).trim() : '';
      if (data !== '' && data !== '[DONE]') yield JSON.parse(data) as Chunk;
    }
  }
}

const REASONS: { [word: string]: FinishReason } = {
  stop: 'stop',
  tool_calls: 'tool-calls',
  length: 'length',
  content_filter: 'content-filter',
};

// #region stream
async function* reply(chunks: AsyncIterable<Chunk>): AsyncGenerator<ModelPart> {
  const calls: { callId: string; name: string; args: string }[] = [];
  let reason: FinishReason | undefined;
  let usage: Chunk['usage'];
  for await (const { error, choices, usage: counted } of chunks) {
    if (error) throw new ModelError({ code: 'provider', message: error.message ?? 'the server failed' });
    usage = counted ?? usage;
    const { delta, finish_reason: word } = choices?.[0] ?? {};
    if (delta?.reasoning_content) yield { type: 'reasoning-delta', text: delta.reasoning_content };
    if (delta?.content) yield { type: 'text-delta', text: delta.content };
    for (const { index, id, function: piece } of delta?.tool_calls ?? []) {
      const call = calls[index] ?? { callId: id ?? '', name: piece?.name ?? '', args: '' };
      calls[index] = call;
      call.args += piece?.arguments ?? '';
      yield { type: 'tool-call-delta', index, text: piece?.arguments ?? '', ...(piece?.name && { name: piece.name }) };
    }
    if (word) reason = REASONS[word] ?? 'stop';
  }
  // Without a finish reason there was no reply, whatever came.
  if (reason === undefined) throw new ModelError({ code: 'stream-incomplete' });
  for (const call of calls) yield { type: 'tool-call', ...call };
  yield {
    type: 'finish',
    reason: reason === 'stop' && calls.length > 0 ? 'tool-calls' : reason,
    usage: {
      inputTokens: usage?.prompt_tokens ?? 0,
      outputTokens: usage?.completion_tokens ?? 0,
      cachedInputTokens: usage?.prompt_tokens_details?.cached_tokens ?? 0,
      reasoningTokens: usage?.completion_tokens_details?.reasoning_tokens ?? 0,
    },
  };
}

const model = (id: string, baseURL: string): Model => ({
  id,
  async *stream(request, { signal }) {
    signal.throwIfAborted();
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(`${baseURL}/chat/completions`, {
      method: 'POST',
      headers,
      signal,
      body: bodyOf(id, request),
    });
    if (!response.ok || !response.body) throw await refused(response);
    // What `fetch` throws is no ModelError, and counts as the network's.
    yield* reply(events(response.body as unknown as AsyncIterable<Uint8Array>));
  },
});
// #endregion

// #region suite
const failed: string[] = [];
let cases = Promise.resolve();
modelSuite(({ baseURL }) => model('mine', baseURL), {
  describe: (_, body) => body(),
  test(name, body) {
    cases = cases.then(body).catch((error) => void failed.push(`${name}: ${error}`));
  },
});
await cases;
console.log(failed.length === 0 ? 'every case holds' : failed.join('\n'));
// #endregion
