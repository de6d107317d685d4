/**
 * The calls of one reply: parallel, sequential, and around a suspended call (docs/internals/lifecycle.md, TOOL_ROUND).
 */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type Decision, type DeepPartial, defineTool, type Policies } from '../../src/index.ts';
import { type Bench, bench, entry, only, restart } from '../support/agentBench.ts';
import { asks, echoTool, gateTool } from '../support/scenarioTools.ts';
import { call, lines, type Reply } from '../support/scriptedReplies.ts';

const args = { m: 'a' };
const approve = (callId: string): Decision => ({ callId, action: 'approve' });

describe('the number of parallel calls', () => {
  it('S004-11: at most maxParallelTools calls run, the next one starts when one ends, and the model receives call order', async () => {
    const gate = gateTool();
    const ids = ['c1', 'c2', 'c3', 'c4', 'c5'];
    const on = await bench({
      replies: [ids.map((callId) => call(callId, 'gate')), 'x'],
      tools: [gate.tool],
      policies: { maxParallelTools: 2 },
    });
    const run = on.conversation.send('hi');
    await gate.begun('c2');
    expect(gate.started).toEqual(['c1', 'c2']);
    gate.release('c2');
    await gate.begun('c3');
    gate.release('c3');
    await gate.begun('c4');
    gate.release('c1');
    await gate.begun('c5');
    gate.release('c5');
    gate.release('c4');
    await run.result;
    expect(gate.most()).toBe(2);
    expect(only(on.conversation.log(), 'tool-result').map((line) => line.split(' ')[1])).toEqual([
      'c2',
      'c3',
      'c1',
      'c5',
      'c4',
    ]);
    expect(lines(on.model.calls[1]?.messages ?? []).slice(2)).toEqual(
      ids.map((callId) => `${callId} ${callId} is done`),
    );
  });

  it('S003-07: sequential execution starts a call after the previous one has its result', async () => {
    const gate = gateTool();
    const on = await bench({
      replies: [[call('t1', 'gate'), call('t2', 'gate'), call('t3', 'gate')], 'x'],
      tools: [gate.tool],
      policies: { toolExecution: 'sequential' },
    });
    const run = on.conversation.send('hi');
    for (const [index, callId] of ['t1', 't2', 't3'].entries()) {
      await gate.begun(callId);
      expect(gate.started).toHaveLength(index + 1);
      gate.release(callId);
    }
    await run.result;
    expect(only(on.conversation.log(), 'tool-started', 'tool-result')).toEqual([
      'tool-started t1',
      'tool-result t1 succeeded',
      'tool-started t2',
      'tool-result t2 succeeded',
      'tool-started t3',
      'tool-result t3 succeeded',
    ]);
    expect(on.model.calls).toHaveLength(2);
  });

  it('S002-32: parallelIfReadOnly runs read-only calls at once and all others one after the other', async () => {
    const [ro, writer] = [gateTool('ro', { readOnly: true }), gateTool('writer')];
    const on = await bench({
      replies: [[call('r1', 'ro'), call('r2', 'ro'), call('r3', 'ro')], [call('m1', 'ro'), call('m2', 'writer')], 'x'],
      tools: [ro.tool, writer.tool],
      policies: { toolExecution: 'parallelIfReadOnly' },
    });
    const run = on.conversation.send('hi');
    await gateAll(ro, ['r1', 'r2', 'r3']);
    expect(ro.most()).toBe(3);
    await ro.begun('m1');
    expect(writer.started).toEqual([]);
    ro.release('m1');
    await writer.begun('m2');
    writer.release('m2');
    expect((await run.result).termination).toBe('NaturalEnd');
  });

  it('S002-32: three read-only calls of 50 ms each take less than 150 ms, and their results are in request order', async () => {
    const on: Bench = await bench({
      replies: [['r1', 'r2', 'r3'].map((callId) => call(callId, 'ro')), 'x'],
      tools: [slowReader(() => on)],
      policies: { toolExecution: 'parallelIfReadOnly' },
    });
    const run = on.conversation.send('hi');
    expect(await on.clock.until(run.result)).toBe(50);
    expect(lines(on.model.calls[1]?.messages ?? []).slice(2)).toEqual(['r1 read r1', 'r2 read r2', 'r3 read r3']);
  });

  it('S002-32: five read-only calls with a maximum of 2 run two at a time, never more, and one call runs alone', async () => {
    const ro = gateTool('ro', { readOnly: true });
    const ids = ['r1', 'r2', 'r3', 'r4', 'r5'];
    const on = await bench({
      replies: [ids.map((callId) => call(callId, 'ro')), [call('s1', 'ro')], 'x'],
      tools: [ro.tool],
      policies: { toolExecution: 'parallelIfReadOnly', maxParallelTools: 2 },
    });
    const run = on.conversation.send('hi');
    await ro.begun('r2');
    for (const [index, callId] of ids.entries()) {
      await on.clock.advance(0);
      expect(ro.started).toEqual(ids.slice(0, index + 2));
      ro.release(callId);
    }
    await ro.begun('s1');
    ro.release('s1');
    await run.result;
    expect(ro.most()).toBe(2);
  });

  it('S002-32: a serial round of parallelIfReadOnly stops at the first suspended call like any other', async () => {
    const hook = asks('writer');
    const [ro, writer] = [echoTool('ro', { readOnly: true }), echoTool('writer')];
    const on = await bench({
      replies: [[call('c1', 'writer', args), call('c2', 'writer', args), call('c3', 'ro', args)], 'x'],
      tools: [ro.tool, writer.tool],
      plugins: [hook.plugin],
      policies: { toolExecution: 'parallelIfReadOnly' },
    });
    expect((await on.conversation.send('hi').result).termination).toBe('Suspended');
    expect(hook.saw).toEqual(['c1']);
    expect(ro.ran).toEqual([]);
  });
});

