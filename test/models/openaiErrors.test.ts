import { inspect } from 'node:util';
import { describe, expect, it, vi } from 'vitest';
import type { ModelError } from '../../src/models/model.ts';
import { openai } from '../../src/models/openai/openai.ts';
import {
  finished,
  finishIn,
  frame,
  KEY,
  modelOf,
  play,
  playPieces,
  served,
  textDelta,
  textIn,
} from './scriptedFetch.ts';

const json = { 'content-type': 'application/json' };
const answered = async (status: number, body: unknown, headers: Record<string, string> = {}): Promise<ModelError> => {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const { parts, error } = await playPieces([text], { status, headers: { ...json, ...headers } });
  expect(parts).toEqual([]);
  if (error === undefined) throw new Error(`the call did not fail on status ${status}`);
  return error;
};

describe('a response that is not 2xx', () => {
  it.each([
    [400, 'bad-request', false],
    [401, 'auth', false],
    [402, 'quota', false],
    [403, 'auth', false],
    [404, 'not-found', false],
    [408, 'timeout', true],
    [409, 'server', true],
    [413, 'bad-request', false],
    [418, 'bad-request', false],
    [422, 'bad-request', false],
    [429, 'rate-limit', true],
    [500, 'server', true],
    [502, 'server', true],
    [503, 'server', true],
    [529, 'server', true],
  ])('%i is %s, retryable: %s', async (status, code, retryable) => {
    const error = await answered(status, { error: { message: 'because', type: 'x', code: null } });
    expect(error).toMatchObject({ name: 'ModelError', status, code, retryable });
    expect(error.message).toContain(String(status));
    expect(error.message).toContain('because');
  });

  it.each([
    [429, { error: { message: 'no', type: 'insufficient_quota', code: 'insufficient_quota' } }, 'quota'],
    [429, { error: { message: 'no', code: 'billing_hard_limit_reached' } }, 'quota'],
    [403, { error: { message: 'no', type: 'billing_not_active' } }, 'quota'],
    [400, { error: { message: 'no', code: 'content_filter' } }, 'content-filter'],
  ])('H-043 %i with %j is %s whatever the status is', async (status, body, code) => {
    expect(await answered(status, body)).toMatchObject({ status, code, retryable: false });
  });

  it.each([
    ['{"error":{"message":"in an object"}}', 'in an object'],
    ['{"error":"as a text"}', 'as a text'],
    ['{"message":"at the top"}', 'at the top'],
    ['{"detail":"of FastAPI"}', 'of FastAPI'],
    ['[{"error":{"message":"in a list"}}]', 'in a list'],
    ['plain words', 'plain words'],
    ['<html>\n<b>upstream\u0007 died</b>', '<html> <b>upstream died</b>'],
  ])('the body %s is quoted', async (body, quote) => {
    expect((await answered(500, body)).message).toContain(quote);
  });

  it('an empty body and one with wrong types still produce a message', async () => {
    for (const body of ['', 'null', '7', '{"error":{"message":{"a":1}}}', '{"error":true}']) {
      expect((await answered(500, body)).message).toContain('answered 500');
    }
  });

  it.each([[0], [480], [495], [498]])(
    'a key %i characters into the body is not quoted, not even a piece of it',
    async (at) => {
      const error = await answered(401, { error: { message: `${'x'.repeat(at)}${KEY} ${'y'.repeat(100_000)}` } });
      expect(error.message.length).toBeLessThan(700);
      expect(error.message).not.toContain(KEY.slice(0, 2));
      if (at === 0) expect(error.message).toContain('[redacted]');
    },
  );

  it('keeps its status if its body breaks', async () => {
    const { error } = await playPieces(['{"err'], { status: 401, end: new TypeError('terminated') });
    expect(error).toMatchObject({ code: 'auth', status: 401, retryable: false });
  });

  it('a body that is cut within a character is quoted up to it', async () => {
    const cut = new TextEncoder().encode('in a café').slice(0, -1);
    const { error } = await playPieces([cut], { status: 500 });
    expect(error?.message).toBe('the model server answered 500 (server): in a caf\ufffd');
  });

  it('the received part of a body that stays open is quoted', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const call = playPieces(['half a sent'], { status: 503, end: 'hang' });
      await vi.advanceTimersByTimeAsync(60_000);
      const { error } = await call;
      expect(error).toMatchObject({ code: 'server', status: 503 });
      expect(error?.message).toContain('half a sent');
    } finally {
      vi.useRealTimers();
    }
  });

  it.each([
    ['auth', 401, 'OPENAI_API_KEY'],
    ['not-found', 404, 'OPENAI_BASE_URL'],
  ])('%s names the setting to check', async (_code, status, word) => {
    expect((await answered(status, '')).message).toContain(word);
  });
});

