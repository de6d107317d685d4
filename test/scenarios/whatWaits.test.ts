/**
 * Waiting calls and messages after a store lost the end of a run (docs/internals/lifecycle.md, Checkpoint Triggers).
 * The next run starts with the calls, decisions and messages of the log, whatever the charts did in the meantime.
 */
import { describe, expect, it } from 'vitest';
import type { LogEntry } from '../../src/index.ts';
import { bench, only, storeWith } from '../support/agentBench.ts';
import { restFaults } from '../support/logRules.ts';
import { asks, echoTool, gateTool } from '../support/scenarioTools.ts';
import { call, lines, t } from '../support/scriptedReplies.ts';
import { troubledStore } from '../support/troubledStore.ts';
import { VirtualClock } from '../support/virtualClock.ts';

const args = { m: 'a' };
const has = (entries: readonly LogEntry[], ...types: LogEntry['type'][]): boolean =>
  entries.some(({ type }) => types.includes(type));

/** A conversation with the call `c1`, which waits for a person, on a store that can reject appends. */
async function waiting(policies: object = {}, reply = [call('c1', 'ask', args)]) {
  const clock = new VirtualClock();
  const store = troubledStore({ clock });
  const ask = echoTool('ask');
  const options = { clock, store, tools: [ask.tool, gateTool().tool], plugins: [asks().plugin], policies };
  const on = await bench({ ...options, replies: [reply, 'done', 'more', 'and more', 'last'] });
  await on.conversation.send('hi').result;
  return { ...on, store, ask };
}

describe('INV-1: after a denial whose result and run the store lost', () => {
  it('the call still waits, and the next run applies the denial', async () => {
    const { conversation, store, ask } = await waiting();
    let lost = false;
    store.trouble((entries) => {
      lost ||= has(entries, 'tool-result');
      return lost ? 'failed' : 'stored';
    });
    await conversation.decide({ callId: 'c1', action: 'deny' });
    expect(await conversation.resume().result).toMatchObject({ termination: 'Error', cause: 'store' });
    store.trouble(() => 'stored');
    expect(await conversation.send('go on').result).toMatchObject({ termination: 'NaturalEnd' });
    expect(only(conversation.log(), 'tool-result')).toEqual(['tool-result c1 failed denied']);
    expect(ask.ran).toEqual([]);
    expect(restFaults(conversation.log())).toEqual([]);
  });

  it('a resume without the decision waits, and no model is called directly after its own reply', async () => {
    const { conversation, store, model } = await waiting();
    let failing = true;
    store.trouble((entries) => (failing && has(entries, 'run-resumed', 'run-stop') ? 'failed' : 'stored'));
    expect(await conversation.resume().result).toMatchObject({ termination: 'Error', cause: 'store' });
    failing = false;
    const asked = model.calls.length;
    expect(await conversation.resume().result).toMatchObject({ termination: 'Suspended' });
    expect(model.calls).toHaveLength(asked);
  });
});

describe('INV-1: after a run that a rejected decision has ended', () => {
  it('no followUp starts while the call waits, and a second decision is applied', async () => {
    const clock = new VirtualClock();
    const store = troubledStore({ clock });
    const [ask, gate] = [echoTool('ask'), gateTool()];
    const replies = [[call('c1', 'ask', args), call('c2', 'gate', {})], 'one', 'two'];
    const around = { tools: [ask.tool, gate.tool], plugins: [asks().plugin] };
    const { conversation } = await bench({ clock, store, replies, ...around });
    const run = conversation.send('hi');
    await gate.begun('c2');
    const next = conversation.send('later', { kind: 'followUp' });
    store.trouble((entries) => (has(entries, 'decision') ? 'failed' : 'stored'));
    const approve = { callId: 'c1', action: 'approve' } as const;
    await expect(conversation.decide(approve)).rejects.toMatchObject({ code: 'store' });
    expect(await run.result).toMatchObject({ termination: 'Error', cause: 'store' });
    store.trouble(() => 'stored');
    expect(conversation.pending.map(({ callId }) => callId)).toEqual(['c1']);
    expect(conversation.queue).toHaveLength(1);
    await conversation.decide(approve);
    expect(await conversation.resume().result).toMatchObject({ termination: 'NaturalEnd', text: 'one' });
    expect(await next.result).toMatchObject({ termination: 'NaturalEnd', text: 'two' });
    expect(ask.ran).toEqual(['c1']);
    expect(restFaults(conversation.log())).toEqual([]);
  });
});

