/** A run ends early while plugins handle calls that wait or that wrote to the state. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { defineTool, type LogEntry, ModelError, type ModelPart, toolResult } from '../../src/index.ts';
import { bench, only, restart } from '../support/agentBench.ts';
import { echoTool } from '../support/scenarioTools.ts';
import { call, scripted } from '../support/scriptedReplies.ts';
import { slowListener } from '../support/slowListener.ts';
import { commits, troubledStore } from '../support/troubledStore.ts';

const parameters = z.object({});
const forever = (): Promise<never> => new Promise(() => undefined);
const ask = defineTool({
  name: 'ask',
  description: 'Asks.',
  parameters,
  execute: () => toolResult.pending({ reason: 'input' }),
});
/** Hangs in the hook for the suspension with this number. */
const slowAt = (wanted: number) => slowListener(wanted, wanted - 1, ({ outcome }) => outcome === 'suspended');

describe('a waiting call whose suspension plugins still handle', () => {
  it('it continues to wait if the store ends its run, and can be decided (INV-1)', async () => {
    const { plugin, begun } = slowAt(1);
    const store = troubledStore();
    const on = await bench({ replies: [[call('c1', 'ask')], 'done'], tools: [ask], plugins: [plugin], store });
    const run = on.conversation.send('hi');
    await begun;
    let failed = false;
    store.trouble((entries) => {
      const fails = !failed && entries.some(({ type }) => type === 'message-queued');
      failed ||= fails;
      return fails ? 'failed' : 'stored';
    });
    expect(await on.conversation.followUp('more').delivered).toBe('returned');
    expect((await run.result).cause).toBe('store');
    expect(only(on.conversation.log(), 'tool-suspended', 'tool-result')).toEqual(['tool-suspended c1 1']);
    expect(on.conversation.pending.map(({ callId }) => callId)).toEqual(['c1']);
    const after = await restart(on, { store, replies: ['done'], tools: [ask] });
    expect(after.conversation.pending.map(({ callId }) => callId)).toEqual(['c1']);
    expect(await after.conversation.decide({ callId: 'c1', action: 'deny' })).toBe('applied');
    expect((await after.conversation.resume().result).termination).toBe('NaturalEnd');
  });

  /** c1 is suspended again at a gate during the model's answer. The answer fails on the test's request. */
  async function askedAgain() {
    const { plugin, begun } = slowAt(2);
    let fail = (): void => {};
    const failing = new Promise<void>((resolve) => {
      fail = resolve;
    });
    const failed = async function* (): AsyncGenerator<ModelPart> {
      yield { type: 'text-delta', text: 'I ' };
      await failing;
      throw new ModelError({ code: 'auth', message: 'no' });
    };
    const on = await bench({
      model: scripted([[call('c0', 'echo', { m: 'a' }), call('c1', 'ask')], failed]),
      tools: [echoTool().tool, ask],
      plugins: [plugin],
      policies: { decisionsDuringRound: 'immediate' },
    });
    const run = on.conversation.send('hi');
    await expect.poll(() => on.conversation.pending.length).toBe(1);
    await on.conversation.decide({ callId: 'c1', action: 'answer', payload: 1 });
    await begun;
    return { ...on, run, fail };
  }
  const entryTypes = ['tool-suspended', 'decision-consumed', 'tool-result', 'diagnostic'] as const;

  it('a call that was suspended again continues to wait if the model ends its run; its first decision is used', async () => {
    const { conversation, run, fail } = await askedAgain();
    fail();
    expect((await run.result).cause).toBe('model');
    expect(only(conversation.log(), ...entryTypes).filter((line) => line.includes('c1'))).toEqual([
      'tool-suspended c1 1',
      'tool-suspended c1 2',
      'decision-consumed c1 1',
    ]);
    expect(conversation.pending.map(({ callId, suspension }) => [callId, suspension])).toEqual([['c1', 2]]);
    expect(only(conversation.log(), 'diagnostic')).toEqual([]);
  });

  it('a call that was suspended again is cancelled with its run, and its first decision does not expire', async () => {
    const { conversation } = await askedAgain();
    await conversation.cancel();
    expect(only(conversation.log(), ...entryTypes).filter((line) => line.includes('c1'))).toEqual([
      'tool-suspended c1 1',
      'tool-suspended c1 2',
      'tool-result c1 cancelled cancelled',
      'decision-consumed c1 1',
    ]);
    expect(only(conversation.log(), 'diagnostic')).toEqual([]);
  });

  it('a call whose second suspension the store lost is unknown; a retry uses its decision once', async () => {
    const { plugin } = slowAt(2);
    const store = troubledStore();
    let answers = false;
    const asking = defineTool({
      name: 'ask',
      description: 'Asks.',
      parameters,
      execute: () => (answers ? 'answered' : toolResult.pending({ reason: 'input' })),
    });
    const options = { tools: [asking], plugins: [plugin], store };
    const on = await bench({ ...options, replies: [[call('c1', 'ask')], 'done'] });
    await on.conversation.send('hi').result;
    await on.conversation.decide({ callId: 'c1', action: 'approve' });
    store.trouble((entries) => (only(entries, 'tool-suspended').includes('tool-suspended c1 2') ? 'failed' : 'stored'));
    expect((await on.conversation.resume().result).cause).toBe('store');
    expect(only(on.conversation.log(), 'tool-result', 'decision-consumed')).toEqual(['tool-result c1 unknown']);
    answers = true;
    expect(await on.conversation.settle('c1', { retry: true })).toBe('applied');
    expect((await on.conversation.resume().result).termination).toBe('NaturalEnd');
    expect(only(on.conversation.log(), 'tool-result', 'decision-consumed')).toEqual([
      'tool-result c1 unknown',
      'tool-result c1 succeeded',
      'decision-consumed c1 1',
    ]);
  });
});

