import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { defineTool, type ToolContext } from '../../src/index.ts';
import { bench } from '../support/agentBench.ts';
import { call, finish } from '../support/scriptedReplies.ts';
import { flush } from '../support/virtualClock.ts';

type Work = (context: ToolContext) => unknown;
const worker = (work: Work) =>
  defineTool({ name: 'work', description: '', parameters: z.object({}), execute: (_, context) => work(context) });

/** A conversation in whose first round the tool works, and the outcome of the tool's promise. */
async function at(work: Work) {
  const settled: { value?: unknown; error?: unknown } = {};
  const tool = worker((context) => {
    const working = Promise.resolve(work(context));
    working.then(
      (value) => Object.assign(settled, { value }),
      (error) => Object.assign(settled, { error }),
    );
    return working;
  });
  const replies = [[call('c1', 'work'), finish('tool-calls')], 'done'];
  const made = await bench({ tools: [tool], replies, policies: { limits: { toolMs: 1_000 } } });
  const run = made.conversation.send('go');
  await flush();
  return { ...made, run, settled };
}

describe('the clock of a tool', () => {
  it("now() is the agent's time, and sleep(ms) takes that long", async () => {
    const { clock, run, settled } = await at(async ({ now, sleep }) => {
      const since = now();
      await sleep(250);
      return now() - since;
    });
    await clock.advance(249);
    expect(settled).toEqual({});
    await clock.advance(1);
    expect((await run.result).termination).toBe('NaturalEnd');
    expect(settled).toEqual({ value: 250 });
    expect(clock.waiting).toBe(0);
  });

  it('a cancel rejects every sleep with the reason of the signal, and leaves no timer', async () => {
    const reasons: unknown[] = [];
    let reason: unknown;
    const { clock, conversation, run } = await at(async ({ sleep, signal }) => {
      const ends = await Promise.allSettled(Array.from({ length: 20 }, (_, index) => sleep(300 + index)));
      for (const end of ends) reasons.push(end.status === 'rejected' && end.reason);
      reason = signal.reason;
    });
    await conversation.cancel();
    expect((await run.result).termination).toBe('Cancelled');
    expect(reasons).toEqual(Array(20).fill(reason));
    expect(clock.waiting).toBe(0);
  });

  it('a time-out rejects a longer sleep, and leaves no timer', async () => {
    const { clock, run, settled } = await at(({ sleep }) => sleep(60_000));
    await clock.advance(1_000);
    await run.result;
    expect(settled.error).toMatchObject({ name: 'TimeoutError' });
    expect(clock.waiting).toBe(0);
  });

  it('a sleep after the signal has fired rejects at once', async () => {
    let later: unknown;
    const { conversation } = await at(async ({ sleep }) => {
      await sleep(100).catch(() => undefined);
      later = await sleep(100).catch((error: unknown) => error);
    });
    await conversation.cancel();
    await flush();
    expect(later).toMatchObject({ name: 'AbortError' });
  });

  it('a sleep that the tool did not await ends with the call, without an uncaught error', async () => {
    const { clock, run } = await at(({ sleep }) => {
      void sleep(60_000);
      return 'at once';
    });
    expect((await run.result).termination).toBe('NaturalEnd');
    expect(clock.waiting).toBe(0);
  });
});
