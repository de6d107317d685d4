/** What surrounds an agent under test. A test's factory spreads it into `createAgent`, last. */
import type { Model } from '../../models/model.ts';
import type { InspectObserver } from '../../options.ts';
import type { Ports } from '../../runtime/hostPorts.ts';
import type { LogStore } from '../../stores/logStore.ts';

export interface AgentWorld {
  /** Calls the tools it is offered, and fails as models do. */
  readonly model: Model;
  /** Outlives a crash. */
  readonly store: LogStore;
  /** The clock and everything else that a seed decides. */
  readonly ports: Partial<Ports>;
  readonly inspect: InspectObserver;
}
