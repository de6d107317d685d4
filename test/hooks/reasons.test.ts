/** The reasons that hooks give, several prompts of one step, calls that did not run, and the input of a command. */
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import * as z from 'zod';
import { ConfigurationError, defineTool, type LogEntry } from '../../src/index.ts';
import { type Hook, type HookEvent, type HookOutput, hooks } from '../../src/node.ts';
import { bench, resultText } from '../support/agentBench.ts';
import { call, scripted } from '../support/scriptedReplies.ts';
import { temporaryFolder } from '../support/temporaryFolder.ts';

const says = (output: HookOutput): Hook => ({ run: () => output });
const stopsIn = (log: readonly LogEntry[]): unknown[] =>
  log.flatMap((entry) =>
    entry.type === 'diagnostic' && entry.code === 'hook_stopped' ? [(entry.detail as { reason: string }).reason] : [],
  );
const echo = (act: () => unknown = () => 'done') =>
  defineTool({ name: 'echo', description: '', parameters: z.object({ m: z.string() }), execute: act });
function gate() {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}
const oneCall = [[call('c1', 'echo', { m: 'a' })], 'done'];

describe('the reason of a stop', () => {
  const REASONS: [HookOutput, string][] = [
    [{ continue: false, reason: 'why', stopReason: 'for people' }, 'why'],
    [{ continue: false, stopReason: 'for people' }, 'for people'],
    [{ continue: false }, 'a hook refused it'],
  ];
  it.each(
    REASONS.flatMap((row) => (['UserPromptSubmit', 'PreToolUse', 'PostToolUse'] as const).map((e) => [e, ...row])),
  )('by %s with %j is in the log: %j', async (event, output, reason) => {
    const plugins = [hooks({ [event as HookEvent]: [says(output as HookOutput)] })];
    const { conversation } = await bench({ tools: [echo()], replies: oneCall, plugins });
    expect(await conversation.send('go').result).toMatchObject({ termination: 'Stopped', cause: 'hook' });
    const log = conversation.log();
    expect(stopsIn(log)).toEqual([event === 'PreToolUse' ? `Blocked by a hook: ${reason}` : reason]);
    if (event === 'PreToolUse') expect(resultText(log, 'c1')).toBe(`Blocked by a hook: ${reason}`);
  });

  it.each([
    [{ decision: 'block', reason: 'not now' } as const, 'not now'],
    [{ continue: false, stopReason: 'not today' }, 'not today'],
    [{ decision: 'block' } as const, 'a hook refused it'],
  ])('by PreCompact with %j is the notice of the summary that is not made: %j', async (output, reason) => {
    const text = 'x'.repeat(1_200);
    const model = scripted([text, text, 'ok'], { contextWindow: 1_000, maxOutputTokens: 0 });
    const { conversation } = await bench({ model, plugins: [hooks({ PreCompact: [says(output)] })] });
    for (const words of ['one', 'two', 'x'.repeat(1_000)]) await conversation.send(words).result;
    const notices = conversation.log().flatMap((entry) => (entry.type === 'notice' ? [entry.text] : []));
    expect(notices.join('\n')).toContain(reason);
  });
});

describe('two messages that one request delivers', () => {
  async function steered(hook: Hook) {
    let calls = 0;
    const tool = echo(() => {
      if (calls++ === 0) for (const text of ['first', 'second']) on.conversation.send(text, { kind: 'steer' });
      return 'done';
    });
    const on = await bench({
      tools: [tool],
      replies: [...oneCall, 'end'],
      plugins: [hooks({ UserPromptSubmit: [hook] })],
      policies: { queueDrain: 'all' },
    });
    const result = await on.conversation.send('go').result;
    return { ...on, result };
  }

  it('are reported one by one, and the context for each reaches the model', async () => {
    const { model } = await steered({ run: ({ prompt }) => ({ additionalContext: `about ${prompt}` }) });
    expect(model.calls[1]?.system).toContain('about first\nabout second');
    expect(model.calls[1]?.system).not.toContain('about go');
  });

  it('end the run with the first reason if a hook refuses both', async () => {
    const prompts: unknown[] = [];
    const { result, model, conversation } = await steered({
      run: ({ prompt }) => {
        prompts.push(prompt);
        return prompt === 'go' ? {} : { decision: 'block', reason: `not ${prompt}` };
      },
    });
    expect([result.termination, model.calls.length, prompts]).toEqual(['Stopped', 1, ['go', 'first', 'second']]);
    expect(stopsIn(conversation.log())).toEqual(['not first']);
  });
});

