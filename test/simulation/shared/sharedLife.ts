/**
 * One life of several processes that serve the same conversations over one database. Invariant: the seed or the tape determines
 * everything. At the end the faults are switched off, and every conversation comes to rest, is cancelled, and answers again.
 */
import type { LogEntry } from '../../../machines/internal.ts';
import { everyPart } from '../../../src/onDemand.ts';
import { recorded, seeded, type Tape } from '../../../src/testing/simulation/choiceTape.ts';
import { watchUncaught } from '../../../src/testing/simulation/simulationLoop.ts';
import type { Violation } from '../../../src/testing/simulation/world/simulatedWorld.ts';
import { SharedChecks } from './sharedChecks.ts';
import { SharedClients } from './sharedClients.ts';
import { SharedLoop } from './sharedLoop.ts';
import { SharedReader } from './sharedReaders.ts';
import { SharedWorld } from './sharedWorld.ts';
import { SimulatedProcess } from './simulatedProcess.ts';
import { ToolLedger } from './toolLedger.ts';

export interface SharedReport {
  readonly seed: number;
  readonly steps: number;
  readonly crashes: number;
  readonly takeovers: number;
  readonly logs: Readonly<Record<string, readonly LogEntry[]>>;
  readonly tape: readonly number[];
  readonly violations: readonly Violation[];
  readonly faults: Readonly<Record<string, number>>;
}

export interface SharedOptions {
  seed: number;
  tape?: readonly number[] | undefined;
  trace?: ((line: string) => void) | undefined;
}

/** The data that the client of a life shares with its other parts. */
export interface SharedLife {
  readonly shared: SharedWorld;
  readonly processes: readonly SimulatedProcess[];
  readonly clients: SharedClients;
  readonly readers: readonly SharedReader[];
  readonly checks: SharedChecks;
  readonly ids: readonly string[];
}

export async function simulateShared({ seed, tape: numbers, trace }: SharedOptions): Promise<SharedReport> {
  await everyPart();
  const tape: Tape = numbers ? recorded(numbers) : seeded(seed);
  const shared = new SharedWorld(tape);
  if (trace) shared.trace = (line) => trace(`${shared.clock.elapsedMs.toFixed(0).padStart(8)} ${line}`);
  const unwatch = watchUncaught((error) => shared.violate('uncaught', textOf(error)));
  // The only id that the library takes from the platform here: that of an act for another process.
  const { randomUUID } = crypto;
  crypto.randomUUID = () => shared.newId() as ReturnType<typeof randomUUID>;
  const life = lifeOf(shared);
  const loop = new SharedLoop(life);
  try {
    await loop.run();
  } catch (error) {
    shared.violate('uncaught', textOf(error));
  } finally {
    crypto.randomUUID = randomUUID;
    unwatch();
  }
  return {
    seed,
    steps: loop.steps,
    crashes: life.processes.reduce((sum, { world }) => sum + world.processId, 0),
    takeovers: life.checks.takeovers,
    logs: Object.fromEntries(life.ids.map((id) => [id, life.checks.logOf(id)])),
    tape: tape.taken,
    violations: shared.violations,
    faults: Object.fromEntries(shared.faults),
  };
}

const textOf = (error: unknown): string => (error instanceof Error ? (error.stack ?? error.message) : String(error));

function lifeOf(shared: SharedWorld): SharedLife {
  const checks = new SharedChecks(shared);
  const logOf = (id: string): readonly LogEntry[] => checks.logOf(id);
  const processes: SimulatedProcess[] = [];
  const site = {
    shared,
    ledger: new ToolLedger(shared, logOf),
    executed: checks.executed,
    notify: (payload: string) => {
      for (const process of processes) process.notified(payload);
    },
  };
  const { processes: places, conversations } = shared.profile;
  for (let place = 0; place < places; place += 1) processes.push(new SimulatedProcess(site, place));
  const ids = Array.from({ length: conversations }, (_, index) => `c${index}`);
  const readers = ids.flatMap((id) => [new SharedReader(shared, id), new SharedReader(shared, id)]);
  return { shared, processes, clients: new SharedClients(shared, processes, checks), readers, checks, ids };
}
