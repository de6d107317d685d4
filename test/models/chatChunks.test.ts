/** Tests chunks of a chat completion in tables: token counts, finish reasons, content parts and fields to send back. */
import { describe, expect, it } from 'vitest';
import { type ChatChunk, chunkOf, finishReason, readChunk } from '../../src/models/openai/chatChunk.ts';
import { ReasoningFields, reasoningFieldsIn } from '../../src/models/openai/reasoningFields.ts';

const read = (value: unknown, field: 'delta' | 'message' = 'delta') => chunkOf(value, field) as ChatChunk;
const delta = (fields: object): ChatChunk => read({ choices: [{ index: 0, delta: fields }] });

describe('counts', () => {
  const zeros = { cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };
  it.each<[string, unknown, object | undefined]>([
    ['input and output', { prompt_tokens: 7, completion_tokens: 3 }, { inputTokens: 7, outputTokens: 3 }],
    ['zeros', { prompt_tokens: 0, completion_tokens: 0 }, { inputTokens: 0, outputTokens: 0 }],
    ['what the cache gave', { prompt_tokens_details: { cached_tokens: 5 } }, { cachedInputTokens: 5 }],
    ['what the cache gave, beside it', { prompt_cache_hit_tokens: 5 }, { cachedInputTokens: 5 }],
    [
      'both, of which the first counts',
      { prompt_tokens_details: { cached_tokens: 4 }, prompt_cache_hit_tokens: 5 },
      { cachedInputTokens: 4 },
    ],
    ['what the cache took', { prompt_tokens_details: { cache_write_tokens: 6 } }, { cacheWriteTokens: 6 }],
    ['what the cache took, beside it', { cache_creation_input_tokens: 6 }, { cacheWriteTokens: 6 }],
    ['thoughts', { completion_tokens_details: { reasoning_tokens: 2 } }, { reasoningTokens: 2 }],
    ['parts of a token', { prompt_tokens: 7.9, completion_tokens: 0.5 }, { inputTokens: 7, outputTokens: 0 }],
    [
      'what is no count',
      { prompt_tokens: -1, completion_tokens: '3', prompt_tokens_details: { cached_tokens: null } },
      {},
    ],
    ['nothing', {}, {}],
    ['a list', [7], undefined],
    ['null', null, undefined],
  ])('%s', (_, usage, counts) => {
    const expected = counts && { ...zeros, ...counts };
    expect(read({ choices: [], usage }).usage).toEqual(expected);
    expect(read({ choices: [{ delta: {}, usage }] }).usage).toEqual(expected);
  });

  it('beside the choices override those within a choice', () => {
    const usage = (n: number) => ({ prompt_tokens: n });
    expect(read({ usage: usage(1), choices: [{ delta: {}, usage: usage(2) }] }).usage?.inputTokens).toBe(1);
  });
});

describe('the finish reason', () => {
  const WORDS = {
    stop: 'stop end_turn stop_sequence eos eos_token',
    'tool-calls': 'tool_calls tool_use function_call',
    length: 'length max_tokens model_length',
    'content-filter': 'content_filter safety recitation',
    pause: 'pause_turn',
    failed: 'error insufficient_system_resource',
  };
  it.each(Object.entries(WORDS).flatMap(([reason, words]) => words.split(' ').map((word) => [word, reason])))(
    '%s is %s, in any case',
    (word = '', reason) => {
      for (const written of [word, word.toUpperCase()]) expect(finishReason(written)).toBe(reason);
    },
  );
  it('of any other kind is undefined', () => {
    for (const word of ['', 'novel', 'stopped', 'constructor']) expect(finishReason(word)).toBeUndefined();
  });
});

