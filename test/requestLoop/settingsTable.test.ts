/** The settings of a request loop as policies, the registry of calls, and the names of final errors: each by a table. */
import { describe, expect, it } from 'vitest';
import { presets, RunchartError } from '../../src/index.ts';
import { labelOf } from '../../src/requestLoop/observation.ts';
import { normalizeArgs } from '../../src/requestLoop/processNode.ts';
import * as errors from '../../src/requestLoop/requestErrors.ts';
import { checkedSettings, type LoopSettings, policiesUnder, versionOf } from '../../src/requestLoop/settings.ts';
import { CallRegistry } from '../../src/requestLoop/toolRegistry.ts';

const FULL: Required<LoopSettings> = {
  ...{ maxIterations: 3, maxRetries: 4, toolStrictValidation: true },
  ...{ requestDelayMs: 5, globalRequestTimeoutSeconds: 6 },
};
const DEFAULTS: LoopSettings = { toolStrictValidation: false, requestDelayMs: 0, globalRequestTimeoutSeconds: 0 };

describe('settings', () => {
  it.each(Object.keys(FULL) as (keyof LoopSettings)[])(
    'another %s is another version, and the default of one is none',
    (name) => {
      const { [name]: value, ...rest } = FULL;
      const other = typeof value === 'boolean' ? !value : (value as number) + 1;
      expect(versionOf({ ...FULL, [name]: other })).not.toBe(versionOf(FULL));
      expect(versionOf(rest)).not.toBe(versionOf(FULL));
      expect(versionOf({ ...rest, [name]: value })).toBe(versionOf(FULL));
      expect(versionOf({ ...rest, ...(name in DEFAULTS && { [name]: DEFAULTS[name] }) })).toBe(versionOf(rest));
    },
  );

  it.each<[keyof LoopSettings, readonly unknown[], readonly unknown[]]>([
    ['maxIterations', [1, 2, 1_000], [0, -1, 1.5, '1', null, Number.NaN]],
    ['maxRetries', [0, 1, 10], [-1, 0.5, '1', null, Number.NaN]],
    ['toolStrictValidation', [true, false], [0, 'true', null]],
    ['requestDelayMs', [0, 0.5, 10], [-1, '1', null, Number.NaN]],
    ['globalRequestTimeoutSeconds', [0, 0.5, 10], [-1, '1', null, Number.NaN]],
  ])('%s may be one of %o, and none of %o', (name, fit, unfit) => {
    for (const value of fit) expect(checkedSettings({ [name]: value })).toEqual({ [name]: value });
    for (const value of unfit)
      expect(() => checkedSettings({ [name]: value } as never)).toThrow(new RegExp(`settings\\.?.*${name}`));
  });
});

