/** Hooks of an agent: the order of events, the effect of answers, and the limits of faulty hooks. */
import { describe, expect, it, vi } from 'vitest';
import * as z from 'zod';
import { ConfigurationError, defineTool, toolResult } from '../../src/index.ts';
import { type Hook, type HookEvent, type HookInput, type HookOptions, hooks, permissions } from '../../src/node.ts';
import { type BenchOptions, bench, only, restart, resultText } from '../support/agentBench.ts';
import { call, finish, scripted, t } from '../support/scriptedReplies.ts';

const EVENTS: readonly HookEvent[] = [
  ...(['SessionStart', 'UserPromptSubmit', 'PreToolUse', 'PermissionRequest', 'PostToolUse'] as const),
  ...([
    'PostToolUseFailure',
    'Notification',
    'PreCompact',
    'SubagentStart',
    'SubagentStop',
    'Stop',
    'SessionEnd',
  ] as const),
];

/** Hooks for every event that only record it. */
function recorder() {
  const inputs: HookInput[] = [];
  const record: Hook = { run: (input) => void inputs.push(input) };
  const options = Object.fromEntries(EVENTS.map((event) => [event, [record]])) as HookOptions;
  return { inputs, options, events: () => inputs.map(({ event }) => event) };
}

/** `echo` returns its text, and fails or waits if the text requires that. */
function echo() {
  const ran: string[] = [];
  const tool = defineTool({
    name: 'echo',
    description: 'Echoes',
    parameters: z.object({ text: z.string() }),
    execute: ({ text }) => {
      ran.push(text);
      if (text === 'wait') return toolResult.pending({ reason: 'later' });
      return text === 'fail' ? toolResult.error('it failed') : `echo ${text}`;
    },
  });
  return { ran, tool };
}

async function run(options: HookOptions, texts: readonly string[], more: BenchOptions = {}) {
  const { ran, tool } = echo();
  const calls = texts.map((text, index) => call(`c${index + 1}`, 'echo', { text }));
  const replies = texts.length > 0 ? [calls, 'done', 'done', 'done'] : ['done', 'done', 'done'];
  const { plugins = [], ...rest } = more;
  const made = await bench({ tools: [tool], replies, ...rest, plugins: [...plugins, hooks(options)] });
  const result = await made.conversation.send('go').result;
  return { ...made, ran, result, log: made.conversation.log() };
}

const allow: Hook = { run: () => ({ decision: 'allow' }) };
const broken: Hook = {
  run: () => {
    throw new Error('broken');
  },
};