describe('the content of a reply', () => {
  const part = (type: string, fields: object) => ({ type, ...fields });
  const thinking = (...pieces: unknown[]) => part('thinking', { thinking: pieces });
  it.each<[string, object, Partial<ChatChunk>]>([
    ['text', { content: 'a' }, { text: 'a' }],
    ['nothing', { content: null }, {}],
    ['text in parts', { content: [part('text', { text: 'a' }), null, part('text', { text: 'b' })] }, { text: 'ab' }],
    [
      'thoughts in parts',
      { content: [thinking({ text: 'a' }, 'x', { text: 'b' }), thinking({ text: 'c' })] },
      { reasoning: 'abc' },
    ],
    ['thoughts in parts and beside them', { content: [thinking({ text: 'a' })], reasoning: 'b' }, { reasoning: 'ab' }],
    ['parts of other kinds', { content: [part('image', { text: 'a' }), part('text', { text: 1 })] }, {}],
    ['what is neither', { content: 7 }, { odd: ['content_unreadable'] }],
    ['thoughts', { reasoning: 'a' }, { reasoning: 'a' }],
    ['thoughts under both names', { reasoning: 'a', reasoning_content: 'a' }, { reasoning: 'a' }],
    ['thoughts under one name, nothing under the other', { reasoning: 'a', reasoning_content: '' }, { reasoning: 'a' }],
    ['a refusal', { refusal: 'no' }, { refusal: 'no' }],
  ])('%s', (_, fields, expected) => {
    const { text, reasoning, refusal, odd } = delta(fields);
    expect({ text, reasoning, refusal, odd }).toEqual({ text: '', reasoning: '', refusal: '', odd: [], ...expected });
  });

  it.each<[string, unknown[], string]>([
    ['the first where none has a number', [{ delta: { content: 'a' } }, { delta: { content: 'b' } }], 'a'],
    [
      'the one with number 0',
      [
        { index: 1, delta: { content: 'a' } },
        { index: 0, delta: { content: 'b' } },
      ],
      'b',
    ],
    ['none that is no object', [null, { index: 0, delta: { content: 'b' } }], 'b'],
    ['none with another number', [{ index: 2, delta: { content: 'a' } }], ''],
  ])('of several choices %s counts', (_, choices, text) => {
    expect(read({ choices }).text).toBe(text);
  });

  it('a whole completion has it in its message', () => {
    expect(read({ choices: [{ message: { content: 'a' }, delta: { content: 'b' } }] }, 'message').text).toBe('a');
  });

  it.each([
    ['', { kind: 'skipped', code: 'chunk_empty' }],
    [' \t', { kind: 'skipped', code: 'chunk_empty' }],
    ['null', { kind: 'skipped', code: 'chunk_null' }],
    ['7', { kind: 'skipped', code: 'chunk_not_object' }],
    ['[]', { kind: 'skipped', code: 'chunk_not_object' }],
    ['{', { kind: 'malformed' }],
    ['{"error":{}}', { kind: 'error', body: { error: {} } }],
    ['{"object":"error"}', { kind: 'error', body: { object: 'error' } }],
  ])('%j is no chunk', (data, reading) => {
    expect(readChunk(data)).toEqual(reading);
  });
});

describe('fields that are sent back', () => {
  const NAMES = [
    'reasoning_content',
    'reasoning_details',
    'reasoning_opaque',
    'thinking_blocks',
    'encrypted_content',
    'extra_content',
  ];
  it.each(NAMES)('%s, unless it is empty', (name) => {
    for (const value of ['a', ['a'], { a: 1 }, 0, false])
      expect(reasoningFieldsIn({ [name]: value })).toEqual({ [name]: value });
    for (const value of ['', null, undefined]) expect(reasoningFieldsIn({ [name]: value, other: 1 })).toBeUndefined();
  });

  const joined = (...pieces: object[]) => {
    const back = new ReasoningFields();
    for (const piece of pieces) back.add({ reasoning_details: [piece as never] });
    return (back.extraFor('m') as { fields: { reasoning_details: unknown } }).fields.reasoning_details;
  };
  const piece = (text: string, more: object = {}) => ({ type: 't', index: 0, text, ...more });
  it.each<[string, object[], object[]]>([
    ['of one type and index', [piece('a'), piece('b')], [piece('ab')]],
    ['of another type', [piece('a'), piece('b', { type: 'u' })], [piece('a'), piece('b', { type: 'u' })]],
    ['of another index', [piece('a'), piece('b', { index: 1 })], [piece('a'), piece('b', { index: 1 })]],
    [
      'of another id',
      [piece('a', { id: 'x' }), piece('b', { id: 'y' })],
      [piece('a', { id: 'x' }), piece('b', { id: 'y' })],
    ],
    ['of one id', [piece('a', { id: 'x' }), piece('b', { id: 'x' }), piece('c')], [piece('abc', { id: 'x' })]],
    ['with an id that comes later', [piece('a'), piece('b', { id: 'x' })], [piece('ab', { id: 'x' })]],
    ['after a signature', [piece('a', { signature: 's' }), piece('b')], [piece('a', { signature: 's' }), piece('b')]],
    [
      'of a summary',
      [
        { type: 't', summary: 'a' },
        { type: 't', summary: 'b' },
      ],
      [{ type: 't', summary: 'ab' }],
    ],
    [
      'of what is no text',
      [
        { type: 't', data: 'a' },
        { type: 't', data: 'b' },
      ],
      [
        { type: 't', data: 'a' },
        { type: 't', data: 'b' },
      ],
    ],
  ])('pieces %s are joined, or are not', (_, pieces, items) => {
    expect(joined(...pieces)).toEqual(items);
  });

  it('texts are joined, objects are merged, and missing fields stay missing', () => {
    const back = new ReasoningFields();
    expect(back.extraFor('m')).toBeUndefined();
    for (const fields of [
      { reasoning_opaque: 'a', extra_content: { a: 1, b: 1 } },
      { reasoning_opaque: 'b', extra_content: { b: 2 } },
    ])
      back.add(fields);
    expect(back.extraFor('m')).toEqual({
      chat: 'm',
      fields: { reasoning_opaque: 'ab', extra_content: { a: 1, b: 2 } },
    });
  });
});
