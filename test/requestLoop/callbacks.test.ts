/**
 * The callbacks of a request and its registry (docs/internals/contracts.md, 3.5 and 5): order, arguments and
 * exceptions.
 */

import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { ConfigurationError, defineTool, type Tool, toolResult } from '../../src/index.ts';
import {
  createStateManager,
  FileOperationError,
  ModelRetry,
  ToolExecutionError,
  UserAbortError,
  ValidationError,
} from '../../src/requestLoop/index.ts';
import { nextTurn } from '../../src/timeLimit.ts';
import { echoTool, gateTool } from '../support/scenarioTools.ts';
import { call, lines, t } from '../support/scriptedReplies.ts';
import { unhandledRejections } from '../support/unhandledRejections.ts';
import { loopBench } from './sessionBench.ts';

/** Returns a tool that follows the script, one line for each execution, and repeats the last line. */
function flaky(...script: (() => unknown)[]) {
  let ran = 0;
  const tool = defineTool({
    name: 'pay',
    description: 'Pays.',
    parameters: z.object({}),
    execute() {
      ran += 1;
      return script[Math.min(ran, script.length) - 1]?.();
    },
  });
  return { tool, ran: () => ran };
}
const throwing = (error: unknown) => (): never => {
  throw error;
};
const broke = throwing(new Error('the line is dead'));
const paid = (): string => 'paid';
const pay = [call('c1', 'pay')];

describe('the order of callbacks', () => {
  it('section 5: deltas, the batch’s start, each return in call order as the next request has it, then the answer’s deltas', async () => {
    const gate = gateTool();
    const replies = [[t('I '), t('look.'), call('c1', 'gate'), call('c2', 'gate')], 'done'];
    const on = loopBench({ replies, tools: [gate.tool] });
    const asked = on.request('hi');
    await gate.begun('c2');
    expect(on.events).toEqual(['delta I ', 'delta look.', 'start gate, gate']);
    expect(on.session.runtime.toolRegistry.list().map(({ status }) => status)).toEqual(['running', 'running']);
    gate.release('c2', 'two');
    gate.release('c1', 'one');
    await asked;
    expect(on.events.slice(3)).toEqual(['completed gate {} one null', 'completed gate {} two null', 'delta done']);
    expect(on.session.runtime.toolRegistry.list()).toEqual([
      { callId: 'c1', name: 'gate', args: {}, status: 'completed', result: 'one' },
      { callId: 'c2', name: 'gate', args: {}, status: 'completed', result: 'two' },
    ]);
  });

  it('section 5.1: no tool begins before a slow listener has received every delta', async () => {
    const echo = echoTool();
    const on = loopBench({ replies: [[t('a'), t('b'), call('c1', 'echo', { m: '' })], 'done'], tools: [echo.tool] });
    const heard: string[] = [];
    await on.request('hi', {
      async streamingCallback(delta) {
        await Promise.resolve();
        await new Promise((resolve) => setImmediate(resolve));
        heard.push(`${delta} ${echo.ran.length}`);
      },
    });
    expect(heard).toEqual(['a 0', 'b 0', 'done 1']);
  });

  it('section 5.4: a batch is announced by its first three names, and three dots where there are more', async () => {
    const named = (name: string): Tool => echoTool(name).tool;
    const names = ['one', 'two', 'three', 'four'];
    const calls = (count: number) => names.slice(0, count).map((name) => call(`${name}${count}`, name, { m: '' }));
    const on = loopBench({ replies: [calls(4), calls(3), calls(1), 'done'], tools: names.map(named) });
    await on.request('hi');
    expect(on.events.filter((line) => line.startsWith('start'))).toEqual([
      'start one, two, three...',
      'start one, two, three',
      'start one',
    ]);
    expect(on.session.runtime.batchCounter).toBe(3);
  });

  it('S004-11: five calls, two at a time: all run, one batch, returns in call order', async () => {
    const echo = echoTool();
    const ids = ['c1', 'c2', 'c3', 'c4', 'c5'];
    const replies = [ids.map((id) => call(id, 'echo', { m: id })), 'done'];
    const on = loopBench({ replies, tools: [echo.tool], policies: { maxParallelTools: 2 } });
    await on.request('hi');
    expect(echo.ran).toHaveLength(5);
    expect(on.events.filter((line) => line.startsWith('completed'))).toEqual(
      ids.map((id) => `completed echo {"m":"${id}"} {"m":"${id}"} null`),
    );
    expect(on.session.runtime.batchCounter).toBe(1);
  });

  it('LOOP-6: an empty reply is noticed and the model asked again; without a streak the count is 0 again', async () => {
    const on = loopBench({ replies: [[t('')], [t(' \n')], 'done'] });
    const counts: number[] = [];
    await on.request('hi', { noticeCallback: () => void counts.push(on.session.runtime.consecutiveEmptyResponses) });
    expect(counts).toEqual([1, 2]);
    expect(on.session.runtime.consecutiveEmptyResponses).toBe(0);
  });
});

