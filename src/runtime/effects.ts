/**
 * Carries out the requests of charts: calls models, runs tools, passes gates and phases. Invariant: one executor for each
 * kind. An executor resolves with a value, and rejects only where the runtime itself cannot continue.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec';
import type {
  EffectRequest,
  EffectValue,
  Json,
  LogEntry,
  LogState,
  ModelValue,
  ToolValue,
} from '../../machines/internal.ts';
import type { Attachments } from '../content/content.ts';
import type { InFlight, Live } from '../live.ts';
import type { Redact } from '../log/redact.ts';
import type { RedactedReply } from '../log/redactedReply.ts';
import { Attempt, type Attempted } from '../models/attempt.ts';
import type { Model, ModelRequest } from '../models/model.ts';
import type { TextCalls } from '../models/textCalls.ts';
import { onDemand } from '../onDemand.ts';
import type { PhaseRunner } from '../plugins/phases.ts';
import type { ConversationScope, Gate } from '../plugins/toolGate.ts';
import type { WorkObserver } from '../plugins/workObserver.ts';
import type { EffectAbort } from '../timeLimit.ts';
import type { ToolRunner } from '../tools/execute.ts';
import type { CurrentRequest } from './currentRequest.ts';
import type { FinalAnswers } from './finalAnswers.ts';
import type { Ports } from './hostPorts.ts';
import type { Execute } from './journal.ts';
import {
  type ContextUse,
  isCancelled,
  type NextRequest,
  observedAttempt,
  replyValue,
  type Summaries,
} from './modelTurn.ts';
import { attachSubAgents, type OwnProfile, type SubAgents } from './subAgentPort.ts';

/** The scope that plugins may change, with the complete request. */
export interface RuntimeScope extends ConversationScope {
  next: NextRequest;
  request: CurrentRequest;
  /** See ConversationLog. */
  partials: Map<string, () => string>;
}

export interface EffectsOptions extends OwnProfile {
  ports: Ports;
  around: RuntimeScope;
  redact: Redact;
  attended: boolean;
  attachments: Attachments;
  textCalls?: TextCalls;
  PhaseRunner?: typeof PhaseRunner;
  /** Present where the agent has tools or the log has calls. */
  tools?: { ToolRunner: typeof ToolRunner; Gate: typeof Gate };
  workObserver: WorkObserver | undefined;
  contextUse?: ContextUse;
  summaries?: Summaries;
  /** Schemas of final answers, by message id; the agent's own under the empty id. */
  schemas: ReadonlyMap<string, StandardSchemaV1>;
  /** Undefined without subscribers. */
  live(): ((signal: Live) => void) | undefined;
  state(): { readonly [key: string]: Json };
  subAgents(): SubAgents | undefined;
}

/** After one of these entries no part of the reply is in flight. */
const LANDS: ReadonlySet<string> = new Set(['agent-output', 'model-reply', 'run-stop', 'run-suspended']);

/** Present where final answers have a schema. */
const loadAnswers = onDemand(() => import('./finalAnswers.ts'));

/** The reply that another process received for a model call. Nothing is called, and later effects find the reply. */
export type RepeatedReply = { repeated?: ModelValue };

type Of<K extends EffectRequest['kind']> = Extract<EffectRequest, { kind: K }>;

export class Effects {
  readonly #options: EffectsOptions;
  readonly #logState: LogState;
  readonly #phases: PhaseRunner | undefined;
  /** Present where a tool can run. */
  readonly #tools: ToolRunner | undefined;
  readonly #gate: Gate | undefined;
  /** Present where some final answer has a schema. */
  #answers: FinalAnswers | undefined;
  #attempt: Attempt | undefined;
  /** The attempt whose reply is being streamed or stored. */
  #streaming: Attempt | undefined;
  /** The text for subscribers, where secrets are configured. */
  #redacted: RedactedReply | undefined;

