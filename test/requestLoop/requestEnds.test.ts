/**
 * The ends of a request before its answer (docs/internals/contracts.md, 6), the session after them, and the agent of
 * the next request.
 */
import { describe, expect, it, vi } from 'vitest';
import { ConfigurationError } from '../../src/index.ts';
import { AgentCache } from '../../src/requestLoop/agentCache.ts';
import {
  createStateManager,
  GlobalRequestTimeoutError,
  processRequest,
  UserAbortError,
} from '../../src/requestLoop/index.ts';
import { LoopRun } from '../../src/requestLoop/loopRun.ts';
import { echoTool, gateTool } from '../support/scenarioTools.ts';
import { call, deaf, during, lines, t } from '../support/scriptedReplies.ts';
import { flush } from '../support/virtualClock.ts';
import { loopBench } from './sessionBench.ts';

const partly = (text: string) => deaf(t(text));

describe('an abort', () => {
  /** Runs a request that is aborted after its part. */
  async function aborted(part: string, policies = {}) {
    const on = loopBench({ replies: [partly(part), 'hello'], policies });
    const stop = new AbortController();
    const asked = on.request('hi', {
      streamingCallback: () => stop.abort(new Error('enough')),
      signal: stop.signal,
    });
    await expect(asked).rejects.toThrow(UserAbortError);
    return on;
  }

  it('S004-20: keeps what was streamed as an interrupted reply at the end of the history', async () => {
    const on = await aborted('par');
    expect(lines(on.session.conversation.messages)).toEqual(['user hi', 'assistant [INTERRUPTED]\n\npar']);
    expect(on.session.conversation.messages.at(-1)).toMatchObject({ extra: { flag: 'interrupted' } });
    expect((await on.request('go on')).result).toEqual({ output: 'hello' });
    expect(lines(on.model.calls[1]?.messages ?? [])).toEqual([
      'user hi',
      'assistant [INTERRUPTED]\n\npar',
      'user go on',
    ]);
    expect(lines(on.session.conversation.messages)).toHaveLength(4);
  });

  it('S004-20: with partialReply discard there is no such message, and the user’s own is not lost', async () => {
    const on = await aborted('par', { partialReply: 'discard' });
    expect(lines(on.session.conversation.messages)).toEqual(['user hi']);
  });

  it.each(['keep', 'discard'])('S004-20: a blank part is none under %s', async (partialReply) => {
    const on = await aborted('  \n', { partialReply });
    expect(lines(on.session.conversation.messages)).toEqual(['user hi']);
  });

  it('a request that is aborted before it streams does not keep the text of an earlier request', async () => {
    const on = loopBench({ replies: ['hello', deaf()] });
    await on.request('hi');
    const stop = new AbortController();
    const asked = on.request('again', { signal: stop.signal });
    setImmediate(() => setImmediate(() => stop.abort()));
    await expect(asked).rejects.toThrow(UserAbortError);
    expect(lines(on.session.conversation.messages)).toEqual(['user hi', 'assistant hello', 'user again']);
  });

  it('6.2: leaves no call without a result, and no registered call open', async () => {
    const gate = gateTool();
    const on = loopBench({ replies: [[call('c1', 'gate')], 'hello'], tools: [gate.tool] });
    const stop = new AbortController();
    const asked = on.request('hi', { signal: stop.signal });
    await gate.begun('c1');
    stop.abort();
    await expect(asked).rejects.toThrow(UserAbortError);
    expect(on.session.runtime.toolRegistry.get('c1')).toMatchObject({ status: 'cancelled' });
    expect(lines(on.session.conversation.messages)[1]).toBe('assistant +c1');
    expect(on.session.conversation.messages).toHaveLength(3);
    await on.request('go on');
    expect(on.resolved).toEqual(['m', 'm']);
  });

  it('6.2: a call that had returned is completed, though no model received its result', async () => {
    const gate = gateTool();
    const on = loopBench({ replies: [[call('c1', 'gate'), call('c2', 'gate')]], tools: [gate.tool] });
    const stop = new AbortController();
    const asked = processRequest('hi', 'm', on.state, { signal: stop.signal });
    await gate.begun('c2');
    gate.release('c1');
    await flush();
    stop.abort();
    await expect(asked).rejects.toThrow(UserAbortError);
    expect(on.session.runtime.toolRegistry.list().map(({ status }) => status)).toEqual(['completed', 'cancelled']);
  });

  it('6.2: a request that is aborted while it begins calls no model, and its message is kept', async () => {
    const on = loopBench({ replies: ['never'] });
    const stop = new AbortController();
    const asked = on.request('hi', { signal: stop.signal });
    stop.abort();
    await expect(asked).rejects.toThrow(UserAbortError);
    expect([on.model.calls, lines(on.session.conversation.messages)]).toEqual([[], ['user hi']]);
  });

  it('6.2: a request with a signal that is aborted already changes nothing', async () => {
    const on = loopBench({ replies: ['hello'] });
    await expect(on.request('hi', { signal: AbortSignal.abort() })).rejects.toThrow(UserAbortError);
    expect([on.session.conversation.messages, on.session.runtime.requestId, on.model.calls]).toEqual([[], '', []]);
  });

  it('6.2: a callback may abort too, and the next request gets another agent', async () => {
    const on = loopBench({ replies: [[t('a')], 'hello'] });
    const streamingCallback = (): never => {
      throw new UserAbortError('enough');
    };
    await expect(on.request('hi', { streamingCallback })).rejects.toThrow('enough');
    await on.request('again');
    expect(on.resolved).toEqual(['m', 'm']);
  });

  it('a listener that never answers does not hold an aborted request', async () => {
    const on = loopBench({ replies: ['hello'] });
    const stop = new AbortController();
    const asked = on.request('hi', {
      signal: stop.signal,
      streamingCallback: () => new Promise(() => void setImmediate(() => stop.abort())),
    });
    await expect(asked).rejects.toThrow(UserAbortError);
  });
});

