/**
 * Tracks the running code of a caller's agent: tools, plugins, hooks, rules and schemas. Invariant: such code may wait
 * a moment in real time, for a file or a process. A tool that waits for anything else is reported, because the
 * simulation cannot end it. A check is ended by its own time limit.
 */
import type { Completion, EffectRequest, Journal } from '../../../../machines/internal.ts';
import type { ExecuteTool } from '../../../tools/execute.ts';
import { spawns } from '../../../tools/tool.ts';
import { reportingEnd } from '../../executionEnd.ts';

/** The milliseconds of real time that one execution or check may take. */
const PATIENCE_MS = 250;
/** If the process gets no CPU for longer than this, only this much of its time is used up. */
const TURN_MS = 10;
/** Effects that run the caller's plugins, hooks, rules, approvals and schemas. */
const CHECKS: ReadonlySet<EffectRequest['kind']> = new Set(['gate', 'phase', 'afterTool']);

/** The parts of the world that are used here. */
interface Surroundings {
  readonly processId: number;
  readonly pending: readonly unknown[];
  reach(group: 'tools', name: string): void;
  violate(invariant: string, detail: string): void;
}

interface Running {
  /** Undefined for a check. */
  readonly tool?: { readonly name: string; readonly callId: string };
  readonly processId: number;
  /** The number of active sleeps on the agent's clock. */
  asleep: number;
  leftMs: number;
  readonly ended: Promise<void>;
}

export class CallerCode {
  readonly #running = new Set<Running>();
  readonly #world: Surroundings;

  constructor(world: Surroundings) {
    this.#world = world;
  }

  readonly execute: ExecuteTool = (definition, args, context) => {
    this.#world.reach('tools', definition.name);
    // A tool that spawns sub-agents takes as long as they do.
    if (spawns(definition)) return definition.execute(args as never, context);
    const { sleep, callId } = context;
    const state = { tool: { name: definition.name, callId }, processId: this.#world.processId, asleep: 0 };
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
    let isOver = false;
    let over = (): void => {};
    const ended = new Promise<void>((resolve) => {
      over = resolve;
    });
    const followed = reportingEnd(value, () => {
      isOver = true;
      over();
    });
    if (!isOver) this.#follow(state, ended);
    return followed;
  };

  /** Wraps the journal of a conversation, and waits for its checks until they are answered or dropped. */
  following(inner: Journal): Journal {
    const open = new Map<string, () => void>();
    const over = (id: string): void => {
      open.get(id)?.();
      open.delete(id);
    };
    return {
      start: (request) => {
        if (CHECKS.has(request.kind)) {
          const ended = new Promise<void>((resolve) => void open.set(request.id, resolve));
          this.#follow({ processId: this.#world.processId, asleep: 0 }, ended);
        }
        inner.start(request);
      },
      put: (completion) => inner.put(completion),
      append: (entries, at, carried) => inner.append(entries, at, carried),
      bell: (ring) => inner.bell(ring),
      drop(prefix) {
        for (const id of open.keys()) if (id.startsWith(prefix)) over(id);
        inner.drop(prefix);
      },
      take() {
        const delivery = inner.take();
        if (delivery) over(idOf(delivery.completion));
        return delivery;
      },
    };
  }

  #follow(state: Omit<Running, 'ended' | 'leftMs'>, value: Promise<unknown>): void {
    const forget = (): void => void this.#running.delete(running);
    const running: Running = Object.assign(state, { leftMs: PATIENCE_MS, ended: value.then(forget, forget) });
    this.#running.add(running);
  }

  /** Resolves when all running code waits for the agent's clock or has used up its time. */
  async settled(): Promise<void> {
    for (;;) {
      const atWork = this.#atWork().filter(({ leftMs }) => leftMs > 0);
      if (atWork.length === 0) break;
      const took = await timed(
        Promise.race(atWork.map(({ ended }) => ended)),
        Math.min(Math.max(...atWork.map(({ leftMs }) => leftMs)), TURN_MS),
      );
      for (const running of atWork) running.leftMs -= Math.min(Math.max(took, 1), TURN_MS);
      // The consequences of an end happen before the next look.
      await new Promise((resolve) => setImmediate(resolve));
    }
    // A tool may wait for a model, which the simulation answers.
    if (this.#world.pending.length > 0) return;
    for (const { tool } of this.#atWork()) {
      if (!tool) continue;
      const detail = `the tool ${tool.name} (${tool.callId}) does not end within ${PATIENCE_MS} ms and does not wait on the agent's clock`;
      this.#world.violate('HANG', `${detail}: use context.sleep, or give the tool a double of what it waits for`);
    }
  }

  #atWork(): Running[] {
    for (const running of this.#running) if (running.processId !== this.#world.processId) this.#running.delete(running);
    return [...this.#running].filter(({ asleep }) => asleep === 0);
  }
}

const idOf = (completion: Completion): string => ('id' in completion ? completion.id : '');

/** Waits for an end, at most `ms`, and returns the time that this took. */
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
