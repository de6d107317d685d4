/**
 * One turn of the model: its request, the usage of the context window, and its reply as the charts see it. Invariant: messages
 * come from the log alone. Additions of hooks apply to one request. Call ids are unique in a log. Arguments are parsed here and
 * nowhere else, after secrets are removed. A call that cannot run has a reason.
 */

import {
  type AgentItem,
  type Chart,
  type ContextValue,
  deepFreeze,
  type EffectRequest,
  isVisible,
  type Json,
  type LogEntry,
  type LogState,
  type ModelValue,
  type RoundCall,
  type SummaryValue,
  type ToolCall,
  type Transcript,
  type Usage,
} from '../../machines/internal.ts';
import type { Policies } from '../agentPolicies.ts';
import type { Redact } from '../log/redact.ts';
import type { Attempted, RawCall, RawReply } from '../models/attempt.ts';
import {
  type Model,
  ModelError,
  type ModelRequest,
  type Prices,
  type StreamContext,
  WRITTEN,
} from '../models/model.ts';
import type { TextCalls } from '../models/textCalls.ts';
import type { RequestDraft, RequestPatch } from '../plugins/plugin.ts';
import type { WorkObserver } from '../plugins/workObserver.ts';
import type { EffectAbort } from '../timeLimit.ts';
import { definitionOf } from '../tools/tool.ts';
import {
  ARGS_LONGEST,
  type Preparation,
  type PreparedCall,
  parsedCall,
  refused,
  roundCall,
  type Toolbox,
  type Waiting,
} from '../tools/toolbox.ts';
import type { CurrentRequest } from './currentRequest.ts';
import type { Ports } from './hostPorts.ts';
import type { SubAgents } from './subAgentPort.ts';

const PATCHED = ['system', 'tools', 'maxOutputTokens', 'temperature'] as const satisfies (keyof RequestPatch)[];

export class NextRequest implements RequestDraft {
  readonly instructions: string;
  readonly #toolbox: Toolbox;
  readonly #transcript: Transcript;
  readonly #request: CurrentRequest;
  readonly #redact: Redact;
  /** The messages in the format of adapters, cached. */
  readonly context: Pick<StreamContext, typeof WRITTEN> = { [WRITTEN]: {} };
  #contexts: string[] = [];
  #patch: RequestPatch = {};
  /** The request of the current turn: every attempt sends the same. `limit`: the output limit that the request names. */
  #current: { turn: string; request: ModelRequest; limit: number | undefined } | undefined;

  constructor(options: {
    instructions: string;
    toolbox: Toolbox;
    transcript: Transcript;
    request: CurrentRequest;
    redact: Redact;
  }) {
    this.#redact = options.redact;
    this.instructions = options.instructions;
    this.#toolbox = options.toolbox;
    this.#transcript = options.transcript;
    this.#request = options.request;
  }

  get model(): Model {
    return this.#request.shownModel;
  }

  addContext(text: string | undefined): void {
    if (text) this.#contexts.push(this.#redact(text));
  }

  /** Prepares a new request. Changes to a request that was never sent are forgotten. */
  begin(): void {
    this.#patch = {};
  }

  /** Applies the fields that a patch may change. Messages come from the log. */
  patch(patch: RequestPatch): void {
    for (const field of PATCHED) {
      if (patch[field] !== undefined) this.#patch = { ...this.#patch, [field]: patch[field] };
    }
  }

  /** Tokens of input and output together. Undefined where the model does not state them. */
  get window(): number | undefined {
    return this.model.contextWindow;
  }

