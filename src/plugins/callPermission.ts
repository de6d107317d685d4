/**
 * Decides whether one call may run, by hooks and rules. Invariant: hooks come first, then rules, other plugins and the
 * question, in any order of the plugins. The strictest of several answers applies. After an approval no hook is asked
 * again and only a denial counts. Edited arguments are judged like the model's: the edit answers a question, never a
 * denial. Anything that goes wrong blocks the call.
 */
import type { GateValue, Json } from '../../machines/internal.ts';
import { thrownText } from '../errors.ts';
import { within } from '../timeLimit.ts';
import { type CallGrant, sandboxNetworkOf, spawns } from '../tools/tool.ts';
import type { Preparation, PreparedCall, Toolbox } from '../tools/toolbox.ts';
import { cut, type ResultLimits } from '../tools/toolResult.ts';
import {
  CALL_CHECKS,
  type CallChecks,
  type CheckedCall,
  type ChecksCalls,
  type HookVerdict,
  type RuleVerdict,
} from './callChecks.ts';
import type { Plugin } from './plugin.ts';
import type { RunStops } from './runStops.ts';
import { type Asking, block, type Checked, type ConversationScope, type GateRequest } from './toolGate.ts';

interface Scope {
  plugins: readonly Plugin[];
  around: ConversationScope;
  toolbox: Toolbox;
  limits: ResultLimits;
  /** The runs that a hook stopped, with the reason. */
  stops: RunStops;
}

/** The limit for all hooks together. Each hook also has its own. */
const CHECKS_MS = 120_000;

type Passed = Extract<Checked, { kind: 'passed' }>;
const passed = (prepared: PreparedCall): Passed => ({ kind: 'passed', prepared, suspend: undefined });
const STRICTNESS: readonly RuleVerdict['outcome'][] = ['allow', 'ask', 'deny'];

export class CallPermission {
  readonly #scope: Scope;
  readonly #checks: readonly { plugin: string; checks: CallChecks }[];
  readonly #request: GateRequest;
  readonly #signal: AbortSignal;
  readonly #asking: Asking;
  #hook: HookVerdict['decision'];
  #judged: { prepared: PreparedCall; verdict: RuleVerdict | undefined } | undefined;

  constructor(scope: Scope, request: GateRequest, signal: AbortSignal, asking: Asking) {
    this.#scope = scope;
    this.#checks = checksOf(scope.plugins);
    this.#request = request;
    this.#signal = signal;
    this.#asking = asking;
  }

