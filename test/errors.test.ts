/** Errors of the library, thrown values in words, and parts that are loaded on demand. */
import { describe, expect, it, vi } from 'vitest';
import * as errors from '../src/errors.ts';
import { onDemand } from '../src/onDemand.ts';

const { RunchartError, thrownMessage, thrownText } = errors;

describe('a thrown value in words', () => {
  const hostile = {
    get message(): string {
      throw error;
    },
  };
  const error = new TypeError('no');
  const nameless = Object.assign(new Error('x'), {});
  Object.defineProperty(nameless, 'name', {
    get() {
      throw error;
    },
  });
  const circular: { self?: object } = {};
  circular.self = circular;

  it.each<[unknown, string, string]>([
    [error, 'no', 'TypeError: no'],
    ['text', 'text', 'Error: text'],
    [undefined, 'undefined', 'Error: undefined'],
    [null, 'null', 'Error: null'],
    [5, '5', 'Error: 5'],
    [{ message: 'own' }, 'own', 'Error: own'],
    [{ message: 5 }, '{"message":5}', 'Error: {"message":5}'],
    [{ toJSON: () => undefined }, '[object Object]', 'Error: [object Object]'],
    [hostile, 'a value was thrown that cannot be shown', 'Error: a value was thrown that cannot be shown'],
    [circular, 'a value was thrown that cannot be shown', 'Error: a value was thrown that cannot be shown'],
    [nameless, 'x', 'Error: x'],
  ])('%#', (thrown, message, text) => expect([thrownMessage(thrown), thrownText(thrown)]).toEqual([message, text]));

  it.each([8_192, 8_193])('has at most 8,192 characters: %i', (length) => {
    const bounded = length === 8_192 ? 'x'.repeat(8_192) : `${'x'.repeat(8_192)}…`;
    expect(thrownMessage(new Error('x'.repeat(length)))).toBe(bounded);
    expect(thrownMessage('x'.repeat(length))).toBe(bounded);
    const named = Object.assign(new Error('m'), { name: 'x'.repeat(length) });
    expect(thrownText(named)).toBe(`${bounded}: m`);
  });
});

describe('an error of the library', () => {
  it.each<[string, errors.RunchartError]>([
    ['agent_busy', new errors.AgentBusyError('agent_busy', 'm')],
    ['configuration', new errors.ConfigurationError('m')],
    ['media_type', new errors.MediaTypeError('m')],
    ['invalid_decision', new errors.InvalidDecisionError('m')],
    ['decision_refused', new errors.DecisionRefusedError('m')],
    ['limit', new errors.LimitError('m')],
    ['session_busy', new errors.SessionBusyError('m')],
    ['store_conflict', new errors.StoreConflictError('m')],
    ['gap', new errors.CorruptLogError('gap', 'm', 0)],
    ['mine', new RunchartError('mine', 'm')],
  ])('has its code, its name and its mark: %s', (code, error) => {
    expect([error.code, error.message, error.name]).toEqual([code, 'm', error.constructor.name]);
    expect([RunchartError.isRunchartError(error), error instanceof RunchartError]).toEqual([true, true]);
  });

  it('is recognized also of another copy of the package, and nothing else is', () => {
    expect(RunchartError.isRunchartError({ [Symbol.for('runchart.error')]: true })).toBe(true);
    for (const other of [undefined, null, 5, {}, new Error('x'), { [Symbol.for('runchart.error')]: 1 }])
      expect(RunchartError.isRunchartError(other)).toBe(false);
  });

  it('has the line of a log only if one is the reason, and the cause of its options', () => {
    expect(new errors.CorruptLogError('gap', 'm', 0).line).toBe(0);
    expect(new errors.CorruptLogError('gap', 'm').line).toBeUndefined();
    expect(new RunchartError('x', 'm', { cause: 5 }).cause).toBe(5);
    expect(new errors.ConfigurationError('m', { cause: 5 }).cause).toBe(5);
  });
});

it('a part is loaded once, at its first use, and again only after a failure', async () => {
  const load = vi.fn(async () => 'part');
  load.mockRejectedValueOnce(new Error('no network'));
  const part = onDemand(load);
  expect(load).not.toHaveBeenCalled();
  await expect(Promise.all([part(), part()])).rejects.toThrow('no network');
  expect(load).toHaveBeenCalledTimes(1);
  expect(await Promise.all([part(), part()])).toEqual(['part', 'part']);
  expect(await part()).toBe('part');
  expect(load).toHaveBeenCalledTimes(2);
});
