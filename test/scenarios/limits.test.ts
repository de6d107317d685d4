/** Each limit ends a run with its own cause, on every path (docs/internals/lifecycle.md, Terminations). */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  ConfigurationError,
  createAgent,
  type Decision,
  defineTool,
  LimitError,
  type ModelPart,
} from '../../src/index.ts';
import { type Bench, type BenchOptions, bench, entry, only, resultText, storeWith } from '../support/agentBench.ts';
import { asks, boom, echoTool, gateTool } from '../support/scenarioTools.ts';
import { call, deaf, finish, type Reply, scripted, t } from '../support/scriptedReplies.ts';
import { troubledStore } from '../support/troubledStore.ts';
import { VirtualClock } from '../support/virtualClock.ts';

/** Accepts anything, and returns the same. */
const quiet = defineTool({
  name: 'quiet',
  description: 'Says ok.',
  parameters: z.object({ m: z.string() }),
  execute: () => 'ok',
});
const prices = { input: 1, output: 1 };
/** A reply with one call that costs `tokens` in and out. */
const calls = (callId: string, tokens = 0, m = callId): ModelPart[] => [
  call(callId, 'echo', { m }),
  finish('tool-calls', tokens),
];
const many = (count: number, reply: (index: number) => Reply): Reply[] =>
  Array.from({ length: count }, (_, index) => reply(index + 1));

describe('turns, money, tokens', () => {
  it('TRC-5 S002-16: at most limits.turns model calls in a cycle', async () => {
    const on = await bench({
      replies: many(10, (n) => calls(`c${n}`)),
      tools: [echoTool().tool],
      policies: { limits: { turns: 3 } },
    });
    const result = await on.conversation.send('hi').result;
    expect(result).toMatchObject({ termination: 'Stopped', cause: 'max_turns', turns: 3, subtype: 'error_max_turns' });
    expect(result.reason).toBe('error');
    expect(on.model.calls).toHaveLength(3);
    expect(result.calls).toHaveLength(3);
  });

  it('a new request starts at zero turns, and a resumed one continues its count', async () => {
    const ask = echoTool('ask');
    const decision: Decision = { callId: 'c1', action: 'approve' };
    const on = await bench({
      replies: ['one', [call('c1', 'ask', { m: 'a' })], calls('c2'), 'never'],
      tools: [ask.tool, echoTool().tool],
      plugins: [asks().plugin],
      policies: { limits: { turns: 2 } },
    });
    expect((await on.conversation.send('first').result).termination).toBe('NaturalEnd');
    expect((await on.conversation.send('second').result).termination).toBe('Suspended');
    await on.conversation.decide(decision);
    const resumed = await on.conversation.resume().result;
    expect(resumed).toMatchObject({ termination: 'Stopped', cause: 'max_turns', turns: 1 });
    expect(on.model.calls).toHaveLength(3);
  });

  it('TRC-5 S002-17: a spent budget stops before the next model call, and never interrupts a reply that ends the run', async () => {
    const model = (replies: readonly Reply[]) => scripted(replies, { prices });
    const options = { tools: [echoTool().tool], policies: { limits: { costUsd: 0.000001 } } };
    const spent = await bench({ ...options, model: model([calls('c1', 10), 'never']) });
    const stopped = await spent.conversation.send('hi').result;
    expect(stopped).toMatchObject({
      termination: 'Stopped',
      cause: 'max_budget',
      subtype: 'error_max_budget_usd',
      turns: 1,
    });
    expect(stopped.costUsd).toBeCloseTo(0.00002, 10);
    expect(spent.model.calls).toHaveLength(1);
    const ended = await bench({ ...options, model: model([[t('done'), finish('stop', 10)]]) });
    expect(await ended.conversation.send('hi').result).toMatchObject({ termination: 'NaturalEnd', text: 'done' });
    const next = await ended.conversation.send('more').result;
    expect(next).toMatchObject({ termination: 'Stopped', cause: 'max_budget', turns: 0 });
  });

  it('a budget on a model without prices is refused at the start', () => {
    const options = { model: scripted([]), policies: { limits: { costUsd: 1 } } };
    expect(() => createAgent(options)).toThrow(ConfigurationError);
  });

  it('tokens are counted over the conversation', async () => {
    const on = await bench({
      replies: [calls('c1', 30), calls('c2', 30), 'never'],
      tools: [echoTool().tool],
      policies: { limits: { tokens: 100 } },
    });
    const result = await on.conversation.send('hi').result;
    expect(result).toMatchObject({ termination: 'Stopped', cause: 'max_total_tokens', turns: 2 });
    expect(result.usage).toMatchObject({ inputTokens: 60, outputTokens: 60 });
  });
});

