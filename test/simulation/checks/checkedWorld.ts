/**
 * A simulated world that also records the data of its checks: facts from outside the library, and a watch on each log.
 */
import type { LogEntry } from '../../../machines/internal.ts';
import type { DeepPartial, Policies } from '../../../src/agentPolicies.ts';
import type { Tape } from '../../../src/testing/simulation/choiceTape.ts';
import { SimulatedWorld } from '../../../src/testing/simulation/world/simulatedWorld.ts';
import type { Answers } from '../agent/answerForms.ts';
import { drawFullProfile, type FullProfile } from '../agent/fullProfile.ts';
import type { Equipment } from '../equipment/equipment.ts';
import { LifeFacts } from './lifeFacts.ts';
import { LogWatch } from './logWatch.ts';

export class CheckedWorld extends SimulatedWorld {
  declare readonly profile: FullProfile;
  /** The policies of the agent. Undefined if the test provides its own agent. */
  readonly policies: DeepPartial<Policies> | undefined;
  readonly facts = new LifeFacts();
  /** The runs whose stop or suspension the store refused. */
  readonly lostStops = new Set<string>();
  /** The additional equipment of the agent. */
  equipment: readonly Equipment[] = [];
  readonly #watches = new Map<string, LogWatch>();

  /** `examples` is `args` of `simulate`. `isFull`: the agent has every ability. */
  constructor(
    tape: Tape,
    { examples, isFull }: { examples?: SimulatedWorld['examples'] | undefined; isFull: boolean },
  ) {
    const profile = drawFullProfile(tape);
    super(tape, profile, { examples, waitsInRealTime: !isFull });
    this.policies = isFull ? profile.policies : undefined;
  }

  /** The schemas of final answers. */
  get answers(): Answers | undefined {
    return this.policies && this.profile.answers;
  }

  watchOf(id: string): LogWatch {
    const existing = this.#watches.get(id) ?? new LogWatch(this, id);
    this.#watches.set(id, existing);
    return existing;
  }

  /** Records entries that the store refused. */
  lose(entries: readonly LogEntry[]): void {
    this.facts.lose(entries);
    for (const { type, runId } of entries) {
      if (type === 'run-stop' || type === 'run-suspended') this.lostStops.add(runId ?? '');
    }
  }
}
