/**
 * Limits are counted from the log, so a restart does not change the counts (docs/internals/lifecycle.md, CONVERSATION).
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { applyEntry, type Counters, countersOf, emptyLogState, type LogEntry } from '../../machines/internal.ts';
import { defineTool, type ModelPart, type Plugin, type Tool } from '../../src/index.ts';
import { type Bench, type BenchOptions, bench, restart, storeWith } from '../support/agentBench.ts';
import { asks, boom, echoTool } from '../support/scenarioTools.ts';
import { call, during, finish, type Reply, scripted, t } from '../support/scriptedReplies.ts';
import { HANG_MS, volume } from '../support/tier.ts';

const nothing: ModelPart[] = [finish('stop')];
const echo = (callId: string, m = 'same', tokens = 0): ModelPart[] => [
  call(callId, 'echo', { m }),
  finish('tool-calls', tokens),
];
const ask = (callId: string): ModelPart[] => [call(callId, 'ask', { m: 'same' })];
const benchOptions = (): BenchOptions => ({
  tools: [echoTool().tool, echoTool('ask').tool, boom],
  plugins: [asks().plugin],
});

/** The process dies during the model call after these replies. Another one opens the log, and resumes. */
async function died(replies: readonly Reply[], rest: readonly Reply[], more: BenchOptions = {}) {
  let ask = (): void => {};
  const asked = new Promise<void>((resolve) => {
    ask = resolve;
  });
  const hangs = during(() => {
    ask();
    return new Promise(() => undefined);
  }, '');
  const before = await bench({ ...benchOptions(), ...more, replies: [...replies, hangs] });
  void before.conversation.send('hi');
  await asked;
  const on = await bench({
    ...benchOptions(),
    ...more,
    replies: rest,
    store: await storeWith(before.conversation.log()),
  });
  return on.conversation.resume().result;
}

describe('limits after a crash and a resumption', () => {
  it('empty replies continue their count', async () => {
    const result = await died([nothing, nothing], [nothing, 'never']);
    expect(result).toMatchObject({ termination: 'Stopped', cause: 'empty_replies', turns: 1 });
  });

  it('a reply with text or a call in between has reset their count', async () => {
    const result = await died([nothing, nothing, echo('c1')], [nothing, nothing, 'done']);
    expect(result).toMatchObject({ termination: 'NaturalEnd', turns: 3 });
  });

  it('H-036: identical calls continue their count', async () => {
    const policies = { limits: { identicalCalls: 3 } };
    const result = await died([echo('c1'), echo('c2')], [echo('c3'), 'never'], { policies });
    expect(result).toMatchObject({ termination: 'Stopped', cause: 'no_progress', turns: 1 });
  });

  it('tokens continue their count: two replies, and the third is max_total_tokens', async () => {
    const policies = { limits: { tokens: 120 } };
    const replies = [echo('c1', 'a', 20), echo('c2', 'b', 20)];
    const result = await died(replies, [echo('c3', 'c', 20), 'never'], { policies });
    expect(result).toMatchObject({ termination: 'Stopped', cause: 'max_total_tokens', turns: 1 });
  });

  it('the same is true if a message continues the waiting run without resume()', async () => {
    const policies = { limits: { tokens: 100, turns: 3 } };
    const replies = [echo('c1', 'a', 20), [...ask('c2'), finish('tool-calls', 30)]];
    const before = await bench({ ...benchOptions(), replies, policies });
    expect((await before.conversation.send('hi').result).termination).toBe('Suspended');
    const { conversation, model } = await restart(before, { ...benchOptions(), replies: ['never'], policies });
    await conversation.decide({ callId: 'c2', action: 'approve' });
    conversation.send('more');
    expect(await conversation.resume().result).toMatchObject({ cause: 'max_total_tokens', turns: 0 });
    expect(model.calls).toHaveLength(0);
  });

  it('turns continue their count', async () => {
    const result = await died([echo('c1'), echo('c2')], [echo('c3'), 'never'], { policies: { limits: { turns: 3 } } });
    expect(result).toMatchObject({ termination: 'Stopped', cause: 'max_turns', turns: 1 });
  });

  it('a reply of unknown price exceeds every budget: the run is stopped before its first call', async () => {
    const free = await bench({ replies: ['ok'] });
    await free.conversation.send('hi').result;
    const model = scripted(['never'], { prices: { input: 1, output: 1 } });
    const store = await storeWith(free.conversation.log());
    const on = await bench({ model, policies: { limits: { costUsd: 1000 } }, store });
    expect(await on.conversation.send('more').result).toMatchObject({ cause: 'max_budget', turns: 0 });
    expect(model.calls).toHaveLength(0);
  });
});

