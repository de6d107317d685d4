import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineTool, type Plugin, type Tool } from '../../src/index.ts';
import {
  call,
  calls,
  codesOf,
  entriesOf,
  opened,
  outcomeOf,
  pathTool,
  playTool,
  resultText,
  scripted,
  settle,
  stillClock,
} from './hostileAgent.ts';
import { watchEachTest } from './hostileChecks.ts';

watchEachTest();

const throwing = (thrown: unknown) => (): never => {
  throw thrown;
};
const unreadable = new Proxy({}, { get: throwing(new Error('get')), ownKeys: throwing(new Error('keys')) });
/** A plugin that returns this for every call. */
const saying = (verdict: unknown, name = 'check'): Plugin => ({ name, beforeToolExecute: () => verdict as never });

const nonsense: [string, unknown][] = [
  ['a text', 'allow'],
  ['true', true],
  ['false', false],
  ['a number', 0],
  ['a list', ['block']],
  ['an empty list', []],
  ['a Map', new Map([['block', 'x']])],
  ['an instance without an answer', new (class Denial {})()],
  ['an unknown word', { deny: 'x' }],
  ['an unknown word beside a block that is undefined', { block: undefined, deny: 'x' }],
  ['an unknown word beside arguments', { args: { path: 'a' }, allow: false }],
  ['a block without a reason', { block: true }],
  ['a block with an object', { block: {} }],
  ['a suspension without a reason', { suspend: {} }],
  ['a suspension that is null', { suspend: null }],
  ['a payload that is not JSON', { suspend: { reason: 'r', payload: 1n } }],
  ['arguments that are not JSON', { args: { f: () => 1 } }],
  ['something unreadable', unreadable],
  [
    'a block that throws when read',
    {
      get block() {
        throw new Error('read');
      },
    },
  ],
];
test.each(nonsense)('a check that returns %s blocks the call', async (_, verdict) => {
  const seen: unknown[] = [];
  const plugins = [saying(verdict)];
  const { result, log } = await playTool(pathTool('t', seen), '{"path":"a"}', { plugins });
  expect([result.termination, outcomeOf(log), seen]).toEqual(['NaturalEnd', 'failed plugin_error', []]);
  expect(codesOf(log)).toEqual(['plugin_error']);
});

test.each([undefined, null, {}, { block: undefined }, Object.create(null)])(
  'a check that returns %s has no effect',
  async (verdict) => {
    const { log } = await playTool(pathTool('t'), '{"path":"a"}', { plugins: [saying(verdict)] });
    expect(outcomeOf(log)).toBe('succeeded');
  },
);

test.each([
  ['throws', throwing(new Error('x'))],
  ['throws undefined', throwing(undefined)],
  ['rejects', () => Promise.reject(new Error('x'))],
  ['throws an unreadable value', throwing(unreadable)],
])('a check that %s blocks the call', async (_, act) => {
  const seen: unknown[] = [];
  const plugins = [{ name: 'check', beforeToolExecute: act }];
  const { log } = await playTool(pathTool('t', seen), '{"path":"a"}', { plugins });
  expect([outcomeOf(log), seen]).toEqual(['failed plugin_error', []]);
});

test('a check that never returns blocks the call after half a minute', async () => {
  const clock = stillClock();
  const seen: unknown[] = [];
  const conversation = await opened({
    model: scripted([calls(call('c1', 't', '{"path":"a"}'))]),
    tools: [pathTool('t', seen)],
    plugins: [{ name: 'check', beforeToolExecute: () => new Promise(() => undefined) }],
    ports: { now: clock.now, setTimer: clock.setTimer },
  });
  const { result } = conversation.send('go');
  await settle();
  await clock.advance(30_000);
  await result;
  expect([outcomeOf(conversation.log()), seen]).toEqual(['failed plugin_error', []]);
});

test('a block takes precedence over a suspension, and both over a plugin without an answer, in any order', async () => {
  const suspend = saying({ suspend: { reason: 'r' } }, 'a');
  const block = saying({ block: 'no' }, 'b');
  for (const plugins of [
    [suspend, block],
    [block, suspend],
    [saying(undefined), suspend, block],
  ]) {
    const { log } = await playTool(pathTool('t'), '{"path":"a"}', { plugins });
    expect([outcomeOf(log), resultText(log)]).toEqual(['failed blocked', 'Blocked by b: no']);
  }
  const { result } = await playTool(pathTool('t'), '{"path":"a"}', { plugins: [saying(undefined), suspend] });
  expect(result.termination).toBe('Suspended');
});

