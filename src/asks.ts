/**
 * What charts have asked for and were not answered yet, and who asked. Rule: an answer goes to the actor that asked;
 * what was dropped before it began never begins.
 */
import type { EffectRequest } from '../machines/internal.ts';
import type { ChartRef } from './runtime/interpreter/interpreter.ts';

export class Asks {
  readonly #askers = new Map<string, ChartRef>();
  #ofStep: EffectRequest[] = [];
  #drops: string[] = [];

  add(asker: ChartRef, request: EffectRequest): void {
    this.#ofStep.push(request);
    this.#askers.set(request.id, asker);
  }

  /** What was asked for since the last time, in ask order. */
  take(): EffectRequest[] {
    const asks = this.#ofStep;
    this.#ofStep = [];
    return asks;
  }

  /** What tells that runs are over. */
  takeEnds(): EffectRequest[] {
    const ends = this.#ofStep.filter(({ kind }) => kind === 'ended');
    if (ends.length > 0) this.#ofStep = this.#ofStep.filter(({ kind }) => kind !== 'ended');
    return ends;
  }

  /** The prefixes that were dropped since the last time, in order. */
  takeDrops(): string[] {
    const drops = this.#drops;
    this.#drops = [];
    return drops;
  }

  /** Whether the answer is still wanted. */
  isOpen({ id }: EffectRequest): boolean {
    return this.#askers.has(id);
  }

  /** Who asked; nobody waits any more then. */
  close(id: string): ChartRef | undefined {
    const asker = this.#askers.get(id);
    this.#askers.delete(id);
    return asker;
  }

  /** What was under way is ended once the charts have settled. */
  drop(prefix: string): void {
    this.#drops.push(prefix);
    this.#ofStep = this.#ofStep.filter(({ id }) => !id.startsWith(prefix));
    for (const id of this.#askers.keys()) if (id.startsWith(prefix)) this.#askers.delete(id);
  }
}
