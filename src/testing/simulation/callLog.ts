/**
 * The calls of one log, and the number of each kind of entry, outcome, decision and stop. Invariant: it reads only
 * entries.
 */
import type { LogEntry } from '../../../machines/internal.ts';
import type { SimulatedWorld } from './world/simulatedWorld.ts';

export interface LoggedCall {
  readonly name: string;
  isEnded: boolean;
  /** The number of its last suspension. */
  suspension: number;
}

export class CallLog {
  readonly calls = new Map<string, LoggedCall>();
  readonly #world: SimulatedWorld;

  constructor(world: SimulatedWorld) {
    this.#world = world;
  }

  learn(entry: LogEntry): void {
    const world = this.#world;
    world.reach('entries', entry.type);
    if (entry.type === 'run-stop') world.reach('stops', `${entry.reason} ${entry.cause ?? ''}`);
    if (entry.type === 'agent-output' && entry.item.type === 'tool-call') {
      const { callId, name } = entry.item;
      this.calls.set(callId, { name, isEnded: false, suspension: 0 });
    }
    const call = 'callId' in entry && entry.callId !== undefined ? this.calls.get(entry.callId) : undefined;
    if (call) this.#learnOf(call, entry);
  }

  #learnOf(call: LoggedCall, entry: LogEntry): void {
    const world = this.#world;
    switch (entry.type) {
      case 'tool-started':
        call.isEnded = false;
        return;
      case 'tool-suspended':
        call.isEnded = false;
        call.suspension = entry.suspension;
        return world.reach('decisions', 'asked');
      case 'tool-result':
        call.isEnded = true;
        return world.reach('outcomes', entry.code === undefined ? entry.outcome : `${entry.outcome} ${entry.code}`);
      case 'decision': {
        const { action } = entry.decision;
        return world.reach('decisions', entry.suspension > call.suspension ? `early ${action}` : action);
      }
    }
  }
}
