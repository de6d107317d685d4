/** A reloaded conversation equals the open one (docs/internals/model.md, Log). */
import { describe, expect, it } from 'vitest';
import { type LogEntry, ModelError, type ModelPart, memoryStore } from '../../src/index.ts';
import { type Bench, bench, entry, only, restart, storeWith, story } from '../support/agentBench.ts';
import { asks, boom, echoTool, gateTool } from '../support/scenarioTools.ts';
import { call, lines, t } from '../support/scriptedReplies.ts';
import { commits, troubledStore } from '../support/troubledStore.ts';

const args = { m: 'a' };
const CALLS = [call('c1', 'gate'), call('c2', 'gate'), call('c3', 'ask', args), call('c4', 'boom')];

/** The four calls of one reply: two run, one waits, one failed. Then an event follows. */
async function inRound(policies: object = {}) {
  const gate = gateTool();
  const store = troubledStore();
  const options = { tools: [gate.tool, echoTool('ask').tool, boom], plugins: [asks().plugin], policies };
  const on = await bench({ ...options, store, replies: [CALLS, 'next'] });
  const run = on.conversation.send('hi');
  await gate.begun('c1');
  return { ...on, store, gate, run, options };
}
type Round = Awaited<ReturnType<typeof inRound>>;

const ways: readonly [string, (round: Round) => Promise<unknown>][] = [
  ['a cancel', ({ conversation }) => conversation.cancel()],
  [
    'a cancel of a waiting call',
    async ({ gate, run, conversation }) => {
      for (const callId of ['c1', 'c2']) void gate.begun(callId).then(() => gate.release(callId));
      await run.result;
      await conversation.cancel();
    },
  ],
  [
    'a store that fails once',
    async ({ store, gate, run }) => {
      let failed = false;
      store.trouble(() => {
        if (failed) return 'stored';
        failed = true;
        return 'failed';
      });
      gate.release('c1');
      await run.result;
    },
  ],
  [
    'a commit of the results that fails',
    async ({ store, gate, run }) => {
      store.trouble((entries) => (commits(entries, 'ToolResultsCommitted') ? 'failed' : 'stored'));
      for (const callId of ['c1', 'c2']) void gate.begun(callId).then(() => gate.release(callId));
      await run.result;
    },
  ],
];

describe.each(ways)('B02: after %s', (_, happen) => {
  it.each(['parallel', 'sequential'])(
    'every result that the library made is an entry: the reloaded log equals the live one (%s)',
    async (toolExecution) => {
      const round = await inRound({ toolExecution });
      await happen(round);
      const live = round.conversation.messages();
      const view = round.conversation.view();
      const log = round.conversation.log();
      const again = await restart(round, { ...round.options, replies: [] });
      expect(again.conversation.messages()).toEqual(live);
      expect(again.conversation.view()).toEqual(view);
      expect(again.conversation.log()).toEqual(log);
    },
  );
});

it('B02: repairs of an opening are written once, and the next opening finds them', async () => {
  const { conversation, gate } = await inRound();
  gate.release('c1');
  await entry(conversation, 'tool-result', ({ callId }) => callId === 'c1');
  const store = await storeWith(conversation.log());
  const second = await bench({ store });
  const repaired = second.conversation.messages();
  expect(only(second.conversation.log(), 'tool-result', 'run-stop')).toContain('tool-result c2 unknown');
  const third = await restart(second);
  expect(third.conversation.messages()).toEqual(repaired);
  expect(third.conversation.log()).toEqual(second.conversation.log());
});

describe('B25: repeated opening and closing', () => {
  const states: readonly [string, () => Promise<Bench>][] = [
    ['an empty conversation', () => bench()],
    [
      'one with a finished run',
      async () => {
        const on = await bench({ replies: ['ok'] });
        await on.conversation.send('hi').result;
        return on;
      },
    ],
    [
      'one that waits, with a decision, a queued message, and calls that keep their turn',
      async () => {
        const on = await bench({
          replies: [[call('c1', 'ask', args), call('c2', 'ask', args), call('c3', 'echo', args)]],
          tools: [echoTool('ask').tool, echoTool().tool],
          plugins: [asks().plugin],
          policies: { toolExecution: 'sequential', onPartialSuspend: 'wait' },
        });
        await on.conversation.send('hi').result;
        await on.conversation.decide({ callId: 'c1', action: 'approve' });
        return on;
      },
    ],
  ];

  it.each(states)('it adds nothing to %s and changes nothing in it', async (_, make) => {
    let on = await make();
    const tools = [echoTool('ask').tool, echoTool().tool];
    const stateOf = ({ conversation }: Bench) => {
      const { status, pending, unsettled, queue } = conversation;
      return { status, pending, unsettled, queue, log: conversation.log(), view: conversation.view() };
    };
    const before = stateOf(on);
    for (let opening = 0; opening < 4; opening++) {
      on = await restart(on, { tools });
      expect(stateOf(on)).toEqual(before);
    }
  });

  it('a suspension outlives three processes, and the fourth applies the decision once', async () => {
    const ask = echoTool('ask');
    const options = { tools: [ask.tool], plugins: [asks().plugin] };
    let on = await bench({ ...options, replies: [[call('c1', 'ask', args)]] });
    await on.conversation.send('hi').result;
    on = await restart(on, options);
    await on.conversation.decide({ callId: 'c1', action: 'approve' });
    on = await restart(on, options);
    on = await restart(on, { ...options, replies: ['done'] });
    expect((await on.conversation.resume().result).text).toBe('done');
    expect(ask.ran).toEqual(['c1']);
  });
});

