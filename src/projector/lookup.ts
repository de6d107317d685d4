/**
 * Numbers by key. Rule: it only grows, and a branch of it never writes into what it branched from. A Map, so that no id
 * is special.
 */
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
