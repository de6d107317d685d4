/** The start and the end of sub-agents, and the results for their parent (docs/internals/contracts.md, REQ-BED-008). */
import { describe, expect, it } from 'vitest';
import { type LogEntry, ModelError, type Plugin, subAgents } from '../../src/index.ts';
import { bench, entry, only, resultText } from '../support/agentBench.ts';
import { echoTool, gateTool } from '../support/scenarioTools.ts';
import { call, deaf, during, lines } from '../support/scriptedReplies.ts';
import { byTask, childOf, logOf, reported, spawn, submit } from '../support/subAgentBench.ts';
import { VirtualClock } from '../support/virtualClock.ts';

/** A promise that a test settles. */
function signal() {
  let give = (): void => {};
  const settled = new Promise<void>((resolve) => {
    give = resolve;
  });
  return { give, settled };
}

const phases = (log: readonly LogEntry[]): string[] =>
  log.flatMap((each) => (each.type === 'sub-agent' ? [`${each.phase} ${each.child}`] : []));

describe('spawning', () => {
  it('S003-22: the parent continues after the last of three, with all results in the order of their ends, the failed one marked', async () => {
    const [a, b, c] = [signal(), signal(), signal()];
    const model = byTask({
      alpha: [during(() => a.settled, [submit('s', 'A')])],
      beta: [during(() => b.settled, [submit('s', 'B')])],
      gamma: [during(() => c.settled, new ModelError({ code: 'auth', message: 'no key' }))],
    });
    const { conversation, model: parent } = await bench({
      replies: [[spawn('p', 'alpha', 'beta', 'gamma')], 'done'],
      tools: [subAgents({ model })],
    });
    const run = conversation.send('hi');
    const ends: string[] = [];
    for (const [taskId, gate] of [
      ['b', b],
      ['a', a],
      ['g', c],
    ] as const) {
      expect(parent.calls).toHaveLength(1);
      gate.give();
      await entry(conversation, 'sub-agent', (each) => each.phase === 'ended' && !ends.includes(each.child));
      ends.push(childOf('p', taskId));
      const [started, ended] = ['started', 'ended'].map((phase) =>
        phases(conversation.log()).filter((line) => line.startsWith(phase)),
      );
      expect(started).toHaveLength(3);
      expect(ended).toEqual(ends.map((id) => `ended ${id}`));
    }
    expect((await run.result).text).toBe('done');
    expect(reported(conversation.log(), 'p')).toEqual([
      { id: 'b', task: 'beta', outcome: 'succeeded', text: 'B' },
      { id: 'a', task: 'alpha', outcome: 'succeeded', text: 'A' },
      { id: 'g', task: 'gamma', outcome: 'failed', text: 'It ended without a result (auth: no key).' },
    ]);
    expect(only(conversation.log(), 'tool-result')).toEqual(['tool-result p succeeded']);
  });

  it('BED-8: sub-agents work at the same time', async () => {
    const [a, b] = [signal(), signal()];
    const meet = (mine: typeof a, other: typeof a): Promise<void> => {
      mine.give();
      return other.settled;
    };
    const model = byTask({
      alpha: [during(() => meet(a, b), [submit('s', 'A')])],
      beta: [during(() => meet(b, a), [submit('s', 'B')])],
    });
    const { conversation } = await bench({
      replies: [[spawn('p', 'alpha', 'beta')], 'done'],
      tools: [subAgents({ model })],
    });
    expect((await conversation.send('hi').result).text).toBe('done');
  });

  it('at most maxSubAgents of a call and limits.subAgents of a conversation work at once, and the others wait for a slot', async () => {
    const gate = gateTool();
    const tasks = ['alpha', 'beta', 'gamma', 'delta', 'epsilon'];
    const scripts = tasks.map((task) => [task, [[call(`g-${task}`, 'gate')], [submit(`s-${task}`, task)]]] as const);
    const model = byTask(Object.fromEntries(scripts));
    const { conversation } = await bench({
      replies: [[spawn('p', 'alpha', 'beta', 'gamma'), spawn('q', 'delta', 'epsilon')], 'done'],
      tools: [gate.tool, subAgents({ model, maxSubAgents: 2 })],
      policies: { limits: { subAgents: 3 } },
    });
    const run = conversation.send('hi');
    for (const task of ['alpha', 'beta', 'delta']) await gate.begun(`g-${task}`);
    expect([...model.order].sort()).toEqual(['alpha', 'beta', 'delta']);
    for (const task of ['delta', 'beta', 'alpha', 'gamma', 'epsilon']) {
      await gate.begun(`g-${task}`);
      gate.release(`g-${task}`);
    }
    expect((await run.result).text).toBe('done');
    expect(gate.most()).toBe(3);
    expect(reported(conversation.log(), 'p')).toHaveLength(3);
    expect(reported(conversation.log(), 'q')).toHaveLength(2);
  });

  it('limits.subAgents 0 starts none, and the model receives an error', async () => {
    const model = byTask({});
    const { conversation } = await bench({
      replies: [[spawn('p', 'alpha')], 'done'],
      tools: [subAgents({ model })],
      policies: { limits: { subAgents: 0 } },
    });
    await conversation.send('hi').result;
    expect(only(conversation.log(), 'tool-result', 'sub-agent')).toEqual(['tool-result p failed limit']);
  });
});

