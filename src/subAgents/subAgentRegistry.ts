/**
 * The sub-agents of one conversation, grouped by the calls that spawned them. Rule: their state is derived from the
 * conversation's log and from their own logs. After a call has its result, none of its sub-agents continues. A call
 * with waiting sub-agents continues by a decision on it, at most one a suspension. That decision follows the decision
 * on the inner call.
 */
import {
  type CallRecord,
  type CycleRequest,
  countersOf,
  type Decision,
  type DecisionReceipt,
  type LogState,
  type NewEntry,
  type PendingCall,
  type Settlement,
  type SubAgentChange,
  subAgentEntries,
  withOrigin,
} from '../../machines/internal.ts';
import type { Policies } from '../agentPolicies.ts';
import {
  type ConversationCore,
  type MakeSubAgents,
  type OpenChild,
  type OpenedChild,
  pendingWithin,
  type SpentUsage,
  type SubAgents,
  type Task,
  WAITS,
} from '../runtime/subAgentPort.ts';
import { type ToolContext, type ToolResult, toolResult } from '../tools/tool.ts';
import type { SpawnProfile, SpawnProfiles } from './spawnProfile.ts';
import { childIdOf, tasksOf } from './spawnTasks.ts';
import { openSubAgent, requestBelow, SubAgent } from './subAgent.ts';
import { BEGUN, Semaphore, SubAgentGroup, type WakeReason } from './subAgentGroup.ts';
import { type CallIds, EndedCalls, SubAgentRecords } from './subAgentRecords.ts';

interface RegistryOptions {
  id: string;
  runtime: ConversationCore;
  policies: Policies;
  spawns: SpawnProfiles;
  /** Shared by the root conversation and all its sub-agents. */
  callIds: CallIds;
  openChild: OpenChild;
}

export class SubAgentRegistry implements SubAgents {
  readonly #options: RegistryOptions;
  readonly #logState: LogState;
  readonly #semaphore: Semaphore;
  readonly #records = new SubAgentRecords();
  readonly #groups = new Map<string, SubAgentGroup>();
  readonly #endedCalls = new EndedCalls();
  readonly #shuttingDown = new Set<Promise<void>>();
  readonly #opened = new Set<OpenedChild>();
  /** Ends the sub-agents of calls that have their result. */
  readonly #left: (() => Promise<void>)[] = [];
  readonly #observers = new Set<(child: OpenedChild) => void>();
  /** Collects the entries to store while the conversation opens, before its chart runs. */
  #opening: NewEntry[] | undefined;

  constructor(options: RegistryOptions) {
    const { runtime, callIds, policies } = options;
    this.#options = options;
    this.#logState = runtime.logState;
    this.#semaphore = new Semaphore(policies.limits.subAgents);
    callIds.join(runtime.logState);
    for (const entry of runtime.log.entries) {
      this.#records.apply(entry);
      if (entry.type !== 'tool-suspended' || entry.reason !== WAITS) continue;
      callIds.markAsked(pendingWithin(entry.callId, entry.payload).map(({ callId }) => callId));
    }
    runtime.log.listen((entry) => {
      this.#records.apply(entry);
      const group = entry.type === 'tool-result' ? this.#groups.get(entry.callId) : undefined;
      if (group && entry.type === 'tool-result') void this.#shutDown(entry.callId, group);
    });
  }

  get pending(): readonly PendingCall[] {
    return this.#asked(this.#openGroups.flatMap((group) => group.pending));
  }

  get unsettled(): readonly PendingCall[] {
    return this.#asked(this.#openGroups.flatMap((group) => group.unsettled));
  }

  get isIdle(): boolean {
    return this.#shuttingDown.size === 0 && ![...this.#groups.values()].some((group) => group.isWorking);
  }

