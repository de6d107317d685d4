/**
 * The gate before a tool runs (run-lifecycle, BeforeToolExecute): arguments, then plugins, which may rewrite them, then
 * permission for what will really run; a block beats a suspension and that beats an allow. Rule: anything that goes
 * wrong here blocks; a replay is checked again, but nobody is asked twice about the same arguments, and none run but
 * those that somebody was asked about.
 */
import {
  type CallRecord,
  canonical,
  type Decision,
  type EffectRequest,
  type GateValue,
  type Json,
  type ToolCall,
} from '../../machines/index.ts';
import { thrownText } from '../thrown.ts';
import { ownGateOf } from '../tools/define.ts';
import type { PreparedCall, Toolbox, Waiting } from '../tools/prepare.ts';
import { cut, type ResultLimits } from '../tools/result.ts';
import { PHASE_MS, phaseContext, type Surroundings } from './phases.ts';
import { type Plugin, within } from './plugin.ts';
import { readVerdict } from './verdict.ts';

type GateRequest = Extract<EffectRequest, { kind: 'gate' }>;

export interface GateOptions {
  plugins: readonly Plugin[];
  around: Surroundings;
  toolbox: Toolbox;
  /** Somebody can be asked for approval. */
  attended: boolean;
  limits: ResultLimits;
  /** The call as it will run. */
  ready(prepared: PreparedCall): void;
}

const refuse = (code: string, text: string): GateValue => ({ kind: 'refuse', code, text });
const block = (code: string, text: string): GateValue => ({ kind: 'block', code, text });

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
    const { around, toolbox, ready } = this.#options;
    const waiting = { setTimer: around.setTimer, signal };
    const { decision } = request;
    const record = around.known.calls.get(request.callId);
    if (!record) return refuse('error', 'the call is not in the log');
    // An answer that came before the call was known to wait for approval is no approval: it is asked for again.
    if (decision?.action === 'answer' && record.reason === 'permission') return this.#approval(record.name);
    // Nor is an approval that came before it was known that others than the model's arguments wait.
    if (decision?.action === 'approve' && record.unseen === request.suspension) return this.#approval(record.name);
    const preparation = await toolbox.prepare(callOf(record, decision), waiting);
    if (preparation.kind === 'refused') return refuse(preparation.code, preparation.text);
    const verdict = await this.#ask(preparation.prepared, request, signal);
    if (verdict.kind !== 'passed') return verdict;
    const { prepared, suspend } = verdict;
    const { args } = prepared.call;
    const holds = decision !== undefined && this.#same(args, preparation.prepared.call.args);
    const asked = holds ? undefined : await this.#askedAbout(prepared, decision, signal);
    const stays = asked ?? suspend;
    if (stays?.kind === 'suspend') return this.#same(args, record.args) ? stays : { ...stays, args };
    if (stays) return stays;
    ready(prepared);
    const changed = record.changed || args !== record.args;
    const by = !prepared.definition.needsApproval || decision ? undefined : 'needsApproval';
    return { kind: 'allow', ...(changed && { args }), ...(by && { by }) };
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
  async #permission({ definition, args }: PreparedCall, signal: AbortSignal): Promise<GateValue | undefined> {
    const { needsApproval } = definition;
    if (needsApproval === undefined || needsApproval === false) return undefined;
    if (typeof needsApproval === 'function') {
      const { setTimer, diagnose } = this.#options.around;
      try {
        if ((await within(PHASE_MS, { setTimer, signal }, () => needsApproval(args as never))) === false)
          return undefined;
      } catch (error) {
        if (signal.aborted) throw error;
        diagnose('approval_error', { tool: definition.name, message: thrownText(error) });
      }
    }
    return this.#approval(definition.name);
  }

  #approval(name: string): GateValue {
    if (this.#options.attended) return { kind: 'suspend', reason: 'permission' };
    return block('denied', `${name} needs approval, and nobody can be asked here. It was not run.`);
  }

  async #ask(first: PreparedCall, request: GateRequest, signal: AbortSignal) {
    let prepared = first;
    let suspend: GateValue | undefined;
    const own = ownGateOf(first.tool);
    if (own) {
      const why = own(first.call.callId, this.#options.around.entries);
      return why === undefined ? { kind: 'passed' as const, prepared, suspend } : block('blocked', why);
    }
    for (const plugin of this.#options.plugins) {
      if (!plugin.beforeToolExecute) continue;
      const verdict = await this.#verdict(plugin, prepared, request, signal);
      if ('code' in verdict) return verdict.code;
      const { said } = verdict;
      if (!said) continue;
      if (said.block !== undefined) return this.#blocked(`Blocked by ${plugin.name}: ${said.block}`);
      suspend ??= said.suspend;
      if (said.args !== undefined) {
        const again = await this.#rewritten(prepared, said.args, { setTimer: this.#options.around.setTimer, signal });
        if (again.kind !== 'ready') return again;
        prepared = again.prepared;
      }
    }
    return { kind: 'passed' as const, prepared, suspend };
  }

  #blocked(words: string): GateValue {
    const { redact, resultBytes } = this.#options.limits;
    return block('blocked', cut(redact(words), resultBytes));
  }

  async #verdict(plugin: Plugin, prepared: PreparedCall, request: GateRequest, signal: AbortSignal) {
    const { around } = this.#options;
    const { call, tool } = prepared;
    const { decision, runId } = request;
    const context = {
      ...phaseContext(around, runId, around.known.counters.turns, signal),
      call,
      tool,
      ...(decision && { decision }),
    };
    try {
      const { setTimer } = around;
      const act = (): unknown => plugin.beforeToolExecute?.(context);
      const said = readVerdict(await within(PHASE_MS, { setTimer, signal }, act), this.#options.limits);
      return { said };
    } catch (error) {
      if (signal.aborted) throw error;
      const message = thrownText(error);
      around.diagnose('plugin_error', { plugin: plugin.name, phase: 'beforeToolExecute', message });
      return { code: block('plugin_error', `The check of ${plugin.name} failed, so the call was not run: ${message}`) };
    }
  }

  /** A rewrite is validated like what the model wrote. */
  async #rewritten(prepared: PreparedCall, args: Json, waiting: Waiting) {
    const { callId, name } = prepared.call;
    const preparation = await this.#options.toolbox.prepare({ callId, name, args }, waiting);
    return preparation.kind === 'refused' ? refuse(preparation.code, preparation.text) : preparation;
  }
}
