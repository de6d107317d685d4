/** Suspended calls: their suspension, and the effect of a decision (docs/internals/lifecycle.md, Suspension). */
import { describe, expect, it } from 'vitest';
import type { Decision, Plugin } from '../../src/index.ts';
import { type Bench, bench, entry, only, resultText, story } from '../support/agentBench.ts';
import { asks, echoTool, gateTool } from '../support/scenarioTools.ts';
import { call, deaf, during, lines, t } from '../support/scriptedReplies.ts';

const args = { m: 'approved' };
const approve = (callId: string): Decision => ({ callId, action: 'approve' });
const bothWays = ['immediate', 'atGate'] as const;

describe('the suspension of a call', () => {
  it('S001-10: one suspended call ends the run Suspended with a placeholder and no text', async () => {
    const ask = echoTool('ask');
    const { conversation, model } = await bench({
      replies: [[call('c1', 'ask', args)]],
      tools: [ask.tool],
      plugins: [asks('ask', { reason: 'risky', payload: { seen: true } }).plugin],
    });
    const result = await conversation.send('hi').result;
    expect(result).toMatchObject({ termination: 'Suspended', reason: null, subtype: 'suspended', text: '', turns: 1 });
    const waits = {
      callId: 'c1',
      name: 'ask',
      args,
      reason: 'risky',
      payload: { seen: true },
      suspension: 1,
      path: ['c1'],
    };
    expect(result.pending).toEqual([waits]);
    expect(conversation.pending).toEqual([waits]);
    expect(conversation.status).toBe('waiting');
    expect(model.calls).toHaveLength(1);
    expect(ask.ran).toEqual([]);
    expect(story(conversation.log()).slice(-4)).toEqual([
      'tool-suspended c1 1',
      'checkpoint ToolResultsCommitted',
      'run-suspended c1',
      'checkpoint RunFinished',
    ]);
    expect(lines(conversation.messages())).toEqual([
      'user hi',
      'assistant +c1',
      expect.stringMatching(/^c1 .*awaits approval/),
    ]);
    expect(conversation.view()).toMatchObject({ state: 'active', cycles: [{ stop: null, waiting: ['c1'] }] });
  });

  it('S001-12: after finished siblings the model receives a placeholder, and the run ends Suspended with its text', async () => {
    const [echo, ask] = [echoTool(), echoTool('ask')];
    const { conversation, model } = await bench({
      replies: [[call('c1', 'echo', args), call('c2', 'ask', args), call('c3', 'echo', args)], 'rest'],
      tools: [echo.tool, ask.tool],
      plugins: [asks().plugin],
    });
    const result = await conversation.send('hi').result;
    expect(result).toMatchObject({ termination: 'Suspended', text: 'rest', turns: 2 });
    expect(result.pending.map(({ callId }) => callId)).toEqual(['c2']);
    expect(result.calls.map(({ callId, outcome }) => `${callId} ${outcome}`).sort()).toEqual([
      'c1 succeeded',
      'c2 suspended',
      'c3 succeeded',
    ]);
    expect(lines(model.calls[1]?.messages ?? [])).toEqual([
      'user hi',
      'assistant +c1 +c2 +c3',
      'c1 {"m":"approved"}',
      expect.stringMatching(/^c2 .*awaits approval/),
      'c3 {"m":"approved"}',
    ]);
    expect(echo.ran).toEqual(['c1', 'c3']);
  });

  it('S001-13: a sequential round stops at the first suspended call, and the hook received only that one', async () => {
    const ask = echoTool('ask');
    const hook = asks();
    const { conversation } = await bench({
      replies: [[call('c1', 'ask', args), call('c2', 'ask', args)]],
      tools: [ask.tool],
      plugins: [hook.plugin],
      policies: { toolExecution: 'sequential' },
    });
    const result = await conversation.send('hi').result;
    expect(result.termination).toBe('Suspended');
    expect(hook.saw).toEqual(['c1']);
    expect(only(conversation.log(), 'tool-suspended', 'tool-result', 'run-suspended')).toEqual([
      'tool-suspended c1 1',
      'run-suspended c1',
    ]);
  });
});

