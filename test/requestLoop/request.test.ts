/** Tests a request of the agent-loop contract: its handle, its nodes, and its changes to the session. */
import { describe, expect, it } from 'vitest';
import { ModelError, RunError, subAgents } from '../../src/index.ts';
import { type Node, processRequest } from '../../src/requestLoop/index.ts';
import { echoTool } from '../support/scenarioTools.ts';
import { call, finish, lines, scripted, t } from '../support/scriptedReplies.ts';
import { loopBench } from './sessionBench.ts';

async function nodesOf(run: AsyncIterable<Node>): Promise<Node[]> {
  const nodes: Node[] = [];
  for await (const node of run) nodes.push(node);
  return nodes;
}

describe('a request', () => {
  it('LOOP-1: resolves to a handle with its answer, its messages and a completed response state', async () => {
    const on = loopBench({ replies: ['hello'] });
    const run = await on.request('hi');
    expect(run.result).toEqual({ output: 'hello' });
    expect(run.responseState).toEqual({ state: 'RESPONSE', taskCompleted: true });
    expect(lines(run.allMessages())).toEqual(['user hi', 'assistant hello']);
    expect(await nodesOf(run)).toMatchObject([
      {
        request: { parts: [{ partKind: 'user-prompt', content: 'hi' }] },
        modelResponse: { parts: [{ partKind: 'text', content: 'hello' }], usage: { inputTokens: 0 } },
        result: { output: 'hello' },
      },
    ]);
  });

  it('LOOP-2, section 4: a node is one model call, with the returns of the calls before it, its thought and its usage', async () => {
    const thinking = [
      { type: 'reasoning-delta', text: 'which?' } as const,
      call('c1', 'echo', { m: 'a' }),
      finish('tool-calls', 7),
    ];
    const on = loopBench({ replies: [thinking, 'done'], tools: [echoTool().tool] });
    const nodes = await nodesOf(await on.request('hi'));
    expect(nodes).toMatchObject([
      {
        request: { parts: [{ partKind: 'user-prompt' }] },
        modelResponse: {
          parts: [
            { partKind: 'thinking', content: 'which?' },
            { partKind: 'tool-call', toolCallId: 'c1', toolName: 'echo', args: { m: 'a' } },
          ],
          usage: { inputTokens: 7, outputTokens: 7 },
        },
        thought: 'which?',
      },
      {
        request: { parts: [{ partKind: 'tool-return', toolCallId: 'c1', toolName: 'echo', content: '{"m":"a"}' }] },
        result: { output: 'done' },
      },
    ]);
    expect(nodes[0]?.result).toBeUndefined();
    const deltas: string[] = [];
    for await (const { delta } of nodes[1]?.stream?.() ?? []) deltas.push(delta);
    expect(deltas).toEqual(['done']);
    expect(on.session.conversation.thoughts).toEqual(['which?']);
    expect(on.session.runtime).toMatchObject({ currentIteration: 2, iterationCount: 2, batchCounter: 1 });
  });

  it('S004-01: resets counters, registry, batch and empty count for each request, under an id of 8 characters', async () => {
    const on = loopBench({
      replies: [[call('c1', 'echo', { m: 'a' })], [t('')], 'done', 'again'],
      tools: [echoTool().tool],
    });
    await on.request('first');
    const { runtime } = on.session;
    expect(runtime).toMatchObject({ currentIteration: 3, batchCounter: 1, consecutiveEmptyResponses: 0 });
    expect(runtime.toolRegistry.list()).toHaveLength(1);
    const first = runtime.requestId;
    expect(first).toHaveLength(8);
    runtime.consecutiveEmptyResponses = 9;
    const second = on.request('second', {
      streamingCallback() {
        expect(runtime).toMatchObject({
          currentIteration: 0,
          iterationCount: 0,
          batchCounter: 0,
          consecutiveEmptyResponses: 0,
        });
        expect(runtime.toolRegistry.list()).toEqual([]);
        expect(on.session.task.originalQuery).toBe('second');
      },
    });
    await second;
    expect(runtime.requestId).toHaveLength(8);
    expect(runtime.requestId).not.toBe(first);
  });

  it('LOOP-4, S004-02: the run’s messages are the session’s, and messages that others appended meanwhile stay after them', async () => {
    const on = loopBench({ replies: ['one', 'two'] });
    await on.request('first');
    on.session.conversation.messages.push(
      { role: 'user', content: [] },
      { role: 'assistant', content: [{ type: 'text', text: 'noted' }], toolCalls: [] },
    );
    const { messages } = on.session.conversation;
    const added = { role: 'user' as const, content: [{ type: 'text' as const, text: 'X' }] };
    const run = await on.request('second', { streamingCallback: () => void messages.push(added) });
    expect(lines(messages)).toEqual([...lines(run.allMessages()), 'user X']);
    expect(lines(messages)).toEqual([
      'user first',
      'assistant one',
      'user ',
      'assistant noted',
      'user second',
      'assistant two',
      'user X',
    ]);
    expect(on.session.conversation.messages).toBe(messages);
  });

  it('S004-29: usage is the last call’s and the total of all, without a price there is no cost', async () => {
    const on = loopBench({
      replies: [
        [t('a'), finish('stop', 3)],
        [t('b'), finish('stop', 4)],
      ],
    });
    await on.request('first');
    await on.request('second');
    const { lastCallUsage, sessionTotalUsage } = on.session.usage;
    expect(lastCallUsage).toEqual({
      inputTokens: 4,
      outputTokens: 4,
      cachedInputTokens: 0,
      cacheWriteTokens: 0,
      reasoningTokens: 0,
    });
    expect(sessionTotalUsage).toMatchObject({ inputTokens: 7, outputTokens: 7, cachedInputTokens: 0, costUsd: null });
  });

  it('3.6: with prices the total has its cost, that of sub-agents included; the text of sub-agents is not streamed', async () => {
    const prices = { input: 1_000_000, output: 0 };
    const submit = call('s1', 'submit_result', { result: 'done' });
    const replies = [
      [call('c1', 'spawn_agents', { tasks: [{ id: 'a', task: 'look' }] }), finish('tool-calls', 1)],
      [t('within'), submit, finish('tool-calls', 20)],
      [t('done'), finish('stop', 300)],
    ];
    const on = loopBench({ model: scripted(replies, { prices }), tools: [subAgents()] });
    await on.request('hi');
    const { lastCallUsage, sessionTotalUsage } = on.session.usage;
    expect(on.events.filter((line) => line.startsWith('delta'))).toEqual(['delta done']);
    expect([lastCallUsage.inputTokens, sessionTotalUsage.inputTokens, sessionTotalUsage.costUsd]).toEqual([
      300, 321, 321,
    ]);
  });

  it('a model that fails is a RunError, and neither the user’s message nor the next request is lost', async () => {
    const on = loopBench({ replies: [new ModelError({ code: 'auth', retryable: false }), 'hello'] });
    await expect(on.request('hi')).rejects.toThrow(RunError);
    expect(lines(on.session.conversation.messages)).toEqual(['user hi']);
    expect((await on.request('again')).result).toEqual({ output: 'hello' });
    expect(lines(on.model.calls[1]?.messages ?? [])).toEqual(['user again']);
  });

  it('LOOP-10: settings.maxIterations ends a request without an answer, and with what its tools returned', async () => {
    const echo = echoTool();
    const replies = [1, 2, 3].map((n) => [call(`c${n}`, 'echo', { m: `${n}` })]);
    const on = loopBench({ replies, tools: [echo.tool], settings: { maxIterations: 2 } });
    const run = await on.request('hi');
    expect([on.model.calls.length, run.result, run.responseState.taskCompleted]).toEqual([2, null, false]);
    expect((await nodesOf(run)).at(-1)).toEqual({
      request: { parts: [expect.objectContaining({ toolCallId: 'c2' })] },
    });
  });

  it('refuses what createStateManager did not make', async () => {
    await expect(processRequest('hi', 'm', { session: {} } as never)).rejects.toThrow('createStateManager');
  });
});