describe('the global time-out', () => {
  it('S004-28: ends a hanging request by an error that carries the value, with the clean-up of an abort; the next one works', async () => {
    const on = loopBench({ replies: [partly('par'), 'hello'], settings: { globalRequestTimeoutSeconds: 0.05 } });
    const asked = processRequest('hi', 'm', on.state);
    expect(await on.clock.until(asked, 1_000)).toBe(50);
    await expect(asked).rejects.toThrow(expect.objectContaining({ timeoutSeconds: 0.05, code: 'request_timeout' }));
    await expect(asked).rejects.toThrow(GlobalRequestTimeoutError);
    expect(lines(on.session.conversation.messages)).toEqual(['user hi', 'assistant [INTERRUPTED]\n\npar']);
    expect((await on.request('again')).result).toEqual({ output: 'hello' });
    expect(on.resolved).toEqual(['m', 'm']);
    expect(on.clock.waiting).toBe(0);
  });

  it.each([undefined, 0])('S004-28: %s is no limit', async (globalRequestTimeoutSeconds) => {
    const settings = globalRequestTimeoutSeconds === undefined ? {} : { globalRequestTimeoutSeconds };
    const gate = gateTool('gate', { timeoutMs: 10_000_000 });
    const on = loopBench({ replies: [[call('c1', 'gate')], 'done'], tools: [gate.tool], settings });
    const asked = processRequest('hi', 'm', on.state);
    await gate.begun('c1');
    await on.clock.advance(9_000_000);
    gate.release('c1');
    expect((await asked).result).toEqual({ output: 'done' });
  });

  it('S004-28: a negative one is a configuration error, at once and where it is changed later', async () => {
    const settings = { globalRequestTimeoutSeconds: -1 };
    const make = () => createStateManager({ resolveModel: () => undefined as never, tools: [], settings });
    expect(make).toThrow(ConfigurationError);
    expect(make).toThrow('settings.globalRequestTimeoutSeconds');
    const on = loopBench({ replies: ['hello'] });
    on.state.settings.globalRequestTimeoutSeconds = -1;
    await expect(on.request('hi')).rejects.toThrow('settings.globalRequestTimeoutSeconds');
  });
});

