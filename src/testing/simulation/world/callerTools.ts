/**
 * The tools of a caller's agent while they run. Rule: a tool may wait on its agent's clock, or a moment in real time; one that does
 * neither can be ended by nobody, and is named.
 */
import { spawns } from '../../../runtime/subAgentPort.ts';
import type { ExecuteTool } from '../../../tools/execute.ts';

/** Milliseconds of real time that one execution may take. */
const PATIENCE_MS = 250;

/** As much as is used of the world. */
interface Surroundings {
  readonly processId: number;
  readonly pending: readonly unknown[];
  violate(invariant: string, detail: string): void;
}

interface Running {
  readonly name: string;
  readonly callId: string;
  readonly processId: number;
  /** Sleeps on the agent's clock that have not ended. */
  asleep: number;
  leftMs: number;
  readonly ended: Promise<void>;
}

export class CallerTools {
  readonly #running = new Set<Running>();
  readonly #world: Surroundings;

  constructor(world: Surroundings) {
    this.#world = world;
  }

  readonly execute: ExecuteTool = (definition, args, context) => {
    // A tool that spawns sub-agents takes as long as they do.
    if (spawns(definition)) return definition.execute(args as never, context);
    const { sleep, callId } = context;
    const about = { name: definition.name, callId, processId: this.#world.processId };
    const state = { asleep: 0 };
    const slept = (): void => {
      state.asleep -= 1;
    };
    const counted = (ms: number): Promise<void> => {
      state.asleep += 1;
      const sleeping = sleep(ms);
      sleeping.then(slept, slept);
      return sleeping;
    };
    const value = definition.execute(args as never, Object.assign(context, { sleep: counted }));
    if (value instanceof Promise) this.#follow(Object.assign(state, about), value);
    return value;
  };

  #follow(state: Omit<Running, 'ended' | 'leftMs'>, value: Promise<unknown>): void {
    const forget = (): void => void this.#running.delete(running);
    const running: Running = Object.assign(state, { leftMs: PATIENCE_MS, ended: value.then(forget, forget) });
    this.#running.add(running);
  }

  /** Resolves when no tool is at work but on the agent's clock, or one has used up its time. */
  async settled(): Promise<void> {
    for (;;) {
      const atWork = this.#atWork().filter(({ leftMs }) => leftMs > 0);
      if (atWork.length === 0) break;
      const took = await timed(
        Promise.race(atWork.map(({ ended }) => ended)),
        Math.max(...atWork.map(({ leftMs }) => leftMs)),
      );
      for (const running of atWork) running.leftMs -= Math.max(took, 1);
      // What follows of the end of a tool happens before the next look.
      await new Promise((resolve) => setImmediate(resolve));
    }
    // A tool may wait for a model, which the simulation answers.
    if (this.#world.pending.length > 0) return;
    for (const { name, callId } of this.#atWork()) {
      const detail = `the tool ${name} (${callId}) does not end within ${PATIENCE_MS} ms and does not wait on the agent's clock`;
      this.#world.violate('HANG', `${detail}: use context.sleep, or give the tool a double of what it waits for`);
    }
  }

  #atWork(): Running[] {
    for (const running of this.#running) if (running.processId !== this.#world.processId) this.#running.delete(running);
    return [...this.#running].filter(({ asleep }) => asleep === 0);
  }
}

/** Waits for an end, at most so long; how long it took. */
async function timed(end: Promise<unknown>, ms: number): Promise<number> {
  const since = performance.now();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([end, late]);
  clearTimeout(timer);
  return performance.now() - since;
}
