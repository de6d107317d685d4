/**
 * A suspended conversation is closed, opened, decided and resumed, in memory and on disk (docs/internals/lifecycle.md,
 * Resume Gate).
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { z } from 'zod';
import {
  type Decision,
  defineTool,
  type LogStore,
  ModelError,
  memoryStore,
  type Plugin,
  toolResult,
} from '../../src/index.ts';
import { jsonlStore } from '../../src/node.ts';
import { type Bench, type BenchOptions, bench, only, restart, resultText, story } from '../support/agentBench.ts';
import { asks, echoTool } from '../support/scenarioTools.ts';
import { call, finish, lines, type Reply, t } from '../support/scriptedReplies.ts';

const args = { m: 'approved' };
const approve = (callId: string): Decision => ({ callId, action: 'approve' });

async function onDisk(): Promise<LogStore> {
  const place = await mkdtemp(join(tmpdir(), 'runchart-resumption-'));
  onTestFinished(() => rm(place, { recursive: true, force: true }));
  return jsonlStore(place);
}
const stores = [
  { where: 'in memory', make: async (): Promise<LogStore> => memoryStore() },
  { where: 'on disk', make: onDisk },
];

/** A conversation that is suspended on these calls, closed, and opened again by another agent. */
async function comeBack(
  store: LogStore,
  calls: readonly string[],
  replies: readonly Reply[],
  more: BenchOptions = {},
): Promise<Bench & { ask: ReturnType<typeof echoTool> }> {
  const ask = echoTool('ask');
  const options = { tools: [ask.tool, echoTool().tool], plugins: [asks().plugin], ...more, store };
  const before = await bench({ ...options, replies: [calls.map((callId) => call(callId, 'ask', args))] });
  const result = await before.conversation.send('hi').result;
  expect(result.termination).toBe('Suspended');
  const after = await restart(before, { ...options, replies });
  onTestFinished(() => after.agent.close());
  expect(after.conversation.status).toBe('waiting');
  expect(after.conversation.pending.map(({ callId }) => callId)).toEqual(calls);
  return { ...after, ask };
}

describe.each(stores)('after a restart ($where)', ({ make }) => {
  it('S001-18: an approved call is replayed once, its result follows the placeholder, and nothing waits any more', async () => {
    const { conversation, ask, model } = await comeBack(await make(), ['c1'], ['done']);
    expect(await conversation.decide(approve('c1'))).toBe('applied');
    expect(conversation.status).toBe('waiting');
    expect(conversation.pending).toEqual([]);
    const result = await conversation.resume().result;
    expect(result).toMatchObject({ termination: 'NaturalEnd', text: 'done', pending: [] });
    expect(ask.ran).toEqual(['c1']);
    const log = conversation.log();
    const resumed = log.slice(log.findIndex(({ type }) => type === 'run-resumed'));
    expect(story(resumed)).toEqual([
      'run-resumed',
      'tool-allowed c1',
      'tool-started c1',
      'tool-result c1 succeeded',
      'decision-consumed c1 1',
      'checkpoint ToolResultsCommitted',
      'agent-output done',
      'model-reply',
      'checkpoint AssistantTurnCommitted',
      'run-stop completed end_turn',
      'checkpoint RunFinished',
    ]);
    expect(only(log, 'tool-suspended', 'decision', 'tool-result')).toEqual([
      'tool-suspended c1 1',
      'decision c1 1',
      'tool-result c1 succeeded',
    ]);
    expect(lines(model.calls[0]?.messages ?? [])).toEqual(['user hi', 'assistant +c1', 'c1 {"m":"approved"}']);
    const { cycles, state } = conversation.view();
    expect(state).toBe('idle');
    expect(cycles).toMatchObject([{ waiting: [], stop: { reason: 'completed' } }]);
  });

  it('S001-18: resume() applies a decision that was durable before the restart', async () => {
    const ask = echoTool('ask');
    const options = { tools: [ask.tool], plugins: [asks().plugin], store: await make() };
    const before = await bench({ ...options, replies: [[call('c1', 'ask', args)]] });
    await before.conversation.send('hi').result;
    expect(await before.conversation.decide(approve('c1'))).toBe('applied');
    const { agent, conversation, model } = await restart(before, { ...options, replies: ['done'] });
    onTestFinished(() => agent.close());
    expect(conversation.status).toBe('waiting');
    expect(ask.ran).toEqual([]);
    expect(model.calls).toHaveLength(0);
    expect((await conversation.resume().result).text).toBe('done');
    expect(ask.ran).toEqual(['c1']);
  });

  it('S001-22: a second request on the same thread replays nothing', async () => {
    const { conversation, ask } = await comeBack(await make(), ['c1'], ['done', 'again']);
    await conversation.decide(approve('c1'));
    await conversation.resume().result;
    const before = conversation.log().length;
    const result = await conversation.send('and now?').result;
    expect(result.text).toBe('again');
    expect(result.calls).toEqual([]);
    expect(ask.ran).toEqual(['c1']);
    expect(only(conversation.log(before), 'tool-started', 'tool-result')).toEqual([]);
  });

  it('S001-24: several decisions replay in call-id order with one checkpoint', async () => {
    const { conversation, ask } = await comeBack(await make(), ['b', 'a'], ['done']);
    expect(await conversation.decide(approve('b'))).toBe('applied');
    expect(await conversation.decide(approve('a'))).toBe('applied');
    const from = conversation.log().length;
    await conversation.resume().result;
    expect(ask.ran).toEqual(['a', 'b']);
    expect(only(conversation.log(from), 'tool-result', 'checkpoint')).toEqual([
      'tool-result a succeeded',
      'tool-result b succeeded',
      'checkpoint ToolResultsCommitted',
      'checkpoint AssistantTurnCommitted',
      'checkpoint RunFinished',
    ]);
  });

  it('S001-27: a resume with undecided calls only ends Suspended without a model call', async () => {
    const { conversation, model } = await comeBack(await make(), ['c1'], []);
    const from = conversation.log().length;
    const result = await conversation.resume().result;
    expect(result).toMatchObject({ termination: 'Suspended', turns: 0 });
    expect(result.pending.map(({ callId }) => callId)).toEqual(['c1']);
    expect(model.calls).toHaveLength(0);
    expect(story(conversation.log(from))).toEqual(['run-resumed', 'run-suspended c1', 'checkpoint RunFinished']);
    expect(conversation.status).toBe('waiting');
  });

  it('B26: a denial is a failed result with code denied, different from a failure, also after another restart', async () => {
    const store = await make();
    const back = await comeBack(store, ['c1'], ['done']);
    await back.conversation.decide({ callId: 'c1', action: 'deny', reason: 'User canceled in UI' });
    await back.conversation.resume().result;
    const { agent, conversation } = await restart(back, { tools: [back.ask.tool] });
    onTestFinished(() => agent.close());
    expect(only(conversation.log(), 'tool-result')).toEqual(['tool-result c1 failed denied']);
    expect(lines(conversation.messages())[2]).toMatch(/^c1! .*User canceled in UI/);
  });
});

