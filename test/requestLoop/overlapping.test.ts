/** Requests of one session that overlap or follow each other: the fields that each of them resets, keeps and adds. */
import { describe, expect, it } from 'vitest';
import { processRequest } from '../../src/requestLoop/index.ts';
import { echoTool, gateTool } from '../support/scenarioTools.ts';
import { call, finish, lines, t } from '../support/scriptedReplies.ts';
import { loopBench } from './sessionBench.ts';

const idsIn = ({ session }: ReturnType<typeof loopBench>) =>
  session.runtime.toolRegistry.list().map(({ callId, status }) => `${callId} ${status}`);

describe('requests that overlap', () => {
  it('keep the calls of each other, and the first request after all of them begins with none', async () => {
    const gate = gateTool();
    const on = loopBench({
      replies: [[call('a', 'gate')], [call('b', 'gate')], 'two', 'one', 'three'],
      tools: [gate.tool],
    });
    const first = processRequest('first', 'm', on.state);
    await gate.begun('a');
    const second = processRequest('second', 'm', on.state);
    await gate.begun('b');
    expect([idsIn(on), on.session.task.originalQuery]).toEqual([['a running', 'b running'], 'second']);
    gate.release('b', 'B');
    expect((await second).result).toEqual({ output: 'two' });
    expect(idsIn(on)).toEqual(['a running', 'b completed']);
    gate.release('a', 'A');
    expect((await first).result).toEqual({ output: 'one' });
    expect(idsIn(on)).toEqual(['a completed', 'b completed']);
    await on.request('third');
    expect(idsIn(on)).toEqual([]);
  });

  it('that fail release their place too', async () => {
    const on = loopBench({
      replies: [new Error('no'), [call('a', 'echo', { m: '' })], 'one', 'two'],
      tools: [echoTool().tool],
      policies: { modelRetry: { attempts: 1 } } as never,
    });
    await expect(on.request('first')).rejects.toThrow();
    await on.request('second');
    expect(idsIn(on)).toEqual(['a completed']);
    await on.request('third');
    expect(idsIn(on)).toEqual([]);
  });
});

describe('a request', () => {
  it('resets its own counters, and adds to the usage, the thoughts and the messages', async () => {
    const reasoning = (text: string) => ({ type: 'reasoning-delta' as const, text });
    const replies = [
      [
        reasoning('why'),
        t('look'),
        call('a', 'echo', { m: '' }),
        call('b', 'echo', { m: '' }),
        finish('tool-calls', 3),
      ],
      [t(''), finish('stop', 2)],
      [t('one'), finish('stop', 4)],
      [reasoning('how'), t('two'), finish('stop', 5)],
    ];
    const on = loopBench({ replies, tools: [echoTool().tool] });
    const ids: string[] = [];
    await on.request('first');
    const { runtime, usage, conversation, task } = on.session;
    ids.push(runtime.requestId);
    expect([
      runtime.currentIteration,
      runtime.iterationCount,
      runtime.batchCounter,
      runtime.consecutiveEmptyResponses,
    ]).toEqual([3, 3, 1, 0]);
    const firstTotal = usage.sessionTotalUsage;
    expect(usage.lastCallUsage.outputTokens).toBe(4);
    expect(firstTotal.outputTokens).toBe(9);
    await on.request('second');
    ids.push(runtime.requestId);
    expect([runtime.currentIteration, runtime.iterationCount, runtime.batchCounter]).toEqual([1, 1, 0]);
    expect([usage.lastCallUsage.outputTokens, usage.sessionTotalUsage.outputTokens]).toEqual([5, 14]);
    expect([conversation.thoughts, task.originalQuery]).toEqual([['why', 'how'], 'second']);
    const asked = lines(conversation.messages).filter((line) => /^user (first|second)$/.test(line));
    expect(asked).toEqual(['user first', 'user second']);
    expect(new Set(ids).size).toBe(2);
    for (const id of ids) expect(id).toMatch(/^[0-9a-z]{8}$/);
  });
});
