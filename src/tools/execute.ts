/**
 * Executes a tool call. Rule: the answer is always one value: a result, an error or a suspension. A tool that does not settle
 * in time is left behind and counts for nothing later.
 */
import {
  type EffectRequest,
  type Json,
  type LogEntry,
  type LogState,
  type ToolValue,
  textOfContent,
} from '../../machines/internal.ts';
import { holdsImage, type Images } from '../content/content.ts';
import { RunchartError, thrownText } from '../errors.ts';
import type { Live } from '../live.ts';
import { onDemand } from '../onDemand.ts';
import type { EffectAbort } from '../timeLimit.ts';
import { answerOf, lackOfSandbox, type Tool, type ToolContext, type ToolDefinition, waitCloserOf } from './tool.ts';
import type { PreparedCall, Toolbox } from './toolbox.ts';
import { cut, type Erred, erred, isError, type ResultLimits, side, toolValue, withEditNote } from './toolResult.ts';
import type { Retry, RetryPolicy, retryOf, ToolFailure } from './toolRetry.ts';
import { type SignalSource, toolSignal } from './toolSignal.ts';

/** For conversations whose policy `toolRetry` executes failing tools again. */
export const loadRetry = onDemand(() => import('./toolRetry.ts'));

type ToolRequest = Extract<EffectRequest, { kind: 'tool' }>;

/** What the tools of one conversation are run with. */
export interface ToolSurroundings {
  ports: TimeSource & { random(): number; execute?: ExecuteTool };
  around: {
    conversationId: string;
    cwd: string;
    entries: readonly LogEntry[];
    logState: LogState;
    diagnose(code: string, detail?: Json): void;
  };
  policies: {
    limits: { toolMs: number; resultBytes: number };
    toolRetry: RetryPolicy;
  };
  /** Where the policy `toolRetry` executes failing tools again. */
  retryOf?: typeof retryOf;
  toolbox: Toolbox;
  redact: ResultLimits['redact'];
  images: Images;
  /** Undefined while nobody listens. */
  live(): ((signal: Live) => void) | undefined;
  state(): { readonly [key: string]: Json };
  /** Gives the context of a call what leads to the conversation's sub-agents, where there are any. */
  attach(context: ToolContext): void;
}

/** Runs the calls of one conversation that passed what is before them. */
export class ToolRunner {
  readonly #with: ToolSurroundings;
  /** Calls that passed, until they ran. */
  readonly #ready = new Map<string, PreparedCall>();
  /** Of calls that wait: what their tools hold for them outside. */
  readonly #waits = new Map<string, () => void>();

  constructor(surroundings: ToolSurroundings) {
    this.#with = surroundings;
  }

  /** The call as it will run. */
  readonly ready = (prepared: PreparedCall): void => void this.#ready.set(prepared.call.callId, prepared);

  /** The call as it was made ready last. */
  known(callId: string): PreparedCall | undefined {
    return this.#ready.get(callId);
  }

