/**
 * Executes a tool call. Rule: the result is always one value: a result, an error or a suspension. A tool that does not
 * settle in time is abandoned, and a later result is ignored.
 */
import {
  type EffectRequest,
  type Json,
  type LogEntry,
  type LogState,
  type RequestInfo,
  type ToolValue,
  textOfContent,
} from '../../machines/internal.ts';
import { type Attachments, holdsAttachment } from '../content/content.ts';
import { RunchartError, thrownText } from '../errors.ts';
import type { Live } from '../live.ts';
import { onDemand } from '../onDemand.ts';
import type { EffectAbort } from '../timeLimit.ts';
import { answerOf, placeCall, type ToolContext, type ToolDefinition, tellLackOfSandbox, waitCloserOf } from './tool.ts';
import type { PreparedCall, Toolbox } from './toolbox.ts';
import { cut, type Erred, erred, isError, type ResultLimits, side, toolValue, withEditNote } from './toolResult.ts';
import type { Retry, RetryPolicy, retryOf, ToolFailure } from './toolRetry.ts';
import { type SignalSource, toolSignal } from './toolSignal.ts';

/** Loaded for conversations whose policy `toolRetry` repeats failing tools. */
export const loadRetry = onDemand(() => import('./toolRetry.ts'));

type ToolRequest = Extract<EffectRequest, { kind: 'tool' }>;

/** The dependencies of the tools of one conversation. */
export interface ToolSurroundings {
  ports: TimeSource & { random(): number; execute?: ExecuteTool; journal?: unknown };
  around: {
    conversationId: string;
    cwd: string;
    entries: readonly LogEntry[];
    partials: Map<string, () => string>;
    logState: LogState;
    request: { origin(callId: string): RequestInfo };
    diagnose(code: string, detail?: Json): void;
  };
  policies: {
    limits: { toolMs: number; resultBytes: number };
    toolRetry: RetryPolicy;
  };
  /** Present if the policy `toolRetry` repeats failing tools. */
  retryOf?: typeof retryOf;
  toolbox: Toolbox;
  redact: ResultLimits['redact'];
  attachments: Attachments;
  /** Undefined if there is no subscriber. */
  live(): ((signal: Live) => void) | undefined;
  state(): { readonly [key: string]: Json };
  /** Attaches the conversation's sub-agents, if there are any, to the context of a call. */
  attach(context: ToolContext): void;
}

/** Runs the calls of one conversation after they have passed the permission gate. */
export class ToolRunner {
  readonly #with: ToolSurroundings;
  /** Calls that passed the gate and have not run. */
  readonly #ready = new Map<string, PreparedCall>();
  /** For each waiting call, the function that releases what its tool holds. */
  readonly #waits = new Map<string, () => void>();

  constructor(surroundings: ToolSurroundings) {
    this.#with = surroundings;
  }

  /** Stores the call as it will run. */
  readonly ready = (prepared: PreparedCall): void => void this.#ready.set(prepared.call.callId, prepared);

  /** The call as `ready` stored it last. */
  preparedCall(callId: string): PreparedCall | undefined {
    return this.#ready.get(callId);
  }

