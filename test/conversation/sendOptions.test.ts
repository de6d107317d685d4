/** The options of a message, and the fields that a host sends about a call: accepted, copied and refused values. */
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { field, fieldsOf, readCallId, textField } from '../../src/conversation/hostInput.ts';
import {
  type AgentNames,
  checkResumptionId,
  checkSending,
  choicesIn,
  type SendOptions,
} from '../../src/conversation/sendOptions.ts';
import { ConfigurationError, InvalidDecisionError } from '../../src/errors.ts';

const available: AgentNames = {
  named: { models: { fast: {}, slow: {} }, outputs: { form: {} } } as never,
  tools: () => ['look', 'act'],
};
const without: AgentNames = { named: { models: {}, outputs: {} } as never, tools: () => [] };
const sent = (options: object) => () => {
  checkSending(options as SendOptions);
  return choicesIn(options as SendOptions, available);
};

/** Each option with values that are taken, and others. */
const VALUES: { readonly [option: string]: readonly [taken: readonly unknown[], others: readonly unknown[]] } = {
  kind: [
    ['steer', 'followUp'],
    ['other', '', null, true],
  ],
  messageId: [
    ['a', 'x'.repeat(200), 'ä:1', ' '],
    ['', 'x'.repeat(201), 'a/b', 'a\nb', 'a\u007f', 1, null],
  ],
  by: [
    ['a', 'x'.repeat(200), 'a\nb', '😀'.repeat(200)],
    ['', 'x'.repeat(201), 1, null],
  ],
  whileSuspended: [
    ['followUp', 'reject', 'denyAndRun'],
    ['wait', '', null],
  ],
  signal: [[new AbortController().signal], [{}, null, new AbortController()]],
  model: [
    ['fast', 'slow'],
    ['', 'other', 'constructor', 1, null],
  ],
  output: [
    ['form', z.object({})],
    ['', 'other', {}, 1, null],
  ],
  tools: [
    [[], ['look'], ['look', 'act']],
    [['other'], ['look', 'other'], 'look', [1], null],
  ],
  context: [
    [null, 0, '', { a: [1] }],
    [1n, () => 1, { a: undefined, b: () => 1 }],
  ],
  settings: [
    [
      ...[{}, { temperature: 0 }, { topP: 0.5 }, { maxOutputTokens: 1 }, { reasoningEffort: 'low' }],
      ...['auto', 'none', 'required', { tool: 'look' }].map((toolChoice) => ({ toolChoice })),
    ],
    [
      ...[null, 'x', { temperature: -1 }, { topP: -0.1 }, { maxOutputTokens: 0 }, { maxOutputTokens: 1.5 }],
      ...[{ reasoningEffort: '' }, { unknown: 1 }],
      ...['any', { tool: 'other' }, { tool: 1 }, { tool: 'look', type: 'x' }, null].map((toolChoice) => ({
        toolChoice,
      })),
    ],
  ],
};

describe('an option of a message', () => {
  it.each(Object.entries(VALUES))(
    '%s takes what can work, and refuses all else by its name',
    (option, [taken, others]) => {
      for (const value of taken) expect(sent({ [option]: value }), JSON.stringify(value)).not.toThrow();
      for (const value of others) {
        expect(sent({ [option]: value }), String(value)).toThrow(ConfigurationError);
        expect(sent({ [option]: value })).toThrow(option);
      }
      expect(sent({ [option]: undefined })()).toEqual(sent({})());
    },
  );

  it('that does not exist is refused', () => {
    expect(sent({ modle: 'fast' })).toThrow(/modle is unknown/);
  });

  it('that names what the agent lacks is refused with the names that there are', () => {
    expect(sent({ model: 'x' })).toThrow(
      'send: the option model names "x", which the agent does not have; known are fast, slow',
    );
    expect(sent({ settings: { toolChoice: { tool: 'act' } }, tools: ['look'] })).toThrow(
      'send: the option settings.toolChoice names "act", which the agent does not have; known are look',
    );
    expect(() => choicesIn({ model: 'x' }, without)).toThrow('the agent does not have; there are none');
  });

  it('context holds 65,536 bytes of JSON, and no more', () => {
    const text = (bytes: number): string => 'é'.repeat((bytes - 2) / 2);
    expect(sent({ context: text(65_536) })).not.toThrow();
    expect(sent({ context: text(65_538) })).toThrow(/at most 65536 bytes/);
  });

  it('is copied for the log, without fields that are undefined', () => {
    const options = { tools: ['look'], settings: { temperature: 1, topP: undefined }, context: { a: [1] }, by: 'me' };
    const choices = sent(options)();
    options.tools.push('act');
    options.settings.temperature = 2;
    options.context.a.push(2);
    expect(choices).toEqual({ tools: ['look'], settings: { temperature: 1 }, context: { a: [1] }, by: 'me' });
    expect(Object.keys(choices.settings ?? {})).toEqual(['temperature']);
  });

  it('output is kept by its name, and of a schema only that there was one', () => {
    expect([sent({ output: 'form' })(), sent({ output: z.object({}) })()]).toEqual([
      { output: 'form' },
      { outputSchema: 'unstored' },
    ]);
  });
});

it('the id of a resumption has the form of the id of a message', () => {
  for (const id of VALUES.messageId?.[0] ?? []) expect(() => checkResumptionId(id as string)).not.toThrow();
  for (const id of VALUES.messageId?.[1] ?? [])
    expect(() => checkResumptionId(id as string)).toThrow(/^the id of a resumption must be/);
});

describe('the message of a host about a call', () => {
  it.each([[{}], [{ a: 1 }], [{ a: null, b: [{}] }]])('%j is read as its fields', (input) => {
    expect(fieldsOf(input, 'a decision')).toEqual(input);
  });

  it.each([[null], ['a'], [1], [[]], [undefined], [() => 1], [1n], [{ a: 1n }]])('%o is refused', (input) => {
    expect(() => fieldsOf(input, 'a settlement')).toThrow(InvalidDecisionError);
    expect(() => fieldsOf(input, 'a settlement')).toThrow(/^a settlement needs to be .*; nothing was changed$/);
  });

  it('has at most 1,048,576 bytes', () => {
    const of = (bytes: number) => ({ a: 'x'.repeat(bytes - 8) });
    expect(JSON.stringify(of(100))).toHaveLength(100);
    expect(() => fieldsOf(of(1_048_576), 'a decision')).not.toThrow();
    expect(() => fieldsOf(of(1_048_577), 'a decision')).toThrow(/at most 1048576 bytes/);
  });

  it('has own fields only, and a text where one is expected', () => {
    const fields = { reason: 'r', empty: '', count: 1, none: null };
    expect(['reason', 'count', 'none', 'constructor', 'toString'].map((key) => field(fields, key))).toEqual([
      ...['r', 1, null, undefined, undefined],
    ]);
    expect(['reason', 'empty', 'missing'].map((key) => textField(fields, key))).toEqual(['r', '', undefined]);
    for (const key of ['count', 'none']) expect(() => textField(fields, key)).toThrow(`${key} to be a text`);
    expect(readCallId('c')).toBe('c');
    for (const id of ['', 1, undefined, null, {}]) expect(() => readCallId(id)).toThrow(/callId/);
  });
});
