/**
 * The call ids of a family: a conversation and its sub-agents. Rule: within a family an id means one call, since a
 * person decides about calls by their ids at the root.
 */
import type { Knowledge } from '../../machines/internal.ts';

export class Claims {
  readonly #members = new Set<Knowledge>();
  /** Ids of calls that are made and may not be in a log yet. */
  readonly #kept = new Map<string, Knowledge>();

  join(member: Knowledge): void {
    this.#members.add(member);
  }

  leave(member: Knowledge): void {
    this.#members.delete(member);
    for (const [id, keeper] of this.#kept) if (keeper === member) this.#kept.delete(id);
  }

  /** Keeps the id for a call of this member; false where it means another one's. */
  claim(member: Knowledge, id: string): boolean {
    const keeper = this.#kept.get(id);
    if (keeper && keeper !== member) return false;
    for (const other of this.#members) if (other !== member && other.calls.has(id)) return false;
    this.#kept.set(id, member);
    return true;
  }
}
