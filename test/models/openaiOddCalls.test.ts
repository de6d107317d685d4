import { describe, expect, it } from 'vitest';
import { callDelta, callsIn, codesIn, DONE, finished, frame, type Played, playPieces } from './scriptedFetch.ts';

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

describe('an invalid call', () => {
  it('a call without a name is dropped with a diagnostic', async () => {
    const { parts, error } = await playCalls(callDelta(tail('{"a":1}', { index: 0, id: 'a' })));
    expect(error).toBeUndefined();
    expect(callsIn(parts)).toEqual([]);
    expect(codesIn(parts)).toEqual(['call_without_name']);
  });

  it('an id of 100,000 characters is replaced', async () => {
    const { parts } = await playCalls(callDelta(head('x'.repeat(100_000), 'f', 0, '{}')));
    expect(callsIn(parts)).toEqual([{ id: 'call_1', name: 'f', args: '{}' }]);
    expect(codesIn(parts)).toEqual(['id_too_long']);
  });

  it('a million invalid items are one diagnostic', async () => {
    const items = `"x",`.repeat(1_000_000);
    const { parts, error } = await playCalls(`{"choices":[{"delta":{"tool_calls":[${items}"x"]}}]}`);
    expect(error).toBeUndefined();
    expect(codesIn(parts)).toEqual(['call_not_object']);
  });

  it('any number is accepted as an index', async () => {
    const { parts } = await playCalls(
      ...[-1, 1e300, 0.5, '0', null].map((index) => callDelta({ index, id: `i${index}`, function: { name: 'f' } })),
    );
    expect(callsIn(parts)).toHaveLength(5);
  });

  it('arguments as an object that is nested 100,000 levels deep become invalid text', async () => {
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
    const fn = `{"name":"f","arguments":{"x":${deep}}}`;
    const chunk = `{"choices":[{"delta":{"tool_calls":[{"id":"a","function":${fn}}]}}]}`;
    const { parts, error } = await playCalls(chunk);
    expect(error).toBeUndefined();
    expect(() => JSON.parse(callsIn(parts)[0]?.args ?? '{}')).toThrow(SyntaxError);
  });
});

it('pieces with one index that repeat the name are one call, even after a closed object', async () => {
  const piece = (text: string) => callDelta(head(undefined, 'f', 0, text));
  const { parts } = await playCalls(piece('{"a":{}'), piece(',"b":1}'));
  expect(callsIn(parts).map(({ name, args }) => [name, args])).toEqual([['f', '{"a":{},"b":1}']]);
});

describe('pieces with neither index nor id', () => {
  const piece = (text: string, name = 'f') => callDelta(head(undefined, name, undefined, text));

  it('that repeat the name are one call', async () => {
    const { parts } = await playCalls(piece('{"a"'), piece(':'), piece('1}'));
    expect(callsIn(parts)).toEqual([{ id: 'call_1', name: 'f', args: '{"a":1}' }]);
  });

  it('open a call with another name, and with the same name after a closed object', async () => {
    // Some servers send white space after the object.
    for (const end of ['1}', '1}\n', '1} ']) {
      const { parts } = await playCalls(piece('{"a":'), piece(end), piece('{"b":'), piece('2}'), piece('{}', 'g'));
      expect(callsIn(parts).map(({ name, args }) => [name, args])).toEqual([
        ['f', `{"a":${end}`],
        ['f', '{"b":2}'],
        ['g', '{}'],
      ]);
    }
  });
});

describe('unknown fields', () => {
  /** The model and the server of the reply. */
  const writer = { chat: 'test-model', server: 'http://model.test' };

  it('of a call and of its function are kept', async () => {
    const signature = { google: { thought_signature: 'c2ln' } };
    const { parts } = await playCalls(
      callDelta({ index: 0, id: 'a', extra_content: signature, function: { name: 'f', arguments: '', tag: 7 } }),
      callDelta(tail('{}', { index: 0, later: true, nothing: null })),
    );
    expect(parts.find((part) => part.type === 'tool-call')).toEqual({
      type: 'tool-call',
      callId: 'a',
      name: 'f',
      args: '{}',
      extra: { ...writer, fields: { extra_content: signature, function: { tag: 7 }, later: true } },
    });
  });

  it('lose prototype keys at any depth', async () => {
    const evil = '"__proto__":{"x":1},"e":{"__proto__":{"y":1},"k":[{"__proto__":1}]}';
    const chunk = `{"choices":[{"delta":{"tool_calls":[{"id":"a",${evil},"function":{"name":"f"}}]}}]}`;
    const { parts } = await playCalls(chunk);
    const call = parts.find((part) => part.type === 'tool-call');
    expect(JSON.stringify(call)).toBe(
      `{"type":"tool-call","callId":"a","name":"f","args":"","extra":${JSON.stringify({ ...writer, fields: { e: { k: [{}] } } })}}`,
    );
    const { e } = (call as unknown as { extra: { fields: { e: { k: [object] } } } }).extra.fields;
    expect([e, e.k[0]].map((record) => Object.getPrototypeOf(record))).toEqual([Object.prototype, Object.prototype]);
  });

  it('that are nested too deep are dropped with a diagnostic', async () => {
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
    const { parts, error } = await playCalls(
      `{"choices":[{"delta":{"tool_calls":[{"id":"a","e":${deep},"function":{"name":"f","arguments":"{}"}}]}}]}`,
    );
    expect(error).toBeUndefined();
    expect(callsIn(parts)).toEqual([{ id: 'a', name: 'f', args: '{}' }]);
    expect(codesIn(parts)).toEqual(['extra_too_deep']);
  });

  it('in 50,000 pieces are kept in linear time', async () => {
    const pieces = Array.from({ length: 50_000 }, (_, at) =>
      callDelta({ id: 'a', [`k${at}`]: 1, function: { name: 'f' } }),
    );
    const { parts } = await playCalls(...pieces);
    const { extra } = parts.find((part) => part.type === 'tool-call') as unknown as { extra: { fields: object } };
    expect(Object.keys(extra.fields)).toHaveLength(50_000);
  });
});
