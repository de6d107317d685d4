/** Acts of the host that coincide: inside subscribers, in one tick, and at the end of a run. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type Decision, defineTool, type Run, type RunResult } from '../../src/index.ts';
import { bench, entry, only, storeWith } from '../support/agentBench.ts';
import { asks, echoTool, gateTool } from '../support/scenarioTools.ts';
import { call, during, lines } from '../support/scriptedReplies.ts';
import { troubledStore } from '../support/troubledStore.ts';
import { VirtualClock } from '../support/virtualClock.ts';

const args = { m: 'a' };
const approve = (callId: string): Decision => ({ callId, action: 'approve' });

/** A conversation that waits for c1. */
async function waiting(replies: readonly string[], plugins = [asks().plugin]) {
  const ask = echoTool('ask');
  const on = await bench({ replies: [[call('c1', 'ask', args)], ...replies], tools: [ask.tool], plugins });
  await on.conversation.send('hi').result;
  return { ...on, ask };
}

/** The same on a store whose appends can be slowed down. */
async function waitingOnSlowStore() {
  const clock = new VirtualClock();
  const store = troubledStore({ clock });
  const tools = [echoTool('ask').tool];
  const on = await bench({
    clock,
    store,
    tools,
    plugins: [asks().plugin],
    replies: [[call('c1', 'ask', args)], 'done'],
  });
  await on.conversation.send('hi').result;
  return { ...on, store };
}

describe('resume()', () => {
  it('without pending work it ends naturally, with no entry and no model call', async () => {
    const on = await bench({ replies: ['one'] });
    const nothing = await on.conversation.resume().result;
    expect(nothing).toMatchObject({ termination: 'NaturalEnd', text: '', turns: 0 });
    await on.conversation.send('hi').result;
    const before = on.conversation.log().length;
    expect((await on.conversation.resume().result).termination).toBe('NaturalEnd');
    expect(on.conversation.log()).toHaveLength(before);
    expect(on.model.calls).toHaveLength(1);
  });

  it('during a run it returns the active run', async () => {
    const gate = gateTool();
    const on = await bench({ replies: [[call('c1', 'gate')], 'done'], tools: [gate.tool] });
    const run = on.conversation.send('hi');
    await gate.begun('c1');
    expect(on.conversation.resume()).toBe(run);
    gate.release('c1');
    await run.result;
  });

  it('two calls inside one subscriber return one run', async () => {
    const { conversation } = await waiting(['done']);
    const runs: Run[] = [];
    conversation.log$(conversation.log().length).subscribe(({ type }) => {
      if (type === 'decision') runs.push(conversation.resume(), conversation.resume());
    });
    await conversation.decide(approve('c1'));
    const results = await Promise.all(runs.map(({ result }) => result));
    expect(new Set(runs).size).toBe(1);
    expect(results.map(({ text }) => text)).toEqual(['done', 'done']);
    expect(only(conversation.log(), 'run-resumed')).toHaveLength(1);
  });

  it('a resume and a cancel inside one subscriber both end, whichever wins', async () => {
    const { conversation } = await waiting(['done']);
    const results: Promise<RunResult>[] = [];
    const cancels: Promise<void>[] = [];
    conversation.log$(conversation.log().length).subscribe(({ type }) => {
      if (type !== 'decision') return;
      results.push(conversation.resume().result);
      cancels.push(conversation.cancel());
    });
    await conversation.decide(approve('c1'));
    await Promise.all(cancels);
    const [result] = await Promise.all(results);
    expect(result?.termination).toBe('Cancelled');
    expect(conversation.status).toBe('idle');
    expect(only(conversation.log(), 'tool-result', 'run-stop')).toEqual([
      'tool-result c1 cancelled cancelled',
      'run-stop interrupted cancelled',
    ]);
  });

  it('a resume directly after an unanswered cancel finds nothing to do', async () => {
    const { conversation, clock, store } = await waitingOnSlowStore();
    store.trouble(() => ({ afterMs: 20 }));
    const cancelled = conversation.cancel();
    const run = conversation.resume();
    await clock.until(Promise.all([cancelled, run.result]));
    expect(await run.result).toMatchObject({ termination: 'NaturalEnd', turns: 0 });
    expect(only(conversation.log(), 'run-resumed')).toEqual([]);
    expect(conversation.status).toBe('idle');
  });

  it('a plain message directly after a resume in one subscriber is refused, as during any run', async () => {
    const { conversation } = await waiting(['done']);
    let thrown: unknown;
    conversation.log$(conversation.log().length).subscribe(({ type }) => {
      if (type !== 'decision') return;
      conversation.resume();
      try {
        conversation.send('too early');
      } catch (error) {
        thrown = error;
      }
    });
    await conversation.decide(approve('c1'));
    expect(String(thrown)).toContain('agent is busy');
    expect((await conversation.resume().result).termination).toBe('NaturalEnd');
  });
});

