/** A run that ends early writes a true result for each of its calls (docs/internals/lifecycle.md, Cancellation). */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type Decision, defineTool, type LogEntry, type Plugin, toolResult } from '../../src/index.ts';
import { bench, entry, only, resultText, storeWith } from '../support/agentBench.ts';
import { asks, boom, echoTool, gateTool } from '../support/scenarioTools.ts';
import { call, type Reply } from '../support/scriptedReplies.ts';
import { slowListener } from '../support/slowListener.ts';
import { troubledStore } from '../support/troubledStore.ts';

const args = { m: 'a' };
const question = defineTool({
  name: 'question',
  description: 'Asks.',
  parameters: z.object({}),
  execute: () => toolResult.pending({ reason: 'input' }),
});
/** A round whose calls have all ended, while a plugin still handles them. */
async function heardOf(reply: Reply, wanted: number, limits: { runMs?: number } = {}) {
  const { plugin, begun } = slowListener(wanted);
  const gate = gateTool();
  const on = await bench({
    replies: [reply, 'next'],
    tools: [echoTool().tool, boom, gate.tool],
    plugins: [plugin],
    policies: { limits },
  });
  const run = on.conversation.send('hi');
  await begun;
  return { ...on, run };
}

describe('a run that is interrupted while plugins handle its results', () => {
  const three = [call('c1', 'echo', args), call('c2', 'boom'), call('c3', 'nothing')];

  it('it keeps the results of calls that succeeded, failed, or were refused before they started', async () => {
    const { conversation, run } = await heardOf(three, 3);
    await conversation.cancel();
    expect(only(conversation.log(), 'tool-result', 'run-stop')).toEqual([
      'tool-result c1 succeeded',
      'tool-result c2 failed error',
      'tool-result c3 failed unknown_tool',
      'run-stop interrupted cancelled',
    ]);
    expect(resultText(conversation.log(), 'c1')).toBe(JSON.stringify(args));
    expect(resultText(conversation.log(), 'c3')).toContain('nothing');
    expect((await run.result).calls.map(({ outcome }) => outcome)).toEqual(['succeeded', 'failed', 'failed']);
  });

  it('a call that still runs beside them has the result that it may have had an effect', async () => {
    const { conversation } = await heardOf([call('c1', 'echo', args), call('c2', 'gate')], 1);
    await conversation.cancel();
    expect(only(conversation.log(), 'tool-result')).toEqual([
      'tool-result c1 succeeded',
      'tool-result c2 cancelled cancelled',
    ]);
    expect(resultText(conversation.log(), 'c2')).toContain('may have had an effect');
  });

  it('it keeps them after a time-out too', async () => {
    const { clock, conversation, run } = await heardOf(three, 3, { runMs: 1000 });
    await clock.advance(1000);
    expect((await run.result).cause).toBe('timeout');
    expect(only(conversation.log(), 'tool-result')).toHaveLength(3);
    expect(only(conversation.log(), 'tool-result')[0]).toBe('tool-result c1 succeeded');
  });

  it('a call that was suspended before is cancelled, and no longer waits', async () => {
    const { plugin, begun } = slowListener(1);
    const { conversation } = await bench({ replies: [[call('c1', 'question')]], tools: [question], plugins: [plugin] });
    conversation.send('hi');
    await begun;
    await conversation.cancel();
    expect(only(conversation.log(), 'tool-suspended', 'tool-result')).toEqual([
      'tool-suspended c1 1',
      'tool-result c1 cancelled cancelled',
    ]);
  });
});

describe('a replay that is interrupted while plugins handle its result', () => {
  async function cutReplay(decision: Decision, limits: { runMs?: number } = {}) {
    const { plugin, begun } = slowListener(2, 1);
    const paid: unknown[] = [];
    const pay = defineTool({
      name: 'pay',
      description: 'Pays.',
      parameters: z.object({}),
      needsApproval: true,
      execute: () => paid.push('once') && 'paid',
    });
    const on = await bench({
      replies: [[call('c1', 'pay')], 'next'],
      tools: [pay],
      plugins: [plugin],
      policies: { limits },
    });
    const { conversation } = on;
    await conversation.send('hi').result;
    await conversation.decide(decision);
    const run = conversation.resume();
    await begun;
    return { ...on, run, paid };
  }

  it('it keeps the result of a call that was approved and has run (RES-6)', async () => {
    const { conversation, paid } = await cutReplay({ callId: 'c1', action: 'approve' });
    await conversation.cancel();
    expect(only(conversation.log(), 'tool-result', 'decision-consumed', 'diagnostic', 'run-stop')).toEqual([
      'tool-result c1 succeeded',
      'decision-consumed c1 1',
      'run-stop interrupted cancelled',
    ]);
    expect([resultText(conversation.log(), 'c1'), paid]).toEqual(['paid', ['once']]);
  });

  it('a denied call has the result denied, not that it may have had an effect', async () => {
    const { conversation, paid } = await cutReplay({ callId: 'c1', action: 'deny', reason: 'too dear' });
    await conversation.cancel();
    expect(only(conversation.log(), 'tool-result')[0]).toBe('tool-result c1 failed denied');
    expect(resultText(conversation.log(), 'c1')).toContain('too dear');
    expect(paid).toEqual([]);
  });

  it('it keeps the result after the time-out of the run too', async () => {
    const { clock, conversation, run } = await cutReplay({ callId: 'c1', action: 'approve' }, { runMs: 1000 });
    await clock.advance(1000);
    expect((await run.result).cause).toBe('timeout');
    expect(only(conversation.log(), 'tool-result')[0]).toBe('tool-result c1 succeeded');
  });
});

