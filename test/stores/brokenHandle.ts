/** A handle of a broken store. Invariant: without a fault it keeps the contract. */

import { deepFreeze } from '../../machines/internal.ts';
import type { Diagnostic, LogEntry } from '../../machines/vocabulary.ts';
import { RunchartError, StoreConflictError } from '../../src/errors.ts';
import type { LogHandle } from '../../src/stores/logStore.ts';
import type { Blobs } from './brokenBlobs.ts';
import { distortions, limits } from './brokenContent.ts';
import type { Fault } from './brokenStore.ts';

const distorted = { ...distortions, ...limits };
const DISTORTIONS = Object.keys(distorted) as (keyof typeof distorted)[];

export const HANDLE_FAULTS = [
  'takes any expected seq',
  'takes an expected seq beyond the end',
  'goes back to an expected seq before the end',
  'compares the expected seq loosely',
  'does not check an append of nothing',
  'does not look at the seqs of entries',
  'looks at the first seq of a group only',
  'stores what comes before a wrong entry',
  'sorts a group',
  'drops repeated seqs',
  'drops an entry equal to the one before',
  'keeps a thousand entries of a group',
  'orders entries by their time',
  'counts from the opening',
  'appends without waiting its turn',
  'stops at a refused append',
  'stores a group entry by entry',
  'acknowledges before it stores',
  'acknowledges without storing at once',
  'does not check what it appends at once',
  'keeps the entries of its caller',
  'keeps the list of its caller',
  'stores what became of an entry meanwhile',
  'stamps the entries of its caller',
  'empties the list of its caller',
  'hands out the entries it keeps',
  'reads after the seq asked for',
  'reads everything always',
  'reads its last entry twice',
  'counts back from the end',
  'reads from the whole seq before',
  'reads everything from no number',
  'shows readers what comes after them',
  'has one reader at a time',
  'waits for its readers',
  'lets no one append before its readers',
  'finds only what was there at the opening',
  'has always something to say',
  'never gives its lease back',
  'gives back whoever has the lease',
  'gives its lease back after a conflict',
  'closes before it has stored',
  'closes once only',
  'appends when it is closed',
  'reads when it is closed',
  'appends while it is closing',
  'misleads readers when it is closed',
  'does not wait for blobs',
  'takes a seq for a blob',
] as const;

export interface Kept {
  id: string;
  texts: string[];
  /** The listed ids at the last opening. */
  listed: string[];
  blobs: Blobs;
}

const tick = () => new Promise<void>((resolve) => setImmediate(resolve));

export class BrokenHandle implements LogHandle {
  readonly #kept: Kept;
  readonly #is: (fault: Fault) => boolean;
  readonly #release: (whoever: boolean) => void;
  /** The objects that faults pass without a copy. */
  readonly #shared = new Map<number, LogEntry>();
  readonly #lists: (readonly LogEntry[])[] = [];
  readonly #atOpening: number;
  #readers = 0;
  #cursor = 0;
  #asked = 0;
  #turn: Promise<unknown> = Promise.resolve();
  #closing: Promise<void> | undefined;
  #closed = false;

  constructor(kept: Kept, is: (fault: Fault) => boolean, release: (whoever: boolean) => void) {
    this.#kept = kept;
    this.#is = is;
    this.#release = release;
    this.#atOpening = kept.texts.length;
    if (is('puts blobs and never gets them')) Reflect.set(this, 'getBlob', undefined);
  }

  get notices(): readonly Diagnostic[] {
    return this.#is('has always something to say') ? [{ code: 'opened' }] : [];
  }