describe('a SessionStart hook that a cancel cuts off', () => {
  it('is called again by the next run, as for a new session, so that its context reaches the model', async () => {
    const sources: unknown[] = [];
    const called = gate();
    const start: Hook = {
      run: ({ event, source }) => {
        sources.push([event, source]);
        called.open();
        return sources.length === 1 ? new Promise(() => undefined) : { additionalContext: 'It is Monday.' };
      },
    };
    const end: Hook = { run: ({ event }) => void sources.push([event]) };
    const plugins = [hooks({ SessionStart: [start], SessionEnd: [end] })];
    const { agent, conversation, model } = await bench({ replies: ['a', 'b'], plugins });
    const run = conversation.send('one');
    await called.opened;
    await run.cancel();
    expect((await run.result).termination).toBe('Cancelled');
    for (const text of ['two', 'three']) await conversation.send(text).result;
    expect(model.calls.map(({ system }) => system.includes('It is Monday.'))).toEqual([true, false]);
    await agent.close();
    expect(sources).toEqual([['SessionStart', 'startup'], ['SessionStart', 'startup'], ['SessionEnd']]);
  });
});

describe('a hook after a call', () => {
  const AFTER = ['PostToolUse', 'PostToolUseFailure', 'Notification'] as const;
  const recording = () => {
    const events: unknown[] = [];
    const record: Hook = { run: ({ event, callId }) => void events.push([event, callId]) };
    return { events, plugin: hooks(Object.fromEntries(AFTER.map((event) => [event, [record]]))) };
  };

  it.each([
    ['of an unknown tool', call('c1', 'nothing', {})],
    ['with invalid arguments', call('c1', 'echo', { m: 7 })],
  ])('is not called for a call %s, which did not run', async (_, part) => {
    const { events, plugin } = recording();
    const { conversation } = await bench({ tools: [echo()], replies: [[part], 'done'], plugins: [plugin] });
    expect((await conversation.send('go').result).termination).toBe('NaturalEnd');
    expect(events).toEqual([]);
  });

  it('is not called for a call that a cancel ended', async () => {
    const { events, plugin } = recording();
    const started = gate();
    const hangs = echo(() => {
      started.open();
      return new Promise(() => undefined);
    });
    const { conversation } = await bench({ tools: [hangs], replies: oneCall, plugins: [plugin] });
    const run = conversation.send('go');
    await started.opened;
    await run.cancel();
    expect((await run.result).termination).toBe('Cancelled');
    expect(events).toEqual([]);
  });
});

describe('a command', () => {
  const answered = async (command: string, cwd: string) => {
    const plugins = [hooks({ PreToolUse: [{ command }] })];
    const { conversation } = await bench({ tools: [echo()], replies: oneCall, plugins, cwd });
    await conversation.send('go').result;
    return resultText(conversation.log(), 'c1');
  };

  it('has the variables of this process', async () => {
    vi.stubEnv('OF_THE_HOST', 'a value');
    onTestFinished(() => void vi.unstubAllEnvs());
    expect(await answered('echo "$OF_THE_HOST in $PWD" >&2; exit 2', temporaryFolder())).toContain('a value in /');
  });

  it('that cannot be started, since its directory is gone, blocks the call at once', async () => {
    expect(await answered('true', join(temporaryFolder(), 'gone'))).toContain('A required hook failed');
  });
});

it.each([
  ...[{ command: '' }, { command: 7 }, { run: 'x' }, { command: 'a', timeoutMs: 0 }, { command: 'a', timeoutMs: 1.5 }],
  ...[
    { command: 'a', timeoutMs: '5' },
    { command: 'a', matcher: 7 },
    { command: 'a', required: 'no' },
    null,
    'a',
    [[]],
  ],
])('the hook %j is refused at the start', (hook) => {
  expect(() => hooks({ Stop: [hook as never] })).toThrow(ConfigurationError);
});

it.each([null, 7, 'x', [[]], { Stop: null }, { Stop: 'a' }, { Stop: {} }])(
  'the hooks %j are refused at the start',
  (options) => {
    expect(() => hooks(options as never)).toThrow(ConfigurationError);
  },
);
