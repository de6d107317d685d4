/**
 * Does what charts ask for: calls models, runs tools, passes gates and phases. Rule: one executor a kind; each answers
 * with a value, and rejects only where the runtime itself cannot go on.
 */
import type {
  EffectRequest,
  EffectValue,
  Json,
  LogEntry,
  LogState,
  ModelValue,
  ToolValue,
} from '../../machines/internal.ts';
import { holdsImage, type Images } from '../content/content.ts';
import { thrownText } from '../errors.ts';
import type { InFlight, Live } from '../live.ts';
import type { Redact } from '../log/redact.ts';
import { Attempt } from '../models/attempt.ts';
import type { TextCalls } from '../models/textCalls.ts';
import { type ConversationScope, Gate } from '../plugins/gate.ts';
import type { PhaseRunner } from '../plugins/phases.ts';
import type { EffectAbort } from '../timeLimit.ts';
import { callClock, executeTool, type ToolRetrying, toolSignal } from '../tools/execute.ts';
import { erred, withEditNote } from '../tools/result.ts';
import type { ToolContext } from '../tools/tool.ts';
import type { PreparedCall, Waiting } from '../tools/toolbox.ts';
import type { Execute } from './journal.ts';
import { contextUse, type NextRequest, replyValue } from './modelTurn.ts';
import type { Ports } from './ports.ts';
import { attachSubAgents, type OwnProfile, type SubAgents } from './subAgentPort.ts';

/** What plugins may touch, and the whole request behind it. */
export interface RuntimeScope extends ConversationScope {
  next: NextRequest;
}

export interface EffectsOptions extends OwnProfile {
  ports: Ports;
  around: RuntimeScope;
  redact: Redact;
  attended: boolean;
  images: Images;
  textCalls?: TextCalls;
  Phases?: typeof PhaseRunner;
  /** Undefined while nobody listens. */
  live(): ((signal: Live) => void) | undefined;
  state(): { readonly [key: string]: Json };
  subAgents(): SubAgents | undefined;
}

/** Behind one of these nothing of the reply is in flight any more. */
const LANDS: ReadonlySet<string> = new Set(['agent-output', 'model-reply', 'run-stop', 'run-suspended']);

type Of<K extends EffectRequest['kind']> = Extract<EffectRequest, { kind: K }>;

export class Effects {
  readonly #options: EffectsOptions;
  readonly #known: LogState;
  readonly #phases: PhaseRunner | undefined;
  readonly #gate: Gate;
  /** Calls that passed what is before them, until they ran. */
  readonly #ready = new Map<string, PreparedCall>();
  #attempt: Attempt | undefined;
  /** The attempt whose reply is under way, or was given and is not durable yet. */
  #streaming: Attempt | undefined;

  constructor(options: EffectsOptions) {
    const { around, plugins, toolbox, attended, policies, redact, Phases } = options;
    const limits = { resultBytes: policies.limits.resultBytes, redact };
    this.#options = options;
    this.#known = around.known;
    this.#phases = Phases && new Phases({ plugins, around, toolbox, limits, policies });
    const ready = (prepared: PreparedCall): void => void this.#ready.set(prepared.call.callId, prepared);
    this.#gate = new Gate({ phases: this.#phases, around, toolbox, attended, limits, ready });
  }

  /** Text of the reply under way. */
  get partial(): string {
    return this.#attempt?.partial ?? '';
  }

  /** Plugins that want to know hear of the end of the conversation. */
  async closed(): Promise<void> {
    await this.#phases?.closed();
  }

  /** What the reply under way has streamed. */
  get inFlight(): InFlight | null {
    return this.#streaming?.inFlight ?? null;
  }

