/**
 * A cancel at each moment: twice, early, late, inside a subscriber, between two acts (docs/internals/lifecycle.md,
 * Cancellation).
 */
import { describe, expect, it } from 'vitest';
import type { Run } from '../../src/index.ts';
import { bench, entry, only, story } from '../support/agentBench.ts';
import { asks, echoTool, gateTool } from '../support/scenarioTools.ts';
import { call, deaf, lines } from '../support/scriptedReplies.ts';

const args = { m: 'a' };

describe('a cancel at an unusual moment', () => {
  it('a cancel while idle is a no-op', async () => {
    const on = await bench({ replies: ['one'] });
    await on.conversation.cancel();
    await on.conversation.send('hi').result;
    const before = on.conversation.log().length;
    await on.conversation.cancel();
    expect(on.conversation.log()).toHaveLength(before);
    expect(on.conversation.status).toBe('idle');
  });

  it('two cancels have the effect of one', async () => {
    const gate = gateTool();
    const on = await bench({ replies: [[call('c1', 'gate')]], tools: [gate.tool] });
    const run = on.conversation.send('hi');
    await gate.begun('c1');
    const both = Promise.all([on.conversation.cancel(), on.conversation.cancel(), run.cancel()]);
    expect(await on.clock.until(both)).toBeLessThanOrEqual(100);
    await on.conversation.cancel();
    expect(only(on.conversation.log(), 'run-stop', 'tool-result')).toEqual([
      'tool-result c1 cancelled cancelled',
      'run-stop interrupted cancelled',
    ]);
  });

  it('a cancel of a finished run is a no-op, and the next run continues', async () => {
    const gate = gateTool();
    const on = await bench({ replies: ['one', [call('c1', 'gate')], 'two'], tools: [gate.tool] });
    const first = on.conversation.send('hi');
    await first.result;
    const second = on.conversation.send('more');
    await gate.begun('c1');
    await first.cancel();
    expect(on.conversation.status).toBe('active');
    gate.release('c1');
    expect((await second.result).text).toBe('two');
  });

  it('during a cancel a plain message is refused with an error that names the cancel', async () => {
    const on = await bench({
      replies: [deaf()],
      plugins: [{ name: 'slow', runEnd: () => new Promise(() => undefined) }],
    });
    on.conversation.send('hi');
    await on.clock.advance(0);
    const cancelled = on.conversation.cancel();
    expect(on.conversation.status).toBe('cancelling');
    expect(() => on.conversation.send('more')).toThrow(/cancellation in progress/);
    expect(await on.clock.until(cancelled)).toBeLessThanOrEqual(100);
  });

  it('S003-20: a cancel directly after a completion in the same tick leaves one result', async () => {
    const gate = gateTool();
    const on = await bench({ replies: [[call('c1', 'gate')], 'late'], tools: [gate.tool] });
    const run = on.conversation.send('hi');
    await gate.begun('c1');
    gate.release('c1');
    const cancelled = on.conversation.cancel();
    expect(await on.clock.until(cancelled)).toBeLessThanOrEqual(100);
    expect((await run.result).termination).toBe('Cancelled');
    await on.clock.advance(0);
    expect(only(on.conversation.log(), 'tool-result', 'diagnostic')).toEqual([
      'tool-result c1 cancelled cancelled',
      'diagnostic late_result',
    ]);
    expect(on.model.calls).toHaveLength(1);
  });
});

describe('a cancel from inside a subscriber', () => {
  const at = ['run-started', 'model-reply', 'tool-started', 'tool-result', 'checkpoint'] as const;
  it.each(at)('at %s: the run ends Cancelled, each call has one result, and the next message works', async (type) => {
    const echo = echoTool();
    const on = await bench({
      replies: [[call('c1', 'echo', args), call('c2', 'echo', args)], 'over'],
      tools: [echo.tool],
    });
    const { conversation, model } = on;
    let cancelled: Promise<void> | undefined;
    const subscription = conversation.log$().subscribe((each) => {
      if (each.type === type) cancelled ??= conversation.cancel();
    });
    const run = conversation.send('hi');
    expect(await on.clock.until(run.result)).toBeLessThanOrEqual(100);
    await cancelled;
    subscription.unsubscribe();
    expect((await run.result).termination).toBe('Cancelled');
    expect(model.calls.length).toBeLessThanOrEqual(1);
    expect(on.clock.waiting).toBe(0);
    expect(on.alive()).toEqual([]);
    const results = only(conversation.log(), 'tool-result').map((line) => line.split(' ')[1]);
    expect(new Set(results).size).toBe(results.length);
    if (type !== 'tool-result') expect(echo.ran).toEqual([]);
    const again = await conversation.send('again').result;
    expect(again.termination).toBe('NaturalEnd');
  });

  it('a message that is sent and cancelled inside a subscriber never reaches the model', async () => {
    const on = await bench({ replies: ['one', 'never'] });
    const { conversation, model } = on;
    let second: Run | undefined;
    let cancelled: Promise<void> | undefined;
    conversation.log$().subscribe((each) => {
      if (each.type !== 'checkpoint' || each.boundary !== 'RunFinished' || second) return;
      second = conversation.send('second', { kind: 'followUp' });
      cancelled = second.cancel();
    });
    await conversation.send('first').result;
    await cancelled;
    expect((await second?.result)?.termination).toBe('Cancelled');
    expect(model.calls).toHaveLength(1);
  });

  it('conversation.cancel() directly after a send in the same callback cancels that send', async () => {
    const on = await bench({ replies: ['one', 'two'] });
    const { conversation, model } = on;
    await conversation.send('first').result;
    let second: Run | undefined;
    conversation.live$.subscribe((signal) => {
      if (signal.type !== 'status' || signal.status !== 'idle' || second) return;
      second = conversation.send('second');
      void conversation.cancel();
    });
    await conversation.send('go').result;
    expect((await second?.result)?.termination).toBe('Cancelled');
    expect(model.calls).toHaveLength(2);
    expect(lines(conversation.messages()).at(-1)).toBe('user second');
  });
});