  /** Hooks before the rules: they block the call, rewrite it, or allow or ask. */
  async before(first: PreparedCall): Promise<Checked> {
    let prepared = first;
    const stopped = this.#scope.stops.ofItself(this.#request.runId);
    if (stopped !== undefined) return this.#refused('blocked', `Not run: a hook has stopped the run (${stopped}).`);
    if (!this.#isNew) return passed(prepared);
    for (const { plugin, checks } of this.#checks) {
      const call = await this.#call(prepared);
      const answer = await this.#asked(plugin, () => checks.before?.(call));
      if (answer.kind === 'failed') return answer.value;
      const { block: why, stop, args, decision } = answer.value ?? {};
      if (why !== undefined) {
        if (stop) this.#stop(why);
        return this.#refused(stop ? 'denied' : 'blocked', why);
      }
      // If several hooks decide, `ask` has priority.
      if (decision !== undefined && this.#hook !== 'ask') this.#hook = decision;
      if (args === undefined) continue;
      // A hook has not allowed the arguments of a later one.
      if (decision === undefined && this.#hook === 'allow') this.#hook = undefined;
      const again = await this.#rewritten(prepared, args);
      if (again.kind === 'refused') return { kind: 'refuse', code: again.code, text: again.text };
      prepared = again.prepared;
    }
    return passed(prepared);
  }

  /** The arguments are the model's, or new ones of a person that no check has judged. */
  get #isNew(): boolean {
    const { decision } = this.#request;
    return decision === undefined || decision.action === 'edit';
  }

  /** Rewritten arguments are validated like those of the model. */
  #rewritten({ call: { callId, name } }: PreparedCall, args: Json): Promise<Preparation> {
    const waiting = { setTimer: this.#scope.around.setTimer, signal: this.#signal };
    return this.#scope.toolbox.prepare({ callId, name, args }, waiting);
  }

  /** The rules. A denial ends the checks before other plugins are called. */
  async permit(prepared: PreparedCall): Promise<Checked> {
    let verdict: RuleVerdict | undefined;
    const call = await this.#call(prepared);
    for (const { plugin, checks } of this.#checks) {
      const answer = await this.#asked(plugin, () => checks.permit?.(call, this.#hook));
      if (answer.kind === 'failed') return answer.value;
      verdict = stricter(verdict, answer.value);
    }
    this.#judged = { prepared, verdict: verdict ?? this.#byHookAlone(call) };
    if (verdict?.outcome !== 'deny') return passed(prepared);
    return this.#refused('denied', `${prepared.definition.name} was not allowed (${verdict.by}), and was not run.`);
  }

  /** Without rules, only a hook and the tool itself can ask. */
  #byHookAlone({ needsApproval }: CheckedCall): RuleVerdict | undefined {
    if (this.#hook === 'ask') return { outcome: 'ask', by: 'hook' };
    if (needsApproval) return { outcome: 'ask', by: 'needsApproval' };
    return this.#hook === 'allow' ? { outcome: 'allow', by: 'hook' } : undefined;
  }

  /** The result after the other plugins. If they rewrote the call, the rules judge it again. */
  async concluded(prepared: PreparedCall, suspend: GateValue | undefined): Promise<Checked> {
    if (this.#judged?.prepared !== prepared) {
      const again = await this.permit(prepared);
      if (again.kind !== 'passed') return again;
    }
    const verdict = this.#judged?.verdict;
    const result: Passed = { kind: 'passed', prepared, suspend };
    if (verdict === undefined) return { ...result, permission: {} };
    const { decision } = this.#request;
    const where = whereOf(verdict);
    if (decision && this.#isMoved(prepared, verdict))
      return this.#refused('moved', 'The path leads elsewhere than when it was approved, so the call was not run.');
    if (verdict.outcome === 'allow') return { ...result, permission: decision ? where : { ...where, by: verdict.by } };
    if (!this.#isNew) {
      return { ...result, permission: { ...where, asked: this.#approval(prepared.definition.name, verdict) } };
    }
    const answered = await this.#resolved({ ...result, permission: where }, verdict);
    // A person who changed the arguments has decided about them.
    const isOwn =
      answered.kind === 'passed' && decision?.action === 'edit' && answered.prepared.call.args === decision.args;
    return isOwn ? { ...answered, permission: where } : answered;
  }

  /** The plugins rewrote the arguments of a hook's answer. The call stays allowed, or asks, unless the rules deny it. */
  async rejudged(answered: Passed, prepared: PreparedCall): Promise<Checked> {
    const ruled = await this.permit(prepared);
    if (ruled.kind !== 'passed') return ruled;
    const { grant: _, ...permission } = answered.permission ?? {};
    return { ...answered, prepared, permission: { ...permission, ...whereOf(this.#judged?.verdict) } };
  }

  /** A hook may answer in place of a person, also with other arguments. */
  async #resolved(first: Passed, asking: RuleVerdict): Promise<Checked> {
    let [result, verdict] = [first, asking];
    for (const { plugin, checks } of this.#checks) {
      const call = await this.#call(result.prepared);
      const answer = await this.#asked(plugin, () => checks.requested?.(call, verdict));
      if (answer.kind === 'failed') return answer.value;
      if (answer.value === undefined) continue;
      if (answer.value.decision === 'deny') {
        if (answer.value.stop) this.#stop(answer.value.reason);
        return this.#refused('denied', `Denied: ${answer.value.reason}`);
      }
      const { decision, by, args } = answer.value;
      if (args !== undefined) {
        const again = await this.#rewritten(result.prepared, args);
        if (again.kind === 'refused') {
          this.#unfit(plugin, again.text);
          continue;
        }
        const ruled = await this.permit(again.prepared);
        if (ruled.kind !== 'passed') return ruled;
        verdict = this.#judged?.verdict ?? verdict;
        result = { ...result, prepared: again.prepared, permission: whereOf(verdict) };
        if (verdict.outcome === 'allow') return { ...result, permission: { ...result.permission, by: verdict.by } };
      }
      if (decision === 'allow') return { ...result, permission: { ...result.permission, by } };
    }
    const asked = this.#approval(result.prepared.definition.name, verdict);
    return { ...result, permission: { ...result.permission, asked } };
  }

  /** An answer with invalid arguments is ignored, and the call still asks. */
  #unfit(plugin: string, why: string): void {
    const message = `it allowed the call with arguments that cannot be applied: ${this.#bounded(why)}`;
    this.#scope.around.diagnose('plugin_error', { plugin, phase: 'beforeToolExecute', message });
  }

  /** An approval of the model's arguments holds for the place to which they led at that time. */
  #isMoved({ call }: PreparedCall, { grant }: RuleVerdict): boolean {
    const record = this.#scope.around.logState.calls.get(call.callId);
    const payload = record?.payload;
    if (this.#request.decision?.action === 'edit' || typeof payload !== 'object' || payload === null) return false;
    const place = Array.isArray(payload) ? undefined : payload.place;
    return typeof place === 'string' && place !== grant?.place;
  }

  #approval(name: string, { payload }: RuleVerdict): GateValue {
    return this.#asking.approval(name, payload);
  }

  async #call(prepared: PreparedCall): Promise<CheckedCall> {
    const { conversationId, entries, cwd, setTimer, diagnose } = this.#scope.around;
    const [first] = entries;
    const parentId = first?.type === 'conversation' ? first.parent?.conversationId : undefined;
    const { callId, name, args } = prepared.call;
    const readOnly = prepared.definition.readOnly === true;
    const needsApproval = this.#isNew && (await this.#asking.isWanted(prepared));
    const base = {
      conversationId,
      ...(parentId !== undefined && { parentId }),
      runId: this.#request.runId,
      callId,
      name,
      args,
      cwd,
    };
    const sandbox = sandboxNetworkOf(prepared.tool);
    return {
      ...base,
      readOnly,
      spawns: spawns(prepared.definition),
      needsApproval,
      sandbox,
      signal: this.#signal,
      setTimer,
      diagnose,
    };
  }

  async #asked<T>(plugin: string, act: () => Promise<T> | undefined) {
    const { setTimer, diagnose } = this.#scope.around;
    try {
      const value = await within(CHECKS_MS, { setTimer, signal: this.#signal }, () => act());
      return { kind: 'answered' as const, value };
    } catch (error) {
      if (this.#signal.aborted) throw error;
      const message = thrownText(error);
      diagnose('plugin_error', { plugin, phase: 'beforeToolExecute', message });
      const words = `The check of ${plugin} failed, so the call was not run: ${message}`;
      return { kind: 'failed' as const, value: block('plugin_error', this.#bounded(words)) };
    }
  }

  #stop(reason: string): void {
    this.#scope.stops.stop(this.#request.runId, reason);
  }

  #refused(code: string, words: string): GateValue {
    return block(code, this.#bounded(words));
  }

  #bounded(words: string): string {
    const { redact, resultBytes } = this.#scope.limits;
    return cut(redact(words), resultBytes);
  }
}

export function checksOf(plugins: readonly Plugin[]): { plugin: string; checks: CallChecks }[] {
  const withChecks = plugins.flatMap((plugin) => {
    const checks = (plugin as ChecksCalls)[CALL_CHECKS];
    return checks ? [{ plugin: plugin.name, checks }] : [];
  });
  // Hooks come first, whatever the order of the plugins.
  return [...withChecks.filter(({ checks }) => checks.before), ...withChecks.filter(({ checks }) => !checks.before)];
}

/** Undefined if no plugin has checks beyond its phases. */
export function callPermission(
  scope: Scope,
  request: GateRequest,
  signal: AbortSignal,
  asking: Asking,
): CallPermission | undefined {
  return checksOf(scope.plugins).length > 0 ? new CallPermission(scope, request, signal, asking) : undefined;
}

const whereOf = (verdict: RuleVerdict | undefined): { grant?: CallGrant } =>
  verdict?.grant === undefined ? {} : { grant: verdict.grant };

function stricter(one: RuleVerdict | undefined, other: RuleVerdict | undefined): RuleVerdict | undefined {
  if (!one || !other) return one ?? other;
  return STRICTNESS.indexOf(other.outcome) > STRICTNESS.indexOf(one.outcome) ? other : one;
}