describe('the state that a call of an interrupted run wrote', () => {
  const writes = (name: string, state: { [key: string]: number }) =>
    defineTool({ name, description: 'Writes.', parameters, execute: () => toolResult.success('written', { state }) });
  const approved = (name: string, key: string) =>
    defineTool({
      name,
      description: 'Writes.',
      parameters,
      needsApproval: true,
      execute: () => toolResult.success('written', { state: { [key]: 1 } }),
    });
  const hangs = defineTool({ name: 'hangs', description: 'Hangs.', parameters, execute: forever });

  it('it is kept if another call of its round is cancelled', async () => {
    const on = await bench({
      replies: [[call('c1', 'write'), call('c2', 'hangs')]],
      tools: [writes('write', { k: 1 }), hangs],
    });
    const run = on.conversation.send('hi');
    await expect.poll(() => only(on.conversation.log(), 'tool-result')).toHaveLength(1);
    await on.conversation.cancel();
    await run.result;
    expect(only(on.conversation.log(), 'tool-result', 'state-changed')).toEqual([
      'tool-result c1 succeeded',
      'tool-result c2 cancelled cancelled',
      'state-changed',
    ]);
    expect(on.conversation.state).toEqual({ k: 1 });
    expect((await restart(on)).conversation.state).toEqual({ k: 1 });
  });

  it('it is not applied if two calls wrote different values to one key', async () => {
    const tools = [writes('one', { k: 1 }), writes('two', { k: 2 }), hangs];
    const on = await bench({ replies: [[call('c1', 'one'), call('c2', 'two'), call('c3', 'hangs')]], tools });
    on.conversation.send('hi');
    await expect.poll(() => only(on.conversation.log(), 'tool-result')).toHaveLength(2);
    await on.conversation.cancel();
    expect(on.conversation.state).toEqual({});
  });

  it('it is kept for ended calls at the gate, even if a plugin has not received the last one', async () => {
    const { plugin, begun } = slowListener(
      1,
      0,
      ({ call, outcome }) => call.callId === 'c2' && outcome !== 'suspended',
    );
    const tools = [approved('one', 'a'), approved('two', 'b')];
    const on = await bench({ replies: [[call('c1', 'one'), call('c2', 'two')]], tools, plugins: [plugin] });
    await on.conversation.send('hi').result;
    for (const callId of ['c1', 'c2']) await on.conversation.decide({ callId, action: 'approve' });
    on.conversation.resume();
    await begun;
    await on.conversation.cancel();
    expect(on.conversation.state).toEqual({ a: 1, b: 1 });
  });

  it('it is logged once if the run is cancelled while the store takes the results of a gate', async () => {
    const tools = [approved('write', 'k')];
    const store = troubledStore();
    const on = await bench({ replies: [[call('c1', 'write')]], tools, store });
    await on.conversation.send('hi').result;
    await on.conversation.decide({ callId: 'c1', action: 'approve' });
    let goOn = (): void => {};
    const after = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const { length } = store.tried;
    const holdsResult = (entries: readonly LogEntry[]): boolean => commits(entries, 'ToolResultsCommitted');
    store.trouble((entries) => (holdsResult(entries) ? { after } : 'stored'));
    const run = on.conversation.resume();
    await expect.poll(() => store.tried.slice(length).some(holdsResult)).toBe(true);
    const cancelled = on.conversation.cancel();
    goOn();
    await cancelled;
    expect((await run.result).termination).toBe('Cancelled');
    expect(only(on.conversation.log(), 'tool-result', 'state-changed')).toEqual([
      'tool-result c1 succeeded',
      'state-changed',
    ]);
    expect(on.conversation.state).toEqual({ k: 1 });
  });
});
