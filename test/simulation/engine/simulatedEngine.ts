/**
 * A durable engine in memory. For each conversation it keeps the journal of an invocation, its log, and its inbox; what one sends to
 * another arrives later, in order. Invariant: only the records of the
 * current attempt count. An attempt ends at a drawn point: before a step, in it, and before or after its record. An abandoned attempt
 * may continue for a while beside the next one. Repeated acts of an attempt are compared with its journal. Timers elapse at drawn
 * turns, also while there is no attempt.
 */
import type { LogEntry } from '../../../src/index.ts';
import {
  type AttemptListener,
  type CarriedRun,
  type EngineAttempt,
  type EngineTimer,
  isNews,
  type StoredLog,
  type Waiting,
} from '../../../src/restate/chain/engineAttempt.ts';
import type { Act, ActAnswer } from '../../../src/stores/logStore.ts';
import { nextTurn } from '../../../src/timeLimit.ts';
import type { Chance } from '../../support/seededChance.ts';

type Line =
  | { kind: 'step'; name: string; value: string }
  | { kind: 'acts'; value: string }
  | { kind: 'log'; length: number; version: number; of?: string | undefined; isUnderWay: boolean }
  | { kind: 'tell'; id: string; value: string }
  | { kind: 'carried'; value: string }
  | { kind: 'carry on'; value: string }
  | { kind: 'drop carried' }
  | { kind: 'append'; value: string }
  | { kind: 'answer'; value: string }
  | { kind: 'timer'; timer: Pick<EngineTimer, 'id'> }
  | { kind: 'bell' }
  | { kind: 'elapsed'; timer: EngineTimer };

/** Timers of this time elapse after a few turns, longer ones after hundreds, and those of hours never. */
const SHORT_MS = 1000;
const HOURS_MS = 2 * 3_600_000;

export class AttemptOver extends Error {}

export interface EngineOptions {
  chance: Chance;
  conversationId: string;
  /** The probability that an attempt ends at each step. */
  deaths: number;
  /** In place of `deaths`: whether an attempt ends at this point, counted from 1. */
  dies?(point: number): boolean;
  hold(invocation: EngineAttempt): Promise<void>;
  broken(invariant: string, detail: string): void;
}

export class SimulatedEngine {
  readonly log: LogEntry[] = [];
  readonly answers = new Map<string, ActAnswer>();
  attempts = 0;
  invocations = 0;
  repeated = 0;
  /** The points at which an attempt could end. */
  points = 0;
  /** The number of times that an invocation continued a run. */
  continued = 0;
  /** The number of started timers. */
  timers = 0;
  /** The number of attempts that listened and were ended, because the engine did not need them. */
  suspended = 0;
  carried: CarriedRun | undefined;
  version = 0;
  /** A rule was broken: nothing is held any more. */
  isBroken = false;
  journal: Line[] = [];
  current: Attempt | undefined;
  readonly options: EngineOptions;
  /** The conversation of the people, and the sub-agents within it. */
  readonly root: SimulatedEngine;
  readonly #members = new Map<string, SimulatedEngine>();
  readonly #sending = new Map<string, Promise<void>>();
  #acts: Waiting[] = [];
  #taken = new Set<string>();
  #isAsked = false;
  /** Elapsed timers that no attempt has received. */
  #elapsed: EngineTimer[] = [];
  #ring: () => void = () => {};
  #holding: Promise<void> | undefined;

  constructor(options: EngineOptions, root?: SimulatedEngine) {
    this.options = options;
    this.root = root ?? this;
    this.root.#members.set(options.conversationId, this);
  }

  member(conversationId: string): SimulatedEngine {
    const made = () => new SimulatedEngine({ ...this.options, conversationId }, this.root);
    return this.root.#members.get(conversationId) ?? made();
  }

  get members(): SimulatedEngine[] {
    return [...this.root.#members.values()];
  }

  /** The act waits, and an invocation takes it. */
  put(act: Act): void {
    if (this.#taken.has(act.actId)) return;
    this.#taken.add(act.actId);
    this.receive({ act, to: act.actId });
  }

  receive(waiting: Waiting): void {
    this.#acts.push(waiting);
    this.#ring();
    if (!isNews(waiting))
      this.#holding ??= this.#holdAll().finally(() => {
        this.#holding = undefined;
      });
  }

