/** The receipts of messages. Rule: each is settled once, by the log or by the end of the conversation. */

type Delivery = 'delivered' | 'returned';

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

  /** Nothing is delivered any more. */
  close(): void {
    for (const messageId of [...this.#open.keys()]) this.settle(messageId, 'returned');
  }
}
