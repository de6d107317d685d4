import { describe, expect, it } from 'vitest';
import {
  callDelta,
  callsIn,
  codesIn,
  DONE,
  delta,
  finished,
  finishIn,
  frame,
  type Played,
  playPieces,
  textDelta,
} from './scriptedFetch.ts';

/** A reply of these chunks that ends with tool_calls. */
const playCalls = (...chunks: unknown[]): Promise<Played> =>
  playPieces([frame(...chunks, finished('tool_calls')) + DONE]);
const head = (id: string | undefined, name: string, index?: number, text = '') => ({
  ...(index === undefined ? {} : { index }),
  ...(id === undefined ? {} : { id }),
  type: 'function',
  function: { name, arguments: text },
});
const tail = (text: string, fields: object = {}) => ({ ...fields, function: { arguments: text } });

describe('a tool call in pieces', () => {
  it('streams its text, and is complete before the finish', async () => {
    const { parts } = await playCalls(
      callDelta(head('a', 'read', 0)),
      callDelta(tail('{"path"', { index: 0 })),
      callDelta(tail(':"x"}', { index: 0 })),
    );
    expect(parts).toEqual([
      { type: 'tool-call-delta', index: 0, callId: 'a', name: 'read', text: '' },
      { type: 'tool-call-delta', index: 0, text: '{"path"' },
      { type: 'tool-call-delta', index: 0, text: ':"x"}' },
      { type: 'tool-call', callId: 'a', name: 'read', args: '{"path":"x"}' },
      { type: 'finish', reason: 'tool-calls' },
    ]);
  });

  it.each([
    ['id on every delta', 'a', 'a'],
    ['id on the first delta only', undefined, undefined],
    ['an empty id on the tails', '', ''],
    ['a null id on the tails', null, null],
  ])('H-022 is the same single call with %s', async (_name, second, third) => {
    for (const index of [{ index: 0 }, {}]) {
      const { parts } = await playCalls(
        callDelta({ ...index, id: 'a', function: { name: 'read', arguments: '{"a' } }),
        callDelta({ ...index, id: second, function: { arguments: '":' } }),
        callDelta({ ...index, id: third, function: { arguments: '1}' } }),
      );
      expect(callsIn(parts)).toEqual([{ id: 'a', name: 'read', args: '{"a":1}' }]);
      expect(codesIn(parts)).toEqual([]);
    }
  });

  it('is one call if the name is repeated with the id', async () => {
    const { parts } = await playCalls(callDelta(head('a', 'read', 0, '{"a')), callDelta(head('a', 'read', 0, '":1}')));
    expect(callsIn(parts)).toEqual([{ id: 'a', name: 'read', args: '{"a":1}' }]);
  });

  it('accepts an id after the name', async () => {
    const { parts } = await playCalls(
      callDelta(head(undefined, 'read', 0)),
      callDelta(tail('{}', { index: 0, id: 'a' })),
    );
    expect(callsIn(parts)).toEqual([{ id: 'a', name: 'read', args: '{}' }]);
  });

  it('accepts arguments as an object, and missing ones as an empty text', async () => {
    const { parts } = await playCalls(
      callDelta({ index: 0, id: 'a', function: { name: 'f', arguments: { x: [1] } } }),
      callDelta({ index: 1, id: 'b', function: { name: 'g', arguments: null } }),
    );
    expect(callsIn(parts)).toEqual([
      { id: 'a', name: 'f', args: '{"x":[1]}' },
      { id: 'b', name: 'g', args: '' },
    ]);
  });

  it('accepts the older function_call form', async () => {
    const { parts } = await playPieces([
      frame(
        delta({ function_call: { name: 'f', arguments: '{"a"' } }),
        delta({ function_call: { arguments: ':1}' } }),
        finished('function_call'),
      ),
    ]);
    expect(callsIn(parts)).toEqual([{ id: 'call_1', name: 'f', args: '{"a":1}' }]);
  });

  it('H-029 two objects in one call stay as the model wrote them', async () => {
    const { parts } = await playCalls(
      callDelta(head('a', 'f', 0, '{"a":1}')),
      callDelta(tail('{"b":2}', { index: 0 })),
    );
    expect(callsIn(parts)).toEqual([{ id: 'a', name: 'f', args: '{"a":1}{"b":2}' }]);
  });

  it('H-032 arguments cut by length come as they are, with the reason', async () => {
    const { parts, error } = await playPieces([
      frame(textDelta('so'), callDelta(head('a', 'f', 0, '{"path":"x')), finished('length')) + DONE,
    ]);
    expect(error).toBeUndefined();
    expect(callsIn(parts)).toEqual([{ id: 'a', name: 'f', args: '{"path":"x' }]);
    expect(finishIn(parts)).toEqual({ type: 'finish', reason: 'length' });
  });

  it('the reason is tool-calls even if the server sends stop', async () => {
    const { parts } = await playPieces([frame(callDelta(head('a', 'f', 0, '{}')), finished('stop')) + DONE]);
    expect(finishIn(parts)).toEqual({ type: 'finish', reason: 'tool-calls' });
  });
});

