/**
 * The gate before a tool runs (docs/internals/lifecycle.md, TOOL_CALL). It checks the arguments, then plugins, which
 * may rewrite them, then permission for the final arguments. A block has priority over a suspension, and a suspension
 * over an allowance. Invariant: every failure in this file blocks the call. A replay is checked again, but nobody is
 * asked twice about the same arguments. Arguments that somebody was asked about are the only ones that run.
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
  type ToolCall,
  type Transcript,
} from '../../machines/internal.ts';
import { thrownText } from '../errors.ts';
import { within } from '../timeLimit.ts';
import type { ToolRunner } from '../tools/execute.ts';
import type { ResultLimits } from '../tools/result.ts';
import { type CallGrant, ownGateOf } from '../tools/tool.ts';
import type { Preparation, PreparedCall, Toolbox } from '../tools/toolbox.ts';
import { PHASE_MS, type RequestDraft } from './plugin.ts';

export type GateRequest = Extract<EffectRequest, { kind: 'gate' }>;

/** What plugins may see and touch of their conversation. */
export interface ConversationScope {
  conversationId: string;
  cwd: string;
  entries: readonly LogEntry[];
  transcript: Transcript;
  logState: LogState;
  next: RequestDraft;
  /** A plugin wants earlier messages summed up before the next call. */
  compact?: true | string;
  /** Why the next summary is due: somebody wanted it, or the window is full. */
  summaryFor?: 'manual' | 'auto';
  /** The reply of the turn under way. */
  reply: { text: string; calls: { callId: string; name: string; args: Json }[] } | undefined;
  setTimer(ms: number, fire: () => void): () => void;
  diagnose(code: string, detail?: Json): void;
}

/** What the plugins made of a call that they checked. */
export type Checked =
  | {
      kind: 'passed';
      prepared: PreparedCall;
      suspend: GateValue | undefined;
      /** Where rules or hooks decided about permission: who allowed it, or what comes of the question. */
      permission?: { by?: string; asked?: GateValue; grant?: CallGrant };
    }
  | GateValue;

/** The plugins' part of the gate; loaded only where there are plugins. */
export interface ToolChecks {
  beforeTool(first: PreparedCall, request: GateRequest, signal: AbortSignal, asking: Asking): Promise<Checked>;
}

/** How approval is asked for. */
export interface Asking {
  /** The tool wants it for these arguments. */
  isWanted(prepared: PreparedCall): Promise<boolean>;
  /** A suspension, or a denial where nobody can be asked. */
  approval(name: string, payload?: Json): GateValue;
}

export interface GateOptions {
  /** Where there are plugins. */
  phases: ToolChecks | undefined;
  around: ConversationScope;
  toolbox: Toolbox;
  /** Somebody can be asked for approval. */
  attended: boolean;
  limits: ResultLimits;
  /** Calls that are ready to run. */
  calls: Pick<ToolRunner, 'ready' | 'known'>;
}

const refuse = (code: string, text: string): GateValue => ({ kind: 'refuse', code, text });
export const block = (code: string, text: string): GateValue => ({ kind: 'block', code, text });

/** The call as the log has it, with the arguments a decision gave. */
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
    // An answer that came before the call was known to wait for approval is no approval: it is asked for again.
    if (decision?.action === 'answer' && record.reason === 'permission') return this.#approval(record.name);
    // Nor is an approval that came before it was known that others than the model's arguments wait.
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

  /** A call that is validated already is not validated again, as long as its arguments are those that the log has. */
  async #prepared(call: ToolCall, signal: AbortSignal): Promise<Preparation> {
    const { around, toolbox, calls } = this.#options;
    const known = calls.known(call.callId);
    if (known && known.call.args === call.args) return { kind: 'ready', prepared: known };
    return toolbox.prepare(call, { setTimer: around.setTimer, signal });
  }

  /** As the log shows them. */
  #same(a: Json, b: Json): boolean {
    const { redact } = this.#options.limits;
    return a === b || canonical(redact(a)) === canonical(redact(b));
  }

  /** An approval is one of certain arguments, and an answer tells those who asked, who may have put it into them. */
  async #askedAbout(prepared: PreparedCall, decision: Decision | undefined, signal: AbortSignal) {
    const isApproval = decision !== undefined && decision.action !== 'answer';
    return isApproval ? this.#approval(prepared.definition.name) : this.#permission(prepared, signal);
  }

  /** Nothing where the call may go on without being asked for. */
  async #permission(prepared: PreparedCall, signal: AbortSignal): Promise<GateValue | undefined> {
    return (await this.#isWanted(prepared, signal)) ? this.#approval(prepared.definition.name) : undefined;
  }

  async #isWanted({ definition, args }: PreparedCall, signal: AbortSignal): Promise<boolean> {
    const { needsApproval } = definition;
    if (needsApproval === undefined || needsApproval === false) return false;
    if (typeof needsApproval === 'function') {
      const { setTimer, diagnose } = this.#options.around;
      try {
        if ((await within(PHASE_MS, { setTimer, signal }, () => needsApproval(args as never))) === false) return false;
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
