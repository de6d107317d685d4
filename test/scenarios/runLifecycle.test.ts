/** A run from its start to its last checkpoint, through the public API (docs/internals/lifecycle.md, State Machine). */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { modelMessages } from '../../machines/index.ts';
import { defineTool, type LogEntry, ModelError, type NewEntry, type Plugin, toolResult } from '../../src/index.ts';
import { bench, only, resultText, story } from '../support/agentBench.ts';
import { asks, boom, echoTool, recorder } from '../support/scenarioTools.ts';
import { call, lines, t } from '../support/scriptedReplies.ts';
import { boundariesOf, commits, troubledStore } from '../support/troubledStore.ts';

/** A tool that writes one key of the state. */
const keep = defineTool({
  name: 'keep',
  description: 'Writes a key.',
  parameters: z.object({ key: z.string(), value: z.number() }),
  execute: ({ key, value }) => toolResult.success('kept', { state: { [key]: value } }),
});

describe('the plain run', () => {
  it('S001-01: it ends naturally with its text, its state and three checkpoints', async () => {
    const plugin: Plugin = { name: 'starts', runStart: () => ({ state: { started: true } }) };
    const { conversation } = await bench({ replies: ['done'], plugins: [plugin] });
    const result = await conversation.send('hi').result;
    expect(result).toMatchObject({ termination: 'NaturalEnd', cause: 'end_turn', reason: 'completed', text: 'done' });
    expect(result).toMatchObject({ subtype: 'success', turns: 1, pending: [], calls: [] });
    expect(conversation.state).toEqual({ started: true });
    expect(story(conversation.log())).toEqual([
      'run-started',
      'user-message direct hi',
      'state-changed',
      'checkpoint UserMessage',
      'agent-output done',
      'model-reply',
      'checkpoint AssistantTurnCommitted',
      'run-stop completed end_turn',
      'checkpoint RunFinished',
    ]);
    expect(conversation.status).toBe('idle');
  });

  it('S001-03: plugins are called in phase order through one tool round', async () => {
    const { plugin, phases } = recorder();
    const echo = echoTool();
    const { conversation } = await bench({
      replies: [[call('c1', 'echo', { m: 'a' })], 'x'],
      tools: [echo.tool],
      plugins: [plugin],
    });
    await conversation.send('hi').result;
    expect(phases).toEqual([
      'RunStart',
      'StepStart',
      'BeforeInference',
      'AfterInference',
      'StepEnd',
      'BeforeToolExecute',
      'AfterToolExecute',
      'StepStart',
      'BeforeInference',
      'AfterInference',
      'StepEnd',
      'RunEnd',
    ]);
  });

  it('S001-04: a plugin that terminates before inference ends the run without a model call', async () => {
    const seen = recorder();
    const ender: Plugin = { name: 'ender', beforeInference: () => ({ terminate: 'enough' }) };
    const { conversation, model } = await bench({ plugins: [seen.plugin, ender] });
    const result = await conversation.send('hi').result;
    expect(result).toMatchObject({ termination: 'PluginRequested', cause: 'ender', reason: 'completed' });
    expect(seen.phases).toEqual(['RunStart', 'StepStart', 'BeforeInference', 'RunEnd']);
    expect(model.calls).toHaveLength(0);
  });
});

describe('failures of tools', () => {
  it('S001-06: a failing tool is an error result, and the model is called again', async () => {
    const { conversation, model } = await bench({ replies: [[call('c1', 'boom')], 'x'], tools: [boom] });
    const result = await conversation.send('hi').result;
    expect(result).toMatchObject({ termination: 'NaturalEnd', text: 'x', turns: 2 });
    expect(result.calls).toEqual([{ callId: 'c1', name: 'boom', outcome: 'failed', code: 'error' }]);
    expect(lines(model.calls[1]?.messages ?? [])).toEqual(['user hi', 'assistant +c1', 'c1! Error: boom']);
  });

  it('S001-07: an unknown tool and invalid arguments are two error results, and the loop continues', async () => {
    const echo = echoTool();
    const replies = [[call('c1', 'nope'), call('c2', 'echo')], 'x'];
    const { conversation, model } = await bench({ replies, tools: [echo.tool] });
    const result = await conversation.send('hi').result;
    expect(result.termination).toBe('NaturalEnd');
    expect(only(conversation.log(), 'tool-result', 'tool-started')).toEqual([
      'tool-result c1 failed unknown_tool',
      'tool-result c2 failed invalid_arguments',
    ]);
    expect(resultText(conversation.log(), 'c1')).toContain('There is no tool "nope"');
    expect(resultText(conversation.log(), 'c2')).toMatch(/Invalid arguments for echo:\nm: /);
    expect(echo.ran).toEqual([]);
    expect(model.calls).toHaveLength(2);
  });

  it('S001-09: invalid arguments take precedence over a suspension', async () => {
    const echo = echoTool();
    const replies = [[call('c1', 'echo')], 'x'];
    const { conversation } = await bench({ replies, tools: [echo.tool], plugins: [asks('echo').plugin] });
    const result = await conversation.send('hi').result;
    expect(result.termination).toBe('NaturalEnd');
    expect(only(conversation.log(), 'tool-result', 'tool-suspended')).toEqual([
      'tool-result c1 failed invalid_arguments',
    ]);
  });
});