describe('events', () => {
  it('TRC-11 S002-02 one request with one tool fires exactly five events besides the prompt, in this order', async () => {
    const { inputs, options } = recorder();
    delete options.UserPromptSubmit;
    const { agent } = await run(options, ['a']);
    await agent.close();
    expect(inputs.map(({ event }) => event)).toEqual([
      'SessionStart',
      'PreToolUse',
      'PostToolUse',
      'Stop',
      'SessionEnd',
    ]);
    expect(inputs).toMatchObject([
      { source: 'startup', conversationId: 'c' },
      { toolName: 'echo', callId: 'c1', args: { text: 'a' } },
      { toolName: 'echo', callId: 'c1', result: 'echo a' },
      {},
      {},
    ]);
  });

  it('each prompt is reported once, queued ones when they are delivered', async () => {
    const { inputs, options } = recorder();
    const { conversation } = await run(options, []);
    conversation.followUp('and then');
    await conversation.send('more', { kind: 'followUp' }).result;
    const prompts = inputs.filter(({ event }) => event === 'UserPromptSubmit').map(({ prompt }) => prompt);
    expect(prompts).toEqual(['go', 'and then', 'more']);
    expect(inputs.filter(({ event }) => event === 'SessionStart')).toHaveLength(1);
  });

  it('a reopened conversation starts as resumed', async () => {
    const first = await run({}, []);
    const { inputs, options } = recorder();
    const next = await restart(first, { replies: ['done'], plugins: [hooks(options)] });
    await next.conversation.send('again').result;
    expect(inputs[0]).toMatchObject({ event: 'SessionStart', source: 'resume' });
    expect(inputs[1]).toMatchObject({ event: 'UserPromptSubmit', prompt: 'again' });
  });

  it('S002-07 PreToolUse fires before permission, and PostToolUse fires for each call that ran', async () => {
    const { options, events } = recorder();
    const { ran, log } = await run(options, ['a'], { plugins: [permissions({ deny: ['echo'] })] });
    expect(ran).toEqual([]);
    expect(only(log, 'tool-result')).toEqual(['tool-result c1 failed denied']);
    expect(events()).toEqual(['SessionStart', 'UserPromptSubmit', 'PreToolUse', 'Stop']);
  });

  it('a failed tool fires PostToolUseFailure, and a waiting call fires Notification', async () => {
    const { inputs, options } = recorder();
    await run(options, ['fail', 'wait'], { policies: { toolExecution: 'sequential' } });
    expect(inputs.slice(2)).toMatchObject([
      { event: 'PreToolUse', callId: 'c1' },
      { event: 'PostToolUseFailure', callId: 'c1', error: 'it failed' },
      { event: 'PreToolUse', callId: 'c2' },
      { event: 'Notification', callId: 'c2', source: 'suspended' },
    ]);
  });

  it('a matcher is compared with the whole name of the tool', async () => {
    const seen: string[] = [];
    const hook = (matcher: string): Hook => ({ matcher, run: () => void seen.push(matcher) });
    await run({ PreToolUse: [hook('ech'), hook('echo'), hook('e.*|x'), hook('*'), hook('Echo')] }, ['a']);
    expect(seen).toEqual(['echo', 'e.*|x', '*']);
  });
});

