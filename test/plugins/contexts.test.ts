/** The context of each phase of a plugin. */
import { expect, it } from 'vitest';
import type { Phase } from '../../machines/internal.ts';
import type { Plugin } from '../../src/index.ts';
import { PHASES } from '../../src/plugins/plugin.ts';
import { bench, restart, types } from '../support/agentBench.ts';
import { echoTool } from '../support/scenarioTools.ts';
import { call } from '../support/scriptedReplies.ts';

type Context = { [field: string]: unknown };
const ARGS = { m: 'a' };

/** The contexts of every phase of a run with one call, which a person approves. */
async function contexts() {
  const received: [Phase, Context][] = [];
  const note = (phase: Phase) => (context: object) => void received.push([phase, { ...context }]);
  const plugin = { name: 'notes', ...Object.fromEntries(PHASES.map((phase) => [phase, note(phase)])) } as Plugin;
  const echo = echoTool('echo', { needsApproval: true });
  const replies = [[call('c1', 'echo', ARGS)], 'done'];
  const on = await bench({ replies, tools: [echo.tool], plugins: [plugin], cwd: '/somewhere' });
  const first = await on.conversation.send('hi', { context: { page: 1 } }).result;
  await on.conversation.decide({ callId: 'c1', action: 'approve' });
  const second = await on.conversation.resume().result;
  const of = (phase: Phase) => received.flatMap(([each, context]) => (each === phase ? [context] : []));
  return { ...on, received, of, echo, runs: [first.runId, second.runId] };
}

it('each phase has the conversation, the run, the turn, the directory and the message that began the request', async () => {
  const { received, runs } = await contexts();
  expect(new Set(received.map(([phase]) => phase)).size).toBe(PHASES.length - 1);
  for (const [phase, context] of received) {
    const { conversationId, cwd, origin, signal, turn, runId } = context;
    expect([phase, conversationId, cwd, origin]).toMatchObject([phase, 'c', '/somewhere', { context: { page: 1 } }]);
    expect(runs).toContain(runId);
    expect([phase, typeof turn, (signal as AbortSignal).aborted]).toEqual([phase, 'number', false]);
  }
});

it('each phase has the number of the last model call within the request, also after a restart', async () => {
  const turns: string[] = [];
  const note = (phase: Phase) => (context: object) => void turns.push(`${phase} ${(context as Context).turn}`);
  const plugin = { name: 'notes', ...Object.fromEntries(PHASES.map((phase) => [phase, note(phase)])) } as Plugin;
  const options = { plugins: [plugin], tools: [echoTool().tool, echoTool('ask', { needsApproval: true }).tool] };
  const of = (turn: number, ...phases: Phase[]): string[] => phases.map((phase) => `${phase} ${turn}`);
  const step = (turn: number): string[] => [
    ...of(turn - 1, 'stepStart', 'beforeInference'),
    ...of(turn, 'afterInference', 'stepEnd'),
  ];
  const ofCall = ['beforeToolExecute', 'afterToolExecute'] as const;
  const replies = ['earlier', [call('c1', 'echo', ARGS)], [call('c2', 'ask', ARGS)]];
  const before = await bench({ ...options, replies });
  await before.conversation.send('earlier').result;
  expect(turns.splice(0)).toEqual(['runStart 0', ...step(1), ...of(1, 'naturalEnd', 'runEnd')]);
  await before.conversation.send('hi').result;
  expect(turns.splice(0)).toEqual([
    'runStart 0',
    ...step(1),
    ...of(1, ...ofCall),
    ...step(2),
    ...of(2, ...ofCall, 'runEnd'),
  ]);
  const { conversation } = await restart(before, { ...options, replies: ['done'] });
  await conversation.decide({ callId: 'c2', action: 'approve' });
  await conversation.resume().result;
  expect(turns).toEqual([...of(2, 'runStart', ...ofCall), ...step(3), ...of(3, 'naturalEnd', 'runEnd')]);
});

it('each phase reads the log and the messages as they are at that moment', async () => {
  const { received, conversation } = await contexts();
  for (const [phase, { log, messages }] of received) {
    // The functions read at their call, so they return the current values now.
    expect([phase, types((log as () => never[])())]).toEqual([phase, types(conversation.log())]);
    expect([phase, (messages as () => unknown)()]).toEqual([phase, conversation.messages()]);
  }
});

it('the check of a call has its tool and, once a person has decided, the decision', async () => {
  const { of, echo } = await contexts();
  const checks = of('beforeToolExecute');
  const check = { call: { callId: 'c1', name: 'echo', args: ARGS }, tool: echo.tool };
  expect(checks).toMatchObject([check, { ...check, decision: { action: 'approve' } }]);
  expect(checks[0]).not.toHaveProperty('decision');
  for (const { tool } of checks) expect(tool).toBe(echo.tool);
});

it('the phase after a call has its outcome and result, first that it waits', async () => {
  const { of } = await contexts();
  const about = { call: { callId: 'c1', name: 'echo', args: ARGS } };
  expect(of('afterToolExecute')).toMatchObject([
    { ...about, outcome: 'suspended' },
    { ...about, outcome: 'succeeded', result: [{ type: 'text', text: JSON.stringify(ARGS) }] },
  ]);
});

it('the phases around a model call have its request and its reply, and the end of a run how it ended', async () => {
  const { of, model } = await contexts();
  const requests = of('beforeInference').map(({ request }) => request as { messages: unknown; tools: unknown });
  expect(requests.map(({ messages }) => messages)).toEqual(model.calls.map(({ messages }) => messages));
  expect(of('afterInference')).toMatchObject([
    { reply: { text: '', calls: [{ callId: 'c1', name: 'echo', args: ARGS }] } },
    { reply: { text: 'done', calls: [] } },
  ]);
  for (const context of of('afterInference')) expect(context).not.toHaveProperty('error');
  expect(of('runEnd').map(({ termination }) => termination)).toEqual(['Suspended', 'NaturalEnd']);
});

it('what a phase receives is frozen or a copy, so a plugin changes a call or a result only by its answer', async () => {
  const { received } = await contexts();
  const isFrozen = (value: unknown): boolean =>
    typeof value !== 'object' || value === null || (Object.isFrozen(value) && Object.values(value).every(isFrozen));
  for (const [phase, { call: checked, reply, result }] of received)
    expect([phase, ...[checked, reply, result].map(isFrozen)]).toEqual([phase, true, true, true]);
});
