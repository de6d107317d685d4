/** Each request of a page to the inspector: its fields, their boundaries, and the requests that need no answer. */
import { describe, expect, it } from 'vitest';
import { REQUEST_MAX, readFrame, readRequest } from '../../src/inspect/wire.ts';

const read = (request: unknown) => readRequest(JSON.stringify(request));
const id = 'x'.repeat(500);

/** The smallest form of each request, and the values of its fields that are taken and refused. */
const REQUESTS: Readonly<
  Record<string, { least: object; fields: Record<string, [good: unknown[], wrong: unknown[]]> }>
> = (() => {
  const number: [unknown[], unknown[]] = [
    [0, 5],
    [-1, 1.5, '1', null, undefined],
  ];
  const name: [unknown[], unknown[]] = [
    ['a', id],
    ['', `${id}x`, 5, null, undefined],
  ];
  const record: [unknown[], unknown[]] = [
    [{}, { a: 1 }],
    [[], 'a', null, undefined],
  ];
  const control = { ask: 1, conversation: 'c' };
  const ofControl = { ask: number, conversation: name };
  return {
    context: { least: { ask: 1, actor: 'a' }, fields: { ask: number, actor: name } },
    payload: { least: { ask: 1, n: 0 }, fields: { ask: number, n: number } },
    decide: { least: { ...control, decision: {} }, fields: { ...ofControl, decision: record } },
    settle: { least: { ...control, callId: 'k', how: {} }, fields: { ...ofControl, callId: name, how: record } },
    resume: { least: control, fields: ofControl },
    cancel: { least: control, fields: ofControl },
    event: {
      least: { ...control, actor: 'a', event: { type: 'GO' } },
      fields: {
        ...ofControl,
        actor: name,
        event: [[{ type: 'GO', n: 1 }], [{}, { type: '' }, { type: 5 }, 'GO', [], null]],
      },
    },
    send: {
      least: { ...control, content: '' },
      fields: {
        ...ofControl,
        content: [
          ['', 'hi'],
          [5, null, undefined, ['hi']],
        ],
        kind: [
          ['steer', 'followUp', undefined],
          ['direct', '', null, 5],
        ],
      },
    },
  };
})();

describe.each(Object.entries(REQUESTS))('the request %s', (type, { least, fields }) => {
  it('is read as it is, with each good value of its fields', () => {
    expect(read({ type, ...least })).toEqual({ type, ...least });
    for (const [field, [good]] of Object.entries(fields))
      for (const value of good)
        expect([field, read({ type, ...least, [field]: value })]).toMatchObject([field, { type }]);
  });

  it('is none with any other value, or without a field', () => {
    for (const [field, [, wrong]] of Object.entries(fields))
      for (const value of wrong)
        expect([field, value, read({ type, ...least, [field]: value })]).toEqual([field, value, undefined]);
  });
});

describe('a subscription', () => {
  it.each([
    [{ from: 0 }, { from: 0 }],
    [
      { from: 3, session: 's' },
      { from: 3, session: 's' },
    ],
    [{ from: 3, session: 5 }, { from: 3 }],
  ])('%j needs a number, and no answer', (fields, expected) => {
    expect(read({ type: 'subscribe', ...fields })).toEqual({ type: 'subscribe', ...expected });
  });

  it.each([-1, 0.5, '1', null, undefined])('begins at no %s', (from) => {
    expect(read({ type: 'subscribe', from })).toBeUndefined();
  });
});

it.each(['toString', '__proto__', 'constructor', 'later', ''])('a request of the type %j is none', (type) => {
  expect(read({ type, ask: 1, conversation: 'c' })).toBeUndefined();
});

it.each([
  [0, true],
  [1, false],
])('a request may have 64 KiB, and %i more characters are read: %s', (more, isRead) => {
  const frame = (content: string) => JSON.stringify({ type: 'send', ask: 1, conversation: 'c', content });
  const text = frame('x'.repeat(REQUEST_MAX - frame('').length + more));
  expect(text).toHaveLength(65_536 + more);
  expect(readRequest(text) !== undefined).toBe(isRead);
});

it.each(['', '{', '5', 'null', '[]', '"x"', '{"type":5}', '{}'])('the text %j is no request', (text) => {
  expect(readRequest(text)).toBeUndefined();
});

it('a frame of a server gives its messages that have a type, and anything else gives none', () => {
  expect(readFrame('[{"type":"hello"},5,null,{"n":1},{"type":5},[],{"type":"later","n":1}]')).toEqual([
    { type: 'hello' },
    { type: 'later', n: 1 },
  ]);
  for (const text of ['', '{', '{"type":"hello"}', 'null']) expect(readFrame(text)).toEqual([]);
});
