/** Plugins in their phases: permitted and refused actions (docs/internals/lifecycle.md, Phases). */
import { describe, expect, it } from 'vitest';
import { textOfContent } from '../../machines/internal.ts';
import type { Decision, ModelRequest, Plugin } from '../../src/index.ts';
import { bench, entry, only, resultText, story } from '../support/agentBench.ts';
import { asks, boom, echoTool, gateTool, recorder } from '../support/scenarioTools.ts';
import { call, lines, t } from '../support/scriptedReplies.ts';

const args = { m: 'a' };
const once = (): Plugin['beforeInference'] => {
  let done = false;
  return () => {
    if (done) return undefined;
    done = true;
    return { context: 'from beforeInference' };
  };
};

describe('the model request', () => {
  it('TRC-7: context is part of the next request only, in plugin order, and never a message', async () => {
    let starts = 0;
    const plugin: Plugin = {
      name: 'contexts',
      runStart: () => ({ context: 'from runStart' }),
      stepStart: () => {
        starts += 1;
        return starts === 1 ? { context: 'from stepStart' } : undefined;
      },
      beforeInference: once() as NonNullable<Plugin['beforeInference']>,
      afterToolExecute: () => ({ context: 'from afterToolExecute' }),
    };
    const on = await bench({
      replies: [[call('c1', 'echo', args)], 'x'],
      instructions: 'Be good.',
      tools: [echoTool().tool],
      plugins: [plugin],
    });
    await on.conversation.send('hi').result;
    expect(on.model.calls.map(({ system }) => system)).toEqual([
      'Be good.\n\nfrom runStart\n\nfrom stepStart\n\nfrom beforeInference',
      'Be good.\n\nfrom afterToolExecute',
    ]);
    expect(story(on.conversation.log()).join('\n')).not.toContain('from ');
    expect(lines(on.conversation.messages()).join('\n')).not.toContain('from ');
  });

  it('a patch of the request applies to one request, and every attempt of it sends the same', async () => {
    let turn = 0;
    const plugin: Plugin = {
      name: 'patches',
      beforeInference: () => {
        turn += 1;
        return turn === 1 ? { request: { system: 'patched', temperature: 0.5, maxOutputTokens: 7 } } : undefined;
      },
    };
    const on = await bench({
      replies: [new Error('lost'), [call('c1', 'echo', args)], 'x'],
      instructions: 'own',
      tools: [echoTool().tool],
      plugins: [plugin],
    });
    const run = on.conversation.send('hi');
    await on.clock.until(run.result, 5000);
    const seen = on.model.calls.map(({ system, temperature, maxOutputTokens }) => ({
      system,
      temperature,
      maxOutputTokens,
    }));
    const patched = { system: 'patched', temperature: 0.5, maxOutputTokens: 7 };
    expect(seen).toEqual([patched, patched, { system: 'own', temperature: undefined, maxOutputTokens: undefined }]);
  });

  it('TOOL-2: a tool that a patch removed from the request is out_of_scope in its reply, and not run', async () => {
    const echo = echoTool();
    const plugin: Plugin = {
      name: 'hides',
      beforeInference: ({ turn }) => (turn === 0 ? { request: { tools: [] } } : undefined),
    };
    const on = await bench({
      replies: [[call('c1', 'echo', args)], [call('c2', 'echo', args)], 'x'],
      tools: [echo.tool],
      plugins: [plugin],
    });
    await on.conversation.send('hi').result;
    expect(on.model.calls.map(({ tools }) => tools.length)).toEqual([0, 1, 1]);
    expect(only(on.conversation.log(), 'tool-result')).toEqual([
      'tool-result c1 failed out_of_scope',
      'tool-result c2 succeeded',
    ]);
    expect(echo.ran).toEqual(['c2']);
  });

  it('INV-2: a plugin that returns the whole request changes no message', async () => {
    const plugin: Plugin = {
      name: 'spreads',
      beforeInference: ({ request }) => {
        const forged = { ...request, messages: [], system: 'mine' } as Partial<ModelRequest>;
        return { request: forged };
      },
    };
    const on = await bench({ replies: ['x'], plugins: [plugin] });
    await on.conversation.send('hi').result;
    expect(on.model.calls[0]?.system).toBe('mine');
    expect(lines(on.model.calls[0]?.messages ?? [])).toEqual(['user hi']);
  });
});