describe('the identity of calls', () => {
  const policies = { limits: { identicalCalls: 3 } };

  it('a limit of tokens is reached at exactly its value', async () => {
    const on = await bench({
      ...benchOptions(),
      replies: [echo('c1', 'a', 20), 'never'],
      policies: { limits: { tokens: 40 } },
    });
    expect(await on.conversation.send('hi').result).toMatchObject({ cause: 'max_total_tokens', turns: 1 });
  });

  it('a different round in between resets the count', async () => {
    const replies = [echo('c1'), echo('c2'), echo('c3', 'other'), echo('c4'), echo('c5'), 'done'];
    const on = await bench({ ...benchOptions(), replies, policies });
    expect(await on.conversation.send('hi').result).toMatchObject({ termination: 'NaturalEnd', turns: 6 });
  });

  it('the same call with another result is another call', async () => {
    let count = 0;
    const plugin: Plugin = {
      name: 'counts',
      afterToolExecute: () => {
        count += 1;
        return { result: `${count}` };
      },
    };
    const replies = [echo('c1'), echo('c2'), echo('c3'), echo('c4'), 'done'];
    const on = await bench({ ...benchOptions(), plugins: [plugin], replies, policies });
    expect(await on.conversation.send('hi').result).toMatchObject({ termination: 'NaturalEnd', turns: 5 });
  });

  it.each(['approve', 'deny'] as const)(
    'decided calls count with their result, in one process or in many (%s)',
    async (action) => {
      for (const restarts of [false, true]) {
        const replies = [ask('c1'), ask('c2'), ask('c3'), 'never'];
        let on: Bench = await bench({ ...benchOptions(), replies, policies });
        await on.conversation.send('hi').result;
        for (const [index, callId] of ['c1', 'c2', 'c3'].entries()) {
          if (restarts) on = await restart(on, { ...benchOptions(), replies: replies.slice(index + 1), policies });
          expect(await on.conversation.decide({ callId, action })).toBe('applied');
          const result = await on.conversation.resume().result;
          if (callId === 'c3') expect(result).toMatchObject({ termination: 'Stopped', cause: 'no_progress' });
          else expect(result.termination).toBe('Suspended');
        }
      }
    },
  );

  it('a late result counts in the round of its call', async () => {
    const beside = (callId: string): ModelPart[] => [...ask(`a${callId}`), call(callId, 'echo', { m: callId })];
    const replies = [beside('c1'), beside('c2'), beside('c3'), 'waits', 'never'];
    const on = await bench({ ...benchOptions(), replies, policies });
    expect((await on.conversation.send('hi').result).termination).toBe('Suspended');
    for (const callId of ['ac2', 'ac1', 'ac3']) await on.conversation.decide({ callId, action: 'approve' });
    expect(await on.conversation.resume().result).toMatchObject({ termination: 'Stopped', cause: 'no_progress' });
  });
});

/** The counts of a log, and those of a chart, in one order. */
const ordered = ({ streaks, rounds, ...rest }: Counters) => ({
  ...rest,
  streaks: streaks.map(({ fingerprint, count }) => `${fingerprint} ${count}`).sort(),
  rounds: rounds.map(({ open, fingerprints }) => ({
    open: open.slice().sort(),
    fingerprints: fingerprints.slice().sort(),
  })),
});
function reloaded(log: readonly LogEntry[]) {
  const logState = emptyLogState();
  for (const each of log) applyEntry(logState, each);
  return ordered(countersOf(logState));
}
const compare = (chart: object, log: object) =>
  JSON.stringify(chart) === JSON.stringify(log) ? undefined : { chart, log };
const inMemory = (on: Bench) => ordered((on.contextOf('run') as { counters: Counters }).counters);

/** Replies by a letter; the library makes ids unique. */
const REPLIES: { readonly [letter: string]: Reply } = {
  t: [t('text'), finish('stop', 3)],
  n: nothing,
  s: [t(' \n'), finish('stop')],
  e: echo('e', 'same', 2),
  o: echo('o', 'other'),
  b: [call('b', 'boom')],
  u: [call('u', 'unheard_of')],
  i: [call('i', 'echo', { wrong: 1 })],
  a: ask('a'),
  d: [...ask('a'), call('e', 'echo', { m: 'same' }), call('e', 'echo', { m: 'same' })],
  p: [t('one moment'), finish('pause', 1)],
  c: [call('e', 'echo', { m: 'same' }), call('c', 'cuts'), call('a', 'ask', { m: 'same' })],
  w: [call('c', 'cuts', {}), ...ask('a')],
  r: [...ask('a'), call('u', 'unheard_of')],
  v: [...ask('a'), call('i', 'echo', { wrong: 1 }), call('e', 'echo', { m: 'same' })],
};
type Act = 'send' | 'resume' | 'approve' | 'deny' | 'cancel' | 'restart' | 'crash';
const acts = fc.array(
  fc.constantFrom<Act>('send', 'resume', 'approve', 'deny', 'resume', 'cancel', 'restart', 'crash'),
  {
    maxLength: 10,
  },
);
const plan = fc.array(fc.constantFrom(...Object.keys(REPLIES)), { minLength: 4, maxLength: 30 });

