/** Tests calls in the text of a reply: the formats, the remaining text, and linear time for hostile text. */
import { describe, expect, it } from 'vitest';
import { objectAt } from '../../src/models/jsonScan.ts';
import { type TextCallFormat, textCallFormats } from '../../src/models/model.ts';
import { textCalls } from '../../src/models/textCalls.ts';
import { cpuTime } from '../support/cpuTime.ts';
import { sampled, volume } from '../support/tier.ts';

const found = (text: string, ...formats: TextCallFormat[]) =>
  textCalls([text], formats.length > 0 ? formats : textCallFormats).map(({ name, args }) => `${name} ${args}`);

const PLAIN = '{"name": "read_file", "arguments": {"filepath": "a.ts"}}';
const READ = 'read_file {"filepath": "a.ts"}';

describe('each format gives one call of read_file', () => {
  it.each([
    ['tool_call', `I look. <tool_call>\n${PLAIN}\n</tool_call> Then more.`],
    ['function', 'I look. <function=read_file>{"filepath": "a.ts"}</function>'],
    ['fence', `I look:\n\`\`\`json\n${PLAIN}\n\`\`\`\nThen more.`],
    ['fence', `I look:\n\`\`\`\n${PLAIN}\n\`\`\``],
    ['json', `I look: ${PLAIN}, then more.`],
    ['json', '{"tool": "read_file", "args": {"filepath": "a.ts"}}'],
    ['json', '{"function": "read_file", "parameters": {"filepath": "a.ts"}}'],
  ] as const)('S004-14: %s in %j', (format, text) => {
    expect(found(text, format)).toEqual([READ]);
    expect(found(text)).toEqual([READ]);
  });
});

describe('the calls that are found', () => {
  it('S004-17: only the first format with a match is used, in the configured order', () => {
    const other = '{"name": "other", "arguments": {}}';
    const text = `\`\`\`json\n${other}\n\`\`\`\n<tool_call>${PLAIN}</tool_call>`;
    expect(found(text)).toEqual([READ]);
    expect(found(text, 'fence', 'tool_call')).toEqual(['other {}']);
    expect(found(text, 'function')).toEqual([]);
  });

  it('one format may match several calls in several texts', () => {
    const tag = (name: string) => `<tool_call>{"name":"${name}","arguments":{}}</tool_call>`;
    const calls = textCalls([`${tag('a')} and ${tag('b')}`, 'nothing', tag('c')], ['tool_call']);
    expect(calls.map(({ name }) => name)).toEqual(['a', 'b', 'c']);
  });

  it('arguments stay as they were written; a string of JSON is unwrapped', () => {
    expect(found('{"name":"a","arguments":{"n":12345678901234567890}}')).toEqual(['a {"n":12345678901234567890}']);
    expect(found('{"name":"a","arguments":"{\\"a\\":1}"}')).toEqual(['a {"a":1}']);
    expect(found('{"name":"a","arguments":"[1]"}')).toEqual(['a [1]']);
    expect(found('{"name":"a","arguments":"{bad"}')).toEqual(['a {bad']);
    expect(found('{"name":"a","arguments":{"__proto__":{"x":1}}}')).toEqual(['a {"__proto__":{"x":1}}']);
    expect(found('{"\\u006eame":"a","arguments":{}, "arguments":{"last":1}}')).toEqual(['a {"last":1}']);
  });

  it('a tag or a function may omit its arguments; an object in a fence or in text needs them', () => {
    expect(found('<tool_call>{"name": "a"}</tool_call>')).toEqual(['a {}']);
    expect(found('<function=a></function>')).toEqual(['a {}']);
    expect(found('{"name": "Ann", "age": 3}')).toEqual([]);
    expect(found('```json\n{"name": "Ann"}\n```')).toEqual([]);
  });

  it.each([
    '<tool_call>{"name": "a", "arguments": {}}',
    '<tool_call>{"name": "a", "arguments": {}</tool_call>',
    '<tool_call>not JSON</tool_call>',
    '<function=a b>{}</function>',
    '<function=>{}</function>',
    '<function=a>[1]</function>',
    `<function=${'a'.repeat(300)}>{}</function>`,
  ])('what is not whole is text: %j', (text) => {
    expect(found(text, 'tool_call', 'function')).toEqual([]);
  });

  it.each([
    ['{"name":"a","tool":"b","function":"c","arguments":{}}', 'a {}'],
    ['{"function":"c","tool":"b","arguments":{}}', 'b {}'],
    ['{"name":"a","parameters":{"p":1},"args":{"q":1},"arguments":{"r":1}}', 'a {"r":1}'],
    ['{"name":"a","parameters":{"p":1},"args":{"q":1}}', 'a {"q":1}'],
  ])('of several names for a field one counts: %s', (text, call) => {
    expect(found(text)).toEqual([call]);
  });

  it('a name is a word of at most 256 characters', () => {
    for (const name of ['', 'two words', 'a<b', 'x'.repeat(257)]) {
      expect(found(JSON.stringify({ name, arguments: {} }))).toEqual([]);
    }
    expect(found('{"name": 5, "arguments": {}}')).toEqual([]);
  });

  it('only the outermost objects count: an example inside a list of tools is not a call', () => {
    expect(found(`{"tools": [${PLAIN}]}`)).toEqual([]);
    expect(found(`[${PLAIN}, ${PLAIN}]`)).toEqual([READ, READ]);
  });

  it('a block of another language and an unclosed block are ignored', () => {
    expect(found(`\`\`\`ts\n${PLAIN}\n\`\`\``, 'fence')).toEqual([]);
    expect(found(`\`\`\`ts\nx\n\`\`\`\n\`\`\`JSON\n${PLAIN}\n\`\`\``, 'fence')).toEqual([READ]);
    expect(found(`\`\`\`json\n${PLAIN}`, 'fence')).toEqual([]);
  });

  it('a fence inside of an argument does not end the block', () => {
    const args = JSON.stringify({ text: 'a\n```ts\nb\n```\n' });
    expect(found(`\`\`\`json\n{"name":"write","arguments":${args}}\n\`\`\``, 'fence')).toEqual([`write ${args}`]);
  });

  it('braces in prose and in code are skipped', () => {
    expect(found(`if (x) { y } {name: 'a'} {"a" {"b":1,} {"c": {"d"} ${PLAIN}`)).toEqual([READ]);
  });
});

