/**
 * Lives of a conversation that a durable engine holds. Attempts end at any point, and an abandoned one may continue beside the next. The
 * sources determine half of the seeds.
 */
import { describe, expect, it } from 'vitest';
import type { EngineAttempt } from '../../../src/restate/chain/engineAttempt.ts';
import { sourceSeed } from '../../support/sourceSeed.ts';
import { volume } from '../../support/tier.ts';
import { type EngineLife, simulateEngine } from './engineLife.ts';

const half = Math.ceil(volume.engineLives / 2);

async function brokenBy(first: number, lives: number, life: Omit<EngineLife, 'seed'> = {}): Promise<string[]> {
  const broken: string[] = [];
  for (let seed = first; seed < first + lives; seed++) {
    const [violation] = (await simulateEngine({ ...life, seed })).violations;
    if (!violation) continue;
    const { invariant, detail } = violation;
    broken.push(`seed ${seed} breaks ${invariant}: ${detail} (npm run simulate:engine -- --seed ${seed})`);
  }
  return broken;
}

/** The first of these lives that breaks the invariant. */
async function foundIn(
  lives: number,
  invariant: string,
  spoil: (invocation: EngineAttempt) => EngineAttempt,
  life: Omit<EngineLife, 'seed'> = {},
): Promise<boolean> {
  for (let seed = 1; seed <= lives; seed++) {
    const { violations } = await simulateEngine({ ...life, seed, deaths: 0.2, onRestart: 'idle', spoil });
    if (violations.some((violation) => violation.invariant === invariant)) return true;
  }
  return false;
}

describe('a conversation of a durable engine, whose attempts end at any point', () => {
  it.each([
    ['fixed seeds', 1],
    ['seeds of the sources', sourceSeed()],
  ])('REPEAT, ONCE, RESULT, LOG, REST, ANSWER, I6, I9, I13: breaks no invariant, %s', async (_, first) => {
    expect(await brokenBy(first, half)).toEqual([]);
  });

  it('CHILD: breaks no invariant where the agent has sub-agents', async () => {
    expect(await brokenBy(1, half, { hasSubAgents: true })).toEqual([]);
    expect(await brokenBy(sourceSeed(), half, { hasSubAgents: true })).toEqual([]);
  });

  it('a life in which a call with sub-agents had its result, and the worker died before they had ended', async () => {
    for (const seed of [930000065, 930000049])
      expect((await simulateEngine({ seed, hasSubAgents: true })).violations).toEqual([]);
  });

  it('a life in which a run with a lost tool requested a sub-agent while it was left', async () => {
    expect((await simulateEngine({ seed: 960060391, hasSubAgents: true })).violations).toEqual([]);
  });

  it('breaks no invariant where models and tools fail and wait, and runs have time limits, which the engine measures', async () => {
    expect(await brokenBy(1, half, { hasTimers: true })).toEqual([]);
    expect(await brokenBy(sourceSeed(), half, { hasTimers: true, repliesMost: 1 })).toEqual([]);
    expect(await brokenBy(1, half, { hasTimers: true, hasSubAgents: true })).toEqual([]);
    const { counts } = await simulateEngine({ seed: 3, hasTimers: true });
    expect(counts.timers).toBeGreaterThan(0);
  });

  it('breaks no invariant where another invocation continues after each reply of the model', async () => {
    expect(await brokenBy(1, half, { repliesMost: 1 })).toEqual([]);
    expect((await simulateEngine({ seed: 2, repliesMost: 1 })).counts.continued).toBeGreaterThan(0);
  });

  it('breaks no invariant where another version of the charts continues a run', async () => {
    expect(await brokenBy(1, half, { repliesMost: 1, sameVersion: 1 })).toEqual([]);
    expect(await brokenBy(1_000, half, { repliesMost: 1, sameVersion: 2 })).toEqual([]);
  });

  it('a life that once missed a reply, and one that once lost an act at the end of an invocation', async () => {
    for (const seed of [3064, 75]) expect((await simulateEngine({ seed, onRestart: 'idle' })).violations).toEqual([]);
  });

  it('a life in which a cancelled tool had printed something', async () => {
    expect((await simulateEngine({ seed: 36, onRestart: 'idle' })).violations).toEqual([]);
  });

  it('CANCEL: a cancel that names its run ends it, also where the run has lost a tool meanwhile', async () => {
    expect((await simulateEngine({ seed: 303, onRestart: 'idle' })).violations).toEqual([]);
  });

  it('a tool that starts although an earlier attempt had the intent is noticed', async () => {
    const spoil = (invocation: EngineAttempt): EngineAttempt =>
      changed(invocation, {
        step: async (name, act, rung) => {
          const value = await invocation.step(name, act, rung);
          return name === 'intent' ? ({ by: invocation.attempt } as typeof value) : value;
        },
      });
    expect(await foundIn(40, 'ONCE', spoil)).toBe(true);
  });

  it('an attempt that repeats with another time is noticed', async () => {
    const spoil = (invocation: EngineAttempt): EngineAttempt =>
      changed(invocation, {
        append: (entries, version) =>
          invocation.append(
            entries.map((entry) => ({ ...entry, at: Date.now() + Math.random() })),
            version,
          ),
      });
    expect(await foundIn(40, 'REPEAT', spoil)).toBe(true);
  });

  it('breaks no invariant where an agent with another plugin continues a run, whose chain it cannot repeat', async () => {
    const life = { repliesMost: 1, sameAgent: 1 };
    expect(await brokenBy(2_000, half, life)).toEqual([]);
    const { log } = await simulateEngine({ ...life, seed: 2, deaths: 0 });
    expect(log.some(({ type }) => type === 'run-stop')).toBe(true);
  });

  it('an attempt that starts its timers only where nothing is repeated is noticed', async () => {
    const spoil = (invocation: EngineAttempt): EngineAttempt => {
      let isRepeated = true;
      return changed(invocation, {
        step: (name, act, listener) =>
          invocation.step(
            name,
            () => {
              isRepeated = false;
              return act();
            },
            listener,
          ),
        startTimer: (timer) => void (isRepeated || invocation.startTimer(timer)),
      });
    };
    expect(await foundIn(40, 'REPEAT', spoil, { hasTimers: true })).toBe(true);
  });

  it('an act whose answer is lost is noticed', async () => {
    const spoil = (invocation: EngineAttempt): EngineAttempt =>
      changed(invocation, { answer: (to, answer) => void (to === 'act-2' || invocation.answer(to, answer)) });
    expect(await foundIn(3, 'ANSWER', spoil)).toBe(true);
  });
});

const changed = (invocation: EngineAttempt, members: Partial<EngineAttempt>): EngineAttempt =>
  new Proxy(invocation, {
    get(target, name) {
      const own = members[name as keyof EngineAttempt] ?? Reflect.get(target, name, target);
      return typeof own === 'function' && !(name in members) ? own.bind(target) : own;
    },
  });
