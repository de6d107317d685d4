import { describe, expect, it, vi } from 'vitest';
import { eventStream } from '../../src/models/wire/eventStream.ts';
import {
  codesIn,
  DONE,
  delta,
  finished,
  finishIn,
  frame,
  modelOf,
  play,
  playPieces,
  served,
  textDelta,
  textIn,
  utf8,
} from './scriptedFetch.ts';

const good = frame(textDelta('hel'), textDelta('lo'), finished('stop')) + DONE;

describe('an incomplete stream', () => {
  it.each([
    ['H-001 an end without finish reason', frame(textDelta('par'))],
    ['H-001 an end mark without finish reason', frame(textDelta('par')) + DONE],
    ['H-003 an end inside a JSON event', `${frame(textDelta('par'))}data: {"choices":[{"index":0,"delta":{"con`],
    [
      'an end inside a character',
      utf8(`${frame(textDelta('par'))}data: {"choices":[{"delta":{"content":"é`).slice(0, -1),
    ],
  ])('%s is a retryable failure', async (_name, body) => {
    const { parts, error } = await playPieces([body]);
    expect(error).toMatchObject({ name: 'ModelError', code: 'stream-incomplete', retryable: true });
    expect(textIn(parts)).toBe('par');
    expect(finishIn(parts)).toBeUndefined();
  });

  it.each([[[]], [['']], [[DONE]]])('zero chunks are a failure', async (pieces) => {
    const { error } = await playPieces(pieces);
    expect(error).toMatchObject({ code: 'stream-incomplete', retryable: true });
    expect(error?.message).toContain('without sending a chunk');
  });

  it.each(['{"choices":', '<html>', "{'a':1}", 'undefined'])(
    'malformed JSON %j is a retryable bad frame',
    async (data) => {
      const { parts, error } = await playPieces([frame(textDelta('a'), data) + good]);
      expect(error).toMatchObject({ code: 'bad-frame', retryable: true });
      expect(textIn(parts)).toBe('a');
    },
  );

  it('malformed JSON after the finish reason is only a diagnostic', async () => {
    const { parts, error } = await playPieces([frame(textDelta('a'), finished('stop'), '{"usage":') + DONE]);
    expect(error).toBeUndefined();
    expect(codesIn(parts)).toEqual(['chunk_malformed']);
    expect(parts.at(-1)).toEqual({ type: 'finish', reason: 'stop' });
  });

  it('H-014 a web page of a proxy is an error that quotes it', async () => {
    const { parts, error } = await playPieces(['<html><title>Gateway\u001b[2J asleep</title></html>'], {
      headers: { 'content-type': 'text/html; charset=utf-8' },
    });
    expect(parts).toEqual([]);
    expect(error).toMatchObject({ code: 'content-type', retryable: true });
    expect(error?.message).toContain('text/html');
    expect(error?.message).toContain('Gateway [2J asleep');
  });

  it('a connection that breaks is a retryable network failure', async () => {
    const { parts, error } = await playPieces([frame(textDelta('par'))], { end: new TypeError('terminated') });
    expect(textIn(parts)).toBe('par');
    expect(error).toMatchObject({ code: 'network', retryable: true });
    expect(error?.message).toContain('terminated');
  });

  it('a connection that breaks after the finish reason does not fail the reply', async () => {
    const body = frame(textDelta('hello'), finished('stop'));
    const { parts, error } = await playPieces([body], { end: new TypeError('terminated') });
    expect(error).toBeUndefined();
    expect(codesIn(parts)).toEqual(['cut_after_finish']);
    expect(finishIn(parts)).toEqual({ type: 'finish', reason: 'stop' });
  });

  it('a server that keeps the connection open without an end mark is disconnected two seconds after the finish reason', async () => {
    vi.useFakeTimers();
    try {
      let left = false;
      const body = new ReadableStream<Uint8Array>({
        start: (controller) => controller.enqueue(utf8(frame(textDelta('hello'), finished('stop')))),
        pull: (controller) =>
          new Promise((resolve) => {
            setTimeout(() => {
              if (!left) controller.enqueue(utf8(': alive\n\n'));
              resolve();
            }, 500);
          }),
        cancel: () => {
          left = true;
        },
      });
      const played = play(modelOf(() => new Response(body, { headers: { 'content-type': 'text/event-stream' } })));
      await vi.advanceTimersByTimeAsync(2_000);
      const { parts, error } = await played;
      expect([error, textIn(parts)]).toEqual([undefined, 'hello']);
      expect(finishIn(parts)).toEqual({ type: 'finish', reason: 'stop' });
      expect(left).toBe(true);
    } finally {
      vi.useRealTimers();
    }
  });

  it('a server that does not close after the end mark is disconnected', async () => {
    let cancelled = 0;
    const model = modelOf(() => served([good], { end: 'hang', cancelled: () => (cancelled += 1) }));
    const { parts, error } = await play(model);
    expect(error).toBeUndefined();
    expect(finishIn(parts)).toEqual({ type: 'finish', reason: 'stop' });
    expect(cancelled).toBe(1);
  });
});

