/**
 * The surroundings of several processes over one database: the clock, the statements that are under way, the faults. Invariant:
 * nothing happens unless the loop triggers it. A process that is stopped receives nothing; the database and the others continue.
 */
import type { Json } from '../../../machines/internal.ts';
import type { Tape } from '../../../src/testing/simulation/choiceTape.ts';
import { SimulatedWorld, type Violation } from '../../../src/testing/simulation/world/simulatedWorld.ts';
import { TestClock } from '../../../src/testing/world/testClock.ts';
import { DatabaseModel } from './databaseModel.ts';
import { drawSharedProfile, type SharedProfile } from './sharedProfile.ts';

const BEGINNING = 1_700_000_000_000;
const VIOLATIONS_KEPT = 20;

/** A statement that was sent and not executed. */
export interface SentStatement {
  /** It can reach the database now. */
  readonly isOnItsWay: boolean;
  /** The loop decides the fate of the statement. */
  arrive(): void;
}

export class SharedWorld {
  readonly tape: Tape;
  readonly profile: SharedProfile;
  readonly clock = new TestClock(BEGINNING);
  readonly database = new DatabaseModel();
  statements: SentStatement[] = [];
  faultFree = false;
  /** Receives a line for each event. */
  trace: ((line: string) => void) | undefined;
  readonly violations: Violation[] = [];
  readonly faults = new Map<string, number>();
  #ids = 0;

  constructor(tape: Tape) {
    this.tape = tape;
    this.profile = drawSharedProfile(tape);
  }

  newId(): string {
    this.#ids += 1;
    return `id${this.#ids}`;
  }

  violate(invariant: string, detail: string): void {
    if (this.violations.length < VIOLATIONS_KEPT) this.violations.push({ invariant, detail });
  }

  check(condition: boolean, invariant: string, detail: () => string): void {
    if (!condition) this.violate(invariant, detail());
  }

  count(kind: string): void {
    this.faults.set(kind, (this.faults.get(kind) ?? 0) + 1);
  }

  /** Returns true with this probability, and never after faults are switched off. */
  fault(kind: string, share: number): boolean {
    if (this.faultFree || share === 0 || !this.tape.chance(share)) return false;
    this.count(kind);
    return true;
  }

  /** The statements that can reach the database now. */
  get arriving(): SentStatement[] {
    return this.statements.filter((statement) => statement.isOnItsWay);
  }

  arrive(statement: SentStatement): void {
    this.statements.splice(this.statements.indexOf(statement), 1);
    statement.arrive();
  }
}

/** The models and tools of one place for processes, which run there one after the other. */
export class ProcessWorld extends SimulatedWorld {
  override readonly clock: TestClock;
  readonly place: number;
  readonly #shared: SharedWorld;
  /** The offset of this machine's wall clock. */
  readonly #skewMs: number;
  /** The time for which the machine itself was stopped, which its own clock leaves out. */
  lagMs = 0;

  constructor(shared: SharedWorld, place: number) {
    super(shared.tape, shared.profile.work, { waitsInRealTime: false });
    this.#shared = shared;
    this.clock = shared.clock;
    this.place = place;
    this.#skewMs = shared.tape.pick([0, 0, 90_000, -90_000]);
  }

  /** The owner of the timers of the current process. */
  get owner(): string {
    return `${this.place}.${this.processId}`;
  }

  override timePorts(): ReturnType<SimulatedWorld['timePorts']> {
    const { clock } = this;
    return { now: () => clock.now() + this.#skewMs, setTimer: this.timer(), newId: () => this.#shared.newId() };
  }

  /** Sets timers of the current process. */
  timer(): (ms: number, fire: () => void) => () => void {
    const isAlive = this.lifeline();
    const { clock, owner } = this;
    return (ms, fire) => (isAlive() ? clock.as(owner, () => clock.setTimer(ms, fire)) : () => undefined);
  }

  override fault(kind: string, share: number): boolean {
    return this.#shared.fault(kind, share);
  }

  override count(kind: string): void {
    this.#shared.count(kind);
  }

  override violate(invariant: string, detail: string): void {
    this.#shared.violate(invariant, `process ${this.owner}: ${detail}`);
  }

  override argsFor(tool: string): Json {
    return { text: `${tool} of ${this.#shared.newId()}` };
  }

  override crash(): void {
    const { pending, owner } = this;
    this.pending = [];
    this.clock.forget((timerOwner) => timerOwner === owner);
    this.processId += 1;
    for (const { crash } of pending) crash?.();
  }
}
