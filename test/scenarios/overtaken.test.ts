/**
 * A cancel overtakes an append that the store then refuses (docs/internals/lifecycle.md, Checkpoint Triggers). Later
 * entries depend on that append, so the log contains both or neither.
 */
import { describe, expect, it } from 'vitest';
import type { LogEntry } from '../../src/index.ts';
import { pairingFaults } from '../../src/testing/pairingFaults.ts';
import { bench, only, restart } from '../support/agentBench.ts';
import { appendFaults, logFaults, restFaults } from '../support/logRules.ts';
import { asks, echoTool, gateTool } from '../support/scenarioTools.ts';
import { call, lines, type Reply, scripted, t } from '../support/scriptedReplies.ts';
import { sampled, volume } from '../support/tier.ts';
import { type Fate, troubledStore } from '../support/troubledStore.ts';
import { VirtualClock } from '../support/virtualClock.ts';

const args = { m: 'a' };
const refusal: Fate = { afterMs: 72, fails: true };

async function begun(hookMs: number) {
  const clock = new VirtualClock();
  const store = troubledStore({ clock });
  const gate = gateTool();
  const script: Reply[] = [
    [t('let me see'), call('c1', 'echo', args), call('c2', 'ask', args), call('c3', 'gate')],
    'one waits',
    'done',
  ];
  const answer: Reply = (request, context) => {
    const isLast = lines(request.messages).at(-1) === 'user again';
    return scripted([isLast ? 'fine' : (script.shift() ?? 'and more')]).stream(request, context);
  };
  const pause = (ms: number) => new Promise<void>((resolve) => void clock.setTimer(ms, resolve));
  const options = {
    clock,
    tools: [echoTool().tool, echoTool('ask').tool, gate.tool],
    plugins: [asks().plugin, ...(hookMs > 0 ? [{ name: 'slow', runEnd: () => pause(hookMs) }] : [])],
    replies: Array.from({ length: 9 }, () => answer),
  };
  return { ...(await bench({ ...options, store })), store, gate, options };
}

type Life = Awaited<ReturnType<typeof begun>>;

/** The steps of a host: a run with every kind of entry. */
const steps: readonly ((on: Life) => unknown)[] = [
  ({ conversation }) => conversation.send('go'),
  ({ conversation }) => conversation.steer('this too'),
  ({ conversation }) => conversation.followUp('and then'),
  ({ gate }) => gate.release('c3'),
  ({ conversation }) => void conversation.decide({ callId: 'c2', action: 'approve' }).catch(() => undefined),
  ({ conversation }) => conversation.resume(),
];

/**
 * Runs until append number `at` starts, cancels then, and waits until everything is settled. False if there is no such
 * append.
 */
async function cancelAt(on: Life, at: number, then: Fate): Promise<boolean> {
  const { store, clock, conversation, gate } = on;
  store.trouble((_, number) => (number === at ? refusal : number === at + 1 ? then : 'stored'));
  for (const step of steps) {
    if (step === steps[3]) await Promise.race([gate.begun('c3'), clock.advance(20)]);
    step(on);
    for (let ms = 0; ms < 20 && store.tried.length <= at; ms++) await clock.advance(1);
    if (store.tried.length <= at) continue;
    await clock.advance(15);
    expect(await clock.until(conversation.cancel())).toBeLessThanOrEqual(100);
    await clock.advance(20_000);
    store.trouble(() => 'stored');
    return true;
  }
  return false;
}

describe.each(sampled([0, 25], volume.caseOf))(
  'INV-1, INV-3: with a hook at the end that takes %d ms, at whichever append',
  (hookMs) => {
    it.each<[string, Fate]>([
      ['stores it when it is tried again', 'stored'],
      ['rejects it twice', 'failed'],
      ['stores it late', { afterMs: 300 }],
      ['rejects it twice and late', { afterMs: 300, fails: true }],
    ])('if a store %s, calls have one result and cycles have one stop', async (_, then) => {
      const kinds = new Set<string>();
      let at = 1;
      for (; ; at++) {
        const on = await begun(hookMs);
        if (!(await cancelAt(on, at, then))) break;
        const { conversation, clock, store } = on;
        for (const { type } of store.tried[at] ?? []) kinds.add(type);
        const where = `append ${at}: ${store.tried[at]?.map(({ type }) => type)}`;
        expect(logFaults(conversation.log()), where).toEqual([]);
        // Entries that a store has rejected for good are written with the next ones.
        if (conversation.status === 'idle') expect(restFaults(conversation.log()), where).toEqual([]);
        if (conversation.status === 'waiting') await clock.until(conversation.cancel());
        const next = conversation.send('again');
        await clock.until(next.result, 20_000);
        expect(['NaturalEnd', 'Suspended'], where).toContain((await next.result).termination);
        if (conversation.status === 'waiting') await clock.until(conversation.cancel());
        await clock.advance(20_000);
        expect(restFaults(conversation.log()), where).toEqual([]);
        const messages = conversation.messages();
        // A waiting call is closed after the last reply, and its result is there.
        const asked = messages.at(-1)?.role === 'assistant' ? messages.slice(0, -1) : messages;
        expect(pairingFaults(asked), where).toEqual([]);
        expect(appendFaults(store.tried), where).toEqual([]);
        const again = await restart(on, { ...on.options, replies: [] });
        expect(restFaults(again.conversation.log()), where).toEqual([]);
        expect(lines(again.conversation.messages()), where).toEqual(lines(conversation.messages()));
        await again.agent.close();
      }
      expect(at).toBeGreaterThan(8);
      const wanted = ['user-message', 'model-reply', 'message-queued', 'tool-started', 'tool-result', 'tool-suspended'];
      expect([...kinds]).toEqual(expect.arrayContaining([...wanted, 'decision', 'run-resumed', 'run-suspended']));
    });
  },
);

it('INV-1: a reply that is rejected after a cancel is in the log with the results of its calls, or not at all', async () => {
  const on = await begun(25);
  const reply = (entries: readonly LogEntry[]): boolean => entries.some(({ type }) => type === 'model-reply');
  let refused = false;
  on.store.trouble((entries) => {
    if (refused || !reply(entries)) return 'stored';
    refused = true;
    return refusal;
  });
  on.conversation.send('go');
  await on.clock.advance(15);
  expect(await on.clock.until(on.conversation.cancel())).toBeLessThanOrEqual(100);
  await on.clock.advance(1000);
  expect(only(on.conversation.log(), 'agent-output', 'tool-result', 'run-stop')).toEqual([
    'agent-output let me see',
    'agent-output c1',
    'agent-output c2',
    'agent-output c3',
    'tool-result c1 cancelled skipped',
    'tool-result c2 cancelled skipped',
    'tool-result c3 cancelled skipped',
    'run-stop interrupted cancelled',
  ]);
});