describe('PreToolUse', () => {
  it('TRC-11 S002-10 a block keeps the tool from running, and its reason is the result', async () => {
    const { ran, log, result } = await run(
      { PreToolUse: [{ run: () => ({ decision: 'block', reason: 'not here' }) }] },
      ['a'],
    );
    expect(ran).toEqual([]);
    expect(only(log, 'tool-result')).toEqual(['tool-result c1 failed blocked']);
    expect(resultText(log, 'c1')).toContain('not here');
    expect(result).toMatchObject({ termination: 'NaturalEnd' });
  });

  it('S002-13 the first hook with continue: false is the last, and no call of the round runs', async () => {
    const seen: string[] = [];
    const stops: Hook = { run: () => ({ continue: false, stopReason: 'enough' }) };
    const other: Hook = { run: ({ callId }) => void seen.push(`${callId}`) };
    const { ran, log, result, model } = await run({ PreToolUse: [stops, other] }, ['a', 'b']);
    expect(seen).toEqual([]);
    expect(ran).toEqual([]);
    expect(only(log, 'tool-result')).toEqual(['tool-result c1 failed denied', 'tool-result c2 failed blocked']);
    expect(result).toMatchObject({ termination: 'Stopped', cause: 'hook', subtype: 'error_during_execution' });
    expect(model.calls).toHaveLength(1);
  });

  it('S002-13 with continue: true both hooks are called', async () => {
    const seen: number[] = [];
    const hook = (index: number): Hook => ({
      run: () => {
        seen.push(index);
        return { continue: true };
      },
    });
    const { ran } = await run({ PreToolUse: [hook(1), hook(2)] }, ['a']);
    expect(seen).toEqual([1, 2]);
    expect(ran).toEqual(['a']);
  });

  it('S002-14 a hook that throws has no effect if it is not required, and blocks if it is', async () => {
    const seen: number[] = [];
    const counting: Hook = { run: () => void seen.push(seen.length) };
    const lenient = await run({ PreToolUse: [{ ...broken, required: false }, counting] }, ['a']);
    expect(lenient.ran).toEqual(['a']);
    expect(seen).toHaveLength(1);
    expect(only(lenient.log, 'diagnostic')).toEqual(['diagnostic hook_error']);
    const strict = await run({ PreToolUse: [broken, counting] }, ['a']);
    expect(strict.ran).toEqual([]);
    expect(seen).toHaveLength(1);
    expect(only(strict.log, 'tool-result')).toEqual(['tool-result c1 failed blocked']);
  });

  it('H-238 a hook may not allow a call that a rule denies or asks about, and rewritten arguments are checked by the rules', async () => {
    const denied = await run({ PreToolUse: [allow] }, ['a'], { plugins: [permissions({ deny: ['echo'] })] });
    expect(only(denied.log, 'tool-result')).toEqual(['tool-result c1 failed denied']);
    const asked = await run({ PreToolUse: [allow] }, ['a'], { plugins: [permissions({ ask: ['echo'] })] });
    expect(asked.result.termination).toBe('Suspended');
    const let1 = await run({ PreToolUse: [allow] }, ['a'], { plugins: [permissions({})] });
    expect(let1.ran).toEqual(['a']);
    expect(let1.log.find(({ type }) => type === 'tool-allowed')).toMatchObject({ by: 'hook' });
  });

  it('TRC-11 rewritten arguments are validated, run, and passed to the next hook', async () => {
    const seen: unknown[] = [];
    const rewrite: Hook = { run: () => ({ updatedInput: { text: 'b' } }) };
    const { ran, log } = await run({ PreToolUse: [rewrite, { run: ({ args }) => void seen.push(args) }] }, ['a']);
    expect(ran).toEqual(['b']);
    expect(seen).toEqual([{ text: 'b' }]);
    expect(log.find(({ type }) => type === 'tool-started')).toMatchObject({ args: { text: 'b' } });
    const wrong = await run({ PreToolUse: [{ run: () => ({ updatedInput: { text: 1 } }) }] }, ['a']);
    expect(wrong.ran).toEqual([]);
    expect(only(wrong.log, 'tool-result')).toEqual(['tool-result c1 failed invalid_arguments']);
  });

  it('a hook that asks makes the call wait for a person, with rules or without, and is not called again for the replay', async () => {
    let asked = 0;
    const asking: Hook = {
      run: () => {
        asked += 1;
        return { decision: 'ask' };
      },
    };
    for (const plugins of [[], [permissions({ allow: ['echo'] })]]) {
      asked = 0;
      const { conversation, ran, result } = await run({ PreToolUse: [asking] }, ['a'], { plugins });
      expect(result.pending).toMatchObject([{ reason: 'permission' }]);
      await conversation.decide({ callId: 'c1', action: 'approve' });
      await conversation.resume().result;
      expect(ran).toEqual(['a']);
      expect(asked).toBe(1);
    }
  });

  it('of several hooks the one that asks takes precedence over later ones that allow', async () => {
    const asking: Hook = { run: () => ({ decision: 'ask' }) };
    for (const PreToolUse of [
      [asking, allow],
      [allow, asking],
    ]) {
      const { ran, result } = await run({ PreToolUse }, ['a']);
      expect([ran, result.termination]).toEqual([[], 'Suspended']);
    }
    const two = await run({ PreToolUse: [allow] }, ['a'], { plugins: [hooks({ PreToolUse: [asking] })] });
    expect([two.ran, two.result.termination]).toEqual([[], 'Suspended']);
  });

  it('a hook that allows a call has not allowed the arguments that a later hook writes', async () => {
    const rewriting: Hook = { run: () => ({ updatedInput: { text: 'b' } }) };
    const both: Hook = { run: () => ({ decision: 'allow', updatedInput: { text: 'c' } }) };
    const rules = permissions({});
    const ranWith = async (first: Hook[], later: Hook[] = []) =>
      (await run({ PreToolUse: later }, ['a'], { plugins: [rules, hooks({ PreToolUse: first })] })).ran;
    expect([await ranWith([allow, rewriting]), await ranWith([allow], [rewriting])]).toEqual([[], []]);
    expect([await ranWith([rewriting, allow]), await ranWith([rewriting], [allow])]).toEqual([['b'], ['b']]);
    expect([await ranWith([allow, both]), await ranWith([allow], [both])]).toEqual([['c'], ['c']]);
  });

  it('an answer of an unknown shape is a failure, never an approval', async () => {
    for (const answer of [{ decision: 'yes' }, 'allow', { continue: 'no' }, [1]]) {
      const { ran } = await run({ PreToolUse: [{ run: () => answer as never }] }, ['a']);
      expect(ran).toEqual([]);
    }
  });
});