describe('empty and repeated', () => {
  const nothing: ModelPart[] = [finish('stop')];

  it('H-034: three empty replies in a row end the run; the model is informed of each except the last', async () => {
    const on = await bench({ replies: many(5, () => nothing) });
    const result = await on.conversation.send('hi').result;
    expect(result).toMatchObject({ termination: 'Stopped', cause: 'empty_replies', turns: 3, reason: 'error' });
    expect(on.model.calls).toHaveLength(3);
    expect(on.model.calls[2]?.messages.at(-1)).toMatchObject({
      role: 'user',
      content: [{ text: expect.stringContaining('empty') }],
    });
  });

  it('H-030: a reply that announces tool calls and has none is empty; a reply with text in between resets the count', async () => {
    const on = await bench({
      replies: [[finish('tool-calls')], nothing, calls('c1'), nothing, nothing, 'at last'],
      tools: [echoTool().tool],
    });
    expect(await on.conversation.send('hi').result).toMatchObject({
      termination: 'NaturalEnd',
      text: 'at last',
      turns: 6,
    });
  });

  it('S002-20: a reply with text that announces tool calls and has none is final', async () => {
    const on = await bench({ replies: [[t('done'), finish('tool-calls')]] });
    expect(await on.conversation.send('hi').result).toMatchObject({ termination: 'NaturalEnd', text: 'done' });
  });

  it('onEmptyReply accept ends the run with empty text, and retry asks again without a notice', async () => {
    const accepted = await bench({ replies: [nothing], policies: { onEmptyReply: 'accept' } });
    expect(await accepted.conversation.send('hi').result).toMatchObject({ termination: 'NaturalEnd', text: '' });
    const retried = await bench({ replies: [nothing, 'ok'], policies: { onEmptyReply: 'retry' } });
    expect((await retried.conversation.send('hi').result).text).toBe('ok');
    expect(only(retried.conversation.log(), 'continuation', 'notice')).toEqual([]);
  });

  it('INV-2: a reply of blanks alone is not sent to the model again', async () => {
    const on = await bench({ replies: [' \n', 'ok'], policies: { onEmptyReply: 'retry' } });
    expect((await on.conversation.send('hi').result).text).toBe('ok');
    expect(on.model.calls[1]?.messages.map(({ role }) => role)).toEqual(['user']);
  });

  it('H-036: eight rounds in a row with the same call and the same result end the run', async () => {
    const on = await bench({ replies: many(20, (n) => calls(`c${n}`, 0, 'same')), tools: [echoTool().tool] });
    const result = await on.conversation.send('hi').result;
    expect(result).toMatchObject({ termination: 'Stopped', cause: 'no_progress', turns: 8 });
  });

  it('H-036: a new request counts identical calls from zero', async () => {
    const replies = [calls('c1', 0, 'same'), 'one', calls('c2', 0, 'same'), 'two'];
    const on = await bench({ replies, tools: [echoTool().tool], policies: { limits: { identicalCalls: 2 } } });
    expect(await on.conversation.send('first').result).toMatchObject({ termination: 'NaturalEnd', text: 'one' });
    expect(await on.conversation.send('second').result).toMatchObject({ termination: 'NaturalEnd', text: 'two' });
  });

  it('H-036: a call that repeatedly fails the same way counts too', async () => {
    const on = await bench({ replies: many(20, (n) => [call(`c${n}`, 'boom')]), tools: [boom] });
    expect(await on.conversation.send('hi').result).toMatchObject({ cause: 'no_progress', turns: 8 });
  });

  it('H-036: different arguments are different calls, whatever their results', async () => {
    const on = await bench({
      replies: [...many(10, (n) => [call(`c${n}`, 'quiet', { m: `${n}` })]), 'done'],
      tools: [quiet],
    });
    expect(await on.conversation.send('hi').result).toMatchObject({ termination: 'NaturalEnd', turns: 11 });
  });
});

