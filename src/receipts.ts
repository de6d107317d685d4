/** The receipts of messages. Rule: each is settled once, by the log or by the end of the conversation. */

import type { Run } from './run.ts';
import type { Runtime } from './runtime.ts';
import { NotStored } from './tickets.ts';

type Delivery = 'delivered' | 'returned';

type Lasting = Pick<Run, 'result'>;
type Keeper = Pick<Runtime, 'log' | 'queue'>;

/** What became of a message; resolves once. */
export interface Receipt {
  readonly messageId: string;
  readonly delivered: Promise<Delivery>;
}

export class Receipts {
  readonly #open = new Map<string, (how: Delivery) => void>();

  open(messageId: string): Receipt {
    const delivered = new Promise<Delivery>((resolve) => void this.#open.set(messageId, resolve));
    return { messageId, delivered };
  }

  settle(messageId: string, how: Delivery): void {
    this.#open.get(messageId)?.(how);
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
      // Behind everything that is on its way into the log.
      await runtime.log.append([], 0);
      if (runtime.queue.some((message) => message.messageId === messageId)) return;
    }
    this.settle(messageId, 'returned');
  }

  /** Nothing is delivered any more. */
  close(): void {
    for (const messageId of [...this.#open.keys()]) this.settle(messageId, 'returned');
  }
}
