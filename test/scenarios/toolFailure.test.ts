/**
 * With `onToolFailure: 'failRun'`, a failing tool ends the run (docs/internals/lifecycle.md, Tool Failure or Loop
 * Error).
 */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type Decision, defineTool, type Plugin, toolResult } from '../../src/index.ts';
import { type Bench, type BenchOptions, bench, entry, only, restart, resultText } from '../support/agentBench.ts';
import { asks, boom, echoTool, gateTool } from '../support/scenarioTools.ts';
import { call, deaf, during, lines, type Reply, t } from '../support/scriptedReplies.ts';

const args = { m: 'a' };
const approve = (callId: string): Decision => ({ callId, action: 'approve' });
const failRun = { onToolFailure: 'failRun' } as const;
const boomed = { code: 'error', message: 'Error: boom' };

/** A tool that returns or throws as the test requires. */
const acting = (name: string, act: () => unknown) =>
  defineTool({ name, description: 'Acts.', parameters: z.object({}), execute: act, timeoutMs: 50 });

async function failing(replies: readonly Reply[], options: BenchOptions = {}): Promise<Bench> {
  const { policies, ...rest } = options;
  return bench({ replies, tools: [boom], ...rest, policies: { ...failRun, ...policies } });
}

describe('a tool that fails in a round', () => {
  it('S004-10: it ends the run with its error; its sibling was executed once, and both have their results', async () => {
    const echo = echoTool();
    const on = await failing([[call('c1', 'echo', args), call('c2', 'boom')]], { tools: [echo.tool, boom] });
    const result = await on.conversation.send('hi').result;
    expect(result).toMatchObject({ termination: 'Error', cause: 'tool', reason: 'error', error: boomed });
    expect(result.subtype).toBe('error_during_execution');
    expect(echo.ran).toEqual(['c1']);
    expect(only(on.conversation.log(), 'tool-result', 'checkpoint', 'run-stop')).toEqual([
      'checkpoint UserMessage',
      'checkpoint AssistantTurnCommitted',
      'tool-result c1 succeeded',
      'tool-result c2 failed error',
      'checkpoint ToolResultsCommitted',
      'run-stop error tool',
      'checkpoint RunFinished',
    ]);
    expect(on.model.calls).toHaveLength(1);
    expect(on.alive()).toEqual([]);
  });

  it('after the end of its round no phase but runEnd follows, since no model call has failed', async () => {
    const seen: string[] = [];
    const phases = ['afterInference', 'afterToolExecute', 'stepEnd', 'runEnd'].map((phase) => [
      phase,
      ({ error }: { error?: unknown }) => void seen.push(error === undefined ? phase : `${phase} with an error`),
    ]);
    const watcher = { name: 'watcher', ...Object.fromEntries(phases) } as Plugin;
    const on = await failing([[call('c1', 'boom')]], { plugins: [watcher] });
    await on.conversation.send('hi').result;
    expect(seen).toEqual(['afterInference', 'stepEnd', 'afterToolExecute', 'runEnd']);
  });

  it('S004-10: with retries, the run ends after the last one', async () => {
    let executions = 0;
    const tool = acting('pay', () => {
      executions += 1;
      throw new Error(`no ${executions}`);
    });
    const on = await failing([[call('c1', 'pay')]], { tools: [tool], policies: { toolRetry: { attempts: 3 } } });
    const run = on.conversation.send('hi');
    await on.clock.until(run.result, 10_000);
    expect((await run.result).error).toEqual({ code: 'error', message: 'Error: no 3' });
    expect(executions).toBe(3);
  });

  it.each(['parallel', 'sequential'] as const)(
    'it ends the run after its siblings have ended (%s)',
    async (toolExecution) => {
      const gate = gateTool();
      const on = await failing([[call('c1', 'boom'), call('c2', 'gate'), call('c3', 'boom')]], {
        tools: [boom, gate.tool],
        policies: { toolExecution },
      });
      const run = on.conversation.send('hi');
      await gate.begun('c2');
      expect(only(on.conversation.log(), 'run-stop')).toEqual([]);
      gate.release('c2');
      expect((await run.result).cause).toBe('tool');
      expect(only(on.conversation.log(), 'tool-result').sort()).toEqual([
        'tool-result c1 failed error',
        'tool-result c2 succeeded',
        'tool-result c3 failed error',
      ]);
    },
  );

  it('the first failing call in call order determines the error', async () => {
    const slow = gateTool('slow');
    const on = await failing([[call('c1', 'slow'), call('c2', 'boom')]], { tools: [slow.tool, boom] });
    const run = on.conversation.send('hi');
    await entry(on.conversation, 'tool-result');
    slow.fail('c1', new Error('slow broke'));
    expect((await run.result).error?.message).toBe('Error: slow broke');
  });

  it.each([
    ['its own code', () => toolResult.error('closed', 'closed_account'), 'closed_account', 'closed'],
    ['no code', () => toolResult.error('closed'), 'error', 'closed'],
    ['a time-out', () => new Promise(() => undefined), 'timeout', /did not finish within 50 ms/],
  ])('a returned error with %s counts', async (_, act, code, message) => {
    const on = await failing([[call('c1', 'act')]], { tools: [acting('act', act)] });
    const run = on.conversation.send('hi');
    await on.clock.until(run.result);
    const { error } = await run.result;
    expect(error?.code).toBe(code);
    expect(error?.message).toMatch(message);
  });

  it('a failure before any execution ends nothing: unknown, invalid, blocked', async () => {
    const echo = echoTool();
    const on = await failing([[call('c1', 'nope'), call('c2', 'echo'), call('c3', 'echo', args)], 'done'], {
      tools: [echo.tool],
      plugins: [{ name: 'no', beforeToolExecute: () => ({ block: 'not now' }) }],
    });
    expect(await on.conversation.send('hi').result).toMatchObject({ termination: 'NaturalEnd', text: 'done' });
    expect(only(on.conversation.log(), 'tool-result').sort()).toEqual([
      'tool-result c1 failed unknown_tool',
      'tool-result c2 failed invalid_arguments',
      'tool-result c3 failed blocked',
    ]);
  });

  it('the state that the other calls wrote is kept', async () => {
    const on = await failing([[call('c1', 'note'), call('c2', 'boom')]], {
      tools: [acting('note', () => toolResult.success('ok', { state: { seen: true } })), boom],
    });
    await on.conversation.send('hi').result;
    expect(on.conversation.state).toEqual({ seen: true });
  });

  it('a secret in its error is redacted in the result and in the error of the run', async () => {
    const on = await failing([[call('c1', 'act')]], {
      secrets: ['hunter2-hunter2'],
      tools: [
        acting('act', () => {
          throw new Error('wrong password hunter2-hunter2');
        }),
      ],
    });
    const { error } = await on.conversation.send('hi').result;
    expect(error?.message).toBe('Error: wrong password [redacted]');
  });

  it('a sibling that waits for a person continues to wait, and is replayed when the conversation is resumed', async () => {
    const ask = echoTool('ask');
    const on = await failing([[call('c1', 'ask', args), call('c2', 'boom')], 'done'], {
      tools: [ask.tool, boom],
      plugins: [asks().plugin],
    });
    expect((await on.conversation.send('hi').result).cause).toBe('tool');
    expect(on.conversation.pending.map(({ callId }) => callId)).toEqual(['c1']);
    await on.conversation.decide(approve('c1'));
    expect((await on.conversation.resume().result).text).toBe('done');
    expect(ask.ran).toEqual(['c1']);
  });

  it('the conversation accepts the next message, and the model receives the failure', async () => {
    const on = await failing([[call('c1', 'boom')], 'sorry']);
    await on.conversation.send('hi').result;
    expect(on.conversation.status).toBe('error');
    expect((await on.conversation.send('again').result).text).toBe('sorry');
    expect(lines(on.model.calls[1]?.messages ?? []).slice(-2)).toEqual(['c1! Error: boom', 'user again']);
  });

  it('S001-06: by default the model receives the failure and the run continues', async () => {
    const on = await bench({ replies: [[call('c1', 'boom')], 'x'], tools: [boom] });
    expect((await on.conversation.send('hi').result).termination).toBe('NaturalEnd');
    expect(resultText(on.conversation.log(), 'c1')).toContain('boom');
  });
});