describe('the tool callback is the executor', () => {
  it('section 5.3: its answer is the result, and the tool runs only if it calls run()', async () => {
    const echo = echoTool();
    const on = loopBench({ replies: [[call('c1', 'echo', { m: 'a' })], 'done'], tools: [echo.tool] });
    const parts: unknown[] = [];
    await on.request('hi', {
      async toolCallback(part) {
        parts.push(part);
        return 'by hand';
      },
    });
    expect(parts).toEqual([{ callId: 'c1', name: 'echo', args: { m: 'a' } }]);
    expect(echo.ran).toEqual([]);
    expect(lines(on.session.conversation.messages)[2]).toBe('c1 by hand');
  });

  it('without an answer of its own, the result is that of run()', async () => {
    const echo = echoTool();
    const on = loopBench({ replies: [[call('c1', 'echo', { m: 'a' })], 'done'], tools: [echo.tool] });
    await on.request('hi', { toolCallback: async (_, node) => void node.run() });
    expect(lines(on.session.conversation.messages)[2]).toBe('c1 {"m":"a"}');
  });

  it('run() executes the tool once, whoever calls it and however often, repetitions of the callback included', async () => {
    const { tool, ran } = flaky(paid);
    const on = loopBench({ replies: [pay, 'done'], tools: [tool] });
    let called = 0;
    await on.request('hi', {
      async toolCallback(_, node) {
        called += 1;
        const [first, second] = await Promise.all([node.run(), node.run()]);
        if (called < 3) throw new Error('the screen is gone');
        return `${first} ${second} ${await node.run()}`;
      },
    });
    expect([called, ran()]).toEqual([3, 1]);
    expect(lines(on.session.conversation.messages)[2]).toBe('c1 paid paid paid');
  });

  it('run() fails once for an execution of the callback, and runs the tool again in the next', async () => {
    const { tool, ran } = flaky(broke, paid);
    const on = loopBench({ replies: [pay, 'done'], tools: [tool] });
    await on.request('hi', { toolCallback: (_, node) => node.run().catch(() => node.run()) });
    expect(ran()).toBe(2);
    expect(lines(on.session.conversation.messages)[2]).toBe('c1 paid');
  });
});

