import { describe, expect, it } from 'vitest';
import type { Json, Message, StoredPart, ToolCall } from '../../machines/vocabulary.ts';
import type { ModelRequest } from '../../src/models/model.ts';
import { chatRequestBody, type SentOptions, sentFieldsOf, wireMessages } from '../../src/models/openai/chatRequest.ts';
import { userSays } from './scriptedFetch.ts';

const text = (words: string): StoredPart => ({ type: 'text', text: words });
const image = (data: string): StoredPart => ({ type: 'image', mediaType: 'image/png', data });
const call = (fields: Partial<ToolCall> = {}): ToolCall => ({
  callId: 'a',
  name: 'read',
  args: { path: 'x' },
  ...fields,
});
const asks = (...toolCalls: ToolCall[]): Message => ({ role: 'assistant', content: [], toolCalls });
const result = (callId: string, content: StoredPart[], isError = false): Message => ({
  role: 'tool',
  callId,
  content,
  isError,
});
/** The only tool call of the only message. */
const wireCallOf = (fields: Partial<ToolCall>) => {
  const [message] = wireMessages('', [asks(call(fields))]);
  if (message?.role !== 'assistant' || message.tool_calls?.[0] === undefined) throw new Error('there is no call');
  return message.tool_calls[0];
};

describe('a conversation in the request', () => {
  it('keeps its order, the system text first', () => {
    const messages: Message[] = [
      userSays('read x'),
      { role: 'assistant', content: [text('I '), text('read')], toolCalls: [call()] },
      result('a', [text('line 1'), text('line 2')]),
      { role: 'assistant', content: [text('done')], toolCalls: [] },
    ];
    expect(wireMessages('be brief', messages)).toEqual([
      { role: 'system', content: 'be brief' },
      { role: 'user', content: 'read x' },
      {
        role: 'assistant',
        content: 'I read',
        tool_calls: [{ id: 'a', type: 'function', function: { name: 'read', arguments: '{"path":"x"}' } }],
      },
      { role: 'tool', tool_call_id: 'a', content: 'line 1\nline 2' },
      { role: 'assistant', content: 'done' },
    ]);
  });

  it('has no system message without a system text', () => {
    expect(wireMessages('', [userSays('a')])).toEqual([{ role: 'user', content: 'a' }]);
  });

  it('has null content if an assistant only calls tools', () => {
    expect(wireMessages('', [asks(call())])[0]).toMatchObject({ role: 'assistant', content: null });
  });

  it('marks a failed result in its text', () => {
    const [failed, fine] = wireMessages('', [result('a', [text('no such file')], true), result('b', [text('ok')])]);
    expect(failed).toEqual({ role: 'tool', tool_call_id: 'a', content: '[tool error]\nno such file' });
    expect(fine).toEqual({ role: 'tool', tool_call_id: 'b', content: 'ok' });
  });

  it('reuses the text of earlier messages, for each model, without a difference', () => {
    let reads = 0;
    const counted = {
      role: 'user' as const,
      get content() {
        reads += 1;
        return [text('a')];
      },
    };
    const shown = (id: string) => result(id, [text('b'), image('aGVsbG8=')]);
    const all = [counted, asks(call()), shown('a'), result('b', [text('c')]), userSays('d'), asks(call()), shown('e')];
    const json = (value: unknown): unknown => JSON.parse(JSON.stringify(value));
    const before = {};
    const sent = (messages: readonly Message[], modelName: string): unknown => {
      const options = { modelName, limitField: 'max_tokens', maxOutputTokens: 1, sent: sentFieldsOf({}) } as const;
      return JSON.parse(chatRequestBody({ system: 'x', messages, tools: [] }, options, before)).messages;
    };
    for (const model of ['m', 'n']) {
      for (let count = 1; count <= all.length; count++) {
        const readsBefore = reads;
        const written = sent(all.slice(0, count), model);
        expect(reads > readsBefore, `message ${count} for ${model}`).toBe(count === 1);
        expect(written).toEqual(json(wireMessages('x', all.slice(0, count), model)));
      }
    }
    const others = [all[0] as Message, userSays('other'), ...all.slice(1)];
    expect(sent(others, 'n')).toEqual(json(wireMessages('x', others, 'n')));
  });
});

