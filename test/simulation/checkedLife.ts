/**
 * Simulated lives with every check: of the agent with every ability, or of a test's own agent. Invariant: the same seed
 * and options give the same life as the library's `simulate` with that world.
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
   * Receives each inspection event of XState, with the number of choices so far. That prefix of the report's tape leads
   * to the same moment.
   */
  inspect?(event: unknown, choices: number): void;
  /** Runs the agent's charts. */
  interpreter?: Interpreter;
}

/** Creates the additional equipment of a life's agent, before its first process. */
export type Equip = (life: Life<CheckedWorld>) => Promise<readonly Equipment[]>;

/** One life. `equip` adds to the agent with every ability. */
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
