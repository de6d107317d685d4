/**
 * Hooks used again: the same plugin for a conversation that is closed and opened again, resumed, or beside another one.
 */
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { createAgent, defineTool, memoryStore, toolResult } from '../../src/index.ts';
import { type Hook, type HookEvent, type HookInput, type HookOptions, hooks } from '../../src/node.ts';
import { call, scripted } from '../support/scriptedReplies.ts';

const EVENTS: readonly HookEvent[] = [
  ...(['SessionStart', 'UserPromptSubmit', 'PreToolUse', 'PostToolUse', 'Notification', 'Stop', 'SessionEnd'] as const),
];

/** An agent that keeps its plugin, with the events of its hooks by conversation. */
function agentWith(replies: Parameters<typeof scripted>[0], more: HookOptions = {}) {
  const inputs: HookInput[] = [];
  const record: Hook = { run: (input) => void inputs.push(input) };
  const options = Object.fromEntries(EVENTS.map((event) => [event, [record, ...(more[event] ?? [])]])) as HookOptions;
  const ran: string[] = [];
  const echo = defineTool({
    name: 'echo',
    description: 'Echoes',
    parameters: z.object({ text: z.string() }),
    execute: ({ text }, { decision }) => {
      ran.push(text);
      return text === 'wait' && !decision ? toolResult.pending({ reason: 'later' }) : `echo ${text}`;
    },
  });
  const agent = createAgent({
    model: scripted(replies),
    tools: [echo],
    plugins: [hooks(options)],
    store: memoryStore(),
  });
  const eventsOf = (id = 'c'): string[] =>
    inputs.flatMap(({ event, conversationId, source, prompt }) =>
      conversationId === id ? [[event, source ?? prompt].filter(Boolean).join(' ')] : [],
    );
  return { agent, inputs, ran, eventsOf };
}

describe('a conversation that is opened again by the same agent', () => {
  it('a session starts and ends each time, and each prompt is reported once', async () => {
    const { agent, eventsOf, inputs } = agentWith(['one', 'two', 'three']);
    for (const text of ['first', 'second', 'third']) {
      const conversation = await agent.open('c');
      await conversation.send(text).result;
      await conversation.close();
    }
    expect(eventsOf()).toEqual([
      ...['SessionStart startup', 'UserPromptSubmit first', 'Stop', 'SessionEnd'],
      ...['SessionStart resume', 'UserPromptSubmit second', 'Stop', 'SessionEnd'],
      ...['SessionStart resume', 'UserPromptSubmit third', 'Stop', 'SessionEnd'],
    ]);
    const runs = inputs.filter(({ event }) => event === 'SessionEnd').map(({ runId }) => runId);
    expect(new Set(runs).size).toBe(3);
  });

  it('its session ends with the last run, however many there were', async () => {
    const { agent, inputs, eventsOf } = agentWith(['one', 'two']);
    const conversation = await agent.open('c');
    await conversation.send('first').result;
    const { runId } = await conversation.send('second').result;
    await conversation.close();
    await conversation.close();
    expect(inputs.at(-1)).toMatchObject({ event: 'SessionEnd', runId });
    expect(eventsOf().filter((event) => event === 'SessionEnd')).toHaveLength(1);
  });

  it('it has no session while nothing runs in it', async () => {
    const { agent, eventsOf } = agentWith(['one']);
    await (await agent.open('c')).close();
    expect(eventsOf()).toEqual([]);
    await (await agent.open('c')).send('first').result;
    expect(eventsOf()[0]).toBe('SessionStart startup');
    await agent.close();
  });

  it('a session starts with the run that resumes it, without the earlier prompt', async () => {
    const { agent, eventsOf, ran } = agentWith([[call('c1', 'echo', { text: 'wait' })], 'done']);
    const before = await agent.open('c');
    await before.send('first').result;
    await before.close();
    const first = eventsOf().length;
    const again = await agent.open('c');
    await again.decide({ callId: 'c1', action: 'answer', payload: 1 });
    await again.resume().result;
    await again.close();
    expect(eventsOf().slice(first)).toEqual(['SessionStart resume', 'PostToolUse', 'Stop', 'SessionEnd']);
    expect(ran).toEqual(['wait', 'wait']);
  });
});

it('two conversations of one agent have separate sessions, and the end of one does not affect the other', async () => {
  const { agent, eventsOf } = agentWith(['a', 'b', 'c', 'd']);
  const [first, second] = [await agent.open('c'), await agent.open('d')];
  await first.send('one').result;
  await second.send('two').result;
  await first.close();
  await second.send('three').result;
  await agent.close();
  expect(eventsOf('c')).toEqual(['SessionStart startup', 'UserPromptSubmit one', 'Stop', 'SessionEnd']);
  expect(eventsOf('d')).toEqual([
    ...['SessionStart startup', 'UserPromptSubmit two', 'Stop'],
    ...['UserPromptSubmit three', 'Stop', 'SessionEnd'],
  ]);
});

it('of two hooks that rewrite arguments the second one wins, and receives the output of the first', async () => {
  const seen: unknown[] = [];
  const rewrite = (text: string): Hook => ({
    run: ({ args }) => {
      seen.push(args);
      return { updatedInput: { text } };
    },
  });
  const { agent, ran } = agentWith([[call('c1', 'echo', { text: 'a' })], 'done'], {
    PreToolUse: [rewrite('b'), rewrite('c')],
  });
  await (await agent.open('c')).send('go').result;
  await agent.close();
  expect(seen).toEqual([{ text: 'a' }, { text: 'b' }]);
  expect(ran).toEqual(['c']);
});
