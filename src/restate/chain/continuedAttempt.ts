/**
 * An attempt of an invocation that continues a run. First it repeats the records of the invocations before it, then it receives from the
 * engine. Invariant: a repeated item has no effect: its entries are stored already, and its acts are answered.
 */
import type { Json, LogEntry } from '../../../machines/internal.ts';
import { RunchartError } from '../../errors.ts';
import type { ActAnswer } from '../../stores/logStore.ts';
import {
  type AttemptListener,
  type CarriedRun,
  type ChainItem,
  type EngineAttempt,
  type EngineTimer,
  isNews,
  type RecordedLine,
  type StoredLog,
  type SubAgentPlace,
  type Waiting,
  type WaitingAct,
  type WaitingNews,
} from './engineAttempt.ts';

type Same = 'attempt' | 'conversationId' | 'signal' | 'charactersMost' | 'blobs';
type Repeated = 'step' | 'startTimer' | 'listen' | 'takeActs' | 'readLog' | 'answer' | 'tell';

export class ContinuedAttempt implements Pick<EngineAttempt, Same | Repeated> {
  readonly #inner: EngineAttempt;
  readonly #version: number;
  readonly #carried: readonly RecordedLine[];
  /** The lines that this attempt received from the engine. */
  readonly #lines: RecordedLine[] = [];
  #cursor = 0;
  #isOwn: boolean;
  #isListening: boolean;
  /** The log as it is stored, and the number of entries that the repeated chain has led to. */
  #stored: readonly LogEntry[] = [];
  #repeatedTo = 0;
  /** Sent with the next step. */
  #unsent: { id: string; waiting: Waiting }[] = [];
  /** Timers that the repeated chain has started. The engine of this invocation has not started them yet. */
  #timers: EngineTimer[] = [];
  #fault: RunchartError | undefined;
  /** The acts without an answer of a run whose chain is not repeated. */
  readonly left: readonly WaitingAct[] | undefined;
  /** Of a sub-agent whose chain is not repeated. */
  readonly leftPlace: SubAgentPlace | undefined;
  /** The chain that is kept is not repeated. */
  readonly #isReplacing: boolean;

  /** A chain that is not repeatable is replaced by the acts that it left without an answer. */
  constructor(inner: EngineAttempt, version: number, carried: CarriedRun | undefined, isRepeatable: boolean) {
    const [first] = (isRepeatable && carried?.lines) || [];
    this.#inner = inner;
    this.#version = version;
    this.#carried = (isRepeatable && carried?.lines) || [];
    this.#isReplacing = carried !== undefined && !isRepeatable;
    if (first?.kind === 'left') {
      this.left = first.acts;
      this.leftPlace = first.place;
      this.#cursor = 1;
    } else if (carried && !isRepeatable) {
      this.left = unansweredIn(carried);
      this.leftPlace = lastPlaceIn(carried);
      this.#lines.push({ kind: 'left', acts: this.left, ...(this.leftPlace && { place: this.leftPlace }) });
    }
    this.#isOwn = this.#carried.length === 0;
    this.#isListening = this.#isOwn;
  }

  get conversationId(): string {
    return this.#inner.conversationId;
  }

  get attempt(): string {
    return this.#inner.attempt;
  }

  get signal(): AbortSignal {
    return this.#inner.signal;
  }

  get charactersMost(): number {
    return this.#inner.charactersMost;
  }

  get blobs(): EngineAttempt['blobs'] {
    return this.#inner.blobs;
  }

  /** The lines of the invocations before this one have been repeated. */
  get isOwn(): boolean {
    return this.#isOwn;
  }