describe('LOOP-11: agents', () => {
  it('the same model under the same version of the settings is served by the same agent', async () => {
    const on = loopBench({ replies: ['a', 'b', 'c'] });
    await on.request('one');
    on.state.settings.requestDelayMs = 0;
    await on.request('two');
    expect(on.resolved).toEqual(['m']);
    await processRequest('three', 'other', on.state);
    expect(on.resolved).toEqual(['m', 'other']);
  });

  it.each([
    ['maxRetries', 5],
    ['toolStrictValidation', true],
    ['requestDelayMs', 1],
    ['globalRequestTimeoutSeconds', 60],
    ['maxIterations', 5],
  ] as const)('another %s is another version', async (name, value) => {
    const on = loopBench({ replies: ['a', 'b'] });
    await on.request('one');
    Object.assign(on.state.settings, { [name]: value });
    await on.request('two');
    expect(on.resolved).toEqual(['m', 'm']);
  });

  it('an agent that is replaced serves its last request to the end', async () => {
    const gate = gateTool();
    const on = loopBench({ replies: [[call('c1', 'gate')], 'second', 'first'], tools: [gate.tool] });
    const first = processRequest('one', 'm', on.state);
    await gate.begun('c1');
    on.state.settings.maxRetries = 5;
    expect((await processRequest('two', 'm', on.state)).result).toEqual({ output: 'second' });
    gate.release('c1');
    expect((await first).result).toEqual({ output: 'first' });
    expect(on.session.runtime.toolRegistry.get('c1')).toMatchObject({ status: 'completed' });
  });

  it('a replaced agent is closed when its last request ends, and so is a dropped agent', async () => {
    const on = loopBench();
    const cache = new AgentCache({ resolveModel: () => on.model, tools: [] });
    const first = cache.acquire('m', {});
    expect(cache.acquire('m', {})).toBe(first);
    const second = cache.acquire('m', { maxRetries: 5 });
    await cache.release(first);
    await (await first.agent.open()).close();
    await cache.release(first);
    await expect(first.agent.open()).rejects.toMatchObject({ code: 'closed' });
    cache.drop(second);
    await (await second.agent.open()).close();
    await cache.release(second);
    await expect(second.agent.open()).rejects.toMatchObject({ code: 'closed' });
    const third = cache.acquire('m', { maxRetries: 5 });
    expect(third).not.toBe(second);
    await cache.release(third);
    cache.acquire('m', {});
    await expect(third.agent.open()).rejects.toMatchObject({ code: 'closed' });
  });

  it.each(['succeeds', 'fails'])('a signal that fires after a request that %s has no listener', async (how) => {
    const on = loopBench({ replies: ['a', 'b'] });
    const controller = new AbortController();
    const { signal } = controller;
    const heard = new Set<unknown>();
    const listen = vi.spyOn(signal, 'addEventListener');
    const leave = vi.spyOn(signal, 'removeEventListener');
    const streamingCallback = (): void => {
      if (how === 'fails') throw new Error('cannot be shown');
    };
    await processRequest('one', 'm', on.state, { signal, streamingCallback }).catch(() => undefined);
    for (const [, listener] of listen.mock.calls) heard.add(listener);
    for (const [, listener] of leave.mock.calls) heard.delete(listener);
    expect([listen.mock.calls.length > 0, heard.size]).toEqual([true, 0]);
    controller.abort();
    expect((await on.request('two')).result).toEqual({ output: 'b' });
    expect(on.resolved).toEqual(['m']);
  });

  it('holds no log of a request that is over', async () => {
    const on = loopBench({ replies: ['hello'] });
    const serving = new AgentCache({ resolveModel: () => on.model, tools: [] }).acquire('m', {});
    const follower = { take: () => undefined, quiet: () => undefined };
    const run = new LoopRun({ serving, setTimer: on.clock.setTimer, callbacks: {}, follower });
    const { entries } = await run.run({ id: 'c', message: 'hi', history: [], timeoutSeconds: 0 });
    expect(entries.at(-1)).toMatchObject({ type: 'checkpoint', boundary: 'RunFinished' });
    expect(await serving.store.list()).toEqual([]);
  });

  it('close() ends what is under way, on agents that were replaced too', async () => {
    const gate = gateTool();
    const on = loopBench({ replies: [[call('c1', 'gate')], [call('c2', 'gate')]], tools: [gate.tool] });
    const first = processRequest('one', 'm', on.state);
    await gate.begun('c1');
    on.state.settings.maxRetries = 5;
    const second = processRequest('two', 'm', on.state);
    await gate.begun('c2');
    const cancelled = { code: 'run', result: { termination: 'Cancelled' } };
    const ended = [first, second].map((asked) => expect(asked).rejects.toMatchObject(cancelled));
    await Promise.all([...ended, on.state.close()]);
  });
});

