/**
 * The sub-agents of one call. Rule: up to `concurrency` of them work at once, and the others start in the order of
 * their tasks. The call gets its result after all have ended. It is suspended if all that remain wait for a person. A
 * cancellation ends them in reverse order of their start.
 */
import type { Decision, PendingCall } from '../../machines/internal.ts';
import { type Task, WAITS } from '../runtime/subAgentPort.ts';
import { type ToolContext, type ToolResult, toolResult, waitingWithin } from '../tools/tool.ts';
import type { SubAgent } from './subAgent.ts';
import { reportOf } from './subAgentOutcome.ts';
import { waitingPayload } from './subAgentRecords.ts';

/** A decision or retry that concerns a call of a sub-agent. */
export type WakeReason = Pick<Decision, 'callId' | 'by'>;

interface GroupOptions {
  callId: string;
  /** In the order of their tasks. */
  children: readonly SubAgent[];
  /** The most sub-agents that work at once. */
  concurrency: number;
  /** Shared by the whole conversation. */
  semaphore: Semaphore;
  resultBytes: number;
  /** Makes the parent's chart continue the call. */
  resumeParent(reason: WakeReason): Promise<void>;
}

/** Their work belongs to the old tasks, so its results must not answer the new ones. */
export const BEGUN =
  'The sub-agents of this call had begun on its tasks, so they were ended: other tasks need another call.';

const inOrder = (children: readonly SubAgent[]): SubAgent[] =>
  children
    .filter(({ endedBefore }) => endedBefore !== undefined)
    .sort((a, b) => (a.endedBefore ?? 0) - (b.endedBefore ?? 0));

export class SubAgentGroup {
  readonly children: readonly SubAgent[];
  readonly #options: GroupOptions;
  #queue: SubAgent[] = [];
  readonly #working = new Map<SubAgent, Promise<void>>();
  readonly #begun: SubAgent[] = [];
  /** In the order in which they ended. */
  readonly #ended: SubAgent[];
  /** Set while the call runs. */
  #signal: AbortSignal | undefined;
  #progress: ToolContext['progress'] = () => {};
  #failures: unknown[] = [];

  constructor(options: GroupOptions) {
    this.#options = options;
    this.children = options.children;
    this.#ended = inOrder(options.children);
  }

  /** True if a reopened sub-agent can continue. */
  get canContinue(): boolean {
    return this.children.some((child) => child.logState && child.canContinue);
  }

  get isRunning(): boolean {
    return this.#signal !== undefined;
  }

  get isWorking(): boolean {
    return this.#working.size > 0;
  }

  /** True if its sub-agents work on exactly these tasks. */
  worksOn(tasks: readonly Task[]): boolean {
    const ownTasks = this.children.map(({ task }) => task);
    return (
      ownTasks.length === tasks.length &&
      ownTasks.every(({ id, task }, i) => tasks[i]?.id === id && tasks[i]?.task === task)
    );
  }

  get pending(): PendingCall[] {
    const { callId } = this.#options;
    return this.children.flatMap((child) => child.pending.map((call) => ({ ...call, path: [callId, ...call.path] })));
  }

  get unsettled(): PendingCall[] {
    const { callId } = this.#options;
    return this.children.flatMap((child) => child.unsettled.map((call) => ({ ...call, path: [callId, ...call.path] })));
  }

  /** Runs until all sub-agents have ended or wait. Rejects if the call was cancelled. */
  async run({ signal, progress }: Pick<ToolContext, 'signal' | 'progress'>): Promise<ToolResult> {
    const cancel = (): void => this.cancel();
    this.#signal = signal;
    this.#progress = progress;
    this.#failures = [];
    signal.addEventListener('abort', cancel, { once: true });
    this.#queue = this.children.filter((child) => child.canContinue);
    this.#startNext();
    while (this.#working.size > 0) await Promise.all(this.#working.values());
    this.#signal = undefined;
    signal.removeEventListener('abort', cancel);
    signal.throwIfAborted();
    for (const failure of this.#failures) throw failure;
    return this.#outcome();
  }

  /** Called after a person decided on a call of this sub-agent, or asked for a retry. */
  async continueAfter(child: SubAgent, reason: WakeReason): Promise<void> {
    if (!this.#signal) {
      // A repeated decision changes nothing, because the sub-agent may already wait for another one.
      if (child.canContinue) await this.#options.resumeParent(reason);
    } else if (child.canContinue && !this.#working.has(child) && !this.#queue.includes(child)) {
      this.#queue.push(child);
      this.#startNext();
    }
  }

  /** Reports the waiting inner calls as progress of this call. */
  reportWaiting(): void {
    this.#progress({ waiting: this.pending.map(({ callId }) => callId) });
  }

  cancel(): void {
    this.#queue = [];
    const waiting = this.children.filter((child) => !this.#begun.includes(child));
    for (const child of [...waiting, ...this.#begun].reverse()) child.cancel();
  }

  /**
   * Ends everything after the call has ended. Resolves when the parent's log contains the ends, and rejects if it cannot.
   * Every sub-agent is closed in both cases.
   */
  async shutDown(): Promise<void> {
    this.cancel();
    await Promise.all(this.#working.values());
    const failures: unknown[] = [];
    for (const child of this.children) {
      try {
        await child.stop();
      } catch (error) {
        failures.push(error);
        await child.close();
      }
    }
    for (const failure of failures) throw failure;
  }

  #startNext(): void {
    while (this.#signal && this.#queue.length > 0 && this.#working.size < this.#options.concurrency) {
      const child = this.#queue.shift();
      if (child) this.#working.set(child, this.#work(child, this.#signal));
    }
  }

  async #work(child: SubAgent, signal: AbortSignal): Promise<void> {
    try {
      const releaseSlot = await this.#options.semaphore.acquire(signal);
      try {
        if (!this.#begun.includes(child)) this.#begun.push(child);
        do await child.work(signal);
        while (child.canContinue && !signal.aborted);
      } finally {
        releaseSlot();
      }
      if (child.ending && !this.#ended.includes(child)) this.#ended.push(child);
    } catch (error) {
      this.#failures.push(error);
    }
    this.#working.delete(child);
    this.#startNext();
  }

  #outcome(): ToolResult {
    const waiting = this.children.filter(({ ending }) => !ending);
    if (waiting.length > 0) {
      return waitingWithin({ reason: WAITS, payload: waitingPayload(waiting, this.#options.resultBytes / 2) });
    }
    const ended = this.#ended.flatMap(({ task, ending }) => (ending ? [{ task, ending }] : []));
    return toolResult.success(reportOf(ended, this.#options.resultBytes));
  }
}

/**
 * Limits how many sub-agents work at once, in the order of arrival. A waiter can leave, and a slot is released only
 * once.
 */
export class Semaphore {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(count: number) {
    this.#free = Math.floor(count);
  }

  /** Resolves with a function that releases the slot. Rejects with the signal's reason if it is aborted first. */
  async acquire(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#free > 0) this.#free -= 1;
    else await this.#awaitSlot(signal);
    let isHeld = true;
    return () => {
      if (isHeld) this.#releaseSlot();
      isHeld = false;
    };
  }

  #awaitSlot(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#waiting.delete(begin);
        reject(signal.reason);
      };
      const begin = (): void => {
        this.#waiting.delete(begin);
        signal.removeEventListener('abort', leave);
        resolve();
      };
      signal.addEventListener('abort', leave, { once: true });
      this.#waiting.add(begin);
    });
  }

  #releaseSlot(): void {
    const [next] = this.#waiting;
    if (next) next();
    else this.#free += 1;
  }
}