  constructor(options: EffectsOptions) {
    const { around, plugins, toolbox, policies, redact, PhaseRunner: Phases, tools } = options;
    const limits = { resultBytes: policies.limits.resultBytes, redact };
    this.#options = options;
    this.#logState = around.logState;
    this.#phases = Phases && new Phases({ plugins, around, toolbox, limits, policies });
    if (!tools) return;
    this.#tools = new tools.ToolRunner({
      ...options,
      attach(context) {
        const subAgents = options.subAgents();
        if (subAgents) attachSubAgents(context, subAgents);
      },
    });
    this.#gate = new tools.Gate({ ...options, phases: this.#phases, limits, calls: this.#tools });
  }

  /** Text of the reply under way. */
  get partial(): string {
    return this.#attempt?.partial ?? '';
  }

  /** Plugins with a close hook are called at the end of the conversation. */
  closed(): Promise<void> | undefined {
    return this.#phases?.closed();
  }

  /** The text that the current reply has streamed. */
  get inFlight(): InFlight | null {
    if (!this.#streaming) return null;
    return this.#redacted ? this.#redacted.inFlight : this.#streaming.inFlight;
  }

  /** The reply is durable, or its run is at rest without it; or a call has its result. */
  landed(entry: LogEntry): void {
    const { type, runId } = entry;
    if (type === 'tool-result') this.#tools?.resultLanded(entry.callId);
    if (LANDS.has(type) && this.#streaming?.runId === runId) this.#streaming = undefined;
  }

  /** The run is over, and its streamed text did not become durable. */
  forget(): void {
    this.#streaming?.reset();
    this.#streaming = undefined;
  }

  readonly execute: Execute = (request, abort): EffectValue | Promise<EffectValue> => {
    switch (request.kind) {
      case 'model':
        return this.#model(request, abort);
      case 'tool':
        if (this.#tools) return this.#tool(this.#tools, request, abort);
        break;
      case 'gate':
        if (this.#gate) return this.#gate.pass(request, abort.signal);
        break;
      case 'phase': {
        const heard = this.#answers ?? this.#phases;
        if (heard) return heard.run(request, abort.signal);
        break;
      }
      case 'afterTool':
        if (!this.#phases) break;
        return this.#phases
          .afterTool(request, abort.signal)
          .then((content) => this.#options.attachments.keepResult(content, this.#options.around.diagnose))
          .then((content) => ({ kind: 'shown', content }));
      case 'context':
        if (this.#options.contextUse) return this.#options.contextUse(request, this.#options.around);
        break;
      case 'summary':
        if (this.#options.summaries) return this.#options.summaries.summaryValue(request, abort, this.#options);
        break;
      default:
        // A kind without an executor does not compile.
        request satisfies never;
    }
    throw new Error(`no executor runs ${JSON.stringify(request.kind)}`);
  };

  #tool(tools: ToolRunner, request: Of<'tool'>, abort: EffectAbort): Promise<ToolValue> {
    const { workObserver } = this.#options;
    const call = workObserver && this.#logState.calls.get(request.callId);
    const act = (): Promise<ToolValue> => tools.run(request, abort);
    // A call that was cancelled before its start does not run.
    if (!call || abort.aborted) return act();
    const { callId, name, args } = call;
    const work = { kind: 'tool' as const, runId: request.runId, call: { callId, name, args } };
    return workObserver.around({ ...work, isCancelled: () => isCancelled(abort) }, act);
  }

  /** One call of the model, whose text is streamed. */
  async #attempted(
    about: { model: Model; request: ModelRequest; attempt: number; runId: string },
    abort: EffectAbort,
  ): Promise<Attempted> {
    const { policies, ports, around, toolbox, live, redact, workObserver } = this.#options;
    const { now, setTimer, random } = ports;
    const redacted = redact.reply?.({ live, isTool: (name) => toolbox.find(name) !== undefined });
    const current = new Attempt({
      ...{ ...about, context: around.next.context, timeouts: policies.modelTimeout, abort, now, setTimer, random },
      live: redacted ? () => redacted.take : live,
      // The code of a model's diagnostic comes from the model.
      diagnose: (code, detail) => around.diagnose(redact(code), detail),
    });
    this.#attempt = current;
    this.#streaming = current;
    this.#redacted = redacted;
    const act = (): Promise<Attempted> => current.run();
    const { model, request, runId } = about;
    const raw = await observedAttempt({ workObserver, abort }, { model, request, runId }, act);
    if (this.#attempt === current) this.#attempt = undefined;
    return raw;
  }

  async #model(
    { runId, turn, attempt, model: index, repeated }: Of<'model'> & RepeatedReply,
    abort: EffectAbort,
  ): Promise<ModelValue> {
    const { models, policies, around, toolbox, plugins, attachments, schemas, redact } = this.#options;
    const model = index === 0 ? around.request.model : models[index];
    if (!model) throw new Error(`the agent has no model ${index}`);
    if ('missing' in model) return notConfigured('model', model.missing);
    this.#tools?.forgetEnded();
    const { next, diagnose } = around;
    const { output, outputSchema } = around.request.of();
    if (schemas.size > 0 || output !== undefined || outputSchema !== undefined) {
      this.#answers ??= new (await loadAnswers()).FinalAnswers(this.#options, this.#phases);
      const missing = this.#answers.begin(runId, attempt);
      if (missing !== undefined) return notConfigured('output', missing);
    }
    const seen = (value: ModelValue): ModelValue => {
      if (value.kind === 'reply') around.reply = replySeen(value);
      return this.#answers?.held(value) ?? value;
    };
    if (repeated) return seen(repeated);
    const asked = next.of(`${runId}/${turn}`, model);
    const shown = attachments.shownTo(model, asked.messages, abort.signal, diagnose);
    const request = shown === asked.messages ? asked : { ...asked, messages: await shown };
    const call = (each: ModelRequest): Promise<Attempted> =>
      this.#attempted({ model, request: each, attempt, runId }, abort);
    const raw = await (this.#answers ? this.#answers.ask(model, request, call) : call(request));
    if (raw.kind === 'failed') {
      const skipping = attachments.skipping(models, index, around.entries, next.model.id);
      return { ...raw, message: redact(raw.message), ...skipping };
    }
    this.#redacted?.end();
    const value = await replyValue(raw, {
      model,
      toolbox,
      logState: this.#logState,
      subAgents: this.#options.subAgents(),
      offered: (name) => next.offered(name),
      callsMax: policies.limits.toolCallsPerTurn,
      textToolCalls: policies.textToolCalls,
      textCalls: this.#options.textCalls,
      pluginGates: plugins.some((plugin) => plugin.beforeToolExecute),
      ready: (prepared) => this.#tools?.ready(prepared),
      redact,
      waiting: { setTimer: this.#options.ports.setTimer, signal: abort.signal },
      diagnose,
    });
    next.answered();
    return seen(value);
  }
}

/** The request chose something by a name that the agent does not have any more. Nothing else is used in its place. */
function notConfigured(what: 'model' | 'output', name: string): ModelValue {
  const message = `the request chose the ${what} ${JSON.stringify(name)}, which this agent does not have: add it to createAgent({ ${what}s })`;
  return { kind: 'failed', code: 'configuration', message, retryable: false, random: 0, model: name };
}

const replySeen = (value: Extract<ModelValue, { kind: 'reply' }>): ConversationScope['reply'] => ({
  text: value.items.map((item) => (item.type === 'assistant' ? item.text : '')).join(''),
  calls: value.items.flatMap((item) => (item.type === 'tool-call' ? [item] : [])),
});
