/**
 * The tool executions of an agent under test: their start, their end, and their effects on the outside world.
 * Invariant: the user's own code runs, unless the tool is a stub or the script determines the end. Each tool is checked
 * against its declaration (`readOnly`, `idempotent`, its use of the signal).
 */
import { canonical, type Json } from '../../../../machines/internal.ts';
import { thrownText } from '../../../errors.ts';
import type { ToolContext, ToolDefinition } from '../../../tools/tool.ts';
import { reportingEnd } from '../../executionEnd.ts';
import type { TestClock } from '../../world/testClock.ts';
import { isForeign, type OwnTimers, runningIn, timersSetIn } from './platformTimers.ts';

/** The outside world that tools change. */
export interface Outside {
  /** Restores its initial state. */
  reset(): void | Promise<void>;
  /** Returns its state as JSON. */
  state(): Json;
}

export interface ToolWatchOptions {
  clock: TestClock;
  outside: Outside | undefined;
  /** Returns true for tools whose results are made up. */
  isStub(name: string): boolean;
  /** Returns how the script ends the execution of this call. */
  madeEnd(callId: string): 'fail' | 'timeOut' | undefined;
  /** Returns true if the call belongs to the conversation itself. */
  isOwn(conversationId: string): boolean;
  stirred(): void;
}

export interface Execution {
  readonly callId: string;
  readonly definition: ToolDefinition;
  readonly args: unknown;
  readonly key: string;
  /** The tool's own code does not run. */
  readonly isMadeUp: boolean;
  settled: boolean;
  /** Other executions ran at the same time. */
  shared: boolean;
  /** The number of its current sleeps on the agent's clock. */
  asleep: number;
  /** The outside world at the start, at the abort of the signal, and at the end. */
  readonly before: string | undefined;
  atAbort?: string | undefined;
  after?: string | undefined;
  aborted: boolean;
  /** Its process died. */
  cutOff: boolean;
  /** The number of listeners on its signal that it did not remove. */
  listeners: number;
  /** The platform timers that it set and that are still active. */
  readonly timers: OwnTimers;
  /** The error that it threw. */
  threw?: string;
  /** Ends the wait of a made-up timeout. */
  timeOut?(): void;
}

export class ToolWatch {
  readonly executions: Execution[] = [];
  readonly #options: ToolWatchOptions;

  constructor(options: ToolWatchOptions) {
    this.#options = options;
  }

  /** Replaces the tool's own `execute`. */
  readonly execute = (definition: ToolDefinition, args: unknown, context: ToolContext): unknown => {
    const { clock, isOwn, isStub, madeEnd } = this.#options;
    const isOwned = isOwn(context.conversationId);
    const made = isOwned ? madeEnd(context.callId) : undefined;
    const stub = isStub(definition.name);
    const execution = this.#begin(definition, args, context, stub || made !== undefined);
    if (made === 'fail')
      return this.#settle(execution, Promise.reject(new Error(`${definition.name} was made to fail`)));
    if (made === 'timeOut') {
      execution.timeOut = clock.ringLater();
      return new Promise(() => undefined);
    }
    if (stub) return this.#settle(execution, Promise.resolve('done'));
    const { sleep } = context;
    context.sleep = (ms) => {
      const slept = clock.as(`sleep ${context.callId}`, () => sleep(ms));
      execution.asleep += 1;
      const awake = (): void => {
        execution.asleep -= 1;
      };
      slept.then(awake, awake);
      return slept;
    };
    countListeners(context.signal, execution);
    return this.#watch(execution, () =>
      timersSetIn(execution.timers, () => definition.execute(args as never, context)),
    );
  };

  /** Returns the executions of this call, newest first. */
  of(callId: string): Execution[] {
    return this.executions.filter((execution) => execution.callId === callId).reverse();
  }

  /** Executions that continue after their abort. */
  get deaf(): readonly Execution[] {
    return this.executions.filter(({ aborted, settled, isMadeUp }) => aborted && !settled && !isMadeUp);
  }

  /** Running executions. Executions of a dead process may continue for a while. */
  get underWay(): readonly Execution[] {
    return this.executions.filter(({ settled, isMadeUp }) => !settled && !isMadeUp);
  }

  /** Executions with active timers. Those of a dead process do not count. */
  get leaving(): readonly Execution[] {
    return this.executions.filter(({ timers, cutOff }) => !cutOff && runningIn(timers).length > 0);
  }

  /** Stops all timers that executions have set. */
  clearTimers(): void {
    for (const { timers } of this.executions) for (const timer of timers) clearInterval(timer);
  }

  /** Marks all executions as interrupted by the death of their process. */
  cutOff(): void {
    for (const execution of this.underWay) execution.cutOff = true;
  }

  #begin(definition: ToolDefinition, args: unknown, context: ToolContext, isMadeUp: boolean): Execution {
    // A tool that sleeps on the clock of a dead process never continues.
    const others = this.underWay.filter(({ cutOff, asleep }) => !cutOff || asleep === 0);
    for (const other of others) other.shared = true;
    const execution: Execution = {
      callId: context.callId,
      definition,
      args,
      key: context.idempotencyKey,
      isMadeUp,
      settled: false,
      shared: others.length > 0,
      asleep: 0,
      before: this.#look(),
      aborted: false,
      cutOff: false,
      listeners: 0,
      timers: new Set(),
    };
    this.executions.push(execution);
    const abort = (): void => {
      execution.aborted = true;
      if (!execution.settled) execution.atAbort = this.#look();
    };
    if (context.signal.aborted) abort();
    else context.signal.addEventListener('abort', abort, { once: true });
    this.#options.stirred();
    return execution;
  }

  #watch(execution: Execution, act: () => unknown): unknown {
    try {
      return this.#settle(execution, act());
    } catch (error) {
      this.#threw(execution, error);
      throw error;
    }
  }

  #settle(execution: Execution, value: unknown): unknown {
    return reportingEnd(value, (failure) => {
      if (failure) this.#threw(execution, failure.error);
      else this.#over(execution);
    });
  }

  #threw(execution: Execution, error: unknown): void {
    execution.threw = thrownText(error);
    this.#over(execution);
  }

  #over(execution: Execution): void {
    execution.settled = true;
    execution.after = this.#look();
    this.#options.stirred();
  }

  #look(): string | undefined {
    const { outside } = this.#options;
    return outside && canonical(outside.state());
  }
}

