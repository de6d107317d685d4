/** No message is lost, and each receipt settles once (docs/internals/model.md, Queue Semantics). */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Policies } from '../../src/index.ts';
import { type Act, type Answer, MessageLife } from '../support/messageLife.ts';
import { HANG_MS, volume } from '../support/tier.ts';

const plain = (name: 'resume' | 'cancel' | 'release' | 'close' | 'crash'): fc.Arbitrary<Act> =>
  fc.constant({ do: name });
const which = fc.nat({ max: 5 });
const act: fc.Arbitrary<Act> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.constantFrom<Act>({ do: 'send' }, { do: 'send', kind: 'steer' }, { do: 'send', kind: 'followUp' }),
  },
  { weight: 4, arbitrary: fc.constantFrom<Act>({ do: 'steer' }, { do: 'followUp' }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.constantFrom(0, 1, 60, 200) }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constantFrom('decide' as const, 'deny' as const, 'decide' as const), which }),
  },
  { weight: 2, arbitrary: plain('resume') },
  { weight: 2, arbitrary: plain('cancel') },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('cancelRun' as const, 'settle' as const), which }) },
  { weight: 2, arbitrary: plain('release') },
  { weight: 1, arbitrary: fc.constant<Act>({ do: 'send', aborted: true }) },
  { weight: 1, arbitrary: plain('close') },
  { weight: 1, arbitrary: plain('crash') },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('watch' as const), entries: fc.integer({ min: 1, max: 8 }) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('trouble' as const),
      how: fc.constantFrom('failed' as const, 'slow' as const),
      appends: fc.integer({ min: 1, max: 3 }),
    }),
  },
);
const answers = fc.array(
  fc.constantFrom<Answer>('text', 'text', 'ask', 'asks', 'echo', 'boom', 'gate', 'mixed', 'error', 'deaf', 'empty'),
  { minLength: 1, maxLength: 6 },
);
const policies: fc.Arbitrary<Partial<Policies>> = fc.record({
  whileActive: fc.constantFrom('reject' as const, 'steer' as const, 'followUp' as const),
  whileSuspended: fc.constantFrom('followUp' as const, 'reject' as const, 'denyAndRun' as const),
  queueDrain: fc.constantFrom('one' as const, 'all' as const),
  promoteFollowUpOn: fc.subarray<'completed' | 'interrupted' | 'error'>(['completed', 'interrupted', 'error']),
  onRestart: fc.constantFrom('idle' as const, 'replayDecided' as const, 'resume' as const),
  onPartialSuspend: fc.constantFrom('continue' as const, 'wait' as const),
  toolExecution: fc.constantFrom('parallel' as const, 'sequential' as const),
  observerErrors: fc.constantFrom('isolate' as const, 'propagate' as const),
});

it('B18: over random lives every message is delivered, returned or listed, once, as its receipt reports', {
  timeout: HANG_MS,
}, async () => {
  const life = fc.record({
    policies,
    answers,
    synchronous: fc.boolean(),
    acts: fc.array(act, { maxLength: 30, size: 'max' }),
  });
  await fc.assert(
    fc.asyncProperty(life, async ({ acts, ...options }) => {
      const on = new MessageLife(options);
      await on.open();
      for (const each of acts) await on.act(each);
      await on.end();
      expect(on.faults).toEqual([]);
    }),
    { seed: Number(process.env.SEED ?? 18), numRuns: Number(process.env.RUNS ?? volume.messageLives) },
  );
});
