/** What a log says of its conversation's sub-agents, entry by entry. Rule: constant cost an entry. */
import { countedIn, type LogEntry } from '../../machines/internal.ts';

export interface Told {
  /** Seq of the entry that says it ended. */
  ended?: number;
  /** How many entries of its log are counted in. */
  upTo: number;
}

export class ToldBook {
  /** By call and by the sub-agents' ids. */
  readonly #calls = new Map<string, Map<string, Told>>();

  learn(entry: LogEntry): void {
    if (entry.type === 'sub-agent') {
      const told = this.#open(entry.callId, entry.child);
      if (entry.phase === 'ended') told.ended ??= entry.seq;
      return;
    }
    const counted = countedIn(entry);
    const told = counted && this.of(counted.callId, counted.conversationId);
    if (told) told.upTo = counted.upTo;
  }

  of(callId: string, id: string): Told | undefined {
    return this.#calls.get(callId)?.get(id);
  }

  /** The calls that spawned any, and whether some of them have not ended. */
  *calls(): Generator<{ callId: string; unended: boolean }> {
    for (const [callId, told] of this.#calls) {
      yield { callId, unended: [...told.values()].some(({ ended }) => ended === undefined) };
    }
  }

  #open(callId: string, id: string): Told {
    const ofCall = this.#calls.get(callId) ?? new Map<string, Told>();
    this.#calls.set(callId, ofCall);
    const told = ofCall.get(id) ?? { upTo: 0 };
    ofCall.set(id, told);
    return told;
  }
}
