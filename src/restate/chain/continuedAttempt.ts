/**
 * An attempt of an invocation that continues a run. First it repeats the records of the invocations before it, then it receives from the
 * engine. Invariant: a repeated item has no effect: its entries are stored already, and its acts are answered.
 */
import type { Json, LogEntry } from '../../../machines/internal.ts';
import { RunchartError } from '../../errors.ts';
import type { ActAnswer } from '../../stores/logStore.ts';
import type {
  AttemptListener,
  CarriedRun,
  ChainItem,
  EngineAttempt,
  EngineTimer,
  RecordedLine,
  StoredLog,
  WaitingAct,
} from './engineAttempt.ts';

type Repeated = 'attempt' | 'conversationId' | 'signal' | 'charactersMost' | 'blobsOf';

/** A log of the family as it is stored, and the number of entries that the repeated chain has led to. */
interface RepeatedLog {
  readonly stored: readonly LogEntry[];
  repeatedTo: number;
}

export class ContinuedAttempt
  implements Pick<EngineAttempt, Repeated | 'step' | 'startTimer' | 'listen' | 'takeActs' | 'readLog' | 'answer'>
{
  readonly #inner: EngineAttempt;
  readonly #version: number;
  readonly #carried: readonly RecordedLine[];
  /** The lines that this attempt received from the engine. */
  readonly #lines: RecordedLine[] = [];
  #cursor = 0;
  #isOwn: boolean;
  #isListening: boolean;
  /** By the id of the sub-agent; the conversation's own under the empty id. */
  readonly #logs = new Map<string, RepeatedLog>();
  /** Timers that the repeated chain has started. The engine of this invocation has not started them yet. */
  #timers: EngineTimer[] = [];
  #fault: RunchartError | undefined;
  /** The acts without an answer of a run whose chain is not repeated. */
  readonly left: readonly WaitingAct[] | undefined;
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
      this.#cursor = 1;
    } else if (carried && !isRepeatable) {
      this.left = unansweredIn(carried);
      this.#lines.push({ kind: 'left', acts: this.left });
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

  blobsOf(subAgent?: string): ReturnType<EngineAttempt['blobsOf']> {
    return this.#inner.blobsOf(subAgent);
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
      const { id, of } = line.timer;
      this.#timers = this.#timers.filter((timer) => timer.id !== id || timer.of !== of);
      listener.elapsed(line.timer);
    } else return false;
    return true;
  }

  async takeActs(isListening: boolean): Promise<readonly WaitingAct[]> {
    const line = this.#next();
    if (line?.kind === 'acts') return line.acts;
    if (line) throw this.#differs(line, 'acts');
    const acts = await this.#inner.takeActs(isListening);
    this.#isListening ||= isListening;
    this.#lines.push({ kind: 'acts', acts });
    return acts;
  }

  async readLog(subAgent?: string): Promise<StoredLog> {
    const of = subAgent === undefined ? {} : { of: subAgent };
    const stored = await this.#inner.readLog(subAgent);
    const line = this.#next();
    if (line && (line.kind !== 'log' || line.of !== subAgent)) throw this.#differs(line, `log ${subAgent ?? ''}`);
    if (!line) this.#lines.push({ kind: 'log', length: stored.entries.length, ...of });
    this.#logs.set(subAgent ?? '', { stored: line ? stored.entries : [], repeatedTo: line?.length ?? 0 });
    return { ...stored, entries: stored.entries.slice(0, line?.length) };
  }

  append(entries: readonly LogEntry[], subAgent?: string): void {
    const log = this.#logs.get(subAgent ?? '') ?? { stored: [], repeatedTo: 0 };
    const added = entries.filter((entry) => {
      const stored = log.stored[entry.seq];
      if (stored && JSON.stringify(stored) !== JSON.stringify(entry))
        throw this.#differs({ kind: 'log', length: entry.seq }, `${entry.type} in place of ${stored.type}`);
      if (!stored && !this.#isOwn) throw this.#differs({ kind: 'log', length: log.stored.length }, entry.type);
      return !stored;
    });
    log.repeatedTo += entries.length;
    if (added.length > 0) this.#inner.append(added, this.#version, subAgent);
  }

  answer(to: string, answer: ActAnswer): void {
    if (this.#isOwn) this.#inner.answer(to, answer);
  }

  /** Another invocation continues before the last step. */
  handOver(): void {
    if (this.#isReplacing) this.#inner.dropCarried();
    this.#inner.carryOn({ version: this.#version, lines: this.#lines.slice(0, -1) });
  }

  /** Nothing is under way. */
  end(): void {
    if (this.#isReplacing || this.#carried.length > 0) this.#inner.dropCarried();
  }

  #next(): RecordedLine | undefined {
    // The code that refused an entry may have caught the error.
    if (this.#fault) throw this.#fault;
    const line = this.#carried[this.#cursor];
    if (line) this.#cursor += 1;
    if (line || this.#isOwn) return line;
    for (const { stored, repeatedTo } of this.#logs.values())
      if (repeatedTo < stored.length)
        throw this.#differs({ kind: 'log', length: stored.length }, `a log of ${repeatedTo} entries`);
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

/** The acts that the invocations before this one have taken and not answered. */
function unansweredIn({ lines }: CarriedRun): WaitingAct[] {
  const answered = new Set<string>();
  for (const line of lines) {
    const item = line.kind === 'step' && line.name === 'next' ? (line.value as unknown as ChainItem) : undefined;
    if (item?.kind === 'answers') for (const { to } of item.answers) answered.add(to);
  }
  return lines
    .flatMap((line) => (line.kind === 'acts' || line.kind === 'left' ? line.acts : []))
    .filter(({ to }) => !answered.has(to));
}
