/**
 * A sub-agent and its registry, with conversations that a test plays. Also the profiles of sub-agents, and sub-agents
 * in a fork.
 */
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import {
  type DecisionReceipt,
  emptyLogState,
  type LogEntry,
  type PendingCall,
  zeroUsage,
} from '../../machines/internal.ts';
import { mergedPolicies } from '../../src/agentPolicies.ts';
import { defineTool, RunchartError, subAgents, type Tool } from '../../src/index.ts';
import { noNames } from '../../src/runtime/currentRequest.ts';
import { type ConversationCore, type OpenedChild, type OwnProfile, WAITS } from '../../src/runtime/subAgentPort.ts';
import { forkedSubAgents } from '../../src/subAgents/forkIds.ts';
import { type SubAgentOptions, spawnProfiles } from '../../src/subAgents/spawnProfile.ts';
import { childIdOf } from '../../src/subAgents/spawnTasks.ts';
import { SubAgent } from '../../src/subAgents/subAgent.ts';
import { CallIds, type SubAgentRecord } from '../../src/subAgents/subAgentRecords.ts';
import { SubAgentRegistry } from '../../src/subAgents/subAgentRegistry.ts';
import { submitTool } from '../../src/subAgents/submitTool.ts';
import { answerOf, definitionOf, type ToolContext } from '../../src/tools/tool.ts';
import { Toolbox } from '../../src/tools/toolbox.ts';
import { bench } from '../support/agentBench.ts';
import { call, scripted } from '../support/scriptedReplies.ts';
import { byTask, spawn } from '../support/subAgentBench.ts';
import { flush } from '../support/virtualClock.ts';

const { signal } = new AbortController();
const waitingCall: PendingCall = {
  ...{ callId: 'x', name: 'act', args: {}, reason: 'permission', suspension: 1, path: ['x'] },
};
const costs = (inputTokens: number) =>
  ({ type: 'model-reply', model: 'm', usage: { ...zeroUsage.usage, inputTokens }, costUsd: null }) as LogEntry;

/** A conversation of a sub-agent, which waits after a run unless a test changes that. */
function played(statuses: string[] = ['waiting']) {
  const acts: string[] = [];
  const conversation = {
    ...{ pending: [waitingCall], unsettled: [waitingCall], status: 'idle', receipt: 'applied' as DecisionReceipt },
    run(act: string) {
      acts.push(act);
      conversation.status = statuses.shift() ?? 'idle';
      return { result: Promise.resolve({ termination: 'NaturalEnd' }) };
    },
    send: () => conversation.run('send'),
    resume: () => conversation.run('resume'),
    decide: async () => conversation.receipt,
    settle: async () => 'applied',
    cancel: async () => void acts.push('cancel'),
    close: async () => void acts.push('close'),
  };
  const logState = emptyLogState();
  logState.calls.set('x', { callId: 'x', suspension: 1, decisions: new Map(), status: 'suspended' } as never);
  const entries: LogEntry[] = [];
  const runtime = { logState, log: { entries, listen: () => undefined }, live: {}, subAgents: undefined };
  return { opened: { conversation, runtime } as unknown as OpenedChild, conversation, acts, entries, logState };
}

function subAgent(record?: SubAgentRecord, open?: () => Promise<OpenedChild>) {
  const child = played();
  const logged: { phase?: string; spent?: { upTo: number } }[] = [];
  const closed: unknown[] = [];
  const made = new SubAgent({
    ...{ task: { id: 'a', task: 'do it' }, record, onSuspended: () => undefined },
    open: open ?? (async () => child.opened),
    logChange: async (change) => void logged.push(change as never),
    onClosed: (logState) => void closed.push(logState),
  });
  return { made, logged, closed, ...child };
}

