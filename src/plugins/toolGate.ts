/**
 * The gate before a tool runs (docs/internals/lifecycle.md, TOOL_CALL). It checks the arguments, then plugins, which
 * may rewrite them, then permission for the final arguments. A block has priority over a suspension, and a suspension
 * over an allowance. Invariant: every failure in this file blocks the call. A replay is checked again, but a person is asked only
 * once about the same arguments. After a question only the arguments of the question run.
 */
import {
  type CallRecord,
  canonical,
  type Decision,
  type EffectRequest,
  type GateValue,
  type Json,
  type LogEntry,
  type LogState,
  type RequestInfo,
  type ToolCall,
  type Transcript,
} from '../../machines/internal.ts';
import { thrownText } from '../errors.ts';
import { within } from '../timeLimit.ts';
import type { ToolRunner } from '../tools/execute.ts';
import { type CallGrant, ownGateOf } from '../tools/tool.ts';
import type { Preparation, PreparedCall, Toolbox } from '../tools/toolbox.ts';
import type { ResultLimits } from '../tools/toolResult.ts';
import { PHASE_MS, type RequestDraft } from './plugin.ts';

export type GateRequest = Extract<EffectRequest, { kind: 'gate' }>;

/** The parts of the conversation that plugins may read and change. */
export interface ConversationScope {
  conversationId: string;
  cwd: string;
  entries: readonly LogEntry[];
  transcript: Transcript;
  logState: LogState;
  request: { origin(callId?: string): RequestInfo };
  next: RequestDraft;
  /** A plugin requested a summary of earlier messages before the next call. */
  compact?: true | string;
  /** The reason for the next summary: a request (`manual`), or a full window (`auto`). */
  summaryFor?: 'manual' | 'auto';
  /** The reply of the turn under way. */
  reply: { text: string; calls: { callId: string; name: string; args: Json }[] } | undefined;
  setTimer(ms: number, fire: () => void): () => void;
  diagnose(code: string, detail?: Json): void;
}

/** The result of the plugins' checks. */
export type Checked =
  | {
      kind: 'passed';
      prepared: PreparedCall;
      suspend: GateValue | undefined;
      /** The decision of rules or hooks: the permission of the call, or the suspension or denial that asks about it. */
      permission?: { by?: string; asked?: GateValue; grant?: CallGrant };
    }
  | GateValue;

/** The plugins' part of the gate, loaded only for an agent with plugins. */
export interface ToolChecks {
  beforeTool(first: PreparedCall, request: GateRequest, signal: AbortSignal, asking: Asking): Promise<Checked>;
}

/** The gate's way to ask for approval. */
export interface Asking {
  /** The tool requires approval for these arguments. */
  isWanted(prepared: PreparedCall): Promise<boolean>;
  /** A suspension, or a denial if no person can be asked. */
  approval(name: string, payload?: Json): GateValue;
}

export interface GateOptions {
  /** Undefined without plugins. */
  phases: ToolChecks | undefined;
  around: ConversationScope;
  toolbox: Toolbox;
  /** A person can be asked for approval. */
  attended: boolean;
  limits: ResultLimits;
  /** Calls that are ready to run. */
  calls: Pick<ToolRunner, 'ready' | 'preparedCall'>;
}

const refuse = (code: string, text: string): GateValue => ({ kind: 'refuse', code, text });
export const block = (code: string, text: string): GateValue => ({ kind: 'block', code, text });

/** The call from the log, with the arguments of an `edit` decision. */
function callOf(record: CallRecord, decision: Decision | undefined): ToolCall {
  const { callId, name, args, argsText } = record;
  if (decision?.action === 'edit') return { callId, name, args: decision.args };
  return argsText === undefined ? { callId, name, args } : { callId, name, args, argsText };
}

export class Gate {
  readonly #options: GateOptions;

  constructor(options: GateOptions) {
    this.#options = options;
  }

