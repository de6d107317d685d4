/**
 * The sub-agents of one call. Rule: as many as may work at the same time, the others in the order of their tasks; the
 * call has its result when all have ended, and is suspended when all that are left wait for a person. Cancelled in
 * reverse order of their beginning.
 */
import type { Decision, PendingCall } from '../../machines/internal.ts';
import { type Task, WAITS } from '../runtime/subAgentPort.ts';
import { type ToolContext, type ToolResult, toolResult, waitingWithin } from '../tools/tool.ts';
import { reportOf } from './outcome.ts';
import type { SubAgent } from './subAgent.ts';
import { waitingPayload } from './subAgentRecords.ts';

/** What a person said of a call of a sub-agent. */
export type WakeReason = Pick<Decision, 'callId' | 'by'>;

interface GroupOptions {
  callId: string;
  /** In the order of their tasks. */
  children: readonly SubAgent[];
  /** How many of them work at once. */
  concurrency: number;
  /** Of the whole conversation. */
  semaphore: Semaphore;
  resultBytes: number;
  /** Tells the parent's chart that the call can continue. */
  resumeParent(reason: WakeReason): Promise<void>;
}

/** What they did was done for other tasks; to say that it was done for these would be a lie. */
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

  /** A sub-agent that was reopened can continue. */
  get canContinue(): boolean {
    return this.children.some((child) => child.logState && child.canContinue);
  }

  /** These are the tasks its sub-agents work on. */
  isFor(tasks: readonly Task[]): boolean {
    const own = this.children.map(({ task }) => task);
    return (
      own.length === tasks.length && own.every(({ id, task }, i) => tasks[i]?.id === id && tasks[i]?.task === task)
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

  /** Works until all have ended, or those that are left wait. Rejects where the call was cancelled. */
  async run({ signal, progress }: Pick<ToolContext, 'signal' | 'progress'>): Promise<ToolResult> {
    const cancel = (): void => this.cancel();
    this.#signal = signal;
    this.#progress = progress;
    this.#failures = [];
    signal.addEventListener('abort', cancel, { once: true });
    this.#queue = this.children.filter((child) => child.canContinue);
    this.#go();
    while (this.#working.size > 0) await Promise.all(this.#working.values());
    this.#signal = undefined;
    signal.removeEventListener('abort', cancel);
    signal.throwIfAborted();
    for (const failure of this.#failures) throw failure;
    return this.#outcome();
  }

  /** A person has decided about a call of this sub-agent, or wants it run again. */
  async decided(child: SubAgent, reason: WakeReason): Promise<void> {
    if (!this.#signal) {
      // The same word once more changes nothing: the sub-agent may wait for another one by now.
      if (child.canContinue) await this.#options.resumeParent(reason);
    } else if (child.canContinue && !this.#working.has(child) && !this.#queue.includes(child)) {
      this.#queue.push(child);
      this.#go();
    }
  }

  /** Who watches the call hears which calls within it wait. */
  reportWaiting(): void {
    this.#progress({ waiting: this.pending.map(({ callId }) => callId) });
  }

  cancel(): void {
    this.#queue = [];
    const waiting = this.children.filter((child) => !this.#begun.includes(child));
    for (const child of [...waiting, ...this.#begun].reverse()) child.cancel();
  }

  /** The call is over: nothing of it goes on. Resolves when the parent's log knows. */
  async shutDown(): Promise<void> {
    this.cancel();
    await Promise.all(this.#working.values());
    for (const child of this.children) await child.stop();
  }

  #go(): void {
    while (this.#signal && this.#queue.length > 0 && this.#working.size < this.#options.concurrency) {
      const child = this.#queue.shift();
      if (child) this.#working.set(child, this.#work(child, this.#signal));
    }
  }

  async #work(child: SubAgent, signal: AbortSignal): Promise<void> {
    try {
      const giveBack = await this.#options.semaphore.take(signal);
      try {
        if (!this.#begun.includes(child)) this.#begun.push(child);
        do await child.work(signal);
        while (child.canContinue && !signal.aborted);
      } finally {
        giveBack();
      }
      if (child.ending && !this.#ended.includes(child)) this.#ended.push(child);
    } catch (error) {
      this.#failures.push(error);
    }
    this.#working.delete(child);
    this.#go();
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

/** Bounds how many work at once: first come, first served; a waiter can leave, and a place is given back once. */
export class Semaphore {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(count: number) {
    this.#free = Math.floor(count);
  }

  /** Resolves with what gives the place back. Rejects with the signal's reason where that is aborted before. */
  async take(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#free > 0) this.#free -= 1;
    else await this.#turn(signal);
    let taken = true;
    return () => {
      if (taken) this.#giveBack();
      taken = false;
    };
  }

  #turn(signal: AbortSignal): Promise<void> {
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

  #giveBack(): void {
    const [next] = this.#waiting;
    if (next) next();
    else this.#free += 1;
  }
}