describe('INV-1: after a resume that the store lost', () => {
  it('a call that kept its turn after the decided one runs with the next resume', async () => {
    const reply = [call('c1', 'ask', args), call('c2', 'ask', { m: 'b' })];
    const { conversation, store, ask } = await waiting({ toolExecution: 'sequential' }, reply);
    await conversation.decide({ callId: 'c1', action: 'approve' });
    store.trouble((entries) => (has(entries, 'run-resumed') ? 'failed' : 'stored'));
    expect(await conversation.resume().result).toMatchObject({ termination: 'Error', cause: 'store' });
    store.trouble(() => 'stored');
    expect(await conversation.resume().result).toMatchObject({ termination: 'Suspended' });
    expect(conversation.pending.map(({ callId }) => callId)).toEqual(['c2']);
    await conversation.decide({ callId: 'c2', action: 'approve' });
    await conversation.resume().result;
    expect(ask.ran).toEqual(['c1', 'c2']);
    expect(restFaults(conversation.log())).toEqual([]);
  });
});

describe('INV-1: after a resume that the store lost, a call that may run again', () => {
  /** A process died while `c1` ran. The next process opened its log, and the store lost its resume. */
  async function cutOff() {
    const reply = [call('c1', 'gate', {})];
    const gate = gateTool('gate', { idempotent: true });
    const dead = await bench({ tools: [gate.tool], replies: [reply] });
    dead.conversation.send('hi');
    await gate.begun('c1');
    const clock = new VirtualClock();
    const store = troubledStore({ clock, inner: await storeWith(dead.conversation.log()) });
    const again = gateTool('gate', { idempotent: true });
    const on = await bench({ clock, store, tools: [again.tool], replies: ['done', 'more'] });
    store.trouble((entries) => (has(entries, 'run-resumed', 'run-stop') ? 'failed' : 'stored'));
    expect(await on.conversation.resume().result).toMatchObject({ termination: 'Error', cause: 'store' });
    store.trouble(() => 'stored');
    return { ...on, again };
  }

  it('a new message abandons it, so that no cancel leaves it open', async () => {
    const { conversation, again } = await cutOff();
    const run = conversation.send('something else');
    await run.cancel();
    expect(only(conversation.log(), 'tool-result')).toEqual(['tool-result c1 unknown']);
    expect(again.started).toEqual([]);
    expect(restFaults(conversation.log())).toEqual([]);
  });

  it('it runs with the next resume', async () => {
    const { conversation, again } = await cutOff();
    const run = conversation.resume();
    await again.begun('c1');
    again.release('c1');
    expect(await run.result).toMatchObject({ termination: 'NaturalEnd' });
    expect(only(conversation.log(), 'tool-result')).toEqual(['tool-result c1 succeeded']);
    expect(restFaults(conversation.log())).toEqual([]);
  });
});

describe('INV-2: after a run whose end the store lost with the result of a call', () => {
  it('the call is unknown, and no resume of the same process runs it again', async () => {
    const clock = new VirtualClock();
    const store = troubledStore({ clock });
    const gate = gateTool('gate', { idempotent: true });
    const replies = [[call('c1', 'gate', {})], 'done'];
    const { conversation } = await bench({ clock, store, tools: [gate.tool], replies });
    const run = conversation.send('hi');
    await gate.begun('c1');
    store.trouble(() => 'failed');
    gate.release('c1');
    expect(await run.result).toMatchObject({ termination: 'Error', cause: 'store' });
    store.trouble(() => 'stored');
    expect(await conversation.resume().result).toMatchObject({ termination: 'NaturalEnd' });
    expect(gate.started).toEqual(['c1']);
    expect(only(conversation.log(), 'tool-result')).toEqual(['tool-result c1 unknown']);
    expect(restFaults(conversation.log())).toEqual([]);
  });
});

describe('INV-2: after a retry whose result the store lost', () => {
  /** The call c1 was interrupted, a person requested a retry, and the store rejected its result. */
  async function lost() {
    const gate = gateTool();
    const dead = await bench({ tools: [gate.tool], replies: [[call('c1', 'gate', {})]] });
    dead.conversation.send('hi');
    await gate.begun('c1');
    const clock = new VirtualClock();
    const store = troubledStore({ clock, inner: await storeWith(dead.conversation.log()) });
    const again = gateTool();
    const { conversation } = await bench({ clock, store, tools: [again.tool], replies: ['over', 'more'] });
    await conversation.send('leave it').result;
    await conversation.settle('c1', { retry: true });
    const retry = conversation.resume();
    await again.begun('c1');
    store.trouble(() => 'failed');
    again.release('c1');
    expect(await retry.result).toMatchObject({ termination: 'Error', cause: 'store' });
    store.trouble(() => 'stored');
    return { conversation, started: again.started };
  }

  it('a call of an ended cycle is not run again automatically', async () => {
    const { conversation, started } = await lost();
    await conversation.resume().result;
    expect(started).toEqual(['c1']);
  });

  it('the next message abandons the call: its outcome is unknown, and it can be settled again', async () => {
    const { conversation, started } = await lost();
    await conversation.send('go on').result;
    expect(only(conversation.log(), 'tool-result')).toEqual(['tool-result c1 unknown', 'tool-result c1 unknown']);
    expect(conversation.unsettled.map(({ callId }) => callId)).toEqual(['c1']);
    expect(started).toEqual(['c1']);
  });
});