describe('objectAt', () => {
  it.each(['{}', '{"a":[1,{"b":"}"}],"c":"\\""}', '{ "a" : null , "b" : -1.5e3 }'])('reads %s to its end', (text) => {
    expect(objectAt(`${text} tail`, 0)).toMatchObject({ end: text.length });
  });

  it.each(['{', '{"a"', '{"a":', '{"a":}', '{a:1}', '{"a":1 "b":2}', '{"a":[}', '{"a":01}', '{"a\n":1}'])(
    'returns where %j breaks, after its beginning',
    (text) => {
      const read = objectAt(text, 0);
      expect(read).toEqual({ broken: expect.any(Number) });
      expect((read as { broken: number }).broken).toBeGreaterThan(0);
    },
  );
});

describe('a mebibyte of hostile text is read in linear time', () => {
  const long = (piece: string, size = 1_048_576): string => piece.repeat(Math.ceil(size / piece.length));
  const HOSTILE = [
    '{',
    '{"a":',
    '{"',
    '{"\\"',
    '{"a":[',
    '[{"a":1},',
    '{"name":"a","arguments":{',
    '<tool_call>',
    '<tool_call>{"name":"a","arguments":{}}',
    '<tool_call>{"a":',
    '<function=',
    '<function=a>',
    '<function=a>{',
    '```',
    '```json\n',
    '```\n{',
    '```json {"a":"```"}',
    '` ``{',
    '\\"{"',
    ' ',
  ];

  it.each(sampled(HOSTILE, volume.caseOf))('%j over and over', async (piece) => {
    const timeOf = (text: string): Promise<number> =>
      cpuTime(() => textCalls([text], ['tool_call', 'function', 'fence', 'json']));
    await timeOf(long(piece, 65_536));
    // Quadratic, the smaller of these would take minutes.
    expect(await timeOf(long(piece))).toBeLessThan(3_000);
    expect(await timeOf(`${long(piece)}${long(' ')}}`)).toBeLessThan(6_000);
  });

  it('deep nesting is not a call and does not overflow the stack', () => {
    const deep = `{"name":"a","arguments":${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}}`;
    expect(found(deep)).toEqual([]);
  });
});