describe('a failing tool', () => {
  it.each([1, 2])(
    'LOOP-8, S004-07: fails %i times and then succeeds: so many executions and one more, one result',
    async (times) => {
      const { tool, ran } = flaky(...Array(times).fill(broke), paid);
      const on = loopBench({ replies: [pay, 'done'], tools: [tool] });
      await on.request('hi');
      expect(ran()).toBe(times + 1);
      expect(on.events).toEqual(['start pay', 'completed pay {} paid null', 'delta done']);
    },
  );

  it('LOOP-8, S004-07: fails always: three executions, one failure in the registry, one failed event', async () => {
    const { tool, ran } = flaky(broke);
    const on = loopBench({ replies: [pay, 'done'], tools: [tool] });
    await on.request('hi');
    expect(ran()).toBe(3);
    expect(on.session.runtime.toolRegistry.get('c1')).toMatchObject({
      status: 'failed',
      error: 'Error: the line is dead',
    });
    expect(on.events[1]).toBe('failed pay {} Error: the line is dead null');
  });

  it.each([
    [{ maxRetries: 2 }, 2],
    [{ maxRetries: 1 }, 1],
    [{ maxRetries: 0 }, 1],
  ])('settings %j: %i executions', async (settings, executions) => {
    const { tool, ran } = flaky(broke);
    await loopBench({ replies: [pay, 'done'], tools: [tool], settings }).request('hi');
    expect(ran()).toBe(executions);
  });

  it.each([
    [{ idempotent: true }, 3],
    [{}, 1],
  ])('a tool %j that takes too long: %i executions', async (kind, executions) => {
    let ran = 0;
    const execute = (): Promise<never> => {
      ran += 1;
      return new Promise(() => undefined);
    };
    const tool = defineTool({ name: 'pay', description: 'Pays.', parameters: z.object({}), execute, ...kind });
    await loopBench({ replies: [pay, 'done'], tools: [tool], policies: { limits: { toolMs: 1_000 } } }).request('hi');
    expect(ran).toBe(executions);
  });

  class Missing extends FileOperationError {}
  const ownNamed = Object.assign(new Error('no'), { name: 'ToolExecutionError' });
  it.each([
    ['a model-retry signal', new ModelRetry('say which file')],
    ['a validation error', new ValidationError('no')],
    ['a configuration error', new ConfigurationError('no')],
    ['a tool-execution error', new ToolExecutionError('no')],
    ['a tool-execution error of the host’s own class', ownNamed],
    ['a file-operation error', new FileOperationError('no')],
    ['a class below one of them', new Missing('no')],
  ])('LOOP-8, S004-08: %s is never retried, whatever the host calls retryable', async (_, error) => {
    for (const policies of [{}, { toolRetry: { retryable: () => true } }]) {
      const { tool, ran } = flaky(throwing(error));
      await loopBench({ replies: [pay, 'done'], tools: [tool], policies }).request('hi');
      expect(ran()).toBe(1);
    }
  });

  it.each([
    ['of the tool', undefined],
    ['of the callback', async () => broke()],
  ])(
    'S004-10: under failRun the request fails with the very error %s; the other call ran once',
    async (_, toolCallback) => {
      const own = echoTool();
      const error = new Error('the line is dead');
      const { tool, ran } = flaky(throwing(error));
      const replies = [[call('c1', 'echo', { m: 'a' }), call('c2', 'pay')], 'never'];
      const on = loopBench({ replies, tools: [own.tool, tool], policies: { onToolFailure: 'failRun' } });
      const callbacks = toolCallback
        ? {
            toolCallback: (part: { name: string }, node: { run(): Promise<unknown> }) =>
              part.name === 'pay' ? Promise.reject(error) : node.run(),
          }
        : {};
      await expect(on.request('hi', callbacks)).rejects.toBe(error);
      expect([own.ran, on.model.calls.length]).toEqual([['c1'], 1]);
      expect(ran()).toBe(toolCallback ? 0 : 3);
      expect(on.session.runtime.toolRegistry.list().map(({ status }) => status)).toEqual(['completed', 'failed']);
      expect(lines(on.session.conversation.messages).slice(2)).toEqual(['c1 {"m":"a"}', 'c2! Error: the line is dead']);
    },
  );

  it('a returned error under failRun fails the request as a RunError with its code', async () => {
    const { tool } = flaky(() => toolResult.error('the account is closed', 'closed'));
    const on = loopBench({ replies: [pay], tools: [tool], policies: { onToolFailure: 'failRun' } });
    await expect(on.request('hi')).rejects.toMatchObject({ code: 'run', result: { error: { code: 'closed' } } });
  });

  it('S004-13: a user abort inside a tool ends the request at once: cancelled, not failed, after the callback of its start', async () => {
    const gate = gateTool();
    const { tool, ran } = flaky(throwing(new UserAbortError('enough')));
    const replies = [[call('c1', 'gate'), call('c2', 'pay')], 'again'];
    const on = loopBench({ replies, tools: [gate.tool, tool] });
    await expect(on.request('hi')).rejects.toThrow('enough');
    expect([on.events, ran()]).toEqual([['start gate, pay'], 1]);
    expect(on.session.runtime.toolRegistry.list().map(({ status }) => status)).toEqual(['cancelled', 'cancelled']);
    expect((await on.request('go on')).result).toEqual({ output: 'again' });
  });
});

