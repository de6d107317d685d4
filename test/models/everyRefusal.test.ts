/**
 * Every status of a refusal, and every place in which a server may put words of its own, for every adapter. Invariant: the
 * codes are written in this file by hand. No message quotes a key in any form, a control character or a long text.
 */
import { describe, expect, it } from 'vitest';
import { aiSdkModel } from '../../src/models/aiSdk/aiSdk.ts';
import { anthropic } from '../../src/models/anthropic/anthropic.ts';
import { type Model, ModelError } from '../../src/models/model.ts';
import { openai, openaiResponses } from '../../src/models/openai/index.ts';
import { play, served } from './scriptedFetch.ts';
import { provider, streamOf } from './sdkProvider.ts';

/** Its forms inside a URL, inside JSON, and in base64 differ. */
const SECRET = 'sk-"a/b c+üx';
const HEADER_SECRET = 'proxy/secret value';
const KEY = 'sk-0123456789/abc+def';
const FORMS = [
  KEY,
  encodeURIComponent(KEY),
  KEY.replaceAll('/', '\\/'),
  HEADER_SECRET,
  encodeURIComponent(HEADER_SECRET),
];

type Answer = () => Response | Promise<Response>;
const onWire =
  (make: (name: string, options: never) => Model) =>
  (answer: Answer): Model =>
    make('m', {
      ...{ apiKey: KEY, baseURL: 'http://user:password@model.test/v1?key=query-secret' },
      headers: { 'x-proxy-token': HEADER_SECRET },
      fetch: async () => answer(),
    } as never);
const WIRES = {
  'chat completions': onWire(openai),
  'the Responses API': onWire(openaiResponses),
  'the Messages API': onWire(anthropic),
} as const;
const WIRE_NAMES = Object.keys(WIRES) as (keyof typeof WIRES)[];

/** A failure as providers of the AI SDK throw it. */
const callError = (fields: object): Error =>
  Object.assign(new Error('call failed'), { name: 'AI_APICallError', ...fields });
const bySdk = (thrown: () => unknown): Model => {
  const config = { headers: { authorization: `Bearer ${KEY}`, 'x-proxy-token': HEADER_SECRET } };
  const doStream = () => Promise.reject(thrown());
  return aiSdkModel(provider([], { config, doStream }).model, { secrets: [SECRET] });
};

const STATUSES = Array.from({ length: 200 }, (_, index) => 400 + index);
/** By hand: the code of each status, and whether the attempt is made again. */
function byHand(status: number): [code: string, retryable: boolean] {
  switch (status) {
    case 401:
    case 403:
      return ['auth', false];
    case 402:
      return ['quota', false];
    case 404:
      return ['not-found', false];
    case 408:
      return ['timeout', true];
    case 409:
    case 425:
      return ['server', true];
    case 429:
      return ['rate-limit', true];
    default:
      return status < 500 ? ['bad-request', false] : ['server', true];
  }
}
/** The remedy that belongs to a code. */
const WORDS: { [code: string]: RegExp } = {
  ...{ auth: /key/i, quota: /billing/, 'not-found': /base URL/, 'bad-request': /does not help/ },
  'rate-limit': /asks for fewer requests/,
};

describe('a status', () => {
  it.each(WIRE_NAMES)(
    'of 400 to 599 from %s has its code, its remedy and the wait that the server asks for',
    async (name) => {
      const found: unknown[] = [];
      const expected: unknown[] = [];
      for (const status of STATUSES) {
        const headers = { 'retry-after': '7' };
        const { error } = await play(
          WIRES[name](() => new Response('{"error":{"message":"no"}}', { status, headers })),
        );
        const [code, retryable] = byHand(status);
        found.push([status, error?.code, error?.retryable, error?.status, error?.retryAfterMs]);
        expected.push([status, code, retryable, status, 7_000]);
        expect(error?.message).toMatch(WORDS[code] ?? /no$/);
        expect(error?.message).toContain(`${status} (${code}): no`);
      }
      expect(found).toEqual(expected);
    },
  );

  it('of 400 to 599 from a provider of the AI SDK has its code, its remedy and the wait too', async () => {
    const found: unknown[] = [];
    const expected: unknown[] = [];
    for (const statusCode of STATUSES) {
      const responseHeaders = { 'retry-after': '7' };
      const thrown = () => callError({ statusCode, responseHeaders, responseBody: '{"error":{"message":"no"}}' });
      const { error } = await play(bySdk(thrown));
      const [code, retryable] = byHand(statusCode);
      found.push([statusCode, error?.code, error?.retryable, error?.status, error?.retryAfterMs]);
      expected.push([statusCode, code, retryable, statusCode, 7_000]);
      expect(error?.message).toMatch(WORDS[code] ?? /no$/);
    }
    expect(found).toEqual(expected);
  });

  it('of 200 without a reply is tried again; 301 is so only with the AI SDK', async () => {
    for (const statusCode of [200, 204, 301])
      expect((await play(bySdk(() => callError({ statusCode })))).error).toMatchObject({
        ...{ code: 'bad-frame', retryable: true },
      });
    for (const name of WIRE_NAMES)
      for (const status of [301, 304]) {
        const { error } = await play(WIRES[name](() => new Response(null, { status })));
        expect(error).toMatchObject({ code: 'bad-request', status, retryable: false });
      }
  });
});

