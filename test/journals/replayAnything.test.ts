import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Policies, ToolContext } from '../../src/index.ts';
import { toolResult } from '../../src/index.ts';
import {
  askedTool,
  call,
  calls,
  plainTool,
  type Reply,
  say,
  scripted,
  settle,
  stillClock,
} from '../hostile/hostileAgent.ts';
import { HANG_MS, volume } from '../support/tier.ts';
import { faultyStore, recorded } from './recordedRun.ts';

/** The act of a test between two moments of quiet. */
type Act =
  | { act: 'send' | 'steer' | 'followUp' | 'resume' | 'cancel' | 'release' | 'wait' | 'pause' | 'land' | 'fail' }
  | { act: 'decide'; callId: string; approve: boolean };

const ids = ['a', 'b', 'c', 'd'];
const act: fc.Arbitrary<Act> = fc.oneof(
  fc.record({
    act: fc.constantFrom(
      'send',
      'steer',
      'followUp',
      'resume',
      'cancel',
      'release',
      'wait',
      'pause',
      'land',
      'fail' as const,
    ),
  }),
  fc.record({ act: fc.constant('decide' as const), callId: fc.constantFrom(...ids), approve: fc.boolean() }),
);
const tool = fc.constantFrom('echo', 'ask', 'slow', 'boom', 'note', 'nobody');
const reply: fc.Arbitrary<readonly string[]> = fc.array(tool, { maxLength: 3 });
const policies: fc.Arbitrary<Partial<Policies>> = fc.record({
  toolExecution: fc.constantFrom('parallel', 'sequential'),
  onPartialSuspend: fc.constantFrom('continue', 'wait'),
  decisionsDuringRound: fc.constantFrom('immediate', 'atGate'),
  queueDrain: fc.constantFrom('one', 'all'),
  whileSuspended: fc.constantFrom('followUp', 'reject'),
});
/** A cancel overtakes an append, which fails afterwards. */
const overtaken: Act[] = [{ act: 'cancel' }, { act: 'pause' }, { act: 'fail' }];
const plan = fc.record({
  replies: fc.array(reply, { minLength: 1, maxLength: 5 }),
  acts: fc.oneof(
    fc.array(act, { minLength: 1, maxLength: 14 }),
    fc.array(act, { maxLength: 4 }).map((acts): Act[] => [{ act: 'cancel' }, { act: 'pause' }, ...acts]),
  ),
  policies,
  atOnce: fc.boolean(),
  /** A plugin never answers the phase runEnd. */
  endless: fc.integer({ min: 0, max: 3 }).map((of) => of === 0),
  failing: fc.option(fc.nat(12), { nil: -1 }),
  slow: fc.option(fc.nat(8), { nil: -1 }),
});
type Plan = typeof plan extends fc.Arbitrary<infer P> ? P : never;

/** No append waits after the failing one, or the stop does. */
const failures = [true, false].map(
  (endless): Plan => ({ replies: [[]], acts: overtaken, policies: {}, atOnce: false, endless, failing: -1, slow: 0 }),
);

/** Runs the plan. Errors that the host receives do not matter here. */
async function live({ replies, acts, policies, atOnce, endless, failing, slow }: Plan) {
  const clock = stillClock();
  const gates: (() => void)[] = [];
  const appends: { land(): void; fail(error: Error): void }[] = [];
  const script = replies.map((names, turn): Reply => {
    const made = names.map((name, index) => call(ids[(turn + index) % ids.length] ?? 'a', name));
    return made.length === 0 ? say(`turn ${turn}`) : calls(...made);
  });
  const tools = [
    plainTool('echo', () => 'hi'),
    askedTool('ask'),
    plainTool('slow', () => new Promise((resolve) => gates.push(() => resolve('at last')))),
    plainTool('boom', () => Promise.reject(new Error('boom'))),
    plainTool('note', (_: unknown, { callId }: ToolContext) => toolResult.success('ok', { state: { [callId]: 1 } })),
  ];
  const store = faultyStore({
    atOnce,
    append(count) {
      if (count === failing) throw new Error('disk full');
      if (count !== slow || atOnce) return;
      return new Promise((resolve, reject) => appends.push({ land: resolve, fail: reject }));
    },
  });
  const ports = { now: clock.now, setTimer: clock.setTimer, random: () => 0.25 };
  const plugins = endless ? [{ name: 'hears', runEnd: () => new Promise<never>(() => undefined) }] : [];
  const run = await recorded({ model: scripted(script), tools, plugins, store, policies, ports });
  const { conversation } = run;
  const perform = (step: Act): void => {
    switch (step.act) {
      case 'send':
        return void conversation.send('go', conversation.status === 'active' ? { kind: 'followUp' } : {});
      case 'steer':
      case 'followUp':
        return void conversation[step.act]('more');
      case 'resume':
        return void conversation.resume();
      case 'cancel':
        return void conversation.cancel().catch(() => undefined);
      case 'decide': {
        const decision = { callId: step.callId, action: step.approve ? ('approve' as const) : ('deny' as const) };
        return void conversation.decide(decision).catch(() => undefined);
      }
      case 'release':
        return void gates.shift()?.();
      case 'land':
        return void appends.shift()?.land();
      case 'fail':
        return void appends.shift()?.fail(new Error('gone'));
      default:
    }
  };
  for (const step of [{ act: 'send' } as const, ...acts]) {
    try {
      perform(step);
    } catch {
      // The policy refused it, so nothing was delivered.
    }
    await settle();
    if (step.act === 'wait') await clock.advance(5_000);
    // Long enough for a cancel to overtake an append, and too short to abandon it.
    if (step.act === 'pause') await clock.advance(60);
  }
  for (let rest = 0; rest < 6; rest++) {
    for (const { land } of appends.splice(0)) land();
    for (const open of gates.splice(0)) open();
    await settle();
    await clock.advance(100_000);
  }
  return run;
}

test('whatever is done to a conversation, its recording replays to the same log', { timeout: HANG_MS }, async () => {
  const seen = new Set<string>();
  await fc.assert(
    fc.asyncProperty(plan, async (drawnPlan) => {
      const run = await live(drawnPlan);
      expect(run.replayed()).toBe(run.logged());
      for (const { type } of run.conversation.log()) seen.add(type);
      for (const { kind } of run.recording()) seen.add(kind);
    }),
    { seed: 7, numRuns: volume.recordings, examples: failures.map((each) => [each]) },
  );
  // The plans must cover every case, otherwise the comparison proves little.
  const everywhere = ['run-resumed', 'run-suspended', 'run-stop', 'decision', 'decision-consumed', 'state-changed'];
  const queued = ['message-queued', 'user-message', 'diagnostic'];
  expect([...seen]).toEqual(
    expect.arrayContaining([...everywhere, ...queued, 'waiting', 'landed', 'failed', 'overtaken', 'carried']),
  );
});
