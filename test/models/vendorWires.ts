/** The wires of Anthropic's Messages API and OpenAI's Responses API, for a translator before the model suite's server. */
import type { Block, ChatChunk, Fields, Wire } from './wireTranslator.ts';

const list = (value: unknown): Block[] =>
  typeof value === 'string' ? [{ type: 'text', text: value }] : Array.isArray(value) ? (value as Block[]) : [];
const textIn = (value: unknown): string =>
  list(value)
    .map(({ text }) => text)
    .join('');
const call = (id: unknown, name: unknown, args: string) => ({
  id,
  type: 'function',
  function: { name, arguments: args },
});
const image = (url: unknown) => ({ type: 'image_url', image_url: { url } });
const functionTools = (tools: unknown, fields: (tool: Block) => object) =>
  list(tools).map((tool) => ({ type: 'function', function: fields(tool) }));

/** A message of Messages: results come first, as the API demands. */
function chatMessages({ role, content }: { role: string; content: unknown }): Fields[] {
  const blocks = list(content);
  const results = blocks.filter(({ type }) => type === 'tool_result');
  const rest = blocks.filter(({ type }) => type !== 'tool_result');
  if (rest.some((block, index) => index < blocks.indexOf(block) - results.length))
    throw new Error('a result stands after other content');
  const messages: Fields[] = results.map((block) => ({
    role: 'tool',
    tool_call_id: block.tool_use_id,
    content: textIn(block.content),
  }));
  if (rest.length === 0) return messages;
  const calls = rest.filter(({ type }) => type === 'tool_use');
  const shown = rest.flatMap((block) => {
    if (block.type !== 'image') return block.type === 'text' ? [block] : [];
    const { media_type, data } = block.source as Fields;
    return [image(`data:${media_type};base64,${data}`)];
  });
  return [
    ...messages,
    {
      role,
      content: shown,
      ...(calls.length > 0 && {
        tool_calls: calls.map(({ id, name, input }) => call(id, name, JSON.stringify(input))),
      }),
    },
  ];
}

class MessagesEvents {
  readonly #blocks: string[] = [];
  #usage: Fields = { output_tokens: 1 };
  #reason = '';

  #into(kind: string, block: Block, delta: Block): Block[] {
    const events: Block[] = [];
    if (this.#blocks.length === 0)
      events.push({
        type: 'message_start',
        message: { role: 'assistant', usage: { input_tokens: 1, output_tokens: 1 } },
      });
    let index = this.#blocks.indexOf(kind);
    if (index < 0) {
      index = this.#blocks.push(kind) - 1;
      events.push({ type: 'content_block_start', index, content_block: block });
    }
    return [...events, { type: 'content_block_delta', index, delta }];
  }

