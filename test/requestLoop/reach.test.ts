/** Tests the inputs of a request's agent, tools and callbacks, and the isolation between requests. */
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { defineTool, type Plugin } from '../../src/index.ts';
import { AgentCache } from '../../src/requestLoop/agentCache.ts';
import { processNode, processRequest } from '../../src/requestLoop/index.ts';
import { LoopRun } from '../../src/requestLoop/loopRun.ts';
import { boom, echoTool, gateTool } from '../support/scenarioTools.ts';
import { call, during, t } from '../support/scriptedReplies.ts';
import { loopBench } from './sessionBench.ts';

describe('an option of the session', () => {
  it('reaches every agent: secrets, working directory, instructions and plugins', async () => {
    const phases: string[] = [];
    const plugin: Plugin = { name: 'notes', runStart: () => void phases.push('runStart') };
    const { tool, contexts } = echoTool();
    const on = loopBench({
      replies: [[call('c1', 'echo', { m: 'the word is hunter22' })], 'done', 'done'],
      ...{ tools: [tool], plugins: [plugin], secrets: ['hunter22'], cwd: '/tmp', instructions: 'Be kind.' },
    });
    await processRequest('hi', 'm', on.state);
    expect(contexts[0]?.cwd).toBe('/tmp');
    expect(on.model.calls.map(({ system }) => system.includes('Be kind.'))).toEqual([true, true]);
    expect(JSON.stringify(on.session.conversation.messages)).not.toContain('hunter22');
    on.state.settings.maxRetries = 5;
    await processRequest('again', 'm', on.state);
    expect(phases).toEqual(['runStart', 'runStart']);
  });

  it.each([
    ['refuses what is not named', z.object({ m: z.string() }), { m: '', stray: 1 }, true],
    ['refuses a name that every object has', z.object({ m: z.string() }), { m: '', toString: 1 }, true],
    ['takes what is named', z.object({ m: z.string() }), { m: '' }, false],
    ['takes anything where the schema does', z.looseObject({ m: z.string() }), { m: '', stray: 1 }, false],
    [
      'takes stray keys that the schema allows',
      z.object({ m: z.string() }).catchall(z.number()),
      { m: '', stray: 1 },
      false,
    ],
    ['leaves a list of names of any kind alone', z.record(z.string(), z.string()), { stray: 'a' }, false],
  ])('toolStrictValidation %s', async (_, parameters, args, isRefused) => {
    const ran: unknown[] = [];
    const tool = defineTool({ name: 'act', description: '', parameters, execute: (input) => void ran.push(input) });
    const on = loopBench({
      replies: [[call('c1', 'act', args as never)], 'done'],
      ...{ tools: [tool], settings: { toolStrictValidation: true } },
    });
    await on.request('hi');
    expect(ran.length).toBe(isRefused ? 0 : 1);
  });
});