  /** Forgets prepared calls that have ended: skipped, cancelled while waiting, or not to be executed again. */
  forgetEnded(): void {
    const { open } = this.#with.around.logState;
    for (const callId of this.#ready.keys()) if (!open.has(callId)) this.#ready.delete(callId);
  }

  /** Called when the call has its result. A tool that still holds something for the call releases it. */
  resultLanded(callId: string): void {
    const close = this.#waits.get(callId);
    this.#waits.delete(callId);
    close?.();
  }

  async run(request: ToolRequest, abort: EffectAbort): Promise<ToolValue> {
    const { runId, callId, idempotencyKey, decision } = request;
    // The tool that waited now runs again.
    this.#waits.delete(callId);
    const { policies, ports, around, redact, live, attachments } = this.#with;
    const { setTimer, execute } = ports;
    const prepared = await this.#take(callId, abort);
    // A call that was cancelled before its start does not run.
    if (abort.aborted) return erred('cancelled', 'the call was cancelled before it began');
    if (!prepared) return erred('error', 'the call is not known any more');
    const since = ports.now();
    const { conversationId, cwd, diagnose } = around;
    const { resultBytes, toolMs } = policies.limits;
    const show = (update: Json): void =>
      live()?.({ type: 'tool-progress', runId, callId, elapsedMs: ports.now() - since, update });
    let isOver = false;
    let isRefused = false;
    const progress = (update: Json): void => {
      if (isOver || abort.aborted || !live()) return;
      const progressValue = side('the progress of the call', update, { resultBytes, redact });
      if ('value' in progressValue) return show(redact(progressValue.value));
      if (!isRefused) diagnose('progress_refused', { callId, message: textOfContent(progressValue.content) });
      isRefused = true;
    };
    const retry = this.#with.retryOf?.(policies, ports);
    const timeoutMs = prepared.definition.timeoutMs ?? toolMs;
    const listenerFailed = (error: unknown): void => diagnose('listener_error', { callId, message: thrownText(error) });
    const { clock, end } = callClock(ports, abort);
    const fields = {
      ...{ callId, conversationId, runId, cwd, idempotencyKey, state: this.#with.state(), progress, ...clock },
      ...(decision && { decision }),
      origin: around.request.origin(callId),
      outside: prepared.grant?.outside,
      grant: prepared.grant,
    };
    const context: ToolContext = withSignal(fields, { abort, timeoutMs, listenerFailed });
    this.#with.attach(context);
    placeCall(context, around, ports.journal ? undefined : (text) => cut(redact(text), resultBytes));
    const late = (): void => diagnose('late_result', { callId });
    tellLackOfSandbox(prepared.tool, around);
    show('started');
    const limits = { timeoutMs, resultBytes, redact };
    const rawValue = await executeTool(prepared, { context, abort, ...limits, setTimer, late, execute, retry });
    end();
    const close = rawValue.kind === 'pending' ? waitCloserOf(context) : undefined;
    if (close) this.#waits.set(callId, close);
    isOver = true;
    // A call that was cancelled has its result already.
    if (!abort.aborted || ('code' in rawValue && rawValue.code === 'timeout')) show('ended');
    const value = holdsAttachment(rawValue)
      ? { ...rawValue, content: await attachments.keepResult(rawValue.content, diagnose) }
      : rawValue;
    // The policy may execute the prepared call again.
    if (value.kind === 'erred' && value.retry) this.#ready.set(callId, prepared);
    const record = around.logState.calls.get(callId);
    return withEditNote(value, { call: prepared.call, record, suspension: request.suspension }, resultBytes);
  }

  async #take(callId: string, abort: EffectAbort): Promise<PreparedCall | undefined> {
    const ready = this.#ready.get(callId);
    this.#ready.delete(callId);
    if (ready) return ready;
    const { around, toolbox, ports } = this.#with;
    const record = around.logState.calls.get(callId);
    const preparation = record && (await toolbox.prepare(record, { setTimer: ports.setTimer, signal: abort.signal }));
    return preparation?.kind === 'ready' ? preparation.prepared : undefined;
  }
}

const SOURCE: unique symbol = Symbol('signal source');
type Sourced = { readonly [SOURCE]: SignalSource & { made?: AbortSignal } };

// One getter for all calls: a getter for each call would keep its conversation alive until the next full garbage
// collection (`test/scenarios/garbage.test.ts`).
const lazySignal: PropertyDescriptor & ThisType<Sourced> = {
  enumerable: true,
  get() {
    const source = this[SOURCE];
    source.made ??= toolSignal(source);
    return source.made;
  },
};

/** Adds the call's signal to the context, created on first access: most tools never use it. */
function withSignal<Context extends object>(context: Context, source: SignalSource) {
  Object.defineProperty(context, SOURCE, { value: source });
  return Object.defineProperty(context, 'signal', lazySignal) as Context & { readonly signal: AbortSignal };
}

/** Replaces the call of `definition.execute`; receives the same arguments and returns the same kind of value. */
export type ExecuteTool = (definition: ToolDefinition, args: unknown, context: ToolContext) => unknown;

export interface Execution extends ResultLimits {
  context: ToolContext;
  /** A time-out or a cancellation aborts it. */
  abort: EffectAbort;
  timeoutMs: number;
  setTimer(ms: number, fire: () => void): () => void;
  /** Decides whether a failure leads to another execution. Undefined if no tool is repeated. */
  retry?: ((error: unknown, kind: ToolFailure, isIdempotent: boolean) => Retry) | undefined;
  /** Replaces the tool's own `execute`. */
  execute?: ExecuteTool | undefined;
  /** Called for anything that a tool returns or throws after its result was accepted. */
  late(): void;
}

/** Runs one prepared call; never rejects. */
export function executeTool(prepared: PreparedCall, execution: Execution): Promise<ToolValue> {
  const { definition, args } = prepared;
  const { context, abort, timeoutMs, setTimer, late, redact, resultBytes, retry, execute } = execution;
  return new Promise((resolve) => {
    let settled = false;
    /** Adds the retry decision of the host, who receives an error also for a failure that was not thrown. */
    const withRetry = (failure: Erred, kind: ToolFailure, thrown?: unknown): Erred => {
      const error = kind === 'thrown' ? thrown : new RunchartError(failure.code, textOfContent(failure.content));
      return { ...failure, ...retry?.(error, kind, definition.idempotent === true) };
    };
    const stop = setTimer(timeoutMs, () => {
      settled = true;
      const words = `${definition.name} did not finish within ${timeoutMs} ms. It may still have an effect.`;
      resolve(withRetry(erred('timeout', words), 'timeout'));
      abort.abort(new DOMException('the tool call timed out', 'TimeoutError'));
    });
    abort.onAbort(stop);
    const settle = (value: ToolValue): void => {
      // A rejection after the abort is expected, so it is not reported as late.
      if (settled && value.kind !== 'erred') return late();
      settled = true;
      stop();
      resolve(value);
    };
    const fail = (error: unknown): void => {
      const failure = erred('error', cut(redact(thrownText(error)), resultBytes));
      // A cancelled or settled call is not retried.
      settle(settled || abort.aborted ? failure : withRetry(failure, 'thrown', error));
    };
    const succeed = (value: unknown): void => {
      if (isError(value)) return fail(value);
      try {
        const answer = answerOf(value) ?? { status: 'success' as const, content: value };
        const answerValue = toolValue(answer, execution);
        settle(
          answer.status === 'error' && answerValue.kind === 'erred' ? withRetry(answerValue, 'returned') : answerValue,
        );
      } catch (error) {
        settle(erred('not_json', cut(redact(`the tool's result cannot be read: ${thrownText(error)}`), resultBytes)));
      }
    };
    try {
      const value = execute ? execute(definition, args, context) : definition.execute(args as never, context);
      const pendingValue = value instanceof Promise ? value : isThenable(value) ? awaited(value, late) : undefined;
      const take = (answer: unknown): void => {
        const values = stepsOf(answer);
        if (values) drained(values, execution).then(succeed, fail);
        else succeed(answer);
      };
      if (pendingValue) pendingValue.then(take, fail);
      else take(value);
    } catch (error) {
      fail(error);
    }
  });
}

const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function';

/** A foreign promise may call back twice. The first call counts; `late` receives the others. */
function awaited(value: PromiseLike<unknown>, late: () => void): Promise<unknown> {
  return new Promise((resolve, reject) => {
    let isAnswered = false;
    const once =
      (act: (settled: unknown) => void) =>
      (settled: unknown): void => {
        if (isAnswered) return late();
        isAnswered = true;
        act(settled);
      };
    const fail = once(reject);
    try {
      value.then(once(resolve), fail);
    } catch (error) {
      fail(error);
    }
  });
}

type Steps = AsyncIterator<unknown> | Iterator<unknown>;

/**
 * An async iterable or a generator, which yields values one after another; undefined for other values, including lists
 * and maps.
 */
function stepsOf(value: unknown): Steps | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  try {
    const iterator = value as Partial<AsyncIterable<unknown> & Iterator<unknown> & Iterable<unknown>>;
    const steps = iterator[Symbol.asyncIterator]?.();
    if (steps) return steps;
    const isGenerator = typeof iterator.next === 'function' && typeof iterator[Symbol.iterator] === 'function';
    return isGenerator ? (iterator as Steps) : undefined;
  } catch {
    // A value whose iterator throws is treated as a plain result.
    return undefined;
  }
}

