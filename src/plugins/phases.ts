/**
 * Runs the phases of the plugins, one plugin after the other. Rule: a phase that throws or takes too long is logged as
 * a diagnostic. An error of a `required` plugin ends the run, unless the run has already ended.
 */
import {
  deepFreeze,
  type EffectRequest,
  type GateValue,
  type Phase,
  type PhaseValue,
  type RunPhase,
  type StoredPart,
} from '../../machines/internal.ts';
import { thrownText } from '../errors.ts';
import { within } from '../timeLimit.ts';
import type { PreparedCall, Toolbox } from '../tools/toolbox.ts';
import { cut, type ResultLimits, replacedContent } from '../tools/toolResult.ts';
import { PHASE_PORTS, type PhasePorts } from './callChecks.ts';
import { type CallPermission, callPermission, checksOf } from './callPermission.ts';
import { type PhaseOutcome, REDUCERS } from './phaseOutcome.ts';
import { PHASE_MS, type PhaseContext, type Plugin } from './plugin.ts';
import { type PhaseAnswer, RequiredPluginError, readAnswer, readVerdict } from './readAnswer.ts';
import { RunStops } from './runStops.ts';
import {
  type Asking,
  block,
  type Checked,
  type ConversationScope,
  type GateRequest,
  type ToolChecks,
} from './toolGate.ts';

function phaseContext(
  around: ConversationScope,
  runId: string,
  turn: number,
  signal: AbortSignal,
  ports: Pick<PhasePorts, 'stop' | 'executed'>,
  callId?: string,
): PhaseContext {
  const { request, conversationId, cwd, entries, transcript, next, setTimer, diagnose } = around;
  const more: { [PHASE_PORTS]: PhasePorts } = { [PHASE_PORTS]: { entries, next, setTimer, diagnose, ...ports } };
  return {
    ...more,
    origin: request.origin(callId),
    conversationId,
    runId,
    turn,
    cwd,
    signal,
    log: () => entries.slice(),
    messages: () => transcript.messages(),
  };
}

/** A run may end after these phases. */
const MAY_STOP: readonly Phase[] = ['stepStart', 'beforeInference', 'afterInference', 'stepEnd'];
const CLOSED_MS = 5_000;

type PhaseRequest = Extract<EffectRequest, { kind: 'phase' }>;

/** The fields that only one phase receives. */
const PHASE_FIELDS: Partial<Record<RunPhase, (around: ConversationScope, request: PhaseRequest) => object>> = {
  beforeInference: ({ next }) => ({ request: next.preview() }),
  afterInference: ({ reply }, { failure }) => ({
    ...(failure ? { error: failure } : reply && { reply: deepFreeze(reply) }),
  }),
  preCompact: ({ summaryFor }) => ({ source: summaryFor }),
  runEnd: (_, { termination }) => ({ ...(termination && { termination }) }),
};

const isOver = ({ failure, termination }: PhaseRequest): boolean => failure !== undefined || termination !== undefined;

export interface PhaseOptions {
  plugins: readonly Plugin[];
  around: ConversationScope;
  toolbox: Toolbox;
  limits: ResultLimits;
  policies: { readonly maxStopContinues: number };
}

export class PhaseRunner implements ToolChecks {
  readonly #plugins: readonly Plugin[];
  readonly #around: ConversationScope;
  readonly #toolbox: Toolbox;
  readonly #limits: ResultLimits;
  readonly #scope: PhaseOptions & { stops: RunStops };
  /** Calls pass hooks and rules one by one. If a call stops the run, the calls after it stop too. */
  #lastCheck: Promise<unknown> = Promise.resolve();
  /** The number of the last model call among the first `#counted` entries. */
  #turn = 0;
  #counted = 0;

  constructor(options: PhaseOptions) {
    this.#scope = { ...options, stops: new RunStops(options.around) };
    this.#plugins = options.plugins;
    this.#around = options.around;
    this.#toolbox = options.toolbox;
    this.#limits = options.limits;
  }

  async run(request: PhaseRequest, signal: AbortSignal): Promise<PhaseValue> {
    let outcome: PhaseOutcome = {};
    if (request.phases.includes('beforeInference')) this.#around.next.begin();
    for (const phase of request.phases) {
      const taking = this.#plugins.filter((plugin) => typeof plugin[phase] === 'function');
      for (const plugin of taking) {
        const answer = await this.#call(plugin, phase, request, signal, taking.length);
        if (!answer) continue;
        // A run that has ended ignores the fields that it cannot use.
        const usable = isOver(request) ? answer : readAnswer(plugin.name, phase, answer);
        this.#changeNextRequest(usable);
        outcome = REDUCERS[phase](outcome, usable, plugin.name);
      }
    }
    if (request.phases.includes('runEnd')) this.#scope.stops.forget(request.runId);
    return this.#stopOf(request) ?? this.#valueOf(outcome, request.runId);
  }

