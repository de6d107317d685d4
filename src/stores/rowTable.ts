/**
 * The rows of a store in the order of its list: last used first, then by id. Invariant: a page begins after the place that
 * its cursor names, whatever has changed since, and a change of a row costs nothing until the next list.
 */
import { ConfigurationError, RunchartError } from '../errors.ts';
import { type ConversationRow, type Holder, listedRow, statusOf } from './conversationRow.ts';
import type { ConversationInfo, ListOptions, LogStore } from './logStore.ts';

type Place = Pick<ConversationInfo, 'updatedAt' | 'id'>;

/** Negative where `a` comes first in a list. */
const order = (a: Place, b: Place): number => b.updatedAt - a.updatedAt || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);

/** Names the place of a row. The next page begins after it. */
export const cursorOf = ({ updatedAt, id }: Place): string => `${updatedAt}:${id}`;

/** Throws ConfigurationError for a text that no list has given. */
export function placeOf(cursor: string): Place {
  const colon = cursor.indexOf(':');
  const time = cursor.slice(0, colon);
  const updatedAt = Number(time);
  if (colon > 0 && time.trim() === time && Number.isFinite(updatedAt))
    return { updatedAt, id: cursor.slice(colon + 1) };
  throw new ConfigurationError(`expected the cursor of a row, got ${JSON.stringify(cursor.slice(0, 80))}`);
}

/** The page of a list that is complete, for a store that keeps no rows. */
export function pageOf(list: readonly ConversationInfo[], options: ListOptions = {}): ConversationInfo[] {
  const { owner, status, limit = Number.POSITIVE_INFINITY, cursor } = options;
  const after = cursor === undefined ? undefined : placeOf(cursor);
  return list
    .filter((info) => (after === undefined || order(after, info) < 0) && isWanted(info, owner, status))
    .sort(order)
    .slice(0, limit)
    .map((info) => ({ ...info, cursor: cursorOf(info) }));
}

const isWanted = (info: ConversationInfo, owner?: string, status?: string): boolean =>
  (owner === undefined || info.owner === owner) && (status === undefined || info.status === status);

export class RowTable {
  readonly #rows = new Map<string, ConversationRow>();
  #sorted: ConversationRow[] = [];
  /** The ids of rows that may have another place, or are new or gone. */
  readonly #changed = new Set<string>();

  get(id: string): ConversationRow | undefined {
    return this.#rows.get(id);
  }

  /** Puts a row, or the same row after a change. Undefined removes it. */
  set(id: string, row: ConversationRow | undefined): void {
    if (row) this.#rows.set(id, row);
    else if (!this.#rows.delete(id)) return;
    this.#changed.add(id);
  }

  /** The listed rows after the cursor, in order, with their status. Throws ConfigurationError for an invalid cursor. */
  page(options: ListOptions, holderOf: HolderOf): ConversationInfo[] {
    const rows = this.#inOrder();
    const { cursor } = options;
    return pageIn(rowsFrom(rows, cursor === undefined ? 0 : placeAfter(rows, placeOf(cursor))), options, holderOf);
  }

  #inOrder(): readonly ConversationRow[] {
    if (this.#changed.size === 0) return this.#sorted;
    const kept = this.#sorted.filter(({ id }) => !this.#changed.has(id));
    const fresh = [...this.#changed].flatMap((id) => this.#rows.get(id) ?? []).sort(order);
    this.#changed.clear();
    this.#sorted = merged(kept, fresh);
    return this.#sorted;
  }
}

export type HolderOf = (row: ConversationRow) => Holder;

/** The page that begins with the first of these rows, which are in order. Reads no more rows than it needs. */
export function pageIn(
  rows: Iterable<ConversationRow>,
  { owner, status, limit = Number.POSITIVE_INFINITY }: ListOptions,
  holderOf: HolderOf,
): ConversationInfo[] {
  const page: ConversationInfo[] = [];
  if (page.length >= limit) return page;
  for (const row of rows) {
    if (row.parentId !== undefined || (owner !== undefined && row.owner !== owner)) continue;
    const holder = holderOf(row);
    if (status !== undefined && statusOf(row, holder) !== status) continue;
    const info = listedRow(row, holder);
    if (info && page.push({ ...info, cursor: cursorOf(row) }) >= limit) break;
  }
  return page;
}

function* rowsFrom(rows: readonly ConversationRow[], from: number): Generator<ConversationRow> {
  for (let at = from; at < rows.length; at += 1) yield rows[at] as ConversationRow;
}

function merged(kept: readonly ConversationRow[], fresh: readonly ConversationRow[]): ConversationRow[] {
  const all: ConversationRow[] = [];
  let next = 0;
  for (const row of fresh) {
    for (let other = kept[next]; other && order(other, row) < 0; other = kept[next]) {
      all.push(other);
      next += 1;
    }
    all.push(row);
  }
  for (; next < kept.length; next += 1) all.push(kept[next] as ConversationRow);
  return all;
}

/** The index of the first row after the place. */
function placeAfter(rows: readonly ConversationRow[], place: Place): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (order(rows[middle] as ConversationRow, place) <= 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The rows that are read at once. */
const PAGE = 200;

/**
 * Deletes the conversations that were last used before a time (milliseconds since 1970), with their sub-agents. Resolves with
 * their ids. One that is open, here or elsewhere, is kept. Rejects with ConfigurationError for an invalid time.
 */
export async function deleteBefore(store: LogStore, time: number): Promise<string[]> {
  if (!Number.isFinite(time))
    throw new ConfigurationError(`deleteBefore expects a time in milliseconds, got ${String(time).slice(0, 40)}`);
  const deleted: string[] = [];
  // The place of a conversation that was used at this time and comes first.
  for (let cursor = cursorOf({ updatedAt: time, id: '' }); ; ) {
    const options = { cursor, limit: PAGE };
    const page = pageOf(await store.list(options), options);
    for (const { id, updatedAt } of page) {
      if (updatedAt < time && (await isDeleted(store, id))) deleted.push(id);
    }
    const last = page.at(-1);
    if (!last || page.length < PAGE) return deleted;
    cursor = cursorOf(last);
  }
}

/** False for an open conversation. */
async function isDeleted(store: LogStore, id: string): Promise<boolean> {
  try {
    await store.delete(id);
    return true;
  } catch (error) {
    if (RunchartError.isRunchartError(error) && error.code === 'session_busy') return false;
    throw error;
  }
}