  /** Calls with the request that they belong to, which is the parent's. */
  #asked(calls: readonly PendingCall[]): PendingCall[] {
    const { request } = this.#options.runtime;
    return calls.map((call) => withOrigin(call, request.origin(call.path[0])));
  }

  waitsWithin({ callId, reason }: CallRecord): boolean {
    return reason === WAITS && this.#groups.has(callId);
  }

  find(callId: string): Found | undefined {
    return findCall(this.#groups, callId) ?? this.#endedCalls.find(callId);
  }

  async decide(decision: Decision): Promise<DecisionReceipt> {
    const foundCall = findCall(this.#groups, decision.callId);
    if (!foundCall) return this.#endedCalls.receipt(decision);
    const receipt = await foundCall.child.decide(decision);
    if (receipt === 'applied' || receipt === 'held' || receipt === 'duplicate') {
      await foundCall.group.continueAfter(foundCall.child, decision);
    }
    return receipt;
  }

  async settle(callId: string, how: Settlement): Promise<'applied' | 'unknown'> {
    const foundCall = findCall(this.#groups, callId);
    const answer = (await foundCall?.child.settle(callId, how)) ?? 'unknown';
    if (foundCall && answer === 'applied' && 'retry' in how)
      await foundCall.group.continueAfter(foundCall.child, { callId });
    return answer;
  }

  reserveCallId(callId: string): boolean {
    return this.#options.callIds.reserve(this.#logState, callId);
  }

  isRunning(callId: string): boolean {
    return this.#groups.get(callId)?.isRunning === true;
  }

  async run(tasks: readonly Task[], context: ToolContext): Promise<ToolResult> {
    const group = this.#groupOf(context.callId, tasks);
    if (group && context.decision?.action === 'edit' && !group.worksOn(tasks))
      return toolResult.error(BEGUN, 'invalid_arguments');
    if (group) return group.run(context);
    return toolResult.error('No sub-agents are allowed here (limits.subAgents). None was started.', 'limit');
  }

  /** Reopens the sub-agents of open calls, and ends the sub-agents of calls that have their result. */
  async restore(isHeld: boolean): Promise<NewEntry[]> {
    const entries: NewEntry[] = [];
    this.#opening = entries;
    for (const { callId, unended } of this.#records.calls()) {
      const record = this.#logState.calls.get(callId);
      const isOver = this.#isOver(callId);
      const group = record && (unended || !isOver) ? this.#groupOf(callId, tasksOf(record.args)) : undefined;
      if (!record || !group) continue;
      if (isOver && isHeld) this.#left.push(() => this.#shutDown(callId, group));
      else if (isOver) await this.#shutDown(callId, group);
      else for (const child of group.children) await child.reopen();
      // The process ended after the decision, before the call continued.
      if (record.status === 'suspended' && this.waitsWithin(record) && group.canContinue) {
        entries.push(...resumeParentEntries(this.#logState, callId));
      }
    }
    this.#opening = undefined;
    return entries;
  }

  endLeft(): void {
    for (const end of this.#left.splice(0)) void end();
  }

  observeOpened(opened: (child: OpenedChild) => void): { now: readonly OpenedChild[]; stop(): void } {
    this.#observers.add(opened);
    return { now: [...this.#opened], stop: () => void this.#observers.delete(opened) };
  }

  async close(): Promise<void> {
    await Promise.all(this.#shuttingDown);
    await Promise.all([...this.#groups.values()].flatMap(({ children }) => children.map((child) => child.close())));
    this.#options.callIds.leave(this.#logState);
  }

  get #openGroups(): SubAgentGroup[] {
    return [...this.#groups].flatMap(([callId, group]) => (this.#isOver(callId) ? [] : [group]));
  }

  #isOver(callId: string): boolean {
    return this.#logState.calls.get(callId)?.status === 'ended';
  }

  #shutDown(callId: string, group: SubAgentGroup): Promise<void> {
    // If the log cannot be written, it keeps its entries, and the next opening finds them.
    const ended = group.shutDown().catch(() => undefined);
    const removed = ended.then(() => {
      this.#shuttingDown.delete(removed);
      if (this.#groups.get(callId) === group) this.#groups.delete(callId);
    });
    this.#shuttingDown.add(removed);
    return removed;
  }

  /** Returns undefined if the call spawns nothing. */
  #groupOf(callId: string, tasks: readonly Task[]): SubAgentGroup | undefined {
    const living = this.#groups.get(callId);
    const spawn = this.#options.spawns.get(this.#logState.calls.get(callId)?.name ?? '');
    if (living || !spawn || spawn.concurrency < 1) return living;
    const children = tasks.map((task) => this.#child(callId, task, spawn));
    const { resultBytes } = this.#options.policies.limits;
    const resumeParent = (reason: WakeReason): Promise<void> => resumeParentCall(this.#options.runtime, callId, reason);
    const group = new SubAgentGroup({
      callId,
      children,
      concurrency: spawn.concurrency,
      semaphore: this.#semaphore,
      resultBytes,
      resumeParent,
    });
    this.#groups.set(callId, group);
    return group;
  }

  #child(callId: string, task: Task, spawn: SpawnProfile): SubAgent {
    const { id: conversationId, policies, callIds, openChild } = this.#options;
    const id = childIdOf(conversationId, callId, task.id);
    const parent = { conversationId, callId };
    const makeSubAgents: MakeSubAgents = (owner) => new SubAgentRegistry({ ...owner, callIds, spawns: new Map() });
    const spent = (): SpentUsage => ({
      counted: (({ tokens, costUsd, unpriced }) => ({ tokens, costUsd, unpriced }))(countersOf(this.#logState)),
      uncounted: [...this.#groups.values()].flatMap((group) =>
        group.children.flatMap(({ uncounted }) => uncounted ?? []),
      ),
    });
    return new SubAgent({
      task,
      record: this.#records.recordOf(callId, id),
      open: async () => {
        const { runtime } = this.#options;
        const above = (): CycleRequest => requestBelow(runtime.request.of(callId), spawn);
        const { limits } = policies;
        const asked = this.#records.askedOf(callId, task.id);
        const opened = await openSubAgent({ id, parent, above, makeSubAgents, spawn, spent, limits, asked, openChild });
        runtime.live.join(opened.runtime.live, callId);
        this.#opened.add(opened);
        for (const observe of this.#observers) observe(opened);
        return opened;
      },
      logChange: (change) => this.#logChange({ type: 'sub-agent.changed', callId, conversationId: id, ...change }),
      onSuspended: () => this.#groups.get(callId)?.reportWaiting(),
      onClosed: (logState) => {
        for (const opened of this.#opened) if (opened.runtime.logState === logState) this.#opened.delete(opened);
        callIds.leave(logState, this.#endedCalls.add(callId, logState));
      },
    });
  }

  async #logChange(change: SubAgentChange): Promise<void> {
    if (this.#opening) this.#opening.push(...subAgentEntries(null, change));
    else await this.#options.runtime.submit(change);
  }
}

interface Found {
  record: CallRecord;
  /** The call ids from the outermost call to this one. */
  path: string[];
}

interface FoundCall extends Found {
  group: SubAgentGroup;
  child: SubAgent;
}

/** Searches only sub-agents with an open log. A call id is unique in a conversation and its sub-agents. */
function findCall(groups: Iterable<[string, SubAgentGroup]>, callId: string): FoundCall | undefined {
  for (const [outer, group] of groups) {
    for (const child of group.children) {
      const record = child.logState?.calls.get(callId);
      const inner = record ? { record, path: [callId] } : child.subAgents?.find(callId);
      if (inner) return { record: inner.record, path: [outer, ...inner.path], group, child };
    }
  }
  return undefined;
}

/**
 * Returns the decision on the outer call that follows from an inner one. Undefined if the outer call has ended or is
 * decided.
 */
function answerTo(
  record: CallRecord | undefined,
  within?: WakeReason,
): (Decision & { suspension: number }) | undefined {
  if (!record || record.status === 'ended') return undefined;
  const { callId, status } = record;
  const suspension = status === 'suspended' ? record.suspension : record.suspension + 1;
  if (record.decisions.has(suspension)) return undefined;
  const by = within?.by === undefined ? {} : { by: within.by };
  return { callId, suspension, ...by, action: 'answer', payload: within ? { decided: within.callId } : null };
}

/** The entries for a log whose chart does not run yet. */
function resumeParentEntries({ calls, runId }: LogState, callId: string): NewEntry[] {
  const decision = answerTo(calls.get(callId));
  return decision ? [{ runId, type: 'decision', callId, suspension: decision.suspension, decision }] : [];
}

/**
 * Resolves when the decision is durable. A call that a crash interrupted needs none, because it runs again on resume.
 */
async function resumeParentCall(runtime: ConversationCore, callId: string, within: WakeReason): Promise<void> {
  const record = runtime.logState.calls.get(callId);
  const cutOff = record?.status === 'started' && (runtime.status === 'idle' || runtime.status === 'error');
  const decision = cutOff ? undefined : answerTo(record, within);
  if (decision) await runtime.submit({ type: 'decision.proposed', decision });
}