  async *read(from = 0): AsyncGenerator<LogEntry> {
    if (this.#closing && !this.#is('reads when it is closed')) throw new RunchartError('closed', 'closed');
    const length = Math.max(this.#kept.texts.length, this.#lists.flat().length);
    const live = this.#is('shows readers what comes after them');
    let seq = this.#startOf(from, length);
    this.#readers += 1;
    if (this.#is('has one reader at a time')) this.#cursor = seq;
    while (seq < (live ? this.#kept.texts.length : length)) {
      if (this.#is('has one reader at a time')) seq = this.#cursor++;
      const entry = this.#entryAt(this.#closed && this.#is('misleads readers when it is closed') ? 0 : seq);
      if (entry) yield entry;
      seq += 1;
    }
    const last = this.#is('reads its last entry twice') && this.#entryAt(length - 1);
    if (last) yield last;
    this.#readers -= 1;
  }

  append(appended: readonly LogEntry[], expectedSeq: number): Promise<void> {
    const late = this.#is('appends when it is closed') || (!this.#closed && this.#is('appends while it is closing'));
    if (this.#closing && !late) return Promise.reject(new RunchartError('closed', 'closed'));
    const entries = this.#is('stores what became of an entry meanwhile') ? appended : structuredClone([...appended]);
    const turns = this.#is('appends without waiting its turn') ? 3 - (this.#asked++ % 3) : 1;
    const work = async () => {
      for (let turn = 0; turn < turns; turn += 1) await tick();
      await this.#store(entries, appended, expectedSeq);
    };
    const done = this.#is('appends without waiting its turn')
      ? work()
      : this.#turn.then(work, (error: unknown) =>
          this.#is('stops at a refused append') ? Promise.reject(error) : work(),
        );
    this.#turn = done;
    done.catch(() => {});
    return this.#is('acknowledges before it stores') ? Promise.resolve() : done;
  }

  appendNow(entries: readonly LogEntry[], expectedSeq: number): void {
    if (this.#closing) throw new RunchartError('closed', 'closed');
    if (!this.#is('does not check what it appends at once')) this.#refuse(entries, expectedSeq);
    if (this.#is('acknowledges without storing at once')) return;
    for (const entry of entries) this.#keep(structuredClone(entry));
  }

  close(): Promise<void> {
    if (this.#closing && this.#is('closes once only')) return Promise.reject(new Error('closed already'));
    if (this.#closed && this.#is('gives back whoever has the lease')) this.#release(true);
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async putBlob(bytes: Uint8Array, mediaType: string): Promise<string> {
    if (this.#closing) throw new RunchartError('closed', 'closed');
    if (this.#is('takes a seq for a blob')) this.#kept.texts.push('{"type":"blob"}');
    const put = this.#kept.blobs.put(bytes, mediaType);
    if (this.#is('does not wait for blobs')) await tick().then(tick);
    else this.#turn = Promise.allSettled([this.#turn, put]);
    return put;
  }

  async getBlob(reference: string): Promise<Uint8Array> {
    if (this.#closing) throw new RunchartError('closed', 'closed');
    return this.#kept.blobs.get(reference);
  }

  async #close(): Promise<void> {
    if (!this.#is('closes before it has stored')) await this.#turn.catch(() => {});
    while (this.#readers > 0 && this.#is('waits for its readers'))
      await new Promise((resolve) => setTimeout(resolve, 50));
    this.#closed = true;
    if (!this.#is('never gives its lease back')) this.#release(false);
  }

  async #store(candidates: readonly LogEntry[], original: readonly LogEntry[], expectedSeq: number): Promise<void> {
    if (this.#closed && this.#is('closes before it has stored')) return;
    let entries = [...candidates];
    if (this.#is('sorts a group')) entries.sort((a, b) => a.seq - b.seq);
    if (this.#is('drops repeated seqs')) entries = [...new Map(entries.map((entry) => [entry.seq, entry])).values()];
    this.#refuse(entries, expectedSeq);
    if (this.#is('lets no one append before its readers') && this.#readers > 0) throw new Error('locked');
    for (const [index, entry] of entries.entries()) {
      if (this.#is('keeps a thousand entries of a group') && index >= 1000) break;
      if (this.#is('stores what comes before a wrong entry')) this.#refuse([entry], this.#next);
      this.#keep(entry, original[index]);
      if (this.#is('stores a group entry by entry')) await tick();
    }
    if (this.#is('orders entries by their time')) this.#kept.texts.sort((a, b) => JSON.parse(a).at - JSON.parse(b).at);
    if (this.#is('keeps the list of its caller')) this.#lists.push(original);
    if (this.#is('empties the list of its caller')) (original as LogEntry[]).length = 0;
  }

  get #next(): number {
    return this.#kept.texts.length - (this.#is('counts from the opening') ? this.#atOpening : 0);
  }

  #refuse(entries: readonly LogEntry[], expectedSeq: number): void {
    const next = this.#next;
    if (this.#is('takes any expected seq') || (entries.length === 0 && this.#is('does not check an append of nothing')))
      return;
    const loosely = this.#is('compares the expected seq loosely') && Number(expectedSeq) === next;
    if (expectedSeq !== next && !loosely) {
      const back = expectedSeq < next && this.#is('goes back to an expected seq before the end');
      if (back) this.#kept.texts.length = Math.max(0, expectedSeq);
      const beyond = expectedSeq > next && this.#is('takes an expected seq beyond the end');
      if (!back && !beyond) this.#conflict();
      return;
    }
    if (this.#is('does not look at the seqs of entries')) return;
    const first =
      this.#is('stores what comes before a wrong entry') || this.#is('looks at the first seq of a group only');
    const checked = first ? entries.slice(0, 1) : entries;
    if (checked.some((entry, index) => entry.seq !== next + index)) this.#conflict();
  }

  #conflict(): never {
    if (this.#is('gives its lease back after a conflict')) this.#release(false);
    throw new StoreConflictError('another seq was expected');
  }

  #keep(entry: LogEntry, original?: LogEntry): void {
    const { seq } = entry;
    const text = JSON.stringify(entry);
    const bare = (stored: string) => stored.replace(/"seq":\d+,?/, '');
    if (this.#is('drops an entry equal to the one before') && bare(this.#kept.texts.at(-1) ?? '') === bare(text))
      return;
    if (original && this.#is('stamps the entries of its caller')) Object.assign(original, { stored: true });
    if (original && this.#is('keeps the entries of its caller')) this.#shared.set(seq, original);
    if (this.#is('hands out the entries it keeps')) this.#shared.set(seq, entry);
    this.#kept.texts.push(text);
  }

  #startOf(from: number, length: number): number {
    if (this.#is('reads everything always')) return 0;
    if (this.#is('reads after the seq asked for')) return Math.max(0, Math.ceil(from) + (from > 0 ? 1 : 0));
    if (this.#is('counts back from the end') && from < 0) return Math.max(0, length + Math.ceil(from));
    if (this.#is('reads from the whole seq before')) return Math.max(0, Math.floor(from));
    if (Number.isNaN(from)) return this.#is('reads everything from no number') ? 0 : length;
    if (this.#is('finds only what was there at the opening') && from > 0 && from >= this.#atOpening) return length;
    return Math.max(0, Math.ceil(from));
  }

  #entryAt(seq: number): LogEntry | null {
    const text = this.#kept.texts[seq];
    const shared = this.#shared.get(seq) ?? this.#lists.flat().find((entry) => entry.seq === seq);
    let entry: LogEntry | null = shared ?? (text === undefined ? null : (JSON.parse(text) as LogEntry));
    for (const fault of DISTORTIONS) if (entry && this.#is(fault)) entry = distorted[fault](entry);
    return shared ? entry : deepFreeze(entry);
  }
}