describe('the policies under settings', () => {
  it('are those of the preset, those of the host over them, and the settings over both', () => {
    const { toolRetry: _t, modelTimeout: _m, limits: _l, ...preset } = presets.requestLoop;
    expect(policiesUnder(undefined, {})).toMatchObject(preset);
    expect(policiesUnder({ maxParallelTools: 2 }, {})).toMatchObject({ ...preset, maxParallelTools: 2 });
    expect(policiesUnder({ limits: { turns: 9, toolMs: 8 } }, {}).limits).toEqual({ turns: 9, toolMs: 8 });
    expect(policiesUnder({ limits: { turns: 9, toolMs: 8 } }, { maxIterations: 3 }).limits).toEqual({
      turns: 3,
      toolMs: 8,
    });
  });

  it.each([
    [undefined, undefined, 60_000],
    [undefined, 0, 60_000],
    [undefined, 1_500, 61_500],
    [{ firstPartMs: 10 }, undefined, 10],
    [{ firstPartMs: 10 }, 5, 15],
    [{ nextPartMs: 7 }, 5, 60_005],
  ])(
    'wait for the first part of a reply, with %j and a delay of %s, %i ms',
    (modelTimeout, requestDelayMs, firstPartMs) => {
      const policies = modelTimeout ? { modelTimeout } : {};
      const settings = requestDelayMs === undefined ? {} : { requestDelayMs };
      expect(policiesUnder(policies as never, settings).modelTimeout).toEqual({ ...modelTimeout, firstPartMs });
    },
  );

  const attempts = presets.requestLoop.toolRetry || undefined;
  it.each([
    ['the preset', undefined, undefined, attempts?.attempts],
    ['no repetition by the host', false, undefined, undefined],
    ['two executions, although the host has none', false, 2, 2],
    ['one execution', { attempts: 5 }, 1, undefined],
    ['no execution more', { attempts: 5 }, 0, undefined],
    ['two executions', { attempts: 5 }, 2, 2],
    ['those of the host', { attempts: 5 }, undefined, 5],
  ])(
    '%s: with toolRetry %j and maxRetries %s a tool is executed %s times at most',
    (_, toolRetry, maxRetries, expected) => {
      const policies = toolRetry === undefined ? {} : { toolRetry };
      const policy = policiesUnder(policies as never, maxRetries === undefined ? {} : { maxRetries }).toolRetry;
      expect(policy === false ? undefined : policy?.attempts).toBe(expected);
    },
  );

  it('never repeat after a final error, and otherwise as the host decides', () => {
    const failed = new Error('once more');
    const final = new errors.ValidationError('never');
    for (const [retryable, expected] of [
      [() => true, true],
      [() => false, false],
      [() => 'yes' as never, false],
    ] as const) {
      const { toolRetry } = policiesUnder({ toolRetry: { attempts: 3, retryable } as never }, {});
      const decides = (toolRetry as { retryable(error: unknown): unknown }).retryable;
      expect([decides(failed), decides(final)]).toEqual([expected, false]);
    }
  });
});

describe('final errors', () => {
  const FINAL = [
    'UserAbortError',
    'ModelRetry',
    'ValidationError',
    'ConfigurationError',
    'ToolExecutionError',
    'FileOperationError',
  ];
  const OTHERS = ['Error', 'TypeError', 'GlobalRequestTimeoutError', 'UnregisteredCallError', 'useraborterror', ''];
  const named = (name: string): Error => Object.assign(new Error('x'), { name });

  it.each([...FINAL, ...OTHERS])('%s is recognized by its own name, its class and its superclass', (name) => {
    const Own = { [name]: class extends Error {} }[name] as new () => Error;
    const Below = class extends Own {};
    for (const error of [named(name), new Own(), new Below(), { name }]) {
      expect(errors.isFinalError(error)).toBe(FINAL.includes(name));
      expect(errors.isUserAbort(error)).toBe(name === 'UserAbortError');
    }
  });

  it.each([undefined, null, 'UserAbortError', 7, true, {}, [], Object.create(null)])('%o is none', (value) => {
    expect([errors.isFinalError(value), errors.isUserAbort(value)]).toEqual([false, false]);
  });

  it('each class has its code, its message and its cause', () => {
    const cause = new Error('why');
    expect(
      [
        new errors.UserAbortError(),
        new errors.UserAbortError('stop', { cause }),
        new errors.GlobalRequestTimeoutError(7),
        new errors.UnregisteredCallError('m'),
        new errors.ValidationError('m'),
        new errors.ModelRetry('m'),
        new errors.ToolExecutionError('m', { cause }),
        new errors.FileOperationError('m', { cause }),
      ].map((error) => [
        error instanceof RunchartError,
        error.constructor.name,
        error.code,
        error.message.slice(0, 40),
        error.cause,
      ]),
    ).toEqual([
      [true, 'UserAbortError', 'user_abort', 'the user aborted the request', undefined],
      [true, 'UserAbortError', 'user_abort', 'stop', cause],
      [true, 'GlobalRequestTimeoutError', 'request_timeout', 'the request did not end within 7 s; rais', undefined],
      [true, 'UnregisteredCallError', 'unregistered_call', 'm', undefined],
      [true, 'ValidationError', 'invalid_arguments', 'm', undefined],
      [true, 'ModelRetry', 'model_retry', 'm', undefined],
      [true, 'ToolExecutionError', 'tool_execution', 'm', cause],
      [true, 'FileOperationError', 'file_operation', 'm', cause],
    ]);
    expect(new errors.GlobalRequestTimeoutError(7).timeoutSeconds).toBe(7);
  });
});

