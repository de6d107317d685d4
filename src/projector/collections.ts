/**
 * Values that never change: frozen copies of foreign JSON, the persistent list, and numbers by key. Rule: the holder of the owner's
 * number changes a list in place, everybody else gets a copy of the nodes on the path; a new number makes every list handed out
 * before immutable. A copy has own keys only and is bounded; a value that is not JSON gives undefined as a whole.
 */
import type { Json } from '../../machines/vocabulary.ts';

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

const DEPTH_MAX = 512;
const VALUES_MAX = 1_000_000;

interface Budget {
  left: number;
}

/** A frozen copy, or undefined where the value is not JSON. A throwing getter or proxy throws. */
export const copyJson = (value: unknown): Json | undefined => copy(value, 0, { left: VALUES_MAX });

/** Does `copyJson` take it? Never throws. */
export function isJson(value: unknown): value is Json {
  try {
    return copyJson(value) !== undefined;
  } catch {
    return false;
  }
}

function copy(value: unknown, depth: number, budget: Budget): Json | undefined {
  if (typeof value === 'string' || typeof value === 'boolean' || value === null) return value;
  // A stored log has no negative zero, so a live one must not show it either.
  if (typeof value === 'number') return Number.isFinite(value) ? value + 0 : undefined;
  if (typeof value !== 'object' || depth >= DEPTH_MAX) return undefined;
  if (Array.isArray(value)) return copyList(value, depth, budget);
  return isPlain(value) ? copyRecord(value as Record<string, unknown>, depth, budget) : undefined;
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
    // Data under this key would become the prototype of whatever it is assigned to later.
    if (key === '__proto__') continue;
    if (--budget.left < 0) return undefined;
    const one = copy(record[key], depth + 1, budget);
    if (one === undefined) return undefined;
    copies[key] = one;
  }
  return Object.freeze(copies);
}

/** A record of any realm: its prototype is none, or one that has none. */
function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null;
}

const EMPTY: never[] = [];
Object.freeze(EMPTY);

/** Frozen in fact, while the public types say a plain list. All empty lists are one. */
export function freezeList<T>(list: T[]): T[] {
  if (list.length === 0) return EMPTY;
  Object.freeze(list);
  return list;
}