describe('a tool that fails at a gate', () => {
  const gated = (replies: readonly Reply[], more: BenchOptions = {}): Promise<Bench> =>
    failing(replies, { plugins: [asks('boom').plugin], ...more });

  it('it ends the resumed run, without a model call and after the checkpoint of its gate', async () => {
    const on = await gated([[call('c1', 'boom')]]);
    await on.conversation.send('hi').result;
    await on.conversation.decide(approve('c1'));
    const from = on.conversation.log().length;
    expect(await on.conversation.resume().result).toMatchObject({ termination: 'Error', cause: 'tool', error: boomed });
    expect(only(on.conversation.log(from), 'tool-result', 'checkpoint', 'run-stop')).toEqual([
      'tool-result c1 failed error',
      'checkpoint ToolResultsCommitted',
      'run-stop error tool',
      'checkpoint RunFinished',
    ]);
    expect(on.model.calls).toHaveLength(1);
  });

  it('it does so after a restart', async () => {
    const before = await gated([[call('c1', 'boom')]]);
    await before.conversation.send('hi').result;
    await before.conversation.decide(approve('c1'));
    const on = await restart(before, { replies: ['never'], tools: [boom], policies: failRun });
    expect((await on.conversation.resume().result).cause).toBe('tool');
    expect(on.model.calls).toHaveLength(0);
  });

  it('a denial does not count as a failure of the tool', async () => {
    const on = await gated([[call('c1', 'boom')], 'done']);
    await on.conversation.send('hi').result;
    await on.conversation.decide({ callId: 'c1', action: 'deny' });
    expect((await on.conversation.resume().result).text).toBe('done');
  });

  it('during a round, the round ends first', async () => {
    const gate = gateTool();
    const on = await gated([[call('c1', 'boom'), call('c2', 'gate')]], { tools: [boom, gate.tool] });
    const run = on.conversation.send('hi');
    await entry(on.conversation, 'tool-suspended');
    await on.conversation.decide(approve('c1'));
    await entry(on.conversation, 'tool-result', ({ callId }) => callId === 'c1');
    expect(only(on.conversation.log(), 'run-stop')).toEqual([]);
    gate.release('c2');
    expect((await run.result).error).toEqual(boomed);
    expect(only(on.conversation.log(), 'tool-result')).toEqual([
      'tool-result c1 failed error',
      'tool-result c2 succeeded',
    ]);
  });

  it('in a round during a replay, the replay ends first, and both checkpoints are stored', async () => {
    const [ask, slow] = [gateTool('ask'), gateTool('slow')];
    const on = await failing([[call('c1', 'ask'), call('c2', 'slow')]], {
      tools: [ask.tool, slow.tool],
      plugins: [asks().plugin],
    });
    const run = on.conversation.send('hi');
    await entry(on.conversation, 'tool-suspended');
    await on.conversation.decide(approve('c1'));
    await ask.begun('c1');
    slow.fail('c2', new Error('boom'));
    await entry(on.conversation, 'tool-result');
    expect(only(on.conversation.log(), 'run-stop')).toEqual([]);
    ask.release('c1');
    expect((await run.result).error).toEqual(boomed);
    expect(only(on.conversation.log(), 'tool-result', 'checkpoint').slice(2)).toEqual([
      'tool-result c2 failed error',
      'checkpoint ToolResultsCommitted',
      'tool-result c1 succeeded',
      'checkpoint ToolResultsCommitted',
      'checkpoint RunFinished',
    ]);
  });

  it('during a model call, the run ends at once, and the model receives the failure later', async () => {
    const on = await gated([[call('c1', 'boom'), call('c2', 'echo', args)], deaf(t('par'))], {
      tools: [boom, echoTool().tool],
    });
    const run = on.conversation.send('hi');
    await new Promise<void>((resolve) => {
      on.conversation.live$.subscribe((signal) => signal.type === 'text-delta' && resolve());
    });
    await on.conversation.decide(approve('c1'));
    expect(await run.result).toMatchObject({ cause: 'tool', error: boomed });
    expect(on.model.signals[1]?.aborted).toBe(true);
    expect(on.alive()).toEqual([]);
  });

  it('after the last reply, the reply is kept, and the run still ends with the error', async () => {
    const ask = gateTool('ask');
    const deciding = during(async () => {
      await on.conversation.decide(approve('c1'));
      await ask.begun('c1');
    }, 'all is well');
    const on: Bench = await failing([[call('c1', 'ask'), call('c2', 'echo', args)], deciding], {
      tools: [ask.tool, echoTool().tool],
      plugins: [asks().plugin],
    });
    const run = on.conversation.send('hi');
    await entry(on.conversation, 'model-reply', ({ turn }) => turn === 2);
    ask.fail('c1', new Error('boom'));
    expect(await run.result).toMatchObject({ termination: 'Error', cause: 'tool', text: 'all is well', error: boomed });
  });
});
