import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type Conversation, defineTool, type Live, type ToolContext, toolResult } from '../../src/index.ts';
import { bench } from '../support/agentBench.ts';
import { call, finish } from '../support/scriptedReplies.ts';
import { flush } from '../support/virtualClock.ts';

const tool = (execute: (context: ToolContext) => unknown) =>
  defineTool({ name: 'work', description: '', parameters: z.object({}), execute: (_, context) => execute(context) });

function resultOf(conversation: Conversation) {
  const result = conversation.log().find((entry) => entry.type === 'tool-result');
  if (result?.type !== 'tool-result') return undefined;
  const { outcome, code, content } = result;
  const text = content.map((part) => (part.type === 'text' ? part.text : part.mediaType)).join('\n');
  return code === undefined ? { outcome, text } : { outcome, code, text };
}

/** A tool that streams values is called once, and its values are reported in the meantime. */
async function at(execute: (context: ToolContext) => unknown) {
  const replies = [[call('c1', 'work'), finish('tool-calls')], 'done'];
  const made = await bench({
    tools: [tool(execute)],
    replies,
    policies: { limits: { toolMs: 200, resultBytes: 1_000 } },
  });
  const progressValues: unknown[] = [];
  made.conversation.live$.subscribe((live: Live) => {
    if (live.type === 'tool-progress') progressValues.push(live.update);
  });
  const run = made.conversation.send('go');
  await flush();
  return { ...made, run, progress: progressValues };
}
const played = async (execute: (context: ToolContext) => unknown) => {
  const { conversation, run, progress } = await at(execute);
  await run.result;
  return { result: resultOf(conversation), progress: progress.slice(1, -1) };
};

describe('a tool that yields several values', () => {
  it('each value of an async generator is progress, and the last one is the result', async () => {
    expect(
      await played(async function* () {
        yield { done: 1 };
        await Promise.resolve();
        yield { done: 2 };
      }),
    ).toEqual({ result: { outcome: 'succeeded', text: '{"done":2}' }, progress: [{ done: 1 }, { done: 2 }] });
  });

  it('the return value of a generator is the result, if there is one', async () => {
    expect(
      await played(async function* () {
        yield 'half';
        return 'whole';
      }),
    ).toEqual({ result: { outcome: 'succeeded', text: 'whole' }, progress: ['half'] });
    expect(
      await played(async function* () {
        yield 'half';
        return toolResult.error('no more', 'halfway');
      }),
    ).toEqual({ result: { outcome: 'failed', code: 'halfway', text: 'no more' }, progress: ['half'] });
  });

  it('a plain generator, a promise of one, and any async iterable are accepted', async () => {
    const both = { result: { outcome: 'succeeded', text: 'b' }, progress: ['a', 'b'] };
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

  it('a generator without values has no output', async () => {
    expect(await played(async function* () {})).toEqual({
      result: { outcome: 'succeeded', text: '(no output)' },
      progress: [],
    });
  });

  it('it fails with the error that it throws, and is closed if one of its values is an error', async () => {
    let closed = false;
    expect(
      await played(async function* () {
        yield 'a';
        throw new RangeError('no more');
      }),
    ).toEqual({ result: { outcome: 'failed', code: 'error', text: 'RangeError: no more' }, progress: ['a'] });
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

  it('a last value that is too long is cut, and long or non-JSON values are not reported', async () => {
    const { result, progress } = await played(function* () {
      yield 'a';
      yield () => 1;
      yield 'b'.repeat(5_000);
    });
    expect(result?.text.length).toBeLessThanOrEqual(1_000);
    expect(result?.text).toContain('characters left out');
    expect(progress).toEqual(['a']);
  });

  it('a cancel closes it, and later values are ignored', async () => {
    let closed = false;
    const { clock, conversation, run, progress } = await at(async function* ({ sleep }) {
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
    expect({ closed, progress: progress.slice(1) }).toEqual({ closed: true, progress: [1, 2] });
    expect(resultOf(conversation)).toMatchObject({ outcome: 'cancelled' });
    expect(conversation.log().filter(({ type }) => type === 'diagnostic')).toEqual([]);
    expect(clock.waiting).toBe(0);
  });

  it('a tool that never awaits and never ends is ended after its time limit, and delays nobody meanwhile', async () => {
    let yieldCount = 0;
    let closed = false;
    const { clock, conversation, run } = await at(async function* () {
      try {
        for (;;) yield ++yieldCount;
      } finally {
        closed = true;
      }
    });
    expect(yieldCount).toBeGreaterThan(100);
    await clock.advance(200);
    expect((await run.result).termination).toBe('NaturalEnd');
    expect(resultOf(conversation)).toMatchObject({ outcome: 'failed', code: 'timeout' });
    await flush();
    expect(closed).toBe(true);
    expect(clock.waiting).toBe(0);
  });

  it('a tool that ignores its signal is asked to return at once, and a cancel abandons it', async () => {
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

  it('a tool that throws on return affects nobody', async () => {
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

describe('the progress of a call', () => {
  it('ends with `ended`, and what the tool reports later is not shown', async () => {
    let report = (_: string): void => {};
    const { run, progress } = await at(async (context) => {
      report = context.progress;
      report('half');
      return 'done';
    });
    report('too late');
    await run.result;
    report('much too late');
    expect(progress).toEqual(['started', 'half', 'ended']);
  });

  it('ends with `ended` also where the call takes too long, and not where it is cancelled', async () => {
    const slow = await at(() => new Promise(() => {}));
    await slow.clock.advance(200);
    await slow.run.result;
    expect(slow.progress).toEqual(['started', 'ended']);
    const cancelled = await at(({ signal }) => new Promise((_, fail) => signal.addEventListener('abort', fail)));
    await cancelled.conversation.cancel();
    await flush();
    expect(cancelled.progress).toEqual(['started']);
  });
});
