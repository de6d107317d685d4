/** The compiled interpreter and XState on random charts: the same entries, requests, drops and actors after every event. */
import { describe, expect, it, vi } from 'vitest';
import type { AnyStateMachine } from 'xstate';
import type { EffectRequest, NewEntry } from '../../machines/index.ts';
import { compiled } from '../../src/runtime/interpreter/chartActor.ts';
import type { Interpreter } from '../../src/runtime/interpreter/interpreter.ts';
import { xstate } from '../../src/runtime/interpreter/xstate.ts';
import { chance } from '../support/seededChance.ts';
import { volume } from '../support/tier.ts';
import { EVENTS, randomChart } from './randomCharts.ts';

/** The comparable parts of an actor. */
interface Shown {
  getSnapshot(): { status: string; value?: unknown; context?: unknown; output?: unknown; children?: object };
}
type Living = Shown & { send(event: { type: string }): void; start(): void; stop(): void };

function tree(actor: Shown): unknown {
  const { status, value, context, output, children } = actor.getSnapshot();
  if (status === 'error') return { status };
  const inside = Object.entries((children ?? {}) as Record<string, Shown>).map(([id, child]) => [id, tree(child)]);
  return { status, value, context, output, inside };
}

/** The effects of a chart, and the actors that wait for an answer. */
class World {
  readonly done: unknown[] = [];
  readonly askers: Living[] = [];
  ask(asker: unknown, request: EffectRequest): void {
    this.done.push(['ask', request]);
    this.askers.push(asker as Living);
  }
  drop(prefix: string): void {
    this.done.push(['drop', prefix]);
  }
  log(entries: readonly NewEntry[]): void {
    this.done.push(['log', entries]);
  }
}

const input = { fuel: 6, count: 0, name: 'R' };

const make = (interpreter: Interpreter, machine: AnyStateMachine, world: World): Living =>
  interpreter({ machine, input, world, onError: () => world.done.push('broke') }) as Living;

/** The trace of one random story: the effects and the actors after each event. */
function live(interpreter: Interpreter, seed: number): unknown[] {
  const { below } = chance(seed);
  const child = randomChart(below, 'C');
  const machine = randomChart(below, 'R', child);
  const world = new World();
  const trace: unknown[] = [];
  const root = make(interpreter, machine, world);
  const look = (): void => void trace.push(structuredClone([tree(root), world.done.splice(0)]));
  root.start();
  look();
  for (let count = 0; count < 25 && root.getSnapshot().status === 'active'; count++) {
    const type = EVENTS[below(EVENTS.length)] as string;
    const askers = world.askers.filter((asker) => asker.getSnapshot().status === 'active');
    (askers[below(2 * askers.length)] ?? root).send({ type });
    look();
  }
  root.stop();
  look();
  return trace;
}

describe('the compiled interpreter', () => {
  it(`does the same as XState with ${volume.randomCharts} random charts`, () => {
    // XState warns about events for finished actors.
    vi.spyOn(console, 'warn').mockImplementation(() => {});
    let steps = 0;
    for (let seed = 1; seed <= volume.randomCharts; seed++) {
      const trace = live(compiled, seed);
      expect(trace, `seed ${seed}`).toEqual(live(xstate, seed));
      steps += trace.length;
    }
    expect(steps).toBeGreaterThan(10 * volume.randomCharts);
  });
});
