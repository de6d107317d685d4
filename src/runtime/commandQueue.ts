/**
 * Commands of a host on their way: until their images are stored, until their delivery, and from there until what they logged
 * is durable. Rule: commands keep their order, each is answered exactly once, and the answer is true by then.
 */

import { RunchartError, thrownText } from '../errors.ts';
import type { Act, Admitted, Starting } from './commands.ts';

interface Ticket {
  answered: Promise<unknown>;
  answer?: unknown;
  resolve(answer: unknown): void;
  reject(error: unknown): void;
}

/** An image of a message could not be stored: the message was not accepted. */
export class NotStored extends RunchartError {
  constructor(cause: unknown) {
    super('store', `an image could not be stored (${thrownText(cause)})`, { cause });
  }
}

export class Tickets {
  /** Of what is decided and settled. */
  readonly turns = new Turns();
  readonly #put: (act: Act) => void;
  readonly #report: (message: string) => void;
  readonly #mustWait: (act: Act) => boolean;
  #closed = false;
  /** Not put yet: one whose images are being stored, or that must wait, comes first. */
  readonly #line = new Set<Act>();
  readonly #waiting = new Map<object, Ticket>();
  readonly #delivered = new Map<object, Ticket>();

  /** `report`: hears of what could not be stored. `mustWait`: the act is not to be put before the next `advance`. */
  constructor(put: (act: Act) => void, report: (message: string) => void, mustWait: (act: Act) => boolean) {
    this.#put = put;
    this.#report = report;
    this.#mustWait = mustWait;
  }

  /** Puts an act when its turn has come. */
  send(act: Act): Promise<unknown> {
    const answered = this.open(act);
    if (this.#closed) return answered;
    // What is given back was delivered before all of these.
    if (act.type === 'message.returned') this.#put(act);
    else {
      this.#line.add(act);
      if (act.type === 'message.sent' && act.kept) {
        act.kept.then(
          (content) => {
            act.content = content;
            delete act.kept;
            this.advance();
          },
          (error) => {
            const failure = new NotStored(error);
            if (this.#leave(act, (ticket) => ticket.reject(failure))) this.#report(failure.message);
          },
        );
      }
      this.advance();
    }
    return answered;
  }

  open(act: Act): Promise<unknown> {
    if (this.#closed) {
      return Promise.reject(new RunchartError('closed', `the conversation is closed: ${act.type} came too late`));
    }
    let ticket: Omit<Ticket, 'answered'> | undefined;
    const answered = new Promise((resolve, reject) => {
      ticket = { resolve, reject };
    });
    if (ticket) this.#waiting.set(act, { ...ticket, answered });
    return answered;
  }

  /** Resolves when everything that is on its way now is answered. */
  async allAnswered(): Promise<void> {
    const tickets = [...this.#waiting.values(), ...this.#delivered.values()];
    await Promise.allSettled(tickets.map(({ answered }) => answered));
  }

  /** Gives up what an act would start; one that is not put yet, or starts nothing, is answered as returned at once. */
  withdraw(act: Starting, starts: boolean): void {
    act.aborted = true;
    if (this.#leave(act, (ticket) => ticket.resolve('returned')) || starts) return;
    this.#waiting.get(act)?.resolve('returned');
    this.#waiting.delete(act);
  }

  /** A cancel, or what was given up, has still to be delivered. */
  get cancelling(): boolean {
    for (const act of this.waiting)
      if (act.type === 'cancel.requested' || ('aborted' in act && act.aborted)) return true;
    return false;
  }

  /** Gives up every message that waits for its images. */
  withdrawHeld(): void {
    for (const act of this.#line) if (act.type === 'message.sent' && act.kept) this.withdraw(act, true);
  }

  /** Whether an act has not been delivered yet. */
  waits(act: Act): boolean {
    return this.#waiting.has(act);
  }

  /** Acts that have not been delivered yet. */
  get waiting(): Iterable<Act> {
    return this.#waiting.keys() as Iterable<Act>;
  }

  /** How many acts of this type have no answer yet. */
  underWay(type: Act['type']): number {
    return [...this.#waiting.keys(), ...this.#delivered.keys()].filter((act) => (act as Act).type === type).length;
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

  /** Nothing is put any more: what has no answer yet is refused for this reason, and whatever comes as closed. */
  close(why: Error): void {
    this.#closed = true;
    this.#line.clear();
    for (const open of [this.#waiting, this.#delivered]) {
      for (const { reject } of open.values()) reject(why);
      open.clear();
    }
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Puts what need not wait any more, in order. */
  advance(): void {
    for (const act of this.#line) {
      if ('kept' in act || this.#mustWait(act)) return;
      this.#line.delete(act);
      this.#put(act);
    }
  }

  /** False where it was put before. */
  #leave(act: Act, answer: (ticket: Ticket) => void): boolean {
    if (!this.#line.delete(act)) return false;
    const ticket = this.#waiting.get(act);
    this.#waiting.delete(act);
    if (ticket) answer(ticket);
    this.advance();
    return true;
  }
}

export class Turns {
  readonly #last = new Map<string, Promise<unknown>>();

  take<T>(callId: string, say: () => Promise<T>): Promise<T> {
    const said = this.#last.get(callId)?.then(say, say) ?? say();
    this.#last.set(callId, said);
    const over = (): void => {
      if (this.#last.get(callId) === said) this.#last.delete(callId);
    };
    said.then(over, over);
    return said;
  }
}
