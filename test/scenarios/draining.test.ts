/**
 * The policy `queueDrain`: how many queued messages one opportunity takes (docs/internals/model.md, Queue Semantics).
 */
import { describe, expect, it } from 'vitest';
import { ModelError, type Plugin, type RunResult } from '../../src/index.ts';
import { type Bench, type BenchOptions, bench, entry, only, storeWith } from '../support/agentBench.ts';
import { gateTool } from '../support/scenarioTools.ts';
import { call, deaf, during, lines } from '../support/scriptedReplies.ts';

const all = { queueDrain: 'all' } as const;
const shown = (on: Bench, index: number): string[] => lines(on.model.calls[index]?.messages ?? []);
const fatal = (): ModelError => new ModelError({ code: 'auth', message: 'no key' });

/** A request during which three followUps are sent. */
async function threeQueued(options: BenchOptions = {}) {
  const runs: { result: Promise<RunResult>; id: string }[] = [];
  const on: Bench = await bench({
    policies: all,
    ...options,
    replies: [
      during(() => {
        for (const text of ['F1', 'F2', 'F3']) runs.push(on.conversation.send(text, { kind: 'followUp' }));
      }, 'A1'),
      ...(options.replies ?? ['A2', 'A3']),
    ],
  });
  return { on, runs };
}

describe('queueDrain all', () => {
  it('a promotion takes every queued followUp: the first is the root, and the others are steers before the first model call', async () => {
    const { on, runs } = await threeQueued();
    await on.conversation.send('P').result;
    const results = await Promise.all(runs.map(({ result }) => result));
    expect(on.model.calls).toHaveLength(2);
    expect(shown(on, 1)).toEqual(['user P', 'assistant A1', 'user F1', 'user F2', 'user F3']);
    expect(only(on.conversation.log(), 'user-message', 'run-stop')).toEqual([
      'user-message direct P',
      'run-stop completed end_turn',
      'user-message followUp F1',
      'user-message steer F2',
      'user-message steer F3',
      'run-stop completed end_turn',
    ]);
    // Their runs are one: the run of the root.
    expect(results.map(({ runId, text }) => [runId, text])).toEqual(Array(3).fill([runs[0]?.id, 'A2']));
    expect(on.conversation.queue).toEqual([]);
    const [, cycle] = on.conversation.view().cycles;
    expect(cycle?.root.kind).toBe('followUp');
    expect(cycle?.steps.map(({ type }) => type)).toEqual(['non-steer', 'steer', 'steer', 'ai-block']);
    expect(on.conversation.view()).toMatchObject({ queued: [], diagnostics: [] });
  });

  it('each message keeps its id, and its receipt is delivered', async () => {
    const receipts: { messageId: string; delivered: Promise<string> }[] = [];
    const on: Bench = await bench({
      policies: all,
      replies: [during(() => receipts.push(...['F1', 'F2'].map((text) => on.conversation.followUp(text))), 'A1'), 'A2'],
    });
    await on.conversation.send('P').result;
    expect(await Promise.all(receipts.map(({ delivered }) => delivered))).toEqual(['delivered', 'delivered']);
    const ids = on.conversation.log().flatMap((each) => (each.type === 'user-message' ? [each.messageId] : []));
    expect(ids.slice(1)).toEqual(receipts.map(({ messageId }) => messageId));
  });

  it('a message that arrives after the promotion waits for the next opportunity', async () => {
    const on: Bench = await bench({
      policies: all,
      replies: [
        during(() => on.conversation.followUp('F1'), 'A1'),
        during(() => on.conversation.followUp('F2'), 'A2'),
        'A3',
      ],
    });
    await on.conversation.send('P').result;
    await entry(on.conversation, 'agent-output', ({ item }) => item.type === 'assistant' && item.text === 'A3');
    expect(only(on.conversation.log(), 'user-message')).toEqual([
      'user-message direct P',
      'user-message followUp F1',
      'user-message followUp F2',
    ]);
  });

  it('a run that ends before its first model call leaves the others queued as followUps, for the next promotion', async () => {
    let ends = 2;
    const ender: Plugin = {
      name: 'ender',
      required: true,
      runStart() {
        ends -= 1;
        if (ends === 0) throw new Error('not now');
      },
    };
    const { on, runs } = await threeQueued({ plugins: [ender], replies: ['A2'] });
    await on.conversation.send('P').result;
    const results = await Promise.all(runs.map(({ result }) => result));
    expect(results.map(({ termination }) => termination)).toEqual(['Error', 'NaturalEnd', 'NaturalEnd']);
    expect(only(on.conversation.log(), 'user-message')).toEqual([
      'user-message direct P',
      'user-message followUp F1',
      'user-message followUp F2',
      'user-message steer F3',
    ]);
  });

  it('a followUp that is withdrawn before its delivery is returned, and the others are delivered', async () => {
    const gate = gateTool();
    const on = await bench({ policies: all, replies: [[call('c1', 'gate')], 'A1', 'A2'], tools: [gate.tool] });
    const first = on.conversation.send('P');
    await gate.begun('c1');
    const runs = ['F1', 'F2', 'F3'].map((text) => on.conversation.send(text, { kind: 'followUp' }));
    await runs[1]?.cancel();
    gate.release('c1');
    await first.result;
    expect((await runs[1]?.result)?.termination).toBe('Cancelled');
    expect((await runs[2]?.result)?.runId).toBe(runs[0]?.id);
    expect(only(on.conversation.log(), 'user-message', 'message-returned')).toEqual([
      'user-message direct P',
      'message-returned cancelled',
      'user-message followUp F1',
      'user-message steer F3',
    ]);
  });

  it('resume() promotes every message that a stop left queued, also after a restart', async () => {
    const policies = { ...all, promoteFollowUpOn: [] };
    const before = await bench({ replies: [deaf()], policies });
    before.conversation.send('P');
    await before.clock.advance(0);
    before.conversation.followUp('F1');
    before.conversation.steer('S');
    before.conversation.followUp('F2');
    await before.conversation.cancel();
    const store = await storeWith(before.conversation.log());
    const on = await bench({ replies: ['A', 'B'], store, policies });
    expect(on.conversation.queue.map(({ kind }) => kind)).toEqual(['followUp', 'steer', 'followUp']);
    // The interrupted cycle is continued first. Its steer is delivered, and the followUps stay queued.
    expect((await on.conversation.resume().result).text).toBe('A');
    expect(on.conversation.queue.map(({ kind }) => kind)).toEqual(['followUp', 'followUp']);
    expect((await on.conversation.resume().result).text).toBe('B');
    expect(shown(on, 1).slice(-2)).toEqual(['user F1', 'user F2']);
    expect(on.conversation.queue).toEqual([]);
  });
});

it('queueDrain one: each followUp is a separate cycle', async () => {
  const { on, runs } = await threeQueued({ policies: {}, replies: ['A2', fatal(), 'A4'] });
  await on.conversation.send('P').result;
  const results = await Promise.all(runs.map(({ result }) => result));
  expect(results.map(({ runId }) => runId)).toEqual(runs.map(({ id }) => id));
  expect(on.conversation.view().cycles.map(({ root }) => root.kind)).toEqual(['direct', ...Array(3).fill('followUp')]);
});
