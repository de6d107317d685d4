/**
 * Compares the executions of simulated tools with the durable log. Invariant: an execution needs a record in the log
 * and the allowed arguments. Its signal is aborted when nobody waits for it.
 */
import type { Json } from '../../../machines/internal.ts';
import type { ToolContext } from '../../../src/tools/tool.ts';
import { editedBy, type WatchedCall } from './callWatch.ts';
import type { CheckedWorld } from './checkedWorld.ts';
import { callKey, type Execution } from './lifeFacts.ts';
import { sameJson } from './sameJson.ts';

/** The declaration of a simulated tool, and its behaviour besides a returned text. */
export interface ToolTraits {
  readOnly?: true;
  idempotent?: true;
  needsApproval?: true;
  /** Suspends its first execution and answers the replay. */
  asks?: true;
  writes?: true;
  /** Answers with an image. */
  shows?: true;
  /** Sleeps on the agent's clock. */
  sleeps?: true;
}

export class ToolExecutions {
  /** The number of executions for each idempotency key, by conversation. */
  readonly #executions = new Map<string, number>();
  readonly #world: CheckedWorld;

  constructor(world: CheckedWorld) {
    this.#world = world;
  }

  /** Checks that the log permits the start of a tool. Returns a function to call at the tool's end. */
  begin(name: string, kind: ToolTraits, args: Json, context: ToolContext): () => void {
    const { processId, elapsedMs: since } = this.#world;
    const { callId, signal } = context;
    const execution = { callId, processId, signal, since, isOver: false };
    this.#checkBegin(name, kind, args, context, execution);
    this.#world.facts.executions.add(execution);
    return () => {
      execution.isOver = true;
      this.#world.facts.executions.delete(execution);
    };
  }

  #checkBegin(name: string, kind: ToolTraits, args: Json, context: ToolContext, execution: Execution): void {
    const world = this.#world;
    const { callId, conversationId, idempotencyKey, signal, decision } = context;
    world.reach('tools', name);
    const times = this.#count(conversationId, idempotencyKey);
    const call = this.#world.watchOf(conversationId).calls.calls.get(callId);
    if (!call) return world.violate('I9', `${name} runs for ${callId}, which is not in the log`);
    world.check(call.status === 'started', 'INV-4', () => `${callId} runs while the log has ${call.status}`);
    world.check(call.keys.includes(idempotencyKey), 'I10', () => `${callId} runs with an unknown key`);
    this.#checkTimes(kind, callId, call, idempotencyKey, times);
    const forbidden = world.facts.blocked.has(callKey(conversationId, callId));
    world.check(!forbidden, 'I38', () => `${callId} runs though a check forbade it`);
    world.check(!signal.aborted, 'I28', () => `${callId} begins after it was cancelled`);
    this.#checkDecision(name, kind, call, context);
    const beginning = { name, args, traits: kind, conversationId, callId, ...(decision && { decision }) };
    for (const each of world.equipment) each.begins?.(beginning);
    this.#checkArgs(call, args, context);
    call.execution = execution;
  }

  #count(conversationId: string, key: string): number {
    const mine = `${conversationId} ${key}`;
    const times = (this.#executions.get(mine) ?? 0) + 1;
    this.#executions.set(mine, times);
    return times;
  }

  #checkTimes(kind: ToolTraits, callId: string, call: WatchedCall, key: string, times: number): void {
    const world = this.#world;
    const starts = call.keys.filter((used) => used === key).length;
    const once = kind.idempotent || starts <= 1 + call.retries;
    world.check(once, 'I10', () => `${callId} is started for the ${starts}. time`);
    const { toolRetry } = world.policies ?? {};
    const most = starts * (toolRetry ? (toolRetry.attempts ?? times) : 1);
    world.check(times <= most, 'I10', () => `${callId} is executed for the ${times}. time after ${starts} starts`);
  }

  #checkDecision(name: string, kind: ToolTraits, call: WatchedCall, context: ToolContext): void {
    const { callId, decision } = context;
    const world = this.#world;
    if (decision) world.check(call.decided.has(call.suspension), 'I17', () => `${callId} runs on a decision in memory`);
    if (decision?.action === 'deny') world.violate('I9', `${callId} runs though it was denied`);
    // If another part may answer for a person, that part compares its own answers.
    const asks = kind.needsApproval && !world.equipment.some((each) => each.begins);
    if (asks) world.check(decision !== undefined, 'I38', () => `${name} runs unasked`);
    const durable = call.decisions.get(call.suspension);
    const same = decision === undefined || sameJson(decision, durable);
    world.check(same, 'I16', () => `${callId} runs on another decision than the durable one`);
  }

  /** A tool receives the arguments of a plugin, else of the last edit, else of the model. */
  #checkArgs(call: WatchedCall, args: Json, { callId, conversationId, decision }: ToolContext): void {
    const world = this.#world;
    world.check(sameJson(args, call.args), 'I12', () => `${callId} sees other arguments than the log has`);
    const due = world.facts.argsInPlace(callKey(conversationId, callId), editedBy(decision)) ?? call.argsShown;
    const detail = (): string => `${callId} runs on ${JSON.stringify(args)}, due is ${JSON.stringify(due)}`;
    world.check(sameJson(args, due), 'I18', detail);
  }
}