describe('limits', () => {
  it.each([
    ['the end mark', good],
    ['the finish reason', frame(textDelta('hello'), finished('stop'))],
  ])('a server that never stops after %s is left', async (_name, first) => {
    let sent = 0;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        sent += 1;
        controller.enqueue(utf8(sent === 1 ? first : frame({ choices: [] }).repeat(1000)));
      },
    });
    const { parts, error } = await play(modelOf(() => new Response(body)));
    expect(error).toBeUndefined();
    expect(textIn(parts)).toBe('hello');
    expect(parts.at(-1)).toEqual({ type: 'finish', reason: 'stop' });
    expect(sent).toBeLessThan(100);
  });

  it('H-037 an event without an end is refused at the limit, and no more of it is read', async () => {
    const mebibyte = new Uint8Array(1024 * 1024).fill(120);
    let sent = 0;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        sent += 1;
        if (sent > 64) controller.close();
        else controller.enqueue(sent === 1 ? utf8('data: ') : mebibyte);
      },
    });
    const { error } = await play(
      modelOf(() => new Response(body, { headers: { 'content-type': 'text/event-stream' } })),
    );
    expect(error).toMatchObject({ code: 'frame-too-large', retryable: true });
    expect(sent).toBeLessThan(16);
  });

  it('H-037 one network chunk of 64 MiB is not decoded beyond the limit', async () => {
    const { error } = await playPieces([new Uint8Array(64 * 1024 * 1024).fill(120)]);
    expect(error).toMatchObject({ code: 'frame-too-large', retryable: true });
  });

  it('an event above the limit is refused even if it comes at once', () => {
    const seen: string[] = [];
    const events = eventStream((data) => seen.push(data), 32);
    events.push(utf8('data: small\n\n'));
    expect(() => events.push(utf8(`data: ${'x'.repeat(40)}\n\n`))).toThrow(/more than 32 bytes/);
    expect(seen).toEqual(['small']);
  });

  it('lines that are not an event stream fail the call', async () => {
    const { error } = await playPieces(['x\n'.repeat(5000)]);
    expect(error).toMatchObject({ code: 'bad-frame', retryable: true });
  });

  it('a reply may contain any number of calls within its limit of characters', async () => {
    const made = (from: number) =>
      Array.from({ length: 5_000 }, (_, index) => ({
        index: from + index,
        id: `c${from + index}`,
        function: { name: 'f' },
      }));
    const frames = (count: number) =>
      Array.from({ length: count }, (_, index) => frame(delta({ tool_calls: made(5_000 * index) })));
    const { error, parts } = await playPieces([...frames(1), frame(finished('tool_calls'))]);
    expect(error).toBeUndefined();
    expect(parts.filter(({ type }) => type === 'tool-call')).toHaveLength(5_000);
    const many = await playPieces([...frames(53), frame(finished('tool_calls'))]);
    expect(many.error).toMatchObject({ code: 'reply-too-large', retryable: false });
  });

  it('a reply of more than 64 MiB of text is not used', async () => {
    const block = frame(textDelta('x'.repeat(4 * 1024 * 1024)));
    const { error } = await playPieces([...Array<string>(17).fill(block), frame(finished('stop'))]);
    expect(error).toMatchObject({ code: 'reply-too-large', retryable: false });
  });
});