describe('a conversation for Mistral', () => {
  const receivers: [string, string][] = [
    ['mistral-large-latest', 'http://localhost:8000'],
    ['mistralai/devstral-small', 'https://router.test'],
    ['m', 'https://api.mistral.ai'],
  ];

  it.each(receivers)('has ids of nine letters and digits: %s at %s', (model, server) => {
    const ids = ['aB3dE6gH9', 'call_1', 'call_10', 'toolu_01A2b3C4d5E6', 'functions.look:0', 'aB3dE6gH9_2', '–'];
    const history = ids.flatMap((callId) => [asks(call({ callId })), result(callId, [text('ok')])]);
    const wire = wireMessages('', history, model, server);
    const asked = wire.flatMap((message) => (message.role === 'assistant' ? (message.tool_calls ?? []) : []));
    const answered = wire.flatMap((message) => (message.role === 'tool' ? [message.tool_call_id] : []));
    expect(asked.map(({ id }) => id)).toEqual(answered);
    expect(new Set(answered).size).toBe(ids.length);
    for (const id of answered) expect(id).toMatch(/^[a-zA-Z0-9]{9}$/);
    expect(answered[0]).toBe('aB3dE6gH9');
  });

  it.each(receivers)('has a reply between results and a message of the user: %s at %s', (model, server) => {
    const history = [
      ...[asks(call()), result('a', [text('b')]), userSays('steer')],
      ...[asks(call({ callId: 'c' })), result('c', [image('AAAA')]), asks(call({ callId: 'd' })), result('d', [])],
    ];
    const rolesOf = (...others: Message[]) =>
      wireMessages('', [...history, ...others], model, server).map(({ role }) => role);
    const roles = [
      ...['assistant', 'tool', 'assistant', 'user'],
      ...['assistant', 'tool', 'assistant', 'user', 'assistant', 'tool'],
    ];
    expect(rolesOf()).toEqual(roles);
    expect(rolesOf(userSays('go on'))).toEqual([...roles, 'assistant', 'user']);
    const written = {};
    for (let count = 1; count <= history.length; count++) {
      const options = {
        modelName: model,
        server,
        limitField: 'max_tokens',
        maxOutputTokens: 1,
        sent: sentFieldsOf({}),
      };
      const messages = history.slice(0, count);
      const body = JSON.parse(chatRequestBody({ system: '', messages, tools: [] }, options as never, written));
      expect(body.messages).toEqual(JSON.parse(JSON.stringify(wireMessages('', messages, model, server))));
    }
  });

  it('of any other server keeps ids and order', () => {
    const wire = wireMessages(
      '',
      [asks(call()), result('a', [text('b')]), userSays('steer')],
      'gpt-5',
      'https://a.test',
    );
    expect(wire.map(({ role }) => role)).toEqual(['assistant', 'tool', 'user']);
    expect(wire[1]).toMatchObject({ tool_call_id: 'a' });
  });
});

describe('the calls of a reply for Gemini 3 and later', () => {
  const google = 'https://generativelanguage.googleapis.com';
  const signature = (words: string) => ({ google: { thought_signature: words } });
  const sent = (model: string, server: string, ...calls: ToolCall[]) => {
    const [message] = wireMessages('', [asks(...calls)], model, server);
    return message?.role === 'assistant' ? message.tool_calls?.map(({ extra_content }) => extra_content) : [];
  };

  it('have a signature on the first one, in place of a missing one the word that Google names', () => {
    const unsigned = [signature('skip_thought_signature_validator'), undefined];
    expect(sent('gemini-3-pro-preview', google, call(), call({ callId: 'b' }))).toEqual(unsigned);
    expect(sent('google/gemini-3.5-flash', 'https://eu-aiplatform.googleapis.com', call())).toEqual([unsigned[0]]);
    const fields = { extra_content: signature('own') };
    const own = call({ extra: { chat: 'gemini-3-pro-preview', server: google, fields } });
    expect(sent('gemini-3-pro-preview', google, own, call({ callId: 'b' }))).toEqual([signature('own'), undefined]);
  });

  it('have none for other models and other servers', () => {
    expect(sent('gemini-2.5-pro', google, call())).toEqual([undefined]);
    expect(sent('gemini-3-pro-preview', 'https://router.test', call())).toEqual([undefined]);
  });
});

describe('images in the request', () => {
  it('are image_url parts: base64 as a data URL, a URL unchanged', () => {
    const content = [
      text('look'),
      image('aGVsbG8='),
      image('https://x.test/a.png'),
      image('data:image/gif;base64,R0lG'),
    ];
    expect(wireMessages('', [{ role: 'user', content }])[0]?.content).toEqual([
      { type: 'text', text: 'look' },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,aGVsbG8=' } },
      { type: 'image_url', image_url: { url: 'https://x.test/a.png' } },
      { type: 'image_url', image_url: { url: 'data:image/gif;base64,R0lG' } },
    ]);
  });

  it('that are unresolved references become text', () => {
    const wire = wireMessages('', [{ role: 'user', content: [image('blob:sha256-abc')] }]);
    expect(wire[0]?.content).toEqual([{ type: 'text', text: '[image image/png: not available]' }]);
  });

  it('of tool results follow after the last result of the round', () => {
    const messages = [
      asks(call(), call({ callId: 'b' })),
      result('a', [text('a picture'), image('AAAA')]),
      result('b', [image('BBBB')], true),
      userSays('next'),
    ];
    const wire = wireMessages('', messages);
    expect(wire.map((message) => message.role)).toEqual(['assistant', 'tool', 'tool', 'user', 'user', 'user']);
    expect(wire[1]?.content).toBe('a picture\n[1 image(s) of this result follow in the next user message]');
    expect(wire[2]?.content).toBe('[tool error]\n[1 image(s) of this result follow in the next user message]');
    expect(wire[3]?.content).toEqual([
      { type: 'text', text: 'Image(s) of the result of tool call a:' },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
    ]);
    expect(JSON.stringify(wire[4])).toContain('tool call b');
    expect(wire[5]?.content).toBe('next');
  });

  it('of the last results come at the end', () => {
    const wire = wireMessages('', [asks(call()), result('a', [image('AAAA')])]);
    expect(wire.map((message) => message.role)).toEqual(['assistant', 'tool', 'user']);
  });
});

