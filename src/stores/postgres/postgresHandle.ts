/**
 * An open conversation in PostgreSQL. Invariant: each append proves its epoch, its lease and its seq in the statement that stores it.
 * Appends that wait share one statement, and fail together. An append without an answer is judged by the database: a new epoch refuses
 * statements that are still under way, then the length of the log decides.
 */
import { Observable, Subject } from 'rxjs';
import type { Json, LogEntry } from '../../../machines/vocabulary.ts';
import { CorruptLogError, RunchartError, StoreConflictError } from '../../errors.ts';
import type { Live } from '../../live.ts';
import { blobReference, checkMediaType, hashIn } from '../blobReference.ts';
import type { ConversationRow } from '../conversationRow.ts';
import { addToRow } from '../conversationSummary.ts';
import { type WrittenEntry, writtenEntry } from '../entryJson.ts';
import type { Act, ActAnswer, EffectOfAct, LogHandle } from '../logStore.ts';
import { OrderedAppends } from '../orderedAppends.ts';
import { arrayText, type Database, isAnswerLost, isTransient, storeError } from './database.ts';
import type { Hints } from './hints.ts';
import type { TakenActs } from './holderActs.ts';
import { ownerText, sha256Of } from './identifiers.ts';
import type { LeaseHolder, Leases } from './leases.ts';
import { LiveFeed } from './liveFeed.ts';
import { readEntries } from './postgresEntries.ts';
import type { Statements } from './statements.ts';

/** The resources that the conversations of a store share. */
export interface PostgresDatabase {
  database: Database;
  statements: Statements;
  leases: Leases;
  hints: Hints;
  /** Undefined for a process that carries out no acts. */
  takenActs: TakenActs | undefined;
  /** A unique number. */
  nextEpoch(): Promise<number>;
  /** The store is closed only after this has ended. */
  awaitAtClose<T>(work: Promise<T>): Promise<T>;
}

export interface OpenedLog {
  id: string;
  epoch: number;
  /** The number of entries. */
  length: number;
  /** Undefined for an empty log. */
  row: ConversationRow | undefined;
}

/** Entries of one statement that were counted, and their row. */
interface Batch {
  texts: readonly string[];
  row: ConversationRow;
  /** The answers of the acts whose effects are among the entries. */
  answers: ReadonlyMap<string, Json>;
}

const RETRY_MS = { first: 30, most: 1000 };
/** After the lease is over, how long an append that is under way may still be judged by the database. */
const LAST_WORD_MS = 1000;
/** Acts until the end of their conversation. */
const actsUntil = (acts$: Observable<Act>, end$: Observable<never>): Observable<Act> =>
  new Observable((subscriber) => {
    subscriber.add(end$.subscribe(subscriber));
    if (!subscriber.closed) subscriber.add(acts$.subscribe((act) => subscriber.next(act)));
  });

export class PostgresHandle implements LogHandle, LeaseHolder {
  readonly id: string;
  readonly #shared: PostgresDatabase;
  #epoch: number;
  /** Every epoch that it has had. An act may have been claimed under any of them. */
  readonly #epochs: number[];
  #next: number;
  #row: ConversationRow | undefined;
  readonly #appends: OrderedAppends<WrittenEntry>;
  /** Settles after all requested blobs. */
  #blobsPut: Promise<unknown> = Promise.resolve();
  /** The outcome of the last append is unknown. */
  #mustFence = false;
  #isFencing = false;
  /** The number of a fence without an answer. It may have been carried out, so the next attempt has the same one. */
  #fencingEpoch: number | undefined;
  #lost: StoreConflictError | undefined;
  #onLost: (() => void) | undefined;
  #closing: Promise<void> | 'open' | 'failed' = 'open';
  /** The expected effect of each act. */
  readonly #effects = new Map<string, EffectOfAct>();
  /** Fails when the lease is over, and completes with the handle. */
  readonly #end = new Subject<never>();
  #liveFeed: LiveFeed | undefined;
  readonly acts$?: Observable<Act>;

