/** One tape drives everything: seeds, recorded lists and shrunken lists. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createAgent, memoryStore } from '../../src/index.ts';
import { Observed } from '../../src/inspect/observed.ts';
import { PageConnection } from '../../src/inspect/page.ts';
import { RecordLog } from '../../src/inspect/recordLog.ts';
import { everyPart, onDemand } from '../../src/onDemand.ts';
import { scriptedModel, shrink } from '../../src/testing/index.ts';
import { HANG_MS, volume } from '../support/tier.ts';
import { simulate } from './checkedLife.ts';

const text = (value: unknown): string => JSON.stringify(value);

describe('a simulated life', () => {
  it('INV-9: is the same for the same seed, byte for byte', { timeout: HANG_MS }, async () => {
    for (let seed = 1; seed <= volume.livesTwice; seed++) {
      const [once, again] = [await simulate({ seed }), await simulate({ seed })];
      expect(text(again.log)).toBe(text(once.log));
      expect(again.tape).toEqual(once.tape);
    }
  });

  it('is the same when its tape is played again, whatever the seed', { timeout: HANG_MS }, async () => {
    for (let seed = 1; seed <= volume.livesTwice; seed++) {
      const life = await simulate({ seed });
      const replayed = await simulate({ seed: 0, tape: life.tape });
      expect(text(replayed.log)).toBe(text(life.log));
    }
  });

  it('is the same when an inspector watches it and its page reads all of it', { timeout: HANG_MS }, async () => {
    let shown = 0;
    let asked = 0;
    for (let seed = 1; seed <= volume.livesTwice / 2; seed++) {
      const records = new RecordLog(() => 0);
      const observed = new Observed(records);
      const timers: (() => void)[] = [];
      const channel = {
        waiting: 0,
        drop: () => {},
        send(frame: string) {
          shown += frame.length;
        },
      };
      const page = new PageConnection(channel, {
        ...{ records, observed, session: 's', version: '0', control: false, stallMs: 10_000 },
        appContext: () => null,
        now: () => asked,
        setTimer(_ms, fire) {
          timers.push(fire);
          return () => {};
        },
      });
      page.receive('{"type":"subscribe","from":0}');
      const inspect = (event: unknown): void => {
        observed.observe(event);
        for (const fire of timers.splice(0)) fire();
        asked += 1;
        page.receive(JSON.stringify({ type: 'payload', ask: asked, n: records.next - 1 }));
        page.receive(JSON.stringify({ type: 'context', ask: asked, actor: `a${asked % 9}` }));
      };
      const [alone, watched] = [await simulate({ seed }), await simulate({ seed, inspect })];
      page.close();
      observed.close();
      expect(text(watched.log)).toBe(text(alone.log));
      expect(watched.tape).toEqual(alone.tape);
      expect(watched.violations).toEqual([]);
      expect([...records.since(0)].filter(({ type }) => type === 'transition').length).toBeGreaterThan(5);
    }
    expect(shown).toBeGreaterThan(50_000);
  });

  it('breaks no invariant on any tape, the empty one included', { timeout: HANG_MS }, async () => {
    const tapes = fc.array(fc.nat(), { maxLength: 400 });
    await fc.assert(
      fc.asyncProperty(tapes, async (tape) => {
        expect((await simulate({ seed: 0, tape })).violations).toEqual([]);
      }),
      { numRuns: volume.tapes, examples: [[[]]] },
    );
  });

  it('has crashes, faults and many steps in it, and lives are lived side by side with one listener', async () => {
    const listeners = process.listenerCount('unhandledRejection');
    const living = Array.from({ length: 20 }, (_, seed) => simulate({ seed: seed + 1 }));
    await new Promise((resolve) => setImmediate(resolve));
    expect(process.listenerCount('unhandledRejection')).toBe(listeners + 1);
    const lives = await Promise.all(living);
    expect(process.listenerCount('unhandledRejection')).toBe(listeners);
    expect(lives.some(({ crashes }) => crashes > 2)).toBe(true);
    expect(lives.filter(({ steps }) => steps >= 25).length).toBeGreaterThan(10);
    expect(new Set(lives.flatMap(({ faults }) => Object.keys(faults))).size).toBeGreaterThan(15);
  });

  it('takes an agent of the caller, anew for each process', async () => {
    let made = 0;
    const report = await simulate({
      seed: 7,
      agent: ({ ports, store }) => {
        made += 1;
        return createAgent({ model: scriptedModel(Array(50).fill('hello')), store, ports });
      },
    });
    expect(report.violations).toEqual([]);
    expect(made).toBeGreaterThan(1);
  });
});

describe('an agent of the caller', () => {
  const model = () => scriptedModel(Array(50).fill('hello'));

  it('needs no store of its own: its log outlives each crash', async () => {
    const lives = [];
    for (let seed = 1; seed <= 20; seed++) {
      lives.push(await simulate({ seed, agent: ({ ports }) => createAgent({ model: model(), ports }) }));
    }
    expect(lives.flatMap(({ violations }) => violations)).toEqual([]);
    expect(lives.filter(({ crashes, log }) => crashes > 2 && log.length > 10)).not.toEqual([]);
  });

  it('is a setup violation if it keeps its log in another store, which no crash erases', async () => {
    const { violations } = await simulate({
      seed: 1,
      agent: ({ ports }) => createAgent({ model: model(), ports, store: memoryStore() }),
    });
    expect(violations[0]).toMatchObject({ invariant: 'setup', detail: expect.stringContaining('another store') });
  });

  it('is a setup violation if it leaves out the ports, so that no seed determines its behavior', async () => {
    const { violations } = await simulate({
      seed: 1,
      agent: ({ store }) => createAgent({ model: model(), store }),
    });
    expect(violations).toContainEqual({ invariant: 'setup', detail: expect.stringContaining('ports') });
  });
});

describe('a tape that breaks something', () => {
  it('is shrunk to a shorter one that still breaks the same', async () => {
    const whole = await simulate({ seed: 1, maxSteps: 0 });
    const live = async (tape: readonly number[]) => {
      const broken = tape.includes(7);
      const violations = broken ? [{ invariant: 'I0', detail: 'a seven' }] : [];
      return { ...whole, log: [], tape, violations };
    };
    const tape = [...Array(40).fill(3), 7, ...Array(40).fill(5)];
    expect(await shrink(live, tape, 'I0')).toEqual([7]);
  });

  it('is never shrunk to one that breaks only something else, in any order of the two', async () => {
    const whole = await simulate({ seed: 1, maxSteps: 0 });
    const live = async (tape: readonly number[]) => {
      const found = [
        // Every shorter tape breaks this one, down to the empty tape.
        { invariant: 'I1', detail: 'anything' },
        ...(tape.includes(7) ? [{ invariant: 'I0', detail: 'a seven' }] : []),
      ];
      return { ...whole, log: [], tape, violations: tape[0] === 3 ? found.reverse() : found };
    };
    for (const before of [0, 1, 9])
      for (const after of [0, 1, 9]) {
        const tape = [...Array(before).fill(3), 7, ...Array(after).fill(5)];
        expect(await shrink(live, tape, 'I0')).toEqual([7]);
        expect(await shrink(live, tape, 'I1')).toEqual([]);
      }
  });
});

it('waits, before a life begins, also for the parts that are named by parts', async () => {
  const loaded: string[] = [];
  const part = (name: string, inside: () => void) =>
    onDemand(async () => {
      await new Promise((resolve) => setImmediate(resolve));
      loaded.push(name);
      inside();
    });
  part('outer', () => void part('inner', () => void part('innermost', () => undefined)));
  await everyPart();
  expect(loaded).toEqual(['outer', 'inner', 'innermost']);
});