describe('ending a run', () => {
  it('RUN-4: terminate after inference commits the reply, and its calls are cancelled, terminated', async () => {
    const seen = recorder();
    const echo = echoTool();
    const ender: Plugin = { name: 'ender', afterInference: () => ({ terminate: 'enough' }) };
    const on = await bench({
      replies: [[call('c1', 'echo', args), call('c2', 'echo', args)], 'never'],
      tools: [echo.tool],
      plugins: [seen.plugin, ender],
    });
    const result = await on.conversation.send('hi').result;
    expect(result).toMatchObject({ termination: 'PluginRequested', cause: 'ender', reason: 'completed', turns: 1 });
    expect(only(on.conversation.log(), 'agent-output', 'tool-result', 'checkpoint', 'run-stop')).toEqual([
      'checkpoint UserMessage',
      'agent-output c1',
      'agent-output c2',
      'checkpoint AssistantTurnCommitted',
      'tool-result c1 cancelled terminated',
      'tool-result c2 cancelled terminated',
      'run-stop completed ender',
      'checkpoint RunFinished',
    ]);
    expect(seen.phases.slice(-3)).toEqual(['AfterInference', 'StepEnd', 'RunEnd']);
    expect(echo.ran).toEqual([]);
  });

  it('of two plugins that terminate, the first in order is named', async () => {
    const [a, b] = ['a', 'b'].map((name): Plugin => ({ name, beforeInference: () => ({ terminate: 'x' }) }));
    const on = await bench({ plugins: [a as Plugin, b as Plugin] });
    expect((await on.conversation.send('hi').result).cause).toBe('a');
  });

  it.each([
    ['NaturalEnd', 'ok'],
    ['Error', new Error('x')],
  ] as const)('runEnd receives the end of the run: %s', async (termination, reply) => {
    const ends: string[] = [];
    const plugin: Plugin = { name: 'listens', runEnd: (c) => void ends.push(c.termination) };
    const on = await bench({ replies: [reply], plugins: [plugin], policies: { modelRetry: { attempts: 1 } } });
    await on.conversation.send('hi').result;
    expect(ends).toEqual([termination]);
  });
});

describe('the gate before a tool', () => {
  it('TOOL-5: a blocked call is a failed result for the model, and after-hooks receive it', async () => {
    const echo = echoTool();
    const outcomes: string[] = [];
    const plugin: Plugin = {
      name: 'guard',
      beforeToolExecute: () => ({ block: 'not today' }),
      afterToolExecute: ({ outcome }) => void outcomes.push(outcome),
    };
    const on = await bench({ replies: [[call('c1', 'echo', args)], 'x'], tools: [echo.tool], plugins: [plugin] });
    await on.conversation.send('hi').result;
    expect(only(on.conversation.log(), 'tool-result', 'tool-started')).toEqual(['tool-result c1 failed blocked']);
    expect(resultText(on.conversation.log(), 'c1')).toContain('not today');
    expect(outcomes).toEqual(['failed']);
  });

  it.each([
    ['suspends first', ['suspender', 'blocker']],
    ['blocks first', ['blocker', 'suspender']],
  ])('a block takes precedence over a suspension, whoever %s', async (_, order) => {
    const verdicts: Record<string, Plugin> = {
      suspender: { name: 'suspender', beforeToolExecute: () => ({ suspend: { reason: 'ask' } }) },
      blocker: { name: 'blocker', beforeToolExecute: () => ({ block: 'no' }) },
    };
    const plugins = order.map((name) => verdicts[name] as Plugin);
    const on = await bench({ replies: [[call('c1', 'echo', args)], 'x'], tools: [echoTool().tool], plugins });
    await on.conversation.send('hi').result;
    expect(only(on.conversation.log(), 'tool-result', 'tool-suspended')).toEqual(['tool-result c1 failed blocked']);
  });

  it('rewritten arguments run; the log contains both, and the next plugin receives the new ones', async () => {
    const echo = echoTool();
    const seen: unknown[] = [];
    const plugins: Plugin[] = [
      { name: 'rewrites', beforeToolExecute: () => ({ args: { m: 'rewritten' } }) },
      { name: 'looks', beforeToolExecute: (c) => void seen.push(c.call.args) },
    ];
    const on = await bench({ replies: [[call('c1', 'echo', args)], 'x'], tools: [echo.tool], plugins });
    await on.conversation.send('hi').result;
    expect(seen).toEqual([{ m: 'rewritten' }]);
    expect(resultText(on.conversation.log(), 'c1')).toBe('{"m":"rewritten"}');
    expect(await entry(on.conversation, 'agent-output')).toMatchObject({ item: { args } });
    expect(await entry(on.conversation, 'tool-started')).toMatchObject({ args: { m: 'rewritten' } });
  });

  it('a rewrite that does not validate fails with invalid_arguments', async () => {
    const echo = echoTool();
    const plugin: Plugin = { name: 'rewrites', beforeToolExecute: () => ({ args: { m: 7 } }) };
    const on = await bench({ replies: [[call('c1', 'echo', args)], 'x'], tools: [echo.tool], plugins: [plugin] });
    await on.conversation.send('hi').result;
    expect(only(on.conversation.log(), 'tool-result')).toEqual(['tool-result c1 failed invalid_arguments']);
    expect(echo.ran).toEqual([]);
  });

  it('the rewritten call is checked for permission, and a person is asked once', async () => {
    const asked: unknown[] = [];
    const echo = echoTool('ask', {
      needsApproval: (input) => {
        asked.push(input);
        return input.m === 'risky';
      },
    });
    const plugin: Plugin = {
      name: 'rewrites',
      beforeToolExecute: ({ decision }) => (decision ? undefined : { args: { m: 'risky' } }),
    };
    const on = await bench({ replies: [[call('c1', 'ask', args)], 'x'], tools: [echo.tool], plugins: [plugin] });
    const result = await on.conversation.send('hi').result;
    expect(result.pending).toMatchObject([{ callId: 'c1', reason: 'permission' }]);
    expect(asked).toEqual([{ m: 'risky' }]);
    const decision: Decision = { callId: 'c1', action: 'approve' };
    expect(await on.conversation.decide(decision)).toBe('applied');
    await on.conversation.resume().result;
    expect(asked).toHaveLength(1);
    expect(echo.ran).toEqual(['c1']);
  });

  it('a block takes precedence over a request for permission', async () => {
    const echo = echoTool('ask', { needsApproval: true });
    const plugin: Plugin = { name: 'guard', beforeToolExecute: () => ({ block: 'never' }) };
    const on = await bench({ replies: [[call('c1', 'ask', args)], 'x'], tools: [echo.tool], plugins: [plugin] });
    expect((await on.conversation.send('hi').result).termination).toBe('NaturalEnd');
    expect(only(on.conversation.log(), 'tool-result', 'tool-suspended')).toEqual(['tool-result c1 failed blocked']);
  });

  it('agent.run() has nobody to ask: calls that need approval are denied', async () => {
    const echo = echoTool('ask', { needsApproval: true });
    const on = await bench({ replies: [[call('c1', 'ask', args)], 'x'], tools: [echo.tool] });
    const result = await on.agent.run('hi');
    expect(result).toMatchObject({ termination: 'NaturalEnd', text: 'x' });
    expect(result.calls).toEqual([{ callId: 'c1', name: 'ask', outcome: 'failed', code: 'denied' }]);
  });

  it('B13: beforeToolExecute runs again on a replay, then with the decision', async () => {
    const hook = asks();
    const on = await bench({
      replies: [[call('c1', 'ask', args)], 'x'],
      tools: [echoTool('ask').tool],
      plugins: [hook.plugin],
    });
    await on.conversation.send('hi').result;
    await on.conversation.decide({ callId: 'c1', action: 'approve', by: 'ann' });
    await on.conversation.resume().result;
    expect(hook.decisions).toEqual([undefined, { callId: 'c1', action: 'approve', by: 'ann' }]);
  });
});