describe('time', () => {
  it('runMs: a run that takes longer ends as Cancelled, cause timeout, which is an error', async () => {
    const on = await bench({ replies: [deaf()], policies: { limits: { runMs: 5000 } } });
    const run = on.conversation.send('hi');
    expect(await on.clock.until(run.result, 10_000)).toBe(5000);
    const result = await run.result;
    expect(result).toMatchObject({ termination: 'Cancelled', cause: 'timeout', reason: 'error' });
    expect(result.subtype).toBe('error_during_execution');
    expect(on.model.signals[0]?.aborted).toBe(true);
    expect(on.clock.waiting).toBe(0);
    expect(only(on.conversation.log(), 'run-stop')).toEqual(['run-stop error timeout']);
  });

  it('runMs: a resumed run continues its count, and the wait for a person does not count', async () => {
    const on = await bench({
      replies: [[call('c1', 'gate'), call('c2', 'ask', { m: 'a' })], deaf()],
      tools: [gateTool('gate', { timeoutMs: 3000 }).tool, echoTool('ask').tool],
      plugins: [asks().plugin],
      policies: { onPartialSuspend: 'wait', limits: { runMs: 5000 } },
    });
    const first = on.conversation.send('hi');
    expect(await on.clock.until(first.result, 10_000)).toBe(3000);
    expect((await first.result).termination).toBe('Suspended');
    await on.clock.advance(1_000_000);
    expect(on.conversation.status).toBe('waiting');
    await on.conversation.decide({ callId: 'c2', action: 'approve' });
    const second = on.conversation.resume();
    expect(await on.clock.until(second.result, 10_000)).toBe(2000);
    expect(await second.result).toMatchObject({ termination: 'Cancelled', cause: 'timeout' });
  });

  it('runMs: a run that is resumed after its time is spent ends before a model call', async () => {
    const on = await bench({ replies: [deaf(), 'an answer at once'], policies: { limits: { runMs: 5000 } } });
    await on.clock.until(on.conversation.send('hi').result, 10_000);
    const result = await on.conversation.resume().result;
    expect(result).toMatchObject({ termination: 'Cancelled', cause: 'timeout', reason: 'error' });
    expect(on.model.calls).toHaveLength(1);
    expect(on.conversation.status).toBe('idle');
  });

  describe('runMs over a crash', () => {
    const hour = 3_600_000;
    const day = 24 * hour;
    const PATIENT = { firstPartMs: 9 * day, idleMs: 9 * day };
    /** A process works for an hour, ends by `cut`, and three days later another one opens the log and resumes. */
    async function later(runMs: number, cut: (on: Bench) => Promise<unknown> | unknown = () => undefined) {
      const gate = gateTool();
      const policies = { limits: { runMs, toolMs: day }, modelTimeout: PATIENT };
      const options = { tools: [gate.tool], policies };
      const on = await bench({ ...options, replies: [[call('c1', 'gate'), call('c2', 'gate')]] });
      on.conversation.send('hi');
      await gate.begun('c2');
      await on.clock.advance(hour);
      gate.release('c1');
      await entry(on.conversation, 'tool-result');
      await on.clock.advance(hour);
      await cut(on);
      const store = await storeWith(on.conversation.log());
      const { clock } = on;
      await clock.advance(3 * day);
      const replies = [deaf()];
      const next = await bench({ ...options, clock: new VirtualClock(clock.now()), replies, store });
      return { ...next, run: next.conversation.resume() };
    }

    it('after an hour of work, a crash and three days, all but the hour remains', async () => {
      const { clock, run } = await later(3 * hour);
      expect(await clock.until(run.result, 10 * day)).toBe(2 * hour);
      expect(await run.result).toMatchObject({ termination: 'Cancelled', cause: 'timeout' });
    });

    it('a log that was repaired and then not continued has the same count', async () => {
      const { clock, store, agent } = await later(3 * hour);
      await agent.close();
      const log = (await bench({ store })).conversation.log();
      const cut = log.slice(
        0,
        log.findIndex(({ type }) => type === 'run-resumed'),
      );
      const policies = { limits: { runMs: 3 * hour }, modelTimeout: PATIENT };
      const options = { clock: new VirtualClock(clock.now() + 9 * day), replies: [deaf()], policies };
      const next = await bench({ ...options, store: await storeWith(cut) });
      expect(await next.clock.until(next.conversation.resume().result, 10 * day)).toBe(2 * hour);
    });

    it('a cancelled run counts until its end', async () => {
      const { clock, run } = await later(3 * hour, ({ conversation }) => conversation.cancel());
      expect(await clock.until(run.result, 10 * day)).toBe(hour);
    });
  });

  it('runMs: the time that a plugin takes at the start of a run counts after a crash', async () => {
    const clock = new VirtualClock();
    const slow = { name: 'slow', runStart: () => new Promise<void>((resolve) => void clock.setTimer(2000, resolve)) };
    const policies = { limits: { runMs: 5000 } };
    const on = await bench({ replies: [deaf()], clock, plugins: [slow], policies });
    on.conversation.send('hi');
    await clock.advance(2000);
    expect(on.model.calls).toHaveLength(1);
    const next = await bench({ replies: [deaf()], clock, policies, store: await storeWith(on.conversation.log()) });
    expect(await clock.until(next.conversation.resume().result, 10_000)).toBe(3000);
  });

  it('runMs: the time until a waiting cycle is cancelled does not count', async () => {
    const on = await bench({
      replies: [[call('c1', 'ask', { m: 'a' })], deaf()],
      tools: [echoTool('ask').tool],
      plugins: [asks().plugin],
      policies: { limits: { runMs: 5000 } },
    });
    await on.conversation.send('hi').result;
    await on.clock.advance(1_000_000);
    await on.conversation.cancel();
    expect(await on.clock.until(on.conversation.resume().result, 10_000)).toBe(5000);
  });

  it('runMs: the time until a lost end is written does not count', async () => {
    const store = troubledStore();
    const on = await bench({ replies: ['one', deaf()], store, policies: { limits: { runMs: 5000 } } });
    store.trouble((entries) => (entries.some(({ type }) => type === 'run-stop') ? 'failed' : 'stored'));
    expect((await on.conversation.send('hi').result).cause).toBe('store');
    store.trouble(() => 'stored');
    await on.clock.advance(1_000_000);
    const run = on.conversation.resume();
    expect(await on.clock.until(run.result, 10_000)).toBe(5000);
  });

  it('runMs: a run that ends in time leaves no timer', async () => {
    const on = await bench({ replies: ['ok'], policies: { limits: { runMs: 5000 } } });
    await on.conversation.send('hi').result;
    expect(on.clock.waiting).toBe(0);
  });

  it('H-071: a tool that never settles is abandoned after toolMs, its late result is one diagnostic, and the run continues', async () => {
    const gate = gateTool();
    const on = await bench({
      replies: [[call('c1', 'gate')], 'went on'],
      tools: [gate.tool],
      policies: { limits: { toolMs: 700 } },
    });
    const run = on.conversation.send('hi');
    expect(await on.clock.until(run.result)).toBe(700);
    expect((await run.result).text).toBe('went on');
    expect(gate.context('c1').signal.aborted).toBe(true);
    const late = entry(on.conversation, 'diagnostic');
    gate.release('c1');
    expect((await late).code).toBe('late_result');
    expect(only(on.conversation.log(), 'tool-result')).toEqual(['tool-result c1 failed timeout']);
  });
});

