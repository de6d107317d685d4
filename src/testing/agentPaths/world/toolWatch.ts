/**
 * The executions of tools in an agent under test: when each began and settled, and what it did to the world outside. Rule:
 * the user's own code is executed, unless its tool is a stub or the script makes its end up; what a tool declares
 * (`readOnly`, `idempotent`, that it heeds its signal) is held against what it does.
 */
import { canonical, type Json } from '../../../../machines/internal.ts';
import { thrownText } from '../../../errors.ts';
import type { ToolContext, ToolDefinition } from '../../../tools/tool.ts';
import type { TestClock } from './testClock.ts';

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
    return this.#watch(execution, () => definition.execute(args as never, context));
  };

  /** Of this call, the newest first. */
  of(callId: string): Execution[] {
    return this.executions.filter((execution) => execution.callId === callId).reverse();
  }

  /** Executions that were aborted and go on. */
  get deaf(): readonly Execution[] {
    return this.executions.filter(({ aborted, settled, isMadeUp }) => aborted && !settled && !isMadeUp);
  }

  /** Executions that go on; a dead process's may do so for a while. */
  get underWay(): readonly Execution[] {
    return this.executions.filter(({ settled, isMadeUp }) => !settled && !isMadeUp);
  }

  #begin(definition: ToolDefinition, args: unknown, context: ToolContext, isMadeUp: boolean): Execution {
    const others = this.underWay;
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
    // A generator ends when its signal is aborted.
    if (!(value instanceof Promise)) {
      this.#over(execution);
      return isStream(value) ? this.#listened(execution, value) : value;
    }
    value.then(
      () => this.#over(execution),
      (error: unknown) => this.#threw(execution, error),
    );
    return value;
  }

  #listened(execution: Execution, stream: AsyncGenerator): AsyncGenerator {
    const { next } = stream;
    stream.next = (...given) =>
      next.apply(stream, given).catch((error: unknown) => {
        execution.threw = thrownText(error);
        throw error;
      });
    return stream;
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

const isStream = (value: unknown): value is AsyncGenerator =>
  typeof value === 'object' && value !== null && Symbol.asyncIterator in value && 'next' in value;

/** What is wrong with what the executions so far did, by what their tools declare. */
export function declarationFaults({ executions }: Pick<ToolWatch, 'executions'>): string[] {
  const faults: string[] = [];
  for (const execution of executions) {
    const { definition, isMadeUp, settled, shared, before, after, aborted, atAbort } = execution;
    if (isMadeUp || !settled || after === undefined) continue;
    const { name } = definition;
    if (definition.readOnly && !shared && after !== before)
      faults.push(`readOnly: ${name} is declared readOnly and changed the world outside`);
    const wentOn = aborted && atAbort !== undefined && after !== atAbort && after !== before;
    if (wentOn && !shared) faults.push(`abort: ${name} went on and changed the world after it was cancelled`);
    const first = executions.find((other) => other !== execution && isRepeatedBy(other, execution));
    if (first && !shared && after !== first.after)
      faults.push(`idempotent: ${name} ran twice under one key and changed the world twice`);
  }
  return [...new Set(faults)];
}

/** Whether the second execution repeats the first, which had ended: under the same idempotency key, in the world that the first left. */
function isRepeatedBy(first: Execution, second: Execution): boolean {
  if (!second.definition.idempotent || first.isMadeUp || !first.settled || first.aborted) return false;
  return first.key === second.key && first.after === second.before && !first.shared && first.args !== undefined;
}