describe('a signal on a queued message', () => {
  it('a followUp with an aborted signal is returned, and the active run continues', async () => {
    const gate = gateTool();
    const on = await bench({ replies: [[call('c1', 'gate')], 'done'], tools: [gate.tool] });
    const run = on.conversation.send('hi');
    await gate.begun('c1');
    const later = on.conversation.send('later', { kind: 'followUp', signal: AbortSignal.abort() });
    expect((await later.result).termination).toBe('Cancelled');
    expect(on.conversation.status).toBe('active');
    expect(on.conversation.queue).toEqual([]);
    gate.release('c1');
    expect((await run.result).text).toBe('done');
    expect(story(on.conversation.log()).join('\n')).not.toContain('later');
  });

  it('a followUp whose signal fires while it is queued is returned', async () => {
    const gate = gateTool();
    const on = await bench({ replies: [[call('c1', 'gate')], 'done'], tools: [gate.tool] });
    const caller = new AbortController();
    const run = on.conversation.send('hi');
    await gate.begun('c1');
    const later = on.conversation.send('later', { kind: 'followUp', signal: caller.signal });
    caller.abort();
    expect((await later.result).termination).toBe('Cancelled');
    gate.release('c1');
    expect((await run.result).text).toBe('done');
    expect(only(on.conversation.log(), 'message-returned')).toEqual(['message-returned cancelled']);
    expect(on.model.calls).toHaveLength(2);
  });

  it('in waiting, an aborted message neither resumes the cycle nor ends it', async () => {
    const ask = echoTool('ask');
    const on = await bench({
      replies: [[call('c1', 'ask', args)], 'done'],
      tools: [ask.tool],
      plugins: [asks().plugin],
    });
    await on.conversation.send('hi').result;
    await on.conversation.decide({ callId: 'c1', action: 'approve' });
    const aborted = on.conversation.send('no', { signal: AbortSignal.abort() });
    expect((await aborted.result).termination).toBe('Cancelled');
    expect(on.conversation.status).toBe('waiting');
    expect(ask.ran).toEqual([]);
  });
});

describe('after a cancel', () => {
  it('RUN-11: a cancelled run may be resumed: its cycle reopens, and the model receives the cancelled results', async () => {
    const gate = gateTool();
    const on = await bench({ replies: [[call('c1', 'gate')], 'went on'], tools: [gate.tool] });
    on.conversation.send('hi');
    await gate.begun('c1');
    await on.conversation.cancel();
    const result = await on.conversation.resume().result;
    expect(result).toMatchObject({ termination: 'NaturalEnd', text: 'went on' });
    expect(lines(on.model.calls[1]?.messages ?? [])).toEqual([
      'user hi',
      'assistant +c1',
      expect.stringMatching(/^c1! .*cancelled/),
    ]);
    expect(on.conversation.view().cycles).toHaveLength(1);
    expect(on.conversation.view().cycles[0]?.stop?.reason).toBe('completed');
  });

  it('LOOP-9: with partialReply keep, the partial text is stored as an interrupted reply, and a resume asks the model to continue', async () => {
    const on = await bench({
      replies: [deaf({ type: 'text-delta', text: 'par' }), 'tial'],
      policies: { partialReply: 'keep' },
    });
    const run = on.conversation.send('hi');
    await on.clock.advance(0);
    await on.conversation.cancel();
    expect((await run.result).text).toBe('par');
    const kept = await entry(on.conversation, 'agent-output');
    expect(kept.item).toEqual({ type: 'assistant', text: 'par', flag: 'interrupted' });
    expect((await on.conversation.resume().result).text).toBe('tial');
    expect(lines(on.model.calls[1]?.messages ?? [])).toEqual([
      'user hi',
      'assistant par',
      'user Go on where you stopped.',
    ]);
  });

  it('S004-20: with partialReply keep, a text of blanks alone is not stored', async () => {
    const on = await bench({
      replies: [deaf({ type: 'text-delta', text: ' \n' })],
      policies: { partialReply: 'keep' },
    });
    const run = on.conversation.send('hi');
    await on.clock.advance(0);
    await on.conversation.cancel();
    expect((await run.result).text).toBe('');
    expect(only(on.conversation.log(), 'agent-output')).toEqual([]);
  });
});