describe('a sub-agent', () => {
  it('it receives its task, and is resumed while decisions arrive after its gates', async () => {
    const child = played(['active', 'active', 'waiting']);
    const { made, logged } = subAgent(undefined, async () => child.opened);
    await made.work(signal);
    expect(child.acts).toEqual(['send', 'resume', 'resume']);
    expect(logged).toEqual([{ phase: 'started' }]);
    expect([made.pending, made.unsettled]).toEqual([[waitingCall], [waitingCall]]);
  });

  it('it has no waiting calls after its end, even while that is being stored, and is closed once', async () => {
    let stored = (): void => undefined;
    const child = played(['idle']);
    const made = new SubAgent({
      ...{
        task: { id: 'a', task: 'do it' },
        record: { upTo: 0 },
        onSuspended: () => undefined,
        onClosed: () => undefined,
      },
      open: async () => child.opened,
      logChange: () => new Promise<void>((resolve) => (stored = resolve)),
    });
    const working = made.work(signal);
    await flush();
    expect([made.ending?.outcome, made.pending, made.unsettled]).toEqual(['failed', [], []]);
    stored();
    await working;
    await made.close();
    expect(child.acts).toEqual(['send', 'close']);
  });

  it('at its close it reports the content of its log, and it closes even if its store fails to', async () => {
    const { made, conversation, closed, logState } = subAgent();
    conversation.close = async () => {
      throw new Error('disk gone');
    };
    await made.work(signal);
    await made.close();
    expect([closed, made.logState]).toEqual([[logState], undefined]);
  });

  it('its usage is counted once, from the last record in its parent’s log', async () => {
    const { opened, entries } = played(['waiting', 'waiting']);
    const { made, logged } = subAgent({ upTo: 1 }, async () => opened);
    entries.push(costs(100), costs(1), costs(2));
    await made.work(signal);
    expect(logged).toMatchObject([
      { spent: { upTo: 3, usage: { inputTokens: 3 }, models: [{ model: 'm', calls: 2 }] } },
    ]);
    expect(made.uncounted).toBeUndefined();
    await made.work(signal);
    expect(logged).toHaveLength(1);
    entries.push(costs(5));
    expect(made.uncounted?.usage.inputTokens).toBe(5);
  });

  it.each<[string, SubAgentRecord | undefined, Error | undefined, 'opened' | 'left' | 'rejects']>([
    ['is reopened if it has started and not ended', { upTo: 0 }, undefined, 'opened'],
    ['is skipped if it has not started', undefined, undefined, 'left'],
    ['is skipped if it has ended', { upTo: 0, ended: 3 }, undefined, 'left'],
    ['is skipped if its log cannot be read', { upTo: 0 }, new RunchartError('corrupt', 'x'), 'left'],
    [
      'keeps the conversation closed if another holder has its log',
      { upTo: 0 },
      new RunchartError('session_busy', 'x'),
      'rejects',
    ],
  ])('%s', async (_, record, error, expected) => {
    const child = played();
    const { made } = subAgent(record, async () => {
      if (error) throw error;
      return child.opened;
    });
    const reopened = made.reopen().then(
      () => (made.logState ? 'opened' : 'left'),
      () => 'rejects',
    );
    expect(await reopened).toBe(expected);
  });
});

/** The registry of a conversation with one call of two tasks, each by a conversation that a test plays. */
function registry() {
  const tasks = [
    { id: 'a', task: 'one' },
    { id: 'b', task: 'two' },
  ];
  const logState = emptyLogState();
  const record = { callId: 'c1', name: 'spawn_agents', args: { tasks }, status: 'started', suspension: 0 };
  logState.calls.set('c1', { ...record, decisions: new Map(), reason: WAITS } as never);
  const listeners: ((entry: LogEntry) => void)[] = [];
  const submitted: { type: string; decision?: object }[] = [];
  const core = {
    ...{ logState, status: 'active', live: { join: () => undefined }, subAgents: undefined },
    log: { entries: [], listen: (listener: (entry: LogEntry) => void) => void listeners.push(listener) },
    submit: async (command: { type: string }) => void submitted.push(command),
  };
  const children = [played(), played()];
  let opened = 0;
  const policies = mergedPolicies(undefined);
  const profile = { models: [scripted([])], toolbox: new Toolbox([]), plugins: [], policies, instructions: '' };
  const callIds = new CallIds();
  const made = new SubAgentRegistry({
    ...{ id: 'c', runtime: core as unknown as ConversationCore, policies, callIds },
    spawns: new Map([
      ['spawn_agents', { profile: profile as unknown as OwnProfile, concurrency: 2, turns: 3, hasOwnModel: false }],
    ]),
    openChild: async () => children[opened++]?.opened as OpenedChild,
  });
  const context = (more: object = {}) =>
    ({ callId: 'c1', signal, progress: () => undefined, ...more }) as unknown as ToolContext;
  const proposed = () => submitted.flatMap(({ type, decision }) => (type === 'decision.proposed' ? [decision] : []));
  return { made, tasks, context, children, proposed, logState, listeners, core, callIds };
}

