/**
 * A journal whose effects are answered by a script. Invariant: it starts nothing and keeps everything: entries in
 * append order, requests in start order, and which of them are open.
 */
import {
  type Completion,
  type Delivery,
  type EffectRequest,
  type Journal,
  type LogEntry,
  type NewEntry,
  REPORT_KINDS,
} from '../../../machines/internal.ts';

/** A journal in memory that answers effects as a path prescribes. */
export class ScriptedJournal implements Journal {
  /** The entries so far. */
  readonly entries: LogEntry[] = [];
  /** The entries of each append. */
  readonly appends: (readonly NewEntry[])[] = [];
  /** In start order, with the reports. */
  readonly started: EffectRequest[] = [];
  /** Requests by id that are neither answered nor dropped. */
  readonly open = new Map<string, EffectRequest>();
  /** The prefixes of dropped effects. */
  readonly dropped = new Set<string>();
  /** Makes the next append fail. */
  refuse: Error | undefined;
  readonly #queue: Completion[] = [];
  #ring: () => void = () => {};

  bell(ring: () => void): void {
    this.#ring = ring;
  }

  put(completion: Completion): void {
    this.#queue.push(completion);
    this.#ring();
  }

  take(): Delivery | undefined {
    const completion = this.#queue.shift();
    return completion && { at: this.appends.length, completion };
  }

  start(request: EffectRequest): void {
    this.started.push(request);
    if (!REPORT_KINDS.has(request.kind)) this.open.set(request.id, request);
  }

  drop(prefix: string): void {
    for (const id of this.open.keys()) {
      if (!id.startsWith(prefix)) continue;
      this.open.delete(id);
      this.dropped.add(id);
    }
  }

  append(entries: readonly NewEntry[], at: number): void {
    const { refuse } = this;
    this.refuse = undefined;
    if (refuse) throw refuse;
    this.appends.push(entries);
    for (const entry of entries) {
      this.entries.push({ seq: this.entries.length, at, conversationId: 'scripted', ...entry } as LogEntry);
    }
  }

  /** Removes all other open requests, as if they had never started. */
  keep(requests: readonly EffectRequest[]): void {
    for (const request of this.open.values()) if (!requests.includes(request)) this.open.delete(request.id);
  }

  /** Removes entries that were not stored: for each the last one of the same type and subject. */
  lose(lost: readonly NewEntry[]): void {
    const subjectOf = (entry: object): unknown =>
      'callId' in entry ? entry.callId : 'messageId' in entry ? entry.messageId : undefined;
    for (const gone of lost) {
      const alike = (entry: LogEntry): boolean => entry.type === gone.type && subjectOf(entry) === subjectOf(gone);
      const at = this.entries.map(alike).lastIndexOf(true);
      if (at >= 0) this.entries.splice(at, 1);
    }
  }

  /** Delivers the answer to an open request. */
  answer({ id }: EffectRequest, answer: EffectAnswer): void {
    this.open.delete(id);
    this.put({ ...answer, id });
  }
}

/** The result of an effect, without the id of its request. */
export type EffectAnswer =
  | Pick<Extract<Completion, { type: 'timer.elapsed' }>, 'type'>
  | Pick<Extract<Completion, { type: 'effect.done' }>, 'type' | 'value'>
  | Pick<Extract<Completion, { type: 'effect.failed' }>, 'type' | 'cause' | 'error'>;