describe('a request', () => {
  it('fails by the first thing that fails it', async () => {
    const shown = new Error('cannot be shown');
    const ends = async (act: (stop: AbortController) => void) => {
      const on = loopBench({ replies: [[t('a')], 'b'] });
      const stop = new AbortController();
      const asked = on.request('hi', { signal: stop.signal, streamingCallback: () => act(stop) });
      return asked.catch((error: unknown) => error);
    };
    const both = (stop: AbortController): void => {
      stop.abort();
      throw shown;
    };
    expect(await ends(both)).toMatchObject({ code: 'user_abort' });
    const other = await ends((stop) => {
      queueMicrotask(() => queueMicrotask(() => queueMicrotask(() => stop.abort())));
      throw shown;
    });
    expect(other).toBe(shown);
  });

  it('that fails by its model is a RunError, though a tool had thrown before', async () => {
    const on = loopBench({ replies: [[call('c1', 'boom')], new Error('no credit')], tools: [boom] });
    await expect(on.request('hi')).rejects.toMatchObject({ code: 'run' });
  });

  it('leaves nothing with its agent', async () => {
    const on = loopBench({ replies: ['a', new Error('no credit')] });
    const ports = { now: on.clock.now, setTimer: on.clock.setTimer };
    const serving = new AgentCache({ resolveModel: () => on.model, tools: [], ports }).acquire('m', {});
    const follower = { take: () => undefined, quiet: () => undefined };
    for (const id of ['c', 'd']) {
      const run = new LoopRun({ serving, setTimer: on.clock.setTimer, callbacks: {}, follower });
      await on.clock.until(run.run({ id, message: 'hi', history: [], timeoutSeconds: 0 }), 1_000_000);
      expect([serving.requests.size, await serving.store.list()]).toEqual([0, []]);
    }
  });

  it('that is aborted takes its own agent along, and not the one that has replaced it', async () => {
    const gate = gateTool();
    const on = loopBench({ replies: [[call('c1', 'gate')], 'second', 'third'], tools: [gate.tool] });
    const stop = new AbortController();
    const first = processRequest('one', 'm', on.state, { signal: stop.signal });
    await gate.begun('c1');
    on.state.settings.maxRetries = 5;
    await on.request('two');
    stop.abort();
    await expect(first).rejects.toMatchObject({ code: 'user_abort' });
    await on.request('three');
    expect(on.resolved).toEqual(['m', 'm']);
  });

  it('after close() gets an agent of its own', async () => {
    const on = loopBench({ replies: ['a', 'b'] });
    await on.request('one');
    await on.state.close();
    expect((await on.request('two')).result).toEqual({ output: 'b' });
    expect(on.resolved).toEqual(['m', 'm']);
  });
});

it.each([
  [undefined, '{"m":"a"}'],
  [null, 'null'],
  ['', ''],
  [0, '0'],
])('a tool callback that runs the tool and answers %j has the result %j', async (answer, result) => {
  const on = loopBench({ replies: [[call('c1', 'echo', { m: 'a' })], 'done'], tools: [echoTool().tool] });
  await on.request('hi', {
    async toolCallback(_, node) {
      await node.run();
      return answer;
    },
  });
  expect(on.session.runtime.toolRegistry.get('c1')?.result).toBe(result);
});

describe('the calls of a node', () => {
  const part = (toolCallId: string, toolName: string) => ({
    ...{ partKind: 'tool-call' as const, toolCallId, toolName, args: { m: 'a' } },
  });
  const node = (...parts: ReturnType<typeof part>[]) => ({ modelResponse: { parts, usage: {} as never } });

  it('run at once, without the delay of a request, and cost nothing that a limit of costs would need a price for', async () => {
    const { tool } = echoTool();
    const on = loopBench({
      ...{ tools: [tool], settings: { requestDelayMs: 60_000 } },
      policies: { limits: { costUsd: 1 } },
    });
    const ran: string[] = [];
    const done = processNode(node(part('a', 'echo')), on.state, {
      toolCallback: async ({ callId }) => void ran.push(callId),
    });
    expect(await on.clock.until(done, 100_000)).toBe(0);
    expect(ran).toEqual(['a']);
  });

  it('have an id, and fail alone where no tool could have their name', async () => {
    const { tool } = echoTool();
    const on = loopBench({ tools: [tool] });
    const ran: string[] = [];
    const done = processNode(node(part('', 'echo'), part('b', 'no such name!')), on.state, {
      toolCallback: async ({ callId, name }) => void ran.push(`${name} ${callId}`),
    });
    await on.clock.until(done, 100_000);
    const [first, second] = on.session.runtime.toolRegistry.list();
    expect(first?.callId).toMatch(/./);
    expect(ran).toEqual([`echo ${first?.callId}`]);
    expect(second).toMatchObject({ callId: 'b', status: 'failed' });
  });
});

it('streams to nobody after its end', async () => {
  const deltas: string[] = [];
  const on = loopBench({ replies: [during(() => deltas.push('asked'), [t('a'), t('b')]), 'second'] });
  await on.request('one', { streamingCallback: (delta) => void deltas.push(delta) });
  await on.request('two', {});
  expect(deltas).toEqual(['asked', 'a', 'b']);
});