describe('the end of a sub-agent', () => {
  it('S003-26: submit_result beside another call gives both an error result, and the sub-agent continues', async () => {
    const echo = echoTool();
    const model = byTask({ alpha: [[submit('s', 'early'), call('e', 'echo', { m: 'x' })], [submit('s', 'late')]] });
    const { conversation, store } = await bench({
      replies: [[spawn('p', 'alpha')], 'done'],
      tools: [echo.tool, subAgents({ model })],
    });
    await conversation.send('hi').result;
    const log = await logOf(store, childOf('p', 'a'));
    expect(only(log, 'tool-result')).toEqual([
      'tool-result s failed blocked',
      'tool-result e failed blocked',
      'tool-result s_2 succeeded',
    ]);
    expect(resultText(log, 'e')).toMatch(/submit_result must be the only call of its reply/);
    expect(echo.ran).toEqual([]);
    expect(reported(conversation.log(), 'p')).toEqual([{ id: 'a', task: 'alpha', outcome: 'succeeded', text: 'late' }]);
  });

  it('S003-26: a text answer alone is a result, marked as implicit', async () => {
    const { conversation } = await bench({
      replies: [[spawn('p', 'alpha')], 'done'],
      tools: [subAgents({ model: byTask({ alpha: ['forty-two'] }) })],
    });
    await conversation.send('hi').result;
    const [report] = reported(conversation.log(), 'p');
    expect(report).toEqual({ id: 'a', task: 'alpha', outcome: 'succeeded', implicit: true, text: 'forty-two' });
  });

  it('a result that is not text is serialized as JSON', async () => {
    const model = byTask({ alpha: [[call('s', 'submit_result', { result: { n: [1] } })]] });
    const { conversation } = await bench({ replies: [[spawn('p', 'alpha')], 'done'], tools: [subAgents({ model })] });
    await conversation.send('hi').result;
    expect(reported(conversation.log(), 'p')[0]?.text).toBe('{"n":[1]}');
  });

  it('BED-8: after its turns it has one more, announced as the last, with submit_result alone', async () => {
    const echo = echoTool();
    const model = byTask({ alpha: [[call('e', 'echo', { m: 'x' })], [submit('s', 'at last')]] });
    const { conversation } = await bench({
      replies: [[spawn('p', 'alpha')], 'done'],
      tools: [echo.tool, subAgents({ model, limits: { turns: 1 } })],
    });
    await conversation.send('hi').result;
    const [first, last] = model.of('alpha').calls;
    expect(first?.tools.map(({ name }) => name)).toEqual(['echo', 'submit_result']);
    expect(first?.system).not.toMatch(/last turn/);
    expect(last?.tools.map(({ name }) => name)).toEqual(['submit_result']);
    expect(last?.system).toMatch(/last turn/);
    expect(reported(conversation.log(), 'p')[0]).toMatchObject({ outcome: 'succeeded', text: 'at last' });
  });

  it('BED-8: without a result in its last turn it has failed, and calls of other tools are not run there', async () => {
    const echo = echoTool();
    const model = byTask({ alpha: [[call('e', 'echo', { m: 'x' })], [call('f', 'echo', { m: 'y' })]] });
    const { conversation, store } = await bench({
      replies: [[spawn('p', 'alpha')], 'done'],
      tools: [echo.tool, subAgents({ model, limits: { turns: 1 } })],
    });
    expect((await conversation.send('hi').result).text).toBe('done');
    expect(echo.ran).toEqual(['e']);
    expect(resultText(await logOf(store, childOf('p', 'a')), 'f')).toMatch(/not offered/);
    expect(reported(conversation.log(), 'p')[0]).toMatchObject({
      outcome: 'failed',
      text: expect.stringMatching(/max_turns/),
    });
  });

  it('BED-8: at its deadline it times out, and its siblings do not', async () => {
    const clock = new VirtualClock();
    const model = byTask({ alpha: [deaf()], beta: [[submit('s', 'B')]] });
    const { conversation, model: parent } = await bench({
      clock,
      replies: [[spawn('p', 'alpha', 'beta')], 'done'],
      tools: [subAgents({ model, limits: { runMs: 5000 } })],
    });
    const run = conversation.send('hi');
    await clock.advance(4999);
    expect(parent.calls).toHaveLength(1);
    await clock.advance(1);
    expect((await run.result).text).toBe('done');
    expect(reported(conversation.log(), 'p').map(({ id, outcome }) => `${id} ${outcome}`)).toEqual([
      'b succeeded',
      'a timed_out',
    ]);
    expect(clock.waiting).toBe(0);
  });

  it('a spawn call has no time-out of its own: limits.toolMs applies to the work of a tool itself', async () => {
    const clock = new VirtualClock();
    const gate = gateTool('gate', { timeoutMs: 1_000_000 });
    const model = byTask({ alpha: [[call('g', 'gate')], [submit('s', 'A')]] });
    const { conversation } = await bench({
      clock,
      replies: [[spawn('p', 'alpha')], 'done'],
      tools: [gate.tool, subAgents({ model })],
    });
    const run = conversation.send('hi');
    await gate.begun('g');
    await clock.advance(500_000);
    gate.release('g');
    expect((await run.result).text).toBe('done');
    expect(reported(conversation.log(), 'p')[0]).toMatchObject({ outcome: 'succeeded' });
  });
});

