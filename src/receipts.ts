/**
 * The receipts of messages. Rule: each is settled once, by the log or by the end of the conversation, and what is not
 * known is not told: a receipt that cannot say what became of its message rejects.
 */

import { runOf } from '../machines/internal.ts';
import type { RunchartError } from './errors.ts';
import type { Run } from './run.ts';
import { NotStored } from './runtime/commandQueue.ts';
import type { Runtime } from './runtime/runtime.ts';

type Delivery = 'delivered' | 'returned';

type Lasting = Pick<Run, 'result'>;
type Keeper = Pick<Runtime, 'settled' | 'queue' | 'runId'>;
/** Knows runs by their ids. */
interface Runs {
  open(runId: string): Lasting;
}

/** What became of a message. */
export interface Receipt {
  readonly messageId: string;
  /**
   * Resolves once. Rejects with RunchartError, code `store`, where the message could not be taken off the queue of the
   * log, or the store did not say so: it may still be queued, and the next opening lists it then.
   */
  readonly delivered: Promise<Delivery>;
}

interface Owed {
  settle(how: Delivery): void;
  refuse(why: RunchartError): void;
}

export class Receipts {
  readonly #open = new Map<string, Owed>();
  readonly #runs: Runs;

  constructor(runs: Runs) {
    this.#runs = runs;
  }

  open(messageId: string): Receipt {
    const delivered = new Promise<Delivery>((settle, refuse) => void this.#open.set(messageId, { settle, refuse }));
    // Most hosts do not look at most receipts.
    delivered.catch(() => undefined);
    return { messageId, delivered };
  }

  /** Of receipts that are not settled. */
  get messageIds(): readonly string[] {
    return [...this.#open.keys()];
  }

  settle(messageId: string, how: Delivery): void {
    this.#open.get(messageId)?.settle(how);
    this.#open.delete(messageId);
  }

  /** Nobody knows any more what became of the message. */
  refuse(messageId: string, why: RunchartError): void {
    this.#open.get(messageId)?.refuse(why);
    this.#open.delete(messageId);
  }

  /** Of a message for the run under way. */
  follow(messageId: string, answered: Promise<unknown>, run: Lasting, runtime: Keeper): void {
    const told = (answer: unknown): void => {
      if (answer === 'returned') this.settle(messageId, 'returned');
    };
    answered.then(told, (error: unknown) => this.lose(messageId, error, run, runtime));
  }

  /** What could not be stored was not accepted, unless the run has taken it meanwhile and says it all the same. */
  async lose(messageId: string, error: unknown, run: Lasting, runtime: Keeper): Promise<void> {
    if (!(error instanceof NotStored)) {
      await run.result;
      // A steer that came too late for it has begun a run of its own, and that one may say it with its end.
      if (runtime.runId === runOf(messageId)) await this.#runs.open(runtime.runId).result;
      // Behind everything that is on its way into the log.
      await runtime.settled();
      if (runtime.queue.some((message) => message.messageId === messageId)) return;
    }
    this.settle(messageId, 'returned');
  }
}
