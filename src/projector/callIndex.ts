/**
 * Calls of a long cycle by their ids. Rule: it holds hashes and places, the ids stay in the list of calls. A Map of so
 * many strings lies outside of every cache and is touched several times a call; this table is touched once. Its hash
 * is no secret, so ids that were made to collide move it into a Map.
 */
import type { List } from './list.ts';
import type { ToolCallView } from './view.ts';

type Calls = List<ToolCallView>;

const FIRST_SLOTS = 64;
/** A table that is half empty has no such runs by chance. */
const PROBES_MAX = 128;
/** Of a longer id its end is hashed: beginnings are often the same. */
const HASHED_MAX = 32;

export class CallIndex {
  /** Slot by slot the hash, then the place from 1 on; 0 where nothing is. */
  private table: Int32Array = new Int32Array(2 * FIRST_SLOTS);
  private size = 0;
  private map: Map<string, number> | undefined;
  private readonly base: CallIndex | undefined;

  /** A branch never writes into what it branched from. */
  constructor(base?: CallIndex) {
    this.base = base;
  }

  get(calls: Calls, id: string): number | undefined {
    return this.own(calls, id) ?? this.base?.get(calls, id);
  }

  /** Gives the id another place. Says whether it is new. All calls but this one must be in the list. */
  set(calls: Calls, id: string, place: number): boolean {
    const isNew = this.put(calls, id, place);
    return isNew && this.base?.get(calls, id) === undefined;
  }

  private own(calls: Calls, id: string): number | undefined {
    if (this.map !== undefined) return this.map.get(id);
    const slot = slotOf(this.table, hashOf(id), (place) => calls.at(place).callId === id);
    const found = slot < 0 ? 0 : (this.table[slot + 1] as number);
    return found === 0 ? undefined : found - 1;
  }

  private put(calls: Calls, id: string, place: number): boolean {
    const hash = hashOf(id);
    const slot = this.map === undefined ? slotOf(this.table, hash, (at) => calls.at(at).callId === id) : -1;
    if (slot < 0) {
      this.map ??= mapOf(this.table, calls);
      const { size } = this.map;
      return this.map.set(id, place).size > size;
    }
    const isNew = this.table[slot + 1] === 0;
    this.table[slot] = hash;
    this.table[slot + 1] = place + 1;
    if (isNew && ++this.size * 4 > this.table.length) this.table = doubled(this.table);
    return isNew;
  }
}

/** Where the hash's entry is or goes, -1 where too many others are in its way. */
function slotOf(table: Int32Array, hash: number, isSame: (place: number) => boolean): number {
  const mask = table.length - 1;
  let slot = (hash << 1) & mask;
  for (let probes = 0; probes < PROBES_MAX; probes++) {
    const place = table[slot + 1] as number;
    if (place === 0 || (table[slot] === hash && isSame(place - 1))) return slot;
    slot = (slot + 2) & mask;
  }
  return -1;
}

function doubled(table: Int32Array): Int32Array {
  const next = new Int32Array(2 * table.length);
  const mask = next.length - 1;
  for (let at = 0; at < table.length; at += 2) {
    const place = table[at + 1] as number;
    if (place === 0) continue;
    const hash = table[at] as number;
    let slot = (hash << 1) & mask;
    while (next[slot + 1] !== 0) slot = (slot + 2) & mask;
    next[slot] = hash;
    next[slot + 1] = place;
  }
  return next;
}

function mapOf(table: Int32Array, calls: Calls): Map<string, number> {
  const map = new Map<string, number>();
  for (let at = 1; at < table.length; at += 2) {
    const place = table[at] as number;
    if (place !== 0) map.set(calls.at(place - 1).callId, place - 1);
  }
  return map;
}

function hashOf(id: string): number {
  let hash = id.length;
  for (let i = Math.max(0, id.length - HASHED_MAX); i < id.length; i++) {
    hash = Math.imul(hash ^ id.charCodeAt(i), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x7feb352d);
  hash = Math.imul(hash ^ (hash >>> 15), 0x846ca68b);
  return (hash ^ (hash >>> 16)) | 0;
}