describe('a decision at the end of a run', () => {
  it('a decision that arrives while the suspended run ends is applied without resume(), since it was accepted during the run', async () => {
    const hook = asks();
    let decided: Promise<unknown> | undefined;
    const late = {
      name: 'decides late',
      runEnd: async () => {
        decided ??= conversation.decide(approve('c1'));
        await decided;
      },
    };
    const ask = echoTool('ask');
    const { conversation } = await bench({
      replies: [[call('c1', 'ask', args)], 'done'],
      tools: [ask.tool],
      plugins: [hook.plugin, late],
    });
    const first = await conversation.send('hi').result;
    expect(first.termination).toBe('Suspended');
    await entry(conversation, 'run-stop');
    expect(await decided).toBe('applied');
    expect(ask.ran).toEqual(['c1']);
    expect(conversation.status).toBe('idle');
    expect(conversation.view().cycles).toMatchObject([{ stop: { reason: 'completed' }, waiting: [] }]);
  });

  it('RUN-9: if a decision is applied during a reply with text only, the model is called again with the result', async () => {
    const ask = echoTool('ask');
    const on = await bench({
      replies: [
        [call('c1', 'ask', args), call('c2', 'echo', args)],
        during(async () => {
          await on.conversation.decide(approve('c1'));
          await entry(on.conversation, 'decision-consumed');
        }, 'while it was decided'),
        'with the result',
      ],
      tools: [ask.tool, echoTool().tool],
      plugins: [asks().plugin],
    });
    const result = await on.conversation.send('hi').result;
    expect(result).toMatchObject({ termination: 'NaturalEnd', text: 'with the result', pending: [] });
    expect(lines(on.model.calls[2]?.messages ?? []).slice(1)).toEqual([
      'assistant +c1 +c2',
      'c1 {"m":"a"}',
      'c2 {"m":"a"}',
      'assistant while it was decided',
      expect.stringMatching(/^user Results of earlier calls came in/),
    ]);
    expect(only(on.conversation.log(), 'continuation')).toEqual(['continuation results']);
  });
});

describe('a call that the host retries', () => {
  it('the call may suspend again, is pending like any other, and accepts a decision', async () => {
    let runs = 0;
    const tool = defineTool({
      name: 'pay',
      description: 'Pays.',
      parameters: z.object({}),
      execute() {
        runs += 1;
        return runs === 1 ? new Promise(() => undefined) : 'paid';
      },
    });
    const before = await bench({ replies: [[call('c1', 'pay')]], tools: [tool] });
    before.conversation.send('hi');
    await entry(before.conversation, 'tool-started');
    const store = await storeWith(before.conversation.log());
    const plugins = [asks('pay', { reason: 'sure?' }).plugin];
    const { conversation } = await bench({ replies: ['done'], tools: [tool], store, plugins });
    await conversation.settle('c1', { retry: true });
    expect((await conversation.resume().result).termination).toBe('Suspended');
    expect(conversation.pending).toMatchObject([{ callId: 'c1', reason: 'sure?', suspension: 1 }]);
    expect(await conversation.decide(approve('c1'))).toBe('applied');
    expect((await conversation.resume().result).text).toBe('done');
    expect(lines(conversation.messages())[2]).toBe('c1 paid');
  });
});

describe('close()', () => {
  it('a close inside a subscriber ends the run, and later acts are refused', async () => {
    const gate = gateTool();
    const on = await bench({ replies: [[call('c1', 'gate')], 'never'], tools: [gate.tool] });
    let closed: Promise<void> | undefined;
    on.conversation.log$().subscribe(({ type }) => {
      if (type === 'tool-started') closed = on.conversation.close();
    });
    const run = on.conversation.send('hi');
    expect((await run.result).termination).toBe('Cancelled');
    await closed;
    expect(() => on.conversation.send('more')).toThrow(/closed/);
    expect(await on.conversation.resume().result).toMatchObject({ termination: 'Error', cause: 'closed' });
    expect(only(on.conversation.log(), 'run-stop')).toEqual(['run-stop interrupted cancelled']);
    expect(gate.started).toEqual([]);
    expect(on.alive()).toEqual([]);
    expect(on.clock.waiting).toBe(0);
  });

  it('a close of a waiting conversation keeps the cycle suspended for the next opening', async () => {
    const on = await waiting([]);
    const receipt = on.conversation.followUp('later');
    await on.agent.close();
    expect(await receipt.delivered).toBe('returned');
    const { conversation } = await bench({ store: on.store, replies: ['done'], tools: [on.ask.tool] });
    expect(conversation.status).toBe('waiting');
    expect(conversation.pending.map(({ callId }) => callId)).toEqual(['c1']);
    expect(conversation.queue).toEqual([]);
  });
});