describe('the registry of calls', () => {
  const CHANGES = {
    start: [(registry: CallRegistry) => registry.start('a'), { status: 'running' }],
    complete: [(registry: CallRegistry) => registry.complete('a', 'r'), { status: 'completed', result: 'r' }],
    fail: [(registry: CallRegistry) => registry.fail('a', 'e'), { status: 'failed', error: 'e' }],
    cancel: [(registry: CallRegistry) => registry.cancel('a', 'w'), { status: 'cancelled', reason: 'w' }],
  } as const;
  const names = Object.keys(CHANGES) as (keyof typeof CHANGES)[];
  const call = { callId: 'a', name: 'n', args: { m: 1 } };

  it.each(names.flatMap((first) => names.map((second) => [first, second] as const)))(
    '%s, then %s: a call has the fields of its last change alone',
    (first, second) => {
      const registry = new CallRegistry();
      registry.register('a', 'n', { m: 1 });
      expect(registry.get('a')).toEqual({ ...call, status: 'pending' });
      for (const each of [first, second]) {
        CHANGES[each][0](registry);
        expect(registry.get('a')).toEqual({ ...call, ...CHANGES[each][1] });
      }
      registry.register('a', 'other', { m: 2 });
      expect(registry.get('a')).toEqual({ callId: 'a', name: 'other', args: { m: 2 }, ...CHANGES[second][1] });
      expect(registry.list()).toHaveLength(1);
    },
  );

  it.each(names)(
    '%s of a call that is not registered, was removed or was cleared throws, and registers nothing',
    (name) => {
      const registry = new CallRegistry();
      const attempt = () => CHANGES[name][0](registry);
      expect(attempt).toThrow(errors.UnregisteredCallError);
      registry.register('a', 'n', {});
      registry.remove('a');
      expect(attempt).toThrow('"a"');
      registry.register('a', 'n', {});
      registry.clear();
      expect(attempt).toThrow(errors.UnregisteredCallError);
      registry.remove('a');
      expect([registry.get('a'), registry.list()]).toEqual([undefined, []]);
    },
  );

  it('lists copies in the order of the registration', () => {
    const registry = new CallRegistry();
    for (const id of ['b', 'a', 'c']) registry.register(id, 'n', {});
    registry.start('a');
    registry.register('b', 'n', {});
    for (const copy of registry.list()) copy.status = 'failed';
    const [copy] = [registry.get('a')];
    if (copy) copy.name = 'changed';
    expect(registry.list().map(({ callId, name, status }) => [callId, name, status])).toEqual([
      ['b', 'n', 'pending'],
      ['a', 'n', 'running'],
      ['c', 'n', 'pending'],
    ]);
  });
});

it.each([
  [[], ''],
  [['a'], 'a'],
  [['a', 'b', 'c'], 'a, b, c'],
  [['a', 'b', 'c', 'd'], 'a, b, c...'],
  [['a', 'a'], 'a, a'],
])('the name of the batch %j is %j', (calls, label) => {
  expect(labelOf(calls)).toBe(label);
});

describe('arguments of another engine', () => {
  it.each([
    ['{"a":1}', { a: 1 }],
    [{ a: [1] }, { a: [1] }],
    [undefined, {}],
    [null, {}],
    ['', {}],
    ['{}', {}],
  ])('%j are %j', (args, expected) => {
    expect(normalizeArgs(args)).toEqual(expected);
  });

  it.each(['[1]', '7', '"a"', 'null', '{"a":', [1], 7, true, `{"a":"${'x'.repeat(500)}`])(
    '%j are refused, and quoted at most 200 characters',
    (args) => {
      const text = typeof args === 'string' ? args : JSON.stringify(args);
      const message = `the arguments of a call must be a JSON object, got ${text.slice(0, 200)}`;
      expect(() => normalizeArgs(args)).toThrow(new errors.ValidationError(message));
    },
  );
});