describe('a decision on a call of a sub-agent', () => {
  it.each<[DecisionReceipt, boolean]>([
    ['applied', true],
    ['held', true],
    ['duplicate', true],
    ['stale', false],
    ['conflict', false],
    ['unknown', false],
  ])('one that is %s resumes the call of its parent: %s', async (receipt, goesOn) => {
    const { made, tasks, context, children, proposed } = registry();
    await made.run(tasks, context());
    for (const { conversation } of children) Object.assign(conversation, { receipt, status: 'idle' });
    const decision = { callId: 'x', action: 'approve' as const, by: 'ada' };
    expect(await made.decide(decision)).toBe(receipt);
    const word = { callId: 'c1', suspension: 1, by: 'ada', action: 'answer', payload: { decided: 'x' } };
    expect(proposed()).toEqual(goesOn ? [word] : []);
  });

  it('it applies to the current suspension, otherwise to the next one, and is refused if that is decided', async () => {
    for (const [more, expected] of [
      [{ status: 'suspended', suspension: 2 }, [2]],
      [{ status: 'started', suspension: 2 }, [3]],
      [{ status: 'suspended', suspension: 2, decisions: new Map([[2, {}]]) }, []],
      [{ status: 'ended', suspension: 2 }, []],
    ] as const) {
      const { made, tasks, context, children, proposed, logState } = registry();
      await made.run(tasks, context());
      Object.assign(logState.calls.get('c1') ?? {}, more);
      for (const { conversation } of children) conversation.status = 'idle';
      await made.decide({ callId: 'x', action: 'approve' });
      expect(proposed().map((decision) => (decision as { suspension: number }).suspension)).toEqual(expected);
    }
  });

  it.each(['idle', 'error', 'active'])(
    'it has no effect on an interrupted call, which runs again anyway: %s',
    async (status) => {
      const { made, tasks, context, children, proposed, core } = registry();
      await made.run(tasks, context());
      for (const { conversation } of children) conversation.status = 'idle';
      core.status = status;
      await made.decide({ callId: 'x', action: 'approve' });
      expect(proposed()).toHaveLength(status === 'active' ? 1 : 0);
    },
  );

  it.each([
    [{ retry: true }, 1],
    [{ ran: 'x' }, 0],
    [{ didNotRun: true }, 0],
  ])('%j, for one whose outcome was unknown, resumes its parent %i times', async (how, times) => {
    const { made, tasks, context, children, proposed } = registry();
    await made.run(tasks, context());
    for (const { conversation } of children) conversation.status = 'idle';
    expect(await made.settle('x', how as never)).toBe('applied');
    expect(await made.settle('nobody’s', how as never)).toBe('unknown');
    expect(proposed()).toHaveLength(times);
  });
});

describe('the registry', () => {
  it('it repeats a call with the results of its sub-agents, and refuses other tasks only if a person gave them', async () => {
    const { made, tasks, context } = registry();
    const others = [{ id: 'z', task: 'another' }];
    const statusOf = async (...args: Parameters<typeof made.run>) => answerOf(await made.run(...args))?.status;
    const edit = { decision: { callId: 'c1', action: 'edit', args: {} } };
    expect(await statusOf(tasks, context())).toBe('pending');
    expect(await statusOf(tasks, context(edit))).toBe('pending');
    expect(await statusOf(others, context(edit))).toBe('error');
    expect(await statusOf(others, context())).toBe('pending');
  });

  it('it notifies an observer of each open sub-agent, until it unsubscribes', async () => {
    const { made, tasks, context, children } = registry();
    const seen: OpenedChild[] = [];
    const gone: OpenedChild[] = [];
    const observing = made.observeOpened((child) => void seen.push(child));
    made.observeOpened((child) => void gone.push(child)).stop();
    await made.run(tasks, context());
    expect([observing.now, seen, gone]).toEqual([[], children.map(({ opened }) => opened), []]);
    expect(made.observeOpened(() => undefined).now).toHaveLength(2);
    await made.close();
    expect(made.observeOpened(() => undefined).now).toEqual([]);
  });

  it('it releases a call with a result, and its ids at the close', async () => {
    const { made, tasks, context, logState, listeners, callIds } = registry();
    await made.run(tasks, context());
    const record = logState.calls.get('c1') as never;
    expect(made.waitsWithin(record)).toBe(true);
    Object.assign(record, { status: 'ended' });
    for (const listener of listeners) listener({ type: 'tool-result', callId: 'c1' } as LogEntry);
    expect([made.pending, made.unsettled]).toEqual([[], []]);
    await flush();
    expect(made.waitsWithin(record)).toBe(false);
    expect(made.find('x')).toMatchObject({ path: ['c1', 'x'], record: { status: 'ended' } });
    const other = emptyLogState();
    callIds.join(other);
    expect(callIds.reserve(other, 'c1')).toBe(false);
    await made.close();
    expect(callIds.reserve(other, 'c1')).toBe(true);
  });

  it('the registry of one conversation does not contain calls of another, even with the same ids', async () => {
    const tool = defineTool({ ...named('act'), needsApproval: true });
    const model = byTask({
      'go a': [[spawn('s', 'alpha')], 'done'],
      'go b': [[spawn('s', 'beta')], 'done'],
      ...Object.fromEntries(['alpha', 'beta'].map((task) => [task, [[call('x', 'act')], 'done']])),
    });
    const { agent } = await bench({ model: model as never, tools: [tool, subAgents({ tools: [tool] })] });
    for (const id of ['a', 'b']) {
      const conversation = await agent.open(id);
      await conversation.send(`go ${id}`).result;
      expect(conversation.pending).toMatchObject([{ callId: 'x', path: ['s', 'x'] }]);
    }
    await agent.close();
  });
});

