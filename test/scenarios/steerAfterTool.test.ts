/**
 * With `steerAt: 'afterTool'`, a steer is delivered before the calls that have not started (docs/internals/model.md,
 * Steer).
 */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type Decision, defineTool } from '../../src/index.ts';
import { type Bench, type BenchOptions, bench, entry, only, resultText } from '../support/agentBench.ts';
import { asks, boom, echoTool, gateTool } from '../support/scenarioTools.ts';
import { call, during, lines } from '../support/scriptedReplies.ts';

const args = { m: 'a' };
const approve = (callId: string): Decision => ({ callId, action: 'approve' });
const serial = { steerAt: 'afterTool', toolExecution: 'sequential' } as const;
const shown = (on: Bench, index: number): string[] => lines(on.model.calls[index]?.messages ?? []);

async function steering(calls: readonly ReturnType<typeof call>[], options: BenchOptions): Promise<Bench> {
  return bench({ replies: [calls, 'A2', 'A3'], ...options });
}

describe('a steer that comes while a tool runs', () => {
  it('S000-15: the next call is not executed and has one error result that names the message; the model receives both, then the steer', async () => {
    const [gate, echo] = [gateTool(), echoTool()];
    const on = await steering([call('c1', 'gate'), call('c2', 'echo', args)], {
      tools: [gate.tool, echo.tool],
      policies: serial,
    });
    const run = on.conversation.send('hi');
    await gate.begun('c1');
    const { messageId, delivered } = on.conversation.steer('S');
    gate.release('c1');
    const result = await run.result;
    expect(result).toMatchObject({ termination: 'NaturalEnd', text: 'A2', turns: 2 });
    expect(echo.ran).toEqual([]);
    expect(only(on.conversation.log(), 'tool-started', 'tool-result')).toEqual([
      'tool-started c1',
      'tool-result c1 succeeded',
      'tool-result c2 cancelled skipped',
    ]);
    expect(resultText(on.conversation.log(), 'c2')).toContain(`queued message of the user (${messageId})`);
    expect(shown(on, 1).slice(-3)).toEqual(['c1 c1 is done', expect.stringMatching(/^c2! .*queued message/), 'user S']);
    expect(await delivered).toBe('delivered');
    expect(result.calls.map(({ callId, code }) => [callId, code])).toEqual([
      ['c1', undefined],
      ['c2', 'skipped'],
    ]);
  });

  it('it is a step of its cycle, after the calls', async () => {
    const gate = gateTool();
    const on = await steering([call('c1', 'gate'), call('c2', 'gate')], { tools: [gate.tool], policies: serial });
    const run = on.conversation.send('hi');
    await gate.begun('c1');
    on.conversation.steer('S');
    gate.release('c1');
    await run.result;
    const { cycles, diagnostics } = on.conversation.view();
    expect(cycles.map(({ steps }) => steps.map(({ type }) => type))).toEqual([
      ['non-steer', 'ai-block', 'steer', 'ai-block'],
    ]);
    expect(diagnostics).toEqual([]);
  });

  it('running siblings of a parallel round finish, and calls beyond the window are not started', async () => {
    const gate = gateTool();
    const ids = ['c1', 'c2', 'c3', 'c4'];
    const on = await steering(
      ids.map((callId) => call(callId, 'gate')),
      { tools: [gate.tool], policies: { steerAt: 'afterTool', maxParallelTools: 2 } },
    );
    const run = on.conversation.send('hi');
    await gate.begun('c2');
    on.conversation.steer('S');
    gate.release('c2');
    await entry(on.conversation, 'tool-result');
    expect(gate.started).toEqual(['c1', 'c2']);
    expect(only(on.conversation.log(), 'checkpoint')).toHaveLength(2);
    gate.release('c1');
    await run.result;
    expect(gate.started).toEqual(['c1', 'c2']);
    expect(
      shown(on, 1)
        .slice(-5)
        .map((line) => line.split(' ')[0]),
    ).toEqual(['c1', 'c2', 'c3!', 'c4!', 'user']);
  });

  it('if every call runs already, none is skipped', async () => {
    const gate = gateTool();
    const on = await steering([call('c1', 'gate'), call('c2', 'gate')], {
      tools: [gate.tool],
      policies: { steerAt: 'afterTool' },
    });
    const run = on.conversation.send('hi');
    await gate.begun('c2');
    on.conversation.steer('S');
    gate.release('c1');
    gate.release('c2');
    await run.result;
    expect(shown(on, 1).slice(-3)).toEqual(['c1 c1 is done', 'c2 c2 is done', 'user S']);
  });

  it('several steers skip the same calls, and each is delivered', async () => {
    const gate = gateTool();
    const on = await steering([call('c1', 'gate'), call('c2', 'gate')], {
      tools: [gate.tool],
      policies: { ...serial, queueDrain: 'all' },
    });
    const run = on.conversation.send('hi');
    await gate.begun('c1');
    const first = on.conversation.steer('S1');
    on.conversation.steer('S2');
    gate.release('c1');
    await run.result;
    expect(resultText(on.conversation.log(), 'c2')).toContain(first.messageId);
    expect(shown(on, 1).slice(-2)).toEqual(['user S1', 'user S2']);
  });

  it('a call that waits for its next execution ends first', async () => {
    let executions = 0;
    const flaky = defineTool({
      name: 'flaky',
      description: 'Fails once.',
      parameters: z.object({}),
      execute() {
        executions += 1;
        if (executions === 1) throw new Error('not yet');
        return 'now';
      },
    });
    const echo = echoTool();
    const on = await steering([call('c1', 'flaky'), call('c2', 'echo', args)], {
      tools: [flaky, echo.tool],
      policies: { ...serial, toolRetry: {} },
    });
    const run = on.conversation.send('hi');
    await entry(on.conversation, 'notice');
    on.conversation.steer('S');
    await on.clock.until(run.result);
    expect([executions, echo.ran]).toEqual([2, []]);
    expect(shown(on, 1).slice(-3)).toEqual(['c1 now', expect.stringMatching(/^c2! /), 'user S']);
  });

  it('a cancel while the steer waits ends the calls like any cancel, and the steer stays queued', async () => {
    const gate = gateTool();
    const on = await steering([call('c1', 'gate'), call('c2', 'gate')], { tools: [gate.tool], policies: serial });
    on.conversation.send('hi');
    await gate.begun('c1');
    on.conversation.steer('S');
    await on.conversation.cancel();
    expect(only(on.conversation.log(), 'tool-result')).toEqual([
      'tool-result c1 cancelled cancelled',
      'tool-result c2 cancelled skipped',
    ]);
    expect(resultText(on.conversation.log(), 'c2')).toContain('the run ended before it started');
    expect(on.conversation.queue.map(({ kind }) => kind)).toEqual(['steer']);
  });

  it('with onToolFailure failRun a failing tool ends the run, and the steer waits for the next one', async () => {
    const gate = gateTool();
    const on = await steering([call('c1', 'gate'), call('c2', 'gate')], {
      tools: [gate.tool, boom],
      policies: { ...serial, onToolFailure: 'failRun' },
    });
    const run = on.conversation.send('hi');
    await gate.begun('c1');
    on.conversation.steer('S');
    gate.fail('c1', new Error('boom'));
    expect((await run.result).cause).toBe('tool');
    expect(only(on.conversation.log(), 'tool-result')).toEqual([
      'tool-result c1 failed error',
      'tool-result c2 cancelled skipped',
    ]);
    await on.conversation.send('again').result;
    expect(shown(on, 1).slice(-2)).toEqual(['user again', 'user S']);
  });
});