  /** Calls that were prepared and are over: skipped, cancelled in a wait, or out of executions. */
  forgetEnded(): void {
    const { open } = this.#with.around.logState;
    for (const callId of this.#ready.keys()) if (!open.has(callId)) this.#ready.delete(callId);
  }

  /** The call has its result: a tool that still holds something for it lets go. */
  resultLanded(callId: string): void {
    const close = this.#waits.get(callId);
    this.#waits.delete(callId);
    close?.();
  }

  async run(request: ToolRequest, abort: EffectAbort): Promise<ToolValue> {
    const { runId, callId, idempotencyKey, decision } = request;
    // The tool takes up again what it holds.
    this.#waits.delete(callId);
    const { policies, ports, around, redact, live, images } = this.#with;
    const { setTimer, execute } = ports;
    const prepared = await this.#take(callId, abort);
    // Cancelled in between: what was not begun is not begun.
    if (abort.aborted) return erred('cancelled', 'the call was cancelled before it began');
    if (!prepared) return erred('error', 'the call is not known any more');
    const since = ports.now();
    const { conversationId, cwd, diagnose } = around;
    const { resultBytes, toolMs } = policies.limits;
    let isRefused = false;
    const progress = (given: Json): void => {
      const show = abort.aborted ? undefined : live();
      if (!show) return;
      const elapsedMs = ports.now() - since;
      const read = side('the progress of the call', given, { resultBytes, redact });
      if ('value' in read) return show({ type: 'tool-progress', runId, callId, elapsedMs, update: redact(read.value) });
      if (!isRefused && read.kind === 'erred') {
        diagnose('progress_refused', { callId, message: textOfContent(read.content) });
      }
      isRefused = true;
    };
    const retry = this.#with.retryOf?.(policies, ports);
    const timeoutMs = prepared.definition.timeoutMs ?? toolMs;
    const listenerFailed = (error: unknown): void => diagnose('listener_error', { callId, message: thrownText(error) });
    const { clock, end } = callClock(ports, abort);
    const fields = {
      ...{ callId, conversationId, runId, cwd, idempotencyKey, state: this.#with.state(), progress, ...clock },
      ...(decision && { decision }),
      ...{ outside: prepared.grant?.outside, grant: prepared.grant },
    };
    const context: ToolContext = withSignal(fields, { abort, timeoutMs, listenerFailed });
    this.#with.attach(context);
    const late = (): void => diagnose('late_result', { callId });
    tellLackOfSandbox(prepared.tool, around);
    progress('started');
    const limits = { timeoutMs, resultBytes, redact };
    const said = await executeTool(prepared, { context, abort, ...limits, setTimer, late, execute, retry });
    end();
    const close = said.kind === 'pending' ? waitCloserOf(context) : undefined;
    if (close) this.#waits.set(callId, close);
    progress('ended');
    const value = holdsImage(said) ? { ...said, content: await images.keepResult(said.content, diagnose) } : said;
    // It may be executed again, just as it was prepared.
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

// One getter for all calls: a getter of each call would keep its conversation alive until the next full garbage
// collection (`test/scenarios/garbage.test.ts`).
const lazySignal: PropertyDescriptor & ThisType<Sourced> = {
  enumerable: true,
  get() {
    const source = this[SOURCE];
    source.made ??= toolSignal(source);
    return source.made;
  },
};

/** The context of a call with its signal, which is made when it is first asked for: most tools never do. */
function withSignal<Context extends object>(context: Context, source: SignalSource) {
  Object.defineProperty(context, SOURCE, { value: source });
  return Object.defineProperty(context, 'signal', lazySignal) as Context & { readonly signal: AbortSignal };
}

/** What `definition.execute` would be called with, and what it would answer. */
export type ExecuteTool = (definition: ToolDefinition, args: unknown, context: ToolContext) => unknown;

export interface Execution extends ResultLimits {
  context: ToolContext;
  /** Aborted when the time is up. */
  abort: EffectAbort;
  timeoutMs: number;
  setTimer(ms: number, fire: () => void): () => void;
  /** Whether a failure is followed by another execution; undefined where no tool is executed again. */
  retry?: ((error: unknown, kind: ToolFailure, isIdempotent: boolean) => Retry) | undefined;
  /** In place of the tool's own `execute`. */
  execute?: ExecuteTool | undefined;
  /** Hears of what a tool says after its answer was taken. */
  late(): void;
}

/** A failure that nobody threw, as the host is asked about it. */
function notThrown(
  failure: Erred,
  kind: Exclude<ToolFailure, 'thrown'>,
  { definition }: PreparedCall,
  { retry }: Execution,
): Erred {
  const error = new RunchartError(failure.code, textOfContent(failure.content));
  return { ...failure, ...retry?.(error, kind, definition.idempotent === true) };
}

/** Runs one prepared call; never rejects. */
export function executeTool(prepared: PreparedCall, execution: Execution): Promise<ToolValue> {
  const { definition, args } = prepared;
  const { context, abort, timeoutMs, setTimer, late, redact, resultBytes, retry, execute } = execution;
  return new Promise((resolve) => {
    let settled = false;
    const stop = setTimer(timeoutMs, () => {
      settled = true;
      const words = `${definition.name} did not finish within ${timeoutMs} ms. It may still have an effect.`;
      resolve(notThrown(erred('timeout', words), 'timeout', prepared, execution));
      abort.abort(new DOMException('the tool call timed out', 'TimeoutError'));
    });
    abort.onAbort(stop);
    const settle = (value: ToolValue): void => {
      // A tool that heeds its signal rejects; that is no news.
      if (settled && value.kind !== 'erred') return late();
      settled = true;
      stop();
      resolve(value);
    };
    const fail = (error: unknown): void => {
      const failure = erred('error', cut(redact(thrownText(error)), resultBytes));
      // What was cancelled, or is over already, is not asked about.
      settle(
        settled || abort.aborted
          ? failure
          : { ...failure, ...retry?.(error, 'thrown', definition.idempotent === true) },
      );
    };
    const succeed = (value: unknown): void => {
      if (isError(value)) return fail(value);
      try {
        const answer = answerOf(value) ?? { status: 'success' as const, content: value };
        const read = toolValue(answer, execution);
        settle(
          answer.status === 'error' && read.kind === 'erred' ? notThrown(read, 'returned', prepared, execution) : read,
        );
      } catch (error) {
        settle(erred('not_json', cut(redact(`the tool's result cannot be read: ${thrownText(error)}`), resultBytes)));
      }
    };
    try {
      const value = execute ? execute(definition, args, context) : definition.execute(args as never, context);
      const given = value instanceof Promise ? value : isThenable(value) ? awaited(value, late) : undefined;
      const take = (answer: unknown): void => {
        const values = stepsOf(answer);
        if (values) drained(values, execution).then(succeed, fail);
        else succeed(answer);
      };
      if (given) given.then(take, fail);
      else take(value);
    } catch (error) {
      fail(error);
    }
  });
}

const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function';

/** A promise of somebody else's making may call back twice: the first call counts, `late` hears of the others. */
function awaited(value: PromiseLike<unknown>, late: () => void): Promise<unknown> {
  return new Promise((resolve, reject) => {
    let answered = false;
    const once =
      (act: (settled: unknown) => void) =>
      (settled: unknown): void => {
        if (answered) return late();
        answered = true;
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

/** What gives its values one after another: an async iterable or a generator. Lists and maps are values themselves. */
function stepsOf(value: unknown): Steps | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  try {
    const given = value as Partial<AsyncIterable<unknown> & Iterator<unknown> & Iterable<unknown>>;
    const steps = given[Symbol.asyncIterator]?.();
    if (steps) return steps;
    const isGenerator = typeof given.next === 'function' && typeof given[Symbol.iterator] === 'function';
    return isGenerator ? (given as Steps) : undefined;
  } catch {
    // What cannot be read so is for those who read results.
    return undefined;
  }
}

/** So many steps that wait for nothing are taken before others have their turn. */
const STEPS_A_TURN = 256;

/** Takes every value as progress; answers the return value, or the last value where there is none. */
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
      const told = answerOf(last) ? undefined : side('a value', last, execution);
      if (told && 'value' in told) context.progress(told.value);
    }
  } catch (error) {
    end();
    throw error;
  } finally {
    signal.removeEventListener('abort', end);
  }
}

/** The agent's time, as its ports give it. */
interface TimeSource {
  now(): number;
  setTimer(ms: number, fire: () => void): () => void;
}

export interface CallClock {
  now(): number;
  /** Rejects with the signal's reason when it fires, and where the call ends first. */
  sleep(ms: number): Promise<void>;
}

/** The clock of one call, and what ends every sleep that nobody waited for. */
export function callClock({ now, setTimer }: TimeSource, abort: EffectAbort) {
  /** What wakes each sleeper up. */
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
    // A tool may forget a sleep: its end is nobody's failure.
    slept.catch(() => undefined);
    return slept;
  }
  const end = (): void => wake(() => new DOMException('the call is over', 'AbortError'));
  return { clock: { now: () => now(), sleep } satisfies CallClock, end };
}

const NO_SANDBOX = 'sandbox_missing';
const told = new WeakSet<object>();

/** Once in the life of a conversation, before the first command that would have run in a sandbox. */
function tellLackOfSandbox(tool: Tool, around: ToolSurroundings['around']): void {
  const why = lackOfSandbox(tool);
  if (why === undefined || told.has(around)) return;
  told.add(around);
  const isKnown = around.entries.some((entry) => entry.type === 'diagnostic' && entry.code === NO_SANDBOX);
  if (!isKnown) around.diagnose(NO_SANDBOX, { why });
}
