/** Tests errors of failed exchanges in tables: the code, the wait and the quoted text for each form of body. */
import { describe, expect, it } from 'vitest';
import { ModelError } from '../../src/models/model.ts';
import { excerpt, networkError, providerError, statusError } from '../../src/models/wire/httpErrors.ts';

const of = (status: number, body: string, secrets: readonly string[] = []): ModelError =>
  statusError({ status, headers: new Headers() }, body, { secrets, advice: {} }, 0);
/** Returns the message after the status. */
const quoted = (body: unknown): string =>
  of(500, typeof body === 'string' ? body : JSON.stringify(body)).message.replace(
    /^the model server answered 500 \(server\)(: )?/,
    '',
  );

describe('a message quotes the words of the server without the rest of the body', () => {
  it.each([
    ['an object', { error: { message: 'because', type: 'x', param: 7 } }, 'because'],
    ['an object with a detail', { error: { detail: 'because' } }, 'because'],
    ['an object with a message and a detail', { error: { message: 'because', detail: 'not this' } }, 'because'],
    ['an object whose error is a text', { error: { error: 'because' } }, 'because'],
    ['a text', { error: 'because', id: 7 }, 'because'],
    ['a list of one', [{ error: { message: 'because' } }], 'because'],
    ['the top', { message: 'because', object: 'error' }, 'because'],
    ['the top of FastAPI', { detail: 'because', id: 7 }, 'because'],
    ['a text of JSON', '"because"', 'because'],
    ['a list, which is no text', { detail: [{ msg: 'because' }] }, '{"detail":[{"msg":"because"}]}'],
    ['nothing', '', ''],
  ])('%s', (_, body, words) => {
    expect(quoted(body)).toBe(words);
  });

  it('and advice follows for codes that have some', () => {
    const adapter = { secrets: [], advice: { 'rate-limit': 'the server asks for fewer requests' } };
    const { message } = statusError({ status: 429, headers: new Headers() }, '{"error":"slow down"}', adapter, 0);
    expect(message).toBe('the model server answered 429 (rate-limit): slow down: the server asks for fewer requests');
  });
});

describe('an excerpt', () => {
  it.each([
    ['white space is one space', ' a \n\t b\u00a0c ', 'a b c'],
    ['control and format characters are one too', 'a\u0000\u001b[1mb\u200b\u202ec', 'a [1mb c'],
    ['500 characters stay', 'x'.repeat(500), 'x'.repeat(500)],
    ['501 are 499 and a sign', 'x'.repeat(501), `${'x'.repeat(499)}…`],
    ['half of a surrogate pair is dropped', `${'x'.repeat(498)}🎉${'x'.repeat(9)}`, `${'x'.repeat(498)}…`],
    ['a whole surrogate pair is kept', `${'x'.repeat(497)}🎉${'x'.repeat(9)}`, `${'x'.repeat(497)}🎉…`],
  ])('%s', (_, text, expected) => {
    expect(excerpt(text, [])).toBe(expected);
  });

  it.each([
    ['of 4 characters', 'k3y!', 'a k3y! b', 'a [redacted] b'],
    ['of 3 characters, which are words', 'the', 'in the end', 'in the end'],
    ['as JSON', 'a"b\\c', 'key a\\"b\\\\c', 'key [redacted]'],
    ['in a URL', 'a+b/c d', 'key=a%2Bb%2Fc%20d&x', 'key=[redacted]&x'],
    ['beyond what is quoted', 'k3y!', `${'x'.repeat(498)}k3y!`, `${'x'.repeat(498)}[…`],
  ])('holds no secret: %s', (_, secret, text, expected) => {
    expect(excerpt(text, [secret])).toBe(expected);
  });
});

