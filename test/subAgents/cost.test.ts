/**
 * The usage of sub-agents counts in the budget of their parent, also after a restart (docs/internals/lifecycle.md,
 * Budget).
 */
import { describe, expect, it } from 'vitest';
import { zeroUsage } from '../../machines/internal.ts';
import { costOf, type LogEntry, subAgents } from '../../src/index.ts';
import { overBudget } from '../../src/subAgents/subAgentOutcome.ts';
import { bench, entry, only, restart } from '../support/agentBench.ts';
import { asks, echoTool } from '../support/scenarioTools.ts';
import { call, deaf, finish, scripted, t } from '../support/scriptedReplies.ts';
import { byTask, childOf, logOf, reported, spawn, submit } from '../support/subAgentBench.ts';
import { troubledStore } from '../support/troubledStore.ts';
import { VirtualClock } from '../support/virtualClock.ts';

/** A dollar a token, so that figures can be read. */
const prices = { input: 1_000_000, output: 0 };
const uses = (tokens: number) => finish('tool-calls', tokens);
const counted = (log: readonly LogEntry[]): unknown[] =>
  log.flatMap((each) => (each.type === 'extension' ? [each.value] : []));
const says = (text: string, tokens: number) => [t(text), finish('stop', tokens)];

describe('a budget that a parent shares with its sub-agents', () => {
  const counted = { tokens: 10, costUsd: 3, unpriced: 0 };
  const used = (costUsd: number | null, inputTokens = 0) => ({
    usage: { ...zeroUsage.usage, inputTokens },
    costUsd,
  });

  it.each([
    ['is spent if both sums reach it exactly', { costUsd: 5 }, counted, [used(1), used(1)], true],
    ['remains below that', { costUsd: 5 }, counted, [used(1.75)], false],
    ['is spent by a price that is unknown in the log', { costUsd: 5 }, { ...counted, unpriced: 1 }, [], true],
    ['is spent by a price that is still unknown', { costUsd: 5 }, counted, [used(null)], true],
    ['of tokens needs no price', { tokens: 20 }, { ...counted, unpriced: 1 }, [used(null, 9)], false],
    ['of tokens is spent if both sums reach it', { tokens: 20 }, counted, [used(0, 10)], true],
    ['that was not set is never spent', {}, { ...counted, unpriced: 1 }, [used(null, 1_000)], false],
  ])('%s', (_, limits, sums, since, isSpent) => {
    expect(overBudget({ costUsd: false, tokens: false, ...limits }, () => ({ counted: sums, uncounted: since }))).toBe(
      isSpent,
    );
  });
});