describe('PermissionRequest', () => {
  const asks = permissions({ ask: ['echo'] });

  it('S002-22 it may answer for a person, before `decide` is called', async () => {
    const decide = vi.fn(() => 'deny' as const);
    const plugins = [permissions({ ask: ['echo'], decide })];
    const { ran, log } = await run({ PermissionRequest: [allow] }, ['a'], { plugins });
    expect(ran).toEqual(['a']);
    expect(decide).not.toHaveBeenCalled();
    expect(log.find(({ type }) => type === 'tool-allowed')).toMatchObject({ by: 'hook' });
  });

  it('S002-08 S002-23 continue: false denies the call, answers the others and ends the run as stopped', async () => {
    const { ran, log, result, model } = await run(
      { PermissionRequest: [{ run: () => ({ continue: false }) }] },
      ['a', 'b'],
      {
        plugins: [asks],
      },
    );
    expect(ran).toEqual([]);
    expect(only(log, 'tool-result')).toEqual(['tool-result c1 failed denied', 'tool-result c2 failed blocked']);
    expect(result).toMatchObject({ termination: 'Stopped', cause: 'hook' });
    expect(model.calls).toHaveLength(1);
  });

  it('a hook that fails, or has no answer, leaves the question to a person', async () => {
    const { result } = await run({ PermissionRequest: [broken] }, ['a'], { plugins: [asks] });
    expect(result.pending).toMatchObject([{ callId: 'c1', reason: 'permission' }]);
  });
});

describe('after a call', () => {
  it('TRC-11 S002-11 suppressOutput hides the text from the model, and a marker replaces it', async () => {
    const { ran, model } = await run({ PostToolUse: [{ run: () => ({ suppressOutput: true }) }] }, ['secret']);
    expect(ran).toEqual(['secret']);
    const second = JSON.stringify(model.calls[1]?.messages.at(-1));
    expect(second).not.toContain('echo secret');
    expect(second).toContain('[a hook has suppressed this output]');
  });

  it('TRC-11 additional context is sent once, in the next request alone', async () => {
    const options: HookOptions = { PostToolUse: [{ run: () => ({ additionalContext: 'The tests are slow today.' }) }] };
    const { conversation, model } = await run(options, ['a']);
    await conversation.send('more').result;
    expect(model.calls.map(({ system }) => system.includes('slow today'))).toEqual([false, true, false]);
  });

  it('a block after the call is an objection for the model, and continue: false ends the run', async () => {
    const objects: Hook = { run: () => ({ decision: 'block', reason: 'format it first' }) };
    const { model } = await run({ PostToolUse: [objects] }, ['a']);
    expect(model.calls[1]?.system).toContain('format it first');
    const { result } = await run({ PostToolUse: [{ run: () => ({ continue: false }) }] }, ['a']);
    expect(result).toMatchObject({ termination: 'Stopped', cause: 'hook' });
  });
});

describe('prompts and sessions', () => {
  it('a prompt that a hook blocks reaches no model', async () => {
    const { result, model } = await run(
      { UserPromptSubmit: [{ run: () => ({ decision: 'block', reason: 'no' }) }] },
      [],
    );
    expect(result).toMatchObject({ termination: 'Stopped', cause: 'hook' });
    expect(model.calls).toHaveLength(0);
  });

  it('context of SessionStart and UserPromptSubmit is in the first request', async () => {
    const says = (additionalContext: string): Hook => ({ run: () => ({ additionalContext }) });
    const { model } = await run({ SessionStart: [says('It is Monday.')], UserPromptSubmit: [says('Be brief.')] }, []);
    expect(model.calls[0]?.system).toContain('It is Monday.');
    expect(model.calls[0]?.system).toContain('Be brief.');
  });
});

