/**
 * The log that a script leads to, with its folds. Invariant: entries are added once, in order, and every fold receives
 * each of them.
 */
import {
  applyEntry,
  createTranscript,
  emptyLogState,
  type LogEntry,
  type LogState,
  type NewEntry,
  reconcile,
  sizeOfTranscript,
  type Transcript,
} from '../../../../machines/internal.ts';
import { isTimeUp } from '../cycleTime.ts';

/** A conversation contains more characters than this only if a message fills the window, or a result is very long. */
const FEW = 100_000;
/** Long texts are compared in steps of this many characters. */
const STEP = 10_000;

/** The class of a text's length, for the window. All lengths below a quarter of it are alike. */
export const lengthClass = (characters: number): number => (characters > FEW ? Math.ceil(characters / STEP) : 0);

export class PredictedLog {
  readonly logState: LogState;
  readonly entries: LogEntry[];
  readonly #transcript = createTranscript();
  /** The number of entries in the transcript. A getter updates it on demand, because reads are rare. */
  #transcribed = 0;
  /** The log contains a message that fills the window, or a very long result. */
  #isFilled: boolean;
  #isTimeUp: boolean;

  /** A copy continues independently. */
  constructor(from?: PredictedLog) {
    this.logState = from ? copyOf(from.logState) : emptyLogState();
    this.entries = from ? [...from.entries] : [];
    this.#isFilled = from ? from.#isFilled : false;
    this.#isTimeUp = from ? from.#isTimeUp : false;
  }

  /** The last request has used up the time that `limits.runMs` gives. */
  get isTimeUp(): boolean {
    return this.#isTimeUp;
  }

  get transcript(): Transcript {
    for (; this.#transcribed < this.entries.length; this.#transcribed++) {
      const entry = this.entries[this.#transcribed];
      if (entry) this.#transcript.push(entry);
    }
    return this.#transcript;
  }

  /** Adds the entries of the charts that the log accepts. */
  addLogged(logged: readonly NewEntry[]): void {
    if (logged.length === 0) return;
    const isResumed = logged.some(({ type }) => type === 'run-resumed');
    this.add(reconcile(this.logState, logged, isResumed && this.transcript.endsWithAssistant()));
  }

  add(made: readonly NewEntry[]): void {
    for (const entry of made)
      this.#fold({ at: 0, conversationId: 'predicted', ...entry, seq: this.entries.length } as LogEntry);
  }

  get isSummedUp(): boolean {
    return this.entries.some(({ type }) => type === 'compaction');
  }

  /** The facts that determine the next measurement of the window. */
  get fill(): readonly unknown[] {
    const size = this.#isFilled ? lengthClass(sizeOfTranscript(this.transcript).characters) : 0;
    return [this.isSummedUp, this.logState.warned, size, size > 0 && this.transcript.messages().length > 1];
  }

  #fold(entry: LogEntry): void {
    this.entries.push(entry);
    if ('content' in entry)
      this.#isFilled ||= entry.content.some((part) => part.type === 'text' && part.text.length > FEW);
    this.#isTimeUp = isTimeUp(this.#isTimeUp, entry);
    applyEntry(this.logState, entry);
  }
}

/** Copies everything that the fold changes in place. */
const copyOf = (logState: LogState): LogState => ({
  ...logState,
  calls: new Map([...logState.calls].map(([callId, record]) => [callId, { ...record }])),
  open: new Set(logState.open),
  unsettled: new Set(logState.unsettled),
  early: new Set(logState.early),
  state: new Map(logState.state),
  uncounted: [...logState.uncounted],
  reply: { ...logState.reply, calls: [...logState.reply.calls] },
});