  /** The current request without its messages. */
  frame(): Omit<ModelRequest, 'messages'> {
    const { maxOutputTokens } = this.model;
    const system = [this.#patch.system ?? this.instructions, ...this.#contexts].filter(Boolean).join('\n\n');
    const tools = this.#request.toolsAmong(this.#patch.tools ?? this.#toolbox.specs);
    const { settings } = this.#request;
    return { ...(maxOutputTokens !== undefined && { maxOutputTokens }), ...settings, ...this.#patch, tools, system };
  }

  /** The current request. */
  preview(): ModelRequest {
    return { messages: this.#transcript.messages(), ...this.frame() };
  }

  /** The request of a turn, built at its first attempt. A fallback model has its own output limit, unless the request names one. */
  of(turn: string, { maxOutputTokens }: Pick<Model, 'maxOutputTokens'>): ModelRequest {
    if (this.#current?.turn !== turn) {
      const limit = this.#patch.maxOutputTokens ?? this.#request.settings.maxOutputTokens;
      this.#current = { turn, request: this.preview(), limit };
      this.#contexts = [];
      this.#patch = {};
    }
    const { request, limit = maxOutputTokens } = this.#current;
    return request.maxOutputTokens === limit ? request : ({ ...request, maxOutputTokens: limit } as ModelRequest);
  }

  /** Whether the request of the current turn contains the tool. */
  offered(name: string): boolean {
    const tools = this.#current?.request.tools ?? this.#request.toolsAmong(this.#toolbox.specs);
    return tools === this.#toolbox.specs || tools.some((tool) => tool.name === name);
  }

  /** The request was answered; its messages are not kept. */
  answered(): void {
    if (this.#current) this.#current = { ...this.#current, request: { ...this.#current.request, messages: [] } };
  }
}

/** Measures the usage of the context window; loaded where its size is known (`contextWindow.ts`). */
export type ContextUse = (
  request: Extract<EffectRequest, { kind: 'context' }>,
  scope: {
    next: Pick<NextRequest, 'window' | 'frame'>;
    transcript: Transcript;
    entries: readonly LogEntry[];
    logState: LogState;
    compact?: true | string;
    summaryFor?: 'manual' | 'auto';
  },
) => ContextValue;

/** Summarizes earlier messages; loaded where the policy may need it (`summary.ts`). */
export interface Summaries {
  /** The charts with COMPACTION. */
  compactingConversation: Chart;
  summaryValue(request: SummaryRequest, abort: EffectAbort, options: SummaryOptions): Promise<SummaryAnswer>;
}
export type SummaryRequest = Extract<EffectRequest, { kind: 'summary' }>;
export type SummaryAnswer = SummaryValue | Extract<ModelValue, { kind: 'failed' }>;
export interface SummaryOptions {
  models: readonly Model[];
  policies: Policies;
  ports: Pick<Ports, 'now' | 'setTimer' | 'random'>;
  redact: Redact;
  workObserver?: WorkObserver | undefined;
  around: {
    entries: readonly LogEntry[];
    transcript: Transcript;
    next: NextRequest;
    diagnose(code: string, detail?: Json): void;
  };
}

export interface ReplyOptions {
  model: Model;
  toolbox: Toolbox;
  logState: LogState;
  subAgents: SubAgents | undefined;
  /** Whether the answered request contains the tool. */
  offered(name: string): boolean;
  callsMax: number;
  textToolCalls: Policies['textToolCalls'];
  /** Reads tool calls in text; present where the policy names a format. */
  textCalls: TextCalls | undefined;
  pluginGates: boolean;
  redact: Redact;
  waiting: Waiting;
  ready(prepared: PreparedCall): void;
  diagnose(code: string, detail?: Json): void;
}

const ID_LONGEST = 256;

/** USD of one reply; null where a price is unknown. Cache tokens without a price of their own cost as much as input. */
export function costOf(usage: Usage, prices: Prices | undefined): number | null {
  if (!prices) return null;
  const { inputTokens, outputTokens, cachedInputTokens, cacheWriteTokens } = usage;
  const fresh = Math.max(0, inputTokens - cachedInputTokens - cacheWriteTokens);
  const cached = cachedInputTokens * (prices.cachedInput ?? prices.input);
  const written = cacheWriteTokens * (prices.cacheWrite ?? prices.input);
  const usd = (fresh * prices.input + cached + written + outputTokens * prices.output) / 1_000_000;
  return Number.isFinite(usd) ? usd : null;
}

/** Gives out ids that no other call of the log, of its sub-agents or of their parent has. */
class FreshIds {
  readonly #logState: LogState;
  readonly #subAgents: SubAgents | undefined;
  #issued: Set<string> | undefined;
  /** The next number to try, by id. */
  #next: Map<string, number> | undefined;

  constructor(logState: LogState, subAgents: SubAgents | undefined) {
    this.#logState = logState;
    this.#subAgents = subAgents;
  }

  take(wanted: string): string {
    const base = wanted === '' ? 'call' : wanted.slice(0, ID_LONGEST);
    const id = wanted !== '' && wanted === base && this.#free(wanted) ? wanted : this.#numbered(base);
    this.#issued ??= new Set();
    this.#issued.add(id);
    return id;
  }

  #numbered(base: string): string {
    this.#next ??= new Map();
    let count = this.#next.get(base) ?? (base === 'call' ? 1 : 2);
    while (!this.#free(`${base}_${count}`)) count += 1;
    this.#next.set(base, count + 1);
    return `${base}_${count}`;
  }

  #free(id: string): boolean {
    if (this.#issued?.has(id) || this.#logState.calls.has(id)) return false;
    return this.#subAgents?.reserveCallId(id) ?? true;
  }
}

async function prepare(options: ReplyOptions, raw: RawCall, call: ToolCall, position: number, cut: boolean) {
  const { toolbox, offered, callsMax, waiting } = options;
  const incomplete = call.argsText !== undefined || raw.args.trim() === '';
  if (cut && incomplete) {
    return refused('truncated', 'The reply was cut off by its length limit inside this call. It was not run.');
  }
  if (raw.args.length > ARGS_LONGEST) {
    return refused('too_large', `The arguments of a call may have ${ARGS_LONGEST} characters. It was not run.`);
  }
  if (position >= callsMax) return refused('too_many_calls', `Only ${callsMax} calls a reply are run.`);
  if (toolbox.find(call.name) && !offered(call.name)) {
    return refused('out_of_scope', `${call.name} is not offered in this request. It was not run.`);
  }
  return toolbox.prepare(call, waiting);
}

/** The call under its own id, without secrets. The name of a tool comes from the host, so it stays. */
function ownCall({ toolbox, redact, diagnose }: ReplyOptions, raw: RawCall, ids: FreshIds): ToolCall {
  const wantedId = raw.callId === undefined ? undefined : redact(raw.callId);
  const callId = ids.take(wantedId ?? '');
  if (wantedId !== undefined && callId !== raw.callId) {
    diagnose('id_duplicate', { given: wantedId.slice(0, ID_LONGEST), used: callId });
  }
  const name = toolbox.find(raw.name) ? raw.name : redact(raw.name);
  return redactedCall(parsedCall(callId, name, redact(raw.args), raw.extra), redact);
}

/** Escapes in the text of arguments may hide a secret until they are parsed. */
const redactedCall = (call: ToolCall, redact: Redact): ToolCall => ({
  ...call,
  args: deepFreeze(redact(call.args)),
});

/** The calls in the text of a reply. If the reply has native calls, only those count. */
function inText({ items }: RawReply, { textToolCalls, textCalls }: ReplyOptions): RawReply['items'] {
  if (!textToolCalls || !textCalls || items.some(({ type }) => type === 'call')) return [];
  const texts = items.flatMap((item) => (item.type === 'assistant' ? [item.text] : []));
  return textCalls(texts, textToolCalls).map((call) => ({ type: 'call', call }));
}

export async function replyValue(raw: RawReply, options: ReplyOptions): Promise<ModelValue> {
  const { model, toolbox, logState, pluginGates, ready } = options;
  const items: AgentItem[] = [];
  const calls: RoundCall[] = [];
  const ids = new FreshIds(logState, options.subAgents);
  const found = inText(raw, options);
  let empty = true;
  for (const item of [...raw.items, ...found]) {
    if (item.type !== 'call') {
      if (item.type === 'assistant' && isVisible(item.text)) empty = false;
      items.push(item as AgentItem);
      continue;
    }
    empty = false;
    const call = ownCall(options, item.call, ids);
    const preparation: Preparation = await prepare(options, item.call, call, calls.length, raw.finish === 'length');
    if (preparation.kind === 'ready') ready(preparation.prepared);
    const tool = toolbox.find(call.name);
    const group = tool && definitionOf(tool)?.group;
    items.push({ type: 'tool-call', ...call, ...(group && { group }) });
    calls.push(roundCall(call, preparation, pluginGates));
  }
  const { finish, usage, extra } = raw;
  const costUsd = costOf(usage, model.prices);
  const reply = { kind: 'reply' as const, items, calls, finish, empty, usage, costUsd, model: model.id };
  return extra === undefined ? reply : { ...reply, extra: deepFreeze(options.redact(extra)) };
}

/** The run no longer needs the value. Models and tools also end by an abort at a time-out, which they report themselves. */
export const isCancelled = ({ aborted, reason }: Pick<EffectAbort, 'aborted' | 'reason'>): boolean =>
  aborted && !(reason instanceof ModelError) && (reason as { name?: unknown } | undefined)?.name !== 'TimeoutError';

/** One attempt of a model call, which the observer follows if there is one. */
export function observedAttempt(
  { workObserver, abort }: { workObserver: WorkObserver | undefined; abort: EffectAbort },
  about: { model: Model; request: ModelRequest; runId: string },
  act: () => Promise<Attempted>,
): Promise<Attempted> {
  if (!workObserver) return act();
  const costUsd = (usage: Usage): number | null => costOf(usage, about.model.prices);
  return workObserver.around({ ...about, kind: 'model', costOf: costUsd, isCancelled: () => isCancelled(abort) }, act);
}