describe('resume() with undecided calls only, for each end of the previous run', () => {
  const both = [call('c1', 'ask', args), call('c2', 'echo', args)];
  const wordsEnd: Plugin = {
    name: 'ender',
    afterInference: ({ reply }) => (reply?.text === 'meanwhile' ? { terminate: 'enough' } : undefined),
  };
  const ways: readonly [string, BenchOptions, string][] = [
    ['a plugin, after a reply', { plugins: [asks().plugin, wordsEnd], replies: [both, 'meanwhile'] }, 'ender'],
    ['a limit, before the next model call', { policies: { limits: { turns: 1 } }, replies: [both] }, 'max_turns'],
    ['the length limit, after a reply', { replies: [both, [t('meanwh'), finish('length')]] }, 'max_tokens'],
    ['a model that failed', { replies: [both, new ModelError({ code: 'auth' })] }, 'model'],
  ];

  describe.each(['in the same process', 'in the next one'])('%s', (where) => {
    it.each(ways)('%s: it ends Suspended without a model call', async (_, options, cause) => {
      const ask = echoTool('ask');
      const benchOptions = { plugins: [asks().plugin], ...options, tools: [ask.tool, echoTool().tool] };
      const before = await bench(benchOptions);
      expect(await before.conversation.send('hi').result).toMatchObject({ cause });
      const isNext = where === 'in the next one';
      const { conversation, model } = isNext ? await restart(before, { ...benchOptions, replies: [] }) : before;
      const [from, called] = [conversation.log().length, model.calls.length];
      expect(await conversation.resume().result).toMatchObject({ termination: 'Suspended', turns: 0 });
      expect(story(conversation.log(from))).toEqual(['run-resumed', 'run-suspended c1', 'checkpoint RunFinished']);
      expect(conversation.status).toBe('waiting');
      expect(model.calls).toHaveLength(called);
      await conversation.decide(approve('c1'));
      await conversation.resume().result;
      expect(ask.ran).toEqual(['c1']);
    });
  });
});

