/** A checkpoint is the last entry of its append (docs/internals/lifecycle.md, Checkpoint Triggers). */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bench, only } from '../support/agentBench.ts';
import { appendFaults } from '../support/logRules.ts';
import { echoTool, gateTool } from '../support/scenarioTools.ts';
import { call } from '../support/scriptedReplies.ts';
import { HANG_MS, volume } from '../support/tier.ts';
import { troubledStore } from '../support/troubledStore.ts';
import { VirtualClock } from '../support/virtualClock.ts';

const args = { m: 'a' };

/**
 * A round of more calls than may run at once. Calls named `x…` require approval; calls named `g…` wait until released.
 */
async function round(callIds: readonly string[], maxParallelTools = 1) {
  const clock = new VirtualClock();
  const store = troubledStore({ clock });
  const gate = gateTool();
  const on = await bench({
    clock,
    store,
    tools: [echoTool('ask', { needsApproval: true }).tool, echoTool().tool, gate.tool],
    policies: { maxParallelTools, whileActive: 'followUp', decisionsDuringRound: 'immediate' },
    replies: [
      callIds.map((id) =>
        id[0] === 'x' ? call(id, 'ask', args) : id[0] === 'g' ? call(id, 'gate') : call(id, 'echo', args),
      ),
      'done',
      'done',
    ],
  });
  return { ...on, store, gate };
}

describe('CKPT: the boundaries of checkpoints', () => {
  it('are kept with an early denial of a call while another one is queued', async () => {
    const on = await round(['g1', 'x1', 'c1']);
    const run = on.conversation.send('hi');
    await on.gate.begun('g1');
    expect(await on.conversation.decide({ callId: 'x1', action: 'deny' })).toBe('held');
    on.gate.release('g1');
    await run.result;
    expect(only(on.conversation.log(), 'tool-suspended', 'tool-result', 'tool-started')).toEqual([
      'tool-started g1',
      'tool-result g1 succeeded',
      'tool-suspended x1 1',
      'tool-result x1 failed denied',
      'tool-started c1',
      'tool-result c1 succeeded',
    ]);
    expect(appendFaults(on.store.tried)).toEqual([]);
  });

  it('are kept with a message that is sent and cancelled while a decision is being stored', async () => {
    const on = await round(['x1']);
    await on.conversation.send('hi').result;
    on.store.trouble(() => ({ afterMs: 200 }));
    const decided = on.conversation.decide({ callId: 'x1', action: 'approve' }).catch(() => undefined);
    const run = on.conversation.resume();
    void run.cancel();
    void on.conversation.cancel();
    await on.clock.until(Promise.all([decided, run.result]), 5000);
    await on.clock.advance(5000);
    on.conversation.send('again', { signal: AbortSignal.abort() });
    await on.clock.advance(5000);
    expect(appendFaults(on.store.tried)).toEqual([]);
  });

  it('are kept with decisions, messages and cancels in any order on a slow store', {
    timeout: HANG_MS,
  }, async () => {
    const act = fc.record({
      what: fc.constantFrom(
        'approve',
        'deny',
        'early',
        'send',
        'aborted',
        'steer',
        'resume',
        'cancel',
        'release',
        'settle',
      ),
      waitMs: fc.constantFrom(0, 0, 1, 30, 60, 120),
    });
    const life = fc.record({
      callIds: fc.constantFrom(['x1', 'c1'], ['g1', 'x1', 'c1'], ['x1', 'x2', 'c1'], ['g1', 'x1', 'x2', 'c1', 'c2']),
      width: fc.constantFrom(1, 2),
      slow: fc.array(fc.constantFrom(0, 0, 20, 70, 150), { minLength: 1, maxLength: 8 }),
      acts: fc.array(act, { maxLength: 16, size: 'max' }),
    });
    await fc.assert(
      fc.asyncProperty(life, async ({ callIds, width, slow, acts }) => {
        const on = await round(callIds, width);
        const { conversation, clock, store, gate } = on;
        store.trouble((_, number) => ({ afterMs: slow[number % slow.length] ?? 0 }));
        const does: Record<(typeof acts)[number]['what'], () => unknown> = {
          approve: () => conversation.decide({ callId: conversation.pending[0]?.callId ?? 'x1', action: 'approve' }),
          deny: () => conversation.decide({ callId: conversation.pending[0]?.callId ?? 'x1', action: 'deny' }),
          early: () => conversation.decide({ callId: callIds.at(-2) ?? '', action: 'deny' }),
          send: () => conversation.send('more'),
          aborted: () => conversation.send('more', { signal: AbortSignal.abort() }),
          steer: () => conversation.steer('more'),
          resume: () => conversation.resume(),
          cancel: () => conversation.cancel(),
          release: () => gate.started.map((id) => gate.release(id)),
          settle: () => conversation.settle(conversation.unsettled[0]?.callId ?? '', { didNotRun: true }),
        };
        conversation.send('hi');
        for (const { what, waitMs } of acts) {
          await clock.advance(waitMs);
          void (async () => does[what]())().catch(() => undefined);
        }
        await clock.advance(5000);
        expect(appendFaults(store.tried)).toEqual([]);
        await clock.until(conversation.close(), 20_000);
      }),
      { seed: Number(process.env.SEED ?? 4), numRuns: Number(process.env.RUNS ?? volume.messageLives) },
    );
  });
});
