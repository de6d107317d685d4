/** Where a conversation stands now, read off its chart. Rule: it is ahead of the log by what is not durable yet. */
import type { SnapshotFrom } from 'xstate';
import { type conversationMachine, type Knowledge, type QueuedMessage, runOf } from '../machines/internal.ts';
import type { ConversationStatus } from './live.ts';
import type { ChartRef } from './runtime/interpreter/interpreter.ts';

/** States without states inside. */
const SIMPLE: Readonly<Record<string, ConversationStatus>> = {
  waiting: 'waiting',
  superseding: 'active',
};

export class Standing {
  readonly #root: ChartRef;

  constructor(root: ChartRef) {
    this.#root = root;
  }

  get status(): ConversationStatus {
    const value = this.#snapshot.value as string | { [key: string]: string };
    if (typeof value === 'string') return SIMPLE[value] ?? 'idle';
    if (value.closing) return value.closing === 'late' ? 'error' : 'cancelling';
    if (value.busy) return value.busy === 'cancelling' ? 'cancelling' : 'active';
    return value.idle === 'error' ? 'error' : 'idle';
  }

  /** A message would start a run now. */
  get isIdle(): boolean {
    const { status } = this;
    return status === 'idle' || status === 'error';
  }

  /** A message of this kind starts a run now. */
  isStartedBy(kind: 'direct' | 'steer' | 'followUp'): boolean {
    const { whileSuspended } = this.#snapshot.context.settings.policies;
    return this.isIdle || (this.status === 'waiting' && kind === 'direct' && whileSuspended === 'denyAndRun');
  }

  /** A run is under way, and what comes now can still end it otherwise. */
  get isOpenEnded(): boolean {
    const { run } = this.#snapshot.children;
    return this.status === 'active' && run?.getSnapshot().matches('active') === true;
  }

  /** Where the log says that what is carried out is over, and nothing follows it by itself: what is left then. */
  restsAs({ runId, cycle, stop }: Knowledge): 'idle' | 'error' | undefined {
    const { children, context } = this.#snapshot;
    if (cycle !== 'stopped' || !stop || runId !== context.runId) return undefined;
    const run = children.run?.getSnapshot();
    if (run ? !run.matches('CommitFinished') : !this.#snapshot.matches('closing')) return undefined;
    const promotes = context.settings.policies.promoteFollowUpOn.includes(stop.reason);
    if (promotes && context.queue.some(({ kind }) => kind === 'followUp')) return undefined;
    return run?.context.end.termination === 'Error' ? 'error' : 'idle';
  }

  /** The run under way, also where it only waits for the stop before it. */
  get runId(): string | undefined {
    const { children, context } = this.#snapshot;
    if (context.next) return runOf(context.next.messageId);
    return children.run ? context.runId : undefined;
  }

  /** Messages that were accepted and are not delivered. */
  get queue(): readonly QueuedMessage[] {
    return this.#snapshot.context.queue;
  }

  get #snapshot(): SnapshotFrom<typeof conversationMachine> {
    return this.#root.getSnapshot();
  }
}
