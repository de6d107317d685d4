/**
 * Appends the steps of a conversation one after the other, and bounds how long a cancel waits for a slow store. Invariant:
 * a step waits for the append before it until a cancel overtakes that append. Nothing of a step starts before its own entries
 * are durable. A refused append is retried as part of the next one, so only the last one in the queue is reported as lost.
 */
import type { EffectRequest, Failure, NewEntry } from '../../machines/internal.ts';
import { thrownMessage } from '../errors.ts';

/** The result of one delivery. */
export interface Step {
  readonly at: number;
  readonly entries: readonly NewEntry[];
  readonly asks: readonly EffectRequest[];
  readonly acts: readonly object[];
}

/** A step whose append is active or queued. */
export interface PendingAppend {
  step: Step;
  /** Later steps wait for it. */
  blocks: boolean;
  givenUp: boolean;
  /** It includes the entries of refused steps. */
  carries: boolean;
}

interface AppendOutcome {
  append(entries: readonly NewEntry[], at: number, carried: boolean): void | Promise<void>;
  /** Later steps continue. */
  ahead(): void;
  landed(step: Step): void;
  /** Where the step does not block any more, later steps did not wait for it. */
  failed(wait: PendingAppend, error: unknown): void;
  /** The time limit has passed. */
  tooLate(wait: PendingAppend): void;
}

export class AppendQueue {
  readonly #outcome: AppendOutcome;
  /** The first one is active. */
  readonly #pending: PendingAppend[] = [];
  #onEmpty: (() => void)[] = [];

  constructor(outcome: AppendOutcome) {
    this.#outcome = outcome;
  }

  /** Undefined where the step is durable at once. Throws where the store refuses it at once. */
  add(step: Step): PendingAppend | undefined {
    const pending = this.isEmpty ? this.#outcome.append(step.entries, step.at, false) : 'queued';
    if (!pending) return undefined;
    const wait = { step, blocks: true, givenUp: false, carries: false };
    this.#pending.push(wait);
    if (pending !== 'queued') this.#follow(pending);
    return wait;
  }

  /** Later steps continue now. */
  overtake(): void {
    for (const wait of [...this.#pending]) this.#release(wait);
  }

  /** The time limit has passed for every step in the queue. */
  giveUp(): void {
    for (const wait of [...this.#pending]) {
      this.#outcome.tooLate(wait);
      this.#release(wait);
    }
  }

  get isEmpty(): boolean {
    return this.#pending.length === 0;
  }

  /** Resolves when the queue is empty. A waiter may resolve slightly before the step's own report. */
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

/** The failure as charts receive it. */
export const failureOf = (error: unknown): Failure => ({
  code: error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'store',
  message: thrownMessage(error),
});

/** How long a cancel, or the report of a durable stop, waits for an earlier append. */
const OVERTAKE_MS = 50;
/** How long all appends of a cancel may take. */
export const GIVE_UP_MS = 90;

type SetTimer = (ms: number, fire: () => void) => () => void;

/** Bounds in stages how long appends are waited for. Every later append enters the stage that was reached last. */
class AppendDeadline {
  readonly #setTimer: SetTimer;
  readonly #stages: readonly (readonly [ms: number, act: () => void])[];
  #stops: (() => void)[] = [];
  #state: 'idle' | 'running' | 'stopped' = 'idle';
  #reached: (() => void) | undefined;

  constructor(setTimer: SetTimer, stages: readonly (readonly [ms: number, act: () => void])[]) {
    this.#setTimer = setTimer;
    this.#stages = stages;
  }

  begin(): void {
    if (this.#state !== 'idle') return;
    this.#state = 'running';
    this.#stops = this.#stages.map(([ms, act]) =>
      this.#setTimer(ms, () => {
        this.#reached = act;
        act();
      }),
    );
  }

  end(): void {
    if (this.#state === 'running') this.#leave('idle');
  }

  /** Nothing is waited for any more; an append may still be stored. */
  stop(): void {
    this.#leave('stopped');
  }

  /** An append begins to be waited for. */
  onAppend(): void {
    this.#reached?.();
  }

  #leave(state: 'idle' | 'stopped'): void {
    for (const stop of this.#stops) stop();
    this.#stops = [];
    this.#reached = undefined;
    this.#state = state;
  }
}

type Appends = Pick<AppendQueue, 'overtake' | 'giveUp'>;

/** For a cancel: it overtakes slow appends, then gives up those that are not stored. */
export const cancelDeadline = (setTimer: SetTimer, appends: Appends): AppendDeadline =>
  new AppendDeadline(setTimer, [
    [OVERTAKE_MS, () => appends.overtake()],
    [GIVE_UP_MS, () => appends.giveUp()],
  ]);

/** For the report of a durable stop: it overtakes appends of commands that arrived while the stop was being stored. */
export const reportDeadline = (setTimer: SetTimer, appends: Appends): AppendDeadline =>
  new AppendDeadline(setTimer, [[OVERTAKE_MS, () => appends.overtake()]]);
