/** The policy `onRestart`: the automatic acts of an opening (docs/internals/lifecycle.md, CONVERSATION). */
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Decision, type LogEntry, ModelError } from '../../src/index.ts';
import { type Bench, type BenchOptions, bench, entry, only, storeWith, story } from '../support/agentBench.ts';
import { asks, echoTool } from '../support/scenarioTools.ts';
import { call, deaf } from '../support/scriptedReplies.ts';

const args = { m: 'a' };
const replay = { onRestart: 'replayDecided' } as const;
const approve = (callId: string): Decision => ({ callId, action: 'approve' });

/** A process dies while c1 and c2 wait, and another one opens the log. */
async function reopened(decisions: readonly Decision[], more: BenchOptions = {}): Promise<Bench & { ran: string[] }> {
  const ask = echoTool('ask');
  const options = { tools: [ask.tool], plugins: [asks().plugin] };
  const replies = [[call('c1', 'ask', args), call('c2', 'ask', args)]];
  const before = await bench({ ...options, replies });
  await before.conversation.send('hi').result;
  for (const decision of decisions) expect(await before.conversation.decide(decision)).toBe('applied');
  const store = await storeWith(before.conversation.log());
  const on = await bench({ ...options, replies: ['done'], policies: replay, ...more, store });
  onTestFinished(() => on.agent.close());
  return { ...on, ran: ask.ran };
}

describe('onRestart replayDecided', () => {
  it('decisions are applied at the first gate of a run that starts automatically', async () => {
    const on = await reopened([approve('c1'), { callId: 'c2', action: 'deny', reason: 'no' }]);
    const log = on.conversation.log();
    const stop = await entry(on.conversation, 'run-stop');
    expect(stop.reason).toBe('completed');
    expect(on.ran).toEqual(['c1']);
    expect(only(on.conversation.log(log.length), 'run-resumed')).toEqual([]);
    const resumed = on.conversation.log().findIndex(({ type }) => type === 'run-resumed');
    expect(only(on.conversation.log(resumed), 'tool-result', 'decision-consumed', 'checkpoint', 'run-stop')).toEqual([
      'tool-result c1 succeeded',
      'decision-consumed c1 1',
      'tool-result c2 failed denied',
      'decision-consumed c2 1',
      'checkpoint ToolResultsCommitted',
      'checkpoint AssistantTurnCommitted',
      'run-stop completed end_turn',
      'checkpoint RunFinished',
    ]);
    expect(on.model.calls).toHaveLength(1);
  });

  it('the conversation is active once it is open, and resume() returns that run', async () => {
    const on = await reopened([approve('c1'), approve('c2')], { replies: [deaf()] });
    expect(on.conversation.status).toBe('active');
    const run = on.conversation.resume();
    await on.clock.advance(0);
    expect(only(on.conversation.log(), 'run-resumed')).toHaveLength(1);
    await run.cancel();
    expect((await run.result).calls.map(({ callId, outcome }) => [callId, outcome])).toEqual([
      ['c1', 'succeeded'],
      ['c2', 'succeeded'],
    ]);
  });

  it('decided calls are applied while others are open, and the run continues like a resumed one', async () => {
    const on = await reopened([approve('c2')]);
    await entry(on.conversation, 'run-suspended', ({ seq }) => seq > 12);
    expect(on.ran).toEqual(['c2']);
    expect(on.conversation.status).toBe('waiting');
    expect(on.conversation.pending.map(({ callId }) => callId)).toEqual(['c1']);
  });

  it('nothing happens if no call is decided', async () => {
    const on = await reopened([]);
    const before = story(on.conversation.log());
    await on.clock.advance(10);
    expect(on.conversation.status).toBe('waiting');
    expect(story(on.conversation.log())).toEqual(before);
    expect(on.model.calls).toHaveLength(0);
  });

  it('each decision is applied once, however often the conversation is opened', async () => {
    const first = await reopened([approve('c1')]);
    await entry(first.conversation, 'run-suspended', ({ seq }) => seq > 12);
    const store = await storeWith(first.conversation.log());
    const ask = echoTool('ask');
    const again = await bench({ tools: [ask.tool], plugins: [asks().plugin], policies: replay, store });
    await again.clock.advance(10);
    expect(again.conversation.status).toBe('waiting');
    expect(again.model.calls).toHaveLength(0);
    expect([...first.ran, ...ask.ran]).toEqual(['c1']);
  });
});

it('onRestart idle: a durable decision waits for resume()', async () => {
  const on = await reopened([approve('c1'), approve('c2')], { policies: { onRestart: 'idle' } });
  await on.clock.advance(10);
  expect(on.conversation.status).toBe('waiting');
  expect(on.ran).toEqual([]);
  expect((await on.conversation.resume().result).text).toBe('done');
  expect(on.ran).toEqual(['c1', 'c2']);
});

