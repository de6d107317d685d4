/** Results, errors, side values and retries of tools: each kind of answer, and both sides of each bound. */
import { describe, expect, test } from 'vitest';
import type { NewEntry } from '../../machines/internal.ts';
import { ConfigurationError, RunchartError } from '../../src/errors.ts';
import { cut, erred, replacedContent, side, toolValue } from '../../src/tools/toolResult.ts';
import { onlyRefusing, type RetryPolicy, retryOf, type ToolFailure } from '../../src/tools/toolRetry.ts';

const hidden = <T>(value: T): T => (typeof value === 'string' ? (value.replaceAll('SECRET', '[hidden]') as T) : value);
const redact = Object.assign(hidden, { entry: (entry: NewEntry): NewEntry => entry });
const limits = (resultBytes = 1_000) => ({ resultBytes, redact });
const bytesOf = (text: string): number => Buffer.byteLength(text);

describe('a text that is cut', () => {
  const WIDTHS = { a: 1, é: 2, '€': 3, '👍': 4 } as const;

  test.each(Object.entries(WIDTHS))(
    'of %s stays whole up to its bound, and beyond it is shorter than the bound',
    (character, width) => {
      for (const bytes of [96, 100, 101, 102, 103, 250]) {
        const fits = character.repeat(Math.floor(bytes / width));
        expect(cut(fits, bytes)).toBe(fits);
        const text = cut(character.repeat(Math.floor(bytes / width) + 1), bytes);
        const [head = '', left, tail = ''] = text.split(/\n\[(\d+) characters left out\]\n/);
        expect(bytesOf(text)).toBeLessThanOrEqual(bytes);
        expect(text).not.toMatch(/\ufffd|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/);
        expect(head.length + Number(left) + tail.length).toBe((Math.floor(bytes / width) + 1) * character.length);
        // Both ends have nearly half of the room.
        expect(Math.min(bytesOf(head), bytesOf(tail))).toBeGreaterThan((bytes - 48) / 2 - width);
      }
    },
  );

  test('of halves of characters, which take three bytes each, repeats nothing and is shorter than the bound', () => {
    for (const half of ['\ud83c', '\udf89']) {
      const text = cut(half.repeat(400), 1_000);
      const [head = '', left, tail = ''] = text.split(/\n\[(\d+) characters left out\]\n/);
      expect([head.length, Number(left), tail.length]).toEqual([158, 84, 158]);
      expect(bytesOf(text)).toBeLessThanOrEqual(1_000);
    }
  });

  test('keeps its beginning and its end', () => {
    const text = cut(`begin${'x'.repeat(500)}end`, 200);
    expect([text.startsWith('begin'), text.endsWith('end')]).toEqual([true, true]);
  });
});

describe('the value of an answer', () => {
  const text = (words: string) => [{ type: 'text', text: words }];

  test.each<[unknown, object]>([
    [undefined, { kind: 'succeeded', content: text('(no output)') }],
    ['', { kind: 'succeeded', content: text('') }],
    ['a SECRET', { kind: 'succeeded', content: text('a [hidden]') }],
    [null, { kind: 'succeeded', content: text('null') }],
    [0, { kind: 'succeeded', content: text('0') }],
    [false, { kind: 'succeeded', content: text('false') }],
    [{ a: 'SECRET' }, { kind: 'succeeded', content: text('{"a":"[hidden]"}') }],
    [1n, { kind: 'erred', code: 'not_json' }],
    [new Error('a SECRET'), { kind: 'erred', code: 'error' }],
  ])('%o is bounded JSON without secrets', (content, value) => {
    expect(toolValue({ status: 'success', content } as never, limits())).toMatchObject(value);
    expect(JSON.stringify(toolValue({ status: 'success', content } as never, limits()))).not.toContain('SECRET');
  });

  test.each<[unknown, string]>([
    ['mine', 'mine'],
    ['', 'error'],
    [undefined, 'error'],
    [5, 'error'],
    ['SECRET', '[hidden]'],
    ['x'.repeat(64), 'x'.repeat(64)],
    ['x'.repeat(65), 'x'.repeat(64)],
  ])('of an error with the code %o has the code %s', (code, shown) => {
    for (const content of ['failed', new Error('failed')]) {
      const value = toolValue({ status: 'error', content, code } as never, limits());
      expect(value).toMatchObject({ kind: 'erred', code: shown });
    }
  });

  test.each<[unknown, object]>([
    [{ reason: 'later' }, { kind: 'pending', reason: 'later' }],
    [
      { reason: 'a SECRET', payload: null },
      { kind: 'pending', reason: 'a [hidden]', payload: null },
    ],
    [
      { reason: 'x', payload: 1n },
      { kind: 'erred', code: 'not_json' },
    ],
    [
      { reason: 'x', payload: 'y'.repeat(999) },
      { kind: 'erred', code: 'too_large' },
    ],
    [{ reason: 1 }, { kind: 'erred', code: 'error' }],
    [undefined, { kind: 'erred', code: 'error' }],
  ])('of a suspension %o waits, or is an error', (suspend, value) => {
    expect(toolValue({ status: 'pending', suspend } as never, limits())).toMatchObject(value);
  });

  test('of a suspension has a reason of at most 4,096 bytes', () => {
    const reasonOf = (length: number) => {
      const value = toolValue({ status: 'pending', suspend: { reason: 'x'.repeat(length) } } as never, limits());
      return value.kind === 'pending' ? value.reason.length : 0;
    };
    expect([reasonOf(4_096), reasonOf(4_097) <= 4_096]).toEqual([4_096, true]);
  });

  test.each<[unknown, object]>([
    [{ a: 1 }, { kind: 'succeeded', writes: { a: 1 } }],
    [{}, { kind: 'succeeded', writes: {} }],
    [[], { kind: 'erred', code: 'not_json' }],
    [null, { kind: 'erred', code: 'not_json' }],
    ['text', { kind: 'erred', code: 'not_json' }],
    [{ a: 1n }, { kind: 'erred', code: 'not_json' }],
    [{ a: 'x'.repeat(1_000) }, { kind: 'erred', code: 'too_large' }],
  ])('with the state %o writes it, or is an error', (state, value) => {
    expect(toolValue({ status: 'success', content: 'ok', state } as never, limits())).toMatchObject(value);
  });

  test('of several parts shares one bound, and is one text beyond it', () => {
    const parts = (length: number) => [
      ...text('a'.repeat(length)),
      { type: 'image', mediaType: 'image/png', data: 'iVBORw0KGgoAAAANSUhEUgAAAAE=' },
      ...text('b'.repeat(99)),
    ];
    const contentOf = (length: number) => replacedContent(parts(length) as never, limits(200));
    expect(contentOf(100).map(({ type }) => type)).toEqual(['text', 'image', 'text']);
    const joined = contentOf(101);
    expect(joined.map(({ type }) => type)).toEqual(['text', 'image']);
    expect(bytesOf((joined[0] as { text: string }).text)).toBeLessThanOrEqual(200);
  });

  test('beside the result is as large as its bound, and no larger', () => {
    expect(side('x', 'a'.repeat(98), limits(100))).toEqual({ value: 'a'.repeat(98) });
    expect(side('x', 'a'.repeat(99), limits(100))).toEqual(erred('too_large', 'x is longer than 100 bytes'));
    expect(side('x', 'é'.repeat(49), limits(100))).toEqual({ value: 'é'.repeat(49) });
    expect(side('x', 'é'.repeat(50), limits(100))).toMatchObject({ code: 'too_large' });
  });
});

