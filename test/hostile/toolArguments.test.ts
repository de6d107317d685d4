import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineTool } from '../../src/index.ts';
import {
  call,
  calls,
  entriesOf,
  opened,
  outcomeOf,
  pathTool,
  plainTool,
  play,
  playTool,
  resultText,
  scripted,
} from './hostileAgent.ts';
import { watchEachTest } from './hostileChecks.ts';

watchEachTest();

/** The call in the log. */
const loggedCall = (log: Parameters<typeof entriesOf>[0]) =>
  entriesOf(log, 'agent-output').flatMap(({ item }) => (item.type === 'tool-call' ? [item] : []))[0];

const looseTool = (seen: unknown[], needsApproval = false) => {
  const parameters = z.looseObject({});
  return defineTool({ name: 't', description: '', parameters, needsApproval, execute: (args) => seen.push(args) });
};

const INVALID = 'failed invalid_arguments';

describe('H-060 no arguments', () => {
  test.each(['', ' ', '\n\t', '{}', ' {} '])(
    'the text %j is empty arguments for a tool without parameters',
    async (text) => {
      const seen: unknown[] = [];
      const tool = plainTool('now', (args) => seen.push(args));
      const { log } = await playTool(tool, text);
      expect(outcomeOf(log)).toBe('succeeded');
      expect(seen).toEqual([{}]);
    },
  );

  test('H-061 the error names the missing fields', async () => {
    const seen: unknown[] = [];
    const parameters = z.object({ path: z.string(), depth: z.number() });
    const tool = defineTool({ name: 't', description: '', parameters, execute: (args) => seen.push(args) });
    const { log } = await playTool(tool, '');
    expect(outcomeOf(log)).toBe(INVALID);
    expect(resultText(log)).toMatch(/path[\s\S]*depth/);
    expect(seen).toEqual([]);
  });
});

describe('H-062 arguments that are not a JSON object', () => {
  const texts = [
    '{"path":"a"',
    "{path:'a'}",
    'undefined',
    '"a"',
    '[1]',
    'null',
    '0',
    '-0',
    'true',
    'NaN',
    'Infinity',
    '{"path":"a",}',
    '{"path":"a"} x',
    '{"path":"a"}{"path":"b"}',
    '\ufeff{"path":"a"}',
    '{"path":"\u0000"}',
    '{"path":"a\nb"}',
    '{"path":1e999}',
    '{"path":"a","n":-1e999}',
    '<path>a</path>',
    '\ud800',
    '{"path":"\\ud8"}',
    '```json\n{"path":"a"}\n```',
    '[object Object]',
  ];
  test.each(texts)('%j never reaches the tool, and the run continues', async (text) => {
    const seen: unknown[] = [];
    const { result, log } = await playTool(pathTool('t', seen), text);
    expect([result.termination, outcomeOf(log), seen]).toEqual(['NaturalEnd', INVALID, []]);
    expect(loggedCall(log)).toMatchObject({ args: null, argsText: text });
    expect(entriesOf(log, 'tool-started')).toEqual([]);
  });

  // The log contains the text, and a log is the same on every engine.
  test.each([
    ['{"path":"a"', 'it ends before it is closed'],
    ['{"path":"a', 'it ends before it is closed'],
    ["{path:'a'}", 'it is not valid JSON'],
    ['{"path":"a"} x', 'it is not valid JSON'],
    ['{"path":1e999}', 'the number Infinity is not JSON'],
  ])('%j has an error in words of the library: %s', async (text, why) => {
    const { log } = await playTool(pathTool('t', []), text);
    expect(resultText(log)).toBe(`The arguments of t are no JSON object (${why}): ${JSON.stringify(text)}`);
  });

  test.each(['{"path":5}', '{"path":null}', '{"path":{}}', '{"Path":"a"}', '{"path":["a"]}'])(
    '%j is JSON, but not valid for the tool',
    async (text) => {
      const seen: unknown[] = [];
      const { log } = await playTool(pathTool('t', seen), text);
      expect([outcomeOf(log), seen]).toEqual([INVALID, []]);
      expect(loggedCall(log)?.args).toEqual(JSON.parse(text));
    },
  );
});

