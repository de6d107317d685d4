/** Tests whether a failed attempt is retried: a ModelError by code and status, other values by their kind. */
import { describe, expect, it } from 'vitest';
import { failureOf } from '../../src/models/attemptFailure.ts';
import { ModelError } from '../../src/models/model.ts';

const AGAIN = 'rate-limit server network timeout stream-incomplete bad-frame content-type frame-too-large provider';
const FINAL = 'auth quota bad-request not-found content-filter';
const OWN = 'defect reply-too-large x-own';

describe('a ModelError is tried again', () => {
  it.each([
    ...AGAIN.split(' ').map((code) => [code, true] as const),
    ...`${FINAL} ${OWN}`.split(' ').map((code) => [code, false] as const),
  ])('by its code: %s: %s', (code, retryable) => {
    expect(new ModelError({ code }).retryable).toBe(retryable);
    expect(new ModelError({ code, retryable: !retryable }).retryable).toBe(!retryable);
  });

  it.each([
    ...[408, 409, 425, 429, 500, 503, 529, 599].map((status) => [status, true] as const),
    ...[200, 400, 401, 404, 422, 424, 430, 499].map((status) => [status, false] as const),
  ])('by the status %i, where the code is its own: %s', (status, passes) => {
    expect(new ModelError({ code: 'x-own', status }).retryable).toBe(passes);
    for (const code of FINAL.split(' ')) expect(new ModelError({ code, status }).retryable).toBe(false);
    for (const code of AGAIN.split(' ')) expect(new ModelError({ code, status }).retryable).toBe(true);
  });

  it('and has no other field', () => {
    expect(Object.keys(new ModelError({ code: 'server' }))).not.toEqual(
      expect.arrayContaining(['status', 'retryAfterMs', 'cause']),
    );
    expect(new ModelError({ code: 'x' }).message).toBe('the model call failed (x)');
    expect(new ModelError({ code: 'x', status: 0, retryAfterMs: 0 })).toMatchObject({ status: 0, retryAfterMs: 0 });
  });
});

describe('a value that a model throws becomes one line', () => {
  const caused = (code: unknown, error = new TypeError('fetch failed')) => Object.assign(error, { cause: { code } });
  const network = (message: string) => ({ kind: 'failed', code: 'network', message, retryable: true });
  const defect = (message: string) => ({ kind: 'failed', code: 'defect', message, retryable: false });

  it.each<readonly [string, unknown, object]>([
    ['an error', new Error('m'), network('m')],
    ['an error with a name', Object.assign(new Error('m'), { name: 'Busy' }), network('Busy: m')],
    ['a long name', Object.assign(new Error('m'), { name: 'n'.repeat(99) }), network(`${'n'.repeat(64)}: m`)],
    ['a text', 'm', network('m')],
    ['nothing', undefined, network('undefined')],
    ['a mistake in its code', new TypeError('x is not a function'), defect('TypeError: x is not a function')],
    ['a name that is not there', new ReferenceError('x'), defect('ReferenceError: x')],
    ['text that is no JSON', new SyntaxError('x'), defect('SyntaxError: x')],
    ['another mistake', new RangeError('x'), network('RangeError: x')],
    ...'ECONNRESET ECONNREFUSED ENOTFOUND EAI_AGAIN EPIPE ETIMEDOUT EHOSTUNREACH ENETUNREACH EPROTO HPE_INVALID_CONSTANT UND_ERR_SOCKET UND_ERR_CONNECT_TIMEOUT'
      .split(' ')
      .map((code) => [code, caused(code), network(`TypeError: fetch failed (${code})`)] as const),
    ...'CERT_HAS_EXPIRED DEPTH_ZERO_SELF_SIGNED_CERT SELF_SIGNED_CERT_IN_CHAIN UNABLE_TO_VERIFY_LEAF_SIGNATURE UNABLE_TO_GET_ISSUER_CERT ERR_TLS_CERT_ALTNAME_INVALID ERR_SSL_WRONG_VERSION_NUMBER'
      .split(' ')
      .map((code) => [code, caused(code), network(`TypeError: fetch failed (${code})`)] as const),
    ...'UND_ERR_INVALID_ARG UND_ERR_NOT_SUPPORTED ERR_INVALID_URL EACCES'
      .split(' ')
      .map((code) => [code, caused(code), defect(`TypeError: fetch failed (${code})`)] as const),
    ...['Failed to fetch', 'Load failed', 'network error', 'NetworkError when attempting to fetch resource.'].map(
      (message) => [message, new TypeError(message), network(`TypeError: ${message}`)] as const,
    ),
    ['words around those of a browser', new TypeError('Failed to fetch x'), defect('TypeError: Failed to fetch x')],
    [
      'a cause that the message names',
      caused('EPIPE', new TypeError('write EPIPE')),
      network('TypeError: write EPIPE'),
    ],
    ['a cause without a code', caused(undefined), defect('TypeError: fetch failed')],
    ['a cause whose code is a number', caused(7), defect('TypeError: fetch failed')],
  ])('%s', (_, thrown, failure) => {
    expect(failureOf(thrown)).toEqual(failure);
  });

  it.each([
    [{ retryAfterMs: 0 }, { retryAfterMs: 0 }],
    [{ retryAfterMs: 1500 }, { retryAfterMs: 1500 }],
    [{ retryAfterMs: -1 }, {}],
    [{ retryAfterMs: Number.NaN }, {}],
    [{}, {}],
  ])('a ModelError with its fields: %j', (fields, expected) => {
    const { code, message } = { code: 'server', message: 'busy' };
    expect(failureOf(new ModelError({ code, message, ...fields }))).toEqual({
      ...{ kind: 'failed', code, message, retryable: true },
      ...expected,
    });
  });

  it('even if reading it throws', () => {
    const odd = Object.defineProperty(new Error('m'), 'name', {
      get: () => {
        throw new Error('no');
      },
    });
    expect(failureOf(odd)).toEqual(network('m'));
  });
});