describe('the counts that limit a run', () => {
  /** Runs the acts. At each model call and after each run, the counts of the chart equal those of the log. */
  async function live(letters: readonly string[], todo: readonly Act[], sequential: boolean) {
    let on: Bench | undefined;
    let remainingLetters = letters.slice();
    let compared = 0;
    // An error that is thrown inside the model would be one of the model, which is called again.
    let differing: { chart: unknown; log: unknown } | undefined;
    const check = (): void => {
      if (!on || on.contextOf('run') === undefined) return;
      compared += 1;
      differing ??= compare(inMemory(on), reloaded(on.conversation.log()));
    };
    const comparingPlugin: Plugin = {
      name: 'told',
      afterToolExecute: ({ call: { callId } }) => (callId === 'e_2' ? { result: 'told' } : undefined),
    };
    const cuts: Tool = defineTool({
      name: 'cuts',
      description: 'Cancels the run that it belongs to.',
      parameters: z.object({}),
      execute: async () => void (await on?.conversation.cancel()),
    });
    const tools = [...(benchOptions().tools ?? []), cuts];
    const opened = async (store?: Bench['store']): Promise<Bench> => {
      const replies = remainingLetters.map((letter) =>
        during(() => {
          remainingLetters = remainingLetters.slice(1);
          check();
        }, REPLIES[letter] as never),
      );
      const policies = {
        limits: { identicalCalls: 4, turns: 12 },
        toolExecution: sequential ? 'sequential' : 'parallel',
      } as const;
      return bench({
        ...benchOptions(),
        tools,
        plugins: [asks().plugin, comparingPlugin],
        replies,
        policies,
        ...(store && { store }),
      });
    };
    const ended = async (run: { result: Promise<unknown> }): Promise<void> => {
      await run.result;
      check();
      expect(differing?.chart).toEqual(differing?.log);
    };
    on = await opened();
    await ended(on.conversation.send('hi'));
    for (const act of todo) {
      const { conversation } = on;
      const [pending] = conversation.pending;
      if (act === 'send' && conversation.status === 'idle') await ended(conversation.send('more'));
      else if (act === 'resume') await ended(conversation.resume());
      else if (act === 'cancel') await conversation.cancel();
      else if (act === 'restart') {
        await on.agent.close();
        on = await opened(on.store);
      } else if (act === 'crash') {
        const log = conversation.log();
        on = await opened(await storeWith(log.slice(0, 1 + ((log.length * 7) % 11) + Math.floor(log.length / 2))));
      } else if (pending && (act === 'approve' || act === 'deny')) {
        await conversation.decide({ callId: pending.callId, action: act });
      }
    }
    return compared;
  }

  it('they equal those of the log, at each model call and each end of random conversations', {
    timeout: HANG_MS,
  }, async () => {
    let compared = 0;
    const property = fc.asyncProperty(plan, acts, fc.boolean(), async (letters, todo, sequential) => {
      compared += await live(letters, todo, sequential);
    });
    await fc.assert(property, { numRuns: volume.readers });
    expect(compared).toBeGreaterThan(3 * volume.readers);
  });
});

it('identicalCalls: counts each of several denied calls whose results a plugin has changed', async () => {
  const changes = { name: 'changes', afterToolExecute: () => ({ result: 'No.' }) };
  const round = (...ids: [string, string][]) => ids.map(([id, m]) => call(id, 'ask', { m }));
  const on = await bench({
    replies: [round(['c1', 'a'], ['c2', 'b']), round(['c3', 'a'], ['c4', 'c']), 'never'],
    tools: [echoTool('ask').tool],
    plugins: [asks().plugin, changes],
    policies: { limits: { identicalCalls: 2 } },
  });
  await on.conversation.send('hi').result;
  for (const callIds of [
    ['c1', 'c2'],
    ['c3', 'c4'],
  ]) {
    for (const callId of callIds) await on.conversation.decide({ callId, action: 'deny' });
    await on.conversation.resume().result;
  }
  expect(on.conversation.log().at(-2)).toMatchObject({ type: 'run-stop', cause: 'no_progress' });
});

it('identicalCalls: counts a refused call that follows a waiting one in a sequential round', async () => {
  const round = (number: number): ModelPart[] => [...ask(`a${number}`), call(`u${number}`, 'unheard_of')];
  const on = await bench({
    ...benchOptions(),
    replies: [round(1), round(2), 'never'],
    policies: { toolExecution: 'sequential', limits: { identicalCalls: 2 } },
  });
  expect(await on.conversation.send('hi').result).toMatchObject({ termination: 'Stopped', cause: 'no_progress' });
});
