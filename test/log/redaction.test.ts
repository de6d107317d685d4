/**
 * Secrets in entries and in streamed replies, at each bound: the cleaned texts, the forms of a secret, and the results for equal keys,
 * bytes and pieces.
 */
import { describe, expect, it } from 'vitest';
import type { NewEntry } from '../../machines/internal.ts';
import type { Live } from '../../src/live.ts';
import { redactor } from '../../src/log/redact.ts';
import { RedactedReply } from '../../src/log/redactedReply.ts';
import { formsOf, SecretFreeText, withoutSecrets } from '../../src/log/secretText.ts';

const SECRET = 'se cr/ét"1';

describe('a value', () => {
  it('without a secret is returned as it is, and one with a secret is not changed in place', () => {
    const redact = redactor([SECRET]);
    for (const value of ['x', 7, null, [1, ['a']], { a: { b: ['c'] } }]) expect(redact(value)).toBe(value);
    const original = { a: [`<${SECRET}>`, 1], [`k ${SECRET}`]: { b: SECRET }, c: ['x'] };
    const copy = structuredClone(original);
    const cleaned = redact(original);
    expect(cleaned).toEqual({ a: ['<[redacted]>', 1], 'k [redacted]': { b: '[redacted]' }, c: ['x'] });
    expect(original).toEqual(copy);
    expect(cleaned.c).toBe(original.c);
  });

  it('keeps each value of keys that are alike without their secrets', () => {
    const redact = redactor(['one', 'two']);
    expect(redact({ one: 1, two: 2, '[redacted] 2': 3, x: 4 })).toEqual({
      ...{ '[redacted]': 1, '[redacted] 3': 2, '[redacted] 2': 3, x: 4 },
    });
    expect(Object.keys(redact({ one: 1, two: 2 }))).toEqual(['[redacted]', '[redacted] 2']);
    expect(redact({ one: 1 })).toEqual({ '[redacted]': 1 });
  });

  it.each([
    [['1234567'], '1234567'],
    [['12345678'], '[redacted]'],
    [['', '12345678'], '[redacted]'],
  ])('has no key of a model with eight characters or more: %j', (ofModel, expected) => {
    expect(redactor([], [ofModel])(ofModel.at(-1))).toBe(expected);
    // A secret that the host names may be short.
    expect(redactor(['abc'], [ofModel])('abc')).toBe('[redacted]');
  });

  it('has none of the keys that a model gets later, each time one comes', () => {
    const keys: string[] = ['first-key-1'];
    const redact = redactor([], [keys]);
    const shown = (): string => redact('first-key-1 second-key-2 third-key-33');
    expect(shown()).toBe('[redacted] second-key-2 third-key-33');
    keys.push('second-key-2');
    expect(shown()).toBe('[redacted] [redacted] third-key-33');
    keys.push('third-key-33');
    expect(shown()).toBe('[redacted] [redacted] [redacted]');
    expect(redact.reply).toBeDefined();
  });

  it('has none of the keys that any of several models gets later', () => {
    const keys: string[][] = [['first-key-1'], [], []];
    const redact = redactor([], keys);
    expect(redact('first-key-1 second-key-2 third-key-33')).toBe('[redacted] second-key-2 third-key-33');
    keys[2]?.push('third-key-33');
    expect(redact('first-key-1 second-key-2 third-key-33')).toBe('[redacted] second-key-2 [redacted]');
    keys[1]?.push('second-key-2');
    expect(redact('first-key-1 second-key-2 third-key-33')).toBe('[redacted] [redacted] [redacted]');
  });

  it.each(formsOf(SECRET))('has no secret in the form %s', (form) => {
    expect(redactor([SECRET])(`a${form}b${form}`)).toBe('a[redacted]b[redacted]');
  });

  it('has a secret in each form of JSON and of URLs', () => {
    const url = encodeURIComponent(SECRET);
    const json = JSON.stringify(SECRET).slice(1, -1);
    const forms = new Set(formsOf(SECRET));
    for (const form of [
      ...[SECRET, json, json.replace('/', '\\/'), json.replace('é', '\\u00e9')],
      ...[url, url.toLowerCase().replace('se%20', 'se%20'), url.replaceAll('%20', '+'), url.replace('%2F', '/')],
    ])
      expect([form, forms.has(form)]).toEqual([form, true]);
    expect(formsOf("it's(1)*!")).toContain('it%27s%281%29%2A%21');
    expect(formsOf('\ud800')).toContain('\ud800');
  });
});

describe('an entry', () => {
  const entryOf = (...content: object[]): NewEntry =>
    ({ runId: null, type: 'user-message', messageId: 'm', kind: 'direct', content }) as never;
  const redact = redactor(['s3cret']);

  it.each<[string, string]>([
    ['https://x.test/?key=s3cret', 'https://x.test/?key=[redacted]'],
    ['http://s3cret@x.test/', 'http://[redacted]@x.test/'],
    ['AAs3cretAA', 'AAs3cretAA'],
    ['data:image/png;base64,s3cret', 'data:image/png;base64,s3cret'],
  ])('with the image %s has %s: addresses are cleaned, encoded bytes are not', (data, expected) => {
    for (const type of ['image', 'file']) {
      const { content } = redact.entry(entryOf({ type, mediaType: 'a/b', data })) as unknown as {
        content: { data: string }[];
      };
      expect(content[0]?.data).toBe(expected);
    }
  });

  it('keeps the words of the library, and is the same object without a secret', () => {
    const plain = entryOf({ type: 'text', text: 'x' });
    expect(redact.entry(plain)).toBe(plain);
    const all = redactor(['user-message', 'direct', 'text', 'run-1', 'm']);
    const entry = { ...entryOf({ type: 'text', text: 'a direct word' }), runId: 'run-1' } as NewEntry;
    expect(all.entry(entry)).toEqual({ ...entry, content: [{ type: 'text', text: 'a [redacted] word' }] });
  });

  it('of a later kind is cleaned as a whole, but for its kind and its run', () => {
    const entry = { runId: 's3cret', type: 's3cret', other: { s3cret: ['s3cret'] } } as never;
    expect(redact.entry(entry)).toEqual({
      ...{ runId: 's3cret', type: 's3cret', other: { '[redacted]': ['[redacted]'] } },
    });
  });
});