/** Each place in which a server puts words of its own. */
const NAMES = Array.from({ length: 3_000 }, () => 'long').join(' ');
const words = (head: string): string => `${head} \u0007\u001b[31m\u202e ${FORMS.join(' ')}\n\n${NAMES}`;
const PLACES: readonly (readonly [string, (text: string) => Answer, string])[] = [
  [
    'a refusal',
    (text) => () => new Response(JSON.stringify({ error: { message: text } }), { status: 400 }),
    'bad-request',
  ],
  ['a refusal in plain text', (text) => () => new Response(text, { status: 500 }), 'server'],
  [
    'an error event',
    (text) => () => served([`event: error\ndata: ${JSON.stringify({ type: 'error', error: { message: text } })}\n\n`]),
    'provider',
  ],
  [
    'an error body under status 200',
    (text) => () =>
      new Response(JSON.stringify({ type: 'error', error: { message: text } }), {
        headers: { 'content-type': 'application/json' },
      }),
    'provider',
  ],
  ['a page', (text) => () => new Response(text, { headers: { 'content-type': 'text/html' } }), 'content-type'],
  [
    'a lost connection',
    (text) => () => Promise.reject(new TypeError('fetch failed', { cause: new Error(text) })),
    'network',
  ],
  ['a body that breaks', (text) => () => served(['data: {"a":1}\n\n'], { end: new Error(text) }), 'network'],
];

function refuseLeak(error: ModelError | undefined, places: string): void {
  expect(error).toBeInstanceOf(ModelError);
  const { message = '', cause } = error ?? {};
  const shown = [message, String(cause), JSON.stringify(error), ...Object.values(error ?? {}).map(String)];
  for (const text of shown) {
    for (const form of [...FORMS, 'query-secret', 'password'])
      expect(text.includes(form), `${places}: ${form} in ${text}`).toBe(false);
    expect(/[\p{Cc}\p{Cf}]/u.test(text), places).toBe(false);
    expect(text.length, places).toBeLessThan(900);
  }
}

describe('words of a server are quoted without a secret, in one short line', () => {
  const all = WIRE_NAMES.flatMap((name) => PLACES.map(([place, answer, code]) => [name, place, answer, code] as const));
  it.each(all)('%s: %s', async (name, place, answer, code) => {
    const { error } = await play(WIRES[name](answer(words('because'))));
    expect(error?.code).toBe(code);
    refuseLeak(error, place);
    if (place !== 'a lost connection') expect(error?.message).toContain('because');
  });

  const THROWN: readonly (readonly [string, (text: string) => unknown, string])[] = [
    ['a refusal', (text) => callError({ statusCode: 400, responseBody: text }), 'bad-request'],
    ['a refusal without a body', (text) => callError({ statusCode: 400, message: text }), 'bad-request'],
    ['a reply that is none', (text) => callError({ statusCode: 200, message: text }), 'bad-frame'],
    [
      'a lost connection',
      (text) => callError({ message: text, url: 'https://u:password@x.test/?key=query-secret' }),
      'network',
    ],
    ['an error of the SDK', (text) => Object.assign(new Error(text), { name: 'AI_InvalidPromptError' }), 'bad-request'],
    [
      'one within a retry',
      (text) =>
        Object.assign(new Error('gave up'), {
          name: 'AI_RetryError',
          cause: callError({ statusCode: 429, responseBody: text }),
        }),
      'rate-limit',
    ],
    ['another error', (text) => new Error(text), 'network'],
    ['a text', (text) => text, 'network'],
  ];
  it.each(THROWN)('a provider of the AI SDK that rejects: %s', async (place, thrown, code) => {
    const { error } = await play(bySdk(() => thrown(`${words('because')} ${SECRET}`)));
    expect(error?.code).toBe(code);
    refuseLeak(error, place);
    expect(error?.message).not.toContain(SECRET);
    expect(error?.message).toContain('because');
  });

  it.each(THROWN)('a provider of the AI SDK whose stream has an error: %s', async (place, thrown, code) => {
    const config = { headers: () => ({ 'x-api-key': KEY, 'x-proxy-token': HEADER_SECRET }) };
    const error = thrown(`${words('because')} ${SECRET}`);
    const doStream = async () => ({ stream: streamOf([{ type: 'error', error }]) });
    const played = await play(aiSdkModel(provider([], { config, doStream }).model, { secrets: [SECRET] }));
    expect(played.error?.code).toBe(error instanceof Error ? code : 'provider');
    refuseLeak(played.error, place);
    expect(played.error?.message).not.toContain(SECRET);
  });
});

describe('the second call after a refused key', () => {
  it.each(WIRE_NAMES)('%s: asks for the address and the headers again, and each later call does not', async (name) => {
    const sent: string[] = [];
    const statuses = [500, 401, 500, 401, 500];
    const make = { 'chat completions': openai, 'the Responses API': openaiResponses, 'the Messages API': anthropic }[
      name
    ];
    const model = make('m', {
      ...{ apiKey: KEY, baseURL: 'http://model.test/v1' },
      fetch: async (url, init) => {
        sent.push(`${url} ${new Headers(init?.headers).get('authorization')}`);
        return new Response('', { status: statuses[sent.length - 1] ?? 500 });
      },
    });
    for (const status of statuses) expect((await play(model)).error?.status).toBe(status);
    expect(new Set(sent).size).toBe(1);
    expect(sent[0]).toContain(KEY);
    expect(model.secrets).toEqual([KEY]);
  });
});
