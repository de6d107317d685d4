/**
 * Immutable values: frozen copies of foreign JSON, a persistent list, and numbers by key. Invariant: only the holder
 * of a list's owner number changes it in place; others copy the nodes on the path. A new owner number makes all older
 * lists immutable. A JSON copy has own keys only and a limited size; a value that is not JSON gives undefined.
 */
import type { Json } from '../../machines/vocabulary.ts';

const BITS = 5;
const WIDTH = 1 << BITS;
const MASK = WIDTH - 1;

/** Leaves hold values, branches hold nodes. */
interface Node {
  owner: number;
  slots: unknown[];
}

export class List<T> {
  size = 0;
  private owner: number;
  /** The height of the tree in bits. The last values are outside the tree, in `tail`. */
  private shift = BITS;
  private root: Node;
  private tail: T[];

  constructor(owner: number, root: Node = { owner, slots: [] }, tail: T[] = new Array(WIDTH)) {
    this.owner = owner;
    this.root = root;
    this.tail = tail;
  }

  /** `index` must be within the list. */
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

  /** Moves the full tail into the tree. A full tree grows by one level. */
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

/** The tail of a list that is not empty has at least one value. */
const tailBegin = (size: number): number => (size === 0 ? 0 : (size - 1) & ~MASK);

const ownedNode = (node: Node, owner: number): Node =>
  node.owner === owner ? node : { owner, slots: node.slots.slice() };

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

  /** Returns true if the key is new. */
  set(key: K, value: number): boolean {
    const { size } = this.own;
    this.own.set(key, value);
    return this.own.size > size && this.base?.get(key) === undefined;
  }
}

const DEPTH_MAX = 512;
const VALUES_MAX = 1_000_000;

interface Budget {
  left: number;
}

/** Returns a frozen copy, or undefined if the value is not JSON. Errors of getters and proxies are thrown. */
export const copyJson = (value: unknown): Json | undefined => copy(value, 0, { left: VALUES_MAX });

/** Returns true if `copyJson` accepts the value. Never throws. */
export function isJson(value: unknown): value is Json {
  try {
    return copyJson(value) !== undefined;
  } catch {
    return false;
  }
}

function copy(value: unknown, depth: number, budget: Budget): Json | undefined {
  if (typeof value === 'string' || typeof value === 'boolean' || value === null) return value;
  // A stored log has no negative zero, so a live log must not show one.
  if (typeof value === 'number') return Number.isFinite(value) ? value + 0 : undefined;
  if (typeof value !== 'object' || depth >= DEPTH_MAX) return undefined;
  if (Array.isArray(value)) return copyList(value, depth, budget);
  return isPlainRecord(value) ? copyRecord(value as Record<string, unknown>, depth, budget) : undefined;
}

function copyList(list: readonly unknown[], depth: number, budget: Budget): Json[] | undefined {
  const { length } = list;
  budget.left -= length;
  if (budget.left < 0) return undefined;
  const copies = new Array<Json>(length);
  for (let i = 0; i < length; i++) {
    const one = copy(list[i], depth + 1, budget);
    if (one === undefined) return undefined;
    copies[i] = one;
  }
  return freezeList(copies);
}

function copyRecord(record: Record<string, unknown>, depth: number, budget: Budget): Json | undefined {
  const copies: { [key: string]: Json } = {};
  for (const key of Object.keys(record)) {
    // A value under this key would become the prototype of the object it is assigned to later.
    if (key === '__proto__') continue;
    if (--budget.left < 0) return undefined;
    const one = copy(record[key], depth + 1, budget);
    if (one === undefined) return undefined;
    copies[key] = one;
  }
  return Object.freeze(copies);
}

/** Accepts records of every realm: their prototype is null, or has no prototype itself. */
function isPlainRecord(value: object): boolean {
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null;
}

const EMPTY: never[] = [];
Object.freeze(EMPTY);

/** The list is frozen, although the public type is a plain array. All empty lists are the same object. */
export function freezeList<T>(list: T[]): T[] {
  if (list.length === 0) return EMPTY;
  Object.freeze(list);
  return list;
}