test.each([{ path: 5 }, {}, 'text', [1], null, 5])('arguments %j from a check are validated again', async (args) => {
  const seen: unknown[] = [];
  const { log } = await playTool(pathTool('t', seen), '{"path":"a"}', { plugins: [saying({ args })] });
  expect([outcomeOf(log), seen]).toEqual(['failed invalid_arguments', []]);
});

test('the next check, the tool and the log receive the arguments from a check', async () => {
  const seen: unknown[] = [];
  const argumentsOfCheck: unknown[] = [];
  const listening: Plugin = {
    name: 'next',
    beforeToolExecute: ({ call: { args } }) => void argumentsOfCheck.push(args),
  };
  const plugins = [saying({ args: { path: 'b' } }), listening];
  const { log } = await playTool(pathTool('t', seen), '{"path":"a"}', { plugins });
  expect([seen, argumentsOfCheck, entriesOf(log, 'tool-started')[0]?.args]).toEqual([
    [{ path: 'b' }],
    [{ path: 'b' }],
    { path: 'b' },
  ]);
});

test('S001-09 invalid arguments never reach a check', async () => {
  const argumentsOfCheck: unknown[] = [];
  const plugin: Plugin = { name: 'p', beforeToolExecute: () => void argumentsOfCheck.push(1) };
  const { log } = await playTool(pathTool('t'), '{}', { plugins: [plugin] });
  expect([outcomeOf(log), argumentsOfCheck]).toEqual(['failed invalid_arguments', []]);
});

describe('needsApproval', () => {
  const asking = (needsApproval: unknown, seen: unknown[] = []): Tool =>
    defineTool({
      name: 't',
      description: '',
      parameters: z.object({}),
      needsApproval: needsApproval as boolean,
      execute: () => seen.push('ran'),
    });

  test.each([
    ['throws', throwing(new Error('x'))],
    ['rejects', () => Promise.reject(undefined)],
    ['returns undefined', () => undefined],
    ['returns null', () => null],
    ['returns 0', () => 0],
    ['returns an empty text', () => ''],
    ['returns true', () => true],
    ['returns a promise of undefined', async () => undefined],
    ['returns an object', () => ({})],
  ])('a predicate that %s suspends the call: only false lets the call pass', async (_, needsApproval) => {
    const seen: unknown[] = [];
    const { result, conversation } = await playTool(asking(needsApproval, seen));
    expect([result.termination, seen, conversation.pending[0]?.reason]).toEqual(['Suspended', [], 'permission']);
  });

  test.each([false, () => false, async () => false])('false lets the call pass', async (needsApproval) => {
    const { log } = await playTool(asking(needsApproval));
    expect(outcomeOf(log)).toBe('succeeded');
  });

  test('a predicate that never returns suspends the call after half a minute', async () => {
    const clock = stillClock();
    const seen: unknown[] = [];
    const conversation = await opened({
      model: scripted([calls(call('c1', 't'))]),
      tools: [asking(() => new Promise(() => undefined), seen)],
      ports: { now: clock.now, setTimer: clock.setTimer },
    });
    const { result } = conversation.send('go');
    await settle();
    await clock.advance(30_000);
    expect([(await result).termination, seen]).toEqual(['Suspended', []]);
  });
});

test.each([5, [10n], [{ type: 'x' }], [{ type: 'text', text: 5 }], {}])(
  'a result %s from a plugin is reported as a fault of the plugin, and the result stays',
  async (answer) => {
    const plugins = [{ name: 'p', afterToolExecute: () => ({ result: answer as never }) }];
    const { result, log } = await playTool(pathTool('t'), '{"path":"a"}', { plugins });
    expect([result.termination, outcomeOf(log), resultText(log)]).toEqual(['NaturalEnd', 'succeeded', 'read']);
    expect(codesOf(log)).toEqual(['plugin_error']);
  },
);