describe('onRestart resume', () => {
  const policies = { onRestart: 'resume' } as const;
  /** A process dies while its model answers the round of c1. */
  async function cutOff(end: (on: Bench) => Promise<unknown> | unknown = () => undefined) {
    const echo = echoTool();
    const options = { tools: [echo.tool] };
    const before = await bench({ ...options, replies: [[call('c1', 'echo', args)], deaf()] });
    void before.conversation.send('hi');
    await entry(before.conversation, 'checkpoint', ({ boundary }) => boundary === 'ToolResultsCommitted');
    await end(before);
    return { log: before.conversation.log(), options };
  }

  it('it continues a cycle that a crash interrupted when it is opened', async () => {
    const { log, options } = await cutOff();
    const on = await bench({ ...options, policies, replies: ['done'], store: await storeWith(log) });
    expect(on.conversation.status).toBe('active');
    expect((await entry(on.conversation, 'run-stop', ({ reason }) => reason === 'completed')).cause).toBe('end_turn');
    expect(only(on.conversation.log(log.length), 'run-stop', 'run-resumed', 'agent-output')).toEqual([
      'run-stop interrupted crash',
      'run-resumed',
      'agent-output done',
      'run-stop completed end_turn',
    ]);
    const again = await bench({ ...options, policies, store: await storeWith(on.conversation.log()) });
    await again.clock.advance(10);
    expect(again.conversation.status).toBe('idle');
    expect(again.model.calls).toHaveLength(0);
  });

  it('it also does so if an earlier opening only wrote its stop', async () => {
    const { log, options } = await cutOff();
    const idle = await bench({ ...options, store: await storeWith(log) });
    expect(idle.conversation.status).toBe('idle');
    const on = await bench({
      ...options,
      policies,
      replies: ['done'],
      store: await storeWith(idle.conversation.log()),
    });
    await entry(on.conversation, 'run-stop', ({ reason }) => reason === 'completed');
    expect(on.model.calls).toHaveLength(1);
  });

  it.each<[string, (on: Bench) => Promise<unknown>]>([
    ['was cancelled', ({ conversation }) => conversation.cancel()],
    ['was closed', ({ agent }) => agent.close()],
  ])('it never continues a cycle that %s', async (_, end) => {
    const { log, options } = await cutOff(end);
    const on = await bench({ ...options, policies, store: await storeWith(log) });
    await on.clock.advance(10);
    expect(on.conversation.status).toBe('idle');
    expect(on.conversation.log()).toEqual(log);
  });

  it('it never continues a cycle that has ended', async () => {
    const before = await bench({ replies: [new ModelError({ code: 'auth' })] });
    expect((await before.conversation.send('hi').result).termination).toBe('Error');
    const log = before.conversation.log();
    const on = await bench({ policies, store: await storeWith(log) });
    await on.clock.advance(10);
    expect(on.conversation.log()).toEqual(log);
  });

  it('it applies the decisions of a waiting cycle, and nothing if there are none', async () => {
    const decided = await reopened([approve('c1'), approve('c2')], { policies });
    await entry(decided.conversation, 'run-stop');
    expect(decided.ran).toEqual(['c1', 'c2']);
    const open = await reopened([], { policies });
    await open.clock.advance(10);
    expect(open.conversation.status).toBe('waiting');
  });
});

describe('a conversation with a history', () => {
  it.each([[5], ['hi'], [{}]])('a history %o that is not a list is refused', async (history) => {
    const on = await bench();
    const opened = on.agent.open('n', { history: history as never });
    await expect(opened).rejects.toMatchObject({ code: 'configuration', message: expect.stringContaining('list') });
    expect((await on.agent.list()).map(({ id }) => id)).not.toContain('n');
  });
});

it('a run-stop with a reason of a later version ended its cycle as an error, and the next message starts a new one', async () => {
  const before = await bench({ replies: ['ok'] });
  await before.conversation.send('hi').result;
  const log = before.conversation
    .log()
    .map((each) => (each.type === 'run-stop' ? { ...each, reason: 'halted' } : each));
  const on = await bench({ replies: ['again'], store: await storeWith(log as LogEntry[]) });
  expect(on.conversation.log()).toHaveLength(log.length);
  expect(on.conversation.status).toBe('idle');
  expect(on.conversation.view().cycles[0]?.stop).toEqual({ reason: 'error', cause: 'end_turn' });
  expect((await on.conversation.send('more').result).text).toBe('again');
});