describe('B16: the size of the log', () => {
  it('40 turns with 10 kB each take less than twice the transcript and 1 kB an entry', async () => {
    const text = 'x'.repeat(10_000);
    const replies = Array.from({ length: 40 }, (_, turn) => [call(`c${turn}`, 'echo', { m: `${turn}${text}` })]);
    const { conversation } = await bench({ replies: [...replies, 'done'], tools: [echoTool().tool] });
    expect((await conversation.send('hi').result).turns).toBe(41);
    const log = conversation.log();
    const bytes = (value: unknown): number => JSON.stringify(value).length;
    expect(bytes(log)).toBeLessThan(2 * bytes(conversation.messages()) + 1_000 * log.length);
  });

  it('each turn adds the same number of entries and bytes, however many turns there were', async () => {
    const replies = Array.from({ length: 60 }, (_, turn) => [call(`c${100 + turn}`, 'echo', { m: `${100 + turn}` })]);
    const { conversation } = await bench({ replies: [...replies, 'done'], tools: [echoTool().tool] });
    await conversation.send('hi').result;
    const sizes: number[] = [];
    let turn: LogEntry[] = [];
    for (const each of conversation.log()) {
      turn.push({ ...each, seq: 0, at: 0 });
      if (each.type !== 'checkpoint' || each.boundary !== 'ToolResultsCommitted') continue;
      sizes.push(JSON.stringify(turn).replaceAll(/\d/g, '').length);
      turn = [];
    }
    expect(sizes).toHaveLength(60);
    expect(new Set(sizes.slice(1)).size).toBe(1);
  });
});

it('B22: a failed attempt leaves nothing in the log, the view, the messages or the result', async () => {
  const half = async function* (): AsyncGenerator<ModelPart> {
    yield { type: 'reasoning-delta', text: 'half a thought' };
    yield t('half a word');
    yield { type: 'tool-call-delta', index: 0, name: 'echo', text: '{"m":"half' };
    yield call('half', 'echo', args);
    throw new ModelError({ code: 'stream-incomplete' });
  };
  const echo = echoTool();
  const on = await bench({
    replies: [half, half, [call('c1', 'echo', args)], 'whole'],
    tools: [echo.tool],
    store: memoryStore(),
  });
  const { result } = on.conversation.send('hi');
  await on.clock.until(result, 60_000);
  expect(await result).toMatchObject({ text: 'whole', calls: [{ callId: 'c1' }] });
  expect(echo.ran).toEqual(['c1']);
  const { conversation } = on;
  for (const seen of [conversation.log(), conversation.view(), conversation.messages()])
    expect(JSON.stringify(seen)).not.toContain('half');
  expect(story(conversation.log()).filter((line) => line.startsWith('model-retry'))).toHaveLength(2);
});

describe('B04: after a cancel, the caller, the view and the model have the same outcome of each call', () => {
  const KNOWN = {
    c1: ['cancelled', 'cancelled'],
    c2: ['succeeded', undefined],
    c3: ['cancelled', 'cancelled'],
    c4: ['failed', 'error'],
  } as const;

  it('running, finished, waiting and failed calls of one round', async () => {
    const { conversation, gate, run } = await inRound();
    await gate.begun('c2');
    gate.release('c2');
    await entry(conversation, 'tool-suspended');
    for (const ended of ['c2', 'c4']) await entry(conversation, 'tool-result', ({ callId }) => callId === ended);
    await conversation.cancel();
    const resultCalls = (await run.result).calls;
    const block = conversation.view().cycles[0]?.steps.find(({ type }) => type === 'ai-block');
    const shown = block?.type === 'ai-block' ? block.groups.flatMap(({ calls }) => calls) : [];
    const messageLines = lines(conversation.messages());
    for (const [callId, [outcome, code]] of Object.entries(KNOWN)) {
      expect(resultCalls.find((each) => each.callId === callId)).toEqual({
        callId,
        name: expect.any(String),
        outcome,
        ...(code && { code }),
      });
      const result = shown.find((each) => each.callId === callId)?.result;
      expect(result).toMatchObject({ outcome, ...(code && { code }) });
      const text = result?.content.map((part) => (part.type === 'text' ? part.text : '')).join('') ?? '';
      expect(messageLines).toContain(`${callId}${outcome === 'succeeded' ? '' : '!'} ${text}`);
    }
    expect(messageLines.find((line) => line.startsWith('c1'))).toMatch(/may have had an effect/);
  });

  it('a call that had not started, and one that finished too late', async () => {
    const { conversation, gate, run } = await inRound({ toolExecution: 'sequential' });
    await conversation.cancel();
    gate.release('c1');
    await entry(conversation, 'diagnostic', ({ code }) => code === 'late_result');
    const callOutcomes = (await run.result).calls.map(({ callId, outcome, code }) => `${callId} ${outcome} ${code}`);
    expect(callOutcomes).toEqual([
      'c1 cancelled cancelled',
      'c2 cancelled skipped',
      'c3 cancelled skipped',
      'c4 cancelled skipped',
    ]);
    expect(only(conversation.log(), 'tool-result').map((line) => line.replace('tool-result ', ''))).toEqual(
      callOutcomes,
    );
    expect(lines(conversation.messages()).find((line) => line.startsWith('c2'))).toMatch(
      /^c2! .*skipped: the run ended before it started/,
    );
  });
});
