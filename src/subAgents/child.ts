/**
 * One sub-agent: a conversation of its own for one task (conversation-requirements, REQ-BED-009). Rule: it is on record
 * in its parent's log before it begins and once it has ended, with what it used; nothing else of it gets there.
 */
import {
  type CallRecord,
  type Decision,
  type DecisionReceipt,
  type Knowledge,
  openCalls,
  type PendingCall,
  type Settlement,
  type Spent,
  type SubAgentChange,
  spentIn,
  together,
} from '../../machines/internal.ts';
import type { Opened } from '../conversation/open.ts';
import { RunchartError, thrownMessage } from '../errors.ts';
import { type Ending, endingIn, endingOf, failedWith } from './ending.ts';
import type { Task } from './task.ts';
import type { Told } from './told.ts';

export interface ChildOptions {
  task: Task;
  /** Nothing where the parent's log does not know it yet. */
  told: Told | undefined;
  open(): Promise<Opened>;
  /** Resolves when it is durable in the parent's log. */
  tell(change: Pick<SubAgentChange, 'phase' | 'spent'>): Promise<unknown>;
  /** One of its calls waits for a person. */
  asked(): void;
  /** What its log said when it was closed. */
  left(known: Knowledge): void;
}

/** Its outcome was unknown, and it is to run once more. */
const isRetried = ({ settled, status }: CallRecord): boolean => settled === 'retry' && status === 'ended';

export class Child {
  readonly task: Task;
  /** Where its end stands in its parent's log, if it was on record when it was joined. */
  readonly endedBefore: number | undefined;
  ending: Ending | undefined;
  readonly #options: ChildOptions;
  #phase: 'unknown' | 'started' | 'ended';
  #upTo: number;
  #opened: Opened | undefined;

  constructor(options: ChildOptions) {
    const { task, told } = options;
    this.task = task;
    this.endedBefore = told?.ended;
    this.#options = options;
    this.#phase = told === undefined ? 'unknown' : told.ended === undefined ? 'started' : 'ended';
    this.#upTo = told?.upTo ?? 0;
  }

  /** Its log, while it is open. */
  get known(): Knowledge | undefined {
    return this.#opened?.runtime.known;
  }

  get pending(): readonly PendingCall[] {
    return this.ending ? [] : (this.#opened?.conversation.pending ?? []);
  }

  get unsettled(): readonly PendingCall[] {
    return this.ending ? [] : (this.#opened?.conversation.unsettled ?? []);
  }

  /** How many entries its log has, while it is open. */
  get upTo(): number {
    return this.#opened?.runtime.log.entries.length ?? 0;
  }

  /** There is something to do: it has not begun, was cut short, somebody decided, or wants a call run again. */
  get goesOn(): boolean {
    if (this.ending) return false;
    if (this.#opened?.conversation.status !== 'waiting') return true;
    const { known } = this.#opened.runtime;
    return openCalls(known).decisions.length > 0 || [...known.calls.values()].some(isRetried);
  }

  /** What it used and the parent's log does not know yet; nothing where it did not use any. */
  get uncounted(): Spent | undefined {
    const entries = this.#opened?.runtime.log.entries.slice(this.#upTo) ?? [];
    const costs = entries.flatMap((entry) => spentIn(entry) ?? []);
    return costs.length > 0 ? costs.reduce(together) : undefined;
  }

  /** Takes a decision about one of its calls. */
  async decide(decision: Decision): Promise<DecisionReceipt> {
    return this.#opened ? this.#opened.conversation.decide(decision) : 'unknown';
  }

  /** Takes the host's word on one of its calls. */
  async settle(callId: string, how: Settlement): Promise<'applied' | 'unknown'> {
    return this.#opened ? this.#opened.conversation.settle(callId, how) : 'unknown';
  }

  /** Opens the log of one that has begun and not ended. Rejects where somebody else holds it. */
  async rejoin(): Promise<void> {
    if (this.#phase !== 'started' || this.ending) return;
    try {
      await this.#open();
    } catch (error) {
      if (RunchartError.isRunchartError(error) && error.code === 'session_busy') throw error;
      // What is wrong with it is said when it is to go on.
    }
  }

  /** Works until it has ended or waits for a person. Rejects only where its parent's log cannot be written. */
  async work(signal: AbortSignal): Promise<void> {
    if (this.#phase === 'unknown') {
      this.#phase = 'started';
      await this.#options.tell({ phase: 'started' });
      if (signal.aborted) return this.#end(endingOf({ termination: 'Cancelled' }));
    }
    let opened: Opened;
    try {
      opened = await this.#open();
    } catch (error) {
      const code = RunchartError.isRunchartError(error) ? error.code : 'store';
      return this.#end(failedWith(code, thrownMessage(error)));
    }
    const { conversation, runtime } = opened;
    const { known, log } = runtime;
    const ending = endingIn(known, log.entries);
    if (ending || this.#phase === 'ended') return this.#end(ending ?? failedWith('unknown', 'its log holds no end'));
    if (signal.aborted) return this.dismiss();
    const run = known.cycle === 'none' ? conversation.send(this.task.task) : conversation.resume();
    let result = await run.result;
    // A decision that came behind its last gate has another run apply it.
    while (conversation.status === 'active') result = await conversation.resume().result;
    if (conversation.status === 'waiting') return this.#count();
    return this.#end(endingIn(known, log.entries, result.error) ?? endingOf(result));
  }

  /** Ends what runs or waits; its stop follows at once, and who works on it hears of it. */
  cancel(): void {
    if (!this.ending) void this.#opened?.conversation.cancel();
  }

  /** The same for one that nobody works on; resolves when its parent's log knows. */
  async dismiss(): Promise<void> {
    if (this.ending || this.#phase !== 'started') return this.close();
    await this.rejoin();
    const { conversation, runtime } = this.#opened ?? {};
    // What a crash cut off and may run again would do so for nobody: a run that ends at once closes it.
    if (conversation?.status === 'idle' && runtime?.known.open.size) conversation.resume();
    await conversation?.cancel();
    const ending = runtime && endingIn(runtime.known, runtime.log.entries);
    return this.#end(ending ?? endingOf({ termination: 'Cancelled' }));
  }

  /** Lets go of its log as it is. */
  async close(): Promise<void> {
    const opened = this.#opened;
    this.#opened = undefined;
    if (!opened) return;
    this.#options.left(opened.runtime.known);
    // A store that fails to close has kept what was written.
    await opened.conversation.close().catch(() => undefined);
  }

  async #open(): Promise<Opened> {
    if (this.#opened) return this.#opened;
    const opened = await this.#options.open();
    opened.runtime.log.listen(({ type }) => {
      if (type === 'tool-suspended') this.#options.asked();
    });
    this.#opened = opened;
    return opened;
  }

  async #count(): Promise<void> {
    const spent = this.#toCount();
    if (spent) await this.#options.tell({ spent });
  }

  async #end(ending: Ending): Promise<void> {
    this.ending = ending;
    const spent = this.#toCount();
    const phase = this.#phase === 'started' ? { phase: 'ended' as const } : {};
    this.#phase = 'ended';
    try {
      if ('phase' in phase || spent) await this.#options.tell({ ...phase, ...(spent && { spent }) });
    } finally {
      await this.close();
    }
  }

  #toCount(): SubAgentChange['spent'] | undefined {
    const { uncounted } = this;
    this.#upTo = this.#opened?.runtime.log.entries.length ?? this.#upTo;
    return uncounted && { ...uncounted, upTo: this.#upTo };
  }
}
