/**
 * The persistent list, the index of calls by id, and numbers by key. Rule: the holder of the owner's number changes a
 * list in place, everybody else gets a copy of the few nodes on the path; a new number makes every list handed out
 * before immutable, so that a snapshot costs nothing. The index holds hashes and places and is touched once a call,
 * where a Map of many strings misses every cache; ids made to collide move it into a Map. A branch of a lookup never
 * writes into what it branched from.
 */
import type { ToolCallView } from './view.ts';

const BITS = 5;
const WIDTH = 1 << BITS;
const MASK = WIDTH - 1;

/** A leaf's slots are values, a branch's are nodes. */
interface Node {
  owner: number;
  slots: unknown[];
}

export class List<T> {
  size = 0;
  private owner: number;
  /** The tree's height in bits. The last values stand outside of it, in the tail. */
  private shift = BITS;
  private root: Node;
  private tail: T[];

  constructor(owner: number, root: Node = { owner, slots: [] }, tail: T[] = new Array(WIDTH)) {
    this.owner = owner;
    this.root = root;
    this.tail = tail;
  }

  /** `index` must lie within the list. */
  at(index: number): T {
    if (index >= tailBegin(this.size)) return this.tail[index & MASK] as T;
    let node = this.root;
    for (let level = this.shift; level > 0; level -= BITS) node = node.slots[(index >>> level) & MASK] as Node;
    return node.slots[index & MASK] as T;
  }

  push(owner: number, value: T): List<T> {
    const list = this.ownedBy(owner);
    const at = list.size & MASK;
    if (at === 0 && list.size > 0) {
      list.sink({ owner, slots: list.tail });
      list.tail = new Array(WIDTH);
    }
    list.tail[at] = value;
    list.size++;
    return list;
  }

  replace(owner: number, index: number, value: T): List<T> {
    const list = this.ownedBy(owner);
    if (index >= tailBegin(list.size)) {
      list.tail[index & MASK] = value;
      return list;
    }
    list.root = ownedNode(list.root, owner);
    let node = list.root;
    for (let level = list.shift; level > 0; level -= BITS) {
      const at = (index >>> level) & MASK;
      const child = ownedNode(node.slots[at] as Node, owner);
      node.slots[at] = child;
      node = child;
    }
    node.slots[index & MASK] = value;
    return list;
  }

  slice(from: number, to: number): T[] {
    const values = new Array<T>(Math.max(0, to - from));
    for (let i = from; i < to; i++) values[i - from] = this.at(i);
    return values;
  }

  private ownedBy(owner: number): List<T> {
    if (this.owner === owner) return this;
    const list = new List<T>(owner, this.root, this.tail.slice());
    list.size = this.size;
    list.shift = this.shift;
    return list;
  }

  /** Takes the full tail into the tree, which grows by a level where it is full. */
  private sink(leaf: Node): void {
    const { owner } = leaf;
    const index = tailBegin(this.size);
    if (index === 1 << (this.shift + BITS)) {
      this.root = { owner, slots: [this.root] };
      this.shift += BITS;
    }
    this.root = ownedNode(this.root, owner);
    let node = this.root;
    for (let level = this.shift; level > BITS; level -= BITS) {
      const at = (index >>> level) & MASK;
      const there = node.slots[at] as Node | undefined;
      const child = there === undefined ? { owner, slots: [] } : ownedNode(there, owner);
      node.slots[at] = child;
      node = child;
    }
    node.slots[(index >>> BITS) & MASK] = leaf;
  }
}

/** The tail holds the last values, one at least. */
const tailBegin = (size: number): number => (size === 0 ? 0 : (size - 1) & ~MASK);

const ownedNode = (node: Node, owner: number): Node =>
  node.owner === owner ? node : { owner, slots: node.slots.slice() };

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

export class Lookup<K> {
  private readonly own = new Map<K, number>();
  private readonly base: Lookup<K> | undefined;

  constructor(base?: Lookup<K>) {
    this.base = base;
  }

  get(key: K): number | undefined {
    const value = this.own.get(key);
    return value === undefined && this.base !== undefined ? this.base.get(key) : value;
  }

  /** Says whether the key is new. */
  set(key: K, value: number): boolean {
    const { size } = this.own;
    this.own.set(key, value);
    return this.own.size > size && this.base?.get(key) === undefined;
  }
}
