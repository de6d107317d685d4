/**
 * The spans of one conversation. Invariant: a run's span contains those of its model calls and tools, and ends after all of them.
 * Every call of OpenTelemetry is guarded, so that the run does not change.
 */
import type { Attributes, Context, Link, Span, SpanContext, Tracer } from '@opentelemetry/api';
import { fieldsOf, type LogEntry } from '../../machines/internal.ts';
import type { Model, ModelRequest } from '../models/model.ts';
import type { EndedRun, ObservedConversation, Work, WorkObserver, WorkValue } from '../plugins/workObserver.ts';
import {
  agentAttributes,
  CONVERSATION,
  ERROR_TYPE,
  metricAttributes,
  modelAttributes,
  OPERATION,
  OUTCOME,
  runAttributes,
  runOutcome,
  type SpanOutcome,
  TOOL_NAME,
  TRACE,
  type TracedAgent,
  workAttributes,
  workName,
  workOutcome,
} from './attributes.ts';
import type { WorkMetrics } from './workMetrics.ts';

export interface TraceOptions {
  api: typeof import('@opentelemetry/api');
  tracer: Tracer;
  contents: boolean;
  metrics: WorkMetrics;
  agent: TracedAgent;
  conversation: ObservedConversation;
}

interface Open {
  span: Span;
  context: Context;
  startedAt: number;
  /** The attributes of its metrics. */
  labels: Attributes;
}
/** A run, and the work in it that has not ended. */
interface OpenRun extends Open {
  work: Set<Open>;
  /** The model of its last model call, and the tools that it was offered. */
  model?: Pick<Model, 'id' | 'provider'>;
  tools?: ModelRequest['tools'];
}

/** The number of ended runs that a conversation remembers. */
export const ENDED_MOST = 100;

const CANCELLED: SpanOutcome = { attributes: {}, error: 'cancelled' };

/** Spans and metrics may fail in foreign code. Only OpenTelemetry's own diagnostics can report that. */
function guarded<T>(act: () => T): T | undefined {
  try {
    return act();
  } catch {
    return undefined;
  }
}

export class ConversationTrace implements WorkObserver {
  readonly #options: TraceOptions;
  /** The contexts in which runs were requested that have not begun. */
  readonly #parents = new Map<string, Context>();
  readonly #runs = new Map<string, OpenRun>();
  /** The runs that have begun and not ended, also those whose span could not begin. */
  readonly #begun = new Set<string>();
  /**
   * The runs that ended last, and whether they had begun. A run has one span, and later entries of it begin no second one. The
   * run of a returned message has not begun: it begins when the message is sent again.
   */
  readonly #ended = new Map<string, { hadBegun: boolean }>();

  constructor(options: TraceOptions) {
    this.#options = options;
  }