describe('the wait that a server requests', () => {
  const inTwoMinutes = () => new Date(Date.now() + 120_000).toUTCString();
  it.each([
    [{ 'retry-after-ms': '1500' }, 1500],
    [{ 'retry-after-ms': '0.4' }, 1],
    [{ 'retry-after-ms': '20', 'retry-after': '3' }, 20],
    [{ 'retry-after-ms': 'soon', 'retry-after': '3' }, 3000],
    [{ 'retry-after': '3' }, 3000],
    [{ 'retry-after': '2.5' }, 2500],
    [{ 'retry-after': '0' }, 0],
    [{ 'retry-after': '277403' }, 277_403_000],
    [{ 'retry-after': 'Wed, 21 Oct 2015 07:28:00 GMT' }, 0],
    [{ 'retry-after': '-5' }, undefined],
    [{ 'retry-after': '1e99' }, undefined],
    [{ 'retry-after': 'NaN' }, undefined],
    [{ 'retry-after': 'soon 1' }, undefined],
    [{}, undefined],
  ])('H-042 %j is %s ms', async (headers, waitMs) => {
    expect((await answered(429, '', headers as Record<string, string>)).retryAfterMs).toBe(waitMs);
  });

  it('a date is counted from now', async () => {
    const { retryAfterMs } = await answered(503, '', { 'retry-after': inTwoMinutes() });
    expect(retryAfterMs).toBeGreaterThan(60_000);
    expect(retryAfterMs).toBeLessThanOrEqual(120_000);
  });
});

describe('an error inside a stream', () => {
  const inStream = async (body: string): Promise<ModelError | undefined> => {
    const { parts, error } = await playPieces([frame(textDelta('some')) + body + frame(finished('stop'))]);
    expect(textIn(parts)).toBe('some');
    expect(finishIn(parts)).toBeUndefined();
    return error;
  };

  it.each([
    ['H-010 an overloaded server', { message: 'overloaded', type: 'server_error' }, 'provider', true],
    ['a rate limit', { message: 'x', code: 'rate_limit_exceeded' }, 'rate-limit', true],
    ['a spent quota', { message: 'x', type: 'insufficient_quota' }, 'quota', false],
    ['a bad request', { message: 'x', type: 'invalid_request_error' }, 'bad-request', false],
    ['a bad key', { message: 'x', type: 'authentication_error' }, 'auth', false],
    ['a numeric 502', { message: 'x', code: 502 }, 'provider', true],
    ['a numeric 429', { message: 'x', code: 429 }, 'rate-limit', true],
    ['a numeric 400', { message: 'x', code: '400' }, 'bad-request', false],
    ['one without words', {}, 'provider', true],
  ])('%s fails the attempt', async (_name, error, code, retryable) => {
    expect(await inStream(frame({ error }))).toMatchObject({ name: 'ModelError', code, retryable });
  });

  it.each([
    ['a text', frame({ error: 'overloaded' })],
    ['the object of the kind error', frame({ object: 'error', message: 'overloaded', code: 500 })],
    ['H-011 an error event without an error key', 'event: error\ndata: {"message":"overloaded"}\n\n'],
    ['an error event that is no JSON', 'event: error\ndata: overloaded\n\n'],
    ['an error event cut off by the end', 'event: error\ndata: overloaded'],
  ])('as %s it fails the attempt and is quoted', async (_name, body) => {
    const { error } = await playPieces([frame(textDelta('some')) + body]);
    expect(error).toMatchObject({ code: 'provider', retryable: true });
    expect(error?.message).toContain('overloaded');
  });

  it('the finish reason error is a failure of the server', async () => {
    const { error } = await playPieces([frame(textDelta('some'), finished('error'))]);
    expect(error).toMatchObject({ code: 'provider', retryable: true });
  });

  it('an error that is nested 100,000 levels deep fails the attempt like any other', async () => {
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
    expect(await inStream(frame(`{"error":{"x":${deep}}}`))).toMatchObject({ code: 'provider', retryable: true });
    expect(await inStream(`event: error\ndata: ${deep}\n\n`)).toMatchObject({ code: 'provider', retryable: true });
  });

  it('an error key with null or an empty value is ignored', async () => {
    const chunk = { ...textDelta('a'), error: null };
    const { error } = await playPieces([frame(chunk, { ...chunk, error: '' }, finished('stop'))]);
    expect(error).toBeUndefined();
  });

  it('a JSON error body under status 200 is mapped the same way', async () => {
    const body = JSON.stringify({ error: { message: 'overloaded', type: 'server_error' } });
    expect((await playPieces([body], { headers: json })).error).toMatchObject({ code: 'provider', retryable: true });
  });

  it('a JSON body under status 200 that is neither a reply nor an error fails', async () => {
    expect((await playPieces(['{"ok":true}'], { headers: json })).error?.code).toBe('stream-incomplete');
    expect((await playPieces(['{"ok":'], { headers: json })).error?.code).toBe('bad-frame');
  });
});