  async pass(request: GateRequest, signal: AbortSignal): Promise<GateValue> {
    const { around, calls } = this.#options;
    const { decision } = request;
    const record = around.logState.calls.get(request.callId);
    if (!record) return refuse('error', 'the call is not in the log');
    // An early answer is no approval if the call then waits for approval, so the gate asks again.
    if (decision?.action === 'answer' && record.reason === 'permission') return this.#approval(record.name);
    // An early approval does not cover arguments that the suspension changed.
    if (decision?.action === 'approve' && record.unseen === request.suspension) return this.#approval(record.name);
    const preparation = await this.#prepared(callOf(record, decision), signal);
    if (preparation.kind === 'refused') return refuse(preparation.code, preparation.text);
    const verdict = await this.#ask(preparation.prepared, request, signal);
    if (verdict.kind !== 'passed') return verdict;
    const { prepared, suspend, permission } = verdict;
    const { args } = prepared.call;
    const holds = decision !== undefined && this.#same(args, preparation.prepared.call.args);
    const asked = holds
      ? undefined
      : permission
        ? permission.asked
        : await this.#askedAbout(prepared, decision, signal);
    const stays = asked ?? suspend;
    if (stays?.kind === 'suspend') return this.#same(args, record.args) ? stays : { ...stays, args };
    if (stays) return stays;
    calls.ready({ ...prepared, grant: permission?.grant });
    const changed = record.changed || args !== record.args;
    const own = !prepared.definition.needsApproval || decision ? undefined : 'needsApproval';
    const by = permission ? permission.by : own;
    return { kind: 'allow', ...(changed && { args }), ...(by && { by }) };
  }

  /** A call is validated once, unless its arguments differ from those in the log. */
  async #prepared(call: ToolCall, signal: AbortSignal): Promise<Preparation> {
    const { around, toolbox, calls } = this.#options;
    const prepared = calls.preparedCall(call.callId);
    if (prepared && prepared.call.args === call.args) return { kind: 'ready', prepared };
    return toolbox.prepare(call, { setTimer: around.setTimer, signal });
  }

  /** Compares arguments in their redacted form, as in the log. */
  #same(a: Json, b: Json): boolean {
    const { redact } = this.#options.limits;
    return a === b || canonical(redact(a)) === canonical(redact(b));
  }

  /** An approval covers the arguments that it was given for. An answer may be part of the new arguments, which the tool judges. */
  async #askedAbout(prepared: PreparedCall, decision: Decision | undefined, signal: AbortSignal) {
    const isApproval = decision !== undefined && decision.action !== 'answer';
    return isApproval ? this.#approval(prepared.definition.name) : this.#permission(prepared, signal);
  }

  /** Undefined if the call needs no approval. */
  async #permission(prepared: PreparedCall, signal: AbortSignal): Promise<GateValue | undefined> {
    return (await this.#isWanted(prepared, signal)) ? this.#approval(prepared.definition.name) : undefined;
  }

  async #isWanted({ definition, args }: PreparedCall, signal: AbortSignal): Promise<boolean> {
    const { needsApproval } = definition;
    if (!needsApproval) return false;
    if (typeof needsApproval === 'function') {
      const { setTimer, diagnose } = this.#options.around;
      try {
        return (
          (await within(PHASE_MS, { setTimer, signal }, () => needsApproval.call(definition, args as never))) !== false
        );
      } catch (error) {
        if (signal.aborted) throw error;
        diagnose('approval_error', { tool: definition.name, message: thrownText(error) });
      }
    }
    return true;
  }

  #approval(name: string, payload?: Json): GateValue {
    if (this.#options.attended)
      return { kind: 'suspend', reason: 'permission', ...(payload !== undefined && { payload }) };
    return block('denied', `${name} needs approval, and nobody can be asked here. It was not run.`);
  }

  async #ask(first: PreparedCall, request: GateRequest, signal: AbortSignal): Promise<Checked> {
    const { around, phases } = this.#options;
    const own = ownGateOf(first.tool);
    const why = own?.(first.call.callId, around.entries);
    if (why !== undefined) return block('blocked', why);
    const passed = { kind: 'passed' as const, prepared: first, suspend: undefined };
    const isWanted = (prepared: PreparedCall): Promise<boolean> => this.#isWanted(prepared, signal);
    const approval = (name: string, payload?: Json): GateValue => this.#approval(name, payload);
    return own || !phases ? passed : phases.beforeTool(first, request, signal, { isWanted, approval });
  }
}