describe('a tool call that is sent back', () => {
  it('has the fields of its provider, except those that the adapter sets', () => {
    const extra: Json = {
      extra_content: { google: { thought_signature: 'c2ln' } },
      id: 'forged',
      type: 'forged',
      function: { tag: 7, name: 'forged', arguments: 'forged' },
    };
    expect(wireCallOf({ extra })).toEqual({
      extra_content: { google: { thought_signature: 'c2ln' } },
      id: 'a',
      type: 'function',
      function: { tag: 7, name: 'read', arguments: '{"path":"x"}' },
    });
  });

  it.each<[who: string, model: string, server: string, isSent: boolean]>([
    ['the model that wrote it', 'm', 'https://b.test', true],
    ['another model of its server', 'n', 'https://a.test', true],
    ['a model of another server', 'n', 'https://b.test', false],
  ])('has the unknown fields of its reply for %s: %j, %j', (_, model, server, isSent) => {
    const fields = { extra_content: { google: { thought_signature: 'c2ln' } }, function: { tag: 7 } };
    const messages = [asks(call({ extra: { chat: 'm', server: 'https://a.test', fields } }))];
    const [sent] = wireMessages('', messages, model, server) as unknown as [{ tool_calls: object[] }];
    const plain = { id: 'a', type: 'function', function: { name: 'read', arguments: '{"path":"x"}' } };
    const whole = { ...plain, ...fields, function: { ...plain.function, tag: 7 } };
    expect(sent.tool_calls).toEqual([isSent ? whole : plain]);
  });

  it('has its fields for each receiver in the text of earlier messages too', () => {
    const fields = { later: true };
    const messages = [
      asks(call({ extra: { chat: 'm', server: 'https://a.test', fields } })),
      result('a', [text('ok')]),
    ];
    const written = {};
    const others = { limitField: 'max_tokens' as const, maxOutputTokens: undefined, sent: sentFieldsOf({}) };
    const sentTo = (server: string): unknown =>
      JSON.parse(chatRequestBody({ system: '', messages, tools: [] }, { ...others, modelName: 'n', server }, written))
        .messages[0].tool_calls[0].later;
    expect([sentTo('https://a.test'), sentTo('https://b.test')]).toEqual([true, undefined]);
  });

  it('ignores fields that are not a record, and prototype keys', () => {
    for (const extra of [null, 7, 'text', [1], JSON.parse('{"__proto__":{"x":1}}') as Json]) {
      const wire = wireCallOf({ extra });
      expect(Object.keys(wire)).toEqual(['id', 'type', 'function']);
      expect(Object.getPrototypeOf(wire)).toBe(Object.prototype);
    }
  });

  it.each<[string, Partial<ToolCall>, string]>([
    ['an object', { args: { a: 1 } }, '{"a":1}'],
    ['no arguments', { args: {} }, '{}'],
    ['text that did not parse', { args: null, argsText: '{"a":1}{"b"' }, '{"invalid_arguments":"{\\"a\\":1}{\\"b\\""}'],
    ['a list', { args: [1] }, '{"invalid_arguments":[1]}'],
    ['null', { args: null }, '{"invalid_arguments":null}'],
  ])('always has the text of an object as arguments: %s', (_name, fields, text) => {
    expect(wireCallOf(fields).function.arguments).toBe(text);
  });

  it.each([
    ['read_file', 'read_file'],
    ['mcp.server/tool:x-1', 'mcp_server_tool_x-1'],
    ['năm🎉', 'n_m__'],
    ['read\n', 'read_'],
    ['read the file!', 'read_the_file_'],
    ['', 'unnamed'],
    ['n'.repeat(500), 'n'.repeat(64)],
  ])('has a name servers take: %s', (name, wire) => {
    expect(wireCallOf({ name }).function.name).toBe(wire);
  });
});

