/**
 * Acts for conversations that another process holds. Invariant: an act is a row with an id of its own. A holder begins with it once,
 * and answers it in the statement that stores its effect. An act that nobody has begun with in time is withdrawn, and never done.
 */
import { Observable, type Subscriber } from 'rxjs';
import type { Json } from '../../../machines/vocabulary.ts';
import { ConfigurationError, RunchartError } from '../../errors.ts';
import type { Act, ActAnswer } from '../logStore.ts';
import { arrayText, type Database, type Row, storeError } from './database.ts';
import { type Hints, POLL_MS } from './hints.ts';
import type { Statements } from './statements.ts';

/** The longest wait of an act for a holder to begin with it. */
const BEGIN_MS = 5000;
/** The longest wait for its answer. */
const ANSWER_MS = 60_000;
const ID = /^[^\0\p{Surrogate}]{1,200}$/u;

interface ActsOptions {
  database: Database;
  statements: Statements;
  hints: Hints;
}

const unavailable = (why: string): RunchartError => new RunchartError('unavailable', why);

/** The value of an answer. Throws the error that it contains. */
function valueIn(text: string): Json {
  const answer = JSON.parse(text) as ActAnswer;
  if ('error' in answer) throw new RunchartError(answer.error.code as never, answer.error.message);
  return answer.value;
}

/** Acts that this process asks of other holders. */
export class AskedActs {
  readonly #options: ActsOptions;
  readonly #waiting = new Map<string, () => void>();

  constructor(options: ActsOptions) {
    this.#options = options;
  }

  /** Rejects with `unavailable`, with the error of the holder, with `store`, or with ConfigurationError. */
  async ask(id: string, act: Act): Promise<Json> {
    const { actId } = act;
    if (typeof actId !== 'string' || !ID.test(actId))
      throw new ConfigurationError('an act needs an actId: a text of 1 to 200 characters');
    const { database, statements, hints } = this.#options;
    hints.listen();
    try {
      await database.repeat(statements.putAct, [actId, id, JSON.stringify(act), BEGIN_MS]);
      hints.send({ act: id });
      return await this.#answer(id, actId);
    } catch (cause) {
      throw storeError(`the holder of conversation "${id}" cannot be reached`, cause);
    } finally {
      // Stops the timer of its last wait.
      this.#waiting.get(actId)?.();
      this.#waiting.delete(actId);
    }
  }

  answered(actId: string): void {
    this.#waiting.get(actId)?.();
  }

  async #answer(id: string, actId: string): Promise<Json> {
    const { database, statements, hints } = this.#options;
    const until = database.time.now() + ANSWER_MS;
    for (let ms = 20; ; ms = Math.min(2 * ms, hints.isListening ? POLL_MS.listening : POLL_MS.polling)) {
      const woken = this.#woken(actId, ms);
      const [state] = await database.repeat(statements.actState, [actId, id]);
      if (!state) throw unavailable(`nobody has taken the act on conversation "${id}"`);
      if (state.same !== true) throw new ConfigurationError(`the act id ${actId} belongs to another conversation`);
      if (typeof state.answer === 'string') return valueIn(state.answer);
      if (state.under_way !== true && (state.held !== true || state.open !== true)) {
        const [withdrawn] = await database.repeat(statements.withdrawAct, [actId]);
        if (withdrawn) throw unavailable(`nobody holds conversation "${id}", or its holder does not answer`);
      }
      if (database.time.now() > until) throw unavailable(`the holder of conversation "${id}" has not answered in time`);
      await woken;
    }
  }

  #woken(actId: string, ms: number): Promise<void> {
    return new Promise((resolve) => {
      const stopTimer = this.#options.database.time.setTimer(ms, resolve);
      this.#waiting.set(actId, () => {
        stopTimer();
        resolve();
      });
    });
  }
}

export interface ActTaker {
  readonly id: string;
  readonly epoch: number;
}

/** Acts that others ask of this process. */
export class TakenActs {
  readonly #options: ActsOptions;
  readonly #takers = new Map<string, { taker: ActTaker; subscriber: Subscriber<Act>; seen: Set<string> }>();
  #stopTimer: (() => void) | undefined;
  #isClaiming = false;
  #isDue = false;

  constructor(options: ActsOptions) {
    this.#options = options;
  }

  /** The acts of one conversation, in order, for one subscriber. */
  of(taker: ActTaker): Observable<Act> {
    return new Observable((subscriber) => {
      this.#takers.set(taker.id, { taker, subscriber, seen: new Set() });
      this.#options.hints.listen();
      this.claim();
      this.#schedule();
      return () => {
        if (this.#takers.get(taker.id)?.taker === taker) this.#takers.delete(taker.id);
        if (this.#takers.size > 0) return;
        this.#stopTimer?.();
        this.#stopTimer = undefined;
      };
    });
  }

  /** An act has come for this conversation. */
  came(id: string): void {
    if (this.#takers.has(id)) this.claim();
  }

  /** Begins with the acts that wait. */
  claim(): void {
    this.#isDue = true;
    if (!this.#isClaiming) void this.#claimAll();
  }

  #schedule(): void {
    if (this.#stopTimer) return;
    const { hints, database } = this.#options;
    const ask = (): void => {
      this.#stopTimer = undefined;
      if (this.#takers.size === 0) return;
      this.claim();
      this.#schedule();
    };
    this.#stopTimer = database.time.setTimer(hints.isListening ? POLL_MS.listening : POLL_MS.polling, ask, true);
  }

  async #claimAll(): Promise<void> {
    this.#isClaiming = true;
    try {
      while (this.#isDue && this.#takers.size > 0) {
        this.#isDue = false;
        const takers = [...this.#takers.values()].map(({ taker }) => taker);
        const ids = arrayText(takers.map(({ id }) => id));
        const epochs = arrayText(takers.map(({ epoch }) => `${epoch}`));
        const { database, statements } = this.#options;
        // An act whose claim was not answered is claimed again by the next epoch, or answered as unavailable.
        const rows = await database.query(statements.claimActs, [ids, epochs]).catch(() => []);
        for (const row of [...rows].sort((a, b) => Number(a.place) - Number(b.place))) this.#deliver(row);
      }
    } finally {
      // This is in the same turn as the last check, so a later act is claimed by a call of its own.
      this.#isClaiming = false;
    }
  }

  #deliver({ act_id, conversation, act }: Row): void {
    const found = this.#takers.get(String(conversation));
    // After a lost answer, the same holder has another epoch.
    if (!found || found.seen.has(String(act_id))) return;
    found.seen.add(String(act_id));
    found.subscriber.next(JSON.parse(String(act)) as Act);
  }
}
