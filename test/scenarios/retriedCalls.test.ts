/**
 * A call of an ended cycle runs again when its host requests it, without a model call (docs/internals/lifecycle.md,
 * Decision Replay).
 */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { defineTool, ModelError, type Plugin, type Receipt } from '../../src/index.ts';
import { type Bench, type BenchOptions, bench, entry, only, storeWith, story } from '../support/agentBench.ts';
import { recorder } from '../support/scenarioTools.ts';
import { call, lines } from '../support/scriptedReplies.ts';

/** A tool that hangs in its first process, and later as often as the test requires; records its idempotency keys. */
function payTool(hangs = 1) {
  const keys: string[] = [];
  const tool = defineTool({
    name: 'pay',
    description: 'Pays.',
    parameters: z.object({}),
    execute(_, { idempotencyKey }) {
      keys.push(idempotencyKey);
      return keys.length <= hangs ? new Promise(() => undefined) : 'paid';
    },
  });
  return { tool, keys };
}

/**
 * A crash interrupted c1. The next request, or a resume of its own run, has ended since. Then the host requests a
 * retry.
 */
async function retried(how: 'another request' | 'its own', more: BenchOptions = {}, hangs = 1) {
  const { tool, keys } = payTool(hangs);
  const before = await bench({ ...more, replies: [[call('c1', 'pay')]], tools: [tool] });
  before.conversation.send('hi');
  await entry(before.conversation, 'tool-started');
  const store = await storeWith(before.conversation.log());
  const on = await bench({ ...more, replies: ['done', 'next'], tools: [tool], store });
  const { conversation } = on;
  const run = how === 'its own' ? conversation.resume() : conversation.send('something else');
  expect((await run.result).termination).toBe('NaturalEnd');
  expect(await conversation.settle('c1', { retry: true })).toBe('applied');
  return { ...on, options: { ...more, tools: [tool] }, keys, from: conversation.log().length };
}
const ways = ['another request', 'its own'] as const;

