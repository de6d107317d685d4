/** A failing tool is executed again (docs/internals/lifecycle.md, TOOL_CALL), in virtual time. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  ConfigurationError,
  createAgent,
  type Decision,
  defineTool,
  type Policies,
  presets,
  toolResult,
} from '../../src/index.ts';
import { permissions } from '../../src/node.ts';
import { scriptedModel } from '../../src/testing/index.ts';
import {
  type Bench,
  type BenchOptions,
  bench,
  entry,
  only,
  resultText,
  storeWith,
  story,
} from '../support/agentBench.ts';
import { asks, echoTool } from '../support/scenarioTools.ts';
import { call, lines } from '../support/scriptedReplies.ts';

type Retry = Partial<Exclude<Policies['toolRetry'], false>>;
const broke = (): never => {
  throw new Error('the line is dead');
};

/** Follows the script, one line for each execution, and repeats the last line; records its keys. */
function flaky(script: readonly (() => unknown)[], options: { idempotent?: boolean; timeoutMs?: number } = {}) {
  const keys: string[] = [];
  const tool = defineTool({
    name: 'pay',
    description: 'Pays.',
    parameters: z.object({ m: z.string().default('x') }),
    ...options,
    execute(_, { idempotencyKey }) {
      keys.push(idempotencyKey);
      return script[Math.min(keys.length, script.length) - 1]?.();
    },
  });
  return { tool, keys };
}
const ok = (): string => 'paid';

/** One complete request with one call of the tool; returns its duration. */
async function paying(
  script: readonly (() => unknown)[],
  retry: Retry | false,
  more: BenchOptions = {},
  timeoutMs = 50,
) {
  const { tool, keys } = flaky(script, { timeoutMs });
  const policies = { toolRetry: retry, ...more.policies };
  const on = await bench({ replies: [[call('c1', 'pay')], 'done'], ...more, tools: [tool], policies });
  const run = on.conversation.send('hi');
  const tookMs = await on.clock.until(run.result, 1_000_000);
  return { ...on, keys, tookMs, result: await run.result, log: on.conversation.log() };
}
const notices = ({ log }: { log: ReturnType<Bench['conversation']['log']> }): string[] =>
  log.flatMap((each) => (each.type === 'notice' ? [`${each.code}: ${each.text}`] : []));

