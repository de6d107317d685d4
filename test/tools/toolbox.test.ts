/** The tools of an agent by name, the checks of a call before it runs, and the options of a tool. */
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import {
  answerOf,
  changingBy,
  conversationEnded,
  defineTool,
  lackingSandbox,
  onConversationEnd,
  partialResult,
  partsOf,
  placeCall,
  type Tool,
  type ToolContext,
  tellLackOfSandbox,
  toolResult,
} from '../../src/tools/tool.ts';
import { ARGS_LONGEST, issuesText, parsedCall, refused, roundCall, Toolbox } from '../../src/tools/toolbox.ts';

const tool = (name: string, more: object = {}): Tool =>
  defineTool({ name, description: '', parameters: z.object({}), execute: () => undefined, ...more });
const waiting = { setTimer: () => () => undefined, signal: new AbortController().signal };

describe('a toolbox', () => {
  it('follows a list that changes, and remembers earlier names', () => {
    let list: readonly Tool[] = [];
    const source = changingBy(tool('source'), () => () => list);
    list = [source, tool('a')];
    const box = new Toolbox([source]);
    const names = (): string[] => box.specs.map(({ name }) => name);
    expect([names(), box.find('a')?.name, box.mayHaveTools]).toEqual([['source', 'a'], 'a', true]);
    expect(box.specs).toBe(box.specs);
    list = [source, tool('b')];
    expect([names(), box.find('a'), box.find('b')?.name]).toEqual([['source', 'b'], undefined, 'b']);
    expect(box.missing('a')).toBe('The tool a was removed by its server. It was not run.');
    expect(box.missing('c')).toBe('There is no tool "c". Did you mean: source, b?'.replace('source, b', 'source'));
    list = [];
    expect([names(), box.mayHaveTools]).toEqual([[], true]);
    expect(new Toolbox([]).mayHaveTools).toBe(false);
  });

  it('names close tools first, whatever the case, at most five, and shortens the name', () => {
    const box = new Toolbox(
      ['readFile', 'ReadAll', 'write', 'a1', 'a2', 'a3', 'a4', 'a5', 'a6'].map((name) => tool(name)),
    );
    expect(box.missing('READ')).toBe('There is no tool "READ". Did you mean: readFile, ReadAll?');
    expect(box.missing('WRITE')).toBe('There is no tool "WRITE". Did you mean: write?');
    expect(box.missing('A')).toContain('Did you mean: readFile, ReadAll, a1, a2, a3?');
    expect(box.missing('zzz')).toBe('There is no tool "zzz". Did you mean: readFile, ReadAll, write, a1, a2?');
    expect(box.missing('z'.repeat(101))).toContain(`"${'z'.repeat(100)}"`);
    expect(new Toolbox([]).missing('x')).toBe('There is no tool "x".');
  });

  it('names the tools that may run again after a crash', () => {
    const box = new Toolbox([tool('yes', { idempotent: true }), tool('no', { idempotent: false }), tool('unset')]);
    expect(['yes', 'no', 'unset', 'none'].map((name) => box.isIdempotent(name))).toEqual([true, false, false, false]);
  });

  it('gives a frozen copy of the arguments, with shared and cyclic parts, and keeps instances of classes', async () => {
    const date = new Date(0);
    const shared = { a: 1 };
    const cyclic: { [key: string]: unknown } = {
      shared,
      list: [shared, date],
      date,
      bare: Object.assign(Object.create(null), { b: 1 }),
    };
    cyclic.self = cyclic;
    const parameters = { '~standard': { version: 1, vendor: 'x', validate: () => ({ value: cyclic }) } };
    const preparation = await new Toolbox([tool('t', { parameters })]).prepare(
      { callId: 'c', name: 't', args: {} },
      waiting,
    );
    const args = (preparation.kind === 'ready' ? preparation.prepared.args : undefined) as typeof cyclic;
    expect(args).not.toBe(cyclic);
    expect([args.self === args, args.date === date, (args.list as unknown[])[0] === args.shared]).toEqual([
      true,
      true,
      true,
    ]);
    expect(args.shared).not.toBe(shared);
    expect([args, args.shared, args.list, args.bare].map((each) => Object.isFrozen(each))).toEqual([
      true,
      true,
      true,
      true,
    ]);
    expect(args.bare).toEqual({ b: 1 });
    expect([Object.isFrozen(date), Object.isFrozen(shared)]).toEqual([false, false]);
  });

  it.each<[unknown, string | undefined, string]>([
    [null, undefined, 'The arguments of t must be a JSON object, not null'],
    [[1], undefined, 'The arguments of t must be a JSON object, not [1]'],
    ['x', undefined, 'The arguments of t must be a JSON object, not "x"'],
    [null, '{"a', 'The arguments of t are no JSON object (it ends before it is closed): "{\\"a"'],
    [null, '[1]', 'The arguments of t are no JSON object: "[1]"'],
    [null, 'x'.repeat(201), `The arguments of t are no JSON object (it is not valid JSON): "${'x'.repeat(200)}"`],
    [
      null,
      `{"a":"${'x'.repeat(65_600)}`,
      `The arguments of t are no JSON object: ${JSON.stringify(`{"a":"${'x'.repeat(194)}`)}`,
    ],
  ])('refuses the arguments %j (%#) with a reason', async (args, argsText, words) => {
    const call = { callId: 'c', name: 't', args: args as never, ...(argsText !== undefined && { argsText }) };
    expect(await new Toolbox([tool('t')]).prepare(call, waiting)).toEqual({
      kind: 'refused',
      code: 'invalid_arguments',
      text: words,
    });
  });
});

describe('the call of a model', () => {
  it.each<[string, unknown, string | undefined]>([
    ['', {}, undefined],
    [' \n', {}, undefined],
    ['{"a":1}', { a: 1 }, undefined],
    [' {"a":1}\n', { a: 1 }, undefined],
    ['[1]', null, '[1]'],
    ['{', null, '{'],
  ])('with the text %j has these arguments', (argsText, args, kept) => {
    expect(parsedCall('c', 'n', argsText)).toEqual({
      callId: 'c',
      name: 'n',
      args,
      ...(kept !== undefined && { argsText: kept }),
    });
  });

  it('has a name of at most 256 characters, arguments of at most 4 MiB, and what the provider attached', () => {
    expect(parsedCall('c', 'n'.repeat(257), '{}').name).toBe('n'.repeat(256));
    const text = (length: number) => `{"a":"${'x'.repeat(length - 8)}"}`;
    expect([text(ARGS_LONGEST).length, ARGS_LONGEST]).toEqual([4_194_304, 4_194_304]);
    expect(parsedCall('c', 'n', text(ARGS_LONGEST)).args).not.toBeNull();
    expect(parsedCall('c', 'n', text(ARGS_LONGEST + 1)).args).toBeNull();
    expect(parsedCall('c', 'n', '{}', { x: 1 })).toEqual({ callId: 'c', name: 'n', args: {}, extra: { x: 1 } });
    expect(parsedCall('c', 'n', '{}', null)).toHaveProperty('extra', null);
  });

  it.each([
    [{}, false, false, false],
    [{}, true, true, false],
    [{ needsApproval: false }, false, false, false],
    [{ needsApproval: true }, false, true, false],
    [{ needsApproval: () => false }, false, true, false],
    [{ readOnly: true }, false, false, true],
    [{ readOnly: false }, false, false, false],
  ])(
    'of a tool with %j (gates of plugins: %s) is gated: %s, and only reads: %s',
    async (options, pluginGates, gated, readOnly) => {
      const call = { callId: 'c', name: 't', args: {} };
      const preparation = await new Toolbox([tool('t', options)]).prepare(call, waiting);
      expect(roundCall(call, preparation, pluginGates)).toMatchObject({ callId: 'c', name: 't', gated, readOnly });
      expect(roundCall(call, refused('x', 'words'), pluginGates)).toMatchObject({
        ...{ gated: false, readOnly: false, refused: { code: 'x', text: 'words' } },
      });
    },
  );

  it('differs from another one by its name, its arguments, or their text where there are none', () => {
    const print = (name: string, args: unknown, argsText?: string): string =>
      roundCall(
        { callId: 'c', name, args: args as never, ...(argsText !== undefined && { argsText }) },
        refused('x', ''),
        false,
      ).fingerprint;
    const prints = [print('a', {}), print('b', {}), print('a', { x: 1 }), print('a', null, '{'), print('a', null, '[')];
    expect(new Set(prints).size).toBe(5);
    expect(print('a', { x: 1, y: 2 })).toBe(print('a', { y: 2, x: 1 }));
  });
});

describe('the issues of a schema', () => {
  it.each<[readonly object[], string]>([
    [[{ message: 'm' }], 'head\nm'],
    [[{ message: 'm', path: [] }], 'head\nm'],
    [[{ message: 'm', path: ['a', 0, { key: 'b' }] }], 'head\na.0.b: m'],
    [Array(20).fill({ message: 'm' }), `head${'\nm'.repeat(20)}`],
    [Array(21).fill({ message: 'm' }), `head${'\nm'.repeat(20)}\nand 1 more`],
    [Array(30).fill({ message: 'm' }), `head${'\nm'.repeat(20)}\nand 10 more`],
    [[{ message: 'm'.repeat(501) }], `head\n${'m'.repeat(500)}`],
  ])('are named one a line (%#)', (issues, words) => {
    expect(issuesText('head', issues as never)).toBe(words);
  });
});

describe('the options of a tool', () => {
  const made = (options: object) => () => tool('t', options);
  it.each([
    [{ name: 'a'.repeat(64) }, true],
    [{ name: 'a'.repeat(65) }, false],
    [{ name: 'a b' }, false],
    [{ name: 'ä' }, false],
    [{ name: '' }, false],
    [{ timeoutMs: 0 }, true],
    [{ timeoutMs: 0.5 }, true],
    [{ timeoutMs: Number.POSITIVE_INFINITY }, true],
    [{ timeoutMs: -1 }, false],
    [{ timeoutMs: Number.NaN }, false],
    [{ timeoutMs: '1' }, false],
    [{ description: 1 }, false],
    [{ group: 'read-group' }, true],
    [{ group: 'reading' }, false],
    [{ readOnly: 'yes' }, false],
    [{ idempotent: 1 }, false],
    [{ needsApproval: 'yes' }, false],
    [{ needsApproval: () => true }, true],
    [{ needApproval: true }, false],
    [{ execute: 1 }, false],
    [{ parameters: {} }, false],
  ])('%j are accepted: %s', (options, isAccepted) => {
    if (isAccepted) expect(made(options)).not.toThrow();
    else expect(made(options)).toThrow(/tool/);
  });

  it('without a description are those of a tool with an empty one', () => {
    const { description } = tool('t', { description: undefined });
    expect(description).toBe('');
  });
});

describe('results', () => {
  it('have the content, the state and the code of their arguments', () => {
    const state = { a: 1 };
    expect(
      [
        toolResult.success('x'),
        toolResult.success('x', { state }),
        toolResult.warning('x'),
        toolResult.warning('x', { state }),
        toolResult.error('x'),
        toolResult.error('x', ''),
        toolResult.error('x', 'c'),
        toolResult.pending({ reason: 'r' }),
      ].map((each) => [each.status, answerOf(each)]),
    ).toEqual([
      ['success', { status: 'success', content: 'x' }],
      ['success', { status: 'success', content: 'x', state }],
      ['warning', { status: 'warning', content: 'x' }],
      ['warning', { status: 'warning', content: 'x', state }],
      ['error', { status: 'error', content: 'x' }],
      ['error', { status: 'error', content: 'x', code: '' }],
      ['error', { status: 'error', content: 'x', code: 'c' }],
      ['pending', { status: 'pending', suspend: { reason: 'r' } }],
    ]);
    expect(answerOf({ status: 'success', content: 'x' })).toBeUndefined();
  });

  it('are content only where a list has parts alone', () => {
    const part = { type: 'text', text: 'a' };
    expect(partsOf([part])).toEqual([part]);
    for (const value of [
      [],
      [part, 1],
      new Array(1),
      Object.assign(new Array(2), { 0: part }),
      [{ type: 'video' }],
      part,
      'a',
    ])
      expect(partsOf(value)).toBeUndefined();
  });
});

describe('the conversation of a call', () => {
  const opened = (entries: object[] = []) => {
    const codes: unknown[] = [];
    const place = { entries: entries as never[], partials: new Map<string, () => string>() };
    return { ...place, codes, diagnose: (code: string, detail?: unknown) => void codes.push([code, detail]) };
  };
  const context = (callId: string) => ({ callId }) as unknown as ToolContext;

  it('keeps what each call has produced so far, bounded, where partial results are kept', () => {
    const place = opened();
    const [kept, dropped, unplaced] = [context('c1'), context('c2'), context('c3')];
    placeCall(kept, place, (text) => `<${text}>`);
    placeCall(dropped, place, undefined);
    for (const each of [kept, dropped, unplaced]) partialResult(each, () => 'half');
    expect([...place.partials].map(([id, text]) => [id, text()])).toEqual([['c1', '<half>']]);
  });

  it('releases at its end everything that its calls hold, and nothing of another one', async () => {
    const [one, other] = [opened(), opened()];
    const released: string[] = [];
    for (const [place, id] of [
      [one, 'a'],
      [one, 'b'],
      [other, 'c'],
    ] as const) {
      const call = context(id);
      placeCall(call, place, undefined);
      onConversationEnd(call, async () => void released.push(id));
    }
    await conversationEnded(one.entries);
    expect(released).toEqual(['a', 'b']);
    await conversationEnded(opened().entries);
    await conversationEnded(other.entries);
    expect(released).toEqual(['a', 'b', 'c']);
  });

  it('receives the diagnostic of a missing sandbox once, also if an earlier process has written it', () => {
    const bash = lackingSandbox(tool('Bash'), 'none here');
    const place = opened();
    tellLackOfSandbox(tool('other'), place);
    expect(place.codes).toEqual([]);
    for (let call = 0; call < 3; call += 1) tellLackOfSandbox(bash, place);
    expect(place.codes).toEqual([['sandbox_missing', { why: 'none here' }]]);
    const again = opened([
      { type: 'diagnostic', code: 'other' },
      { type: 'diagnostic', code: 'sandbox_missing' },
    ]);
    tellLackOfSandbox(bash, again);
    expect(again.codes).toEqual([]);
  });
});