/** Reads for 50 ms of virtual time. */
const slowReader = (on: () => Bench) =>
  defineTool({
    name: 'ro',
    description: 'Reads.',
    parameters: z.object({}),
    readOnly: true,
    execute: (_, { callId }) => new Promise((resolve) => void on().clock.setTimer(50, () => resolve(`read ${callId}`))),
  });

async function gateAll(gate: ReturnType<typeof gateTool>, callIds: readonly string[]): Promise<void> {
  for (const callId of callIds) await gate.begun(callId);
  for (const callId of callIds) gate.release(callId);
}

describe('a round with a suspended call', () => {
  const mixed = [call('c1', 'echo', args), call('c2', 'ask', args), call('c3', 'echo', args)];
  async function round(replies: readonly Reply[], policies: DeepPartial<Policies>): Promise<Bench & { ran: string[] }> {
    const ran: string[] = [];
    const [echo, ask] = [echoTool(), echoTool('ask')];
    const plugins = [
      asks().plugin,
      { name: 'order', afterToolExecute: ({ call: c }: { call: { callId: string } }) => void ran.push(c.callId) },
    ];
    const on = await bench({ replies: [mixed, ...replies], tools: [echo.tool, ask.tool], plugins, policies });
    return { ...on, ran };
  }

  it('onPartialSuspend wait, parallel: the run ends Suspended without another model call', async () => {
    const on = await round(['done'], { onPartialSuspend: 'wait' });
    const result = await on.conversation.send('hi').result;
    expect(result).toMatchObject({ termination: 'Suspended', turns: 1 });
    expect(only(on.conversation.log(), 'tool-result')).toEqual([
      'tool-result c1 succeeded',
      'tool-result c3 succeeded',
    ]);
    await on.conversation.decide(approve('c2'));
    expect((await on.conversation.resume().result).text).toBe('done');
    expect(
      lines(on.model.calls[1]?.messages ?? [])
        .slice(2)
        .map((line) => line.split(' ')[0]),
    ).toEqual(['c1', 'c2', 'c3']);
  });

  it('onPartialSuspend wait, parallel: after a decision during the round the run does not wait', async () => {
    const [ask, gate] = [echoTool('ask'), gateTool()];
    const on = await bench({
      replies: [[call('c1', 'ask', args), call('c2', 'gate')], 'done'],
      tools: [ask.tool, gate.tool],
      plugins: [asks().plugin],
      policies: { onPartialSuspend: 'wait' },
    });
    const run = on.conversation.send('hi');
    await entry(on.conversation, 'tool-suspended');
    await gate.begun('c2');
    expect(await on.conversation.decide(approve('c1'))).toBe('applied');
    gate.release('c2');
    expect(await run.result).toMatchObject({ termination: 'NaturalEnd', text: 'done', pending: [] });
  });

  it('sequential, continue: the run continues, and a call after the suspended one gets not_started', async () => {
    const on = await round(['rest', 'done'], { toolExecution: 'sequential' });
    const result = await on.conversation.send('hi').result;
    expect(result).toMatchObject({ termination: 'Suspended', text: 'rest', turns: 2 });
    expect(only(on.conversation.log(), 'tool-result')).toEqual([
      'tool-result c1 succeeded',
      'tool-result c3 cancelled not_started',
    ]);
    expect(lines(on.model.calls[1]?.messages ?? []).slice(2)).toEqual([
      'c1 {"m":"a"}',
      expect.stringMatching(/^c2 .*awaits approval/),
      expect.stringMatching(/^c3! .*not run/),
    ]);
    await on.conversation.decide(approve('c2'));
    expect((await on.conversation.resume().result).text).toBe('done');
  });

  it('sequential, wait: a call after the suspended one keeps its turn and starts after the decision', async () => {
    const on = await round(['done'], { toolExecution: 'sequential', onPartialSuspend: 'wait' });
    const first = await on.conversation.send('hi').result;
    expect(first).toMatchObject({ termination: 'Suspended', calls: [{}, { callId: 'c2' }, { callId: 'c3' }] });
    expect(first.calls[2]).toMatchObject({ outcome: 'suspended', code: 'not_started' });
    expect(only(on.conversation.log(), 'tool-result')).toEqual(['tool-result c1 succeeded']);
    await on.conversation.decide(approve('c2'));
    const from = on.conversation.log().length;
    expect((await on.conversation.resume().result).text).toBe('done');
    expect(only(on.conversation.log(from), 'tool-started', 'tool-result', 'checkpoint')).toEqual([
      'tool-started c2',
      'tool-result c2 succeeded',
      'tool-started c3',
      'tool-result c3 succeeded',
      'checkpoint ToolResultsCommitted',
      'checkpoint AssistantTurnCommitted',
      'checkpoint RunFinished',
    ]);
  });

  it('sequential, wait: the turn is kept over a restart', async () => {
    const policies = { toolExecution: 'sequential', onPartialSuspend: 'wait' } as const;
    const before = await round([], policies);
    await before.conversation.send('hi').result;
    const [echo, ask] = [echoTool(), echoTool('ask')];
    const on = await restart(before, { replies: ['done'], tools: [echo.tool, ask.tool], policies });
    await on.conversation.decide(approve('c2'));
    expect((await on.conversation.resume().result).text).toBe('done');
    expect(echo.ran).toEqual(['c3']);
    expect(ask.ran).toEqual(['c2']);
  });

  it('sequential: a refused call after a suspended one has its result, and no later process runs it', async () => {
    const policies = {
      toolExecution: 'sequential',
      onPartialSuspend: 'wait',
      limits: { toolCallsPerTurn: 2 },
    } as const;
    const before = await round([], policies);
    await before.conversation.send('hi').result;
    expect(only(before.conversation.log(), 'tool-result')).toEqual([
      'tool-result c1 succeeded',
      'tool-result c3 failed too_many_calls',
    ]);
    const [echo, ask] = [echoTool(), echoTool('ask')];
    const on = await restart(before, { replies: ['done'], tools: [echo.tool, ask.tool], policies });
    await on.conversation.decide(approve('c2'));
    expect((await on.conversation.resume().result).text).toBe('done');
    expect([...echo.ran, ...ask.ran]).toEqual(['c2']);
  });

  it('sequential, wait: a denied call starts the next one', async () => {
    const on = await round(['done'], { toolExecution: 'sequential', onPartialSuspend: 'wait' });
    await on.conversation.send('hi').result;
    await on.conversation.decide({ callId: 'c2', action: 'deny' });
    expect((await on.conversation.resume().result).text).toBe('done');
    expect(only(on.conversation.log(), 'tool-result')).toEqual([
      'tool-result c1 succeeded',
      'tool-result c2 failed denied',
      'tool-result c3 succeeded',
    ]);
  });

  it('sequential: calls after a suspended one ask for approval at their turn, not before', async () => {
    const hook = asks();
    const ask = echoTool('ask');
    const on = await bench({
      replies: [[call('c1', 'ask', args), call('c2', 'ask', args)], 'done'],
      tools: [ask.tool],
      plugins: [hook.plugin],
      policies: { toolExecution: 'sequential' },
    });
    await on.conversation.send('hi').result;
    await on.conversation.decide(approve('c1'));
    const second = await on.conversation.resume().result;
    expect(hook.saw).toEqual(['c1', 'c1', 'c2']);
    expect(ask.ran).toEqual(['c1']);
    // The answered call has a result: the model is called with a placeholder for the other.
    expect(second).toMatchObject({ termination: 'Suspended', text: 'done' });
    expect(second.pending.map(({ callId }) => callId)).toEqual(['c2']);
  });

  it('sequential: if the run continues after a gate that suspended a call again, a call after it gets not_started', async () => {
    const [echo, ask] = [echoTool(), echoTool('ask')];
    const on = await bench({
      replies: [[call('c1', 'ask', args), call('c2', 'ask', args), call('c3', 'echo', args)], 'text', 'done'],
      tools: [echo.tool, ask.tool],
      plugins: [asks().plugin],
      policies: { toolExecution: 'sequential' },
    });
    await on.conversation.send('hi').result;
    await on.conversation.decide(approve('c1'));
    expect(await on.conversation.resume().result).toMatchObject({ termination: 'Suspended', text: 'text' });
    expect(lines(on.model.calls[1]?.messages ?? []).slice(2)).toEqual([
      'c1 {"m":"a"}',
      expect.stringMatching(/^c2 .*awaits approval/),
      expect.stringMatching(/^c3! .*not run/),
    ]);
    await on.conversation.decide(approve('c2'));
    expect((await on.conversation.resume().result).text).toBe('done');
    expect(echo.ran).toEqual([]);
    expect(only(on.conversation.log(), 'tool-result')).toEqual([
      'tool-result c1 succeeded',
      'tool-result c3 cancelled not_started',
      'tool-result c2 succeeded',
    ]);
  });

  it('sequential: the same is true if a steer continues a run whose calls all wait', async () => {
    const on = await bench({
      replies: [[call('c1', 'ask', args), call('c2', 'echo', args)], 'text'],
      tools: [echoTool().tool, echoTool('ask').tool],
      plugins: [asks().plugin],
      policies: { toolExecution: 'sequential' },
    });
    await on.conversation.send('hi').result;
    on.conversation.steer('hurry');
    expect(await on.conversation.resume().result).toMatchObject({ termination: 'Suspended', text: 'text' });
    expect(only(on.conversation.log(), 'tool-result')).toEqual(['tool-result c2 cancelled not_started']);
  });

  it('B07: a decision on one call of three repeats, delays and discards none of its siblings', async () => {
    const ask = echoTool('ask');
    const on = await bench({
      replies: [['c1', 'c2', 'c3'].map((callId) => call(callId, 'ask', args)), 'one', 'two', 'three'],
      tools: [ask.tool],
      plugins: [asks().plugin],
    });
    await on.conversation.send('hi').result;
    for (const callId of ['c2', 'c3', 'c1']) {
      expect(await on.conversation.decide(approve(callId))).toBe('applied');
      await on.conversation.resume().result;
    }
    expect(ask.ran).toEqual(['c2', 'c3', 'c1']);
    expect(only(on.conversation.log(), 'tool-result')).toHaveLength(3);
    expect(on.conversation.status).toBe('idle');
  });
});