describe('a field of the body', () => {
  const body = (sent: SentOptions, more: object = {}) =>
    JSON.parse(
      chatRequestBody(
        { system: '', messages: [], tools: [], ...more },
        {
          ...{ modelName: 'm', limitField: 'max_tokens', maxOutputTokens: undefined },
          sent: sentFieldsOf(sent),
        },
      ),
    );
  const tools = [{ name: 'look', description: '', parameters: {} }];

  it.each<[keyof SentOptions, string, unknown, boolean]>([
    ['temperature', 'temperature', 0, false],
    ['topP', 'top_p', 0, false],
    ['reasoningEffort', 'reasoning_effort', 'low', false],
    ['seed', 'seed', 0, false],
    ['stop', 'stop', '', false],
    ['toolChoice', 'tool_choice', 'auto', true],
    ['parallelToolCalls', 'parallel_tool_calls', false, true],
  ])('%s is %s, and comes before the same field of extraBody', (option, field, value, withTools) => {
    const extraBody = { [field]: 'other', later: 1 };
    expect(body({ [option]: value, extraBody }, { tools })).toMatchObject({ [field]: value, later: 1 });
    expect(body({ [option]: value, extraBody })).toMatchObject({ [field]: withTools ? 'other' : value, later: 1 });
    expect(body({ extraBody })).toMatchObject(extraBody);
    expect(body({})).not.toHaveProperty(field);
  });

  it('that describes the request comes from the library alone', () => {
    const own = { model: 'm', messages: [], stream: true, stream_options: { include_usage: true } };
    const extraBody = { model: 'x', messages: 'x', stream: false, stream_options: {}, max_tokens: 1, tools: 'x' };
    expect(body({ extraBody }, { maxOutputTokens: 9 })).toEqual({ ...own, max_tokens: 9, tools: 'x' });
    expect(body({ extraBody }, { tools }).tools).toHaveLength(1);
  });
});

it.each([
  ['https://pictures.test/a', 'https://pictures.test/a'],
  ['HTTP://pictures.test/a', 'HTTP://pictures.test/a'],
  ['data:image/gif;base64,AAAA', 'data:image/gif;base64,AAAA'],
  ['DATA:image/gif;base64,AAAA', 'DATA:image/gif;base64,AAAA'],
  ['AAAA', 'data:image/png;base64,AAAA'],
  ['blob:a', undefined],
  [`${'A'.repeat(255)}:`, undefined],
])('an image %s is sent by the address %s', (data, url) => {
  const [message] = wireMessages('', [{ role: 'user', content: [image(data)] }]);
  expect(message?.content).toEqual([
    url === undefined
      ? { type: 'text', text: '[image image/png: not available]' }
      : { type: 'image_url', image_url: { url } },
  ]);
});

describe('the text of earlier requests is reused', () => {
  const options = (sent = {}) => ({
    ...{ modelName: 'm', limitField: 'max_tokens' as const, maxOutputTokens: undefined },
    sent: sentFieldsOf(sent),
  });
  const body = (messages: readonly Message[], written = {}, tools: ModelRequest['tools'] = []) =>
    chatRequestBody({ system: 's', messages, tools }, options(), written);

  it('only for the same messages: the text of a request does not depend on earlier requests', () => {
    const [a, b] = [userSays('a'), userSays('b')];
    const calls = asks(call(), call({ callId: 'b' }));
    const [first, second] = [result('a', [image('AAAA')]), result('b', [text('two')])];
    const histories: Message[][] = [
      ...[[], [a], [b], [a, b], [b, a], [a, b, a]],
      ...[
        [a, calls],
        [a, calls, first],
        [a, calls, first, second],
        [a, calls, first, second, b],
      ],
      // The same words in another message.
      [userSays('a'), calls, second, first, b],
    ];
    for (const before of histories) {
      for (const after of histories) {
        for (const between of [[], a, calls] as const) {
          const written = {};
          body(before, written);
          if (!Array.isArray(between)) body([...before, between as Message], written);
          expect(body(after, written)).toBe(body(after));
          expect(body([...after, b], written)).toBe(body([...after, b]));
        }
      }
    }
  });

  it('and the text of tools only if their list is frozen', () => {
    const tool = (name: string) => ({ name, description: '', parameters: {} });
    const tools = [tool('one')];
    const namesIn = (list: ModelRequest['tools']): string[] =>
      JSON.parse(body([], {}, list)).tools.map((each: { function: { name: string } }) => each.function.name);
    expect(namesIn(tools)).toEqual(['one']);
    tools.push(tool('two'));
    expect(namesIn(tools)).toEqual(['one', 'two']);
    const frozen = Object.freeze([tool('three')]);
    expect([namesIn(frozen), namesIn(frozen)]).toEqual([['three'], ['three']]);
  });
});