describe('the effect of a decision', () => {
  it('S001-19: a replay and then a plugin that terminates commit UserMessage, ToolResultsCommitted, RunFinished', async () => {
    const ender: Plugin = {
      name: 'ender',
      beforeInference: ({ turn }) => (turn > 0 ? { terminate: 'enough' } : undefined),
    };
    const store = memoryStore();
    const { conversation, model } = await comeBack(store, ['c1'], [], { plugins: [asks().plugin, ender] });
    const first = only(conversation.log(), 'checkpoint');
    expect(first[0]).toBe('checkpoint UserMessage');
    const from = conversation.log().length;
    await conversation.decide(approve('c1'));
    const result = await conversation.resume().result;
    expect(result).toMatchObject({ termination: 'PluginRequested', cause: 'ender' });
    expect(model.calls).toHaveLength(0);
    expect(only(conversation.log(from), 'checkpoint')).toEqual([
      'checkpoint ToolResultsCommitted',
      'checkpoint RunFinished',
    ]);
  });

  it('S001-21: a denied call has one result besides its placeholder, with the words of the human', async () => {
    const { conversation, ask } = await comeBack(memoryStore(), ['c1'], ['done']);
    await conversation.decide({ callId: 'c1', action: 'deny', reason: 'User canceled in UI' });
    expect((await conversation.resume().result).termination).toBe('NaturalEnd');
    expect(only(conversation.log(), 'tool-result', 'tool-suspended', 'tool-started')).toEqual([
      'tool-suspended c1 1',
      'tool-result c1 failed denied',
    ]);
    expect(resultText(conversation.log(), 'c1')).toContain('User canceled in UI');
    expect(ask.ran).toEqual([]);
  });

  it('S001-25: a replay that suspends again keeps the call waiting with its new question', async () => {
    const plugin: Plugin = {
      name: 'asks twice',
      beforeToolExecute: ({ decision }) => {
        if (!decision) return { suspend: { reason: 'first' } };
        return decision.suspension === 2 ? undefined : { suspend: { reason: 'second', payload: 2 } };
      },
    };
    const { conversation, model, ask } = await comeBack(memoryStore(), ['c1'], ['done'], { plugins: [plugin] });
    await conversation.decide(approve('c1'));
    const from = conversation.log().length;
    const result = await conversation.resume().result;
    expect(result).toMatchObject({ termination: 'Suspended', turns: 0 });
    expect(result.pending).toMatchObject([{ callId: 'c1', suspension: 2, reason: 'second', payload: 2 }]);
    expect(model.calls).toHaveLength(0);
    expect(story(conversation.log(from))).toEqual([
      'run-resumed',
      'tool-suspended c1 2',
      'decision-consumed c1 1',
      'checkpoint ToolResultsCommitted',
      'run-suspended c1',
      'checkpoint RunFinished',
    ]);
    expect(await conversation.decide({ callId: 'c1', suspension: 2, action: 'approve' })).toBe('applied');
    expect((await conversation.resume().result).text).toBe('done');
    expect(ask.ran).toEqual(['c1']);
  });

  it('RES-7: edited arguments run, the log contains both, and the model receives a note of the edit', async () => {
    const { conversation, ask } = await comeBack(memoryStore(), ['c1'], ['done']);
    await conversation.decide({ callId: 'c1', action: 'edit', args: { m: 'edited' } });
    await conversation.resume().result;
    expect(ask.contexts[0]?.decision).toMatchObject({ action: 'edit' });
    expect(resultText(conversation.log(), 'c1')).toMatch(/"m":"edited".*changed the arguments/s);
    const started = conversation.log().find(({ type }) => type === 'tool-started');
    expect(started).toMatchObject({ args: { m: 'edited' } });
  });

  it('RES-7: edited arguments that do not validate are applied and give failed, invalid_arguments', async () => {
    const { conversation, ask } = await comeBack(memoryStore(), ['c1'], ['done']);
    expect(await conversation.decide({ callId: 'c1', action: 'edit', args: { m: 7 } })).toBe('applied');
    await conversation.resume().result;
    expect(only(conversation.log(), 'tool-result')).toEqual(['tool-result c1 failed invalid_arguments']);
    expect(ask.ran).toEqual([]);
  });

  it('TOOL-3: a tool that returns pending is suspended, and its replay receives the decision and its payload', async () => {
    const seen: unknown[] = [];
    const survey = defineTool({
      name: 'survey',
      description: 'Asks a question.',
      parameters: z.object({}),
      execute: (_, { decision }) => {
        if (!decision) return toolResult.pending({ reason: 'question', payload: { question: 'why?' } });
        seen.push(decision);
        return decision.action === 'answer' ? { answer: decision.payload } : 'no answer';
      },
    });
    const { conversation } = await bench({ replies: [[call('c1', 'survey')], 'ok'], tools: [survey] });
    await conversation.send('hi').result;
    expect(await conversation.decide({ callId: 'c1', action: 'answer', payload: false })).toBe('applied');
    expect((await conversation.resume().result).text).toBe('ok');
    expect(seen).toEqual([{ callId: 'c1', action: 'answer', payload: false }]);
    expect(resultText(conversation.log(), 'c1')).toBe('{"answer":false}');
  });
});
