/**
 * One sub-agent: a conversation for one task (docs/internals/contracts.md, REQ-BED-009). Invariant: the parent's log
 * contains its start, its end and its usage, and nothing else of it.
 */
import {
  addUsage,
  type CycleRequest,
  type Decision,
  type DecisionReceipt,
  isRetried,
  type Limits,
  type LogEntry,
  type LogState,
  openCalls,
  type PendingCall,
  type Settlement,
  type SubAgentChange,
  type UsageCost,
  usageOf,
} from '../../machines/internal.ts';
import { RunchartError, thrownMessage } from '../errors.ts';
import { costOf } from '../log/cost.ts';
import type { MakeSubAgents, OpenChild, OpenedChild, SpentUsage, SubAgents, Task } from '../runtime/subAgentPort.ts';
import type { SpawnProfile } from './spawnProfile.ts';
import { failedWith, type Outcome, outcomeInLog, outcomeOfRun, overBudget, submissionIn } from './subAgentOutcome.ts';
import type { SubAgentRecord } from './subAgentRecords.ts';
import { aloneRule, SUBMIT, turnRules } from './submitTool.ts';

interface SubAgentDependencies {
  task: Task;
  /** Undefined if the parent's log does not contain the sub-agent yet. */
  record: SubAgentRecord | undefined;
  open(): Promise<OpenedChild>;
  /** Resolves when the change is durable in the parent's log. */
  logChange(change: Pick<SubAgentChange, 'phase' | 'spent'>): Promise<unknown>;
  /** Called when one of its calls waits for a person. */
  onSuspended(): void;
  /** Called with the state of its log when it was closed. */
  onClosed(logState: LogState): void;
}

export class SubAgent {
  readonly task: Task;
  /** The position of its end in the parent's log, if that was recorded when it was created. */
  readonly endedBefore: number | undefined;
  ending: Outcome | undefined;
  readonly #options: SubAgentDependencies;
  #phase: 'unknown' | 'started' | 'ended';
  #upTo: number;
  #opened: OpenedChild | undefined;
  /** The entries of its log at the last reading. Usage may be counted only after its close. */
  #entries: readonly LogEntry[] = [];

  constructor(options: SubAgentDependencies) {
    const { task, record } = options;
    this.task = task;
    this.endedBefore = record?.ended;
    this.#options = options;
    this.#phase = record === undefined ? 'unknown' : record.ended === undefined ? 'started' : 'ended';
    this.#upTo = record?.upTo ?? 0;
  }

  /** The state of its log while it is open. */
  get logState(): LogState | undefined {
    return this.#opened?.runtime.logState;
  }

  /** Its own sub-agents, while it is open. */
  get subAgents(): SubAgents | undefined {
    return this.#opened?.runtime.subAgents;
  }