const named = (name: string) => ({ name, description: '', parameters: z.object({}), execute: () => '' });

describe('the profile of sub-agents', () => {
  const act = defineTool(named('act'));
  const priced = { ...scripted([]), prices: { input: 1, output: 1 } };
  const profileOf = (options: SubAgentOptions, limits: object = {}, tools: Tool[] = [act], model = scripted([])) => {
    const policies = mergedPolicies({ limits });
    const own = {
      models: [model],
      toolbox: new Toolbox([]),
      plugins: [],
      policies,
      instructions: 'Own.',
      named: noNames,
    } as OwnProfile;
    return spawnProfiles([...tools, subAgents(options)], own).get(options.name ?? 'spawn_agents');
  };
  const toolsOf = (made: ReturnType<typeof profileOf>) => made?.profile.toolbox.specs.map(({ name }) => name);

  it('an absent option is taken from the agent', () => {
    const made = profileOf({}, { turns: 7, runMs: 500, subAgents: 3, costUsd: false, tokens: 900 });
    expect(made).toMatchObject({ turns: 7, concurrency: 3, profile: { instructions: 'Own.', plugins: [] } });
    expect(toolsOf(made)).toEqual(['act', 'submit_result']);
    expect(made?.profile.policies).toMatchObject({
      ...{ onRestart: 'idle', limits: { turns: 8, runMs: 500, costUsd: false, tokens: false } },
    });
  });

  it.each([
    ['its name', { name: 'crew' }, { turns: 7 }],
    ['no instructions', { instructions: '' }, { profile: { instructions: '' } }],
    ['fewer at once', { maxSubAgents: 2 }, { concurrency: 2 }],
    ['no more at once than the conversation has', { maxSubAgents: 9 }, { concurrency: 3 }],
    [
      'its own turns',
      { limits: { turns: 2 } },
      { turns: 2, profile: { policies: { limits: { turns: 3, runMs: 500 } } } },
    ],
    ['its own time', { limits: { runMs: 9 } }, { turns: 7, profile: { policies: { limits: { turns: 8, runMs: 9 } } } }],
    ['its own model', { model: { ...scripted([]), id: 'other' } }, { profile: { models: [{ id: 'other' }] } }],
  ])('it contains an option: %s', (_, options, expected) => {
    expect(profileOf(options, { turns: 7, runMs: 500, subAgents: 3 })).toMatchObject(expected);
  });

  it('it has the tools of an option, or those of the agent that spawn nothing', () => {
    expect(toolsOf(profileOf({ tools: [] }))).toEqual(['submit_result']);
    expect(toolsOf(profileOf({}, {}, [act, subAgents({ name: 'others' })]))).toEqual(['act', 'submit_result']);
  });

  it.each<[string, SubAgentOptions, object, RegExp]>([
    ['a tool that spawns', { tools: [subAgents({ name: 'more' })] }, {}, /may not have more/],
    ['two tools of one name', { tools: [act, defineTool(named('act'))] }, {}, /two tools act/],
    [
      'a tool of the name that is added',
      { tools: [defineTool(named('submit_result'))] },
      {},
      /two tools submit_result/,
    ],
    ['an invalid tool', { tools: [named('act')] as never }, {}, /defineTool/],
    ['a limit of costs without prices', {}, { costUsd: 1 }, /has none/],
  ])('is refused with %s', (_, options, limits, why) => {
    expect(() => profileOf(options, limits)).toThrow(why);
  });

  it('it needs prices only if costs are limited', () => {
    expect(profileOf({}, { costUsd: 1 }, [act], priced)).toBeDefined();
    expect(profileOf({ model: priced }, { costUsd: 1 })).toBeDefined();
  });

  it('its spawn and submit tools may run again after a crash, and a spawn call has no time limit', () => {
    expect(definitionOf(submitTool)).toMatchObject({ idempotent: true });
    expect(definitionOf(subAgents())).toMatchObject({ idempotent: true, timeoutMs: Number.POSITIVE_INFINITY });
  });
});