describe('the type of an error determines its code', () => {
  const codes = {
    quota:
      'insufficient_quota insufficient_balance insufficient_credits insufficient_funds billing_not_active quota_exhausted',
    'content-filter': 'content_filter content_policy_violation',
    'rate-limit': 'rate_limit_exceeded ratelimit too_many_requests RESOURCE_EXHAUSTED ThrottlingException',
    auth: 'authentication_error invalid_api_key unauthorized unauthorised permission_denied forbidden',
    'not-found': 'not_found_error model_notfound',
    timeout: 'timeout gateway_timeout',
    'bad-request':
      'invalid_request_error bad_request badrequest context_length_exceeded unsupported_value unprocessable_entity ' +
      'request_too_large invalid_prompt invalid_image_url invalid_base64_image image_too_small image_file_too_large ' +
      'image_parse_error empty_image_file',
    provider: 'server_error overloaded_error internal novel failed_to_download_image',
  };
  const rows = Object.entries(codes).flatMap(([code, kinds]) => kinds.split(' ').map((kind) => [kind, code] as const));

  it.each(rows)('%s is %s, by its type, its code or its status', (kind, code) => {
    for (const field of ['type', 'code', 'status'])
      expect(providerError({ error: { [field]: kind, message: 'm' } }, []).code).toBe(code);
    // For these two only the server's text has more details.
    const isFinal = code === 'quota' || code === 'content-filter';
    expect(of(429, JSON.stringify({ error: { type: kind } })).code).toBe(isFinal ? code : 'rate-limit');
  });

  it.each([
    [400, 'bad-request'],
    ['429', 'rate-limit'],
    [408, 'timeout'],
    [499, 'bad-request'],
    [500, 'provider'],
    ['599', 'provider'],
    [600, 'provider'],
    [399, 'provider'],
    [42.9, 'provider'],
    ['0429', 'provider'],
  ])('a status %j in the body is %s', (status, code) => {
    for (const field of ['code', 'status']) expect(providerError({ error: { [field]: status } }, []).code).toBe(code);
  });

  it.each([429, '429', 402, 500])('a final word beside the status %j in the body determines the code', (status) => {
    for (const [word, code] of [
      ['insufficient_quota', 'quota'],
      ['content_filter', 'content-filter'],
    ] as const) {
      const body = { error: { code: status, status: word, message: 'm' } };
      expect(providerError(body, []).code).toBe(code);
      expect(of(Number(status), JSON.stringify(body)).code).toBe(code);
    }
  });

  it('a status in the body comes before the type, and becomes the status of the error', () => {
    const error = providerError({ error: { code: 429, type: 'invalid_request_error', message: 'm' } }, []);
    expect([error.code, error.status, error.retryable]).toEqual(['rate-limit', 429, true]);
    expect(providerError({ error: { code: 7 } }, []).status).toBeUndefined();
  });

  it('the message quotes its message, else its type, else the body', () => {
    const quoteOf = (body: unknown) => providerError(body, ['k3y!']).message.split('): ')[1];
    expect(quoteOf({ error: { message: 'm k3y!', type: 't' } })).toBe('m [redacted]');
    expect(quoteOf({ error: { type: 'Server', code: 'Busy' } })).toBe('server busy');
    expect(quoteOf({ error: { id: 7 } })).toBe('{"error":{"id":7}}');
  });
});

describe('an error of fetch', () => {
  const withCode = (code: unknown, error = new Error('m')) => Object.assign(error, { code });
  it.each([
    ...['ETIMEDOUT', 'ESOCKETTIMEDOUT', 'UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_BODY_TIMEOUT'].map((code) => [
      code,
      'timeout',
    ]),
    ...['ECONNRESET', 'ENOTFOUND', 'UND_ERR_SOCKET', 'EPIPE'].map((code) => [code, 'network']),
  ])('%s is %s, by its own code or that of its cause', (reason = '', code) => {
    for (const error of [withCode(reason), new TypeError('m', { cause: withCode(reason) })]) {
      const failed = networkError(error, 'http://model.test/v1', []);
      expect([failed.code, failed.message]).toEqual([
        code,
        `the exchange with the model server at http://model.test failed (${code}): m (${reason})`,
      ]);
    }
  });

  it.each([
    ['its reason once', withCode('ECONNRESET', new Error('read ECONNRESET')), 'read ECONNRESET'],
    ['no number as a reason', withCode(7), 'm'],
    ['no code of anything but an error', { code: 'ECONNRESET', message: 'm' }, 'm'],
    ['a text', 'broken', 'broken'],
  ])('names %s', (_, error, shown) => {
    expect(networkError(error, 'http://model.test', []).message).toMatch(new RegExp(`failed \\(network\\): ${shown}`));
  });

  it('a ModelError is returned unchanged', () => {
    const failure = new ModelError({ code: 'bad-frame' });
    expect(networkError(failure, 'http://model.test', [])).toBe(failure);
  });

  it('an invalid address is not quoted', () => {
    expect(networkError(new Error('m'), 'model.test?key=abc', []).message).toContain('at an invalid URL failed');
  });
});
