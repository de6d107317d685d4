/**
 * The appends of a conversation. `nextAppend`, a pure function, decides which append waits, continues or is lost; `AppendQueue`
 * carries that out, and bounds how long a cancel waits for a slow store. Invariant: the store has one append at a time. A step
 * waits for the append before it until a cancel overtakes that append. Nothing of a step starts before its own entries are
 * durable. Each append has one end: it landed, or it is lost together with the last append that carried its entries.
 */
import type { EffectRequest, Failure, NewEntry } from '../../machines/internal.ts';
import { thrownMessage } from '../errors.ts';

/**
 * `awaited`: later steps wait for it. `overtaken`: a cancel did not wait any longer, and later steps continue. `givenUp`: the charts
 * received the report of a silent store. The first append of the list is in the store, the others are queued.
 */
export type AppendStage = 'awaited' | 'overtaken' | 'givenUp';

export interface Append {
  readonly id: number;
  readonly stage: AppendStage;
  /** Refused appends whose entries this one contains, in order. */
  readonly carried: readonly number[];
}

export type AppendEvent =
  | { type: 'added'; id: number }
  /** The store has answered the first append. */
  | { type: 'landed' }
  | { type: 'refused' }
  /** A cancel waits no longer for earlier appends. */
  | { type: 'overtaken' }
  /** A cancel abandons the appends that are not stored yet. */
  | { type: 'givenUp' };

/** The acts of the driver, in order. */
export type AppendAct =
  /** Passes the append to the store. The entries are durable: starts the requests of the step. */
  | { do: 'store'; id: number; carries: boolean }
  /** The entries are durable: starts the requests of the step. */
  | { do: 'begin'; id: number }
  /** The entries of the first append become the beginning of the second. */
  | { do: 'carry'; from: number; to: number }
  /** The entries are lost. `isNext`: later steps waited, so the failure is the next step, and they continue after it. */
  | { do: 'lose'; id: number; isNext: boolean }
  /** Reports a silent store to the charts. The entries may still be stored. */
  | { do: 'giveUp'; id: number }
  /** Later steps continue. */
  | { do: 'continue' };

export interface Appends {
  readonly appends: readonly Append[];
  readonly acts: readonly AppendAct[];
}

const proceed: AppendAct = { do: 'continue' };
const continues = (append: Append): readonly AppendAct[] => (append.stage === 'awaited' ? [proceed] : []);
const storing = (append: Append | undefined, carries: boolean): readonly AppendAct[] =>
  append ? [{ do: 'store', id: append.id, carries }] : [];

/** The second append is stored with the entries of the first. */
function carriedBy(first: Append, [second, ...rest]: readonly [Append, ...Append[]]): Appends {
  const carrier = { ...second, carried: [...first.carried, first.id, ...second.carried] };
  return {
    appends: [carrier, ...rest],
    acts: [{ do: 'carry', from: first.id, to: second.id }, ...storing(carrier, true)],
  };
}

function lost(append: Append): Appends {
  const isNext = append.stage === 'awaited' && append.carried.length === 0;
  const lose: AppendAct = { do: 'lose', id: append.id, isNext };
  return { appends: [], acts: isNext ? [lose] : [lose, ...continues(append)] };
}

function leave(appends: readonly Append[], stage: 'overtaken' | 'givenUp'): Appends {
  const left = appends.map((append) => (append.stage === 'givenUp' ? append : { ...append, stage }));
  const acts = appends.flatMap((append): readonly AppendAct[] => {
    const report: readonly AppendAct[] =
      stage === 'givenUp' && append.stage !== 'givenUp' ? [{ do: 'giveUp', id: append.id }] : [];
    return [...report, ...continues(append)];
  });
  return { appends: left, acts };
}

export function nextAppend(appends: readonly Append[], event: AppendEvent): Appends {
  const [first, ...rest] = appends;
  switch (event.type) {
    case 'added': {
      const append: Append = { id: event.id, stage: 'awaited', carried: [] };
      return { appends: [...appends, append], acts: first ? [] : storing(append, false) };
    }
    case 'landed': {
      if (!first) return { appends, acts: [] };
      return { appends: rest, acts: [{ do: 'begin', id: first.id }, ...continues(first), ...storing(rest[0], false)] };
    }
    case 'refused': {
      if (!first) return { appends, acts: [] };
      const [second, ...others] = rest;
      return second ? carriedBy(first, [second, ...others]) : lost(first);
    }
    default:
      return leave(appends, event.type);
  }
}

/** The result of one delivery. */
export interface Step {
  readonly at: number;
  readonly entries: readonly NewEntry[];
  readonly asks: readonly EffectRequest[];
}

interface AppendOutcome {
  append(entries: readonly NewEntry[], at: number, carried: boolean): void | Promise<void>;
  /** Later steps continue. */
  proceed(): void;
  landed(step: Step): void;
  /** `isNext`: the failure is the next step. Returns whether steps after it continue. */
  lost(step: Step, error: unknown, isNext: boolean): boolean;
  /** A cancel abandons an append that may still be stored. */
  givenUp(step: Step): void;
}