describe('toolRetry', () => {
  it('calls of one round that fail at the same time are each executed again', async () => {
    const { tool, keys } = flaky([broke, broke, ok]);
    const replies = [[call('c1', 'pay'), call('c2', 'pay')], 'done'];
    const policies = { toolRetry: { attempts: 2, jitter: 0 } };
    const { conversation, clock } = await bench({ replies, tools: [tool], policies });
    const { result } = conversation.send('hi');
    await clock.until(result, 1_000_000);
    expect(await result).toMatchObject({ termination: 'NaturalEnd', text: 'done' });
    expect(keys).toHaveLength(4);
    expect(only(conversation.log(), 'tool-result')).toEqual(['tool-result c1 succeeded', 'tool-result c2 succeeded']);
  });

  it('each execution of an approved call has the same arguments and the same place outside the working directory', async () => {
    const ran: unknown[] = [];
    const tool = defineTool({
      ...{
        name: 'Write',
        description: 'Writes.',
        parameters: z.object({ file_path: z.string(), content: z.string() }),
      },
      execute(args, { grant, outside }) {
        ran.push({ args, grant, outside });
        return ran.length < 4 ? broke() : 'written';
      },
    });
    const args = { file_path: '/etc/runchart-example', content: 'text' };
    const callPart = { type: 'tool-call', callId: 'c1', name: 'Write', args: JSON.stringify(args) } as const;
    const agent = createAgent({
      model: scriptedModel([{ parts: [callPart, { type: 'finish', reason: 'tool-calls' }] }, 'done']),
      ...{ tools: [tool], plugins: [permissions({ mode: 'default' })] },
      policies: { toolRetry: { attempts: 4, baseMs: 1 } },
    });
    const conversation = await agent.open('c');
    await conversation.send('hi').result;
    await conversation.decide({ callId: 'c1', action: 'approve' });
    await conversation.resume().result;
    expect(ran).toHaveLength(4);
    expect(ran[0]).toMatchObject({ args, outside: args.file_path });
    expect(ran).toEqual(ran.map(() => ran[0]));
  });

  it.each([1, 2])('S004-07: a tool that fails %i times and then succeeds has one result', async (failures) => {
    const on = await paying([...Array(failures).fill(broke), ok], {});
    expect(on.keys).toHaveLength(failures + 1);
    expect(only(on.log, 'tool-started', 'tool-result')).toEqual(['tool-started c1', 'tool-result c1 succeeded']);
    expect(on.result).toMatchObject({ termination: 'NaturalEnd', text: 'done' });
  });

  it('S004-07: a tool that always fails is executed `attempts` times, and then the model receives one result', async () => {
    const on = await paying([broke], { attempts: 3 });
    expect(on.keys).toHaveLength(3);
    expect(only(on.log, 'tool-started', 'tool-result')).toEqual(['tool-started c1', 'tool-result c1 failed error']);
    expect(lines(on.model.calls[1]?.messages ?? []).at(-1)).toBe('c1! Error: the line is dead');
  });

  it('every execution of a call has the same idempotency key', async () => {
    const on = await paying([broke], { attempts: 4 });
    expect(on.keys).toEqual(Array(4).fill('c/c1/0'));
  });

  it('each repetition is announced with tool, attempt and wait, and without the words of the error', async () => {
    const on = await paying([broke], {});
    expect(notices(on)).toEqual([
      'tool_retry: The tool pay failed in call c1 (error); attempt 2 of 3 follows in 500 ms.',
      'tool_retry: The tool pay failed in call c1 (error); attempt 3 of 3 follows in 1000 ms.',
    ]);
  });

  it('the waits grow by the factor up to the maximum, and jitter × random lengthens each', async () => {
    const retry = { attempts: 5, baseMs: 100, factor: 3, capMs: 500, jitter: 0.2 };
    const on = await paying([broke], retry, { random: () => 0.5 });
    expect(on.clock.waits.filter((ms) => ms > 50 && ms < 1000)).toEqual([110, 330, 550, 550]);
    expect(on.tookMs).toBe(1540);
  });

  it('S004-08: by default the policy is off, and a tool is executed once', async () => {
    for (const policies of [{ toolRetry: false as const }, {}]) {
      const on = await paying([broke], false, { policies });
      expect(on.keys).toHaveLength(1);
    }
  });

  it('limits.toolMs, or the tool’s own limit, applies to each execution', async () => {
    const never = (): Promise<never> => new Promise(() => undefined);
    const on = await paying([broke, never], { baseMs: 200 });
    expect(on.tookMs).toBe(250);
    expect(only(on.log, 'tool-result')).toEqual(['tool-result c1 failed timeout']);
  });

  it('a failing call of a round is repeated beside its siblings, which are executed once', async () => {
    const { tool, keys } = flaky([broke, ok]);
    const echo = echoTool();
    const on = await bench({
      replies: [[call('c1', 'pay'), call('c2', 'echo', { m: 'a' })], 'done'],
      tools: [tool, echo.tool],
      policies: { toolRetry: {} },
    });
    const run = on.conversation.send('hi');
    await on.clock.until(run.result);
    expect([keys.length, echo.ran]).toEqual([2, ['c2']]);
    expect(only(on.conversation.log(), 'tool-result')).toEqual([
      'tool-result c2 succeeded',
      'tool-result c1 succeeded',
    ]);
  });

  it('in sequential execution the next call waits until the previous one has finally failed or succeeded', async () => {
    const { tool } = flaky([broke, ok]);
    const echo = echoTool();
    const on = await bench({
      replies: [[call('c1', 'pay'), call('c2', 'echo', { m: 'a' })], 'done'],
      tools: [tool, echo.tool],
      policies: { toolRetry: {}, toolExecution: 'sequential' },
    });
    const run = on.conversation.send('hi');
    await on.clock.until(run.result);
    expect(only(on.conversation.log(), 'notice', 'tool-started', 'tool-result')).toEqual([
      'tool-started c1',
      'notice tool_retry',
      'tool-result c1 succeeded',
      'tool-started c2',
      'tool-result c2 succeeded',
    ]);
  });

  it('a replayed call is repeated too, with the key of its suspension', async () => {
    const { tool, keys } = flaky([broke, ok]);
    const replies = [[call('c1', 'pay')], 'done'];
    const on = await bench({ replies, tools: [tool], plugins: [asks('pay').plugin], policies: { toolRetry: {} } });
    await on.conversation.send('hi').result;
    const edit: Decision = { callId: 'c1', action: 'edit', args: { m: 'other' } };
    await on.conversation.decide(edit);
    const run = on.conversation.resume();
    await on.clock.until(run.result);
    expect(keys).toEqual(['c/c1/1', 'c/c1/1']);
    expect(resultText(on.conversation.log(), 'c1')).toMatch(/^paid.*changed the arguments/s);
    expect(only(on.conversation.log(), 'tool-started', 'checkpoint').slice(-4)).toEqual([
      'tool-started c1',
      'checkpoint ToolResultsCommitted',
      'checkpoint AssistantTurnCommitted',
      'checkpoint RunFinished',
    ]);
  });
});