describe('a request without a response', () => {
  const thrown = (error: unknown) => play(modelOf(() => Promise.reject(error)));

  it.each([
    [
      'a refused connection',
      new TypeError('fetch failed', { cause: Object.assign(new Error('no'), { code: 'ECONNREFUSED' }) }),
      'network',
    ],
    ['a reset connection', Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }), 'network'],
    [
      'a headers time-out',
      new TypeError('fetch failed', { cause: Object.assign(new Error('no'), { code: 'UND_ERR_HEADERS_TIMEOUT' }) }),
      'timeout',
    ],
    ['a time-out of the caller’s fetch', new DOMException('took too long', 'TimeoutError'), 'timeout'],
    ['an abort nobody asked for', new DOMException('aborted', 'AbortError'), 'network'],
    ['something that is no error', 'broken', 'network'],
  ])('%s is retryable', async (_name, reason, code) => {
    const { parts, error } = await thrown(reason);
    expect(parts).toEqual([]);
    expect(error).toMatchObject({ name: 'ModelError', code, retryable: true });
    expect(error?.message).toContain('http://model.test');
  });

  it('names the system’s reason', async () => {
    const cause = Object.assign(new Error('no'), { code: 'ECONNREFUSED' });
    const { error } = await thrown(new TypeError('fetch failed', { cause }));
    expect(error?.message).toContain('fetch failed (ECONNREFUSED)');
  });

  it('names the server and the failure, and never a user, a password, a query or the key', async () => {
    const message = `Request to https://joe:pass%2Fword@model.test/v1/chat?api_key=abc123&x=1#tail with ${KEY} failed`;
    const cause = Object.assign(new Error(`connect to http://joe:pass@10.0.0.1:80?t=abc123`), { code: 'ECONNRESET' });
    const { error } = await thrown(new TypeError(message, { cause }));
    expect(error?.message).toBe(
      'the exchange with the model server at http://model.test failed (network): ' +
        'Request to https://model.test/v1/chat with [redacted] failed (ECONNRESET)',
    );
    expect(error?.cause).toMatchObject({ code: 'ECONNRESET' });
    const shown = [String(error), inspect(error, { depth: 10, showHidden: true }), JSON.stringify(error)].join();
    expect(shown).not.toMatch(/joe|pass|abc123|api_key/);
    expect(shown).not.toContain(KEY);
  });

  it('a code that is not a system code is not quoted', async () => {
    const { error } = await thrown(Object.assign(new Error('broke'), { code: 'http://joe:pass@x' }));
    expect(error?.message).toMatch(/failed \(network\): broke$/);
  });

  it('an address that fetch refuses is reported without its password', async () => {
    const model = openai('m', { apiKey: KEY, baseURL: 'http://joe:pass-word@127.0.0.1:9/v1?token=abc123' });
    const { error } = await play(model);
    expect(error).toMatchObject({ code: 'network' });
    expect(error?.message).toContain('http://127.0.0.1:9 ');
    expect(inspect(error, { depth: 10 })).not.toMatch(/joe|pass-word|abc123/);
  });

  it('a fetch that resolves to nothing is a failure, not a crash', async () => {
    const { error } = await play(modelOf(() => undefined as unknown as Response));
    expect(error).toMatchObject({ name: 'ModelError', code: 'network' });
  });
});

it('one call is one request, even on a status that a client may retry', async () => {
  let requests = 0;
  const model = modelOf(() => {
    requests += 1;
    return served(['busy'], { status: 503 });
  });
  expect((await play(model)).error?.code).toBe('server');
  expect(requests).toBe(1);
});