  /** The reply is durable, or its run is at rest without it. */
  landed({ type, runId }: LogEntry): void {
    if (LANDS.has(type) && this.#streaming?.runId === runId) this.#streaming = undefined;
  }

  /** The run is over, and what it streamed did not become durable. */
  forget(): void {
    this.#streaming?.reset();
    this.#streaming = undefined;
  }

  readonly execute: Execute = (request, abort): EffectValue | Promise<EffectValue> => {
    switch (request.kind) {
      case 'model':
        return this.#model(request, abort);
      case 'tool':
        return this.#tool(request, abort);
      case 'gate':
        return this.#gate.pass(request, abort.signal);
      case 'phase':
        if (this.#phases) return this.#phases.run(request, abort.signal);
        break;
      case 'afterTool':
        if (!this.#phases) break;
        return this.#phases
          .afterTool(request, abort.signal)
          .then((content) => this.#options.images.keepResult(content, this.#options.around.diagnose))
          .then((content) => ({ kind: 'shown', content }));
      case 'context':
        return contextUse(request, this.#options.around);
    }
    throw new Error(`no executor runs ${JSON.stringify(request.kind)}`);
  };

  async #model({ runId, turn, attempt, model: index }: Of<'model'>, abort: EffectAbort): Promise<ModelValue> {
    const { models, policies, ports, around, toolbox, plugins, live, images } = this.#options;
    const model = models[index] ?? models[0];
    if (!model) throw new Error('an agent has a model');
    this.#forgetEnded();
    const { next, diagnose } = around;
    const asked = next.of(`${runId}/${turn}`);
    const shown = images.shownTo(model, asked.messages, abort.signal, diagnose);
    const request = shown === asked.messages ? asked : { ...asked, messages: await shown };
    const { now, setTimer, random } = ports;
    const timeouts = policies.modelTimeout;
    const about = { model, request, attempt, runId };
    const current = new Attempt({ ...about, abort, timeouts, now, setTimer, random, live, diagnose });
    this.#attempt = current;
    this.#streaming = current;
    const raw = await current.run();
    if (this.#attempt === current) this.#attempt = undefined;
    if (raw.kind === 'failed') return { ...raw, message: this.#options.redact(raw.message) };
    const value = await replyValue(raw, {
      model,
      toolbox,
      known: this.#known,
      subAgents: this.#options.subAgents(),
      offered: (name) => next.offered(name),
      callsMax: policies.limits.toolCallsPerTurn,
      textToolCalls: policies.textToolCalls,
      textCalls: this.#options.textCalls,
      pluginGates: plugins.some((plugin) => plugin.beforeToolExecute),
      ready: (prepared) => void this.#ready.set(prepared.call.callId, prepared),
      redact: this.#options.redact,
      waiting: { setTimer, signal: abort.signal },
      diagnose,
    });
    next.answered();
    if (value.kind === 'reply') around.reply = replySeen(value);
    return value;
  }

  async #tool(request: Of<'tool'>, abort: EffectAbort): Promise<ToolValue> {
    const { runId, callId, idempotencyKey, decision } = request;
    const { policies, ports, around, redact, live, images } = this.#options;
    const { setTimer, execute } = ports;
    const prepared = await this.#take(callId, setTimer, abort);
    // Cancelled in between: what was not begun is not begun.
    if (abort.aborted) return erred('cancelled', 'the call was cancelled before it began');
    if (!prepared) return erred('error', 'the call is not known any more');
    const since = ports.now();
    const progress = (update: Json): void => {
      const elapsedMs = ports.now() - since;
      if (!abort.aborted) live()?.({ type: 'tool-progress', runId, callId, elapsedMs, update });
    };
    const { conversationId, cwd } = around;
    const { resultBytes, toolMs } = policies.limits;
    const timeoutMs = prepared.definition.timeoutMs ?? toolMs;
    const listenerFailed = (error: unknown): void =>
      around.diagnose('listener_error', { callId, message: thrownText(error) });
    const { clock, end } = callClock(ports, abort);
    let given: AbortSignal | undefined;
    const context: ToolContext = {
      callId,
      conversationId,
      runId,
      cwd,
      get signal() {
        given ??= toolSignal(abort, timeoutMs, listenerFailed);
        return given;
      },
      idempotencyKey,
      state: this.#options.state(),
      progress,
      ...clock,
      ...(decision && { decision }),
    };
    const subAgents = this.#options.subAgents();
    if (subAgents) attachSubAgents(context, subAgents);
    const late = (): void => around.diagnose('late_result', { callId });
    progress('started');
    const limits = { timeoutMs, resultBytes, redact };
    const said = await executeTool(prepared, { context, abort, ...limits, setTimer, late, execute, ...this.#retrying });
    end();
    progress('ended');
    const { diagnose } = around;
    const value = holdsImage(said) ? { ...said, content: await images.keepResult(said.content, diagnose) } : said;
    // It may be executed again, just as it was prepared.
    if (value.kind === 'erred' && value.retry) this.#ready.set(callId, prepared);
    const record = this.#known.calls.get(callId);
    return withEditNote(value, { call: prepared.call, record, suspension: request.suspension }, resultBytes);
  }

  /** Calls that were prepared and are over: skipped, cancelled in a wait, or out of executions. */
  #forgetEnded(): void {
    for (const callId of this.#ready.keys()) if (!this.#known.open.has(callId)) this.#ready.delete(callId);
  }

  get #retrying(): { retrying?: ToolRetrying } {
    const { policies, ports } = this.#options;
    const { toolRetry } = policies;
    return toolRetry ? { retrying: { ...toolRetry, random: ports.random } } : {};
  }

  async #take(callId: string, setTimer: Waiting['setTimer'], abort: EffectAbort): Promise<PreparedCall | undefined> {
    const ready = this.#ready.get(callId);
    this.#ready.delete(callId);
    if (ready) return ready;
    const record = this.#known.calls.get(callId);
    const preparation = record && (await this.#options.toolbox.prepare(record, { setTimer, signal: abort.signal }));
    return preparation?.kind === 'ready' ? preparation.prepared : undefined;
  }
}

const replySeen = (value: Extract<ModelValue, { kind: 'reply' }>): ConversationScope['reply'] => ({
  text: value.items.map((item) => (item.type === 'assistant' ? item.text : '')).join(''),
  calls: value.items.flatMap((item) => (item.type === 'tool-call' ? [item] : [])),
});