describe('failures that are retried', () => {
  const aborted = (): never => {
    throw new DOMException('stopped', 'AbortError');
  };
  const configured = (): never => {
    throw new ConfigurationError('no such option');
  };
  const returned = (): unknown => toolResult.error('the account is closed', 'closed_account');
  const hung = (): Promise<never> => new Promise(() => undefined);
  const yes = { retryable: () => true };

  it.each([
    ['an abort', aborted, {}],
    ['an abort, whatever the host returns', aborted, yes],
    ['a configuration error', configured, {}],
    ['a configuration error, whatever the host returns', configured, yes],
    ['an error that the tool returned', returned, {}],
    ['a time-out', hung, {}],
    ['a result that is no JSON', () => ({ f: () => 1 }), yes],
    ['an error for which the host returns false', broke, { retryable: () => false }],
    ['an error for which the host returns no boolean', broke, { retryable: (() => 'yes') as never }],
    ['an error for which the host throws', broke, { retryable: broke }],
    ['an error for which the host never returns', broke, { retryable: (async () => broke()) as never }],
  ])('S004-08: %s is not retried', async (_, act, retry) => {
    const on = await paying([act], retry);
    expect(on.keys).toHaveLength(1);
    expect(notices(on)).toEqual([]);
  });

  const timedOut = 'pay did not finish within 50 ms. It may still have an effect.';
  it.each<[string, { idempotent?: boolean }, Retry | false, number]>([
    ['of an idempotent tool is retried', { idempotent: true }, {}, 2],
    ['of another tool is not retried', {}, {}, 1],
    [
      'of an idempotent tool is not retried if the host returns false',
      { idempotent: true },
      { retryable: () => false },
      1,
    ],
    ['of an idempotent tool is retried if the host returns true', { idempotent: true }, { retryable: () => true }, 2],
    ['of another tool is retried if the host returns true', {}, { retryable: () => true }, 2],
    ['of an idempotent tool is not retried without the policy', { idempotent: true }, false, 1],
  ])('a time-out %s', async (_, traits, retry, executions) => {
    const { tool, keys } = flaky([hung, ok], { ...traits, timeoutMs: 50 });
    const replies = [[call('c1', 'pay')], 'done'];
    const on = await bench({ replies, tools: [tool], policies: { toolRetry: retry } });
    const run = on.conversation.send('hi');
    await on.clock.until(run.result, 1_000_000);
    expect([keys.length, new Set(keys).size]).toEqual([executions, 1]);
    expect(resultText(on.conversation.log(), 'c1')).toBe(executions === 2 ? 'paid' : timedOut);
    expect(only(on.conversation.log(), 'tool-started')).toEqual(['tool-started c1']);
    expect(on.clock.waiting).toBe(0);
  });

  it('a failure that an idempotent tool returns as a time-out is final', async () => {
    const timeoutError = (): unknown => toolResult.error('the server is slow', 'timeout');
    const { tool, keys } = flaky([timeoutError, ok], { idempotent: true });
    const on = await bench({ replies: [[call('c1', 'pay')], 'done'], tools: [tool], policies: { toolRetry: {} } });
    await on.conversation.send('hi').result;
    expect(keys).toHaveLength(1);
  });

  it('an idempotent tool that hangs is executed `attempts` times, each for its whole time, and then the model receives the result', async () => {
    const { tool, keys } = flaky([hung], { idempotent: true, timeoutMs: 50 });
    const policies = { toolRetry: { attempts: 3, baseMs: 100, factor: 1 } };
    const on = await bench({ replies: [[call('c1', 'pay')], 'done'], tools: [tool], policies });
    const run = on.conversation.send('hi');
    expect(await on.clock.until(run.result, 1_000_000)).toBe(3 * 50 + 2 * 100);
    expect(keys).toHaveLength(3);
    expect(only(on.conversation.log(), 'tool-result')).toEqual(['tool-result c1 failed timeout']);
  });

  it('S004-08: invalid arguments and a denial are never executed', async () => {
    const { tool, keys } = flaky([ok]);
    const on = await bench({
      replies: [[call('c1', 'pay', { m: 1 }), call('c2', 'pay'), call('c3', 'nope')], 'done'],
      tools: [tool],
      plugins: [{ name: 'no', beforeToolExecute: () => ({ block: 'not now' }) }],
      policies: { toolRetry: yes },
    });
    expect((await on.conversation.send('hi').result).termination).toBe('NaturalEnd');
    expect(keys).toEqual([]);
    expect(only(on.conversation.log(), 'tool-result', 'notice').sort()).toEqual([
      'tool-result c1 failed invalid_arguments',
      'tool-result c2 failed blocked',
      'tool-result c3 failed unknown_tool',
    ]);
  });

  it.each([
    ['the failure that the tool returned', returned, 'closed_account'],
    ['a time-out', hung, 'timeout'],
  ])("%s is retried if the host's function returns true for its code", async (_, act, code) => {
    const seen: unknown[] = [];
    const retryable = (error: unknown): boolean => {
      seen.push((error as { code?: unknown }).code);
      return true;
    };
    const on = await paying([act, ok], { retryable });
    expect(seen).toEqual([code]);
    expect(only(on.log, 'tool-result')).toEqual(['tool-result c1 succeeded']);
  });

  it('the host receives the same error object that was thrown', async () => {
    const error = Object.assign(new Error('busy'), { errno: 11 });
    const seen: unknown[] = [];
    const reject = (): Promise<never> => Promise.reject(error);
    await paying([reject, ok], { retryable: (thrown) => seen.push(thrown) > 0 });
    expect(seen).toEqual([error]);
  });
});

