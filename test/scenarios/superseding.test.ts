/** The policy `whileSuspended`: a message instead of a decision. */
import { describe, expect, it } from 'vitest';
import { type AgentBusyError, RunchartError } from '../../src/index.ts';
import { type Bench, type BenchOptions, bench, only, restart, resultText, story } from '../support/agentBench.ts';
import { asks, echoTool } from '../support/scenarioTools.ts';
import { call, deaf, lines } from '../support/scriptedReplies.ts';
import { type TroubledStore, troubledStore } from '../support/troubledStore.ts';

const args = { m: 'a' };
const two = [call('c1', 'ask', args), call('c2', 'ask', args)];
const policies = { whileSuspended: 'denyAndRun' } as const;

/** A conversation that waits for a decision on c1 and c2. */
async function waiting(more: BenchOptions = {}): Promise<Bench & { ran: string[] }> {
  const ask = echoTool('ask');
  const on = await bench({
    replies: [two, 'instead', 'more'],
    tools: [ask.tool],
    plugins: [asks().plugin],
    policies,
    ...more,
  });
  await on.clock.until(on.conversation.send('hi').result);
  expect(on.conversation.status).toBe('waiting');
  return { ...on, ran: ask.ran };
}
const stopsThat = (entries: readonly { type: string; cause?: string }[]): boolean =>
  entries.some(({ type, cause }) => type === 'run-stop' && cause === 'superseded');

describe('whileSuspended denyAndRun', () => {
  it('B19: the calls are denied, the cycle is stopped as superseded, and the message is a new request, in this order', async () => {
    const on = await waiting();
    const from = on.conversation.log().length;
    const run = on.conversation.send('never mind');
    expect(on.conversation.status).toBe('active');
    expect(await run.result).toMatchObject({ termination: 'NaturalEnd', text: 'instead', turns: 1, pending: [] });
    expect(story(on.conversation.log(from))).toEqual([
      'tool-result c1 failed denied',
      'tool-result c2 failed denied',
      'run-stop interrupted superseded',
      'checkpoint RunFinished',
      'run-started',
      'user-message direct never mind',
      'checkpoint UserMessage',
      'agent-output instead',
      'model-reply',
      'checkpoint AssistantTurnCommitted',
      'run-stop completed end_turn',
      'checkpoint RunFinished',
    ]);
    expect(on.ran).toEqual([]);
    expect(on.conversation.pending).toEqual([]);
    expect(on.conversation.status).toBe('idle');
    const { cycles } = on.conversation.view();
    expect(cycles.map(({ root, stop, waiting: ids }) => [root.kind, stop, ids])).toEqual([
      ['direct', { reason: 'interrupted', cause: 'superseded' }, []],
      ['direct', { reason: 'completed', cause: 'end_turn' }, []],
    ]);
  });

  it('the model receives each denial in its place, with its reason, before the message', async () => {
    const on = await waiting();
    await on.conversation.send('never mind').result;
    const shown = lines(on.model.calls[1]?.messages ?? []);
    expect(shown.map((line) => line.split(' ')[0])).toEqual(['user', 'assistant', 'c1!', 'c2!', 'user']);
    expect(resultText(on.conversation.log(), 'c1')).toMatch(/denied.*new message.*not run/);
  });

  it('a durable decision that was not applied is replaced too, and later ones are stale', async () => {
    const on = await waiting();
    expect(await on.conversation.decide({ callId: 'c1', action: 'approve' })).toBe('applied');
    await on.conversation.send('never mind').result;
    expect(on.ran).toEqual([]);
    expect(only(on.conversation.log(), 'tool-result')).toEqual([
      'tool-result c1 failed denied',
      'tool-result c2 failed denied',
    ]);
    expect(await on.conversation.decide({ callId: 'c1', action: 'approve' })).toBe('stale');
    expect(await on.conversation.decide({ callId: 'c2', action: 'approve' })).toBe('stale');
  });

  it('calls that kept their turn after a suspended one are skipped', async () => {
    const on = await waiting({ policies: { ...policies, toolExecution: 'sequential' } });
    await on.conversation.send('never mind').result;
    expect(only(on.conversation.log(), 'tool-result')).toEqual([
      'tool-result c1 failed denied',
      'tool-result c2 cancelled skipped',
    ]);
  });

  it('steer and followUp are queued as usual; the queue does not delay the message and is promoted after it', async () => {
    const on = await waiting({ policies: { ...policies, limits: { queue: 1 } } });
    const later = on.conversation.followUp('later');
    expect(on.conversation.status).toBe('waiting');
    await on.conversation.send('now').result;
    expect(await later.delivered).toBe('delivered');
    expect(only(on.conversation.log(), 'user-message')).toEqual([
      'user-message direct hi',
      'user-message direct now',
      'user-message followUp later',
    ]);
  });

  it('a message with an aborted signal denies nothing', async () => {
    const on = await waiting();
    const from = on.conversation.log().length;
    const run = on.conversation.send('never mind', { signal: AbortSignal.abort() });
    expect((await run.result).termination).toBe('Cancelled');
    expect(on.conversation.log(from)).toEqual([]);
    expect(on.conversation.status).toBe('waiting');
  });

  it('it works the same after a restart', async () => {
    const before = await waiting();
    const on = await restart(before, { replies: ['instead'], tools: [echoTool('ask').tool], policies });
    expect((await on.conversation.send('never mind').result).text).toBe('instead');
    expect(only(on.conversation.log(), 'run-stop')).toEqual([
      'run-stop interrupted superseded',
      'run-stop completed end_turn',
    ]);
  });
});

