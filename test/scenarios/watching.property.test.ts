/** Subscribers that connect and disconnect at any moment (docs/internals/contracts.md, REQ-BED-011). */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Conversation, LogEntry } from '../../src/index.ts';
import { bench } from '../support/agentBench.ts';
import { echoTool } from '../support/scenarioTools.ts';
import { call, t } from '../support/scriptedReplies.ts';
import { HANG_MS, volume } from '../support/tier.ts';
import { troubledStore } from '../support/troubledStore.ts';

interface Watcher {
  /**
   * After this many turns of the promise queue, or during another subscriber's notification of the entry with this
   * number.
   */
  comes: { tick: number } | { at: number };
  from: number;
  /** `leaves`: disconnects after this many entries, and returns for the others. */
  how: 'stays' | 'throws' | 'slow' | { leaves: number };
}

const watcher: fc.Arbitrary<Watcher> = fc.record({
  comes: fc.oneof(fc.record({ tick: fc.nat({ max: 400 }) }), fc.record({ at: fc.nat({ max: 45 }) })),
  from: fc.oneof(fc.constant(0), fc.nat({ max: 60 })),
  how: fc.oneof(
    fc.constantFrom('stays' as const, 'throws' as const, 'slow' as const),
    fc.record({ leaves: fc.integer({ min: 1, max: 6 }) }),
  ),
});

/** Starts a subscriber; the list contains its entries. */
function watch(conversation: Conversation, { from, how }: Watcher): LogEntry[] {
  const seen: LogEntry[] = [];
  if (typeof how === 'object') {
    reconnecting(conversation, from, how.leaves, seen);
    return seen;
  }
  conversation.log$(from).subscribe((entry) => {
    seen.push(entry);
    if (how === 'throws') throw new Error('careless');
    if (how === 'slow') void new Promise((resolve) => setImmediate(resolve));
  });
  return seen;
}

/** Subscribes again at the same entry, synchronously within its own `next`. */
function reconnecting(conversation: Conversation, from: number, leaves: number, seen: LogEntry[]): void {
  let remaining = leaves;
  let gone = false;
  const subscription = conversation.log$(from).subscribe((entry) => {
    if (gone) return;
    seen.push(entry);
    remaining -= 1;
    if (remaining > 0) return;
    gone = true;
    queueMicrotask(() => {
      subscription.unsubscribe();
      reconnecting(conversation, entry.seq + 1, leaves, seen);
    });
  });
}

const isHarmless = ({ how }: Watcher): boolean => how !== 'throws';

it('BED-11, B20: a subscriber that arrives, leaves or returns at any time receives each entry from its number on once, in order', {
  timeout: HANG_MS,
}, async () => {
  const scene = fc.record({
    watchers: fc.array(watcher, { minLength: 1, maxLength: 8, size: 'max' }),
    synchronous: fc.boolean(),
    observerErrors: fc.constantFrom('isolate' as const, 'propagate' as const),
  });
  await fc.assert(
    fc.asyncProperty(scene, async ({ watchers, synchronous, observerErrors }) => {
      const { conversation, clock } = await bench({
        replies: [
          [t('a'), call('c1', 'echo', { m: 'a' }), call('c2', 'echo', { m: 'b' })],
          [call('c3', 'echo', { m: 'c' })],
          [t('d'), t('e')],
          'f',
        ],
        tools: [echoTool().tool],
        store: troubledStore({ synchronous }),
        policies: { observerErrors },
      });
      const seen = new Map<Watcher, LogEntry[]>();
      const come = (each: Watcher): void => {
        if (!seen.has(each)) seen.set(each, watch(conversation, each));
      };
      conversation.log$().subscribe(({ seq }) => {
        for (const each of watchers) if ('at' in each.comes && each.comes.at === seq) come(each);
      });
      const views: unknown[] = [];
      conversation.view$.subscribe((view) => views.push(view));
      const runs = [conversation.send('hi'), conversation.send('more', { kind: 'followUp' })];
      for (let tick = 0; tick <= 400; tick++) {
        for (const each of watchers) if ('tick' in each.comes && each.comes.tick === tick) come(each);
        await Promise.resolve();
      }
      for (const { result } of runs) await result;
      await clock.advance(1);
      const log = conversation.log();
      for (const [each, entries] of seen) {
        const wanted = log.slice(each.from);
        if (isHarmless(each)) expect(entries).toEqual(wanted);
        else expect(entries).toEqual(wanted.slice(0, 3));
      }
      expect(views.at(-1)).toEqual(conversation.view());
      const harmed = watchers.some((each) => seen.has(each) && !isHarmless(each));
      if (!harmed || observerErrors === 'isolate') {
        expect((await Promise.all(runs.map(({ result }) => result))).map(({ text }) => text)).toEqual(['de', 'f']);
      }
      await conversation.close();
    }),
    { seed: 11, numRuns: volume.watchers },
  );
});