/** After this many steps without a wait, other work gets a turn. */
const STEPS_A_TURN = 256;

/** Reports each value as progress. Returns the return value, or the last value if there is none. */
async function drained(steps: Steps, execution: Execution): Promise<unknown> {
  const { abort, context } = execution;
  const { signal } = abort;
  const close = async (): Promise<unknown> => steps.return?.();
  const end = (): void => void close().catch(() => undefined);
  signal.addEventListener('abort', end, { once: true });
  let last: unknown;
  try {
    for (let count = 1; ; count++) {
      if (count % STEPS_A_TURN === 0) await context.sleep(1);
      signal.throwIfAborted();
      const { done, value } = await steps.next();
      signal.throwIfAborted();
      if (done) return value === undefined ? last : value;
      last = await value;
      const progressValue = answerOf(last) ? undefined : side('a value', last, execution);
      if (progressValue && 'value' in progressValue) context.progress(progressValue.value);
    }
  } catch (error) {
    end();
    throw error;
  } finally {
    signal.removeEventListener('abort', end);
  }
}

/** Time as the agent's ports provide it. */
interface TimeSource {
  now(): number;
  setTimer(ms: number, fire: () => void): () => void;
}

export interface CallClock {
  now(): number;
  /** Rejects with the signal's reason when the signal fires, or when the call ends first. */
  sleep(ms: number): Promise<void>;
}

/** The clock of one call, and a function that ends every pending sleep. */
export function callClock({ now, setTimer }: TimeSource, abort: EffectAbort) {
  /** Functions that end the pending sleeps. */
  let sleepers: Set<() => void> | undefined;
  let why: (() => unknown) | undefined;
  const wake = (reason: () => unknown): void => {
    why ??= reason;
    for (const sleeper of sleepers ?? []) sleeper();
  };
  abort.onAbort(() => wake(() => abort.reason));

  function sleep(ms: number): Promise<void> {
    sleepers ??= new Set();
    const asleep = sleepers;
    const slept = new Promise<void>((resolve, reject) => {
      if (why) return reject(why());
      const stop = setTimer(ms, () => {
        asleep.delete(woken);
        resolve();
      });
      const woken = (): void => {
        asleep.delete(woken);
        stop();
        reject(why?.());
      };
      asleep.add(woken);
    });
    // A tool may ignore a sleep, so its rejection must not be unhandled.
    slept.catch(() => undefined);
    return slept;
  }
  const end = (): void => wake(() => new DOMException('the call is over', 'AbortError'));
  return { clock: { now: () => now(), sleep } satisfies CallClock, end };
}
