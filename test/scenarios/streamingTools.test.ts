import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type Conversation, defineTool, type Live, type ToolContext, toolResult } from '../../src/index.ts';
import { bench } from '../support/agent.ts';
import { flush } from '../support/clock.ts';
import { call, finish } from '../support/model.ts';

const tool = (execute: (context: ToolContext) => unknown) =>
  defineTool({ name: 'work', description: '', parameters: z.object({}), execute: (_, context) => execute(context) });

function resultOf(conversation: Conversation) {
  const result = conversation.log().find((entry) => entry.type === 'tool-result');
  if (result?.type !== 'tool-result') return undefined;
  const { outcome, code, content } = result;
  const text = content.map((part) => (part.type === 'text' ? part.text : part.mediaType)).join('\n');
  return code === undefined ? { outcome, text } : { outcome, code, text };
}

/** The tool is called once; what it told on the way. */
async function at(execute: (context: ToolContext) => unknown) {
  const replies = [[call('c1', 'work'), finish('tool-calls')], 'done'];
  const made = await bench({
    tools: [tool(execute)],
    replies,
    policies: { limits: { toolMs: 200, resultBytes: 1_000 } },
  });
  const told: unknown[] = [];
  made.conversation.live$.subscribe((live: Live) => {
    if (live.type === 'tool-progress') told.push(live.update);
  });
  const run = made.conversation.send('go');
  await flush();
  return { ...made, run, told };
}
const played = async (execute: (context: ToolContext) => unknown) => {
  const { conversation, run, told } = await at(execute);
  await run.result;
  return { result: resultOf(conversation), told: told.slice(1, -1) };
};

describe('a tool that gives one value after another', () => {
  it('tells each value of an async generator as progress, and the last one is its result', async () => {
    expect(
      await played(async function* () {
        yield { done: 1 };
        await Promise.resolve();
        yield { done: 2 };
      }),
    ).toEqual({ result: { outcome: 'succeeded', text: '{"done":2}' }, told: [{ done: 1 }, { done: 2 }] });
  });

  it('has what a generator returns for its result, where it returns something', async () => {
    expect(
      await played(async function* () {
        yield 'half';
        return 'whole';
      }),
    ).toEqual({ result: { outcome: 'succeeded', text: 'whole' }, told: ['half'] });
    expect(
      await played(async function* () {
        yield 'half';
        return toolResult.error('no more', 'halfway');
      }),
    ).toEqual({ result: { outcome: 'failed', code: 'halfway', text: 'no more' }, told: ['half'] });
  });

  it('may be a plain generator, a promise of one, or anything with an async iterator', async () => {
    const both = { result: { outcome: 'succeeded', text: 'b' }, told: ['a', 'b'] };
    function* plain() {
      yield 'a';
      yield Promise.resolve('b');
    }
    expect(await played(() => plain())).toEqual(both);
    expect(await played(async () => plain())).toEqual(both);
    const start = (controller: ReadableStreamDefaultController) => {
      for (const value of ['a', 'b']) controller.enqueue(value);
      controller.close();
    };
    expect(await played(() => new ReadableStream({ start }))).toEqual(both);
    expect(await played(() => ({ [Symbol.asyncIterator]: () => plain() }))).toEqual(both);
  });

  it('that gives nothing has no output', async () => {
    expect(await played(async function* () {})).toEqual({
      result: { outcome: 'succeeded', text: '(no output)' },
      told: [],
    });
  });

  it('fails as it throws, and is closed where one of its values does', async () => {
    let closed = false;
    expect(
      await played(async function* () {
        yield 'a';
        throw new RangeError('no more');
      }),
    ).toEqual({ result: { outcome: 'failed', code: 'error', text: 'RangeError: no more' }, told: ['a'] });
    const { result } = await played(function* () {
      try {
        yield Promise.reject(new RangeError('a bad value'));
      } finally {
        closed = true;
      }
    });
    expect({ result, closed }).toEqual({
      result: { outcome: 'failed', code: 'error', text: 'RangeError: a bad value' },
      closed: true,
    });
  });

  it('cuts a last value that is too long, and does not tell values that are too long or no JSON', async () => {
    const { result, told } = await played(function* () {
      yield 'a';
      yield () => 1;
      yield 'b'.repeat(5_000);
    });
    expect(result?.text.length).toBeLessThanOrEqual(1_000);
    expect(result?.text).toContain('characters left out');
    expect(told).toEqual(['a']);
  });

  it('is closed by a cancel, and what it gives later counts for nothing', async () => {
    let closed = false;
    const { clock, conversation, run, told } = await at(async function* ({ sleep }) {
      try {
        for (let count = 1; ; count++) {
          yield count;
          await sleep(100).catch(() => undefined);
        }
      } finally {
        closed = true;
      }
    });
    await clock.advance(150);
    await conversation.cancel();
    expect((await run.result).termination).toBe('Cancelled');
    await flush();
    expect({ closed, told: told.slice(1) }).toEqual({ closed: true, told: [1, 2] });
    expect(resultOf(conversation)).toMatchObject({ outcome: 'cancelled' });
    expect(conversation.log().filter(({ type }) => type === 'diagnostic')).toEqual([]);
    expect(clock.waiting).toBe(0);
  });

  it('that waits for nothing and never ends is ended with its time, and holds nobody up meanwhile', async () => {
    let given = 0;
    let closed = false;
    const { clock, conversation, run } = await at(async function* () {
      try {
        for (;;) yield ++given;
      } finally {
        closed = true;
      }
    });
    expect(given).toBeGreaterThan(100);
    await clock.advance(200);
    expect((await run.result).termination).toBe('NaturalEnd');
    expect(resultOf(conversation)).toMatchObject({ outcome: 'failed', code: 'timeout' });
    await flush();
    expect(closed).toBe(true);
    expect(clock.waiting).toBe(0);
  });

  it('that is deaf is asked to return at once, and left behind by a cancel', async () => {
    let returned = 0;
    const never = () => new Promise<never>(() => {});
    const deaf = {
      next: never,
      return: () => {
        returned += 1;
        return never();
      },
      [Symbol.asyncIterator]: () => deaf,
    };
    const { clock, conversation, run } = await at(() => deaf);
    expect(returned).toBe(0);
    await conversation.cancel();
    expect((await run.result).termination).toBe('Cancelled');
    expect(returned).toBe(1);
    expect(clock.waiting).toBe(0);
  });

  it('that fails when it is asked to return harms nobody', async () => {
    const failing = {
      next: () => new Promise<never>(() => {}),
      return: () => {
        throw new Error('no');
      },
      [Symbol.asyncIterator]: () => failing,
    };
    const { clock, conversation, run } = await at(() => failing);
    await clock.advance(200);
    expect((await run.result).termination).toBe('NaturalEnd');
    expect(resultOf(conversation)).toMatchObject({ outcome: 'failed', code: 'timeout' });
  });
});