describe('the result for the parent', () => {
  it('a sub-agent that a plugin ended before any text has failed, and has no empty result', async () => {
    const ends: Plugin = {
      name: 'ends',
      afterInference: ({ conversationId }) => (conversationId === 'c' ? undefined : { terminate: 'enough' }),
    };
    const { conversation } = await bench({
      replies: [[spawn('p', 'alpha')], 'done'],
      tools: [echoTool().tool, subAgents({ model: byTask({ alpha: [[call('e', 'echo', { m: 'x' })]] }) })],
      plugins: [ends],
    });
    await conversation.send('hi').result;
    expect(reported(conversation.log(), 'p')).toMatchObject([
      { outcome: 'failed', text: expect.stringMatching(/^It ended without a result/) },
    ]);
  });

  it.each(['"\n', '€'])('long results of %j are cut, each to its share, and the list stays complete', async (piece) => {
    const tasks = ['alpha', 'beta', 'gamma'];
    const scripts = tasks.map((task, index) => [
      task,
      [[submit(`s-${task}`, index === 0 ? 'short' : piece.repeat(5000))]],
    ]);
    const { conversation, model: parent } = await bench({
      replies: [[spawn('p', ...tasks)], 'done'],
      tools: [subAgents({ model: byTask(Object.fromEntries(scripts)) })],
      policies: { limits: { resultBytes: 4096 } },
    });
    await conversation.send('hi').result;
    const text = resultText(conversation.log(), 'p');
    expect(new TextEncoder().encode(text).length).toBeLessThanOrEqual(4096);
    const reports = reported(conversation.log(), 'p');
    expect(reports.map(({ id }) => id).sort()).toEqual(['a', 'b', 'g']);
    expect(reports.find(({ id }) => id === 'a')?.text).toBe('short');
    expect(reports.find(({ id }) => id === 'b')?.text).toMatch(/characters left out/);
    expect(lines(parent.calls[1]?.messages ?? []).at(-1)).toMatch(/^p \[\{"id"/);
  });
});
