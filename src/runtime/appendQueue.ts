/**
 * Appends the steps of a conversation one after the other, and bounds how long a cancel waits for a slow store. Rule: steps
 * wait behind an append until a cancel overtakes it; nothing of a step starts before its own entries are durable. A refused
 * append is tried again as part of the next one, so only the last in the queue hears of a loss.
 */
import type { EffectRequest, Failure, NewEntry } from '../../machines/internal.ts';
import { thrownMessage } from '../errors.ts';

/** What one delivery led to. */
export interface Step {
  readonly at: number;
  readonly entries: readonly NewEntry[];
  readonly asks: readonly EffectRequest[];
  readonly acts: readonly object[];
}

/** A step whose append is under way or in the queue. */
export interface PendingAppend {
  step: Step;
  /** The steps behind wait for it. */
  blocks: boolean;
  givenUp: boolean;
  /** It takes refused ones with it. */
  carries: boolean;
}

interface AppendOutcome {
  append(entries: readonly NewEntry[], at: number, carried: boolean): void | Promise<void>;
  /** The steps behind go on. */
  ahead(): void;
  landed(step: Step): void;
  /** The steps behind did not wait for it where it does not block any more. */
  failed(wait: PendingAppend, error: unknown): void;
  /** The time is up. */
  tooLate(wait: PendingAppend): void;
}

export class AppendQueue {
  readonly #outcome: AppendOutcome;
  /** The first is under way. */
  readonly #pending: PendingAppend[] = [];
  #onEmpty: (() => void)[] = [];

  constructor(outcome: AppendOutcome) {
    this.#outcome = outcome;
  }

  /** Answers nothing where the step is durable at once. Throws where the store refuses it at once. */
  add(step: Step): PendingAppend | undefined {
    const pending = this.isEmpty ? this.#outcome.append(step.entries, step.at, false) : 'queued';
    if (!pending) return undefined;
    const wait = { step, blocks: true, givenUp: false, carries: false };
    this.#pending.push(wait);
    if (pending !== 'queued') this.#follow(pending);
    return wait;
  }

  /** The steps behind go on now. */
  overtake(): void {
    for (const wait of [...this.#pending]) this.#release(wait);
  }

  /** The time is up for everything that is waited for. */
  giveUp(): void {
    for (const wait of [...this.#pending]) {
      this.#outcome.tooLate(wait);
      this.#release(wait);
    }
  }

  get isEmpty(): boolean {
    return this.#pending.length === 0;
  }

  /** Resolves when nothing is in the queue; whoever comes then may be told what became of it a moment later. */
  settled(): Promise<void> {
    return this.isEmpty ? Promise.resolve() : new Promise((resolve) => void this.#onEmpty.push(resolve));
  }

  #release(wait: PendingAppend): void {
    if (!wait.blocks) return;
    wait.blocks = false;
    this.#outcome.ahead();
  }

  #follow(pending: Promise<void>): void {
    pending.then(
      () => this.#ended(),
      (error: unknown) => this.#ended({ error }),
    );
  }

  #ended(refused?: { error: unknown }): void {
    const wait = this.#pending.shift();
    if (!wait) return;
    const [next] = this.#pending;
    if (!next) for (const resolve of this.#onEmpty.splice(0)) resolve();
    if (!refused) {
      this.#outcome.landed(wait.step);
      this.#release(wait);
    } else if (next) {
      next.step = together(wait.step, next.step);
      next.carries = true;
    } else this.#outcome.failed(wait, refused.error);
    if (next) this.#send(next.step, refused !== undefined);
  }

  #send({ entries, at }: Step, carried: boolean): void {
    try {
      const pending = this.#outcome.append(entries, at, carried);
      if (pending) this.#follow(pending);
      else this.#ended();
    } catch (error) {
      this.#ended({ error });
    }
  }
}

const together = (first: Step, then: Step): Step => ({
  at: then.at,
  entries: [...first.entries, ...then.entries],
  asks: [...first.asks, ...then.asks],
  acts: [...first.acts, ...then.acts],
});

/** What charts are told of it. */
export const failureOf = (error: unknown): Failure => ({
  code: error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'store',
  message: thrownMessage(error),
});

/** How long a cancel waits behind an append. */
const OVERTAKE_MS = 50;
/** How long everything that a cancel writes may take. */
export const GIVE_UP_MS = 90;

export class CancelDeadline {
  readonly #setTimer: (ms: number, fire: () => void) => () => void;
  readonly #appends: Pick<AppendQueue, 'overtake' | 'giveUp'>;
  #stops: (() => void)[] = [];
  #state: 'idle' | 'waiting' | 'overtaking' | 'timeUp' | 'stopped' = 'idle';

  constructor(setTimer: (ms: number, fire: () => void) => () => void, line: Pick<AppendQueue, 'overtake' | 'giveUp'>) {
    this.#setTimer = setTimer;
    this.#appends = line;
  }

  begin(): void {
    if (this.#state !== 'idle') return;
    this.#state = 'waiting';
    const overtake = (): void => {
      this.#state = 'overtaking';
      this.#appends.overtake();
    };
    const giveUp = (): void => {
      this.#state = 'timeUp';
      this.#appends.giveUp();
    };
    this.#stops = [this.#setTimer(OVERTAKE_MS, overtake), this.#setTimer(GIVE_UP_MS, giveUp)];
  }

  end(): void {
    if (this.#state !== 'idle' && this.#state !== 'stopped') this.#leave('idle');
  }

  /** No cancel comes any more; an append may still land. */
  stop(): void {
    this.#leave('stopped');
  }

  #leave(state: 'idle' | 'stopped'): void {
    for (const stop of this.#stops) stop();
    this.#stops = [];
    this.#state = state;
  }

  /** An append is waited for from now on. */
  onAppend(): void {
    if (this.#state === 'overtaking') this.#appends.overtake();
    if (this.#state === 'timeUp') this.#appends.giveUp();
  }
}
