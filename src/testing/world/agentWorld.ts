/** The surroundings of an agent under test. A test's factory spreads it into `createAgent`, as the last argument. */
import type { Model } from '../../models/model.ts';
import type { InspectObserver } from '../../options.ts';
import type { Ports } from '../../runtime/hostPorts.ts';
import type { LogStore } from '../../stores/logStore.ts';

/** The options of `createAgent` that a simulation or a generated case provides. */
export interface AgentWorld {
  /** Calls the offered tools, and fails as models do. */
  readonly model: Model;
  /** The store outlives a crash. */
  readonly store: LogStore;
  /** The clock and all other ports that a seed determines. */
  readonly ports: Partial<Ports>;
  /** Observes the charts of the agent. */
  readonly inspect: InspectObserver;
}