describe('a decision while the run is active', () => {
  it.each(bothWays)(
    'S001-15: a decision for a call whose hook is still running is held and applied in the round (%s)',
    async (decisionsDuringRound) => {
      const [echo, ask] = [echoTool(), echoTool('ask')];
      let think = (): void => {};
      const thought = new Promise<void>((resolve) => {
        think = resolve;
      });
      let reached = (): void => {};
      const thinking = new Promise<void>((resolve) => {
        reached = resolve;
      });
      const { conversation } = await bench({
        replies: [[call('c1', 'echo', args), call('c2', 'ask', args)], 'done'],
        tools: [echo.tool, ask.tool],
        plugins: [
          {
            name: 'thinker',
            async beforeToolExecute({ call: { name }, decision }) {
              if (name !== 'ask' || decision) return undefined;
              reached();
              await thought;
              return { suspend: { reason: 'must be seen' } };
            },
          },
        ],
        policies: { decisionsDuringRound },
      });
      const run = conversation.send('hi');
      await thinking;
      expect(await conversation.decide({ callId: 'c2', action: 'answer', payload: { approved: true } })).toBe('held');
      think();
      const result = await run.result;
      expect(result).toMatchObject({ termination: 'NaturalEnd', text: 'done', pending: [], turns: 2 });
      expect(ask.ran).toEqual(['c2']);
      expect(resultText(conversation.log(), 'c2')).toBe('{"m":"approved"}');
      expect(only(conversation.log(), 'run-suspended')).toEqual([]);
    },
  );

  it.each(bothWays)(
    'S001-16: an early decision for the only call keeps the run from suspending (%s)',
    async (decisionsDuringRound) => {
      const ask = echoTool('ask');
      const { conversation, model } = await bench({
        replies: [[call('c1', 'ask', args)], 'done'],
        tools: [ask.tool],
        plugins: [
          {
            name: 'asks late',
            async beforeToolExecute({ call: { callId }, decision }) {
              if (decision) return undefined;
              expect(await conversation.decide(approve(callId))).toBe('held');
              return { suspend: { reason: 'must be seen' } };
            },
          },
        ],
        policies: { decisionsDuringRound },
      });
      const result = await conversation.send('hi').result;
      expect(result).toMatchObject({ termination: 'NaturalEnd', text: 'done' });
      expect(model.calls).toHaveLength(2);
      expect(only(conversation.log(), 'decision', 'tool-suspended', 'tool-result', 'decision-consumed')).toEqual([
        'decision c1 1',
        'tool-suspended c1 1',
        'tool-result c1 succeeded',
        'decision-consumed c1 1',
      ]);
    },
  );

  /** A conversation that waits for `old`, and a round of another request in which `c1` blocks. */
  async function waitingThenBusy(decisionsDuringRound: 'immediate' | 'atGate') {
    const [ask, gate] = [echoTool('ask'), gateTool()];
    const all = await bench({
      replies: [[call('old', 'ask', args), call('c0', 'echo', args)], [call('c1', 'gate')], 'done'],
      tools: [ask.tool, gate.tool, echoTool().tool],
      plugins: [asks().plugin],
      policies: { decisionsDuringRound },
    });
    const run = all.conversation.send('hi');
    await gate.begun('c1');
    return { ...all, run, gate, ask };
  }
  const progress = ['tool-started', 'tool-result', 'decision-consumed', 'checkpoint', 'model-reply'] as const;

  it('S001-28: at the gate, the old call is replayed between the commit of the round and the next model call', async () => {
    const { conversation, run, gate, model } = await waitingThenBusy('atGate');
    expect(await conversation.decide(approve('old'))).toBe('applied');
    gate.release('c1');
    await run.result;
    const log = conversation.log();
    const from = log.findIndex((each) => each.type === 'tool-started' && each.callId === 'c1');
    expect(only(log.slice(from), ...progress)).toEqual([
      'tool-started c1',
      'tool-result c1 succeeded',
      'checkpoint ToolResultsCommitted',
      'tool-started old',
      'tool-result old succeeded',
      'decision-consumed old 1',
      'checkpoint ToolResultsCommitted',
      'model-reply',
      'checkpoint AssistantTurnCommitted',
      'checkpoint RunFinished',
    ]);
    const shown = lines(model.calls[2]?.messages ?? []);
    expect(shown).toContain('c1 c1 is done');
    expect(shown.at(-1)).toMatch(/earlier call "old".*approved/s);
  });

  it('S001-30: at once, the old call is replayed while the round still runs, and nothing is reported twice', async () => {
    const { conversation, run, gate, ask } = await waitingThenBusy('immediate');
    const done = entry(conversation, 'tool-result', ({ callId }) => callId === 'old');
    expect(await conversation.decide(approve('old'))).toBe('applied');
    await done;
    expect(only(conversation.log(), 'tool-result')).not.toContain('tool-result c1 succeeded');
    gate.release('c1');
    expect((await run.result).termination).toBe('NaturalEnd');
    expect(ask.ran).toEqual(['old']);
    expect(only(conversation.log(), 'tool-suspended')).toEqual(['tool-suspended old 1']);
  });

  it('S001-30: a call of the same round is decided and replayed while its sibling still runs', async () => {
    const [ask, gate] = [echoTool('ask'), gateTool()];
    const { conversation } = await bench({
      replies: [[call('c1', 'ask', args), call('c2', 'gate')], 'done'],
      tools: [ask.tool, gate.tool],
      plugins: [asks().plugin],
    });
    const run = conversation.send('hi');
    await entry(conversation, 'tool-suspended');
    await conversation.decide(approve('c1'));
    await entry(conversation, 'tool-result', ({ callId }) => callId === 'c1');
    gate.release('c2');
    const result = await run.result;
    expect(result).toMatchObject({ termination: 'NaturalEnd', text: 'done', pending: [] });
    expect(only(conversation.log(), 'tool-result')).toEqual(['tool-result c1 succeeded', 'tool-result c2 succeeded']);
  });

  it('S001-31: a decision is applied while the model streams, and a cancel then ends the run', async () => {
    const ask = echoTool('ask');
    const { conversation, clock } = await bench({
      replies: [[call('c1', 'ask', args), call('c2', 'echo', args)], deaf(t('chunk'))],
      tools: [ask.tool, echoTool().tool],
      plugins: [asks().plugin],
    });
    const chunk = new Promise<void>((resolve) => {
      conversation.live$.subscribe((signal) => signal.type === 'text-delta' && resolve());
    });
    const run = conversation.send('hi');
    await chunk;
    expect(await conversation.decide(approve('c1'))).toBe('applied');
    await entry(conversation, 'decision-consumed');
    expect(await clock.until(conversation.cancel())).toBeLessThanOrEqual(100);
    expect((await run.result).termination).toBe('Cancelled');
    expect(only(conversation.log(), 'tool-started', 'tool-result', 'run-stop').slice(-3)).toEqual([
      'tool-started c1',
      'tool-result c1 succeeded',
      'run-stop interrupted cancelled',
    ]);
  });

  it.each(bothWays)(
    'RUN-9: a decision during the model call is replayed at once, or after the reply (%s)',
    async (decisionsDuringRound) => {
      const ask = echoTool('ask');
      let ranDuring: readonly string[] = [];
      const { conversation, model } = await bench({
        replies: [
          [call('c1', 'ask', args), call('c2', 'echo', args)],
          during(async () => {
            await conversation.decide(approve('c1'));
            if (decisionsDuringRound === 'immediate') await entry(conversation, 'decision-consumed');
            ranDuring = [...ask.ran];
          }, [call('c3', 'echo', args)]),
          'done',
        ],
        tools: [ask.tool, echoTool().tool],
        plugins: [asks().plugin],
        policies: { decisionsDuringRound },
      });
      const result = await conversation.send('hi').result;
      expect(result).toMatchObject({ termination: 'NaturalEnd', text: 'done' });
      expect(ranDuring).toEqual(decisionsDuringRound === 'immediate' ? ['c1'] : []);
      expect(ask.ran).toEqual(['c1']);
      const messageLines = lines(model.calls[2]?.messages ?? []);
      if (decisionsDuringRound === 'immediate') expect(messageLines[2]).toBe('c1 {"m":"approved"}');
      else expect(messageLines.at(-1)).toContain('earlier call "c1"');
    },
  );

  it('a decision that a plugin waits for before the model call is replayed while the model streams', async () => {
    const ask = echoTool('ask');
    let steps = 0;
    let on: Bench | undefined;
    const decides: Plugin = {
      name: 'decides',
      async beforeInference() {
        steps += 1;
        if (steps === 2) await on?.conversation.decide(approve('c1'));
        return undefined;
      },
    };
    on = await bench({
      replies: [
        [call('c1', 'ask', args), call('c2', 'echo', args)],
        during(() => entry((on as Bench).conversation, 'decision-consumed'), 'meanwhile'),
        'done',
      ],
      tools: [ask.tool, echoTool().tool],
      plugins: [asks().plugin, decides],
    });
    const result = await on.conversation.send('hi').result;
    expect(result).toMatchObject({ termination: 'NaturalEnd', text: 'done' });
    expect(ask.ran).toEqual(['c1']);
  });

  it('a decision that a plugin waits for after the model call is replayed while the tools of the reply run', async () => {
    const [ask, gate] = [echoTool('ask'), gateTool()];
    let steps = 0;
    let on: Bench | undefined;
    const decides: Plugin = {
      name: 'decides',
      async afterInference() {
        steps += 1;
        if (steps === 2) await on?.conversation.decide(approve('c1'));
        return undefined;
      },
    };
    on = await bench({
      replies: [[call('c1', 'ask', args), call('c2', 'echo', args)], [call('c3', 'gate')], 'done'],
      tools: [ask.tool, echoTool().tool, gate.tool],
      plugins: [asks().plugin, decides],
    });
    const run = on.conversation.send('hi');
    await gate.begun('c3');
    await entry(on.conversation, 'decision-consumed');
    gate.release('c3');
    expect((await run.result).text).toBe('done');
    expect(only(on.conversation.log(), 'tool-result').slice(1)).toEqual([
      'tool-result c1 succeeded',
      'tool-result c3 succeeded',
    ]);
  });
});
