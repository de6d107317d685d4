/**
 * Several decisions or settlements of one call at once: the first one wins (docs/internals/lifecycle.md, Decision
 * Replay).
 */
import { describe, expect, it } from 'vitest';
import type { Settlement } from '../../src/index.ts';
import { bench, entry, only, storeWith } from '../support/agentBench.ts';
import { asks, echoTool, gateTool } from '../support/scenarioTools.ts';
import { call, deaf } from '../support/scriptedReplies.ts';
import { troubledStore } from '../support/troubledStore.ts';
import { VirtualClock } from '../support/virtualClock.ts';

/** The call c1 is unknown, another run is active, and the store takes 200 ms for each append. */
async function slowly() {
  const gate = gateTool('pay');
  const before = await bench({ replies: [[call('c1', 'pay', { m: 'a' })]], tools: [gate.tool] });
  before.conversation.send('hi');
  await entry(before.conversation, 'tool-started');
  const clock = new VirtualClock();
  const store = troubledStore({ clock, inner: await storeWith(before.conversation.log()) });
  const pay = echoTool('pay');
  const on = await bench({ clock, store, replies: [deaf(), 'done'], tools: [pay.tool] });
  on.conversation.send('meanwhile');
  await clock.advance(0);
  store.trouble(() => ({ afterMs: 200 }));
  return { ...on, clock, store, pay };
}

describe('two settlements of one call while a cancel overtakes a slow store', () => {
  it.each<[string, Settlement]>([
    ['retry', { retry: true }],
    ['a different one', { didNotRun: true }],
  ])('INV-4, I10: the first one wins, also if the second is %s', async (_, second) => {
    const { conversation, clock, store, pay } = await slowly();
    const first = conversation.settle('c1', { retry: true });
    const cancelled = conversation.cancel();
    const later = conversation.settle('c1', second);
    await clock.until(Promise.all([first, later, cancelled]), 5_000);
    expect([await first, await later]).toEqual(['applied', 'unknown']);
    store.trouble(() => 'stored');
    await clock.until(conversation.resume().result, 5_000);
    expect(pay.ran).toEqual(['c1']);
    expect(only(conversation.log(), 'call-settled')).toHaveLength(1);
  });
});

describe('two decisions on one suspension while a cancel overtakes a slow store', () => {
  it('I16, I22: the first one wins, and the second is answered as a conflict', async () => {
    const clock = new VirtualClock();
    const store = troubledStore({ clock });
    const [ask, gate] = [echoTool('ask'), gateTool()];
    const on = await bench({
      clock,
      store,
      replies: [[call('c1', 'ask', { m: 'a' }), call('g', 'gate')]],
      tools: [ask.tool, gate.tool],
      plugins: [asks().plugin],
      policies: { decisionsDuringRound: 'atGate' },
    });
    on.conversation.send('hi');
    await gate.begun('g');
    await entry(on.conversation, 'tool-suspended');
    store.trouble(() => ({ afterMs: 200 }));
    const first = on.conversation.decide({ callId: 'c1', action: 'approve', by: 'ada' });
    const cancelled = on.conversation.cancel();
    const second = on.conversation.decide({ callId: 'c1', action: 'deny', by: 'bob' });
    await clock.until(Promise.all([first, second, cancelled]), 5_000);
    expect(await first).toBe('applied');
    expect(await second).not.toBe('applied');
    const deciders = on.conversation.log().flatMap((each) => (each.type === 'decision' ? [each.decision.by] : []));
    expect(deciders).toEqual(['ada']);
  });
});