describe('LOOP-12: a callback that throws', () => {
  const error = new Error('the screen is gone');
  const replies = [[t('a'), call('c1', 'echo', { m: 'a' }), call('c2', 'echo', { m: 'b' })], 'done', 'again'];
  const run = () => loopBench({ replies, tools: [echoTool().tool] });

  it.each([
    ['streamingCallback', throwing(error)],
    ['streamingCallback', async () => throwing(error)()],
    ['toolResultCallback', throwing(error)],
    ['toolResultCallback', async () => throwing(error)()],
  ])('%s fails the request with what it threw, and the session is whole', async (name, act) => {
    const on = run();
    await expect(on.request('hi', { ...on.note, [name]: act })).rejects.toBe(error);
    expect(on.events).toEqual(name === 'streamingCallback' ? [] : ['delta a', 'start echo, echo']);
    expect(on.session.runtime.toolRegistry.list().every(({ status }) => status === 'completed')).toBe(true);
    expect(lines(on.session.conversation.messages)[0]).toBe('user hi');
    await on.request('again');
    expect(on.session.runtime.consecutiveEmptyResponses).toBe(0);
  });

  it.each(['toolStartCallback', 'noticeCallback'])(
    '%s is a signal to an interface: the request goes on',
    async (name) => {
      const on = loopBench({ replies: [[t('')], [call('c1', 'echo', { m: 'a' })], 'done'], tools: [echoTool().tool] });
      expect((await on.request('hi', { [name]: throwing(error) })).result).toEqual({ output: 'done' });
      const unhandled = unhandledRejections();
      const other = loopBench({
        replies: [[t('')], [call('c1', 'echo', { m: 'a' })], 'done'],
        tools: [echoTool().tool],
      });
      expect((await other.request('hi', { [name]: async () => throwing(error)() })).result).toEqual({ output: 'done' });
      await nextTurn();
      expect(unhandled).toEqual([]);
    },
  );

  it('an unknown callback is refused before anything begins', async () => {
    const on = run();
    await expect(on.request('hi', { toolCallBack: () => undefined } as never)).rejects.toThrow(
      'toolCallBack is unknown',
    );
    expect(on.session.runtime.requestId).toBe('');
  });
});

describe('the tool registry', () => {
  const registry = () =>
    createStateManager({ resolveModel: () => undefined as never, tools: [] }).session.runtime.toolRegistry;

  it('S004-04: registering an id twice updates its arguments, as one call that stands where it stood', () => {
    const calls = registry();
    calls.register('a', 'read', { n: 1 });
    calls.start('a');
    calls.register('a', 'read', { n: 2 });
    expect(calls.list()).toEqual([{ callId: 'a', name: 'read', args: { n: 2 }, status: 'running' }]);
  });

  it.each(['start', 'complete', 'fail', 'cancel'] as const)(
    'S004-04: %s of an unknown id is an error that names it',
    (act) => {
      expect(() => registry()[act]('nobody', 'x')).toThrow(/"nobody"/);
    },
  );

  it('LOOP-3: register, start, then complete, fail or cancel, each with its result, error or reason', () => {
    const calls = registry();
    for (const id of ['a', 'b', 'c', 'd']) calls.register(id, 'read', {});
    calls.start('a');
    calls.complete('a', 'text');
    calls.fail('b', 'broke');
    calls.cancel('c', 'stopped');
    expect(calls.list()).toEqual([
      { callId: 'a', name: 'read', args: {}, status: 'completed', result: 'text' },
      { callId: 'b', name: 'read', args: {}, status: 'failed', error: 'broke' },
      { callId: 'c', name: 'read', args: {}, status: 'cancelled', reason: 'stopped' },
      { callId: 'd', name: 'read', args: {}, status: 'pending' },
    ]);
    calls.clear();
    expect([calls.list(), calls.get('a')]).toEqual([[], undefined]);
  });
});