describe('a failing tool', () => {
  const KINDS: readonly ToolFailure[] = ['thrown', 'returned', 'timeout'];
  const isRepeated = (policy: RetryPolicy, error: unknown, kind: ToolFailure, isIdempotent: boolean): boolean =>
    retryOf({ toolRetry: policy }, { random: () => 0.5 })(error, kind, isIdempotent).retry?.random === 0.5;
  const aborted = new DOMException('x', 'AbortError');
  const ERRORS: readonly (readonly [name: string, error: unknown, isFinal: boolean, isOwn: boolean])[] = [
    ['an error', new Error('x'), false, false],
    ['a text', 'x', false, false],
    ['nothing', undefined, false, false],
    ['an error of the library', new RunchartError('x', 'x'), false, true],
    ['a wrong configuration', new ConfigurationError('x'), true, true],
    ['an abort', aborted, true, false],
    ['an object named like an abort', { name: 'AbortError' }, true, false],
  ];
  const cases = ERRORS.flatMap((error) =>
    KINDS.flatMap((kind) => [true, false].map((isIdempotent) => ({ error, kind, isIdempotent }))),
  );

  test('is repeated without a decision of the host if it threw, and after a time-out if it is idempotent', () => {
    for (const {
      error: [name, error, isFinal, isOwn],
      kind,
      isIdempotent,
    } of cases) {
      const wanted = !isFinal && (kind === 'timeout' ? isIdempotent : !isOwn);
      for (const policy of [{}, { retryable: onlyRefusing(() => false) }])
        expect([name, kind, isIdempotent, isRepeated(policy, error, kind, isIdempotent)]).toEqual([
          name,
          kind,
          isIdempotent,
          wanted,
        ]);
    }
  });

  test('is repeated as the host decides, but never after an abort or a wrong configuration', () => {
    for (const {
      error: [name, error, isFinal],
      kind,
      isIdempotent,
    } of cases) {
      const decided = (answer: () => unknown): boolean =>
        isRepeated({ retryable: answer as () => boolean }, error, kind, isIdempotent);
      expect([name, kind, decided(() => true)]).toEqual([name, kind, !isFinal]);
      // The rejection of an answer is handled too, or it would fail this test.
      const rejected = () => Promise.reject(new Error('x'));
      for (const no of [() => false, () => undefined, () => 1, () => 'yes', () => Promise.resolve(true), rejected])
        expect([name, kind, decided(no)]).toEqual([name, kind, false]);
    }
  });

  test('is not repeated if the policy is off, the host refuses, or the host throws', () => {
    for (const {
      error: [, error],
      kind,
    } of cases) {
      const throws = () => {
        throw new Error('x');
      };
      for (const policy of [
        false,
        { retryable: throws },
        { retryable: onlyRefusing(() => true) },
        { retryable: onlyRefusing(throws) },
      ] as const)
        expect(isRepeated(policy, error, kind, true)).toBe(false);
    }
  });
});
