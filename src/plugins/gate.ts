/**
 * The gate before a tool runs (run-lifecycle, BeforeToolExecute): arguments, then permission, then plugins, where a
 * block beats a suspension and that beats an allow. Rule: anything that goes wrong here blocks; a replay is checked
 * again, but nobody is asked twice.
 */
import type { CallRecord, Decision, EffectRequest, GateValue, Json, ToolCall } from '../../machines/index.ts';
import { toJson } from '../json.ts';
import { thrownText } from '../tools/execute.ts';
import type { PreparedCall, Toolbox } from '../tools/prepare.ts';
import { PHASE_MS, phaseContext, type Surroundings } from './phases.ts';
import { type Plugin, within } from './plugin.ts';

type GateRequest = Extract<EffectRequest, { kind: 'gate' }>;
type Verdict = void | { block: string } | { suspend: { reason: string; payload?: Json } } | { args: Json };

export interface GateOptions {
  plugins: readonly Plugin[];
  around: Surroundings;
  toolbox: Toolbox;
  /** Somebody can be asked for approval. */
  attended: boolean;
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
    const { decision } = request;
    const record = around.known.calls.get(request.callId);
    if (!record) return refuse('error', 'the call is not in the log');
    const preparation = await toolbox.prepare(callOf(record, decision));
    if (preparation.kind === 'refused') return refuse(preparation.code, preparation.text);
    const { prepared } = preparation;
    const asked = decision ? undefined : await this.#permission(prepared);
    if (asked) return asked;
    const verdict = await this.#ask(prepared, request, signal);
    if (verdict.kind !== 'ready') return verdict;
    ready(verdict.prepared);
    const { args } = verdict.prepared.call;
    const changed = args !== record.args;
    const by = prepared.definition.needsApproval === undefined || decision ? undefined : 'needsApproval';
    return { kind: 'allow', ...(changed && { args }), ...(by && { by }) };
  }

  /** Nothing where the call may go on without being asked for. */
  async #permission({ definition, args }: PreparedCall): Promise<GateValue | undefined> {
    const { needsApproval } = definition;
    if (needsApproval === undefined || needsApproval === false) return undefined;
    if (typeof needsApproval === 'function') {
      try {
        if ((await needsApproval(args as never)) === false) return undefined;
      } catch (error) {
        this.#options.around.diagnose('approval_error', { tool: definition.name, message: thrownText(error) });
      }
    }
    if (this.#options.attended) return { kind: 'suspend', reason: 'permission' };
    return block('denied', `${definition.name} needs approval, and nobody can be asked here. It was not run.`);
  }

  async #ask(first: PreparedCall, request: GateRequest, signal: AbortSignal) {
    let prepared = first;
    let suspend: GateValue | undefined;
    for (const plugin of this.#options.plugins) {
      if (!plugin.beforeToolExecute) continue;
      const verdict = await this.#verdict(plugin, prepared, request, signal);
      if ('code' in verdict) return verdict.code;
      const { said } = verdict;
      if (!said) continue;
      if ('block' in said) return block('blocked', `Blocked by ${plugin.name}: ${said.block}`);
      if ('suspend' in said) suspend ??= suspension(said.suspend);
      if ('args' in said) {
        const again = await this.#rewritten(prepared, said.args, request);
        if ('kind' in again && again.kind !== 'ready') return again;
        prepared = again.prepared;
      }
    }
    return suspend ?? { kind: 'ready' as const, prepared };
  }

  async #verdict(plugin: Plugin, prepared: PreparedCall, request: GateRequest, signal: AbortSignal) {
    const { around } = this.#options;
    const { call, tool } = prepared;
    const { decision, runId } = request;
    const context = {
      ...phaseContext(around, runId, around.known.cycleTurns, signal),
      call,
      tool,
      ...(decision && { decision }),
    };
    try {
      const said: Verdict = await within(PHASE_MS, around.setTimer, () => plugin.beforeToolExecute?.(context));
      return { said };
    } catch (error) {
      const message = thrownText(error);
      around.diagnose('plugin_error', { plugin: plugin.name, phase: 'beforeToolExecute', message });
      return { code: block('plugin_error', `The check of ${plugin.name} failed, so the call was not run: ${message}`) };
    }
  }

  /** A rewrite is validated, and permission is looked at again. */
  async #rewritten(prepared: PreparedCall, args: Json, request: GateRequest) {
    const json = toJson(args);
    if (json.kind === 'refused') return block('plugin_error', `a check gave arguments that are no JSON: ${json.why}`);
    const { callId, name } = prepared.call;
    const preparation = await this.#options.toolbox.prepare({ callId, name, args: json.value });
    if (preparation.kind === 'refused') return refuse(preparation.code, preparation.text);
    const asked = request.decision ? undefined : await this.#permission(preparation.prepared);
    return asked ?? preparation;
  }
}

function suspension({ reason, payload }: { reason: string; payload?: Json }): GateValue {
  const json = payload === undefined ? undefined : toJson(payload);
  return { kind: 'suspend', reason, ...(json?.kind === 'parsed' && { payload: json.value }) };
}
