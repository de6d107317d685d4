import { describe, expect, it } from 'vitest';
import {
  codesIn,
  DONE,
  delta,
  finished,
  finishIn,
  frame,
  playPieces,
  textDelta,
  textIn,
  utf8,
} from './scriptedFetch.ts';

const good = frame(textDelta('hel'), textDelta('lo'), finished('stop')) + DONE;

describe('a complete stream', () => {
  it('yields its text piece by piece and then its finish', async () => {
    const { parts, error } = await playPieces([good]);
    expect(error).toBeUndefined();
    expect(parts).toEqual([
      { type: 'text-delta', text: 'hel' },
      { type: 'text-delta', text: 'lo' },
      { type: 'finish', reason: 'stop' },
    ]);
  });

  it('H-004 needs no end mark after a finish reason', async () => {
    const { parts, error } = await playPieces([frame(textDelta('hello'), finished('stop'))]);
    expect(error).toBeUndefined();
    expect(textIn(parts)).toBe('hello');
    expect(finishIn(parts)).toEqual({ type: 'finish', reason: 'stop' });
  });

  it.each([
    ['CRLF', good.replaceAll('\n', '\r\n')],
    ['lone CR', good.replaceAll('\n', '\r')],
    ['mixed line ends', good.replaceAll('\n\n', '\n\r\n')],
    ['no space after the colon', good.replaceAll('data: ', 'data:')],
    ['comments between events', good.replaceAll('data: ', ': OPENROUTER PROCESSING\n\ndata: ')],
    ['other fields', good.replaceAll('data: ', 'id: 7\nretry: 10\nx: y\ndata: ')],
    ['an event name', good.replaceAll('data: ', 'event: message\ndata: ')],
    ['JSON over several data lines', good.replaceAll('"choices"', '\ndata: "choices"')],
    ['no blank line at the very end', frame(textDelta('hello'), finished('stop')).trimEnd()],
  ])('H-005 reads the same text with %s', async (_name, body) => {
    const { parts, error } = await playPieces([body]);
    expect(error).toBeUndefined();
    expect(textIn(parts)).toBe('hello');
    expect(finishIn(parts)).toEqual({ type: 'finish', reason: 'stop' });
  });

  it('H-006 joins characters that arrive one byte at a time', async () => {
    const bytes = utf8(frame(textDelta('héé🎉'), finished('stop')) + DONE);
    const { parts, error } = await playPieces(Array.from(bytes, (byte) => Uint8Array.of(byte)));
    expect(error).toBeUndefined();
    expect(textIn(parts)).toBe('héé🎉');
  });

  it.each([[[`\ufeff${good}`]], [Array.from(utf8(`\ufeff${good}`), (byte) => Uint8Array.of(byte))]])(
    'H-008 a byte order mark before the first event is no text',
    async (pieces) => {
      const { parts, error } = await playPieces(pieces);
      expect(error).toBeUndefined();
      expect(textIn(parts)).toBe('hello');
    },
  );

  it('H-016 counts usage that comes in a last chunk without choices', async () => {
    const usage = {
      prompt_tokens: 12,
      completion_tokens: 5,
      prompt_tokens_details: { cached_tokens: 8 },
      completion_tokens_details: { reasoning_tokens: 3 },
    };
    const { parts } = await playPieces([frame(textDelta('a'), finished('stop'), { choices: [], usage }) + DONE]);
    expect(codesIn(parts)).toEqual([]);
    expect(parts.filter((part) => part.type === 'finish')).toEqual([
      {
        type: 'finish',
        reason: 'stop',
        usage: { inputTokens: 12, outputTokens: 5, cachedInputTokens: 8, cacheWriteTokens: 0, reasoningTokens: 3 },
      },
    ]);
  });

  it('invalid token counts are omitted, and 0 for the details', async () => {
    const usage = { prompt_tokens: -1, completion_tokens: '5', prompt_tokens_details: { cached_tokens: -2 } };
    const { parts } = await playPieces([frame({ ...finished('stop'), usage }) + DONE]);
    expect(finishIn(parts)).toEqual({
      type: 'finish',
      reason: 'stop',
      usage: { cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 },
    });
  });

  it('uses the last usage if a server repeats it', async () => {
    const counted = (n: number) => ({ ...textDelta('a'), usage: { prompt_tokens: 1, completion_tokens: n } });
    const { parts } = await playPieces([frame(counted(1), counted(2), { ...finished('stop'), usage: null }) + DONE]);
    expect(finishIn(parts)).toMatchObject({ usage: { inputTokens: 1, outputTokens: 2, cachedInputTokens: 0 } });
  });

  it('H-038 reads 200,000 deltas of one character', async () => {
    const block = frame(textDelta('x')).repeat(1000);
    const { parts, error } = await playPieces([...Array<string>(200).fill(block), frame(finished('stop')) + DONE]);
    expect(error).toBeUndefined();
    expect(parts).toHaveLength(200_001);
    expect(textIn(parts)).toBe('x'.repeat(200_000));
  });

  it('yields reasoning separately from text, once for both names', async () => {
    const { parts } = await playPieces([
      frame(
        delta({ reasoning_content: 'a' }),
        delta({ reasoning: 'b' }),
        delta({ reasoning: 'c', reasoning_content: 'c' }),
        delta({ content: 'd' }, 'stop'),
      ),
    ]);
    expect(parts).toEqual([
      { type: 'reasoning-delta', text: 'a' },
      { type: 'reasoning-delta', text: 'b' },
      { type: 'reasoning-delta', text: 'c' },
      { type: 'text-delta', text: 'd' },
      { type: 'finish', reason: 'stop', extra: { chat: 'test-model', fields: { reasoning_content: 'ac' } } },
    ]);
  });

  it('H-048 a refusal is text with a mark', async () => {
    const { parts } = await playPieces([
      frame(delta({ content: null, refusal: 'I ' }), delta({ refusal: 'cannot' }), finished('stop')) + DONE,
    ]);
    expect(parts).toEqual([
      { type: 'refusal' },
      { type: 'text-delta', text: 'I ' },
      { type: 'text-delta', text: 'cannot' },
      { type: 'finish', reason: 'stop' },
    ]);
  });

  it.each([
    ['stop', 'stop'],
    ['STOP', 'stop'],
    ['tool_calls', 'tool-calls'],
    ['function_call', 'tool-calls'],
    ['length', 'length'],
    ['content_filter', 'content-filter'],
  ])('the finish reason %s is %s', async (finishReason, reason) => {
    const { parts } = await playPieces([frame(textDelta('a'), finished(finishReason)) + DONE]);
    expect(finishIn(parts)).toEqual({ type: 'finish', reason });
    expect(codesIn(parts)).toEqual([]);
  });

  it('an unknown finish reason ends the reply with a diagnostic', async () => {
    const { parts } = await playPieces([frame(textDelta('a'), finished('cosmic_ray')) + DONE]);
    expect(parts.slice(1)).toEqual([
      { type: 'diagnostic', code: 'finish_reason_unknown', detail: { reason: 'cosmic_ray' } },
      { type: 'finish', reason: 'stop' },
    ]);
  });

  it('a reply that was cut by length stays cut when the server sends stop afterwards', async () => {
    const { parts } = await playPieces([frame(textDelta('a'), finished('length'), finished('stop')) + DONE]);
    expect(finishIn(parts)).toEqual({ type: 'finish', reason: 'length' });
  });

  it('H-030 the reason tool_calls without a call is a reply without calls', async () => {
    const { parts, error } = await playPieces([frame(finished('tool_calls')) + DONE]);
    expect(error).toBeUndefined();
    expect(parts).toEqual([{ type: 'finish', reason: 'tool-calls' }]);
  });

  it('an empty finish_reason, which some servers send with every chunk, is ignored', async () => {
    const { error } = await playPieces([frame(delta({ content: 'a' }, '')) + DONE]);
    expect(error?.code).toBe('stream-incomplete');
  });

  it('a completion that was not streamed is a reply too', async () => {
    const message = { role: 'assistant', content: 'hello', refusal: null };
    const body = JSON.stringify({
      choices: [{ index: 0, message, finish_reason: 'stop' }],
      usage: { prompt_tokens: 1 },
    });
    const { parts, error } = await playPieces([body], { headers: { 'content-type': 'application/json' } });
    expect(error).toBeUndefined();
    expect(textIn(parts)).toBe('hello');
    expect(finishIn(parts)).toMatchObject({ reason: 'stop', usage: { inputTokens: 1 } });
  });
});

