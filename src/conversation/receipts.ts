/**
 * The receipts of messages, and messages that are returned or could not be stored. Rule: each receipt is settled once, by the log or by
 * the end of the conversation. It rejects if the outcome of its message is unknown, and then its run reports the same.
 */
import { type RunOutput, runOf } from '../../machines/internal.ts';
import { NotStored } from '../content/content.ts';
import { RunchartError, thrownText } from '../errors.ts';
import { GIVE_UP_MS } from '../runtime/appendQueue.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { notBegun, type Run, type RunHandle, returnedOutput } from './run.ts';

/** The outcome of a message: a request, a part of a run, or a return without delivery. */
type Delivery = 'delivered' | 'returned';

/** Knows runs by their ids. */
interface Runs {
  open(runId: string): Pick<Run, 'result'>;
}

/** The id of a message, and a promise of its outcome. */
export interface Receipt {
  /** The id of the message. */
  readonly messageId: string;
  /**
   * Resolves once. Rejects with RunchartError, code `store`, where the message could not be taken off the queue of the log, or where the
   * store did not confirm that: it may still be queued, and the next opening lists it then.
   */
  readonly delivered: Promise<Delivery>;
}

interface PendingReceipt {
  receipt: Receipt;
  settle(how: Delivery): void;
  refuse(why: RunchartError): void;
}

export class Receipts {
  readonly #open = new Map<string, PendingReceipt>();
  readonly #runs: Runs;

  constructor(runs: Runs) {
    this.#runs = runs;
  }

  open(messageId: string): Receipt {
    const existing = this.#open.get(messageId);
    if (existing) return existing.receipt;
    let pending: Omit<PendingReceipt, 'receipt'> | undefined;
    const delivered = new Promise<Delivery>((settle, refuse) => {
      pending = { settle, refuse };
    });
    // Most hosts do not look at most receipts.
    delivered.catch(() => undefined);
    const receipt = { messageId, delivered };
    if (pending) this.#open.set(messageId, { ...pending, receipt });
    return receipt;
  }

  /** Of receipts that are not settled. */
  get messageIds(): readonly string[] {
    return [...this.#open.keys()];
  }

  settle(messageId: string, how: Delivery): void {
    this.#open.get(messageId)?.settle(how);
    this.#open.delete(messageId);
  }

  /** The outcome of the message is unknown. */
  refuse(messageId: string, why: RunchartError): void {
    this.#open.get(messageId)?.refuse(why);
    this.#open.delete(messageId);
  }

  /** A message that could not be stored counts as returned, unless a run has taken it meanwhile or the queue contains it. */
  async rejectMessage(
    messageId: string,
    error: unknown,
    run: Pick<Run, 'result'>,
    runtime: Pick<Runtime, 'settled' | 'queue' | 'runId'>,
  ): Promise<void> {
    if (!(error instanceof NotStored)) {
      await run.result;
      // A steer that arrived after the end of its run has started another run, whose end may settle the receipt.
      if (runtime.runId === runOf(messageId)) await this.#runs.open(runtime.runId).result;
      // This follows every pending append.
      await runtime.settled();
      if (runtime.queue.some((message) => message.messageId === messageId)) return;
    }
    this.settle(messageId, 'returned');
  }
}

/** Ends the run of a message, if a caller has its handle. */
type Finish = (output: RunOutput) => void;

export class Returns {
  readonly #runtime: Pick<Runtime, 'submit' | 'settled' | 'setTimer' | 'queue' | 'runId' | 'logState'>;
  readonly #receipts: Receipts;
  readonly #finish: Finish;

  constructor(
    runtime: Pick<Runtime, 'submit' | 'settled' | 'setTimer' | 'queue' | 'runId' | 'logState'>,
    receipts: Receipts,
    finish: Finish,
  ) {
    this.#runtime = runtime;
    this.#receipts = receipts;
    this.#finish = finish;
  }

  /** The message was taken off the queue, or was never on it. */
  returned(messageId: string, output: RunOutput = returnedOutput(runOf(messageId))): void {
    this.#receipts.settle(messageId, 'returned');
    this.#finish(output);
  }

  /** Settles the receipt of a message whose run ended before it began. The message is returned, unless the queue contains it again. */
  async returnUnbegun({ runId, durable }: RunOutput): Promise<void> {
    const messageId = this.#receipts.messageIds.find((id) => runOf(id) === runId);
    if (messageId === undefined) return;
    // An abandoned append may still be stored.
    if (!durable) await this.#runtime.settled();
    const { queue } = this.#runtime.logState;
    if (!queue.some((queued) => queued.messageId === messageId)) this.#receipts.settle(messageId, 'returned');
  }

  /** Withdraws a queued message; resolves when the withdrawal is in the log, or cannot be logged any more. */
  async withdraw(messageId: string): Promise<void> {
    await this.#runtime
      .submit({ type: 'message.returned', messageId, why: 'cancelled' })
      .catch((error: unknown) => this.#leave(messageId, error));
  }

  /** The same for a cancel, which waits for no store. */
  async takeBack(messageId: string): Promise<void> {
    const { setTimer } = this.#runtime;
    let stop: (() => void) | undefined;
    const late = new Promise<void>((resolve) => {
      stop = setTimer(GIVE_UP_MS, () => {
        this.#leave(messageId, new RunchartError('store', 'the store did not answer in time'));
        resolve();
      });
    });
    await Promise.race([this.withdraw(messageId), late]);
    stop?.();
  }

  /** Rejects a message that could not be stored. An abandoned append may still be stored later. */
  async rejectMessage(handle: RunHandle, messageId: string, error: unknown): Promise<void> {
    void this.#receipts.rejectMessage(messageId, error, handle, this.#runtime);
    if (this.#holds(messageId)) await this.#runtime.settled();
    if (handle.ended || this.#runtime.runId === handle.id || this.#holds(messageId)) return;
    this.returned(messageId, notBegun(handle.id, 'store', `the message is not stored: ${thrownText(error)}`));
  }

  #holds(messageId: string): boolean {
    return this.#runtime.queue.some((message) => message.messageId === messageId);
  }

  /** Settles every open receipt. `silence`: the error of a store that did not answer. */
  close(handles: Iterable<RunHandle>, silence?: unknown): void {
    const { queue } = this.#runtime.logState;
    const kept = new Set(queue.map(({ messageId }) => messageId));
    for (const messageId of this.#receipts.messageIds) {
      if (silence !== undefined || kept.has(messageId)) this.#leave(messageId, silence);
      else this.returned(messageId);
    }
    const runs = new Set([...kept].map(runOf));
    for (const { id } of handles) {
      if (silence === undefined && !runs.has(id)) this.#finish(returnedOutput(id));
      else this.#finish(notBegun(id, 'store', failureText('the run may have an end', silence)));
    }
  }

  /** The log may still contain the message; the next opening then lists it. */
  #leave(messageId: string, error: unknown): void {
    const failure = new RunchartError('store', failureText('the message may still be queued', error), { cause: error });
    this.#receipts.refuse(messageId, failure);
    this.#finish(notBegun(runOf(messageId), 'store', failure.message));
  }
}

const failureText = (what: string, error: unknown = new Error('it was not given back')): string =>
  `${what}, the next opening shows it (${thrownText(error)})`;