describe('several tool calls', () => {
  const two = [
    { id: 'a', name: 'f', args: '{"a":1}' },
    { id: 'b', name: 'g', args: '{"b":2}' },
  ];

  it.each([
    ['', undefined],
    [', the id repeated', 'b'],
  ])('H-020 a second head with index 0 and a tail with index 1 are one call%s', async (_name, id) => {
    const { parts } = await playCalls(
      callDelta(head('a', 'f', 0)),
      callDelta(tail('{"a":1}', { index: 0 })),
      callDelta(head('b', 'g', 0)),
      callDelta(tail('{"b":2}', { index: 1, id })),
    );
    expect(callsIn(parts)).toEqual(two);
    expect(codesIn(parts)).toEqual([]);
  });

  it.each([[0], [undefined]])('two calls without ids, both with index %s, differ by name', async (index) => {
    const { parts } = await playCalls(
      callDelta(head(undefined, 'f', index, '{"a":')),
      callDelta(tail('1}', { index })),
      callDelta(head(undefined, 'g', index, '')),
      callDelta(tail('{"b":2}', { index })),
    );
    expect(callsIn(parts)).toEqual([
      { id: 'call_1', name: 'f', args: '{"a":1}' },
      { id: 'call_2', name: 'g', args: '{"b":2}' },
    ]);
  });

  it('two calls with index 0 differ by id', async () => {
    const { parts } = await playCalls(callDelta(head('a', 'f', 0, '{"a":1}')), callDelta(head('b', 'g', 0, '{"b":2}')));
    expect(callsIn(parts)).toEqual(two);
  });

  it('two calls that both have index 0 are separated by id when their tails interleave', async () => {
    const { parts } = await playCalls(
      callDelta(head('a', 'f', 0)),
      callDelta(head('b', 'g', 0)),
      callDelta(tail('{"a":', { index: 0, id: 'a' })),
      callDelta(tail('{"b":', { index: 0, id: 'b' })),
      callDelta(tail('1}', { index: 0, id: 'a' })),
      callDelta(tail('2}', { index: 0, id: 'b' })),
    );
    expect(callsIn(parts)).toEqual(two);
  });

  it('H-021 without an index a new id opens a call, and pieces without an id continue the current one', async () => {
    const { parts } = await playCalls(
      callDelta(head('a', 'f')),
      callDelta(tail('{"a":')),
      callDelta(tail('1}')),
      callDelta(head('b', 'g')),
      callDelta(tail('{"b":2}')),
    );
    expect(callsIn(parts)).toEqual(two);
  });

  it('two whole calls in one chunk need neither index nor id', async () => {
    const { parts } = await playCalls(
      callDelta(head(undefined, 'f', undefined, '{"a":1}'), head(undefined, 'f', undefined, '{"b":2}')),
    );
    expect(callsIn(parts)).toEqual([
      { id: 'call_1', name: 'f', args: '{"a":1}' },
      { id: 'call_2', name: 'f', args: '{"b":2}' },
    ]);
  });

  it('two whole calls in two chunks need neither index nor id', async () => {
    const { parts } = await playCalls(
      callDelta(head(undefined, 'f', undefined, '{"a":1}')),
      callDelta(head(undefined, 'f', undefined, '{"b":2}')),
      callDelta(head(undefined, 'g', undefined, '{}')),
    );
    expect(callsIn(parts).map(({ id, args }) => [id, args])).toEqual([
      ['call_1', '{"a":1}'],
      ['call_2', '{"b":2}'],
      ['call_3', '{}'],
    ]);
  });

  it.each([
    ['by index', true, false],
    ['by id', false, true],
    ['by both', true, true],
  ])('H-028 three calls interleaved by single characters stay apart %s', async (_name, byIndex, byId) => {
    const texts = ['{"n":11}', '{"n":22}', '{"n":33}'];
    const fields = (at: number) => ({ ...(byIndex ? { index: at } : {}), ...(byId ? { id: `c${at}` } : {}) });
    const heads = texts.map((_, at) =>
      callDelta({ index: at, ...fields(at), id: `c${at}`, function: { name: `t${at}` } }),
    );
    const tails = [...'12345678'].flatMap((_, at) =>
      texts.map((text, call) => callDelta(tail(text.charAt(at), fields(call)))),
    );
    const { parts } = await playCalls(...heads, ...tails);
    expect(callsIn(parts)).toEqual(texts.map((args, at) => ({ id: `c${at}`, name: `t${at}`, args })));
  });

  it.each([
    [
      'in one chunk, without index',
      [callDelta(head('x', 'f', undefined, '{"a":1}'), head('x', 'g', undefined, '{"b":2}'))],
    ],
    ['in one chunk', [callDelta(head('x', 'f', 0, '{"a":1}'), head('x', 'g', 1, '{"b":2}'))]],
    ['in two chunks', [callDelta(head('x', 'f', 0, '{"a":1}')), callDelta(head('x', 'g', 1, '{"b":2}'))]],
    [
      'on every delta',
      [
        callDelta(head('x', 'f', 0), head('x', 'g', 1)),
        callDelta(tail('{"a":1}', { index: 0, id: 'x' })),
        callDelta(tail('{"b":2}', { index: 1, id: 'x' })),
      ],
    ],
  ])('H-024 two calls with the same id %s are two calls, the second with an id of its own', async (_name, chunks) => {
    const { parts } = await playCalls(...chunks);
    expect(callsIn(parts)).toEqual([
      { id: 'x', name: 'f', args: '{"a":1}' },
      { id: 'call_2', name: 'g', args: '{"b":2}' },
    ]);
    expect(parts.filter((part) => part.type === 'diagnostic')).toEqual([
      { type: 'diagnostic', code: 'id_duplicate', detail: { given: 'x', used: 'call_2' } },
    ]);
  });

  it('a generated id never equals an id of the server', async () => {
    const { parts } = await playCalls(
      callDelta(head(undefined, 'f', 0, '{}')),
      callDelta(head('call_1', 'g', 1, '{}')),
    );
    expect(callsIn(parts).map((call) => call.id)).toEqual(['call_2', 'call_1']);
  });

  it('H-026 ids that name members of objects are ordinary ids', async () => {
    const ids = ['__proto__', 'constructor', 'toString', 'hasOwnProperty'];
    const { parts } = await playCalls(
      ...ids.map((id, index) => callDelta(head(id, 'f', index))),
      ...ids.map((id) => callDelta(tail(`{"is":"${id}"}`, { id }))),
    );
    expect(callsIn(parts)).toEqual(ids.map((id) => ({ id, name: 'f', args: `{"is":"${id}"}` })));
    expect(codesIn(parts)).toEqual([]);
    expect(Object.keys(Object.prototype)).toEqual([]);
  });
});