  tell(id: string, waiting: Waiting): void {
    const turns = this.options.chance.below(6);
    const sent = this.#sending.get(id) ?? Promise.resolve();
    const arrived = sent.then(async () => {
      for (let turn = 0; turn < turns; turn += 1) await nextTurn();
      this.member(id).receive(waiting);
      if (this.#sending.get(id) === arrived) this.#sending.delete(id);
    });
    this.#sending.set(id, arrived);
  }

  takeActs(): Waiting[] {
    return this.#acts.splice(0);
  }

  /** Starts another invocation, also without an act. */
  askAgain(): void {
    this.#isAsked = true;
    this.continued += 1;
  }

  /** The logs of sub-agents. */
  get logs(): ReadonlyMap<string, LogEntry[]> {
    const children = this.members.filter((member) => member !== this.root && member.log.length > 0);
    return new Map(children.map(({ options, log }) => [options.conversationId, log]));
  }

  get entries(): LogEntry[] {
    return this.members.flatMap(({ log }) => log);
  }

  get hasActs(): boolean {
    return this.#acts.length > 0;
  }

  /** Resolves when an act waits or a timer has elapsed. */
  async news(): Promise<void> {
    if (this.hasActs || this.#elapsed.length > 0) return nextTurn();
    await new Promise<void>((resolve) => {
      this.#ring = resolve;
    });
  }

  takeElapsed(): EngineTimer | undefined {
    return this.#elapsed.shift();
  }

  async startTimer(timer: EngineTimer): Promise<void> {
    const { journal, options } = this;
    const ms = timer.until - Date.now();
    const isShort = ms < SHORT_MS;
    this.timers += 1;
    if (ms > HOURS_MS) return;
    for (let turns = options.chance.below(isShort ? 40 : 2000); turns > 0; turns -= 1) await nextTurn();
    // Its invocation may have ended.
    if (this.journal !== journal) return;
    this.#elapsed.push(timer);
    this.#ring();
  }

  /** Resolves when no invocation is under way, and nothing is on its way. */
  async atRest(): Promise<void> {
    for (;;) {
      const underWay = this.members.flatMap((member) => [member.#holding ?? [], ...member.#sending.values()].flat());
      if (underWay.length === 0) return;
      await Promise.all(underWay);
    }
  }

  /** Resolves when no invocation of this conversation is under way. */
  async released(): Promise<void> {
    while (this.#holding) await this.#holding;
  }

  async #holdAll(): Promise<void> {
    while ((this.#acts.some((each) => !isNews(each)) || this.#isAsked) && !this.root.isBroken) {
      this.#isAsked = false;
      this.journal = [];
      this.#elapsed = [];
      this.invocations += 1;
      while (!this.root.isBroken && !(await this.#attempt()));
    }
  }

  /** False where the attempt was abandoned. */
  async #attempt(): Promise<boolean> {
    this.attempts += 1;
    const attempt = new Attempt(this, `attempt-${this.options.conversationId}-${this.attempts}`);
    this.current = attempt;
    const held = this.options.hold(attempt).then(
      () => true,
      (error) => {
        if (!(error instanceof AttemptOver) && !attempt.isOver) {
          this.options.broken('UNCAUGHT', String((error as Error).stack));
          throw error;
        }
        return false;
      },
    );
    const ended = await Promise.race([held, attempt.over.then(() => false)]);
    if (ended) attempt.commit();
    return ended;
  }
}

class Attempt implements EngineAttempt {
  readonly conversationId: string;
  readonly attempt: string;
  readonly signal: AbortSignal;
  readonly charactersMost = Number.POSITIVE_INFINITY;
  readonly over: Promise<void>;
  readonly #engine: SimulatedEngine;
  readonly #controller = new AbortController();
  #end: () => void = () => {};
  #cursor = 0;
  /** Commands that the engine has not received yet. */
  #unsent: Line[] = [];
  /** By their line: a repeated attempt may compute another time. */
  readonly #started = new Map<Line, EngineTimer>();

  constructor(engine: SimulatedEngine, attempt: string) {
    this.#engine = engine;
    this.conversationId = engine.options.conversationId;
    this.attempt = attempt;
    this.signal = this.#controller.signal;
    this.over = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  get isOver(): boolean {
    return this.#engine.current !== this;
  }

  async step<T>(name: string, act: () => T | Promise<T>, listener?: AttemptListener): Promise<T> {
    for (;;) {
      this.#mustBeCurrent();
      const line = this.#recorded();
      if (!line) break;
      if (listener && (await this.#tellAgain(line, listener))) continue;
      if (line.kind !== 'step' || line.name !== name) this.#differs(line, { kind: 'step', name, value: '' });
      else return JSON.parse(line.value) as T;
    }
    this.#mayDie();
    const made = Promise.resolve().then(act);
    const { chance, deaths, dies } = this.#engine.options;
    if (!dies && chance.odds(deaths)) void this.#dieAfter(chance.below(12));
    void this.#commitLater();
    for (;;) {
      const news = listener ? this.#engine.news().then(() => listener) : new Promise<never>(() => {});
      const winner = await Promise.race([made.then((value) => ({ value })), news]);
      this.#mustBeCurrent();
      if (!('value' in winner)) {
        await this.#tell(winner);
        continue;
      }
      this.#mayDie();
      this.commit();
      const value = JSON.stringify(winner.value);
      this.#engine.journal.push({ kind: 'step', name, value });
      this.#cursor = this.#engine.journal.length;
      this.#mayDie();
      return JSON.parse(value) as T;
    }
  }

  startTimer(timer: EngineTimer): void {
    this.#command({ kind: 'timer', timer: { id: timer.id } }, timer);
  }

  async listen(listener: AttemptListener): Promise<void> {
    this.#mustBeCurrent();
    const line = this.#recorded();
    if (line && !(await this.#tellAgain(line, listener))) this.#differs(line, { kind: 'bell' });
    if (line) return;
    this.#mayDie();
    this.commit();
    const { chance, deaths } = this.#engine.options;
    const isSuspended = deaths > 0 && chance.odds(0.3);
    do {
      await this.#engine.news();
      this.#mustBeCurrent();
      if (isSuspended) {
        this.#engine.suspended += 1;
        this.#abandon();
        throw new AttemptOver();
      }
    } while (!(await this.#tell(listener)));
  }

  /** False where another attempt received them. */
  async #tell(listener: AttemptListener): Promise<boolean> {
    if (this.#engine.hasActs) {
      this.#send({ kind: 'bell' });
      await listener.rung();
      return true;
    }
    const timer = this.#engine.takeElapsed();
    if (!timer) return false;
    this.#send({ kind: 'elapsed', timer });
    listener.elapsed(timer);
    return true;
  }

  async #tellAgain(line: Line, listener: AttemptListener): Promise<boolean> {
    if (line.kind === 'bell') await listener.rung();
    else if (line.kind === 'elapsed') listener.elapsed(line.timer);
    else return false;
    return true;
  }

  async takeActs(): Promise<readonly Waiting[]> {
    this.#mustBeCurrent();
    const line = this.#recorded();
    if (line?.kind === 'acts') return JSON.parse(line.value) as Waiting[];
    if (line) this.#differs(line, { kind: 'acts', value: '' });
    this.#mayDie();
    this.commit();
    const acts = this.#engine.takeActs();
    this.#engine.journal.push({ kind: 'acts', value: JSON.stringify(acts) });
    this.#cursor = this.#engine.journal.length;
    this.#mayDie();
    return structuredClone(acts);
  }

  async readCarried(): Promise<CarriedRun | undefined> {
    this.#mustBeCurrent();
    const line = this.#recorded();
    if (line && line.kind !== 'carried') this.#differs(line, { kind: 'carried', value: '' });
    if (line) return JSON.parse(line.value)[0];
    const value = JSON.stringify(this.#engine.carried ? [this.#engine.carried] : []);
    this.#send({ kind: 'carried', value });
    return JSON.parse(value)[0];
  }

  async readLog(subAgent?: string): Promise<StoredLog> {
    this.#mustBeCurrent();
    const line = this.#recorded();
    if (line && (line.kind !== 'log' || line.of !== subAgent))
      this.#differs(line, { kind: 'log', length: 0, version: 0, of: subAgent, isUnderWay: false });
    if (subAgent !== undefined && !line) {
      this.#mayDie();
      await this.#engine.member(subAgent).released();
      this.#mustBeCurrent();
    }
    const of = subAgent === undefined ? this.#engine : this.#engine.member(subAgent);
    if (!line) {
      this.commit();
      const isUnderWay = of !== this.#engine && of.carried !== undefined;
      this.#send({ kind: 'log', length: of.log.length, version: of.version, of: subAgent, isUnderWay });
    }
    const { length, version, isUnderWay } = line ?? (this.#engine.journal.at(-1) as Line & { kind: 'log' });
    return { entries: structuredClone(of.log.slice(0, length)), version, isUnderWay };
  }

  readonly blobs = undefined;

  append(entries: readonly LogEntry[], version: number): void {
    this.#command({ kind: 'append', value: JSON.stringify([entries, version]) });
  }

  tell(id: string, waiting: Waiting): void {
    this.#command({ kind: 'tell', id, value: JSON.stringify(waiting) });
  }

  carryOn(run: CarriedRun): void {
    this.#command({ kind: 'carry on', value: JSON.stringify(run) });
  }

  dropCarried(): void {
    this.#command({ kind: 'drop carried' });
  }

  answer(to: string, answer: ActAnswer): void {
    this.#command({ kind: 'answer', value: JSON.stringify([to, answer]) });
  }

  /** The engine receives the commands of this attempt. */
  commit(): void {
    if (this.isOver) return;
    for (const line of this.#unsent.splice(0)) {
      this.#engine.journal.push(line);
      if (line.kind === 'timer') void this.#engine.startTimer(this.#started.get(line) as EngineTimer);
      if (line.kind === 'append') this.#store(...(JSON.parse(line.value) as [LogEntry[], number]));
      if (line.kind === 'tell') this.#engine.tell(line.id, JSON.parse(line.value) as Waiting);
      if (line.kind === 'drop carried') this.#engine.carried = undefined;
      if (line.kind === 'carry on') this.#keep(JSON.parse(line.value) as CarriedRun);
      if (line.kind !== 'answer') continue;
      const [to, answer] = JSON.parse(line.value) as [string, ActAnswer];
      if (this.#engine.answers.has(to)) this.#broken('ANSWER', `${to} was answered twice`);
      this.#engine.answers.set(to, answer);
    }
    this.#cursor = this.#engine.journal.length;
  }

  #keep({ version, lines }: CarriedRun): void {
    const kept = this.#engine.carried;
    if (kept && kept.version !== version) this.#broken('VERSION', `${version} after ${kept.version}`);
    this.#engine.carried = { version, lines: [...(kept?.lines ?? []), ...lines] };
    this.#engine.askAgain();
  }

  #store(entries: LogEntry[], version: number): void {
    const { log } = this.#engine;
    this.#engine.version = version;
    if (entries[0]?.seq !== log.length) this.#broken('SEQ', `${entries[0]?.seq} after ${log.length} entries`);
    log.push(...entries);
  }

  #command(line: Line, timer?: EngineTimer): void {
    if (this.isOver) return;
    const recorded = this.#recorded();
    if (timer) this.#started.set(line, timer);
    if (!recorded) this.#unsent.push(line);
    else if (JSON.stringify(recorded) !== JSON.stringify(line)) this.#differs(recorded, line);
  }

  #send(line: Line): void {
    this.commit();
    this.#engine.journal.push(line);
    this.#cursor = this.#engine.journal.length;
  }

  /** The next line of the journal, if this attempt repeats it. */
  #recorded(): Line | undefined {
    if (this.#unsent.length > 0) return undefined;
    const line = this.#engine.journal[this.#cursor];
    if (!line) return undefined;
    this.#cursor += 1;
    this.#engine.repeated += 1;
    return line;
  }

  #differs(recorded: Line, line: Line): never {
    this.#broken('REPEAT', `recorded ${JSON.stringify(recorded)}, now ${JSON.stringify(line)}`);
    this.#abandon();
    throw new AttemptOver();
  }

  #mayDie(): void {
    const { chance, deaths, dies } = this.#engine.options;
    const { root } = this.#engine;
    root.points += 1;
    if (!(dies ? dies(root.points) : chance.odds(deaths / 4))) return;
    // Commands that were sent and not answered may have arrived.
    if (chance.odds(0.5)) this.commit();
    this.#abandon();
    throw new AttemptOver();
  }

  async #dieAfter(turns: number): Promise<void> {
    for (let turn = 0; turn < turns; turn += 1) await nextTurn();
    if (!this.isOver) this.#abandon();
  }

  /** Commands also arrive while a step takes long. */
  async #commitLater(): Promise<void> {
    for (let turn = 0; turn < 6; turn += 1) await nextTurn();
    this.commit();
  }

  /** Another attempt begins at once. This one notices at once, or later. */
  #abandon(): void {
    const { chance } = this.#engine.options;
    this.#engine.current = undefined;
    this.#end();
    const notice = (): void => this.#controller.abort(new AttemptOver('another attempt took its place'));
    if (chance.odds(0.5)) notice();
    else
      void (async () => {
        for (let turn = chance.below(40); turn > 0; turn -= 1) await nextTurn();
        notice();
      })();
  }

  #mustBeCurrent(): void {
    if (this.isOver) throw new AttemptOver();
  }

  #broken(invariant: string, detail: string): void {
    this.#engine.root.isBroken = true;
    this.#engine.options.broken(invariant, detail);
  }
}
