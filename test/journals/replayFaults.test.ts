import { describe, expect, test } from 'vitest';
import { call, calls, entriesOf, plainTool, scripted, settle, stillClock, until } from '../hostile/hostileAgent.ts';
import { expectSame, faultyStore, recorded } from './recordedRun.ts';

const ports = (clock: ReturnType<typeof stillClock>) => ({ now: clock.now, setTimer: clock.setTimer, random: () => 0 });
const echo = plainTool('echo', () => 'hi');
const reply = () => scripted([calls(call('a', 'echo'), call('b', 'echo'))]);

describe.each([true, false])('a store that appends at once: %s', (atOnce) => {
  test.each([0, 1, 2, 3, 4, 5, 6])('a run whose append %i fails replays with the same failure', async (failing) => {
    const append = (count: number): void => {
      if (count === failing) throw new Error('disk full');
    };
    const store = faultyStore({ append, atOnce });
    const run = await recorded({ model: reply(), tools: [echo], store, ports: ports(stillClock()) });
    const { termination, error } = await run.conversation.send('go').result;
    expect([termination, error?.message]).toEqual(['Error', 'disk full']);
    expectSame(run);
  });

  test('a run whose every later append fails replays to the same short log', async () => {
    const append = (count: number): void => {
      if (count > 2) throw new Error('disk gone');
    };
    const store = faultyStore({ append, atOnce });
    const run = await recorded({ model: reply(), tools: [echo], store, ports: ports(stillClock()) });
    expect((await run.conversation.send('go').result).termination).toBe('Error');
    expect(entriesOf(run.conversation.log(), 'run-stop')).toEqual([]);
    expectSame(run);
  });
});

/** A store whose append of that number waits until the test completes it or lets it fail. */
function slowStore(slow: number) {
  let land = (): void => {};
  let fail = (_: Error): void => {};
  let reached = false;
  const append = (count: number): void | Promise<void> => {
    if (count !== slow) return;
    reached = true;
    return new Promise((resolve, reject) => {
      land = resolve;
      fail = reject;
    });
  };
  return {
    store: faultyStore({ append, atOnce: false }),
    reached: () => reached,
    land: () => land(),
    fail: (error: Error) => fail(error),
  };
}

describe.each([1, 2, 3, 4])('a cancel that overtakes append %i', (slow) => {
  test.each(['lands before the grace is over', 'lands after it', 'fails before it is over', 'fails after it'])(
    'replays to the same log where the append %s',
    async (how) => {
      const clock = stillClock();
      const { store, reached, land, fail } = slowStore(slow);
      const run = await recorded({ model: reply(), tools: [echo], store, ports: ports(clock) });
      const sent = run.conversation.send('go');
      await until(reached);
      const cancelled = sent.cancel();
      await clock.advance(60);
      if (how.includes('after')) await clock.advance(100);
      run.conversation.followUp('and then');
      await settle();
      if (how.startsWith('lands')) land();
      else fail(new Error('too late'));
      await settle();
      await clock.advance(10_000);
      await cancelled;
      await sent.result;
      await settle();
      expect(run.recording().some(({ kind }) => kind === 'landed' || kind === 'failed')).toBe(true);
      expectSame(run);
    },
  );
});