describe('a stream with invalid data', () => {
  it.each([
    ['H-012 a null chunk', 'null', 'chunk_null'],
    ['a number', '42', 'chunk_not_object'],
    ['a list', '[]', 'chunk_not_object'],
    ['a text', '"hello"', 'chunk_not_object'],
    ['an empty event', '', 'chunk_empty'],
    ['H-019 a chunk without choices', '{"id":"x"}', 'chunk_without_choices'],
    ['H-019 a choice without delta', '{"choices":[{"index":0,"finish_reason":null}]}', 'chunk-without-delta'],
    ['H-019 a choice whose delta is null', '{"choices":[{"index":0,"delta":null}]}', 'chunk-without-delta'],
    ['a choice that is no object', '{"choices":[null]}', 'choice_ignored'],
    ['content of another type', '{"choices":[{"index":0,"delta":{"content":7}}]}', 'content_unreadable'],
    ['a call that is no object', '{"choices":[{"delta":{"tool_calls":["x"]}}]}', 'call_not_object'],
  ])('%s is one diagnostic and changes nothing else', async (_name, odd, code) => {
    const { parts, error } = await playPieces([frame(textDelta('a'), odd, textDelta('b'), finished('stop')) + DONE]);
    expect(error).toBeUndefined();
    expect(codesIn(parts)).toEqual([code]);
    expect(textIn(parts)).toBe('ab');
  });

  it('a thousand invalid chunks are a few diagnostics', async () => {
    const { parts } = await playPieces([frame('null').repeat(1000) + good]);
    expect(codesIn(parts)).toEqual(Array(4).fill('chunk_null'));
    expect(textIn(parts)).toBe('hello');
  });

  it('H-040 events after the end mark are ignored with a diagnostic', async () => {
    const { parts, error } = await playPieces([good + frame(textDelta('more'), { error: { message: 'late' } })]);
    expect(error).toBeUndefined();
    expect(textIn(parts)).toBe('hello');
    expect(codesIn(parts)).toEqual(['after_done', 'after_done']);
    expect(parts.at(-1)?.type).toBe('finish');
  });

  it('H-046 keys such as __proto__ change no prototype', async () => {
    const evil =
      '{"__proto__":{"polluted":1,"choices":[{"delta":{"content":"evil"}}]},"constructor":{"a":1},"choices":[]}';
    const { parts, error } = await playPieces([frame(evil) + good]);
    expect(error).toBeUndefined();
    expect(textIn(parts)).toBe('hello');
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });

  it('choices other than the first are ignored', async () => {
    const other = { index: 1, delta: { content: 'other' }, finish_reason: 'length' };
    const both = { choices: [other, { index: 0, delta: { content: 'first' }, finish_reason: null }] };
    const { parts } = await playPieces([frame(both, { choices: [other] }, finished('stop')) + DONE]);
    expect(textIn(parts)).toBe('first');
    expect(finishIn(parts)).toEqual({ type: 'finish', reason: 'stop' });
  });
});
