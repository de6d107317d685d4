/** Tests one attempt with a model that the test feeds part by part: the streamed text, the reply and the timeouts. */
import { describe, expect, it } from 'vitest';
import type { Live } from '../../src/live.ts';
import { Attempt, type AttemptOptions } from '../../src/models/attempt.ts';
import { BATCHES, type ModelPart } from '../../src/models/model.ts';
import { EffectAbort } from '../../src/timeLimit.ts';
import { flush, VirtualClock } from '../support/virtualClock.ts';

type Part = ModelPart | Record<string, unknown>;
const text = (words: string): ModelPart => ({ type: 'text-delta', text: words });
const thought = (words: string): ModelPart => ({ type: 'reasoning-delta', text: words });
const input = (index: number, words: string, name?: string): ModelPart => ({
  ...{ type: 'tool-call-delta', index, text: words },
  ...(name !== undefined && { name }),
});
const finish = (more: object = {}): Part => ({ type: 'finish', reason: 'stop', ...more });

/** An attempt whose parts are fed by the test; `end` closes the stream. */
function attempt(more: Partial<AttemptOptions> = {}) {
  const clock = new VirtualClock();
  const signals: Live[] = [];
  const diagnosed: unknown[] = [];
  const parts: Part[] = [];
  let isOver = false;
  let wake = (): void => undefined;
  const model = {
    id: 'm',
    async *stream(): AsyncGenerator<ModelPart> {
      for (;;) {
        while (parts.length > 0) yield parts.shift() as ModelPart;
        if (isOver) return;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
  const made = new Attempt({
    ...{ model, request: { system: '', messages: [], tools: [] }, attempt: 1, runId: 'r' },
    abort: new EffectAbort(),
    timeouts: { firstPartMs: 1_000, idleMs: 500, totalMs: false },
    now: clock.now,
    setTimer: clock.setTimer,
    random: () => 0.5,
    live: () => (signal) => void signals.push(signal),
    diagnose: (code, detail) => void diagnosed.push([code, detail]),
    ...more,
  });
  const feed = async (...more: Part[]): Promise<void> => {
    parts.push(...more);
    wake();
    await new Promise((resolve) => setImmediate(resolve));
  };
  const end = (): Promise<void> => {
    isOver = true;
    return feed();
  };
  return { clock, made, feed, end, signals, diagnosed };
}
/** Returns the reply for one list of parts. */
async function reply(...parts: Part[]) {
  const { made, feed, end, signals, diagnosed } = attempt();
  const run = made.run();
  await feed(...parts);
  await end();
  return { ...(await run), signals, diagnosed, made };
}

describe('the items of a reply', () => {
  it.each<[string, Part[], string[]]>([
    ['neighbouring text is one item', [text('a'), text('b')], ['assistant ab']],
    [
      'thoughts between texts part them',
      [text('a'), thought('h'), text('b')],
      ['assistant a', 'reasoning h', 'assistant b'],
    ],
    [
      'a call parts texts too',
      [text('a'), { type: 'tool-call', callId: 'c', name: 'n', args: '' }, text('b')],
      ['assistant a', 'call n', 'assistant b'],
    ],
    ['streamed input does not', [text('a'), input(0, '{'), text('b')], ['assistant ab']],
    ['empty text is no item', [text(''), thought('')], []],
    ['a refusal marks its text', [{ type: 'refusal' }, text('no')], ['assistant no refusal']],
    ['and no thought', [thought('h'), { type: 'refusal' }, text('no')], ['reasoning h', 'assistant no refusal']],
    [
      'and the text before it',
      [text('n'), { type: 'refusal' }, text('o'), thought('h')],
      ['assistant no refusal', 'reasoning h'],
    ],
    ['after the finish nothing counts', [text('a'), finish(), text('b')], ['assistant a']],
  ])('%s', async (_, parts, items) => {
    const made = await reply(...parts, finish());
    const shown = (made.kind === 'reply' ? made.items : []).map((item) =>
      item.type === 'call'
        ? `call ${item.call.name}`
        : [item.type, item.type === 'tool-call' ? '' : item.text, 'flag' in item ? item.flag : ''].join(' ').trim(),
    );
    expect(shown).toEqual(items);
  });

  it.each<[string, Part, object | undefined]>([
    ['arguments as text', { args: '{"a":1}' }, { args: '{"a":1}' }],
    ['arguments as an object', { args: { a: [1] } }, { args: '{"a":[1]}' }],
    ['arguments that are no text', { args: 7 }, { args: '' }],
    ['an object that is no JSON', { args: { a: 1n } }, { args: 'no JSON' }],
    ['no id', { callId: 7 }, { callId: '' }],
    ['no name', { name: undefined }, undefined],
    ['an attachment', { extra: { t: [1] } }, { extra: { t: [1] } }],
    ['an attachment that is no JSON', { extra: () => 1 }, {}],
  ])('a call is read field by field: %s', async (_, fields, read) => {
    const whole = { callId: 'c', name: 'n', args: '' };
    const made = await reply({ type: 'tool-call', ...whole, ...fields }, finish());
    const calls = made.kind === 'reply' ? made.items : [];
    expect(calls).toEqual(read ? [{ type: 'call', call: { ...whole, ...read } }] : []);
    expect(made.diagnosed).toEqual(read ? [] : [['model_part', { model: 'm' }]]);
  });

  it('have zeros for missing counts, and the attachments of the model', async () => {
    const made = await reply(finish({ usage: { inputTokens: 7 }, extra: { id: 1 } }));
    expect(made).toMatchObject({
      ...{ kind: 'reply', finish: 'stop', extra: { id: 1 } },
      usage: { inputTokens: 7, outputTokens: 0, cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 },
    });
    expect(await reply(finish())).not.toHaveProperty('extra');
  });

  it.each<[string, Part[], string]>([
    ['without a finish', [text('a')], 'stream-incomplete'],
    ['with a finish of an unknown reason', [text('a'), finish({ reason: 'x' })], 'stream-incomplete'],
    ['that was filtered', [text('a'), finish({ reason: 'content-filter' })], 'content-filter'],
  ])('a reply %s has failed, and takes back what it streamed', async (_, parts, code) => {
    const made = await reply(...parts);
    expect(made).toMatchObject({ kind: 'failed', code, model: 'm', random: 0.5 });
    expect(made.signals.at(-1)).toEqual({ type: 'reset', runId: 'r' });
    expect(made.made.inFlight).toBeNull();
  });
});

describe('the streamed text', () => {
  it('can be read at any time, and a returned value does not change', async () => {
    const { made, feed, end } = attempt();
    const run = made.run();
    expect(made.inFlight).toBeNull();
    const seen = [];
    for (const part of [
      text('a'),
      thought('h'),
      input(1, '{', 'look'),
      text('b'),
      input(1, '}', 'other'),
      input(0, ''),
    ]) {
      await feed(part);
      seen.push(made.inFlight);
      expect(made.inFlight).toBe(seen.at(-1));
    }
    const look = (words: string) => ({ index: 1, name: 'look', text: words });
    expect(seen).toEqual([
      { runId: 'r', text: 'a', reasoning: '', toolInputs: [] },
      { runId: 'r', text: 'a', reasoning: 'h', toolInputs: [] },
      { runId: 'r', text: 'a', reasoning: 'h', toolInputs: [look('{')] },
      { runId: 'r', text: 'ab', reasoning: 'h', toolInputs: [look('{')] },
      { runId: 'r', text: 'ab', reasoning: 'h', toolInputs: [look('{}')] },
      { runId: 'r', text: 'ab', reasoning: 'h', toolInputs: [look('{}'), { index: 0, text: '' }] },
    ]);
    for (const each of [seen[5], seen[5]?.toolInputs, seen[5]?.toolInputs[0]]) expect(Object.isFrozen(each)).toBe(true);
    expect(made.partial).toBe('ab');
    await feed(finish());
    await end();
    await run;
  });

  it('is emitted signal by signal', async () => {
    const { signals } = await reply(text('a'), thought('h'), input(0, '{', 'look'), input(0, '}'), finish());
    expect(signals).toEqual([
      { type: 'text-delta', runId: 'r', text: 'a' },
      { type: 'reasoning-delta', runId: 'r', text: 'h' },
      { type: 'tool-input-delta', runId: 'r', index: 0, name: 'look', text: '{' },
      { type: 'tool-input-delta', runId: 'r', index: 0, text: '}' },
    ]);
  });

  it.each(['one by one', 'all at once'])(
    'lets timers have their turn where parts that never wait come %s',
    async (how) => {
      const all: Part[] = [...Array.from({ length: 2_000 }, () => text('x')), finish()];
      const parts = async function* () {
        yield* all;
      };
      const batches = { next: async () => (all.length > 0 ? all.splice(0) : undefined), close: () => undefined };
      const stream = how === 'one by one' ? parts() : Object.assign(parts(), { [BATCHES]: () => batches });
      let turns = 0;
      const count = (): void => {
        turns += 1;
        due = setImmediate(count);
      };
      let due = setImmediate(count);
      const { made } = attempt({ model: { id: 'm', stream: () => stream as never } });
      expect((await made.run()).kind).toBe('reply');
      clearImmediate(due);
      expect(turns).toBeGreaterThanOrEqual(7);
    },
  );
});

describe('the time of an attempt', () => {
  const timeouts = { firstPartMs: 1_000, idleMs: 500, totalMs: 2_000 };
  /**
   * Plays parts at these times after the start, with one change of the host's clock. Returns the time and the kind of
   * the end.
   */
  async function timed(at: readonly number[], set?: { at: number; by: number }, more: Partial<typeof timeouts> = {}) {
    let skew = 0;
    const { clock, made, feed } = attempt({
      timeouts: { ...timeouts, ...more },
      now: () => clock.now() + skew,
    });
    const from = clock.now();
    const run = made.run();
    for (const [index, time] of at.entries()) clock.setTimer(time, () => void feed(text(`${index}`)));
    if (set)
      clock.setTimer(set.at, () => {
        skew += set.by;
      });
    await clock.until(run, 100_000);
    const ended = await run;
    return [clock.now() - from, ended.kind === 'failed' ? ended.message.replace(/^the model /, '') : ended.kind];
  }

  it.each<[string, number[], { at: number; by: number } | undefined, [number, string]]>([
    ['nothing comes', [], undefined, [1_000, 'sent nothing for 1000 ms']],
    ['nothing follows the first part', [900], undefined, [1_400, 'sent nothing for 500 ms']],
    ['nothing follows the last part', [100, 300, 500], undefined, [1_000, 'sent nothing for 500 ms']],
    ['parts never end', [0, 400, 800, 1_200, 1_600, 1_999], undefined, [2_000, 'did not finish within 2000 ms']],
    ['the clock was set forward', [100, 300], { at: 400, by: 60_000 }, [1_100, 'sent nothing for 500 ms']],
    ['the clock was set back', [100, 300], { at: 400, by: -60_000 }, [1_100, 'sent nothing for 500 ms']],
    ['the clock was set a little forward', [100, 300], { at: 400, by: 100 }, [700, 'sent nothing for 500 ms']],
  ])('is over where %s', async (_, at, set, ended) => {
    expect(await timed(at, set)).toEqual(ended);
  });

  it('leaves no timer after any end', async () => {
    for (const last of [finish(), finish({ reason: 'content-filter' })]) {
      const { clock, made, feed } = attempt({ timeouts });
      const run = made.run();
      await feed(text('a'));
      expect(clock.waiting).toBe(2);
      await feed(last);
      await run;
      expect(clock.waiting).toBe(0);
    }
    const { clock, made } = attempt({ timeouts });
    await clock.until(made.run(), 9_000);
    await flush();
    expect(clock.waiting).toBe(0);
  });
});