describe('a wait between two executions', () => {
  async function waiting(idempotent = false) {
    const { tool, keys } = flaky([broke, ok], { idempotent });
    const policies = { toolRetry: { baseMs: 60_000, capMs: 60_000 } };
    const on = await bench({ replies: [[call('c1', 'pay')], 'next'], tools: [tool], policies });
    const run = on.conversation.send('hi');
    await entry(on.conversation, 'notice');
    return { ...on, run, tool, keys, policies };
  }

  it('S003-16: it ends at once when the run is cancelled; the call is cancelled and no timer is left', async () => {
    const on = await waiting();
    expect(await on.clock.until(on.conversation.cancel())).toBe(0);
    expect(on.conversation.status).toBe('idle');
    expect(on.clock.waiting).toBe(0);
    expect(on.alive()).toEqual([]);
    expect(only(on.conversation.log(), 'tool-result', 'run-stop')).toEqual([
      'tool-result c1 cancelled cancelled',
      'run-stop interrupted cancelled',
    ]);
    await on.clock.advance(120_000);
    expect(on.keys).toHaveLength(1);
    expect((await on.conversation.send('again').result).text).toBe('next');
  });

  it('it ends with the run’s deadline', async () => {
    const { tool, keys } = flaky([broke, ok]);
    const policies = { toolRetry: { baseMs: 60_000, capMs: 60_000 }, limits: { runMs: 1000 } };
    const on = await bench({ replies: [[call('c1', 'pay')]], tools: [tool], policies });
    const run = on.conversation.send('hi');
    expect(await on.clock.until(run.result, 100_000)).toBe(1000);
    expect(await run.result).toMatchObject({ termination: 'Cancelled', cause: 'timeout' });
    expect(keys).toHaveLength(1);
    expect(on.clock.waiting).toBe(0);
  });

  it.each([
    [false, 'is unknown and stays so'],
    [true, 'is started anew with the same key, where its tool is idempotent,'],
  ])('a call whose process died in it (idempotent: %s) %s when the run is resumed', async (idempotent, _) => {
    const before = await waiting(idempotent);
    const store = await storeWith(before.conversation.log());
    const on = await bench({ replies: ['went on'], tools: [before.tool], policies: before.policies, store });
    expect(on.conversation.unsettled).toHaveLength(idempotent ? 0 : 1);
    expect((await on.conversation.resume().result).text).toBe('went on');
    expect(before.keys).toEqual(Array(idempotent ? 2 : 1).fill('c/c1/0'));
    expect(only(on.conversation.log(), 'tool-result')).toEqual([
      idempotent ? 'tool-result c1 succeeded' : 'tool-result c1 unknown',
    ]);
  });
});

describe('toolRetry as an option', () => {
  it('presets.requestLoop executes a failing tool three times', async () => {
    expect((await paying([broke], false, { policies: presets.requestLoop })).keys).toHaveLength(3);
  });

  const agentWith = (toolRetry: unknown): Promise<Bench> => bench({ policies: { toolRetry } as never });

  it('it is merged key by key over its defaults', async () => {
    const on = await paying([broke], { attempts: 2 });
    expect(story(on.log).filter((line) => line.startsWith('notice'))).toHaveLength(1);
    expect(on.tookMs).toBe(500);
  });

  it.each([
    [true, /policies\.toolRetry must be false or an object, got true/],
    [{ tries: 3 }, /policies\.toolRetry\.tries is unknown; known are attempts, baseMs/],
    [{ attempts: 0 }, /policies\.toolRetry\.attempts must be a whole number of at least 1, got 0/],
    [{ retryable: 'always' }, /policies\.toolRetry\.retryable must be a function, got "always"/],
  ])('%j is refused', async (toolRetry, message) => {
    await expect(agentWith(toolRetry)).rejects.toThrow(message);
  });
});
