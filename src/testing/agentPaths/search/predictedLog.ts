/**
 * The log that a script leads to, with its folds. Rule: entries are added once, in order, and every fold has seen each of them.
 */
import {
  applyEntry,
  createTranscript,
  emptyLogState,
  type LogEntry,
  type LogState,
  type NewEntry,
  sizeOfTranscript,
} from '../../../../machines/internal.ts';

/** A conversation has more characters than this only where a message fills the window. */
const FEW = 100_000;

export class PredictedLog {
  readonly logState: LogState = emptyLogState();
  readonly entries: LogEntry[] = [];
  readonly transcript = createTranscript();
  /** A message that fills the window has come. */
  #isFilled = false;

  add(made: readonly NewEntry[]): void {
    for (const entry of made)
      this.#fold({ at: 0, conversationId: 'predicted', ...entry, seq: this.entries.length } as LogEntry);
  }

  copyFrom({ entries }: PredictedLog): void {
    for (const entry of entries) this.#fold(entry);
  }

  get isSummedUp(): boolean {
    return this.entries.some(({ type }) => type === 'compaction');
  }

  /** What the next look at the window depends on. */
  get fill(): readonly unknown[] {
    const isLarge = this.#isFilled && sizeOfTranscript(this.transcript).characters > FEW;
    return [this.isSummedUp, this.logState.warned, isLarge, isLarge && this.transcript.messages().length > 1];
  }

  #fold(entry: LogEntry): void {
    this.entries.push(entry);
    if ('content' in entry)
      this.#isFilled ||= entry.content.some((part) => part.type === 'text' && part.text.length > FEW);
    applyEntry(this.logState, entry);
    this.transcript.push(entry);
  }
}
