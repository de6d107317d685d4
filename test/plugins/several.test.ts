/** Tests several plugins together: their order, joined answers, shared time, and isolation from each other. */
import { describe, expect, it, vi } from 'vitest';
import * as z from 'zod';
import type { LogEntry, Phase } from '../../machines/internal.ts';
import { defineTool, type Plugin } from '../../src/index.ts';
import { hooks } from '../../src/node.ts';
import { CALL_CHECKS, portsOf } from '../../src/plugins/callChecks.ts';
import { RunStops } from '../../src/plugins/runStops.ts';
import { type BenchOptions, bench, only, resultText } from '../support/agentBench.ts';
import { echoTool } from '../support/scenarioTools.ts';
import { call, scripted } from '../support/scriptedReplies.ts';
import { logOf } from '../support/subAgentBench.ts';

type Phases = Omit<Plugin, 'name' | 'required'>;
const plugins = (...all: Phases[]): Plugin[] => all.map((phases, at) => ({ name: `p${at + 1}`, ...phases }));
const hang = () => new Promise<never>(() => undefined);

async function run(all: readonly Plugin[], more: BenchOptions = {}) {
  const echo = echoTool();
  const replies = [[call('c1', 'echo', { m: 'a' })], 'done', 'done'];
  const on = await bench({ replies, tools: [echo.tool], ...more, plugins: [...all] });
  const result = await on.conversation.send('hi').result;
  return { ...on, result, echo, log: on.conversation.log() };
}

describe('of two plugins', () => {
  it('that continue, the text of the first is logged for the model', async () => {
    let asked = 0;
    const goOn = (words: string) => ({ naturalEnd: () => (asked++ < 2 ? { continue: words } : undefined) }) as Phases;
    const { log } = await run(plugins(goOn('first'), goOn('second')), { replies: ['a', 'b'] });
    expect(log.flatMap((entry) => (entry.type === 'continuation' ? [entry.text] : []))).toEqual(['first']);
  });

  it('that write state, both write it, and the second has the last word on a key of both', async () => {
    const writes = (state: { [key: string]: number }): Phases => ({ runStart: () => ({ state }) });
    const { conversation } = await run(plugins(writes({ a: 1, both: 1 }), writes({ b: 2, both: 2 })));
    expect(conversation.state).toEqual({ a: 1, b: 2, both: 2 });
  });

  it('that suspend a call, the first gives the reason', async () => {
    const waits = (reason: string): Phases => ({ beforeToolExecute: () => ({ suspend: { reason } }) });
    const { conversation } = await run(plugins(waits('first'), waits('second')));
    expect(conversation.pending).toMatchObject([{ callId: 'c1', reason: 'first' }]);
  });

  it('of which one suspends a call and one blocks it, it is blocked, whichever is first', async () => {
    const waits: Phases = { beforeToolExecute: () => ({ suspend: { reason: 'wait' } }) };
    const blocks: Phases = { beforeToolExecute: () => ({ block: 'no' }) };
    for (const all of [plugins(waits, blocks), plugins(blocks, waits)]) {
      expect(only((await run(all)).log, 'tool-result', 'tool-suspended')).toEqual(['tool-result c1 failed blocked']);
    }
  });

  it('that both answer before a summary, the instructions of both count, and the first block', async () => {
    const long = 'x'.repeat(1_200);
    const compacting = async (...answers: object[]) => {
      const model = scripted([long, long, 'Summary', 'ok'], { contextWindow: 1_000, maxOutputTokens: 0 });
      const all = plugins(...answers.map((answer) => ({ preCompact: () => answer as never })));
      const { conversation } = await bench({ model, plugins: all });
      for (const words of ['one', 'two', 'x'.repeat(1_000)]) await conversation.send(words).result;
      const notices = conversation.log().flatMap((entry) => (entry.type === 'notice' ? [entry.text] : []));
      return { summary: model.calls[2]?.system, notices: notices.join('\n') };
    };
    const { summary } = await compacting({ instructions: 'keep names' }, {}, { instructions: 'keep dates' });
    expect(summary).toMatch(/keep names\nkeep dates$/);
    const { notices } = await compacting({ block: 'not now' }, { block: 'never' });
    expect(notices).toContain('not now');
    expect(notices).not.toContain('never');
  });

  it('that hang at the end of a run, both share its five seconds', async () => {
    const on = await bench({ replies: ['a'], plugins: plugins({ runEnd: hang }, { runEnd: hang }) });
    const ended = on.conversation.send('hi').result;
    expect(await on.clock.until(ended, 60_000)).toBe(5_000);
  });

  it('of which one changes the list that it was shown, the other and the log see nothing of it', async () => {
    const seen: number[] = [];
    const empties: Phases = { afterInference: (c) => void (c.log() as LogEntry[]).splice(0) };
    const counts: Phases = { afterInference: (c) => void seen.push(c.log().length) };
    const { log } = await run(plugins(empties, counts));
    expect(seen.every((count) => count > 0)).toBe(true);
    expect(log[0]?.type).toBe('conversation');
  });
});

