/**
 * A store with switchable faults. Invariant: without a fault it keeps the contract. Each fault breaks one rule of it,
 * and faults can be combined.
 */
import type { LogEntry } from '../../machines/vocabulary.ts';
import { SessionBusyError } from '../../src/errors.ts';
import { conversationSummary, newestFirst } from '../../src/stores/conversationSummary.ts';
import type { ConversationInfo, LogStore } from '../../src/stores/logStore.ts';
import { BLOB_FAULTS, Blobs } from './brokenBlobs.ts';
import { distortions, idFaults, limits, listings, sights } from './brokenContent.ts';
import { BrokenHandle, HANDLE_FAULTS, type Kept } from './brokenHandle.ts';

const STORE_FAULTS = [
  'ignores the lease',
  'takes the lease too late',
  'has one lease for all conversations',
  'gives the lease to nobody when it refuses an open',
  'forgets everything on close',
  'drops the first entry on reopening',
  'drops an entry in the middle on reopening',
  'drops the last entry on reopening',
  'writes an entry on opening',
  'lists nothing',
  'lists itself',
  'lists empty conversations',
  'lists conversations twice',
  'lists in order of age',
  'lists a hundred conversations',
  'lists what it listed before',
  'lists what was there at the last opening',
  'takes all leases to list',
  'deletes nothing',
  'deletes what is open',
  'deletes by pattern',
  'deletes listed conversations only',
  'fails to delete what is not there',
  'fails to delete twice at once',
  'keeps the blobs of what it deletes',
  'has blobs in common for all conversations',
  'loses blobs on close',
] as const;

const names = <T extends object>(table: T) => Object.keys(table) as (keyof T & string)[];
/** By what they are about. */
export const FAULTS = {
  store: STORE_FAULTS,
  handle: HANDLE_FAULTS,
  blobs: BLOB_FAULTS,
  content: names(distortions),
  sizes: names(limits),
  ids: names(idFaults),
  list: [...names(sights), ...names(listings)],
};
export type Fault = (typeof FAULTS)[keyof typeof FAULTS][number];

const NEVER_USED = { cwd: '', createdAt: 0, updatedAt: 0, turns: 0, costUsd: 0, status: 'idle' } as const;

export function brokenStore(faults: ReadonlySet<Fault>): LogStore {
  return new BrokenStore((fault) => faults.has(fault));
}

class BrokenStore implements LogStore {
  readonly #is: (fault: Fault) => boolean;
  readonly #kept = new Map<string, Kept>();
  readonly #leases = new Map<string, object>();
  readonly #common: Blobs;
  readonly #deleting = new Set<string>();
  #listed: ConversationInfo[] | undefined;

  constructor(is: (fault: Fault) => boolean) {
    this.#is = is;
    this.#common = new Blobs(is);
  }

  async open(id: string) {
    const key = this.#keyOf(id);
    const lease = this.#is('has one lease for all conversations') ? 'all' : key;
    if (this.#leases.has(lease) && !this.#is('ignores the lease')) {
      if (this.#is('gives the lease to nobody when it refuses an open')) this.#leases.delete(lease);
      throw new SessionBusyError(`${id} is open`);
    }
    if (this.#is('takes the lease too late')) await new Promise((resolve) => setImmediate(resolve));
    const token = {};
    this.#leases.set(lease, token);
    const kept: Kept = this.#kept.get(key) ?? { id, texts: [], listed: [], blobs: this.#newBlobs() };
    this.#kept.set(key, kept);
    if (this.#is('drops the first entry on reopening')) kept.texts.shift();
    if (this.#is('drops an entry in the middle on reopening')) kept.texts.splice(17, 1);
    if (this.#is('drops the last entry on reopening')) kept.texts.pop();
    if (this.#is('writes an entry on opening')) kept.texts.push('{"seq":0,"type":"header"}');
    kept.listed = [...kept.texts];
    return new BrokenHandle(kept, this.#is, (whoever) => {
      if (!whoever && this.#leases.get(lease) !== token) return;
      this.#leases.delete(lease);
      if (this.#is('forgets everything on close')) kept.texts.length = 0;
      if (this.#is('loses blobs on close')) kept.blobs = this.#newBlobs();
    });
  }

  async list() {
    if (this.#is('lists nothing')) return [];
    if (this.#is('takes all leases to list')) {
      const taken = [...this.#kept.keys()].filter((key) => !this.#leases.has(key));
      for (const key of taken) this.#leases.set(key, {});
      await new Promise((resolve) => setImmediate(resolve));
      for (const key of taken) this.#leases.delete(key);
    }
    const found = [...this.#kept].flatMap(([key, kept]) => this.#lookedAt(key, kept) ?? []);
    if (!this.#is('lists in order of age')) newestFirst(found);
    if (this.#is('lists itself')) found.push({ ...NEVER_USED, id: 'index' });
    if (this.#is('lists conversations twice')) found.push(...found);
    if (!this.#is('lists what it listed before'))
      return this.#is('lists a hundred conversations') ? found.slice(0, 100) : found;
    this.#listed ??= found.length > 0 ? found : undefined;
    return this.#listed ?? [];
  }

  async delete(id: string) {
    if (this.#is('deletes nothing')) return;
    const key = this.#keyOf(id);
    if (this.#leases.has(key) && !this.#is('deletes what is open')) throw new SessionBusyError(`${id} is open`);
    const kept = this.#kept.get(key);
    if (!kept && this.#is('fails to delete what is not there')) throw new Error('no such conversation');
    if (kept && this.#is('deletes listed conversations only') && !this.#lookedAt(key, kept)) return;
    if (this.#is('fails to delete twice at once')) {
      if (this.#deleting.has(key)) throw new Error('EEXIST');
      this.#deleting.add(key);
      await new Promise((resolve) => setImmediate(resolve));
      this.#deleting.delete(key);
    }
    if (this.#is('deletes by pattern')) {
      const pattern = new RegExp(`^${id.replaceAll('%', '.*').replaceAll('_', '.').replace(/[*?]/g, '\\$&')}$`, 's');
      for (const other of this.#kept.keys()) if (pattern.test(other)) this.#kept.delete(other);
    }
    if (kept && this.#is('keeps the blobs of what it deletes')) kept.texts.length = 0;
    else this.#kept.delete(key);
  }

  #newBlobs(): Blobs {
    return this.#is('has blobs in common for all conversations') ? this.#common : new Blobs(this.#is);
  }

  #keyOf(id: string): string {
    return names(idFaults).reduce((key, fault) => (this.#is(fault) ? idFaults[fault](key) : key), id);
  }

  #lookedAt(key: string, kept: Kept): ConversationInfo | null {
    const summary = conversationSummary(kept.id);
    const texts = this.#is('lists what was there at the last opening') ? kept.listed : kept.texts;
    const entries = texts.map((text) => JSON.parse(text) as LogEntry);
    for (const entry of entries) {
      let seen: LogEntry | null = entry;
      for (const fault of names(sights)) if (seen && this.#is(fault)) seen = sights[fault](seen);
      if (seen) summary.add(seen);
    }
    const held = this.#leases.has(key);
    let info = summary.result(held ? 'self' : 'nobody');
    if (!info && entries.length === 0 && this.#is('lists empty conversations')) {
      info = { ...NEVER_USED, id: kept.id };
    }
    const seen = { held, first: entries[0], last: entries.at(-1) };
    for (const fault of names(listings)) if (info && this.#is(fault)) info = listings[fault](info, seen);
    return info;
  }
}
