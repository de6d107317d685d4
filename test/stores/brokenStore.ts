/**
 * A store with switchable faults. Invariant: without a fault it keeps the contract. Each fault breaks one rule of it,
 * and faults can be combined.
 */
import type { LogEntry } from '../../machines/vocabulary.ts';
import { SessionBusyError } from '../../src/errors.ts';
import { type ConversationRow, listedRow } from '../../src/stores/conversationRow.ts';
import { addToRow } from '../../src/stores/conversationSummary.ts';
import {
  type ConversationInfo,
  isSubAgentOf,
  type ListOptions,
  type LogStore,
  noConversation,
  type StoreOpening,
  subAgentIds,
} from '../../src/stores/logStore.ts';
import { pageOf } from '../../src/stores/rowTable.ts';
import { BLOB_FAULTS, Blobs } from './brokenBlobs.ts';
import { distortions, idFaults, limits, listings, sights } from './brokenContent.ts';
import { BrokenHandle, HANDLE_FAULTS, type Kept } from './brokenHandle.ts';

const STORE_FAULTS = [
  'ignores the lease',
  'takes the lease too late',
  'has one lease for all conversations',
  'opens what does not exist',
  'opens conversations of other owners',
  'opens conversations without an owner for any owner',
  'refuses every owner',
  'is busy before it looks at the owner',
  'deletes no sub-agents',
  'deletes what only claims to be a sub-agent',
  'deletes the conversation of an open sub-agent',
  'pages by the number of rows',
  'repeats the last row on the next page',
  'ignores the limit',
  'counts other rows in the limit',
  'ignores the cursor',
  'takes any cursor',
  'lists every owner',
  'lists every status',
  'matches owners without their case',
  'forgets the status where it looks for an owner',
  'keeps eighty letters of a title',
  'gives one cursor for every row',
  'keeps the first title',
  'lists no title',
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
/** The faults by topic. */
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
  readonly #places = new Map<string, number>();

  constructor(is: (fault: Fault) => boolean) {
    this.#is = is;
    this.#common = new Blobs(is);
  }

  async open(id: string, { existing, owner }: StoreOpening = {}) {
    const key = this.#keyOf(id);
    const texts = this.#kept.get(key)?.texts ?? [];
    if (existing && texts.length === 0 && !this.#is('opens what does not exist')) throw noConversation();
    const busyFirst = this.#is('is busy before it looks at the owner') && this.#leases.has(key);
    if (!busyFirst) this.#refuseOwner(texts[0], owner);
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

  async list(options: ListOptions = {}) {
    if (this.#is('lists nothing')) return [];
    if (this.#is('takes all leases to list')) {
      const taken = [...this.#kept.keys()].filter((key) => !this.#leases.has(key));
      for (const key of taken) this.#leases.set(key, {});
      await new Promise((resolve) => setImmediate(resolve));
      for (const key of taken) this.#leases.delete(key);
    }
    const found = [...this.#kept].flatMap(([key, kept]) => this.#lookedAt(key, kept) ?? []);
    const page = this.#page(found, options);
    found.splice(0, found.length, ...page);
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
    const children = this.#subAgentsOf(kept);
    if (children.some((child) => this.#leases.has(child)) && !this.#is('deletes the conversation of an open sub-agent'))
      throw new SessionBusyError(`a sub-agent of ${id} is open`);
    if (!this.#is('deletes no sub-agents')) for (const child of children) this.#kept.delete(child);
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

  #refuseOwner(first: string | undefined, owner: string | undefined): void {
    if (owner === undefined || first === undefined) return;
    if (this.#is('refuses every owner')) throw noConversation();
    const { owner: written } = JSON.parse(first) as { owner?: string };
    if (written === undefined && this.#is('opens conversations without an owner for any owner')) return;
    if (written !== owner && !this.#is('opens conversations of other owners')) throw noConversation();
  }

  /** Returns the ids of the sub-agents in the log, and of their sub-agents at every depth. */
  #subAgentsOf(kept: Kept | undefined): string[] {
    const entries = (kept?.texts ?? []).map((text) => JSON.parse(text) as LogEntry);
    return [...subAgentIds(entries)].flatMap((child) => {
      const own = this.#kept.get(child);
      const isOwn = isSubAgentOf(JSON.parse(own?.texts[0] ?? 'null') ?? undefined, kept?.id ?? '');
      return own && (isOwn || this.#is('deletes what only claims to be a sub-agent'))
        ? [child, ...this.#subAgentsOf(own)]
        : [];
    });
  }

  #page(found: readonly ConversationInfo[], options: ListOptions): ConversationInfo[] {
    const { owner, status, limit, cursor } = options;
    const wanted: ListOptions = {
      owner: this.#is('lists every owner') || this.#is('matches owners without their case') ? undefined : owner,
      status:
        this.#is('lists every status') ||
        (owner !== undefined && this.#is('forgets the status where it looks for an owner'))
          ? undefined
          : status,
    };
    if (this.#is('takes any cursor') && cursor !== undefined && !/^-?\d+:/.test(cursor)) return [];
    let rows = pageOf(found, { ...wanted, cursor: this.#is('ignores the cursor') ? undefined : cursor });
    if (owner !== undefined && this.#is('matches owners without their case'))
      rows = rows.filter((row) => row.owner?.toLowerCase() === owner.toLowerCase());
    if (this.#is('pages by the number of rows')) {
      const all = pageOf(found, wanted);
      rows = all.slice(this.#places.get(cursor ?? '') ?? 0);
      for (const [at, row] of all.entries()) if (row.cursor) this.#places.set(row.cursor, at + 1);
    }
    if (this.#is('repeats the last row on the next page') && cursor !== undefined) {
      const all = pageOf(found, wanted);
      rows = [...all.filter((row) => row.cursor === cursor), ...rows];
    }
    if (this.#is('counts other rows in the limit') && limit !== undefined)
      rows = rows.filter((row) =>
        pageOf(found)
          .slice(0, limit)
          .some(({ id }) => id === row.id),
      );
    if (this.#is('gives one cursor for every row')) rows = rows.map((row) => ({ ...row, cursor: '0:' }));
    if (this.#is('lists no title')) for (const row of rows) delete row.title;
    if (this.#is('keeps eighty letters of a title'))
      for (const row of rows) if (row.title) row.title = row.title.slice(0, 80);
    if (this.#is('lists in order of age')) rows.reverse();
    return this.#is('ignores the limit') ? rows : rows.slice(0, limit);
  }

  #newBlobs(): Blobs {
    return this.#is('has blobs in common for all conversations') ? this.#common : new Blobs(this.#is);
  }

  #keyOf(id: string): string {
    return names(idFaults).reduce((key, fault) => (this.#is(fault) ? idFaults[fault](key) : key), id);
  }

  #lookedAt(key: string, kept: Kept): ConversationInfo | null {
    let row: ConversationRow | undefined;
    const texts = this.#is('lists what was there at the last opening') ? kept.listed : kept.texts;
    const entries = texts.map((text) => JSON.parse(text) as LogEntry);
    for (const entry of entries) {
      let seen: LogEntry | null = entry;
      for (const fault of names(sights)) if (seen && this.#is(fault)) seen = sights[fault](seen);
      if (seen?.type === 'renamed' && this.#is('keeps the first title')) continue;
      if (seen) row = addToRow(row, seen, kept.id);
    }
    const held = this.#leases.has(key);
    let info = listedRow(row, held ? 'self' : 'nobody');
    if (!info && entries.length === 0 && this.#is('lists empty conversations')) {
      info = { ...NEVER_USED, id: kept.id };
    }
    const seen = { held, first: entries[0], last: entries.at(-1) };
    for (const fault of names(listings)) if (info && this.#is(fault)) info = listings[fault](info, seen);
    return info;
  }
}