describe('a run that a plugin of the library stops', () => {
  it.each<[Phase, number, number]>([
    ['stepStart', 0, 0],
    ['beforeInference', 0, 0],
    ['afterInference', 1, 0],
    ['stepEnd', 1, 0],
  ])('in %s ends as stopped, with %i model calls and %i executions', async (phase, calls, executions) => {
    const stops = { [phase]: (c: object) => portsOf(c)?.stop('enough') } as Phases;
    const { result, model, echo } = await run(plugins(stops));
    expect(result).toMatchObject({ termination: 'Stopped', cause: 'hook' });
    expect([model.calls.length, echo.ran.length]).toEqual([calls, executions]);
  });

  it('is stopped for the first reason, which the log has once, and is forgotten with the run', () => {
    const entries: LogEntry[] = [];
    const diagnose = vi.fn();
    const stops = new RunStops({ entries, diagnose });
    expect(stops.of('r2')).toBeUndefined();
    stops.stop('r1', 'first');
    stops.stop('r1', 'second');
    expect([stops.ofItself('r1'), stops.of('r1'), stops.of('r2')]).toEqual(['first', 'first', undefined]);
    expect(diagnose.mock.calls).toEqual([['hook_stopped', { runId: 'r1', reason: 'first' }]]);
    stops.forget('r1');
    expect([stops.ofItself('r1'), stops.of('r1')]).toEqual([undefined, undefined]);
    entries.push(
      ...([
        { type: 'diagnostic', code: 'hook_stopped', detail: { runId: 'r1', reason: 'first' } },
        { type: 'run-resumed', runId: 'r2', of: 'r1' },
      ] as never[]),
    );
    expect(stops.of('r2')).toBeUndefined();
    stops.forget('r2');
    expect([stops.of('r2'), stops.ofItself('r2')]).toEqual(['first', undefined]);
  });
});

