/**
 * The sub-agents of one call. Rule: as many as may work at the same time, the others in the order of their tasks; the
 * call has its result when all have ended, and is suspended when all that are left wait for a person. Cancelled in
 * reverse order of their beginning.
 */
import type { PendingCall } from '../../machines/internal.ts';
import { type ToolContext, type ToolResult, toolResult, waitingWithin } from '../tools/tool.ts';
import type { Child } from './child.ts';
import { reportOf } from './ending.ts';
import type { Places } from './places.ts';
import type { Task } from './task.ts';
import { WAITS, waitingPayload } from './waiting.ts';
import type { Word } from './wake.ts';

export interface BroodOptions {
  callId: string;
  /** In the order of their tasks. */
  children: readonly Child[];
  /** How many of them work at once. */
  most: number;
  /** Of the whole conversation. */
  places: Places;
  resultBytes: number;
  /** Tells the parent's chart that the call has something to go on with. */
  wake(word: Word): Promise<void>;
}

/** What they did was done for other tasks; to say that it was done for these would be a lie. */
export const BEGUN =
  'The sub-agents of this call had begun on its tasks, so they were ended: other tasks need another call.';

const inOrder = (children: readonly Child[]): Child[] =>
  children
    .filter(({ endedBefore }) => endedBefore !== undefined)
    .sort((a, b) => (a.endedBefore ?? 0) - (b.endedBefore ?? 0));

export class Brood {
  readonly children: readonly Child[];
  readonly #options: BroodOptions;
  #queue: Child[] = [];
  readonly #working = new Map<Child, Promise<void>>();
  readonly #begun: Child[] = [];
  /** In the order in which they ended. */
  readonly #ended: Child[];
  /** Set while the call runs. */
  #signal: AbortSignal | undefined;
  #progress: ToolContext['progress'] = () => {};
  #failures: unknown[] = [];

  constructor(options: BroodOptions) {
    this.#options = options;
    this.children = options.children;
    this.#ended = inOrder(options.children);
  }

  /** Somebody that was joined has something to go on with. */
  get goesOn(): boolean {
    return this.children.some((child) => child.known && child.goesOn);
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
  async raise({ signal, progress }: Pick<ToolContext, 'signal' | 'progress'>): Promise<ToolResult> {
    const cancel = (): void => this.cancel();
    this.#signal = signal;
    this.#progress = progress;
    this.#failures = [];
    signal.addEventListener('abort', cancel, { once: true });
    this.#queue = this.children.filter((child) => child.goesOn);
    this.#go();
    while (this.#working.size > 0) await Promise.all(this.#working.values());
    this.#signal = undefined;
    signal.removeEventListener('abort', cancel);
    signal.throwIfAborted();
    for (const failure of this.#failures) throw failure;
    return this.#outcome();
  }

  /** A person has decided about a call of this sub-agent, or wants it run again. */
  async decided(child: Child, word: Word): Promise<void> {
    if (!this.#signal) await this.#options.wake(word);
    else if (child.goesOn && !this.#working.has(child) && !this.#queue.includes(child)) {
      this.#queue.push(child);
      this.#go();
    }
  }

  /** Who watches the call hears which calls within it wait. */
  tellWaiting(): void {
    this.#progress({ waiting: this.pending.map(({ callId }) => callId) });
  }

  cancel(): void {
    this.#queue = [];
    const waiting = this.children.filter((child) => !this.#begun.includes(child));
    for (const child of [...waiting, ...this.#begun].reverse()) child.cancel();
  }

  /** The call is over: nothing of it goes on. Resolves when the parent's log knows. */
  async dissolve(): Promise<void> {
    this.cancel();
    await Promise.all(this.#working.values());
    for (const child of this.children) await child.dismiss();
  }

  #go(): void {
    while (this.#signal && this.#queue.length > 0 && this.#working.size < this.#options.most) {
      const child = this.#queue.shift();
      if (child) this.#working.set(child, this.#work(child, this.#signal));
    }
  }

  async #work(child: Child, signal: AbortSignal): Promise<void> {
    try {
      const giveBack = await this.#options.places.take(signal);
      try {
        if (!this.#begun.includes(child)) this.#begun.push(child);
        do await child.work(signal);
        while (child.goesOn && !signal.aborted);
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
      return waitingWithin({ reason: WAITS, payload: waitingPayload(waiting) });
    }
    const ended = this.#ended.flatMap(({ task, ending }) => (ending ? [{ task, ending }] : []));
    return toolResult.success(reportOf(ended, this.#options.resultBytes));
  }
}