  #changeNextRequest({ context, request, compact }: PhaseAnswer): void {
    const { next } = this.#around;
    next.addContext(context);
    if (request) next.patch(request);
    if (compact !== undefined) this.#around.compact = compact;
  }

  /** A hook stopped the run, and the run may end after these phases. */
  #stopOf({ phases, runId }: PhaseRequest): PhaseValue | undefined {
    const reason = phases.some((phase) => MAY_STOP.includes(phase)) ? this.#scope.stops.of(runId) : undefined;
    return reason === undefined ? undefined : { kind: 'terminate', by: 'hook', reason, stopped: true };
  }

  #valueOf({ terminate, compact, continuation, writes = {} }: PhaseOutcome, runId: string): PhaseValue {
    if (terminate) return terminate;
    if (compact) return compact;
    if (continuation !== undefined && this.#mayContinue(runId)) {
      return { kind: 'continue', text: continuation, why: 'stop_hook' };
    }
    return Object.keys(writes).length > 0 ? { kind: 'done', writes } : { kind: 'done' };
  }

  /** A run continues at most `maxStopContinues` times. A diagnostic reports further attempts. */
  #mayContinue(runId: string): boolean {
    const { entries, diagnose } = this.#around;
    const { maxStopContinues } = this.#scope.policies;
    let times = 0;
    for (let at = entries.length - 1; at >= 0; at -= 1) {
      const entry = entries[at];
      if (entry?.type === 'run-started' || entry?.type === 'run-resumed') break;
      if (entry?.type === 'continuation' && entry.why === 'stop_hook') times += 1;
    }
    if (times >= maxStopContinues) diagnose('stop_continues', { runId, times });
    return times < maxStopContinues;
  }

  /** The checks of a call: hooks, rules, then each other plugin. Each check receives the arguments that the check before it returned. */
  async beforeTool(first: PreparedCall, request: GateRequest, signal: AbortSignal, asking: Asking): Promise<Checked> {
    const permission = callPermission(this.#scope, request, signal, asking);
    if (!permission) return this.#gates(first, request, signal);
    const turn = this.#lastCheck.catch(() => undefined).then(() => this.#permitted(permission, first, request, signal));
    this.#lastCheck = turn;
    return turn;
  }

  async #permitted(
    permission: CallPermission,
    first: PreparedCall,
    request: GateRequest,
    signal: AbortSignal,
  ): Promise<Checked> {
    signal.throwIfAborted();
    const hooked = await permission.before(first);
    if (hooked.kind !== 'passed') return hooked;
    const ruled = await permission.permit(hooked.prepared);
    if (ruled.kind !== 'passed') return ruled;
    const gated = await this.#gates(hooked.prepared, request, signal);
    if (gated.kind !== 'passed') return gated;
    // If a plugin rewrote the arguments, the rules judge them again.
    const concluded = await permission.concluded(gated.prepared, gated.suspend);
    if (concluded.kind !== 'passed' || concluded.prepared === gated.prepared) return concluded;
    // If the answer to a question rewrote the arguments, the plugins check them again.
    const again = await this.#gates(concluded.prepared, request, signal);
    if (again.kind !== 'passed') return again;
    const answered = { ...concluded, suspend: concluded.suspend ?? again.suspend };
    return again.prepared === concluded.prepared ? answered : permission.rejudged(answered, again.prepared);
  }

  async #gates(first: PreparedCall, request: GateRequest, signal: AbortSignal): Promise<Checked> {
    let prepared = first;
    let suspend: GateValue | undefined;
    for (const plugin of this.#plugins) {
      if (!plugin.beforeToolExecute) continue;
      const verdict = await this.#verdict(plugin, prepared, request, signal);
      if ('blocked' in verdict) return verdict.blocked;
      const { answer } = verdict;
      if (!answer) continue;
      if (answer.block !== undefined) return this.#blocked('blocked', `Blocked by ${plugin.name}: ${answer.block}`);
      suspend ??= answer.suspend;
      if (answer.args !== undefined) {
        const { callId, name } = prepared.call;
        const waiting = { setTimer: this.#around.setTimer, signal };
        // Rewritten arguments are validated like those of the model.
        const again = await this.#toolbox.prepare({ callId, name, args: answer.args }, waiting);
        if (again.kind === 'refused') {
          const message = `it rewrote the arguments of ${name} into others that are refused: ${again.text}`;
          this.#around.diagnose('plugin_error', { plugin: plugin.name, phase: 'beforeToolExecute', message });
          return { kind: 'refuse', code: again.code, text: again.text };
        }
        prepared = again.prepared;
      }
    }
    return { kind: 'passed', prepared, suspend };
  }

  #blocked(code: string, words: string): GateValue {
    const { redact, resultBytes } = this.#limits;
    return block(code, cut(redact(words), resultBytes));
  }

  async #verdict(plugin: Plugin, prepared: PreparedCall, request: GateRequest, signal: AbortSignal) {
    const around = this.#around;
    const { call, tool } = prepared;
    const { decision, runId } = request;
    const context = {
      ...phaseContext(around, runId, this.#turnOfCalls, signal, this.#ports(runId), call.callId),
      call: deepFreeze(call),
      tool,
      ...(decision && { decision }),
    };
    try {
      const { setTimer } = around;
      const act = (): unknown => plugin.beforeToolExecute?.(context);
      const answer = readVerdict(await within(PHASE_MS, { setTimer, signal }, act), this.#limits);
      return { answer };
    } catch (error) {
      if (signal.aborted) throw error;
      const message = thrownText(error);
      around.diagnose('plugin_error', { plugin: plugin.name, phase: 'beforeToolExecute', message });
      const words = `The check of ${plugin.name} failed, so the call was not run: ${message}`;
      return { blocked: this.#blocked('plugin_error', words) };
    }
  }

  /** The plugins after a tool call. Each receives the result that the plugin before it returned. */
  async afterTool(request: Extract<EffectRequest, { kind: 'afterTool' }>, signal: AbortSignal): Promise<StoredPart[]> {
    const { runId, callId, outcome } = request;
    const record = this.#around.logState.calls.get(callId);
    const ports = { ...this.#ports(runId), executed: record?.status === 'started' };
    let { content } = request;
    for (const plugin of this.#plugins) {
      if (!plugin.afterToolExecute) continue;
      const call = { callId, name: record?.name ?? '', args: record?.args ?? null };
      const context = {
        ...phaseContext(this.#around, runId, this.#turnOfCalls, signal, ports, callId),
        call: deepFreeze(call),
        outcome,
        result: deepFreeze(content),
      };
      // The answer is read inside the guard, because an unusable answer is an error of the plugin.
      const act = async () => {
        const answer = (await plugin.afterToolExecute?.(context)) as PhaseAnswer | undefined;
        if (!answer) return undefined;
        const { context: added, result } = readAnswer(plugin.name, 'afterToolExecute', answer);
        return { added, result: result === undefined ? undefined : replacedContent(result, this.#limits) };
      };
      const verdict = await this.#guarded(plugin, 'afterToolExecute', { ms: PHASE_MS, strict: true, signal }, act);
      if (!verdict) continue;
      this.#around.next.addContext(verdict.added);
      content = verdict.result ?? content;
    }
    return content;
  }

  /** The number of the model call whose reply has the call. Each entry is read once. */
  get #turnOfCalls(): number {
    const { entries } = this.#around;
    for (; this.#counted < entries.length; this.#counted += 1) {
      const entry = entries[this.#counted];
      if (entry?.type === 'model-reply') this.#turn = entry.turn;
    }
    return this.#turn;
  }

  #ports(runId: string): Pick<PhasePorts, 'stop'> {
    return { stop: (reason) => this.#scope.stops.stop(runId, reason) };
  }

  /** Notifies plugins that the conversation is closed. Each has as long as at the end of a run. */
  async closed(): Promise<void> {
    const { conversationId, cwd, entries, setTimer, diagnose } = this.#around;
    const { signal } = new AbortController();
    for (const { plugin, checks } of checksOf(this.#plugins)) {
      const about = { conversationId, cwd, entries, setTimer, diagnose };
      await within(CLOSED_MS, { setTimer, signal }, () => checks.closed?.(about)).catch((error) =>
        diagnose('plugin_error', { plugin, phase: 'closed', message: thrownText(error) }),
      );
    }
  }

  #call(plugin: Plugin, phase: RunPhase, request: PhaseRequest, signal: AbortSignal, sharing: number) {
    const { runId, turn, limitMs } = request;
    const context = {
      ...phaseContext(this.#around, runId, turn, signal, this.#ports(runId)),
      ...PHASE_FIELDS[phase]?.(this.#around, request),
    };
    const strict = !isOver(request);
    // The plugins share the time of a limited phase.
    const ms = limitMs === undefined ? PHASE_MS : limitMs / sharing;
    const act = plugin[phase] as (c: unknown) => PhaseAnswer | undefined | Promise<PhaseAnswer | undefined>;
    return this.#guarded(plugin, phase, { ms, strict, signal }, () => act.call(plugin, context));
  }

  async #guarded<T>(
    plugin: Plugin,
    phase: Phase,
    { ms, strict, signal }: { ms: number; strict: boolean; signal: AbortSignal },
    act: () => T | Promise<T>,
  ) {
    try {
      return await within(ms, { setTimer: this.#around.setTimer, signal }, act);
    } catch (error) {
      // The run no longer waits for this phase, so its error is no fault, and no other plugin is called.
      if (signal.aborted) throw error;
      const message = thrownText(error);
      if (plugin.required && strict) {
        throw new RequiredPluginError(
          `the required plugin ${JSON.stringify(plugin.name)} failed in ${phase}: ${message}`,
        );
      }
      this.#around.diagnose('plugin_error', { plugin: plugin.name, phase, message });
      return undefined;
    }
  }
}