describe('settings', () => {
  it('requestDelayMs passes before each call of the model', async () => {
    const times: number[] = [];
    const on = loopBench({
      replies: [
        during(() => times.push(on.clock.now()), [call('c1', 'echo', { m: '' })]),
        during(() => times.push(on.clock.now()), 'done'),
      ],
      tools: [echoTool().tool],
      settings: { requestDelayMs: 300 },
    });
    await on.request('hi');
    expect(times).toEqual([1_000_300, 1_000_600]);
  });

  it('a long delay is no silence of the model', async () => {
    const on = loopBench({ replies: ['hello'], settings: { requestDelayMs: 90_000 } });
    expect((await on.request('hi')).result).toEqual({ output: 'hello' });
    expect(on.model.attempts).toEqual([1]);
  });

  it('a cancelled delay ends with its request', async () => {
    const on = loopBench({ replies: ['never'], settings: { requestDelayMs: 10_000 } });
    const stop = new AbortController();
    const asked = processRequest('hi', 'm', on.state, { signal: stop.signal });
    await flush();
    stop.abort();
    await expect(asked).rejects.toThrow(UserAbortError);
    expect([on.model.calls.length, on.clock.waiting]).toEqual([0, 0]);
  });

  it('toolStrictValidation refuses arguments that the tool’s schema does not name', async () => {
    const replies = () => [[call('c1', 'echo', { m: 'a', stray: 1 })], 'done'];
    const loose = loopBench({ replies: replies(), tools: [echoTool().tool] });
    await loose.request('hi');
    expect(loose.events[1]).toMatch(/^completed echo/);
    const strict = loopBench({
      replies: replies(),
      tools: [echoTool().tool],
      settings: { toolStrictValidation: true },
    });
    await strict.request('hi');
    expect(strict.events.filter((line) => !line.startsWith('delta'))).toEqual([
      expect.stringMatching(/^failed echo .*stray: is no argument of this tool/s),
    ]);
  });

  it.each([
    [{ maxIterations: 0 }, 'settings.maxIterations'],
    [{ maxRetry: 1 }, 'settings.maxRetry is unknown'],
  ])('%j is refused at start', (settings, words) => {
    expect(() =>
      createStateManager({ resolveModel: () => undefined as never, tools: [], settings: settings as object }),
    ).toThrow(words);
  });

  it('a call that needs approval ends the request without an answer, since nobody can be asked', async () => {
    const on = loopBench({
      replies: [[call('c1', 'echo', { m: 'a' })], 'again'],
      tools: [echoTool('echo', { needsApproval: true }).tool],
    });
    const run = await on.request('hi');
    expect([run.result, run.responseState]).toEqual([null, { state: 'ASSISTANT', taskCompleted: false }]);
    expect(on.session.runtime.toolRegistry.get('c1')).toMatchObject({ status: 'cancelled' });
    expect((await on.request('go on')).result).toEqual({ output: 'again' });
  });
});