describe('a text in pieces', () => {
  const SECRETS = ['abcab', 'bcabX', 'c'];
  const TEXT = 'xabcabcabXab abca abcab';
  const whole = withoutSecrets(TEXT, SECRETS);
  const joined = (pieces: readonly string[]): string => {
    const text = new SecretFreeText();
    return pieces.map((piece) => text.push(piece, SECRETS)).join('') + text.end(SECRETS);
  };

  it('is the whole text without secrets, wherever it is split', () => {
    expect(whole).toBe('x[redacted]ab ab[redacted]a [redacted]');
    for (let first = 0; first <= TEXT.length; first += 1)
      for (let second = first; second <= TEXT.length; second += 1)
        expect(joined([TEXT.slice(0, first), TEXT.slice(first, second), TEXT.slice(second)])).toBe(whole);
    expect(joined([...TEXT])).toBe(whole);
  });
});

describe('a streamed reply', () => {
  const begun = () => {
    const shown: Live[] = [];
    const redact = redactor(['s3cret']);
    const reply = new RedactedReply({
      ...{ secrets: () => ['s3cret'], redact, isTool: (name) => name === 's3cret-tool' },
      live: () => (signal) => void shown.push(signal),
    });
    return { reply, shown };
  };
  const delta = (text: string, type: 'text-delta' | 'reasoning-delta' = 'text-delta'): Live => ({
    type,
    runId: 'r',
    text,
  });
  const input = (index: number, text: string, more: object = {}): Live => ({
    type: 'tool-input-delta',
    runId: 'r',
    index,
    text,
    ...more,
  });
  const textsOf = (shown: readonly Live[], type: string): string =>
    shown.map((signal) => (signal.type === type && 'text' in signal ? signal.text : '')).join('');

  it('is shown in flight as it was signalled, after each piece and at its end', () => {
    const { reply, shown } = begun();
    expect(reply.inFlight).toBeNull();
    for (const signal of [delta('a s3'), delta('cret b s'), delta('hm s3cret s3', 'reasoning-delta'), delta('3')]) {
      reply.take(signal);
      const [text, reasoning] = [textsOf(shown, 'text-delta'), textsOf(shown, 'reasoning-delta')];
      expect(reply.inFlight).toEqual({ runId: 'r', text, reasoning, toolInputs: [] });
    }
    reply.end();
    expect(reply.inFlight).toMatchObject({ text: 'a [redacted] b s3', reasoning: 'hm [redacted] s3' });
    expect(textsOf(shown, 'text-delta')).toBe('a [redacted] b s3');
    reply.end();
    expect(textsOf(shown, 'text-delta')).toBe('a [redacted] b s3');
  });

  it('has no secret in a text that a call interrupts, because the log joins such a text', () => {
    const { reply, shown } = begun();
    reply.take(delta('a s3'));
    reply.take(input(0, '{}', { name: 'look' }));
    reply.take(delta('cret b'));
    reply.end();
    expect(textsOf(shown, 'text-delta')).toBe('a [redacted] b');
    expect(reply.inFlight?.text).toBe('a [redacted] b');
  });

  it('has nothing in flight after a reset, and the next attempt begins anew', () => {
    const { reply, shown } = begun();
    reply.take(delta('a s3cr'));
    reply.take({ type: 'reset', runId: 'r' });
    expect([reply.inFlight, shown.at(-1)]).toEqual([null, { type: 'reset', runId: 'r' }]);
    reply.end();
    reply.take(delta('et b'));
    reply.end();
    expect(reply.inFlight?.text).toBe('et b');
  });

  it('has the arguments of calls that come in turns, each with its name and its id, without secrets', () => {
    const { reply, shown } = begun();
    reply.take(input(0, 's3', { name: 'a s3cret', callId: 'c s3cret' }));
    reply.take(input(1, '', { name: 's3cret-tool', callId: 'd' }));
    reply.take(input(0, 'cret 0'));
    reply.take(input(1, '1 s3'));
    reply.take(delta('so'));
    reply.end();
    expect(reply.inFlight?.toolInputs).toEqual([
      { index: 0, name: 'a [redacted]', callId: 'c [redacted]', text: '[redacted] 0' },
      { index: 1, name: 's3cret-tool', callId: 'd', text: '1 s3' },
    ]);
    const texts = (index: number): string =>
      shown.map((signal) => ('index' in signal && signal.index === index ? signal.text : '')).join('');
    expect([texts(0), texts(1)]).toEqual(['[redacted] 0', '1 s3']);
    // The first piece of a call is shown for its name, also without a text.
    expect(shown[0]).toEqual(input(0, '', { name: 'a [redacted]', callId: 'c [redacted]' }));
  });
});