describe('a steer and calls that wait for a person', () => {
  it('a suspended call continues to wait, and the calls after it have their result', async () => {
    const hook = asks();
    const ask = echoTool('ask');
    let steered = false;
    const on: Bench = await steering([call('c1', 'ask', args), call('c2', 'echo', args)], {
      tools: [ask.tool, echoTool().tool],
      plugins: [
        {
          name: 'steers',
          beforeToolExecute: () => {
            if (!steered) on.conversation.steer('S');
            steered = true;
            return undefined;
          },
        },
        hook.plugin,
      ],
      policies: serial,
    });
    const result = await on.conversation.send('hi').result;
    expect(result).toMatchObject({ termination: 'Suspended', text: 'A2' });
    expect(hook.saw).toEqual(['c1']);
    expect(only(on.conversation.log(), 'tool-result')).toEqual(['tool-result c2 cancelled skipped']);
    expect(shown(on, 1).slice(-3)).toEqual([
      expect.stringMatching(/^c1 .*awaits approval/),
      expect.stringMatching(/^c2! .*queued message/),
      'user S',
    ]);
    await on.conversation.decide(approve('c1'));
    expect((await on.conversation.resume().result).text).toBe('A3');
    expect(ask.ran).toEqual(['c1']);
  });
});

describe('a steer outside a round', () => {
  it('a steer before the start of a round is delivered after the whole round', async () => {
    const echo = echoTool();
    const on: Bench = await bench({
      replies: [during(() => on.conversation.steer('S'), [call('c1', 'echo', args), call('c2', 'echo', args)]), 'A2'],
      tools: [echo.tool],
      policies: serial,
    });
    expect((await on.conversation.send('hi').result).text).toBe('A2');
    expect(echo.ran).toEqual(['c1', 'c2']);
    expect(shown(on, 1).at(-1)).toBe('user S');
  });

  it('the rounds after it run completely', async () => {
    const [gate, echo] = [gateTool(), echoTool()];
    const replies = [
      [call('c1', 'gate'), call('c2', 'echo', args)],
      [call('c3', 'echo', args), call('c4', 'echo', args)],
      'A3',
    ];
    const on = await bench({ replies, tools: [gate.tool, echo.tool], policies: serial });
    const run = on.conversation.send('hi');
    await gate.begun('c1');
    on.conversation.steer('S');
    gate.release('c1');
    await run.result;
    expect(echo.ran).toEqual(['c3', 'c4']);
  });
});
