/**
 * The executions of tools in an agent under test: when each began and settled, and what it did to the world outside. Rule:
 * the user's own code is executed, unless its tool is a stub or the script makes its end up; what a tool declares
 * (`readOnly`, `idempotent`, that it heeds its signal) is held against what it does.
 */
import { canonical, type Json } from '../../../../machines/internal.ts';
import { thrownText } from '../../../errors.ts';
import type { ToolContext, ToolDefinition } from '../../../tools/tool.ts';
import { reportingEnd } from '../../executionEnd.ts';
import type { TestClock } from '../../world/testClock.ts';
import { isForeign, type OwnTimers, runningIn, timersSetIn } from './platformTimers.ts';

/** The world that tools act on. */
export interface Outside {
  /** Brings it back to its beginning. */
  reset(): void | Promise<void>;
  /** What there is of it; JSON. */
  state(): Json;
}

export interface ToolWatchOptions {
  clock: TestClock;
  outside: Outside | undefined;
  /** Tools whose ends are made up. */
  isStub(name: string): boolean;
  /** How the script makes the execution of this call end. */
  madeEnd(callId: string): 'fail' | 'timeOut' | undefined;
  /** The call is one of the conversation itself. */
  isOwn(conversationId: string): boolean;
  stirred(): void;
}

export interface Execution {
  readonly callId: string;
  readonly definition: ToolDefinition;
  readonly args: unknown;
  readonly key: string;
  /** Its own code does not run. */
  readonly isMadeUp: boolean;
  settled: boolean;
  /** Others ran at the same time. */
  shared: boolean;
  /** How often it sleeps on the agent's clock now. */
  asleep: number;
  /** The world outside when it began, when its signal was aborted, and when it settled. */
  readonly before: string | undefined;
  atAbort?: string | undefined;
  after?: string | undefined;
  aborted: boolean;
  /** Its process died. */
  cutOff: boolean;
  /** Listeners on its signal that it has added and not removed. */
  listeners: number;
  /** Timers of the platform that it has set and not ended. */
  readonly timers: OwnTimers;
  /** What it threw. */
  threw?: string;
  /** Lets the time of a made-up time-out pass. */
  timeOut?(): void;
}

export class ToolWatch {
  readonly executions: Execution[] = [];
  readonly #options: ToolWatchOptions;

  constructor(options: ToolWatchOptions) {
    this.#options = options;
  }

  /** In place of the tool's own `execute`. */
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

  /** The executions of this call, newest first. */
  of(callId: string): Execution[] {
    return this.executions.filter((execution) => execution.callId === callId).reverse();
  }

  /** Executions that continue after their abort. */
  get deaf(): readonly Execution[] {
    return this.executions.filter(({ aborted, settled, isMadeUp }) => aborted && !settled && !isMadeUp);
  }

  /** Running executions. Those of a dead process may continue for a while. */
  get underWay(): readonly Execution[] {
    return this.executions.filter(({ settled, isMadeUp }) => !settled && !isMadeUp);
  }

  /** Executions with running timers. Those of a dead process do not count. */
  get leaving(): readonly Execution[] {
    return this.executions.filter(({ timers, cutOff }) => !cutOff && runningIn(timers).length > 0);
  }

  /** Nothing that executions have set rings any more. */
  clearTimers(): void {
    for (const { timers } of this.executions) for (const timer of timers) clearInterval(timer);
  }

  /** The process died. */
  cutOff(): void {
    for (const execution of this.underWay) execution.cutOff = true;
  }

  #begin(definition: ToolDefinition, args: unknown, context: ToolContext, isMadeUp: boolean): Execution {
    // What sleeps on the clock of a dead process does nothing more.
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

/** `count`, `value` and the error itself come before who called. */
const LISTENS = 3;

/** Counts what the tool's own code listens for. */
function countListeners(signal: AbortSignal, execution: Execution): void {
  const own = new Set<unknown>();
  type Given = Parameters<AbortSignal['addEventListener']>;
  const count = (name: 'addEventListener' | 'removeEventListener', seen: (...given: Given) => void): void => {
    const inner = signal[name];
    const value = (...given: Given): void => {
      seen(...given);
      execution.listeners = own.size;
      inner.apply(signal, given as Parameters<typeof inner>);
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

/** What an execution that nothing interrupted makes of the world, by its tool, its arguments and the world before. */
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

/** What is wrong with what the executions so far did, by what their tools declare. */
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
 * Whether the second execution repeats what the first has done, under the same idempotency key and in the world that the first
 * left. A first one that was cut off may have done a part: the second is right where the two come to what one does alone.
 */
function isRepeatedBy(first: Execution, second: Execution, clean: CleanEffects): boolean {
  if (first === second || first.isMadeUp || first.shared || first.key !== second.key) return false;
  if (second.after === second.before) return false;
  if (first.settled && !first.aborted && !first.cutOff) return first.after === second.before;
  const whole = clean.of(first);
  return whole !== undefined && first.before !== second.before && second.after !== whole;
}
