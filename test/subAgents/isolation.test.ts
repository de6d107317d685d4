/**
 * The isolation of a sub-agent, and the arguments that a spawn call accepts (docs/internals/contracts.md, REQ-BED-009).
 */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  ConfigurationError,
  createAgent,
  defineTool,
  memoryStore,
  type Plugin,
  SessionBusyError,
  subAgents,
  type Tool,
  toolResult,
} from '../../src/index.ts';
import { bench, entry, only, resultText } from '../support/agentBench.ts';
import { asks, echoTool, gateTool } from '../support/scenarioTools.ts';
import { call, lines, scripted } from '../support/scriptedReplies.ts';
import { byTask, childOf, logOf, reported, spawn, submit } from '../support/subAgentBench.ts';

/** Writes its argument into the state. */
const writes = defineTool({
  name: 'write',
  description: 'Writes down.',
  parameters: z.object({ value: z.string() }),
  execute: ({ value }) => toolResult.success('written', { state: { note: value } }),
});

describe('isolation', () => {
  it("S003-25: its tools are the standard ones and submit_result, none that spawns; it is not listed; its parent's state is unchanged", async () => {
    const gate = gateTool();
    const model = byTask({
      alpha: [[call('w', 'write', { value: 'child' })], [call('g', 'gate')], [submit('s', 'A')]],
    });
    const {
      conversation,
      agent,
      model: parent,
    } = await bench({
      replies: [[call('w', 'write', { value: 'parent' })], [spawn('p', 'alpha')], 'done'],
      tools: [writes, gate.tool, subAgents({ model })],
    });
    const run = conversation.send('hi');
    await entry(conversation, 'sub-agent');
    const before = structuredClone([
      conversation.state,
      conversation.status,
      conversation.queue,
      conversation.messages(),
    ]);
    const seen = conversation.log().length;
    await gate.begun('g');
    expect([conversation.state, conversation.status, conversation.queue, conversation.messages()]).toEqual(before);
    expect(conversation.log()).toHaveLength(seen);
    expect((await agent.list()).map(({ id }) => id)).toEqual(['c']);
    gate.release('g');
    await run.result;
    expect(model.of('alpha').calls[0]?.tools.map(({ name }) => name)).toEqual(['write', 'gate', 'submit_result']);
    expect(parent.calls[0]?.tools.map(({ name }) => name)).toEqual(['write', 'gate', 'spawn_agents']);
    expect(lines(model.of('alpha').calls[0]?.messages ?? [])).toEqual(['user alpha']);
    expect(conversation.state).toEqual({ note: 'parent' });
    expect((await agent.list()).map(({ id }) => id)).toEqual(['c']);
  });

  it("INV-8: its parent's log contains its start, its end and its usage, besides the call and its result", async () => {
    const echo = echoTool();
    const model = byTask({ alpha: [[call('e', 'echo', { m: 'secret steps' })], [submit('s', 'A')]] });
    const { conversation, store } = await bench({
      replies: [[spawn('p', 'alpha')], 'done'],
      tools: [echo.tool, subAgents({ model })],
    });
    await conversation.send('hi').result;
    const log = conversation.log();
    expect(JSON.stringify(log)).not.toMatch(/secret steps/);
    expect(conversation.view().diagnostics).toEqual([]);
    const from = log.findIndex(({ type }) => type === 'tool-started');
    const to = log.findIndex(({ type }) => type === 'tool-result');
    expect(log.slice(from + 1, to).map(({ type }) => type)).toEqual(['sub-agent', 'sub-agent', 'extension']);
    const [head] = await logOf(store, childOf('p', 'a'));
    expect(head).toMatchObject({
      type: 'conversation',
      parent: { conversationId: 'c', callId: 'p' },
      cwd: conversation.cwd,
    });
  });

  it('within a family a call id is unique: a repeated id is replaced', async () => {
    const echo = echoTool();
    const one = [[call('p', 'echo', { m: 'x' })], [submit('s', 'ok')]];
    const { conversation, store } = await bench({
      replies: [[spawn('p', 'alpha', 'beta')], 'done'],
      tools: [echo.tool, subAgents({ model: byTask({ alpha: one, beta: one }) })],
    });
    await conversation.send('hi').result;
    const made = await Promise.all(['a', 'b'].map((id) => logOf(store, childOf('p', id))));
    const ids = made.flatMap((log) =>
      log.flatMap((each) => (each.type === 'agent-output' && each.item.type === 'tool-call' ? [each.item.callId] : [])),
    );
    expect(new Set([...ids, 'p']).size).toBe(5);
    expect(ids.filter((id) => id.startsWith('p_'))).toHaveLength(2);
  });

  it("the agent's plugins apply to it, and submit_result cannot be suspended or blocked by them", async () => {
    const hook = asks('submit_result');
    const events: string[] = [];
    const plugin: Plugin = { name: 'ear', beforeInference: ({ conversationId }) => void events.push(conversationId) };
    const { conversation } = await bench({
      replies: [[spawn('p', 'alpha')], 'done'],
      tools: [subAgents({ model: byTask({ alpha: [[submit('s', 'A')]] }) })],
      plugins: [hook.plugin, plugin],
    });
    expect((await conversation.send('hi').result).text).toBe('done');
    expect(hook.saw).toEqual(['p']);
    expect(events.filter((id) => id === childOf('p', 'a')).length).toBeGreaterThan(0);
  });

  it('its own instructions and tools replace those of the agent', async () => {
    const echo = echoTool();
    const model = byTask({ alpha: [[submit('s', 'A')]] });
    const { conversation } = await bench({
      instructions: 'You are the parent.',
      replies: [[spawn('p', 'alpha')], 'done'],
      tools: [writes, subAgents({ model, tools: [echo.tool], instructions: 'You are small.' })],
    });
    await conversation.send('hi').result;
    const [request] = model.of('alpha').calls;
    expect(request?.tools.map(({ name }) => name)).toEqual(['echo', 'submit_result']);
    expect(request?.system).toMatch(/^You are small\.\n\n/);
  });

  it("without a model of its own it uses the agent's", async () => {
    const parent = scripted([[spawn('p', 'alpha')], [submit('s', 'A')], 'done']);
    const { conversation } = await bench({ model: parent, tools: [subAgents()] });
    expect((await conversation.send('hi').result).text).toBe('done');
    expect(parent.calls[1]?.system).toMatch(/sub-agent/);
  });
});

