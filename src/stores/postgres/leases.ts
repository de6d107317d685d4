/**
 * The leases of a process: one statement renews all of them. Invariant: the database's clock alone decides whether a lease holds. A
 * lease that is lost never comes back. A process that cannot reach the database gives its leases up when they must have expired.
 */
import { arrayText, type Database, type Row } from './database.ts';
import type { LiveFeed } from './liveFeed.ts';
import type { Statements } from './statements.ts';

export interface LeaseHolder {
  readonly id: string;
  /** The number of its lease. It changes when an answer was lost. */
  readonly epoch: number;
  /** The store examines a lost answer, which also renews the lease. */
  readonly isFencing: boolean;
  readonly liveFeed: LiveFeed | undefined;
  /** The lease is over. */
  lose(): void;
  close(): Promise<void>;
}

/** A third of the lease, so that one renewal may fail. */
const RENEWALS = 3;
/** The part of a lease for which the local clock is exact enough. */
const SURE_PART = 0.9;

export class Leases {
  readonly leaseMs: number;
  readonly #database: Database;
  readonly #statements: Statements;
  /** Each holder with the local time before its lease was renewed last. */
  readonly #holders = new Map<LeaseHolder, number>();
  #stopTimer: (() => void) | undefined;
  /** Stops the wait for the end of the oldest lease, while the database does not answer. */
  #stopEnd: (() => void) | undefined;
  #renewing: Promise<void> | undefined;

  constructor(database: Database, statements: Statements, leaseMs: number) {
    this.#database = database;
    this.#statements = statements;
    this.leaseMs = leaseMs;
  }

  /** `heldAt`: the local time before its lease was taken. */
  add(holder: LeaseHolder, heldAt: number): void {
    this.#holders.set(holder, heldAt);
    if (!this.#stopTimer) this.#schedule();
  }

  /** An append has renewed the lease. `at`: the local time before it was sent. */
  renewed(holder: LeaseHolder, at: number): void {
    if (this.#holders.has(holder)) this.#holders.set(holder, at);
  }

  #schedule(): void {
    const renew = (): void => {
      this.#schedule();
      // A renewal without an answer ends at about this time, and must not take the place of this one.
      void Promise.resolve(this.#renewing).then(() => this.renew());
    };
    // A process that has nothing else to do may end. Its leases end with it.
    this.#stopTimer = this.#database.time.setTimer(this.leaseMs / RENEWALS, renew, true);
  }

  delete(holder: LeaseHolder): void {
    if (!this.#holders.delete(holder) || this.#holders.size > 0) return;
    this.#stopTimer?.();
    this.#stopEnd?.();
    this.#stopTimer = undefined;
  }

  get holders(): readonly LeaseHolder[] {
    return [...this.#holders.keys()];
  }

  /** Whether the lease of an open conversation still holds. The database is asked only if the lease may be over. */
  async stillHolds(id: string): Promise<boolean> {
    const holder = this.holders.find((each) => each.id === id);
    if (!holder) return false;
    // A renewal that is under way may have been sent before the process stalled, so its answer is of that time.
    for (let renewals = 0; renewals < 2 && this.#ageOf(holder) > SURE_PART * this.leaseMs; renewals += 1)
      await this.renew();
    return this.#ageOf(holder) < this.leaseMs;
  }

  /** The milliseconds since the lease was renewed. Infinite for a lease that is over. */
  #ageOf(holder: LeaseHolder): number {
    return this.#database.time.now() - (this.#holders.get(holder) ?? Number.NEGATIVE_INFINITY);
  }

  /** Renews every lease once, unless that is under way. */
  async renew(): Promise<void> {
    if (this.#holders.size === 0) return;
    this.#renewing ??= this.#renewAll().finally(() => {
      this.#renewing = undefined;
    });
    await this.#renewing;
  }

  async #renewAll(): Promise<void> {
    const asked = [...this.#holders.keys()].map((holder) => ({ holder, epoch: holder.epoch }));
    const at = this.#database.time.now();
    try {
      const renewed = await this.#ask(this.#statements.renew, asked, [this.leaseMs]);
      const rest = asked.filter(({ holder }) => !renewed.has(holder.id));
      const held = rest.length === 0 ? renewed : await this.#ask(this.#statements.held, rest);
      for (const { holder, epoch } of asked) {
        // A lease that is held and was left out of the renewal ends when it would have ended.
        if (renewed.has(holder.id)) this.renewed(holder, at);
        else if (!held.has(holder.id) && holder.epoch === epoch && !holder.isFencing) this.#lose(holder);
      }
      this.#stopEnd?.();
    } catch {
      // The next renewal may succeed.
      this.#loseOld();
    }
  }

  async #ask(statement: string, asked: readonly { holder: LeaseHolder; epoch: number }[], more: unknown[] = []) {
    const ids = arrayText(asked.map(({ holder }) => holder.id));
    const epochs = arrayText(asked.map(({ epoch }) => `${epoch}`));
    const rows: readonly Row[] = await this.#database.query(statement, [ids, epochs, ...more], this.leaseMs / RENEWALS);
    return new Set(rows.map(({ id }) => String(id)));
  }

  /** Without an answer of the database, a lease is over when it was not renewed for its time. */
  #loseOld(): void {
    this.#stopEnd?.();
    const { time } = this.#database;
    const now = time.now();
    for (const [holder, heldAt] of this.#holders) if (now - heldAt >= this.leaseMs) this.#lose(holder);
    if (this.#holders.size === 0) return;
    const oldest = Math.min(...this.#holders.values());
    // At least one millisecond, also after rounding.
    const ms = Math.max(1, oldest + this.leaseMs - now);
    this.#stopEnd = time.setTimer(ms, () => this.#loseOld(), true);
  }

  #lose(holder: LeaseHolder): void {
    this.delete(holder);
    holder.lose();
  }
}