describe('errors that end a run', () => {
  it('S001-34: AfterInference, StepEnd and RunEnd receive the final failure of a model', async () => {
    const seen = recorder();
    const errors: unknown[] = [];
    const ends: unknown[] = [];
    const listener: Plugin = {
      name: 'listener',
      afterInference: ({ error, reply }) => void errors.push({ error, reply }),
      runEnd: ({ termination }) => void ends.push(termination),
    };
    const { conversation } = await bench({
      replies: [new ModelError({ code: 'rate-limit', status: 429, message: 'slow down' })],
      plugins: [seen.plugin, listener],
      policies: { modelRetry: { attempts: 1 } },
    });
    const result = await conversation.send('hi').result;
    expect(result).toMatchObject({ termination: 'Error', cause: 'model', reason: 'error' });
    expect(result.error?.code).toBe('rate-limit');
    expect(seen.phases.slice(-3)).toEqual(['AfterInference', 'StepEnd', 'RunEnd']);
    expect(errors).toEqual([
      { error: { code: 'rate-limit', message: expect.stringContaining('slow down') }, reply: undefined },
    ]);
    expect(ends).toEqual(['Error']);
    expect(conversation.status).toBe('error');
  });

  it.each([{ synchronous: true }, { synchronous: false }])(
    'S001-36: a failed commit of the assistant turn ends the run with Error, and RunFinished is still attempted (%o)',
    async ({ synchronous }) => {
      const store = troubledStore({ synchronous });
      store.trouble((entries) => (commits(entries, 'AssistantTurnCommitted') ? 'failed' : 'stored'));
      const { conversation } = await bench({ replies: ['lost'], store });
      const result = await conversation.send('hi').result;
      expect(result).toMatchObject({ termination: 'Error', cause: 'store', reason: 'error' });
      expect(result.error).toEqual({ code: 'store', message: 'the disk is full' });
      const tried = store.tried.flatMap(boundariesOf);
      expect(tried).toEqual(['UserMessage', 'AssistantTurnCommitted', 'RunFinished']);
      expect(story(conversation.log())).toEqual([
        'run-started',
        'user-message direct hi',
        'checkpoint UserMessage',
        'run-stop error store',
        'checkpoint RunFinished',
      ]);
      expect(conversation.status).toBe('error');
    },
  );

  it.each([{ synchronous: true }, { synchronous: false }])(
    'S001-37: after a failed commit of tool results the call is started, its outcome is unknown, and RunFinished is attempted (%o)',
    async ({ synchronous }) => {
      const store = troubledStore({ synchronous });
      store.trouble((entries) => (commits(entries, 'ToolResultsCommitted') ? 'failed' : 'stored'));
      const echo = echoTool();
      const replies = [[call('c1', 'echo', { m: 'a' })], 'never'];
      const { conversation, model } = await bench({ replies, tools: [echo.tool], store });
      const result = await conversation.send('hi').result;
      expect(result).toMatchObject({ termination: 'Error', cause: 'store' });
      expect(result.calls).toEqual([{ callId: 'c1', name: 'echo', outcome: 'unknown' }]);
      expect(only(conversation.log(), 'tool-started', 'tool-result')).toEqual([
        'tool-started c1',
        'tool-result c1 unknown',
      ]);
      expect(store.tried.flatMap(boundariesOf).slice(-2)).toEqual(['ToolResultsCommitted', 'RunFinished']);
      expect(model.calls).toHaveLength(1);
      expect(conversation.unsettled.map(({ callId }) => callId)).toEqual(['c1']);
    },
  );

  it('CKPT-4: if RunFinished cannot be stored either, neither the log nor the view contains a stop', async () => {
    const store = troubledStore({ synchronous: true });
    const { conversation } = await bench({ replies: ['x'], store });
    store.trouble((entries) => (commits(entries, 'RunFinished') ? 'failed' : 'stored'));
    const result = await conversation.send('hi').result;
    expect(result).toMatchObject({ termination: 'Error', cause: 'store', reason: 'error' });
    expect(conversation.status).toBe('error');
    expect(only(conversation.log(), 'run-stop')).toEqual([]);
    expect(conversation.view().cycles[0]?.stop).toBeNull();
  });
});