  chunk({ choices = [], usage, error }: ChatChunk): Block[] {
    if (error) return [{ type: 'error', error: { type: 'overloaded_error', message: error.message } }];
    if (usage) this.#usage = messagesUsage(usage);
    return choices.flatMap(({ delta, finish_reason: word }) => {
      if (word) this.#reason = word;
      const { content, reasoning_content: thinking, tool_calls: calls = [] } = delta;
      return [
        ...(thinking
          ? this.#into(
              'thinking',
              { type: 'thinking', thinking: '', signature: '' },
              { type: 'thinking_delta', thinking },
            )
          : []),
        ...(content ? this.#into('text', { type: 'text', text: '' }, { type: 'text_delta', text: content }) : []),
        ...calls.flatMap(({ index, id, function: { name, arguments: partial_json } }) =>
          this.#into(
            `call ${index}`,
            { type: 'tool_use', id, name, input: {} },
            { type: 'input_json_delta', partial_json },
          ),
        ),
      ];
    });
  }

  end(): Block[] {
    const words: Fields = { stop: 'end_turn', tool_calls: 'tool_use', length: 'max_tokens' };
    return [
      ...this.#blocks.map((_, index) => ({ type: 'content_block_stop', index })),
      { type: 'message_delta', delta: { stop_reason: words[this.#reason] }, usage: this.#usage },
      { type: 'message_stop' },
    ];
  }
}

/** Input does not include the tokens that were read from the cache. */
function messagesUsage({ prompt_tokens, completion_tokens, ...details }: NonNullable<ChatChunk['usage']>): Fields {
  const { cached_tokens: cached = 0 } = details.prompt_tokens_details as { cached_tokens?: number };
  const { reasoning_tokens: thinking_tokens } = details.completion_tokens_details as Fields;
  return {
    input_tokens: prompt_tokens - cached,
    cache_read_input_tokens: cached,
    output_tokens: completion_tokens,
    output_tokens_details: { thinking_tokens },
  };
}

export const messagesWire: Wire = {
  path: '/v1/messages',
  toChat: ({ system, messages, tools }) => ({
    messages: [
      ...(textIn(system) === '' ? [] : [{ role: 'system', content: textIn(system) }]),
      ...(messages as { role: string; content: unknown }[]).flatMap(chatMessages),
    ],
    tools: functionTools(tools, ({ name, description, input_schema: parameters }) => ({
      name,
      description,
      parameters,
    })),
  }),
  refusal: ({ type, message }) => ({
    type: 'error',
    error: { type: type === 'insufficient_quota' ? 'billing_error' : 'api_error', message },
  }),
  reply: () => new MessagesEvents(),
};

/** The input items between two messages belong to one reply. */
function responsesMessages(input: readonly Block[]): Fields[] {
  const messages: Fields[] = [];
  for (const item of input) {
    const last = messages.at(-1);
    if (item.type === 'function_call') {
      const made = call(item.call_id, item.name, String(item.arguments));
      if (last?.role === 'assistant') last.tool_calls = [...((last.tool_calls as object[]) ?? []), made];
      else messages.push({ role: 'assistant', tool_calls: [made] });
    } else if (item.type === 'function_call_output') {
      messages.push({ role: 'tool', tool_call_id: item.call_id, content: item.output });
    } else {
      const content = list(item.content).map((part) => (part.type === 'input_image' ? image(part.image_url) : part));
      messages.push({ role: item.role, content });
    }
  }
  return messages;
}

class ResponsesEvents {
  readonly #items = new Map<string, Block>();
  #usage: Fields = { input_tokens: 0, output_tokens: 0 };
  #reason = '';

  #into(kind: string, item: Block, type: string, delta: string): Block[] {
    const isNew = !this.#items.has(kind);
    if (isNew) this.#items.set(kind, item);
    const output_index = [...this.#items.keys()].indexOf(kind);
    return [
      ...(isNew ? [{ type: 'response.output_item.added', output_index, item: { ...item } }] : []),
      ...(delta === '' ? [] : [{ type, output_index, item_id: item.id, content_index: 0, summary_index: 0, delta }]),
    ];
  }

  chunk({ choices = [], usage, error }: ChatChunk): Block[] {
    if (error)
      return [{ type: 'response.failed', response: { status: 'failed', error: { code: 'server_error', ...error } } }];
    if (usage) this.#usage = responsesUsage(usage);
    return choices.flatMap(({ delta, finish_reason: word }) => {
      if (word) this.#reason = word;
      const { content, reasoning_content: thinking, tool_calls: calls = [] } = delta;
      return [
        ...(thinking
          ? this.#into(
              'thinking',
              { type: 'reasoning', id: 'rs', summary: [] },
              'response.reasoning_summary_text.delta',
              thinking,
            )
          : []),
        ...(content
          ? this.#into(
              'text',
              { type: 'message', id: 'msg', role: 'assistant', content: [] },
              'response.output_text.delta',
              content,
            )
          : []),
        ...calls.flatMap(({ index, id, function: { name, arguments: args } }) => {
          const kind = `call ${index}`;
          const item = { type: 'function_call', id: `fc_${index}`, call_id: id, name, arguments: '' };
          const events = this.#into(kind, item, 'response.function_call_arguments.delta', args);
          const existing = this.#items.get(kind);
          if (existing) existing.arguments += args;
          return events;
        }),
      ];
    });
  }

  end(): Block[] {
    const done = [...this.#items.values()].map((item, output_index) => ({
      type: 'response.output_item.done',
      output_index,
      item: { ...item, status: 'completed' },
    }));
    const isCut = this.#reason === 'length';
    const state = isCut
      ? { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } }
      : { status: 'completed' };
    return [
      ...done,
      { type: `response.${state.status}`, response: { object: 'response', ...state, usage: this.#usage } },
    ];
  }
}

function responsesUsage({ prompt_tokens, completion_tokens, ...details }: NonNullable<ChatChunk['usage']>): Fields {
  return {
    ...{ input_tokens: prompt_tokens, input_tokens_details: details.prompt_tokens_details },
    ...{ output_tokens: completion_tokens, output_tokens_details: details.completion_tokens_details },
  };
}

export const responsesWire: Wire = {
  path: '/v1/responses',
  toChat: ({ instructions, input, tools }) => ({
    messages: [
      ...(instructions ? [{ role: 'system', content: instructions }] : []),
      ...responsesMessages(input as Block[]),
    ],
    tools: functionTools(tools, ({ name, description, parameters }) => ({ name, description, parameters })),
  }),
  refusal: ({ type = 'server_error', message }) => ({ error: { type, code: type, message } }),
  reply: () => new ResponsesEvents(),
};