/** The stack contains `count`, `value` and the error before the caller. */
const LISTENS = 3;

/** Counts the listeners that the tool's own code adds. */
function countListeners(signal: AbortSignal, execution: Execution): void {
  const own = new Set<unknown>();
  type ListenerArgs = Parameters<AbortSignal['addEventListener']>;
  const count = (name: 'addEventListener' | 'removeEventListener', seen: (...args: ListenerArgs) => void): void => {
    const inner = signal[name];
    const value = (...args: ListenerArgs): void => {
      seen(...args);
      execution.listeners = own.size;
      inner.apply(signal, args as Parameters<typeof inner>);
    };
    Object.defineProperty(signal, name, { value, configurable: true });
  };
  const remove = (listener: unknown): void => {
    own.delete(listener);
    execution.listeners = own.size;
  };
  count('addEventListener', (_, listener, options) => {
    if (isForeign(new Error('who adds it').stack, LISTENS)) return;
    const until = typeof options === 'object' ? options.signal : undefined;
    if (until?.aborted) return;
    own.add(listener);
    until?.addEventListener('abort', () => remove(listener), { once: true });
  });
  count('removeEventListener', (_, listener) => remove(listener));
}

/** The outside world after uninterrupted executions, by tool, arguments and the world before. */
export class CleanEffects {
  readonly #after = new Map<string, string>();

  learn(executions: readonly Execution[]): void {
    for (const execution of executions) {
      const { isMadeUp, settled, shared, aborted, cutOff, threw, after } = execution;
      const isClean = settled && !isMadeUp && !shared && !aborted && !cutOff && threw === undefined;
      if (isClean && after !== undefined && !this.#after.has(keyOf(execution)))
        this.#after.set(keyOf(execution), after);
    }
  }

  of(execution: Execution): string | undefined {
    return this.#after.get(keyOf(execution));
  }
}

const keyOf = ({ definition, args, before }: Execution): string =>
  JSON.stringify([definition.name, canonicalOf(args), before ?? '']);
const canonicalOf = (args: unknown): string => {
  try {
    return canonical(args as Json);
  } catch {
    return '';
  }
};

/** Returns the differences between the behaviour of executions and the declarations of their tools. */
export function declarationFaults({ executions }: Pick<ToolWatch, 'executions'>, clean = new CleanEffects()): string[] {
  const faults: string[] = [];
  for (const execution of executions) {
    const { definition, isMadeUp, settled, shared, before, after, aborted, atAbort, listeners } = execution;
    const { name } = definition;
    if (settled && !isMadeUp && listeners > 0 && !aborted)
      faults.push(`listener: ${name} left ${listeners} of its listeners on its signal when it ended`);
    if (isMadeUp || !settled || after === undefined) continue;
    if (definition.readOnly && !shared && after !== before)
      faults.push(`readOnly: ${name} is declared readOnly and changed the world outside`);
    const wentOn = aborted && atAbort !== undefined && after !== atAbort && after !== before;
    if (wentOn && !shared) faults.push(`abort: ${name} went on and changed the world after it was cancelled`);
    if (definition.idempotent && !shared && executions.some((first) => isRepeatedBy(first, execution, clean)))
      faults.push(`idempotent: ${name} ran twice under one key and changed the world twice`);
  }
  return [...new Set(faults)];
}

/**
 * Returns true if the second execution repeats the effects of the first, with the same idempotency key and the world
 * after the first. An interrupted first execution may be incomplete. The second is correct if both together have the
 * effect of one.
 */
function isRepeatedBy(first: Execution, second: Execution, clean: CleanEffects): boolean {
  if (first === second || first.isMadeUp || first.shared || first.key !== second.key) return false;
  if (second.after === second.before) return false;
  if (first.settled && !first.aborted && !first.cutOff) return first.after === second.before;
  const whole = clean.of(first);
  return whole !== undefined && first.before !== second.before && second.after !== whole;
}
