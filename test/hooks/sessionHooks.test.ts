/** Hooks of sub-agents' sessions, of summaries, and a stop that a hook requests while other calls wait. */
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { defineTool, type Policies, subAgents, toolResult } from '../../src/index.ts';
import { type Hook, type HookEvent, type HookInput, type HookOptions, hooks } from '../../src/node.ts';
import { bench, only, restart } from '../support/agentBench.ts';
import { call, scripted } from '../support/scriptedReplies.ts';
import { byTask, childOf, spawn, submit } from '../support/subAgentBench.ts';

describe('sub-agents', () => {
  it('SubagentStart and SubagentStop fire for each sub-agent in place of SessionStart and SessionEnd, within those of the root', async () => {
    const inputs: HookInput[] = [];
    const watched: HookEvent[] = ['SessionStart', 'SubagentStart', 'SubagentStop', 'SessionEnd', 'Stop'];
    const record = { run: (input: HookInput) => void inputs.push(input) };
    const plugin = hooks(Object.fromEntries(watched.map((event) => [event, [record]])) as HookOptions);
    const model = byTask({ alpha: [[submit('s', 'A')]], beta: ['B by text alone'] });
    const { conversation, agent } = await bench({
      replies: [[spawn('p', 'alpha', 'beta')], 'done'],
      tools: [subAgents({ model })],
      plugins: [plugin],
    });
    await conversation.send('hi').result;
    await agent.close();
    const of = (id: string): string[] =>
      inputs.flatMap(({ event, conversationId, source }) =>
        conversationId === id ? [source === undefined ? event : `${event} ${source}`] : [],
      );
    expect(of('c')).toEqual(['SessionStart startup', 'Stop', 'SessionEnd']);
    expect(of(childOf('p', 'a'))).toEqual(['SubagentStart startup', 'SubagentStop']);
    expect(of(childOf('p', 'b'))).toEqual(['SubagentStart startup', 'Stop', 'SubagentStop']);
    expect(inputs[0]?.event).toBe('SessionStart');
    expect(inputs.at(-1)?.event).toBe('SessionEnd');
    const ended = inputs.findIndex(({ event, conversationId }) => event === 'Stop' && conversationId === 'c');
    expect(inputs.slice(ended).filter(({ event }) => event === 'SubagentStop')).toEqual([]);
  });

  it('context from SubagentStart is in the first request of that sub-agent only', async () => {
    const plugin = hooks({ SubagentStart: [{ run: () => ({ additionalContext: 'for the child' }) }] });
    const model = byTask({ alpha: [[submit('s', 'A')]] });
    const on = await bench({
      replies: [[spawn('p', 'alpha')], 'done'],
      tools: [subAgents({ model })],
      plugins: [plugin],
    });
    await on.conversation.send('hi').result;
    expect(model.of('alpha').calls[0]?.system).toContain('for the child');
    expect(on.model.calls.map(({ system }) => system.includes('for the child'))).toEqual([false, false]);
  });
});

/** `wait` waits for an answer, then returns it. */
const echo = defineTool({
  name: 'echo',
  description: 'Echoes',
  parameters: z.object({ text: z.string() }),
  execute: ({ text }, { decision }) => (text === 'wait' && !decision ? toolResult.pending({ reason: 'later' }) : text),
});

async function stopped(event: 'PreToolUse' | 'PostToolUse', onPartialSuspend: Policies['onPartialSuspend']) {
  const enough = ({ args }: HookInput) =>
    (args as { text: string }).text === 'stop' ? { continue: false, reason: 'enough' } : undefined;
  const options = { tools: [echo], plugins: [hooks({ [event]: [{ run: enough }] })], policies: { onPartialSuspend } };
  const calls = [call('c1', 'echo', { text: 'wait' }), call('c2', 'echo', { text: 'stop' })];
  const made = await bench({ ...options, replies: [calls, 'never', 'next'] });
  return { ...made, options, result: await made.conversation.send('go').result };
}

