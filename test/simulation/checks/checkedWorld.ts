/** A simulated world that also keeps what its checks compare: facts from outside the library, and a watch on each log. */
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
  /** Policies of the agent; undefined if the test brings its own agent. */
  readonly policies: DeepPartial<Policies> | undefined;
  readonly facts = new LifeFacts();
  /** Runs whose stop or suspension the store refused. */
  readonly lostStops = new Set<string>();
  /** What the agent has besides what every simulated agent has. */
  equipment: readonly Equipment[] = [];
  readonly #watches = new Map<string, LogWatch>();

  /** `examples` as in `args` of `simulate`; `isFull`: the agent is the one that has everything. */
  constructor(
    tape: Tape,
    { examples, isFull }: { examples?: SimulatedWorld['examples'] | undefined; isFull: boolean },
  ) {
    const profile = drawFullProfile(tape);
    super(tape, profile, { examples, waitsInRealTime: !isFull });
    this.policies = isFull ? profile.policies : undefined;
  }

  /** How final answers are held to a schema. */
  get answers(): Answers | undefined {
    return this.policies && this.profile.answers;
  }

  watchOf(id: string): LogWatch {
    const existing = this.#watches.get(id) ?? new LogWatch(this, id);
    this.#watches.set(id, existing);
    return existing;
  }

  /** The store refused these entries. */
  lose(entries: readonly LogEntry[]): void {
    this.facts.lose(entries);
    for (const { type, runId } of entries) {
      if (type === 'run-stop' || type === 'run-suspended') this.lostStops.add(runId ?? '');
    }
  }
}