describe('access from outside', () => {
  it('a running sub-agent is busy; an ended one can be read, and only its parent continues it', async () => {
    const gate = gateTool();
    const model = byTask({ alpha: [[call('g', 'gate')], [submit('s', 'A')]] });
    const { conversation, agent } = await bench({
      replies: [[spawn('p', 'alpha')], 'done'],
      tools: [gate.tool, subAgents({ model })],
    });
    const run = conversation.send('hi');
    await gate.begun('g');
    await expect(agent.open(childOf('p', 'a'))).rejects.toThrow(SessionBusyError);
    gate.release('g');
    await run.result;
    const child = await agent.open(childOf('p', 'a'));
    const before = child.log();
    expect(lines(child.messages())[0]).toBe('user alpha');
    expect(() => child.send('more')).toThrow(ConfigurationError);
    await expect(child.decide({ callId: 's', action: 'approve' })).rejects.toThrow(ConfigurationError);
    expect(await child.resume().result).toMatchObject({ termination: 'Error', cause: 'configuration' });
    expect(child.log()).toEqual(before);
    await child.close();
  });

  it('S003-23: another log under the id of a sub-agent is rejected and unchanged', async () => {
    const store = memoryStore();
    const id = childOf('p', 'a');
    const foreign = await store.open(id);
    const base = { at: 1, conversationId: id, runId: null };
    const head = { ...base, seq: 0, type: 'conversation' as const, schema: 1, cwd: '/', createdAt: 1 };
    await foreign.append([{ ...head, parent: { conversationId: 'c', callId: 'another' } }], 0);
    await foreign.close();
    const { conversation } = await bench({
      store,
      replies: [[spawn('p', 'alpha')], 'done'],
      tools: [subAgents({ model: byTask({ alpha: [[submit('s', 'forged')]] }) })],
    });
    expect((await conversation.send('hi').result).text).toBe('done');
    const [report] = reported(conversation.log(), 'p');
    expect(report).toMatchObject({
      id: 'a',
      outcome: 'failed',
      text: expect.stringMatching(/not that of a sub-agent/),
    });
    expect(await logOf(store, id)).toHaveLength(1);
  });

  it('S003-23: a recorded end of a sub-agent without a task is in no result', async () => {
    const gate = gateTool();
    const model = byTask({ alpha: [[call('g', 'gate')], [submit('s', 'A')]] });
    const first = await bench({ replies: [[spawn('p', 'alpha')]], tools: [gate.tool, subAgents({ model })] });
    first.conversation.send('hi');
    await gate.begun('g');
    const log = first.conversation.log();
    const store = memoryStore();
    const handle = await store.open('c');
    const runId = log.at(-1)?.runId ?? null;
    const ended = { type: 'sub-agent', callId: 'p', child: 'nobody', phase: 'ended' } as const;
    await handle.append([...log, { seq: log.length, at: 1, conversationId: 'c', runId, ...ended }], 0);
    await handle.close();
    const tools = [gate.tool, subAgents({ model: byTask({ alpha: [[submit('s', 'A')]] }) })];
    const { conversation } = await bench({ store, replies: ['done'], tools });
    expect((await conversation.resume().result).text).toBe('done');
    expect(reported(conversation.log(), 'p').map(({ id }) => id)).toEqual(['a']);
  });
});