describe('Stop', () => {
  const goesOn: Hook = { run: () => ({ continue: true, reason: 'The tests fail.' }) };

  it('TRC-11 continue: true continues the run, and a continuation contains the reason for the model', async () => {
    let times = 0;
    const once: Hook = { run: () => ({ continue: times++ === 0, reason: 'The tests fail.' }) };
    const { log, result, model } = await run({ Stop: [once] }, []);
    expect(only(log, 'continuation')).toEqual(['continuation stop_hook']);
    expect(JSON.stringify(model.calls[1]?.messages.at(-1))).toContain('The tests fail.');
    expect(result).toMatchObject({ termination: 'NaturalEnd', turns: 2 });
  });

  it('a hook that always continues is stopped after maxStopContinues, with a diagnostic', async () => {
    const replies = Array.from({ length: 10 }, () => 'done');
    const { log, result } = await run({ Stop: [goesOn] }, [], { replies, policies: { maxStopContinues: 3 } });
    expect(only(log, 'continuation')).toHaveLength(3);
    expect(only(log, 'diagnostic')).toEqual(['diagnostic stop_continues']);
    expect(result).toMatchObject({ termination: 'NaturalEnd', turns: 4 });
  });

  it('maxStopContinues applies to one run: the run after a decision has all of them', async () => {
    const wait = [call('c1', 'echo', { text: 'wait' })];
    const replies = ['done', wait, 'done', 'done', 'done', 'done'];
    const { conversation } = await run({ Stop: [goesOn] }, [], { replies, policies: { maxStopContinues: 2 } });
    await conversation.decide({ callId: 'c1', action: 'edit', args: { text: 'go' } });
    await conversation.resume().result;
    expect(only(conversation.log(), 'run-suspended', 'continuation')).toEqual([
      'continuation stop_hook',
      'run-suspended c1',
      'continuation stop_hook',
      'continuation stop_hook',
    ]);
  });

  it('S002-17 a spent budget ends a run that a Stop hook would continue', async () => {
    const prices = { input: 1_000_000, output: 1_000_000 };

    const model = scripted([[t('done'), finish('stop', 1)]], { prices });
    const { result } = await run({ Stop: [goesOn] }, [], { model, policies: { limits: { costUsd: 0.5 } } });
    expect(result).toMatchObject({ subtype: 'error_max_budget_usd', turns: 1 });
    expect(model.calls).toHaveLength(1);
  });

  it('S002-20 a reply that announces calls and has none ends the run, and no Stop hook is called', async () => {
    const { options, events } = recorder();
    const { result } = await run(options, [], { replies: [[t('done'), finish('tool-calls')]] });
    expect(result).toMatchObject({ termination: 'NaturalEnd' });
    expect(events()).not.toContain('Stop');
  });

  it('a Stop hook that fails lets the run end', async () => {
    const { result, log } = await run({ Stop: [broken] }, []);
    expect(result).toMatchObject({ termination: 'NaturalEnd' });
    expect(only(log, 'diagnostic')).toEqual(['diagnostic hook_error']);
  });

  it('a cancel during a Stop hook ends the run as cancelled', async () => {
    const { tool } = echo();
    let asked = (): void => {};
    const thinking = new Promise<void>((resolve) => {
      asked = resolve;
    });
    const slow: Hook = { run: () => new Promise(() => asked()) };
    const { conversation } = await bench({ tools: [tool], replies: ['done'], plugins: [hooks({ Stop: [slow] })] });
    const running = conversation.send('go');
    await thinking;
    await running.cancel();
    expect(await running.result).toMatchObject({ termination: 'Cancelled' });
  });
});

describe('options that are refused at the start', () => {
  it.each([
    ['an unknown event', { PreTool: [] }],
    ['a matcher that is no expression', { PreToolUse: [{ matcher: '(', run: () => undefined }] }],
    ['a hook without anything to do', { Stop: [{}] }],
    ['a hook with two things to do', { Stop: [{ command: 'a', run: () => undefined }] }],
    ['an unknown key', { Stop: [{ command: 'a', timeout: 1 }] }],
    ['no list', { Stop: { command: 'a' } }],
  ])('%s', (_, options) => {
    expect(() => hooks(options as never)).toThrow(ConfigurationError);
  });
});
