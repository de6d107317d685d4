/**
 * The status of a conversation: what its chart says, and what a host is told. Rule: the chart is ahead of the log by what is
 * not durable yet; a run whose stop can be read is over for the host, and commands that start another one wait for the chart.
 */
import type { SnapshotFrom } from 'xstate';
import { type conversationMachine, type Knowledge, type QueuedMessage, runOf } from '../../machines/internal.ts';
import type { ConversationStatus } from '../live.ts';
import type { Tickets } from './commandQueue.ts';
import type { Act } from './commands.ts';
import type { ChartRef } from './interpreter/interpreter.ts';

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

export class Outlook {
  readonly #of: () => Standing | undefined;
  readonly #tickets: Pick<Tickets, 'waiting' | 'waits'>;
  readonly #known: Knowledge;
  #told: ConversationStatus = 'idle';

  /** `standing`: nothing until the chart is started. */
  constructor(standing: () => Standing | undefined, tickets: Pick<Tickets, 'waiting' | 'waits'>, known: Knowledge) {
    this.#of = standing;
    this.#tickets = tickets;
    this.#known = known;
  }

  get status(): ConversationStatus {
    const course = this.#course;
    const { over } = this;
    if (course === 'cancelling' && !over) return course;
    return this.expecting ? 'active' : (over ?? course);
  }

  /** What the signals tell, where it is another status than at the last call: it follows the chart. */
  changed(): ConversationStatus | undefined {
    const course = this.#course;
    if (course === this.#told) return undefined;
    this.#told = course;
    return course;
  }

  /** The stop of what the chart still carries out is durable, and nothing follows it by itself: what is left then. */
  get over(): 'idle' | 'error' | undefined {
    return this.#of()?.restsAs(this.#known);
  }

  /** Whether an act has not been delivered yet, and starts a run when it is. */
  starts(act: Act): boolean {
    if (!this.#tickets.waits(act)) return false;
    if (act.type === 'message.sent') return this.over !== undefined || this.#of()?.isStartedBy(act.kind) === true;
    return act.type === 'resume.requested' || act.type === 'promotion.requested';
  }

  /** What starts a run is put once the chart has heard of the end before it. */
  mustWait(act: Act): boolean {
    return this.over !== undefined && this.starts(act);
  }

  /** Something that waits for its turn starts a run. */
  get expecting(): boolean {
    for (const act of this.#tickets.waiting) if (this.starts(act)) return true;
    return false;
  }

  /** How many messages are on their way to the queue: all but the one that starts a run. */
  get queueing(): number {
    let count = 0;
    let starter: Act | undefined;
    for (const act of this.#tickets.waiting) {
      if (!starter && this.starts(act)) starter = act;
      else if (act.type === 'message.sent') count += 1;
    }
    return count;
  }

  /** A cancel counts from when it is asked for, also where the chart hears of it behind a slow store. */
  get #course(): ConversationStatus {
    const status = this.#of()?.status ?? 'idle';
    if (status !== 'active' && status !== 'waiting') return status;
    for (const { type } of this.#tickets.waiting) if (type === 'cancel.requested') return 'cancelling';
    return status;
  }
}
