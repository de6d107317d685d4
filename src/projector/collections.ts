/**
 * The persistent list and numbers by key. Rule: the holder of the owner's number changes a list in place, everybody else
 * gets a copy of the few nodes on the path; a new number makes every list handed out before immutable, so that a
 * snapshot costs nothing. A branch of a lookup never writes into what it branched from.
 */
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