describe('the state that calls write', () => {
  const keeps = (...writes: [string, string, number][]) =>
    writes.map(([callId, key, value]) => call(callId, 'keep', { key, value }));

  it('S001-39: two calls of a round may write different keys', async () => {
    const replies = [keeps(['c1', 'a', 1], ['c2', 'b', 2]), 'x'];
    const { conversation } = await bench({ replies, tools: [keep] });
    expect((await conversation.send('hi').result).termination).toBe('NaturalEnd');
    expect(conversation.state).toEqual({ a: 1, b: 2 });
  });

  it('S001-39: two calls of a round that write different values to one key end the run, and nothing is applied', async () => {
    const replies = [keeps(['c1', 'a', 1], ['c2', 'a', 2]), 'x'];
    const { conversation, model } = await bench({ replies, tools: [keep] });
    const result = await conversation.send('hi').result;
    expect(result).toMatchObject({ termination: 'Error', cause: 'state', reason: 'error' });
    expect(conversation.state).toEqual({});
    expect(model.calls).toHaveLength(1);
    expect(only(conversation.log(), 'tool-result')).toEqual(['tool-result c1 succeeded', 'tool-result c2 succeeded']);
  });

  it('S001-39: two calls of a round may write the same value to one key', async () => {
    const replies = [keeps(['c1', 'a', 1], ['c2', 'a', 1]), 'x'];
    const { conversation } = await bench({ replies, tools: [keep] });
    expect((await conversation.send('hi').result).termination).toBe('NaturalEnd');
    expect(conversation.state).toEqual({ a: 1 });
  });
});

describe('S001-40: the messages that the model receives for a log', () => {
  const stamped = (entries: NewEntry[]): LogEntry[] =>
    entries.map((entry, seq) => ({ seq, at: 0, conversationId: 'c', ...entry }) as LogEntry);
  const runId = 'run';
  const content = (text: string) => [{ type: 'text' as const, text }];
  const head: NewEntry[] = [
    { runId, type: 'run-started' },
    { runId, type: 'user-message', messageId: 'm1', kind: 'direct', content: content('hi') },
    { runId, type: 'agent-output', item: { type: 'tool-call', callId: 'c1', name: 'ask', args: {} } },
    { runId, type: 'tool-suspended', callId: 'c1', suspension: 1, reason: 'permission' },
  ];
  const result = (callId: string): NewEntry => ({
    runId,
    type: 'tool-result',
    callId,
    outcome: 'succeeded',
    content: content(`result of ${callId}`),
  });

  it('a call has one result, the real one, and a call that the model never made has none', () => {
    const messages = modelMessages(stamped([...head, result('c1'), result('ghost')]));
    expect(lines(messages)).toEqual(['user hi', 'assistant +c1', 'c1 result of c1']);
  });

  it('a call with only a placeholder has the placeholder', () => {
    const messages = modelMessages(stamped(head));
    expect(lines(messages)[2]).toContain('c1 This call is suspended (permission) and awaits approval');
  });

  it('a result that follows a later reply is sent in its own place, quoted as data', () => {
    const spoken: NewEntry = { runId, type: 'agent-output', item: { type: 'assistant', text: 'meanwhile' } };
    const messages = modelMessages(stamped([...head, spoken, result('c1')]));
    expect(lines(messages).slice(2)).toEqual([
      expect.stringContaining('c1 This call is suspended'),
      'assistant meanwhile',
      expect.stringMatching(/^user The result of the earlier call "c1" to "ask" \(succeeded\).*"result of c1"$/s),
    ]);
  });
});

it('S000-01: one request is one cycle with its steps and its stop', async () => {
  const { conversation } = await bench({ replies: [[t('hello')]] });
  await conversation.send('hi').result;
  const view = conversation.view();
  expect(view.state).toBe('idle');
  expect(view.cycles).toHaveLength(1);
  const [cycle] = view.cycles;
  expect(cycle?.root.kind).toBe('direct');
  expect(cycle?.steps).toMatchObject([
    { type: 'non-steer', content: [{ text: 'hi' }] },
    { type: 'ai-block', text: { kind: 'assistant', text: 'hello' }, groups: [] },
  ]);
  expect(cycle?.stop).toEqual({ reason: 'completed', cause: 'end_turn' });
});