describe('I29: messages that the log still has in its queue', () => {
  it('the next run delivers a steer whose delivery was lost with the end of its run', async () => {
    const { conversation, store, model } = await waiting();
    void conversation.steer('by the way').delivered.catch(() => undefined);
    await conversation.decide({ callId: 'c1', action: 'approve' });
    let failing = true;
    store.trouble((entries) => (failing && has(entries, 'user-message', 'run-stop') ? 'failed' : 'stored'));
    expect(await conversation.resume().result).toMatchObject({ termination: 'Error' });
    failing = false;
    expect(conversation.queue).toHaveLength(1);
    await conversation.send('and now').result;
    expect(conversation.queue).toEqual([]);
    expect(lines(model.calls.at(-1)?.messages ?? [])).toEqual(expect.arrayContaining(['user by the way']));
  });

  it('a followUp whose return was rejected counts against limits.queue, and is promoted', async () => {
    const { conversation, store } = await waiting({ limits: { queue: 1 } });
    const run = conversation.send('later', { kind: 'followUp' });
    store.trouble((entries) => (has(entries, 'message-returned') ? 'failed' : 'stored'));
    await run.cancel();
    store.trouble(() => 'stored');
    expect(conversation.queue.map(({ kind }) => kind)).toEqual(['followUp']);
    expect(() => conversation.followUp('one more')).toThrow(/queue holds 1/);
    await conversation.decide({ callId: 'c1', action: 'approve' });
    await conversation.resume().result;
    await conversation.resume().result;
    expect(conversation.queue).toEqual([]);
  });
});

describe('I29: a followUp whose promotion the store lost', () => {
  it('it stays in the queue, and resume() promotes it', async () => {
    const clock = new VirtualClock();
    const store = troubledStore({ clock });
    const { conversation } = await bench({ clock, store, replies: ['one', 'two'] });
    const run = conversation.send('hi');
    const next = conversation.send('then', { kind: 'followUp' });
    let began = 0;
    store.trouble((entries) => {
      if (has(entries, 'run-started')) began += 1;
      return began > 1 ? 'failed' : 'stored';
    });
    await run.result;
    expect(await next.result).toMatchObject({ termination: 'Error', cause: 'store' });
    store.trouble(() => 'stored');
    expect(conversation.queue).toHaveLength(1);
    expect(await conversation.resume().result).toMatchObject({ termination: 'NaturalEnd', text: 'two' });
    expect(conversation.queue).toEqual([]);
  });
});

describe('I4: limits count stored entries', () => {
  it('a reply that the store rejected uses no tokens of the next followUp', async () => {
    const clock = new VirtualClock();
    const store = troubledStore({ clock });
    const policies = { limits: { tokens: 100 }, promoteFollowUpOn: ['error' as const] };
    const usage = { inputTokens: 120, outputTokens: 0 };
    const costly = [t('lost'), { type: 'finish' as const, reason: 'stop' as const, usage }];
    const { conversation } = await bench({ clock, store, policies, replies: [costly, 'kept'] });
    let lost = false;
    store.trouble((entries) => {
      if (lost || !has(entries, 'model-reply')) return 'stored';
      lost = true;
      return 'failed';
    });
    const run = conversation.send('hi');
    const next = conversation.send('then', { kind: 'followUp' });
    expect(await run.result).toMatchObject({ termination: 'Error', cause: 'store' });
    expect(await next.result).toMatchObject({ termination: 'NaturalEnd' });
  });
});

it('I4: a message is accepted as if the decisions before it were applied, so that it never exceeds the queue', async () => {
  const { clock, conversation, store } = await waiting({ limits: { queue: 2 }, whileSuspended: 'denyAndRun' });
  store.trouble(() => ({ afterMs: 20 }));
  conversation.steer('first');
  void conversation.decide({ callId: 'c1', action: 'deny' });
  await clock.advance(0);
  // It resumes the cycle, since no call waits undecided after the denial.
  conversation.followUp('second');
  expect(() => conversation.send('third')).toThrow(expect.objectContaining({ code: 'limit' }));
});