  constructor(shared: PostgresDatabase, { id, epoch, length, row }: OpenedLog) {
    this.#shared = shared;
    this.id = id;
    this.#epoch = epoch;
    this.#epochs = [epoch];
    this.#next = length;
    this.#row = row;
    this.#appends = new OrderedAppends<WrittenEntry>({
      id,
      nextSeq: () => this.#next,
      store: (pending) => this.#storeInOrder(pending),
    });
    const { takenActs } = shared;
    if (takenActs) this.acts$ = actsUntil(takenActs.of(this), this.#end);
  }

  get liveFeed(): LiveFeed | undefined {
    return this.#liveFeed;
  }

  get epoch(): number {
    return this.#epoch;
  }

  get isFencing(): boolean {
    return this.#isFencing;
  }

  lose(why = 'the lease is over, another process may have it'): void {
    if (this.#lost) return;
    this.#lost = new StoreConflictError(`conversation "${this.id}": ${why}: open it again`);
    this.#shared.leases.delete(this);
    this.#liveFeed?.stop();
    this.#onLost?.();
    this.#end.error(this.#lost);
  }

  expectEffect(actId: string, effect: EffectOfAct): void {
    this.#effects.set(actId, effect);
  }

  async answerAct(actId: string, answer: ActAnswer): Promise<void> {
    this.#effects.delete(actId);
    const { database, statements, hints } = this.#shared;
    await database
      .repeat(statements.answerAct, [actId, JSON.stringify(answer), arrayText(this.#epochs.map(String))])
      .catch((cause) => this.#fail('an act cannot be answered', cause));
    hints.send({ answered: actId });
  }

  shareLive(live$: Observable<Live>): void {
    const { hints } = this.#shared;
    this.#liveFeed?.stop();
    this.#liveFeed = new LiveFeed(this.id, hints, live$, () => this.#next);
    hints.listen();
  }

  async *read(from = 0): AsyncGenerator<LogEntry> {
    this.#refuseClosed();
    const until = this.#next;
    const first = Math.max(0, Math.ceil(from));
    // Also for NaN.
    if (!(first < until)) return;
    let next = first;
    for await (const entry of readEntries(this.#shared, this.id, first, until)) {
      next = entry.seq + 1;
      yield entry;
      this.#refuseClosed();
    }
    if (next < until)
      throw new CorruptLogError('gap', `entry ${next} of the log of ${JSON.stringify(this.id)} is missing`, next + 1);
  }

  async append(entries: readonly LogEntry[], expectedSeq: number): Promise<void> {
    this.#refuseClosed();
    if (this.#lost) throw this.#lost;
    return this.#appends.add(entries, entries.map(writtenEntry), expectedSeq);
  }

  async putBlob(bytes: Uint8Array, mediaType: string): Promise<string> {
    this.#refuseClosed();
    checkMediaType(mediaType);
    const put = this.#put(new Uint8Array(bytes));
    this.#blobsPut = Promise.allSettled([this.#blobsPut, put]);
    return blobReference(await put, mediaType);
  }

  async getBlob(reference: string): Promise<Uint8Array> {
    this.#refuseClosed();
    const hash = hashIn(reference);
    const { database, statements } = this.#shared;
    const [row] = await database
      .repeat(statements.getBlob, [this.id, hash])
      .catch((cause) => this.#fail('its bytes cannot be read', cause));
    if (!row) throw new RunchartError('store', `no blob ${hash} beside the log of conversation "${this.id}"`);
    const bytes = Uint8Array.from(row.bytes as Uint8Array);
    if ((await sha256Of(bytes)) === hash) return bytes;
    throw new CorruptLogError('corrupt', `the blob ${hash} does not hold what was stored`);
  }

  close(): Promise<void> {
    if (typeof this.#closing === 'string') this.#closing = this.#shared.awaitAtClose(this.#close());
    return this.#closing;
  }

  async #close(): Promise<void> {
    const { database, statements, leases } = this.#shared;
    // The next holder carries out acts that arrive from now on, also if the lease cannot be released.
    this.#end.complete();
    try {
      await Promise.all([this.#appends.drained(), this.#blobsPut]);
      leases.delete(this);
      this.#liveFeed?.stop();
      await database.repeat(statements.release, [this.id, this.#epoch]);
    } catch (cause) {
      this.#closing = 'failed';
      this.#fail('its lease cannot be released, and ends by itself', cause);
    }
  }

  async #put(bytes: Uint8Array): Promise<string> {
    const { database, statements } = this.#shared;
    const hash = await sha256Of(bytes);
    const rows = await database
      .repeat(statements.putBlob, [this.id, this.#epoch, hash, bytes])
      .catch((cause) => this.#fail('its bytes cannot be stored', cause));
    if (rows.length === 0) throw this.#conflict();
    return hash;
  }

  async #storeInOrder(pending: readonly WrittenEntry[]): Promise<void> {
    // The append whose answer was lost has been rejected since. If it was stored, the writer lacks its entries.
    if (this.#mustFence && (await this.#fence()) !== this.#next) throw this.#loseForOthers();
    await this.#orLost(this.#store(pending));
  }

  async #store(pending: readonly WrittenEntry[]): Promise<void> {
    if (this.#lost) throw this.#lost;
    let row = this.#row && { ...this.#row };
    for (const { entry } of pending) row = addToRow(row, entry, this.id);
    const texts = pending.map(({ text }) => text);
    if (row === undefined || texts.length === 0) return;
    const answers = this.#answersIn(pending.map(({ entry }) => entry));
    await this.#storeBatch({ texts, row, answers });
    this.#row = row;
    this.#liveFeed?.flush();
    this.#next += texts.length;
    const { hints } = this.#shared;
    if (this.#liveFeed?.isFollowed) hints.send({ entries: [this.id] });
    for (const actId of answers.keys()) {
      this.#effects.delete(actId);
      hints.send({ answered: actId });
    }
  }

  /** The acts whose effects are among the entries, with their answers. */
  #answersIn(entries: readonly LogEntry[]): Map<string, Json> {
    const answers = new Map<string, Json>();
    for (const [actId, effect] of this.#effects) {
      for (const entry of entries) {
        const answer = effect(entry);
        if (answer !== undefined && !answers.has(actId)) answers.set(actId, answer);
      }
    }
    return answers;
  }

  /** Tries until the database has answered whether the entries are stored. */
  async #storeBatch(batch: Batch): Promise<void> {
    const { database, leases } = this.#shared;
    const until = database.time.now() + leases.leaseMs;
    for (let wait = RETRY_MS.first; ; wait = Math.min(2 * wait, RETRY_MS.most)) {
      const epoch = this.#epoch;
      try {
        return await this.#insert(batch);
      } catch (error) {
        if (!isAnswerLost(error) && !isTransient(error)) return this.#fail('its entries cannot be appended', error);
        if (isAnswerLost(error)) {
          this.#mustFence = true;
          const length = await this.#fence(until, batch, epoch);
          if (length === this.#next + batch.texts.length) return;
        }
        if (database.time.now() > until) this.#fail('its entries cannot be appended', error);
        await database.pause(wait);
      }
    }
  }

  async #insert({ texts, row, answers }: Batch): Promise<void> {
    const { database, statements, leases } = this.#shared;
    const { parentId, owner } = row;
    const updatedAt = Number.isFinite(row.updatedAt) ? row.updatedAt : 0;
    const ownerOrNull = owner === undefined ? null : ownerText(owner);
    const listed = [JSON.stringify(row), updatedAt, ownerOrNull, parentId ?? null, row.cycle];
    const values = [this.id, this.#epoch, this.#next, arrayText(texts), texts.length, ...listed, leases.leaseMs];
    const answered = [...answers].map(([actId, value]) => [actId, JSON.stringify({ value })] as const);
    const sentAt = database.time.now();
    const [stored] = await (answered.length === 0
      ? database.query(statements.append, values)
      : database.query(statements.appendWithAnswers, [
          ...values,
          arrayText(answered.map(([actId]) => actId)),
          arrayText(answered.map(([, answer]) => answer)),
        ]));
    if (!stored) throw await this.#refused();
    leases.renewed(this, sentAt);
  }

  /** The append was refused by the database: the lease is over, or the log has other entries. */
  async #refused(): Promise<StoreConflictError> {
    const { database, statements } = this.#shared;
    const held = await database.repeat(statements.held, [arrayText([this.id]), arrayText([`${this.#epoch}`])]);
    if (held.length === 0) this.lose();
    return this.#loseForOthers();
  }

  /** No append can follow any more, so the lease is given up, and the next opening reads the log. */
  #loseForOthers(): StoreConflictError {
    this.lose('its log has other entries than the writer');
    return this.#conflict();
  }

  #conflict(): StoreConflictError {
    return this.#lost ?? new StoreConflictError(`conversation "${this.id}" is held by another process: open it again`);
  }

  /**
   * Shuts out statements whose answer was lost, and returns the length of the log. Rejects with StoreConflictError if the lease is
   * over and the batch is not stored, with `store` if the database does not answer.
   */
  async #fence(until = 0, batch?: Batch, epoch = this.#epoch): Promise<number> {
    const { database, statements, nextEpoch, leases } = this.#shared;
    this.#isFencing = true;
    try {
      for (let wait = RETRY_MS.first; ; wait = Math.min(2 * wait, RETRY_MS.most)) {
        try {
          this.#fencingEpoch ??= await nextEpoch();
          const next = this.#fencingEpoch;
          const [row] = await database.repeat(statements.fence, [this.id, this.#epoch, next, leases.leaseMs]);
          if (!row) return await this.#judgeWithoutLease(batch, epoch);
          this.#epoch = next;
          this.#fencingEpoch = undefined;
          this.#epochs.push(next);
          this.#mustFence = false;
          if (row.held !== true) this.lose();
          return Number(row.length);
        } catch (error) {
          if (!isAnswerLost(error) || database.time.now() > until || this.#lost)
            return this.#fail('it is not known whether its entries were stored', error);
          await database.pause(wait);
        }
      }
    } finally {
      this.#isFencing = false;
    }
  }

  /** Another process has the conversation, so no statement of this one can be under way. */
  async #judgeWithoutLease(batch: Batch | undefined, epoch: number): Promise<number> {
    const { database, statements } = this.#shared;
    this.lose();
    const count = batch?.texts.length ?? 0;
    const place = [this.id, epoch, this.#next, this.#next + count];
    const [row] = batch ? await database.repeat(statements.countOf, place) : [];
    if (row && Number(row.count) === count) return this.#next + count;
    throw this.#conflict();
  }

  /** The lease may be over while the database does not answer. */
  #orLost<T>(storing: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const refuse = (): void => reject(this.#lost);
      this.#onLost = () => void this.#shared.database.time.setTimer(LAST_WORD_MS, refuse);
      storing.then(resolve, reject).finally(() => {
        this.#onLost = undefined;
      });
    });
  }

  #fail(what: string, cause: unknown): never {
    throw storeError(`conversation "${this.id}": ${what}`, cause);
  }

  #refuseClosed(): void {
    if (this.#closing === 'open') return;
    throw new RunchartError('closed', `the log of conversation "${this.id}" is closed: open it again`);
  }
}
