/** The cost of a conversation by call, run and model, computed from its log alone. */
import { describe, expect, it } from 'vitest';
import { costOf, type LogEntry, ModelError, memoryStore } from '../../src/index.ts';
import { bench, restart } from '../support/agentBench.ts';
import { echoTool } from '../support/scenarioTools.ts';
import { call, finish, scripted, t } from '../support/scriptedReplies.ts';

const prices = { input: 3, output: 15 };

describe('costOf', () => {
  it('TRC-9 it sums the model calls by model, by run and in total', async () => {
    const cheap = scripted([[t('from the other'), finish('stop', 1_000_000)]], {
      id: 'cheap',
      prices: { input: 1, output: 1 },
    });
    const model = scripted(
      [
        [call('c1', 'echo', { text: 'a' }), finish('tool-calls', 1_000_000)],
        [t('done'), finish('stop', 1_000_000)],
        new ModelError({ code: 'server' }),
      ],
      { id: 'dear', prices },
    );
    const policies = { modelRetry: { attempts: 1, fallbackModels: [cheap] } };
    const { conversation } = await bench({ model, tools: [echoTool().tool], policies });
    const first = await conversation.send('one').result;
    const second = await conversation.send('two').result;
    const { total, models, runs, calls } = costOf(conversation.log());
    expect(calls.map(({ model, turn, costUsd }) => [model, turn, costUsd])).toEqual([
      ['dear', 1, 18],
      ['dear', 2, 18],
      ['cheap', 1, 2],
    ]);
    expect(models.map(({ model, calls, costUsd }) => [model, calls, costUsd])).toEqual([
      ['dear', 2, 36],
      ['cheap', 1, 2],
    ]);
    expect(runs.map(({ runId, costUsd }) => [runId, costUsd])).toEqual([
      [first.runId, first.costUsd],
      [second.runId, second.costUsd],
    ]);
    expect(total).toMatchObject({ calls: 3, costUsd: 38, knownUsd: 38, unpriced: 0 });
    expect(total.usage).toMatchObject({ inputTokens: 3_000_000, outputTokens: 3_000_000 });
  });

  it('TRC-9 an unknown price is reported, and never counted as zero', async () => {
    const other = scripted([[t('unpriced'), finish('stop', 10)]], { id: 'unpriced' });
    const model = scripted([[t('priced'), finish('stop', 1_000_000)], new ModelError({ code: 'server' })], {
      id: 'priced',
      prices,
    });
    const policies = { modelRetry: { attempts: 1, fallbackModels: [other] } };
    const { conversation } = await bench({ model, policies });
    await conversation.send('one').result;
    expect((await conversation.send('two').result).costUsd).toBeNull();
    const { total, models } = costOf(conversation.log());
    expect(total).toMatchObject({ costUsd: null, knownUsd: 18, unpriced: 1 });
    expect(models).toMatchObject([
      { model: 'priced', costUsd: 18, unpriced: 0 },
      { model: 'unpriced', costUsd: null, knownUsd: 0, unpriced: 1 },
    ]);
  });

  it('TRC-15 a conversation without calls costs nothing, and turns, cost and exit are the same after a restart', async () => {
    expect(costOf([]).total).toMatchObject({ calls: 0, costUsd: 0, unpriced: 0 });
    const made = await bench({ model: scripted([[t('a'), finish('stop', 5)]], { prices }), store: memoryStore() });
    await made.conversation.send('one').result;
    const before = costOf(made.conversation.log());
    const after = await restart(made);
    expect(costOf(after.conversation.log())).toEqual(before);
    expect((await after.agent.list())[0]).toMatchObject({
      turns: 1,
      costUsd: before.total.costUsd,
      lastCause: 'end_turn',
    });
  });

  it('summaries and sub-agents are counted, and an invalid price is ignored', () => {
    const base = { seq: 1, at: 0, conversationId: 'c', runId: 'r' };
    const usage = { inputTokens: 7, outputTokens: 3, cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };
    const value = { callId: 'c1', conversationId: 'd', upTo: 3, usage, costUsd: 0.5 };
    const log: LogEntry[] = [
      { ...base, type: 'extension', name: 'runchart.sub-agent-usage', value },
      { ...base, type: 'extension', name: 'runchart.sub-agent-usage', value: { ...value, models: [{ model: 'm' }] } },
      { ...base, type: 'model-reply', turn: 1, model: 'm', finish: 'stop', usage, costUsd: -1 },
      { ...base, type: 'compaction', upToSeq: 0, summary: 's', usage, costUsd: 0.25, model: 'n' },
      { ...base, type: 'compaction', upToSeq: 0, summary: 's' },
    ];
    expect(costOf(log).models).toMatchObject([
      { model: 'sub-agents', costUsd: 1, calls: 2 },
      { model: 'm', costUsd: null, unpriced: 1 },
      { model: 'n', costUsd: 0.25, calls: 1 },
    ]);
    const used = { ...value, models: [{ model: 'm', calls: 3, usage }] };
    const usageEntry: LogEntry = { ...base, type: 'extension', name: 'runchart.sub-agent-usage', value: used };
    expect(costOf([usageEntry]).total).toMatchObject({ calls: 3, costUsd: null, unpriced: 3 });
  });
});