describe('after a tool', () => {
  it('TOOL-4: each plugin receives the result that the previous plugin returned', async () => {
    const adds = (name: string): Plugin => ({
      name,
      afterToolExecute: ({ result }) => ({ result: `${textOfContent(result)} ${name}` }),
    });
    const on = await bench({
      replies: [[call('c1', 'echo', args)], 'x'],
      tools: [echoTool().tool],
      plugins: [adds('one'), adds('two')],
    });
    await on.conversation.send('hi').result;
    expect(resultText(on.conversation.log(), 'c1')).toMatch(/ one two$/);
  });

  it('TOOL-4: every outcome passes AfterToolExecute, and the model receives the changed result', async () => {
    const outcomes: string[] = [];
    const plugin: Plugin = {
      name: 'after',
      afterToolExecute({ call: { callId }, outcome, result }) {
        outcomes.push(`${callId} ${outcome} ${result.length}`);
        return callId === 'c1' ? { result: 'replaced' } : undefined;
      },
    };
    const gate = gateTool();
    const on = await bench({
      replies: [[call('c1', 'echo', args), call('c2', 'boom'), call('c3', 'echo'), call('c4', 'ask', args)], 'x'],
      tools: [echoTool().tool, boom, echoTool('ask').tool, gate.tool],
      plugins: [asks().plugin, plugin],
    });
    await on.conversation.send('hi').result;
    expect(outcomes.sort()).toEqual(['c1 succeeded 1', 'c2 failed 1', 'c3 failed 1', 'c4 suspended 0']);
    expect(resultText(on.conversation.log(), 'c1')).toBe('replaced');
  });
});

it('afterInference receives the text and the calls of the reply', async () => {
  const replies: unknown[] = [];
  const watcher: Plugin = { name: 'watcher', afterInference: ({ reply }) => void replies.push(reply) };
  const { conversation } = await bench({
    replies: [[t('let me see'), call('c1', 'echo', { m: 'a' })], 'done'],
    tools: [echoTool().tool],
    plugins: [watcher],
  });
  await conversation.send('hi').result;
  expect(replies).toMatchObject([
    { text: 'let me see', calls: [{ callId: 'c1', name: 'echo', args: { m: 'a' } }] },
    { text: 'done', calls: [] },
  ]);
});
