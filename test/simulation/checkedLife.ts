/**
 * Simulated lives of runchart itself: of an agent that has everything, or of a test's own, with every check. Rule: the same
 * seed and options give the same life as `simulate` of the library would with that world.
 */
import type { Interpreter } from '../../src/runtime/interpreter/interpreter.ts';
import {
  type Life,
  type SimulationOptions,
  type SimulationReport,
  simulateLife,
} from '../../src/testing/simulation/simulate.ts';
import { finalAnswersOf, fullAgent } from './agent/fullAgent.ts';
import { CheckedWorld } from './checks/checkedWorld.ts';
import { everyCheck } from './checks/everyCheck.ts';
import type { Equipment } from './equipment/equipment.ts';

export interface CheckedOptions extends SimulationOptions {
  /**
   * Receives what XState tells an inspector of the agent that has everything, with the number of choices made so far: so many
   * numbers of the report's tape lead to that moment.
   */
  inspect?(event: unknown, choices: number): void;
  /** Runs the charts of that agent. */
  interpreter?: Interpreter;
}

/** Makes what the agent of a life has besides, before its first process. */
export type Equip = (life: Life<CheckedWorld>) => Promise<readonly Equipment[]>;

/** One life. `equip` adds to the agent that has everything. */
export function simulate(
  { inspect, interpreter, ...options }: CheckedOptions,
  equip?: Equip,
): Promise<SimulationReport> {
  const { agent, args: examples } = options;
  return simulateLife(options, {
    world: (tape) => new CheckedWorld(tape, { examples, isFull: !agent }),
    async setUp(life) {
      const { world } = life;
      if (equip) world.equipment = await equip(life);
      world.checks = everyCheck(life);
      world.finalAnswers = finalAnswersOf(world);
      if (agent) return agent;
      const make = fullAgent(life, inspect !== undefined);
      return ({ ports, ...around }) =>
        make({
          ...around,
          ports: { ...ports, ...(interpreter && { interpreter }) },
          inspect: (event) => inspect?.(event, world.tape.taken.length),
        });
    },
  });
}