describe('H-063 keys of prototypes', () => {
  const texts = [
    '{"path":"a","__proto__":{"admin":true}}',
    '{"path":"a","__proto__":null}',
    '{"__proto__":{"path":"x"},"path":"a"}',
    '{"path":"a","\\u005f_proto__":{"admin":true}}',
    '{"path":"a","constructor":{"prototype":{"admin":true}}}',
    '{"prototype":null,"path":"a","constructo\\u0072":1}',
  ];
  test.each(texts)('with %j the tool receives its path and nothing else', async (text) => {
    const seen: { path?: string; admin?: boolean }[] = [];
    const parameters = z.looseObject({ path: z.string() });
    const tool = defineTool({ name: 't', description: '', parameters, execute: (args) => seen.push(args) });
    const { log } = await playTool(tool, text);
    expect(outcomeOf(log)).toBe('succeeded');
    expect(seen.map((args) => Reflect.ownKeys(args))).toEqual([['path']]);
    expect(seen[0]?.admin).toBeUndefined();
    expect(JSON.stringify(loggedCall(log)?.args)).toBe('{"path":"a"}');
  });

  test('names of other inherited properties are ordinary keys', async () => {
    const seen: unknown[] = [];
    const tool = looseTool(seen);
    const text = '{"toString":1,"hasOwnProperty":2,"Constructor":3}';
    await playTool(tool, text);
    expect(JSON.stringify(seen)).toBe(`[${text}]`);
  });

  const deep = '{"a":[{"constructor":1,"b":{"prototype":{"c":1},"__proto__":2,"d":3}}],"constructor":{}}';
  const clean = { a: [{ b: { d: 3 } }] };

  test('such keys are refused at every depth', async () => {
    const seen: unknown[] = [];
    const { log } = await playTool(looseTool(seen), deep);
    expect([seen, loggedCall(log)?.args]).toEqual([[clean], clean]);
  });

  test('they are removed if a schema makes them', async () => {
    const seen: unknown[] = [];
    const parameters = z.looseObject({}).transform(() => JSON.parse(deep));
    await playTool(defineTool({ name: 't', description: '', parameters, execute: (args) => seen.push(args) }));
    expect(seen).toEqual([clean]);
  });

  test('they are removed from arguments that a person edited, in the log and for the tool', async () => {
    const seen: unknown[] = [];
    const model = scripted([calls(call('c1', 't'))]);
    const conversation = await opened({ model, tools: [looseTool(seen, true)] });
    await conversation.send('go').result;
    const args = JSON.parse(deep.replace('"__proto__":2,', ''));
    await conversation.decide({ callId: 'c1', action: 'edit', args });
    await conversation.resume().result;
    expect(seen).toEqual([clean]);
    expect(entriesOf(conversation.log(), 'decision')[0]?.decision).toMatchObject({ action: 'edit', args: clean });
  });

  test('they are removed from arguments that a plugin provides', async () => {
    const seen: unknown[] = [];
    const plugins = [{ name: 'p', beforeToolExecute: () => ({ args: JSON.parse(deep) }) }];
    const { log } = await playTool(looseTool(seen), '{}', { plugins });
    expect([seen, entriesOf(log, 'tool-started')[0]?.args]).toEqual([[clean], clean]);
  });

  test('a result may contain any of them except __proto__', async () => {
    const { log } = await playTool(plainTool('t', () => JSON.parse('{"constructor":"Ferrari","prototype":1}')));
    expect(resultText(log)).toBe('{"constructor":"Ferrari","prototype":1}');
  });

  test('a constructor at depth is refused too', async () => {
    const seen: { deep?: { list?: { admin?: boolean }[] } }[] = [];
    const parameters = z.looseObject({});
    const tool = defineTool({ name: 't', description: '', parameters, execute: (args) => seen.push(args) });
    await playTool(tool, '{"deep":{"list":[{"__proto__":{"admin":true}}]}}');
    expect(JSON.stringify(seen)).toBe('[{"deep":{"list":[{}]}}]');
    expect(seen[0]?.deep?.list?.[0]?.admin).toBeUndefined();
  });
});