describe('a failing store while a message replaces a decision', () => {
  const stores = [{ synchronous: true }, { synchronous: false }];

  it.each(stores)('nothing is lost: the cycle continues to wait, with its decisions (%o)', async (how) => {
    const store = troubledStore(how);
    const on = await waiting({ store, replies: [two, 'decided'] });
    await on.conversation.decide({ callId: 'c1', action: 'approve' });
    const before = story(on.conversation.log());
    store.trouble((entries) => (stopsThat(entries) ? 'failed' : 'stored'));
    const run = on.conversation.send('never mind');
    expect(await run.result).toMatchObject({ termination: 'Error', error: { code: 'store' } });
    expect(story(on.conversation.log())).toEqual(before);
    expect(on.conversation.status).toBe('waiting');
    expect(on.conversation.queue).toEqual([]);
    store.trouble(() => 'stored');
    expect(await on.conversation.decide({ callId: 'c2', action: 'approve' })).toBe('applied');
    expect((await on.conversation.resume().result).text).toBe('decided');
    expect(on.ran).toEqual(['c1', 'c2']);
  });

  async function slow(more: BenchOptions = {}) {
    const store: TroubledStore = troubledStore({ synchronous: false });
    const on = await waiting({ store, ...more });
    const held: { release(): void } = { release: () => undefined };
    const gone = new Promise<void>((resolve) => {
      held.release = resolve;
    });
    store.trouble((entries) => (stopsThat(entries) ? { after: gone } : 'stored'));
    return { ...on, held };
  }

  it('the run of the message receives later acts: a steer, a followUp, a late decision', async () => {
    const on = await slow({ replies: [two, 'instead', 'and then'] });
    const run = on.conversation.send('never mind');
    await on.clock.advance(0);
    expect(on.conversation.status).toBe('active');
    const steer = on.conversation.steer('S');
    const followUp = on.conversation.send('F', { kind: 'followUp' });
    expect(() => on.conversation.send('plain')).toThrow(/agent is busy/);
    const late = on.conversation.decide({ callId: 'c1', action: 'approve' });
    on.held.release();
    expect((await run.result).text).toBe('instead');
    expect(await steer.delivered).toBe('delivered');
    expect((await followUp.result).text).toBe('and then');
    expect(await late).toBe('stale');
    expect(lines(on.model.calls[1]?.messages ?? []).slice(-2)).toEqual(['user never mind', 'user S']);
  });

  it.each(['run', 'conversation'] as const)(
    'a cancel of the %s meanwhile returns the message, and the cycle still ends',
    async (which) => {
      const on = await slow({ replies: [two, deaf()] });
      const run = on.conversation.send('never mind');
      await on.clock.advance(0);
      const cancelled = which === 'run' ? run.cancel() : on.conversation.cancel();
      // A cancel waits briefly for a slow store before it overtakes the append.
      await on.clock.advance(60);
      expect(on.conversation.status).toBe('cancelling');
      let thrown: unknown;
      try {
        on.conversation.send('x');
      } catch (error) {
        thrown = error;
      }
      expect(RunchartError.isRunchartError(thrown) && (thrown as AgentBusyError).code).toBe('cancellation_in_progress');
      on.held.release();
      await on.clock.until(cancelled);
      expect((await run.result).termination).toBe('Cancelled');
      expect(only(on.conversation.log(), 'tool-result', 'run-stop', 'user-message')).toEqual([
        'user-message direct hi',
        'tool-result c1 failed denied',
        'tool-result c2 failed denied',
        'run-stop interrupted superseded',
      ]);
      expect(on.model.calls).toHaveLength(1);
      expect(on.conversation.pending).toEqual([]);
      expect(on.conversation.status).toBe('idle');
    },
  );

  it('a cancel on a silent store ends in time, and reports that the message could not be stored', async () => {
    const on = await slow({ replies: [two, deaf()] });
    const run = on.conversation.send('never mind');
    await on.clock.advance(0);
    expect(await on.clock.until(on.conversation.cancel())).toBeLessThanOrEqual(100);
    expect(await run.result).toMatchObject({ termination: 'Error', error: { code: 'store' } });
    // If the append succeeds later, the cycle has ended.
    on.held.release();
    await on.clock.advance(1);
    expect(only(on.conversation.log(), 'run-stop')).toEqual(['run-stop interrupted superseded']);
    expect(on.conversation.status).toBe('idle');
    expect(on.conversation.pending).toEqual([]);
  });

  it('a queued followUp is promoted after the message was returned', async () => {
    const on = await slow({ replies: [two, 'and then'] });
    const run = on.conversation.send('never mind');
    await on.clock.advance(0);
    const later = on.conversation.send('F', { kind: 'followUp' });
    const cancelled = run.cancel();
    await on.clock.advance(60);
    on.held.release();
    await on.clock.until(cancelled);
    expect((await run.result).termination).toBe('Cancelled');
    expect((await later.result).text).toBe('and then');
  });
});