describe('the cost of sub-agents', () => {
  it('it is in the result of the run, in the list and in the log, and in the limits after a restart', async () => {
    const echo = echoTool();
    const model = byTask(
      {
        alpha: [
          [call('e', 'echo', { m: 'x' }), uses(3)],
          [submit('s', 'A'), uses(4)],
        ],
        beta: [says('B', 5)],
      },
      { id: 'small', prices },
    );
    const parent = scripted([[spawn('p', 'alpha', 'beta'), uses(1)], says('done', 2)], { prices });
    const first = await bench({ model: parent, tools: [echo.tool, subAgents({ model })] });
    const result = await first.conversation.send('hi').result;
    expect(result).toMatchObject({ turns: 2, costUsd: 15, usage: { inputTokens: 15, outputTokens: 15 } });
    expect((await first.agent.list())[0]).toMatchObject({ turns: 2, costUsd: 15 });
    expect(counted(first.conversation.log())).toMatchObject([
      { callId: 'p', conversationId: childOf('p', 'b'), costUsd: 5 },
      { callId: 'p', conversationId: childOf('p', 'a'), costUsd: 7 },
    ]);
    const { total, models, calls } = costOf(first.conversation.log());
    expect(total).toMatchObject({ calls: 5, costUsd: 15, unpriced: 0 });
    expect(models).toMatchObject([
      { model: 'scripted', calls: 2, costUsd: 3 },
      { model: 'small', calls: 3, costUsd: 12, usage: { inputTokens: 12 } },
    ]);
    expect(calls.filter(({ subAgent }) => subAgent === childOf('p', 'a'))).toMatchObject([{ calls: 2, costUsd: 7 }]);
    const again = await restart(first, {
      model: scripted([], { prices }),
      tools: [echo.tool, subAgents({ model })],
      policies: { limits: { costUsd: 15 } },
    });
    expect(await again.conversation.send('more').result).toMatchObject({
      termination: 'Stopped',
      cause: 'max_budget',
      turns: 0,
    });
    await again.agent.close();
  });

  it('unknown prices make it unknown', async () => {
    const { conversation } = await bench({
      model: scripted([[spawn('p', 'alpha')], 'done'], { prices }),
      tools: [subAgents({ model: byTask({ alpha: ['A'] }) })],
    });
    expect((await conversation.send('hi').result).costUsd).toBeNull();
  });

  it.each([
    ['costUsd', 'max_budget'],
    ['tokens', 'max_total_tokens'],
  ])('limits.%s stops the parent after the call that spent it', async (limit, cause) => {
    const model = byTask({ alpha: [[submit('s', 'A'), uses(10)]] }, { prices });
    const { conversation, model: parent } = await bench({
      model: scripted([[spawn('p', 'alpha'), uses(1)], 'never'], { prices }),
      tools: [subAgents({ model })],
      policies: { limits: { [limit]: 10 } },
    });
    expect(await conversation.send('hi').result).toMatchObject({ termination: 'Stopped', cause });
    expect(parent.calls).toHaveLength(1);
    expect(reported(conversation.log(), 'p')[0]).toMatchObject({ outcome: 'succeeded' });
  });

  it('it stops the sub-agents themselves: the rest is checked before each model call, and exceeded by at most one call a sub-agent', async () => {
    const echo = echoTool();
    const step = (id: string) => [call(id, 'echo', { m: 'x' }), uses(4)];
    const model = byTask(
      { alpha: [step('1'), step('2'), step('3')], beta: [step('4'), step('5'), step('6')] },
      { prices },
    );
    const { conversation, store } = await bench({
      model: scripted([[spawn('p', 'alpha', 'beta'), uses(1)]], { prices }),
      tools: [echo.tool, subAgents({ model })],
      policies: { limits: { costUsd: 10 } },
    });
    const result = await conversation.send('hi').result;
    expect(result).toMatchObject({ termination: 'Stopped', cause: 'max_budget' });
    expect(result.costUsd).toBeGreaterThanOrEqual(10);
    expect(result.costUsd).toBeLessThanOrEqual(10 + 2 * 4);
    for (const report of reported(conversation.log(), 'p')) {
      expect(report).toMatchObject({ outcome: 'failed', text: expect.stringMatching(/budget/) });
    }
    expect(only(await logOf(store, childOf('p', 'a')), 'run-stop')).toEqual(['run-stop completed max_budget']);
  });

  it.each([{ costUsd: 10 }, { tokens: 20 }, { tokens: 24 }])(
    '%o: the tokens that the parent spent in the current run are not available to its sub-agents',
    async (limits) => {
      const echo = echoTool();
      const model = byTask(
        {
          alpha: [
            [call('1', 'echo', { m: 'x' }), uses(4)],
            [submit('s', 'A'), uses(4)],
          ],
        },
        { prices },
      );
      const { conversation } = await bench({
        model: scripted([[spawn('p', 'alpha'), uses(9)]], { prices }),
        tools: [echo.tool, subAgents({ model })],
        policies: { limits },
      });
      expect((await conversation.send('hi').result).costUsd).toBe(13);
      expect(model.of('alpha').calls).toHaveLength(1);
    },
  );

  it('that of a waiting one is counted when it starts to wait, and never twice', async () => {
    const ask = echoTool('ask');
    const model = byTask(
      {
        alpha: [
          [call('x', 'ask', { m: 'x' }), uses(3)],
          [submit('s', 'A'), uses(4)],
        ],
      },
      { prices },
    );
    const options = { tools: [ask.tool, subAgents({ model })], plugins: [asks().plugin] };
    const first = await bench({ model: scripted([[spawn('p', 'alpha'), uses(1)]], { prices }), ...options });
    expect(await first.conversation.send('hi').result).toMatchObject({ termination: 'Suspended', costUsd: 4 });
    const second = await restart(first, { model: scripted([says('done', 2)], { prices }), ...options });
    expect((await second.agent.list())[0]?.costUsd).toBe(4);
    await second.conversation.decide({ callId: 'x', action: 'approve' });
    expect(await second.conversation.resume().result).toMatchObject({ text: 'done', costUsd: 6 });
    expect((await second.agent.list())[0]?.costUsd).toBe(10);
    await second.agent.close();
  });

  it('that of a cancelled one is counted after the stop, in no run', async () => {
    const echo = echoTool();
    const model = byTask(
      {
        alpha: [
          [call('e', 'echo', { m: 'x' }), uses(3)],
          async function* () {
            yield t('so far');
            await new Promise(() => undefined);
          },
        ],
      },
      { prices },
    );
    const { conversation, agent } = await bench({
      model: scripted([[spawn('p', 'alpha'), uses(1)]], { prices }),
      tools: [echo.tool, subAgents({ model })],
    });
    const run = conversation.send('hi');
    await expect.poll(() => model.of('alpha').calls.length).toBe(2);
    await conversation.cancel();
    await entry(conversation, 'extension');
    expect((await run.result).costUsd).toBe(1);
    const late = conversation.log().filter(({ type }) => type === 'extension' || type === 'sub-agent');
    expect(late.at(-1)?.runId).toBeNull();
    expect((await agent.list())[0]?.costUsd).toBe(4);
    await conversation.close();
  });

  it('that of one released with its parent, which closes on a slow store, is counted with its end', async () => {
    const echo = echoTool();
    const clock = new VirtualClock();
    const store = troubledStore({ clock });
    const model = byTask({ alpha: [[call('e', 'echo', { m: 'x' }), uses(3)], deaf()] }, { prices });
    const { conversation, agent } = await bench({
      clock,
      store,
      model: scripted([[spawn('p', 'alpha'), uses(1)]], { prices }),
      tools: [echo.tool, subAgents({ model })],
    });
    conversation.send('hi');
    await expect.poll(() => model.of('alpha').calls.length).toBe(2);
    store.trouble(([first]) => ({ afterMs: first?.conversationId === 'c' ? 60 : 40 }));
    // Its diagnostic delays the entries of the close.
    conversation.log$().subscribe(() => {
      throw new Error('a subscriber broke');
    });
    await Promise.resolve();
    await clock.until(conversation.close());
    expect(counted(await logOf(store, 'c'))).toMatchObject([{ costUsd: 3, upTo: expect.any(Number) }]);
    expect((await agent.list())[0]?.costUsd).toBe(4);
  });
});