describe('H-065 depth and length', () => {
  const deep = (open: string, close: string, count: number): string => open.repeat(count) + close.repeat(count);
  test.each([
    ['lists', deep('[', ']', 100_000)],
    ['objects', `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`],
    ['unclosed lists', '['.repeat(100_000)],
    ['a field of lists', `{"path":"a","x":${deep('[', ']', 65)}}`],
  ])('%s with too much nesting are refused at once', async (_, text) => {
    const seen: unknown[] = [];
    const { log } = await playTool(pathTool('t', seen), text);
    expect([outcomeOf(log), seen]).toEqual([INVALID, []]);
    expect(JSON.stringify(log).length).toBeLessThan(300_000);
  });

  test('brackets inside strings do not count', async () => {
    const seen: unknown[] = [];
    const path = `${'[{'.repeat(1_000)}"\\`;
    const { log } = await playTool(pathTool('t', seen), JSON.stringify({ path }));
    expect([outcomeOf(log), seen]).toEqual(['succeeded', [{ path }]]);
  });

  test('arguments within the limit reach the tool', async () => {
    const parameters = z.looseObject({});
    const tool = defineTool({ name: 't', description: '', parameters, execute: (args) => args });
    const { log } = await playTool(tool, `{"x":${deep('[', ']', 60)}}`);
    expect(outcomeOf(log)).toBe('succeeded');
  });

  test('of invalid arguments at most 64 KiB are kept', async () => {
    for (const text of ['x'.repeat(200_000), 'é'.repeat(200_000), '🎉'.repeat(100_000)]) {
      const { log } = await playTool(pathTool('t'), text);
      const kept = loggedCall(log)?.argsText ?? '';
      expect(text.startsWith(kept)).toBe(true);
      const bytes = Buffer.byteLength(kept);
      expect(bytes).toBeLessThanOrEqual(65_536);
      expect(bytes).toBeGreaterThan(65_530);
    }
  });

  test('arguments of many megabytes are not parsed', async () => {
    const seen: unknown[] = [];
    const { log } = await playTool(pathTool('t', seen), `{"path":"${'x'.repeat(6 * 1024 * 1024)}"}`);
    expect([outcomeOf(log), seen]).toEqual(['failed too_large', []]);
    expect(JSON.stringify(log).length).toBeLessThan(300_000);
  });
});

describe('H-070 unknown tools', () => {
  const names = [
    'rm_rf',
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    'READ',
    'Read',
    'read ',
    '',
    ' ',
    'read\u0000',
    '../read',
    'read\nread',
  ];
  test.each(names)('the error for %j lists the available names', async (name) => {
    const seen: unknown[] = [];
    const { result, log } = await play({
      model: scripted([calls(call('c1', name, '{"path":"a"}'))]),
      tools: [pathTool('read', seen)],
    });
    expect([result.termination, outcomeOf(log), seen]).toEqual(['NaturalEnd', 'failed unknown_tool', []]);
    expect(resultText(log)).toContain('read');
    expect(resultText(log)).toContain(JSON.stringify(name));
  });

  test('similar names come first, and only a few of them', async () => {
    const tools = ['write_file', 'read_file', 'list', 'find', 'grep', 'edit', 'move'].map((name) =>
      plainTool(name, () => 1),
    );
    const { log } = await play({ model: scripted([calls(call('c1', 'FILE'), call('c2', 'sing'))]), tools });
    expect(resultText(log, 'c1')).toContain('write_file, read_file?');
    expect(resultText(log, 'c2')).toContain('write_file, read_file, list, find, grep?');
  });

  test('a name of a megabyte is not repeated to the model', async () => {
    const { log } = await play({
      model: scripted([calls(call('c1', 'n'.repeat(1_000_000)))]),
      tools: [pathTool('read')],
    });
    expect(outcomeOf(log)).toBe('failed unknown_tool');
    expect(JSON.stringify(log).length).toBeLessThan(10_000);
  });

  test('a tool may have the name of an inherited property', async () => {
    const tools = ['__proto__', 'constructor', 'toString'].map((name) => plainTool(name, () => `I am ${name}`));
    const reply = calls(call('c1', '__proto__'), call('c2', 'constructor'), call('c3', 'valueOf'));
    const { log } = await play({ model: scripted([reply]), tools });
    expect([resultText(log, 'c1'), resultText(log, 'c2')]).toEqual(['I am __proto__', 'I am constructor']);
    expect(outcomeOf(log, 'c3')).toBe('failed unknown_tool');
  });
});

test('arguments of more than four mebibytes are refused with the limit, and the model receives it', async () => {
  const seen: unknown[] = [];
  const { log } = await playTool(looseTool(seen), JSON.stringify({ text: 'x'.repeat(4 * 2 ** 20) }));
  const [result] = entriesOf(log, 'tool-result');
  expect([seen, result?.code]).toEqual([[], 'too_large']);
  expect(resultText(log)).toMatch(/may have 4194304 characters\. It was not run\./);
});