describe('a call that never started', () => {
  const never = /effect|may have run|unknown/;
  /** A plugin whose check of the `named` calls never ends. */
  const stuck = (named: string) => {
    let begin: () => void = () => {};
    const begun = new Promise<void>((resolve) => {
      begin = resolve;
    });
    const plugin: Plugin = {
      name: 'stuck',
      beforeToolExecute: ({ call: { name } }) => {
        if (name !== named) return undefined;
        begin();
        return new Promise(() => undefined);
      },
    };
    return { plugin, begun };
  };

  it('a cancel before its gate does not report a possible effect', async () => {
    const { plugin, begun } = stuck('echo');
    const echo = echoTool();
    const gate = gateTool();
    const replies = [[call('c1', 'echo', args), call('c2', 'gate')]];
    const { conversation } = await bench({ replies, tools: [echo.tool, gate.tool], plugins: [plugin] });
    conversation.send('hi');
    await begun;
    await gate.begun('c2');
    await conversation.cancel();
    expect(echo.ran).toEqual([]);
    expect(resultText(conversation.log(), 'c1')).toMatch(/not run/);
    expect(resultText(conversation.log(), 'c1')).not.toMatch(never);
    expect(resultText(conversation.log(), 'c2')).toMatch(/may have had an effect/);
  });

  it.each(['decided', 'undecided'])(
    'a cancel while it waits for approval does not report a possible effect either, %s',
    async (which) => {
      const ask = echoTool('ask');
      const replies = [[call('c1', 'ask', args)]];
      const { conversation } = await bench({ replies, tools: [ask.tool], plugins: [asks().plugin] });
      await conversation.send('hi').result;
      if (which === 'decided') await conversation.decide({ callId: 'c1', action: 'approve' });
      await conversation.cancel();
      expect(only(conversation.log(), 'tool-result')).toEqual(['tool-result c1 cancelled cancelled']);
      expect(resultText(conversation.log(), 'c1')).not.toMatch(never);
    },
  );

  it('a tool that suspended itself has run, and may have had an effect', async () => {
    const { conversation } = await bench({ replies: [[call('c1', 'question')]], tools: [question] });
    await conversation.send('hi').result;
    await conversation.cancel();
    expect(resultText(conversation.log(), 'c1')).toMatch(/may have had an effect/);
  });

  it('a tool whose suspension could not be stored may have had an effect too', async () => {
    const store = troubledStore();
    const ask = echoTool('ask');
    store.trouble((entries) => (entries.some(({ type }) => type === 'tool-suspended') ? 'failed' : 'stored'));
    const replies = [[call('c1', 'ask', args)]];
    const { conversation } = await bench({ replies, tools: [ask.tool], plugins: [asks().plugin], store });
    expect((await conversation.send('hi').result).cause).toBe('store');
    expect(only(conversation.log(), 'tool-result')).toEqual(['tool-result c1 cancelled skipped']);
    expect(conversation.unsettled).toEqual([]);
  });
});

describe('a decision for a suspended call', () => {
  const codes = (log: readonly LogEntry[]) => log.flatMap((each) => (each.type === 'diagnostic' ? [each.code] : []));
  const approve: Decision = { callId: 'c1', action: 'approve' };
  const gatedCalls = () => {
    const gate = gateTool();
    const replies = [[call('c1', 'ask', args), call('c2', 'gate')]];
    return { gate, options: { replies, tools: [echoTool('ask').tool, gate.tool], plugins: [asks().plugin] } };
  };

  it.each(['cancel', 'time'])(
    'it is not reported as expired if its run is interrupted before its gate (%s)',
    async (how) => {
      const { gate, options } = gatedCalls();
      const policies = { decisionsDuringRound: 'atGate', limits: { runMs: 1000 } } as const;
      const { clock, conversation } = await bench({ ...options, policies });
      conversation.send('hi');
      await gate.begun('c2');
      await entry(conversation, 'tool-suspended');
      expect(await conversation.decide(approve)).toBe('applied');
      if (how === 'cancel') await conversation.cancel();
      else await clock.advance(1000);
      expect(only(conversation.log(), 'tool-result')).toHaveLength(2);
      expect(codes(conversation.log())).toEqual([]);
    },
  );

  it('it is not reported as expired if its replay is interrupted', async () => {
    const { plugin, begun } = slowListener(1, 1);
    const { gate, options } = gatedCalls();
    const { conversation } = await bench({ ...options, plugins: [asks().plugin, plugin] });
    conversation.send('hi');
    await gate.begun('c2');
    await entry(conversation, 'tool-suspended');
    expect(await conversation.decide(approve)).toBe('applied');
    gate.release('c2');
    await begun;
    await conversation.cancel();
    // The interrupted replay may have emitted something in the meantime.
    expect(codes(conversation.log()).filter((code) => code !== 'late_result')).toEqual([]);
  });

  it('a decision for a later suspension that was never reached is not reported as expired', async () => {
    const gate = gateTool('ask');
    const options = { replies: [[call('c1', 'ask')], 'done'], tools: [gate.tool], plugins: [asks().plugin] };
    const { conversation } = await bench(options);
    await conversation.send('hi').result;
    await conversation.decide(approve);
    const run = conversation.resume();
    await gate.begun('c1');
    expect(await conversation.decide({ callId: 'c1', suspension: 2, action: 'approve' })).toBe('held');
    gate.release('c1');
    expect((await run.result).termination).toBe('NaturalEnd');
    expect(codes(conversation.log())).toEqual([]);
    const again = await bench({ ...options, store: await storeWith(conversation.log()) });
    expect(again.conversation.log()).toEqual(conversation.log());
  });
});
