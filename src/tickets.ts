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
  readonly #delivered = new Map<object, Ticket>();

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
    else if (ticket) this.#delivered.set(act, { ...ticket, answer });
  }

  /** What these acts logged is durable. */
  settle(acts: readonly object[]): void {
    for (const act of acts) {
      const ticket = this.#delivered.get(act);
      this.#delivered.delete(act);
      ticket?.resolve(ticket.answer);
    }
  }

  /** What these acts logged could not be stored. */
  refuse(acts: readonly object[], error: unknown): void {
    for (const act of acts) {
      this.#delivered.get(act)?.reject(error);
      this.#delivered.delete(act);
    }
  }
}