  requested(runId: string): void {
    const context = guarded(() => this.#options.api.context.active());
    if (context && !this.#runs.has(runId)) this.#parents.set(runId, context);
  }

  withdrawn(runId: string): void {
    this.#parents.delete(runId);
  }

  logged(entry: LogEntry): void {
    const { type, runId } = entry;
    if (type === 'tool-result') this.#count(entry);
    if (type !== 'run-started' && type !== 'run-resumed' && type !== 'tool-started') return;
    if (runId === null) return;
    const end = this.#ended.get(runId);
    if (this.#begun.has(runId) || end?.hadBegun || (end && type === 'tool-started')) return;
    this.#begun.add(runId);
    this.#ended.delete(runId);
    guarded(() => this.#begin(runId, entry));
  }

  around<Value extends WorkValue>(work: Work, act: () => Promise<Value>): Promise<Value> {
    const run = this.#runs.get(work.runId);
    const { api, contents, conversation } = this.#options;
    const open = guarded(() => {
      const called = work.kind === 'tool' ? run?.tools?.find(({ name }) => name === work.call.name) : undefined;
      const { redact, id } = conversation;
      const attributes = {
        ...workAttributes(work, { contents, redact }, called?.description),
        [CONVERSATION]: id,
      };
      const kind = work.kind === 'model' ? api.SpanKind.CLIENT : api.SpanKind.INTERNAL;
      const parent = run?.context ?? api.context.active();
      return this.#open(workName(work), { kind, attributes }, { parent, labels: metricAttributes(work) });
    });
    if (run && work.kind === 'model') Object.assign(run, { model: work.model, tools: work.request.tools });
    if (!open) return act();
    run?.work.add(open);
    const end = (ending: SpanOutcome): void => {
      // The end of the run has already ended this span.
      if (run && !run.work.delete(open)) return;
      this.#end(open, ending);
    };
    const value = this.#within(open.context, act);
    value.then(
      (settled) => {
        if (settled.kind === 'reply') guarded(() => this.#options.metrics.addTokens(settled.usage, open.labels));
        const { redact } = conversation;
        end(guarded(() => workOutcome(work, settled, { contents, redact })) ?? { attributes: {} });
      },
      () => end({ attributes: {}, error: 'internal' }),
    );
    return value;
  }

  ended(output: EndedRun): void {
    const { runId } = output;
    this.#parents.delete(runId);
    this.#rememberEnd(runId);
    const run = this.#runs.get(runId);
    if (!run) return;
    this.#runs.delete(runId);
    for (const open of run.work) this.#end(open, CANCELLED);
    run.work.clear();
    const { attributes, error } = guarded(() => runOutcome(output)) ?? { attributes: {} };
    this.#end(run, { attributes: { ...attributes, ...(run.model && modelAttributes(run.model)) }, error });
  }

  /** Entries of an ended run come soon after its end. */
  #rememberEnd(runId: string): void {
    const hadBegun = this.#begun.delete(runId) || this.#ended.get(runId)?.hadBegun === true;
    this.#ended.delete(runId);
    this.#ended.set(runId, { hadBegun });
    const [oldest] = this.#ended.keys();
    if (oldest !== undefined && this.#ended.size > ENDED_MOST) this.#ended.delete(oldest);
  }

  #begin(runId: string, entry: LogEntry): void {
    const { api, conversation } = this.#options;
    const parent = this.#parents.get(runId) ?? api.ROOT_CONTEXT;
    this.#parents.delete(runId);
    const links = entry.type === 'run-resumed' ? this.#linksTo(entry.of) : [];
    const [first] = conversation.entries;
    // A sub-agent is another agent, which has no name of its own.
    const agent = first?.type === 'conversation' && first.parent ? {} : this.#options.agent;
    const attributes = { ...runAttributes(conversation.id, runId), ...agentAttributes(agent) };
    const name = agent.name === undefined ? 'invoke_agent' : `invoke_agent ${agent.name}`;
    const about = { kind: api.SpanKind.INTERNAL, attributes, links };
    const open = this.#open(name, about, { parent, labels: { [OPERATION]: 'invoke_agent' } });
    this.#runs.set(runId, { ...open, work: new Set() });
    const { traceId, spanId, traceFlags } = open.span.spanContext();
    if (api.isSpanContextValid({ traceId, spanId, traceFlags }))
      conversation.note(runId, TRACE, { traceId, spanId, traceFlags });
  }

  /** The span context that the earlier run of the cycle logged, also in another process. */
  #linksTo(runId: string): Link[] {
    const { api, conversation } = this.#options;
    const { entries } = conversation;
    for (let at = entries.length - 1; at >= 0; at -= 1) {
      const entry = entries[at];
      if (entry?.type !== 'extension' || entry.name !== TRACE || entry.runId !== runId) continue;
      const context = fieldsOf(entry.value) as unknown as SpanContext;
      return api.isSpanContextValid(context) ? [{ context: { ...context, isRemote: true } }] : [];
    }
    return [];
  }

  #open(
    name: string,
    about: { kind: number; attributes: Attributes; links?: Link[] },
    { parent, labels }: { parent: Context; labels: Attributes },
  ): Open {
    const { api, tracer } = this.#options;
    const span = tracer.startSpan(name, about, parent);
    return { span, context: api.trace.setSpan(parent, span), startedAt: performance.now(), labels };
  }

  #end({ span, startedAt, labels }: Open, { attributes, error }: SpanOutcome): void {
    const { api, metrics } = this.#options;
    const errorType = error === undefined ? {} : { [ERROR_TYPE]: error };
    guarded(() => {
      span.setAttributes({ ...attributes, ...errorType });
      if (error !== undefined) span.setStatus({ code: api.SpanStatusCode.ERROR });
    });
    guarded(() => span.end());
    guarded(() => metrics.addDuration(performance.now() - startedAt, { ...labels, ...errorType }));
  }

  #count({ callId, outcome, code }: Extract<LogEntry, { type: 'tool-result' }>): void {
    const { conversation, metrics } = this.#options;
    const name = conversation.logState.calls.get(callId)?.name ?? '';
    const failure = code === undefined ? {} : { [ERROR_TYPE]: code };
    guarded(() => metrics.addOutcome({ [TOOL_NAME]: name, [OUTCOME]: outcome, ...failure }));
  }

  /** Runs `act` once, in the context where that is possible. */
  #within<T>(context: Context, act: () => Promise<T>): Promise<T> {
    let begun: Promise<T> | undefined;
    guarded(() =>
      this.#options.api.context.with(context, () => {
        begun = act();
      }),
    );
    return begun ?? act();
  }
}