  async step<T>(name: string, act: () => T | Promise<T>, listener?: AttemptListener): Promise<T> {
    for (let line = this.#next(); line; line = this.#next()) {
      if (listener && (await this.#tellAgain(line, listener))) continue;
      if (line.kind === 'step' && line.name === name) return line.value as T;
      throw this.#differs(line, name);
    }
    const recording = listener && this.#recording(listener);
    this.sendNews();
    // The bell of the invocation before this one does not ring here.
    if (!this.#isListening) await recording?.rung();
    const value = await this.#inner.step(name, act, recording);
    this.#lines.push({ kind: 'step', name, value: value as Json });
    return value;
  }

  startTimer(timer: EngineTimer): void {
    if (this.#isOwn) this.#inner.startTimer(timer);
    else this.#timers.push(timer);
  }

  async listen(listener: AttemptListener): Promise<void> {
    const line = this.#next();
    if (line && !(await this.#tellAgain(line, listener))) throw this.#differs(line, 'waiting');
    if (line) return;
    this.sendNews();
    const recording = this.#recording(listener);
    await (this.#isListening ? this.#inner.listen(recording) : recording.rung());
  }

  #recording(listener: AttemptListener): AttemptListener {
    return {
      rung: async () => {
        this.#lines.push({ kind: 'bell' });
        await listener.rung();
      },
      elapsed: (timer) => {
        this.#lines.push({ kind: 'elapsed', timer });
        listener.elapsed(timer);
      },
    };
  }

  /** False for a line of something else. */
  async #tellAgain(line: RecordedLine, listener: AttemptListener): Promise<boolean> {
    if (line.kind === 'bell') await listener.rung();
    else if (line.kind === 'elapsed') {
      const { id } = line.timer;
      this.#timers = this.#timers.filter((timer) => timer.id !== id);
      listener.elapsed(line.timer);
    } else return false;
    return true;
  }

  async takeActs(isListening: boolean): Promise<readonly Waiting[]> {
    const line = this.#next();
    if (line?.kind === 'acts') return line.acts;
    if (line) throw this.#differs(line, 'acts');
    this.sendNews();
    const acts = await this.#inner.takeActs(isListening);
    this.#isListening ||= isListening;
    this.#lines.push({ kind: 'acts', acts });
    return acts;
  }

  async readLog(subAgent?: string): Promise<StoredLog> {
    const of = subAgent === undefined ? {} : { of: subAgent };
    const line = this.#next();
    if (line && (line.kind !== 'log' || line.of !== subAgent)) throw this.#differs(line, `log ${subAgent ?? ''}`);
    this.sendNews();
    const stored = await this.#inner.readLog(subAgent);
    const { length, isUnderWay } = line ?? { length: stored.entries.length, isUnderWay: stored.isUnderWay };
    if (!line) this.#lines.push({ kind: 'log', length, ...of, ...(isUnderWay && { isUnderWay }) });
    if (subAgent === undefined && line) {
      this.#stored = stored.entries;
      this.#repeatedTo = length;
    }
    return { entries: stored.entries.slice(0, length), version: stored.version, ...(isUnderWay && { isUnderWay }) };
  }

  append(entries: readonly LogEntry[]): void {
    const added = entries.filter((entry) => {
      const stored = this.#stored[entry.seq];
      if (stored && JSON.stringify(stored) !== JSON.stringify(entry))
        throw this.#differs({ kind: 'log', length: entry.seq }, `${entry.type} in place of ${stored.type}`);
      if (!stored && !this.#isOwn) throw this.#differs({ kind: 'log', length: this.#stored.length }, entry.type);
      return !stored;
    });
    this.#repeatedTo += entries.length;
    if (added.length > 0) this.#inner.append(added, this.#version);
  }

  /** Entries that follow each other are sent together. */
  tell(id: string, waiting: Waiting): void {
    if (!this.#isOwn) return;
    const last = this.#unsent.at(-1);
    const joined = last?.id === id ? joinedNews(last.waiting, waiting) : undefined;
    if (last && joined) last.waiting = joined;
    else this.#unsent.push({ id, waiting });
  }

  /** Sends the news that wait. */
  sendNews(): void {
    for (const { id, waiting } of this.#unsent.splice(0)) this.#inner.tell(id, waiting);
  }

  answer(to: string, answer: ActAnswer): void {
    if (this.#isOwn) this.#inner.answer(to, answer);
  }

  /** Another invocation continues before the last step. */
  handOver(): void {
    this.sendNews();
    if (this.#isReplacing) this.#inner.dropCarried();
    this.#inner.carryOn({ version: this.#version, lines: this.#lines.slice(0, -1) });
  }

  /** Nothing is under way. */
  end(): void {
    this.sendNews();
    if (this.#isReplacing || this.#carried.length > 0) this.#inner.dropCarried();
  }

  #next(): RecordedLine | undefined {
    // The code that refused an entry may have caught the error.
    if (this.#fault) throw this.#fault;
    const line = this.#carried[this.#cursor];
    if (line) this.#cursor += 1;
    if (line || this.#isOwn) return line;
    const { length } = this.#stored;
    if (this.#repeatedTo < length) throw this.#differs({ kind: 'log', length }, `a log of ${this.#repeatedTo} entries`);
    this.#isOwn = true;
    for (const timer of this.#timers.splice(0)) this.#inner.startTimer(timer);
    return undefined;
  }

  #differs(recorded: RecordedLine, name: string): RunchartError {
    const place = JSON.stringify(recorded).slice(0, 200);
    this.#fault ??= new RunchartError('replay', `the run cannot be repeated: recorded is ${place}, here comes ${name}`);
    return this.#fault;
  }
}

/** An engine takes no message of any size. */
const JOINED_CHARACTERS = 50_000;

function joinedNews(before: Waiting, after: Waiting): WaitingNews | undefined {
  if (!isNews(before) || !isNews(after) || before.news.kind !== 'entries' || after.news.kind !== 'entries')
    return undefined;
  const entries = [...before.news.entries, ...after.news.entries];
  return JSON.stringify(entries).length > JOINED_CHARACTERS
    ? undefined
    : { of: after.of, news: { kind: 'entries', entries } };
}

/** The acts that the invocations before this one have taken. */
const actsIn = ({ lines }: CarriedRun): WaitingAct[] =>
  lines
    .flatMap<Waiting>((line) => (line.kind === 'acts' || line.kind === 'left' ? line.acts : []))
    .flatMap((waiting) => (isNews(waiting) ? [] : [waiting]));

/** Those of them that have no answer. */
export function unansweredIn(carried: CarriedRun): WaitingAct[] {
  const answered = new Set<string>();
  for (const line of carried.lines) {
    const item = line.kind === 'step' && line.name === 'next' ? (line.value as unknown as ChainItem) : undefined;
    if (item?.kind === 'answers') for (const { to } of item.answers) answered.add(to);
  }
  return actsIn(carried).filter(({ to }) => !answered.has(to));
}

function lastPlaceIn(carried: CarriedRun): SubAgentPlace | undefined {
  const [first] = carried.lines;
  const places = actsIn(carried).flatMap(({ place }) => place ?? []);
  return places.at(-1) ?? (first?.kind === 'left' ? first.place : undefined);
}