describe('decisions', () => {
  /** Waiting calls with at most two held decisions. */
  async function waiting(ids: readonly string[], more: BenchOptions = {}) {
    const ask = echoTool('ask');
    const policies = { limits: { decisions: 2 } };
    const options = { tools: [ask.tool], plugins: [asks().plugin], policies };
    const on = await bench({ replies: [ids.map((id) => call(id, 'ask', { m: 'a' })), 'done'], ...options, ...more });
    await on.conversation.send('hi').result;
    return { ...on, options, ran: ask.ran };
  }
  const approve = (callId: string): Decision => ({ callId, action: 'approve' });

  it('limits.decisions bounds the held decisions of the whole conversation: one more is a LimitError, and changes nothing', async () => {
    const { conversation } = await waiting(['c1', 'c2', 'c3']);
    expect(await conversation.decide(approve('c1'))).toBe('applied');
    expect(await conversation.decide(approve('c2'))).toBe('applied');
    const before = conversation.log();
    await expect(conversation.decide(approve('c3'))).rejects.toThrow(LimitError);
    expect(conversation.log()).toEqual(before);
    expect(await conversation.decide(approve('c1'))).toBe('duplicate');
  });

  it('decisions that came before the suspension of their call count too', async () => {
    const gate = gateTool();
    const policies = { limits: { decisions: 1 } };
    const replies = [[call('c1', 'gate'), call('c2', 'gate')], 'done'];
    const { conversation } = await bench({ replies, tools: [gate.tool], policies });
    conversation.send('hi');
    await entry(conversation, 'tool-started', ({ callId }) => callId === 'c2');
    expect(await conversation.decide(approve('c1'))).toBe('held');
    await expect(conversation.decide(approve('c2'))).rejects.toThrow(LimitError);
  });

  it('a decision that its call has used is no longer held', async () => {
    const { conversation, ran } = await waiting(['c1', 'c2', 'c3', 'c4']);
    for (const callId of ['c1', 'c2']) await conversation.decide(approve(callId));
    await conversation.resume().result;
    expect(ran).toEqual(['c1', 'c2']);
    for (const callId of ['c3', 'c4']) expect(await conversation.decide(approve(callId))).toBe('applied');
  });

  it('the next process counts held decisions from the log', async () => {
    const on = await waiting(['c1', 'c2', 'c3']);
    for (const callId of ['c1', 'c2']) await on.conversation.decide(approve(callId));
    const { conversation } = await bench({ ...on.options, store: await storeWith(on.conversation.log()) });
    await expect(conversation.decide(approve('c3'))).rejects.toThrow(LimitError);
  });

  it('decisions of cancelled calls are no longer held', async () => {
    const { conversation } = await waiting(['c1', 'c2', 'c3']);
    for (const callId of ['c1', 'c2']) await conversation.decide(approve(callId));
    await conversation.cancel();
    const ids = ['d1', 'd2'];
    const log = await storeWith(conversation.log());
    const next = await waiting(ids, { store: log });
    for (const callId of ids) expect(await next.conversation.decide(approve(callId))).toBe('applied');
  });

  it('decisions that a slow store has not stored yet count too', async () => {
    const store = troubledStore();
    const { conversation } = await waiting(['c1', 'c2', 'c3'], { store });
    const answers = ['c1', 'c2', 'c3'].map((callId) => conversation.decide(approve(callId)));
    const settledAnswers = await Promise.allSettled(answers);
    expect(settledAnswers.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected']);
  });
});

describe('calls', () => {
  it('suspensionsPerCall: a call that suspends once too often fails with suspend_limit', async () => {
    const on: Bench = await bench({
      replies: [[call('c1', 'ask', { m: 'a' })], 'done'],
      tools: [echoTool('ask').tool],
      plugins: [{ name: 'never satisfied', beforeToolExecute: () => ({ suspend: { reason: 'again' } }) }],
      policies: { limits: { suspensionsPerCall: 2 } },
    });
    await on.conversation.send('hi').result;
    for (const suspension of [1, 2]) {
      expect(await on.conversation.decide({ callId: 'c1', suspension, action: 'approve' })).toBe('applied');
      await on.conversation.resume().result;
    }
    expect(only(on.conversation.log(), 'tool-suspended', 'tool-result')).toEqual([
      'tool-suspended c1 1',
      'tool-suspended c1 2',
      'tool-result c1 failed suspend_limit',
    ]);
  });

  it('toolCallsPerTurn: excess calls are not run, and their results contain the reason', async () => {
    const echo = echoTool();
    const on = await bench({
      replies: [[call('c1', 'echo', { m: 'a' }), call('c2', 'echo', { m: 'a' })], 'x'],
      tools: [echo.tool],
      policies: { limits: { toolCallsPerTurn: 1 } },
    });
    await on.conversation.send('hi').result;
    expect(echo.ran).toEqual(['c1']);
    expect(only(on.conversation.log(), 'tool-result')).toContain('tool-result c2 failed too_many_calls');
    expect(resultText(on.conversation.log(), 'c2')).toContain('Only 1 calls a reply are run.');
  });
});

describe('the end of a reply', () => {
  it('a reply with text and no call that is cut by length is kept, and the run is Stopped, max_tokens', async () => {
    const on = await bench({ replies: [[t('half a sen'), finish('length')]] });
    const result = await on.conversation.send('hi').result;
    expect(result).toMatchObject({ termination: 'Stopped', cause: 'max_tokens', text: 'half a sen', reason: 'error' });
  });

  it('a steer that waits during a reply cut by length stays queued for the next run', async () => {
    const on: Bench = await bench({
      replies: [
        async function* () {
          on.conversation.steer('S');
          yield t('half');
          yield finish('length');
        },
        'ok',
      ],
    });
    expect((await on.conversation.send('hi').result).cause).toBe('max_tokens');
    expect(on.conversation.queue.map(({ kind }) => kind)).toEqual(['steer']);
  });

  it('H-032: a call that is cut by length is not run, and its result contains the reason; a complete call of the same reply runs', async () => {
    const echo = echoTool();
    const replies = [[call('c1', 'echo', { m: 'a' }), call('c2', 'echo', '{"m": "par'), finish('length')], 'x'];
    const on = await bench({ replies, tools: [echo.tool] });
    expect((await on.conversation.send('hi').result).termination).toBe('NaturalEnd');
    expect(echo.ran).toEqual(['c1']);
    expect(only(on.conversation.log(), 'tool-result')).toContain('tool-result c2 failed truncated');
    expect(resultText(on.conversation.log(), 'c2')).toContain('not run');
  });

  it('H-032: a call that is cut before its arguments is not run with empty ones', async () => {
    let ran = 0;
    const parameters = z.object({ all: z.boolean().optional() });
    const clear = defineTool({ name: 'clear', description: 'Clears.', parameters, execute: () => `${ran++}` });
    const on = await bench({ replies: [[call('c1', 'clear', ''), finish('length')], 'x'], tools: [clear] });
    await on.conversation.send('hi').result;
    expect(ran).toBe(0);
    expect(only(on.conversation.log(), 'tool-result')).toEqual(['tool-result c1 failed truncated']);
  });

  it('BED-3: a pause commits the reply and calls the model again', async () => {
    const on = await bench({ replies: [[t('one moment'), finish('pause')], 'done'] });
    const result = await on.conversation.send('hi').result;
    expect(result).toMatchObject({ termination: 'NaturalEnd', text: 'done', turns: 2 });
    expect(only(on.conversation.log(), 'agent-output', 'continuation')).toEqual([
      'agent-output one moment',
      'continuation pause',
      'agent-output done',
    ]);
  });

  it('a content filter ends the run at once with an error', async () => {
    const on = await bench({ replies: [[t('I can'), finish('content-filter')], 'never'] });
    const result = await on.conversation.send('hi').result;
    expect(result).toMatchObject({ termination: 'Error', cause: 'model', error: { code: 'content-filter' } });
    expect(on.model.calls).toHaveLength(1);
  });
});
