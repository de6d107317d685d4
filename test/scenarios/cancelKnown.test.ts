/** A run that ends early writes what is known of each of its calls (run-lifecycle, CancellationToken Impact). */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type Decision, defineTool, toolResult } from '../../src/index.ts';
import { bench, only, resultText } from '../support/agent.ts';
import { call, type Reply } from '../support/model.ts';
import { slowListener } from '../support/slowListener.ts';
import { boom, echoTool, gateTool } from '../support/tools.ts';

const args = { m: 'a' };
/** A round whose calls have all ended, with a plugin that still hears of them. */
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

describe('a run that is cut off while plugins hear of its calls', () => {
  const three = [call('c1', 'echo', args), call('c2', 'boom'), call('c3', 'nothing')];

  it('keeps the results of calls that succeeded, failed, or were refused and never started', async () => {
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

  it('says of a call that still runs beside them that it may have had an effect', async () => {
    const { conversation } = await heardOf([call('c1', 'echo', args), call('c2', 'gate')], 1);
    await conversation.cancel();
    expect(only(conversation.log(), 'tool-result')).toEqual([
      'tool-result c1 succeeded',
      'tool-result c2 cancelled cancelled',
    ]);
    expect(resultText(conversation.log(), 'c2')).toContain('may have had an effect');
  });

  it('keeps them also where its time is over', async () => {
    const { clock, conversation, run } = await heardOf(three, 3, { runMs: 1000 });
    await clock.advance(1000);
    expect((await run.result).cause).toBe('timeout');
    expect(only(conversation.log(), 'tool-result')).toHaveLength(3);
    expect(only(conversation.log(), 'tool-result')[0]).toBe('tool-result c1 succeeded');
  });

  it('leaves a call waiting for nobody that was suspended before: it is cancelled', async () => {
    const ask = defineTool({
      name: 'ask',
      description: 'Asks.',
      parameters: z.object({}),
      execute: () => toolResult.pending({ reason: 'input' }),
    });
    const { plugin, begun } = slowListener(1);
    const { conversation } = await bench({ replies: [[call('c1', 'ask')]], tools: [ask], plugins: [plugin] });
    conversation.send('hi');
    await begun;
    await conversation.cancel();
    expect(only(conversation.log(), 'tool-suspended', 'tool-result')).toEqual([
      'tool-suspended c1 1',
      'tool-result c1 cancelled cancelled',
    ]);
  });
});

describe('a replay that is cut off while plugins hear of it', () => {
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

  it('keeps the result of a call that was allowed and has run (RES-6)', async () => {
    const { conversation, paid } = await cutReplay({ callId: 'c1', action: 'approve' });
    await conversation.cancel();
    expect(only(conversation.log(), 'tool-result', 'decision-consumed', 'diagnostic', 'run-stop')).toEqual([
      'tool-result c1 succeeded',
      'decision-consumed c1 1',
      'run-stop interrupted cancelled',
    ]);
    expect([resultText(conversation.log(), 'c1'), paid]).toEqual(['paid', ['once']]);
  });

  it('says of a call that was denied that it was denied, not that it may have had an effect', async () => {
    const { conversation, paid } = await cutReplay({ callId: 'c1', action: 'deny', reason: 'too dear' });
    await conversation.cancel();
    expect(only(conversation.log(), 'tool-result')[0]).toBe('tool-result c1 failed denied');
    expect(resultText(conversation.log(), 'c1')).toContain('too dear');
    expect(paid).toEqual([]);
  });

  it('keeps it also where the time of the run is over', async () => {
    const { clock, conversation, run } = await cutReplay({ callId: 'c1', action: 'approve' }, { runMs: 1000 });
    await clock.advance(1000);
    expect((await run.result).cause).toBe('timeout');
    expect(only(conversation.log(), 'tool-result')[0]).toBe('tool-result c1 succeeded');
  });
});