describe('a call', () => {
  it('is checked also after a call whose check a cancel has cut off', async () => {
    let checks = 0;
    const plugin = hooks({ PreToolUse: [{ run: () => (checks++ === 0 ? hang() : {}) }] });
    const echo = echoTool();
    const calls = (id: string) => [call(id, 'echo', { m: id })];
    const on = await bench({ replies: [calls('c1'), calls('c2'), 'done'], tools: [echo.tool], plugins: [plugin] });
    const first = on.conversation.send('one');
    await vi.waitFor(() => expect(checks).toBe(1));
    await on.conversation.cancel();
    expect((await first.result).termination).toBe('Cancelled');
    expect((await on.conversation.send('two').result).termination).toBe('NaturalEnd');
    expect(echo.ran).toEqual(['c2']);
  });

  it('that is blocked loses its secrets before the reason is cut, so that no half of one is left', async () => {
    const secret = 'hunter2-hunter2';
    const blocks: Phases = { beforeToolExecute: () => ({ block: `${'y'.repeat(10)}${secret}${'z'.repeat(5_000)}` }) };
    const { log } = await run(plugins(blocks), { secrets: [secret], policies: { limits: { resultBytes: 120 } } });
    expect(resultText(log, 'c1')).toContain('Blocked by p1');
    expect(resultText(log, 'c1')).not.toContain('hunter');
  });

  it('that a plugin makes invalid fails, and a diagnostic names the plugin', async () => {
    const { log } = await run(plugins({}, { beforeToolExecute: () => ({ args: { m: 1 } }) }));
    expect(only(log, 'tool-result')).toEqual(['tool-result c1 failed invalid_arguments']);
    const details = log.flatMap((entry) => (entry.type === 'diagnostic' ? [entry.detail] : []));
    expect(details).toMatchObject([{ plugin: 'p2', phase: 'beforeToolExecute' }]);
  });

  it('that waits with arguments of a plugin runs with these, also if the plugin does not return them again', async () => {
    const once: Phases = { beforeToolExecute: ({ decision }) => (decision ? undefined : { args: { m: 'b' } }) };
    const echo = echoTool('echo', { needsApproval: true });
    const { conversation } = await run(plugins(once), { tools: [echo.tool] });
    await conversation.decide({ callId: 'c1', action: 'approve' });
    await conversation.resume().result;
    const started = conversation.log().find(({ type }) => type === 'tool-started');
    expect(started).toMatchObject({ args: { m: 'b' } });
  });

  it('that waits for a plugin and needs approval is denied where nobody can be asked', async () => {
    const waits: Phases = { beforeToolExecute: () => ({ suspend: { reason: 'wait' } }) };
    const echo = echoTool('echo', { needsApproval: true });
    const on = await bench({
      replies: [[call('c1', 'echo', { m: 'a' })], 'done'],
      tools: [echo.tool],
      plugins: plugins(waits),
    });
    const { termination, calls } = await on.agent.run('hi');
    expect([termination, calls]).toMatchObject(['NaturalEnd', [{ callId: 'c1', outcome: 'failed', code: 'denied' }]]);
  });

  it('is allowed by its tool’s own word where that wants no approval, by nobody where it never does, and by a person', async () => {
    const by = async (needsApproval: boolean | (() => boolean) | undefined, isApproved = false) => {
      const tool = defineTool({
        ...{ name: 'echo', description: '', parameters: z.object({ m: z.string() }), execute: () => '' },
        ...(needsApproval !== undefined && { needsApproval }),
      });
      const { conversation } = await run([], { tools: [tool] });
      if (isApproved) {
        await conversation.decide({ callId: 'c1', action: 'approve' });
        await conversation.resume().result;
      }
      return conversation.log().flatMap((entry) => (entry.type === 'tool-allowed' ? [entry.by] : []));
    };
    expect([await by(undefined), await by(false)]).toEqual([await by(undefined), await by(undefined)]);
    expect(await by(() => false)).toEqual(['needsApproval']);
    expect(await by(() => true, true)).not.toContain('needsApproval');
  });
});

it('a plugin that fails at the close of a conversation is in its log, and the other plugins are closed', async () => {
  const closed: string[] = [];
  const checks = (name: string, act: () => Promise<void>): Plugin =>
    ({ name, [CALL_CHECKS]: { closed: act } }) as Plugin;
  const on = await bench({
    replies: ['a'],
    plugins: [
      checks('broken', async () => {
        throw new Error('cannot be closed');
      }),
      checks('other', async () => void closed.push('other')),
    ],
  });
  await on.conversation.send('hi').result;
  await on.agent.close();
  expect(closed).toEqual(['other']);
  const details = (await logOf(on.store, 'c')).flatMap((entry) => (entry.type === 'diagnostic' ? [entry.detail] : []));
  expect(details).toEqual([
    { plugin: 'broken', phase: 'closed', message: expect.stringContaining('cannot be closed') },
  ]);
});
