/**
 * The acts of a host on their way: until their delivery, and from there until what they logged is durable. Rule: each is
 * answered exactly once, and what it is answered is true by then.
 */
import type { Act, Admitted } from './acts.ts';

interface Ticket {
  answer?: unknown;
  resolve(answer: unknown): void;
  reject(error: unknown): void;
}

export class Tickets {
  readonly #waiting = new Map<object, Ticket>();
  #delivered: Ticket[] = [];

  open(act: Act): Promise<unknown> {
    return new Promise((resolve, reject) => void this.#waiting.set(act, { resolve, reject }));
  }

  /** Whether an act has not been delivered yet. */
  waits(act: Act): boolean {
    return this.#waiting.has(act);
  }

  /** Acts that have not been delivered yet. */
  get waiting(): Iterable<Act> {
    return this.#waiting.keys() as Iterable<Act>;
  }

  delivered(act: object, { answer, refused }: Admitted): void {
    const ticket = this.#waiting.get(act);
    this.#waiting.delete(act);
    if (refused) ticket?.reject(refused);
    else if (ticket) this.#delivered.push({ ...ticket, answer });
  }

  /** What the delivered acts logged is durable. */
  settle(): void {
    if (this.#delivered.length === 0) return;
    const tickets = this.#delivered;
    this.#delivered = [];
    for (const ticket of tickets) ticket.resolve(ticket.answer);
  }

  /** What the delivered acts logged could not be stored. */
  refuse(error: unknown): void {
    const tickets = this.#delivered;
    this.#delivered = [];
    for (const ticket of tickets) ticket.reject(error);
  }
}