  get pending(): readonly PendingCall[] {
    return this.ending ? [] : (this.#opened?.conversation.pending ?? []);
  }

  get unsettled(): readonly PendingCall[] {
    return this.ending ? [] : (this.#opened?.conversation.unsettled ?? []);
  }

  /** The number of entries in its log, while it is open. */
  get upTo(): number {
    return this.#opened ? this.#entries.length : 0;
  }

  /** True if there is work to do: it has not begun, was interrupted, received a decision, or must retry a call. */
  get canContinue(): boolean {
    if (this.ending) return false;
    if (this.#opened?.conversation.status !== 'waiting') return true;
    const { logState } = this.#opened.runtime;
    return openCalls(logState).decisions.length > 0 || [...logState.calls.values()].some(isRetried);
  }

  /** Usage that the parent's log does not contain yet; undefined if there is none. */
  get uncounted(): UsageCost | undefined {
    const costs = this.#entries.slice(this.#upTo).flatMap((entry) => usageOf(entry) ?? []);
    return costs.length > 0 ? costs.reduce(addUsage) : undefined;
  }

  /** Applies a decision to one of its calls. */
  async decide(decision: Decision): Promise<DecisionReceipt> {
    return this.#opened ? this.#opened.conversation.decide(decision) : 'unknown';
  }

  /** Applies the host's settlement to one of its calls. */
  async settle(callId: string, how: Settlement): Promise<'applied' | 'unknown'> {
    return this.#opened ? this.#opened.conversation.settle(callId, how) : 'unknown';
  }

  /** Opens the log of a sub-agent that has begun and not ended. Rejects if another process holds the log. */
  async reopen(): Promise<void> {
    if (this.#phase !== 'started' || this.ending) return;
    try {
      await this.#open();
    } catch (error) {
      if (RunchartError.isRunchartError(error) && error.code === 'session_busy') throw error;
      // The error is reported when the sub-agent continues.
    }
  }

  /** Works until it has ended or waits for a person. Rejects only if the parent's log cannot be written. */
  async work(signal: AbortSignal): Promise<void> {
    if (this.#phase === 'unknown') {
      this.#phase = 'started';
      await this.#options.logChange({ phase: 'started' });
      if (signal.aborted) return this.#end(outcomeOfRun({ termination: 'Cancelled' }));
    }
    let opened: OpenedChild;
    try {
      opened = await this.#open();
    } catch (error) {
      const code = RunchartError.isRunchartError(error) ? error.code : 'store';
      return this.#end(failedWith(code, thrownMessage(error)));
    }
    const { conversation, runtime } = opened;
    const { logState, log } = runtime;
    const ending = outcomeInLog(logState, log.entries);
    if (ending || this.#phase === 'ended') return this.#end(ending ?? failedWith('unknown', 'its log holds no end'));
    if (signal.aborted) return this.stop();
    const run = logState.cycle === 'none' ? conversation.send(this.task.task) : conversation.resume();
    let result = await run.result;
    // A decision that came after the run's last gate needs another run.
    while (conversation.status === 'active') result = await conversation.resume().result;
    if (conversation.status === 'waiting') return this.#count();
    return this.#end(outcomeInLog(logState, log.entries, result.error) ?? outcomeOfRun(result));
  }

  /** Ends its run or its wait. The stop follows, and `work` returns. */
  cancel(): void {
    // A refused cancel is an error of the stop.
    if (!this.ending) void this.#opened?.conversation.cancel().catch(() => undefined);
  }

  /** Ends a sub-agent that is not working. Resolves when the parent's log contains the end. */
  async stop(): Promise<void> {
    if (this.ending || this.#phase !== 'started') return this.close();
    await this.reopen();
    const { conversation, runtime } = this.#opened ?? {};
    // An interrupted call must not run again for a cancelled sub-agent. A run that ends at once closes it.
    if (conversation?.status === 'idle' && runtime?.logState.open.size) conversation.resume();
    await conversation?.cancel();
    const ending = runtime && outcomeInLog(runtime.logState, runtime.log.entries);
    return this.#end(ending ?? outcomeOfRun({ termination: 'Cancelled' }));
  }

  /** Closes its log without a change. */
  async close(): Promise<void> {
    const opened = this.#opened;
    this.#opened = undefined;
    if (!opened) return;
    this.#options.onClosed(opened.runtime.logState);
    // If closing the store fails, the written entries remain.
    await opened.conversation.close().catch(() => undefined);
  }

  async #open(): Promise<OpenedChild> {
    if (this.#opened) return this.#opened;
    const opened = await this.#options.open();
    opened.runtime.log.listen(({ type }) => {
      if (type === 'tool-suspended') this.#options.onSuspended();
    });
    this.#opened = opened;
    this.#entries = opened.runtime.log.entries;
    return opened;
  }

  async #count(): Promise<void> {
    const spent = this.#toCount();
    if (spent) await this.#options.logChange({ spent });
  }

  async #end(ending: Outcome): Promise<void> {
    this.ending = ending;
    const spent = this.#toCount();
    const phase = this.#phase === 'started' ? { phase: 'ended' as const } : {};
    this.#phase = 'ended';
    try {
      if ('phase' in phase || spent) await this.#options.logChange({ ...phase, ...(spent && { spent }) });
    } finally {
      this.#entries = [];
      await this.close();
    }
  }

  #toCount(): SubAgentChange['spent'] | undefined {
    const { uncounted } = this;
    const models = costOf(this.#entries.slice(this.#upTo)).models.map(({ model, calls, usage, costUsd }) => {
      return { model, calls, usage: { ...usage }, costUsd };
    });
    this.#upTo = Math.max(this.#upTo, this.#entries.length);
    return uncounted && { ...uncounted, upTo: this.#upTo, models };
  }
}

export interface OpenSubAgentOptions {
  id: string;
  parent: { conversationId: string; callId: string };
  above(): CycleRequest;
  makeSubAgents: MakeSubAgents;
  spawn: SpawnProfile;
  spent(): SpentUsage;
  /** Those of the parent. */
  limits: Limits;
  asked?: readonly string[];
  openChild: OpenChild;
}

export async function openSubAgent({
  id,
  parent,
  above,
  makeSubAgents,
  spawn,
  spent,
  limits,
  asked = [],
  openChild,
}: OpenSubAgentOptions): Promise<OpenedChild> {
  const { profile, turns } = spawn;
  let opened: OpenedChild | undefined;
  const submitted = (): boolean => opened !== undefined && submissionIn(opened.runtime.logState) !== undefined;
  const isOverBudget = (): boolean => overBudget(limits, spent);
  const plugins = [aloneRule, ...profile.plugins, ...turnRules({ turns, submitted, isOverBudget })];
  opened = await openChild(
    { id, parent, above, spent, asked, closed: () => {} },
    { ...profile, plugins, makeSubAgents },
  );
  return opened;
}

/** The request of a sub-agent: who asked, and the model and the tools that the request chose. Its settings are for the parent. */
export function requestBelow(request: CycleRequest, { hasOwnModel }: SpawnProfile): CycleRequest {
  const { settings: _s, output: _o, model, tools, ...origin } = request;
  return {
    ...origin,
    ...(model !== undefined && !hasOwnModel && { model }),
    ...(tools && { tools: [...tools, SUBMIT] }),
  };
}