describe('a run that a hook stops while another call of the round waits', () => {
  it.each(['PreToolUse', 'PostToolUse'] as const)(
    'it ends Stopped, cause hook, if the round does not wait for the call: %s',
    async (event) => {
      const { result, model } = await stopped(event, 'continue');
      expect([result.termination, result.cause, model.calls.length]).toEqual(['Stopped', 'hook', 1]);
    },
  );

  it.each(['PreToolUse', 'PostToolUse'] as const)(
    'it ends Suspended if the round waits for the call, and Stopped, without another model call, after the decision: %s',
    async (event) => {
      const { result, model, conversation } = await stopped(event, 'wait');
      expect(result.termination).toBe('Suspended');
      await conversation.decide({ callId: 'c1', action: 'answer', payload: 1 });
      const resumed = await conversation.resume().result;
      expect([resumed.termination, resumed.cause, model.calls.length]).toEqual(['Stopped', 'hook', 1]);
      expect(only(conversation.log(), 'tool-result').sort()[0]).toBe('tool-result c1 succeeded');
      expect((await conversation.send('next').result).termination).toBe('NaturalEnd');
    },
  );

  it('it stays stopped in another process, and after a resume without a decision', async () => {
    const made = await stopped('PostToolUse', 'wait');
    expect((await made.conversation.resume().result).termination).toBe('Suspended');
    const again = await restart(made, { ...made.options, model: scripted(['never']) });
    expect((await again.conversation.resume().result).termination).toBe('Suspended');
    await again.conversation.decide({ callId: 'c1', action: 'answer', payload: 1 });
    const resumed = await again.conversation.resume().result;
    expect([resumed.termination, resumed.cause, again.model.calls.length]).toEqual(['Stopped', 'hook', 0]);
    const diagnostics = again.conversation
      .log()
      .filter((each) => each.type === 'diagnostic' && each.code === 'hook_stopped');
    expect(diagnostics).toHaveLength(1);
  });
});

describe('PreCompact', () => {
  const text = 'x'.repeat(1_200);
  const compacted = async (hook: Hook) => {
    const model = scripted([text, text, 'Summary', 'ok'], { contextWindow: 1_000, maxOutputTokens: 0 });
    const to = await bench({ model, plugins: [hooks({ PreCompact: [hook] })] });
    for (const words of ['one', 'two', 'x'.repeat(1_000)]) await to.conversation.send(words).result;
    return { model, log: to.conversation.log() };
  };

  it('TRC-6: text that a hook adds is an instruction of the summary', async () => {
    const inputs: HookInput[] = [];
    const run = (input: HookInput) => {
      inputs.push(input);
      return { additionalContext: 'Keep the paths.' };
    };
    const { model, log } = await compacted({ run });
    expect(inputs).toMatchObject([{ event: 'PreCompact', source: 'auto', conversationId: 'c' }]);
    expect(model.calls[2]?.system).toMatch(/Keep the paths\.$/);
    expect(log.filter(({ type }) => type === 'compaction')).toHaveLength(1);
  });

  it('TRC-6: a requested summary is manual, and a later one for a full window is auto again', async () => {
    const sources: (string | undefined)[] = [];
    const run = ({ source }: HookInput) => void sources.push(source);
    const asked = [undefined, true, undefined] as const;
    let at = 0;
    const asks = { name: 'asks', stepStart: () => ({ ...(asked[at++] && { compact: true as const }) }) };
    const model = scripted([text, 'Summary', text, text, 'Summary', 'ok'], {
      contextWindow: 1_000,
      maxOutputTokens: 0,
    });
    const { conversation } = await bench({ model, plugins: [asks, hooks({ PreCompact: [{ run }] })] });
    for (const words of ['one', 'two', 'three', 'x'.repeat(1_000)]) await conversation.send(words).result;
    expect(sources).toEqual(['manual', 'auto']);
  });

  it.each([
    ['a function that answers block', { run: () => ({ decision: 'block', reason: 'not now' }) as const }],
    ['a command that ends with 2', { command: 'echo "not now" >&2; exit 2' }],
  ])('TRC-6: %s keeps the messages, and the log contains that', async (_, hook) => {
    const { model, log } = await compacted(hook);
    expect(model.calls).toHaveLength(3);
    expect(log.filter(({ type }) => type === 'compaction')).toEqual([]);
    expect(log).toContainEqual(expect.objectContaining({ type: 'notice', code: 'compaction_blocked' }));
  });
});