describe('a sub-agent in a fork', () => {
  const child = childIdOf('from', 'c1', 'a');
  const log = (...more: object[]) =>
    [
      { type: 'conversation' },
      {
        type: 'agent-output',
        runId: 'r',
        item: { type: 'tool-call', callId: 'c1', name: 'spawn_agents', args: { tasks: [{ id: 'a', task: 'x' }] } },
      },
      { type: 'tool-started', callId: 'c1' },
      { type: 'sub-agent', callId: 'c1', child, phase: 'started' },
      ...more,
    ].map((entry, seq) => ({ seq, at: 0, runId: 'r', conversationId: 'from', ...entry })) as LogEntry[];
  const own = (count: number, more: object[] = []) =>
    [...Array.from({ length: count }, () => ({ type: 'notice' })), ...more] as LogEntry[];
  const ended = { type: 'sub-agent', callId: 'c1', child, phase: 'ended' };
  const suspended = (upTo: number, id = 'a') => ({
    ...{
      type: 'tool-suspended',
      callId: 'c1',
      suspension: 1,
      reason: WAITS,
      payload: { waiting: [{ id, calls: ['x'], upTo }] },
    },
  });
  const counted = (upTo: number) => ({
    ...{
      type: 'extension',
      name: 'runchart.sub-agent-usage',
      value: { callId: 'c1', conversationId: child, upTo, usage: {}, costUsd: 0 },
    },
  });
  const decided = (callId: string) => ({
    ...{ type: 'decision', callId: 'c1', suspension: 1 },
    decision: { callId: 'c1', suspension: 1, action: 'answer', payload: { decided: callId } },
  });
  const decision = (callId: string) => ({ type: 'decision', callId, suspension: 1, decision: { action: 'approve' } });

  it.each<[string, LogEntry[], number, LogEntry[], number]>([
    ['completely at the end of the log', log(), 4, own(9), 9],
    ['completely if it has ended', log(ended, { type: 'notice' }), 5, own(9), 9],
    ['up to its wait', log(suspended(5), { type: 'notice' }), 5, own(9), 5],
    ['no longer than its log is', log(suspended(50), { type: 'notice' }), 5, own(9), 9],
    ['completely if the payload does not mention it', log(suspended(5, 'z'), { type: 'notice' }), 5, own(9), 9],
    [
      "with the decision in its parent's log",
      log(suspended(2), decided('x'), { type: 'notice' }),
      6,
      own(2, [decision('x'), decision('x')]),
      3,
    ],
    [
      'without a decision about another call',
      log(suspended(2), decided('y'), { type: 'notice' }),
      6,
      own(2, [decision('x')]),
      2,
    ],
    [
      "without a decision that its parent's log lacks",
      log(suspended(2), { type: 'notice' }),
      5,
      own(2, [decision('x')]),
      2,
    ],
    ["up to its next wait in its parent's log", log({ type: 'notice' }, suspended(6)), 4, own(9), 6],
    ["up to the next count in its parent's log", log({ type: 'notice' }, counted(3), suspended(6)), 4, own(9), 3],
    ["completely if its end is next in its parent's log", log({ type: 'notice' }, ended, suspended(6)), 4, own(9), 9],
    ["completely if its parent's log has no later entry", log({ type: 'notice' }), 4, own(9), 9],
  ])('is copied %s', (_, entries, place, childLog, expected) => {
    const { family, placeOf } = forkedSubAgents(entries, place, 'from', 'to');
    const forked = family.get(child);
    expect(forked).toMatchObject({ callId: 'c1', taskId: 'a', from: child, to: childIdOf('to', 'c1', 'a') });
    expect(forked && placeOf(forked, childLog)).toBe(expected);
  });

  it('its end counts from the entry that reports it', () => {
    const of = (place: number) => forkedSubAgents(log(ended), place, 'from', 'to').family.get(child)?.ended;
    expect([of(3), of(4), of(5)]).toEqual([undefined, false, true]);
  });
});
