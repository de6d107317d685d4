import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { volume } from '../support/tier.ts';
import { callDelta, DONE, delta, finished, frame, type Played, playPieces, textDelta, utf8 } from './scriptedFetch.ts';

const chunk = fc.oneof(
  fc.string({ unit: 'grapheme' }).map(textDelta),
  fc.string({ unit: 'grapheme' }).map((reasoning) => delta({ reasoning })),
  fc
    .record(
      {
        index: fc.nat(2),
        id: fc.constantFrom('', 'a', 'b', '__proto__'),
        function: fc.record({ name: fc.constantFrom('f', 'g'), arguments: fc.string() }, { requiredKeys: [] }),
      },
      { requiredKeys: [] },
    )
    .map((call) => callDelta(call)),
  fc.constantFrom<unknown>(null, '', { choices: [] }, { choices: [], usage: { prompt_tokens: 3 } }, delta(null)),
);
const ending = fc.constantFrom(
  frame(finished('stop')) + DONE,
  frame(finished('tool_calls')),
  frame(finished('length'), { choices: [], usage: { completion_tokens: 4 } }) + DONE + frame(textDelta('late')),
  '',
  DONE,
  'data: {"choices":[{"delta":{"content":"é',
  frame({ error: { message: 'overloaded' } }),
  'event: error\ndata: {}\n\n',
  'data: {"broken"\n\n',
);
const lineEnd = fc.constantFrom('\n', '\r\n', '\r');
/** An event's data may occupy several lines. */
const dataLines = fc.constantFrom('"choices"', '\ndata: "choices"', '\ndata:\ndata:"choices"');
const comment = fc.constantFrom('', ': ping\n\n', '\ufeff', 'id: 1\nretry: 5\n');

/** A body, and places to cut it at as fractions of its length. */
const bodies = fc.record({
  text: fc
    .tuple(comment, fc.array(chunk, { maxLength: 12 }), ending, lineEnd, dataLines)
    .map(([before, chunks, end, eol, lines]) =>
      (before + frame(...chunks) + end).replaceAll('"choices"', lines).replaceAll('\n', eol),
    ),
  cuts: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 20 }),
});

function cut(bytes: Uint8Array, cuts: readonly number[]): Uint8Array[] {
  const places = [0, ...cuts.map((at) => Math.floor(at * bytes.length)), bytes.length].sort((a, b) => a - b);
  return places.slice(1).map((place, at) => bytes.subarray(places[at], place));
}

const outcomeOf = ({ parts, error }: Played) => ({ parts, code: error?.code, message: error?.message });

describe('B21 the split of the bytes', () => {
  // Bytes after the end are read for a short real time, which is stopped here.
  beforeAll(() => void vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] }));
  afterAll(() => void vi.useRealTimers());

  it('never changes the parts of a reply nor how it fails', async () => {
    await fc.assert(
      fc.asyncProperty(bodies, async ({ text, cuts }) => {
        const bytes = utf8(text);
        const whole = outcomeOf(await playPieces([bytes]));
        expect(outcomeOf(await playPieces(cut(bytes, cuts)))).toEqual(whole);
      }),
      { numRuns: volume.bytes },
    );
  });

  it('never changes them also one byte at a time', async () => {
    await fc.assert(
      fc.asyncProperty(bodies, async ({ text }) => {
        const bytes = utf8(text);
        const whole = outcomeOf(await playPieces([bytes]));
        expect(outcomeOf(await playPieces(Array.from(bytes, (byte) => Uint8Array.of(byte))))).toEqual(whole);
      }),
      { numRuns: Math.ceil(volume.bytes / 6) },
    );
  });
});

describe('arbitrary bytes', () => {
  it('give a reply or a ModelError, and intrinsics stay as they are', async () => {
    const noise = fc.array(
      fc.oneof(
        fc.string({ unit: 'binary' }),
        fc.json().map((json) => `data: ${json}\n\n`),
        fc.constantFrom('data: ', '\n', '\r\n', '{"choices":[{"delta":', '}', DONE),
      ),
      { maxLength: 20 },
    );
    await fc.assert(
      fc.asyncProperty(noise, async (pieces) => {
        const { parts, error } = await playPieces(pieces);
        if (error === undefined) expect(parts.at(-1)?.type).toBe('finish');
        else expect(error.name).toBe('ModelError');
        expect(Object.keys(Object.prototype)).toEqual([]);
      }),
      { numRuns: volume.bytes },
    );
  });

  it('any JSON in the place of a chunk’s parts gives a reply or a ModelError', async () => {
    const shapes = fc.record(
      { index: fc.jsonValue(), delta: fc.jsonValue(), finish_reason: fc.jsonValue(), usage: fc.jsonValue() },
      { requiredKeys: [] },
    );
    const calls = fc.record(
      {
        content: fc.jsonValue(),
        tool_calls: fc.array(
          fc.dictionary(fc.constantFrom('index', 'id', 'function', '__proto__', 'x'), fc.jsonValue()),
        ),
        function_call: fc.jsonValue(),
      },
      { requiredKeys: [] },
    );
    const odd = fc.oneof(
      fc.jsonValue(),
      fc.array(shapes).map((choices) => ({ choices })),
      calls.map((fields) => delta(fields)),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(odd, { maxLength: 6 }), async (chunks) => {
        const { parts, error } = await playPieces([frame(...chunks, finished('stop'))]);
        if (error === undefined) expect(parts.at(-1)?.type).toBe('finish');
        else expect(error.name).toBe('ModelError');
      }),
      { numRuns: volume.bytes },
    );
  });
});
