/**
 * The status of a conversation: what its chart says, and what a host is told. Rule: the chart is ahead of the log by what is
 * not durable yet; for a host, a run is over once its stop can be read, and a cancel counts from when it is asked for.
 */
import type { SnapshotFrom } from 'xstate';
import { type conversationMachine, type LogState, type QueuedMessage, runOf } from '../../machines/internal.ts';
import type { ConversationStatus } from '../live.ts';
import type { ChartState, CommandQueue } from './commands.ts';
import type { ChartRef } from './interpreter/interpreter.ts';

/** States without states inside. */
const SIMPLE: Readonly<Record<string, ConversationStatus>> = {
  waiting: 'waiting',
  superseding: 'active',
};

/** What the chart of a conversation says; before it is started, nothing runs and nothing begins. */
export class ChartStatus implements ChartState {
  #root: ChartRef | undefined;

  attach(root: ChartRef): void {
    this.#root = root;
  }

  get status(): ConversationStatus {
    const value = this.#snapshot?.value as string | { [key: string]: string } | undefined;
    if (value === undefined) return 'idle';
    if (typeof value === 'string') return SIMPLE[value] ?? 'idle';
    if (value.closing) return value.closing === 'late' ? 'error' : 'cancelling';
    if (value.busy) return value.busy === 'cancelling' ? 'cancelling' : 'active';
    return value.idle === 'error' ? 'error' : 'idle';
  }

  get isIdle(): boolean {
    const { status } = this;
    return this.#root !== undefined && (status === 'idle' || status === 'error');
  }

  isStartedBy(kind: 'direct' | 'steer' | 'followUp'): boolean {
    const policies = this.#snapshot?.context.settings.policies;
    return this.isIdle || (this.status === 'waiting' && kind === 'direct' && policies?.whileSuspended === 'denyAndRun');
  }

  get isOpenEnded(): boolean {
    return this.status === 'active' && this.#snapshot?.children.run?.getSnapshot().matches('active') === true;
  }

  settledStatus({ runId, cycle, stop }: LogState): 'idle' | 'error' | undefined {
    const snapshot = this.#snapshot;
    if (!snapshot || cycle !== 'stopped' || !stop || runId !== snapshot.context.runId) return undefined;
    const { children, context } = snapshot;
    const run = children.run?.getSnapshot();
    if (run ? !run.matches('CommitFinished') : !snapshot.matches('closing')) return undefined;
    const promotes = context.settings.policies.promoteFollowUpOn.includes(stop.reason);
    if (promotes && context.queue.some(({ kind }) => kind === 'followUp')) return undefined;
    return run?.context.end.termination === 'Error' ? 'error' : 'idle';
  }

  /** Also where the run only waits for the stop before it. */
  get runId(): string | undefined {
    const { children, context } = this.#snapshot ?? {};
    if (context?.next) return runOf(context.next.messageId);
    return children?.run ? context?.runId : undefined;
  }

  /** Messages that were accepted and are not delivered. */
  get queue(): readonly QueuedMessage[] {
    return this.#snapshot?.context.queue ?? [];
  }

  get #snapshot(): SnapshotFrom<typeof conversationMachine> | undefined {
    return this.#root?.getSnapshot();
  }
}

/** What a host is told. */
export class HostStatus {
  readonly #chart: ChartStatus;
  readonly #commands: CommandQueue;
  readonly #log: LogState;
  #signalled: ConversationStatus = 'idle';

  constructor(chart: ChartStatus, commands: CommandQueue, log: LogState) {
    this.#chart = chart;
    this.#commands = commands;
    this.#log = log;
  }

  get status(): ConversationStatus {
    const chart = this.#chartOrCancel;
    const { settled } = this;
    if (chart === 'cancelling' && !settled) return chart;
    return this.#commands.hasStartingCommand ? 'active' : (settled ?? chart);
  }

  /** The status that is left, where the stop of what the chart still carries out is durable and nothing follows. */
  get settled(): 'idle' | 'error' | undefined {
    return this.#chart.settledStatus(this.#log);
  }

  /** What live signals tell, where it differs from the last call: it follows the chart. */
  changed(): ConversationStatus | undefined {
    const status = this.#chartOrCancel;
    if (status === this.#signalled) return undefined;
    this.#signalled = status;
    return status;
  }

  get #chartOrCancel(): ConversationStatus {
    const { status } = this.#chart;
    if (status !== 'active' && status !== 'waiting') return status;
    for (const { type } of this.#commands.waiting) if (type === 'cancel.requested') return 'cancelling';
    return status;
  }
}