describe('arguments of a spawn call', () => {
  const refusedBy = async (tasks: unknown): Promise<string> => {
    const { conversation } = await bench({
      replies: [[call('p', 'spawn_agents', JSON.stringify({ tasks }))], 'done'],
      tools: [subAgents({ model: byTask({}) })],
    });
    expect((await conversation.send('hi').result).text).toBe('done');
    expect(only(conversation.log(), 'tool-result', 'sub-agent')).toEqual(['tool-result p failed invalid_arguments']);
    return resultText(conversation.log(), 'p');
  };

  it.each([
    ['no list', 'x', /expected a list/],
    ['no task', [], /at least one task/],
    ['1000 tasks', Array.from({ length: 1000 }, (_, id) => ({ id: `${id}`, task: 'x' })), /at most 64 tasks/],
    [
      'two tasks with one id',
      [
        { id: 'a', task: 'x' },
        { id: 'a', task: 'y' },
      ],
      /two tasks have the id "a"/,
    ],
    ['an empty id', [{ id: '', task: 'x' }], /tasks\.0\.id/],
    ['an id that is not a text', [{ id: 7, task: 'x' }], /tasks\.0\.id/],
    ['nothing to do', [{ id: 'a', task: '  ' }], /tasks\.0\.task/],
    ['invalid tasks', [null, 'x', []], /tasks\.2\.task/],
  ])('%s: the call is refused as a whole, with an error that the model can correct', async (_, tasks, words) => {
    expect(await refusedBy(tasks)).toMatch(words);
  });

  it('ids such as __proto__ and constructor are ordinary, and a task may have 1 MiB', async () => {
    const long = 'x'.repeat(1_048_576);
    const ids = ['__proto__', 'constructor', '../..'];
    const model = byTask({ one: [[submit('s', '1')]], two: [[submit('s', '2')]], [long]: [[submit('s', '3')]] });
    const tasks = ['one', 'two', long].map((task, index) => ({ id: ids[index], task }));
    const { conversation, store } = await bench({
      replies: [[call('p', 'spawn_agents', JSON.stringify({ tasks }))], 'done'],
      tools: [subAgents({ model })],
    });
    await conversation.send('hi').result;
    const reports = reported(conversation.log(), 'p');
    expect(reports.map(({ id, outcome }) => `${id} ${outcome}`).sort()).toEqual(
      ids.map((id) => `${id} succeeded`).sort(),
    );
    expect(reports.every(({ task }) => task.length <= 300)).toBe(true);
    expect(await logOf(store, childOf('p', '__proto__'))).not.toHaveLength(0);
    expect(({} as { task?: unknown }).task).toBeUndefined();
  });
});

describe('options', () => {
  const model = scripted([]);
  const made = (tool: Tool, more: readonly Tool[] = []) => createAgent({ model, tools: [tool, ...more] });

  it('invalid options are refused at the start', () => {
    const submits = echoTool('submit_result').tool;
    expect(() => subAgents({ maxSubAgents: 0 })).toThrow(/maxSubAgents/);
    expect(() => subAgents({ limits: { turns: 0 } })).toThrow(/limits\.turns/);
    expect(() => subAgents({ limits: { runMs: -1 } })).toThrow(/limits\.runMs/);
    expect(() => subAgents({ max: 1 } as object)).toThrow(/the option max is unknown/);
    expect(() => subAgents({ limits: { cost: 1 } as object })).toThrow(
      /limits\.cost is unknown; known are turns, runMs/,
    );
    expect(() => subAgents({ model: {} as never })).toThrow(ConfigurationError);
    expect(() => made(subAgents({ tools: [subAgents({ name: 'deeper' })] }))).toThrow(/deeper: it spawns others/);
    expect(() => made(subAgents(), [submits])).toThrow(/two tools submit_result/);
    const priced = scripted([], { prices: { input: 1, output: 1 } });
    const policies = { limits: { costUsd: 1 } };
    expect(() => createAgent({ model: priced, tools: [subAgents({ model })], policies })).toThrow(/needs prices/);
  });

  it('secrets of its model are never logged', async () => {
    const secretive = { ...byTask({ alpha: [[submit('s', 'the key is key-12345678')]] }), secrets: ['key-12345678'] };
    const { conversation } = await bench({
      replies: [[spawn('p', 'alpha')], 'done'],
      tools: [subAgents({ model: secretive })],
    });
    await conversation.send('hi').result;
    expect(reported(conversation.log(), 'p')[0]?.text).toBe('the key is [redacted]');
  });
});