export class AppendQueue {
  readonly #outcome: AppendOutcome;
  readonly #steps = new Map<number, Step>();
  #appends: readonly Append[] = [];
  #added = 0;
  /** Why the store refused the append that ended last. */
  #refusal: unknown;
  #onEmpty: (() => void)[] = [];

  constructor(outcome: AppendOutcome) {
    this.#outcome = outcome;
  }

  /** Returns whether later steps continue at once. */
  add(step: Step): boolean {
    this.#added += 1;
    this.#steps.set(this.#added, step);
    return this.#take({ type: 'added', id: this.#added });
  }

  /** Later steps continue now. */
  overtake(): void {
    this.#settle({ type: 'overtaken' });
  }

  /** The time limit has passed for every step in the queue. */
  giveUp(): void {
    this.#settle({ type: 'givenUp' });
  }

  get isEmpty(): boolean {
    return this.#appends.length === 0;
  }

  /** The entries that are not stored yet, in order. */
  get entries(): readonly NewEntry[] {
    return this.isEmpty ? [] : [...this.#steps.values()].flatMap(({ entries }) => entries);
  }

  /** Resolves when the queue is empty. A waiter may resolve slightly before the step's own report. */
  settled(): Promise<void> {
    return this.isEmpty ? Promise.resolve() : new Promise((resolve) => void this.#onEmpty.push(resolve));
  }

  #settle(event: AppendEvent): void {
    if (this.#take(event)) this.#outcome.proceed();
  }

  /** Returns whether later steps continue. */
  #take(event: AppendEvent): boolean {
    const { appends, acts } = nextAppend(this.#appends, event);
    this.#appends = appends;
    if (this.isEmpty) for (const resolve of this.#onEmpty.splice(0)) resolve();
    let proceeds = false;
    for (const act of acts) proceeds = this.#do(act) || proceeds;
    return proceeds;
  }

  #do(act: AppendAct): boolean {
    switch (act.do) {
      case 'continue':
        return true;
      case 'store':
        return this.#store(this.#stepOf(act.id), act.carries);
      case 'begin':
        this.#outcome.landed(this.#removed(act.id));
        return false;
      case 'carry':
        this.#steps.set(act.to, together(this.#removed(act.from), this.#stepOf(act.to)));
        return false;
      case 'lose':
        return this.#outcome.lost(this.#removed(act.id), this.#refusal, act.isNext);
      case 'giveUp':
        this.#outcome.givenUp(this.#stepOf(act.id));
        return false;
    }
  }

  /** A store that answers at once ends the append inside this call. */
  #store({ entries, at }: Step, carries: boolean): boolean {
    const refuse = (error: unknown): AppendEvent => {
      this.#refusal = error;
      return { type: 'refused' };
    };
    let pending: void | Promise<void>;
    try {
      pending = this.#outcome.append(entries, at, carries);
    } catch (error) {
      return this.#take(refuse(error));
    }
    if (!pending) return this.#take({ type: 'landed' });
    pending.then(
      () => this.#settle({ type: 'landed' }),
      (error: unknown) => this.#settle(refuse(error)),
    );
    return false;
  }

  #stepOf(id: number): Step {
    const step = this.#steps.get(id);
    if (!step) throw new Error(`the append ${id} has ended`);
    return step;
  }

  #removed(id: number): Step {
    const step = this.#stepOf(id);
    this.#steps.delete(id);
    return step;
  }
}

const together = (first: Step, then: Step): Step => ({
  at: then.at,
  entries: [...first.entries, ...then.entries],
  asks: [...first.asks, ...then.asks],
});

/** The failure as charts receive it. */
export const failureOf = (error: unknown): Failure => ({
  code: error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'store',
  message: thrownMessage(error),
});

/** The longest wait of a cancel, or of the report of a durable stop, for an earlier append. */
const OVERTAKE_MS = 50;
/** The longest time of all appends of a cancel. */
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

  /** Stops waiting; an append may still be stored. */
  stop(): void {
    this.#leave('stopped');
  }

  /** Begins to wait for an append. */
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

type AwaitedAppends = Pick<AppendQueue, 'overtake' | 'giveUp'>;

/** For a cancel: it overtakes slow appends, then abandons those that are not stored. */
export const cancelDeadline = (setTimer: SetTimer, appends: AwaitedAppends): AppendDeadline =>
  new AppendDeadline(setTimer, [
    [OVERTAKE_MS, () => appends.overtake()],
    [GIVE_UP_MS, () => appends.giveUp()],
  ]);

/** For the report of a durable stop: it overtakes appends of commands that arrived while the stop was being stored. */
export const reportDeadline = (setTimer: SetTimer, appends: AwaitedAppends): AppendDeadline =>
  new AppendDeadline(setTimer, [[OVERTAKE_MS, () => appends.overtake()]]);