describe.each(ways)('a retry of a call whose cycle has ended (%s)', (how) => {
  it('the call runs with its key and its result is logged; no cycle reopens and no model is called', async () => {
    const { conversation, keys, model, from } = await retried(how);
    const before = conversation.view();
    const result = await conversation.resume().result;
    expect(result).toMatchObject({ termination: 'NaturalEnd', turns: 0, text: '' });
    expect(result.calls).toEqual([{ callId: 'c1', name: 'pay', outcome: 'succeeded' }]);
    expect(keys).toHaveLength(2);
    expect(new Set(keys).size).toBe(1);
    expect(model.calls).toHaveLength(1);
    expect(story(conversation.log(from))).toEqual([
      'tool-started c1',
      'tool-result c1 succeeded',
      'checkpoint ToolResultsCommitted',
    ]);
    const { cycles, state, diagnostics } = conversation.view();
    expect([state, diagnostics]).toEqual(['idle', []]);
    expect(cycles.map(({ stop }) => stop)).toEqual(before.cycles.map(({ stop }) => stop));
    expect(cycles[0]?.rounds[0]?.output.calls[0]?.result).toMatchObject({ outcome: 'succeeded' });
    expect(conversation.status).toBe('idle');
    expect(conversation.unsettled).toEqual([]);
  });

  it('the retry is done once: then there is nothing to resume, in this process or the next', async () => {
    const { conversation, keys, options } = await retried(how);
    await conversation.resume().result;
    const log = conversation.log();
    for (const on of [conversation, (await bench({ ...options, store: await storeWith(log) })).conversation]) {
      expect(await on.resume().result).toMatchObject({ termination: 'NaturalEnd', turns: 0 });
      expect(on.log()).toEqual(log);
      expect(on.view()).toEqual(conversation.view());
    }
    expect(keys).toHaveLength(2);
  });

  it('the next process does the retry if the first did not reach it', async () => {
    const { conversation, keys, options } = await retried(how);
    const on = await bench({ ...options, store: await storeWith(conversation.log()) });
    expect((await on.conversation.resume().result).calls).toHaveLength(1);
    expect(new Set(keys).size).toBe(1);
    expect(keys).toHaveLength(2);
    expect(on.model.calls).toHaveLength(0);
  });

  it('a retry that a crash interrupts is unknown again', async () => {
    const { conversation, options } = await retried(how, {}, 2);
    conversation.resume();
    await entry(conversation, 'tool-started', ({ seq }) => seq > 12);
    const on = await bench({ ...options, store: await storeWith(conversation.log()) });
    expect(on.conversation.unsettled.map(({ callId }) => callId)).toEqual(['c1']);
    expect(only(on.conversation.log(conversation.log().length), 'tool-result', 'run-stop')).toEqual([
      'tool-result c1 unknown',
    ]);
  });

  it('a cancelled retry has one more result, and writes no stop', async () => {
    const { conversation, from } = await retried(how, {}, 2);
    const run = conversation.resume();
    await entry(conversation, 'tool-started', ({ seq }) => seq >= from);
    expect(conversation.status).toBe('active');
    await run.cancel();
    expect((await run.result).termination).toBe('Cancelled');
    expect(only(conversation.log(from), 'tool-result', 'run-stop')).toEqual(['tool-result c1 cancelled cancelled']);
    expect(conversation.status).toBe('idle');
    expect((await conversation.send('on').result).text).toBe('next');
  });

  it('the model receives the result with the next request, and plugins take part in the call alone', async () => {
    const { plugin, phases } = recorder();
    const { conversation, model } = await retried(how, { plugins: [plugin] });
    phases.length = 0;
    await conversation.resume().result;
    expect(phases).toEqual(['BeforeToolExecute', 'AfterToolExecute']);
    expect((await conversation.send('and?').result).text).toBe('next');
    expect(lines(model.calls.at(-1)?.messages ?? []).filter((line) => line.includes('paid'))).toHaveLength(1);
  });

  it('a retry that waits for a person continues alone when it is decided', async () => {
    let asking = false;
    const plugin: Plugin = {
      name: 'later',
      beforeToolExecute: ({ decision }) => (asking && !decision ? { suspend: { reason: 'sure?' } } : undefined),
    };
    const { conversation, keys, model, from, options } = await retried(how, { plugins: [plugin] });
    asking = true;
    expect((await conversation.resume().result).termination).toBe('Suspended');
    expect(conversation.status).toBe('idle');
    expect(conversation.pending).toMatchObject([{ callId: 'c1', suspension: 1 }]);
    const on: Bench = await bench({ ...options, store: await storeWith(conversation.log()) });
    expect(on.conversation.pending).toEqual(conversation.pending);
    expect(await on.conversation.decide({ callId: 'c1', action: 'approve' })).toBe('applied');
    expect((await on.conversation.resume().result).termination).toBe('NaturalEnd');
    expect(keys).toHaveLength(2);
    expect(only(on.conversation.log(from), 'run-resumed', 'run-suspended', 'run-stop', 'tool-result')).toEqual([
      'tool-result c1 succeeded',
    ]);
    expect([...model.calls, ...on.model.calls]).toHaveLength(1);
  });

  it('after a retry that waited for a person, a message that arrived meanwhile starts its run', async () => {
    let asking = false;
    const plugin: Plugin = {
      name: 'later',
      beforeToolExecute() {
        if (!asking) return;
        conversation.followUp('meanwhile');
        return { suspend: { reason: 'sure?' } };
      },
    };
    const { conversation, from } = await retried(how, { plugins: [plugin] });
    asking = true;
    expect((await conversation.resume().result).termination).toBe('Suspended');
    await expect.poll(() => only(conversation.log(from), 'user-message', 'run-suspended')).toHaveLength(2);
    expect([conversation.queue, conversation.pending.length]).toEqual([[], 1]);
  });
});

it('a steer that arrives during a retry stays in the queue until a model call can deliver it', async () => {
  const steered: Receipt[] = [];
  const plugin: Plugin = {
    name: 'steers',
    async afterToolExecute() {
      steered.push(conversation.steer('and this'));
      await entry(conversation, 'message-queued');
      return undefined;
    },
  };
  const { conversation, model, from } = await retried('another request', { plugins: [plugin] });
  await conversation.resume().result;
  const [receipt] = steered;
  expect(only(conversation.log(from), 'user-message')).toEqual([]);
  expect(conversation.queue).toMatchObject([{ messageId: receipt?.messageId, kind: 'steer' }]);
  expect((await conversation.send('on').result).text).toBe('next');
  expect(await receipt?.delivered).toBe('delivered');
  expect(lines(model.calls.at(-1)?.messages ?? []).slice(-2)).toEqual(['user on', 'user and this']);
});

it('a retry of a call of an earlier cycle runs with the resume of the last one, if that was interrupted', async () => {
  const { tool, keys } = payTool();
  const before = await bench({ replies: [[call('c1', 'pay')]], tools: [tool] });
  before.conversation.send('hi');
  await entry(before.conversation, 'tool-started');
  const replies = [new ModelError({ code: 'auth' }), 'done'];
  const { conversation, model } = await bench({
    replies,
    tools: [tool],
    store: await storeWith(before.conversation.log()),
  });
  expect((await conversation.send('else').result).termination).toBe('Error');
  await conversation.settle('c1', { retry: true });
  expect((await conversation.resume().result).text).toBe('done');
  expect(keys).toHaveLength(2);
  expect(model.calls).toHaveLength(2);
  expect(only(conversation.log(), 'run-resumed')).toHaveLength(1);
});
