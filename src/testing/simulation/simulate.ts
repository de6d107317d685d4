/**
 * Simulates one conversation: real charts and runtime, with models, stores and a host that fail in every way.
 * Invariant: the seed or the tape determines everything. The same numbers give the same log, byte for byte. Such a run
 * is called a life.
 */
import type { Json, LogEntry } from '../../../machines/internal.ts';
import { type Agent, createAgent } from '../../agent.ts';
import { ConfigurationError, thrownText } from '../../errors.ts';
import { defineTool } from '../../tools/tool.ts';
import {
  callback,
  checkOptionsOf,
  display,
  hasMethods,
  isList,
  isObject,
  list,
  object,
  type Validator,
  whole,
} from '../../validation.ts';
import { checkToolNames } from '../toolNames.ts';
import type { AgentWorld } from '../world/agentWorld.ts';
import { continued, recorded, seeded, type Tape } from './choiceTape.ts';
import { Host } from './host.ts';
import { drawProfile } from './profile.ts';
import { SimulationLoop } from './simulationLoop.ts';
import { SimulatedModel } from './world/simulatedModel.ts';
import { SimulatedStore } from './world/simulatedStore.ts';
import { CONVERSATION, type Group, SimulatedWorld, type Violation } from './world/simulatedWorld.ts';

/** The outcome of a simulated life of a conversation. */
export interface SimulationReport {
  /** The seed of the simulation. */
  readonly seed: number;
  /** The number of steps. */
  readonly steps: number;
  /** The number of crashes. */
  readonly crashes: number;
  /** The durable log at the end. */
  readonly log: readonly LogEntry[];
  /** Every choice of the run. Pass it as `tape` to repeat the run. */
  readonly tape: readonly number[];
  /** The invariants that did not hold; empty if all is well. */
  readonly violations: readonly Violation[];
  /** The number of faults and acts by kind. */
  readonly faults: Readonly<Record<string, number>>;
  /** The names of the tools that the model received. */
  readonly tools: readonly string[];
  /** The number of occurrences of each kind of tool, outcome, stop and so on. */
  readonly reached: Readonly<Record<Group, Readonly<Record<string, number>>>>;
}

/** The options of `simulate`. */
export interface SimulationOptions {
  /** The seed of all random choices. */
  seed: number;
  /**
   * Creates the simulated agent, for every process of the run: `createAgent({ tools, …, ...world })`. A wrong result is
   * the violation `setup`: no agent, an agent without these ports or with another store, or an error. Default: an agent
   * with one tool that requires approval.
   */
  agent?(world: AgentWorld): Agent;
  /** Arguments for its tools, besides those drawn from their schemas. */
  args?: { readonly [tool: string]: readonly Json[] };
  /** Checks of the durable log, called whenever the conversation is at rest. Each returns a fault, or undefined. */
  invariants?: readonly ((log: readonly LogEntry[]) => string | undefined)[];
  /** Choices that replace those of the seed. */
  tape?: readonly number[];
  /** Choices before those of the seed. They lead to a state from which the seed continues. */
  prefix?: readonly number[];
  /** The number of steps before faults are switched off. Default: drawn from the tape. */
  maxSteps?: number;
}

/** Creates the agent of a process. */
type MakeAgent = (world: AgentWorld) => Agent;
/** The parts of a life, before its first process. */
export interface Life<W extends SimulatedWorld> {
  readonly world: W;
  readonly store: SimulatedStore;
  readonly model: SimulatedModel;
  readonly host: Host;
}
/** The conversation's surroundings, and the factory of its agent. */
export interface Subject<W extends SimulatedWorld> {
  world(tape: Tape): W;
  setUp(life: Life<W>): MakeAgent | Promise<MakeAgent>;
}

const seed: Validator = { expected: 'a whole number', test: Number.isSafeInteger };
/** A choice is taken modulo the number of alternatives, so it may be larger. */
const numbers: Validator = {
  expected: 'a list of whole numbers of at least 0',
  test: (value) => isList(value) && value.every((each) => Number.isInteger(each) && (each as number) >= 0),
};

const examples: Validator = {
  expected: 'lists of arguments by the names of tools',
  test: (value) => isObject(value) && Object.values(value).every(isList),
};
/** With valid options, a simulation always ends. */
const optionsValidator = object({
  seed,
  agent: callback,
  args: examples,
  invariants: list('functions', callback.test),
  tape: numbers,
  prefix: numbers,
  maxSteps: whole(0),
});

/** The violation of an agent whose ports the seed does not control. */
const NO_PORTS = 'the agent does not use its ports: createAgent({ …, ports })';

/**
 * Runs one simulation. Rejects with ConfigurationError for an unknown or invalid option. A defect is a violation in the
 * report, never a rejection.
 */
export function simulate(options: SimulationOptions): Promise<SimulationReport> {
  return simulateLife(options, {
    world: (tape) => new SimulatedWorld(tape, drawProfile(tape), { examples: options.args }),
    setUp: () => options.agent ?? plainAgent,
  });
}

/** Like `simulate`, with the caller's own world and agent. */
export async function simulateLife<W extends SimulatedWorld>(
  options: SimulationOptions,
  subject: Subject<W>,
): Promise<SimulationReport> {
  checkOptionsOf('simulate', options, optionsValidator);
  if (options.seed === undefined) throw new ConfigurationError('simulate needs a seed, a whole number');
  const { seed, tape: numbers, prefix, args = {}, invariants } = options;
  const tape: Tape = numbers ? recorded(numbers) : prefix ? continued(prefix, seed) : seeded(seed);
  const world = subject.world(tape);
  const store = new SimulatedStore(world);
  const model = new SimulatedModel(world);
  let refusal: unknown;
  const checked = (agent: Agent): Agent => {
    try {
      if (hasMethods(agent, 'open', 'close')) checkToolNames('simulate', agent, 'args', Object.keys(args));
    } catch (error) {
      refusal = error;
      throw error;
    }
    return agent;
  };
  const around = (): AgentWorld => ({ model, store, ports: { ...world.ports(), store }, inspect: () => undefined });
  const host: Host = new Host(world, store, () => madeIn(world, () => checked(make(around()))));
  const make = await subject.setUp({ world, store, model, host });
  const loop = new SimulationLoop(world, store, host, invariants);
  await loop
    .run(options.maxSteps ?? world.profile.steps)
    .catch((error) => world.violate('uncaught', thrownText(error)));
  if (refusal !== undefined) throw refusal;
  if (!world.usesPorts) world.violate('setup', NO_PORTS);
  return {
    seed,
    steps: loop.steps,
    crashes: world.processId,
    log: store.logOf(CONVERSATION),
    tape: tape.taken,
    violations: withoutConsequences(world.violations),
    faults: Object.fromEntries(world.faults),
    tools: [...world.schemas.keys()],
    reached: world.reached,
  };
}

/** Drops the violations that a wrong setup has caused. */
function withoutConsequences(violations: readonly Violation[]): readonly Violation[] {
  const setup = violations.findIndex(({ invariant }) => invariant === 'setup');
  return setup < 0 ? violations : violations.slice(0, setup + 1);
}

const textSchema = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] };
const noteTool = defineTool({
  name: 'note',
  description: 'Writes something down.',
  needsApproval: true,
  parameters: {
    '~standard': {
      version: 1,
      vendor: 'runchart-simulation',
      jsonSchema: { input: () => textSchema, output: () => textSchema },
      validate: (value: unknown) =>
        isObject(value) && typeof value.text === 'string' ? { value } : { issues: [{ message: 'expected text' }] },
    },
  },
  execute: () => 'noted',
});
const plainAgent: MakeAgent = (world) => createAgent({ tools: [noteTool], ...world });

const GIVES = 'agent() must give an agent of createAgent at once';

/** Returns undefined and records a violation if the function returns no agent. */
function madeIn(world: SimulatedWorld, make: () => Agent | undefined): Agent | undefined {
  try {
    const made: unknown = make();
    if (hasMethods(made, 'open', 'close')) return made as Agent;
    world.violate('setup', `${GIVES}, got ${describe(made)}`);
  } catch (error) {
    world.violate('setup', `agent() threw ${thrownText(error)}`);
  }
  return undefined;
}

/** The rejection of an async factory is part of the same violation. */
function describe(made: unknown): string {
  if (!hasMethods(made, 'then')) return display(made);
  Promise.resolve(made).catch(() => undefined);
  return 'a promise';
}

/** The part of a report that `neverReached` needs. */
type ReportPart = Pick<SimulationReport, 'tools' | 'reached'>;

/**
 * Returns a sentence for each tool, approval and denial that no simulation reached, in the conversation or its
 * sub-agents. A test can expect an empty list, because an unreached part is untested.
 */
export function neverReached(reports: readonly ReportPart[]): string[] {
  const lives = reports.length === 1 ? 'in this life' : `in ${reports.length} lives`;
  const offered = new Set(reports.flatMap(({ tools }) => tools));
  const ran = new Set(reports.flatMap(({ reached }) => Object.keys(reached.tools)));
  const decided = new Set(reports.flatMap(({ reached }) => Object.keys(reached.decisions)));
  const sentences = [...offered].filter((name) => !ran.has(name)).map((name) => `the tool ${name} never ran ${lives}`);
  if (!decided.has('asked')) return [...sentences, `no call waited for a decision ${lives}`];
  const isTaken = (action: string): boolean => decided.has(action) || decided.has(`early ${action}`);
  if (!['approve', 'edit', 'answer'].some(isTaken)) sentences.push(`no call that waited was approved ${lives}`);
  if (!isTaken('deny')) sentences.push(`no call that waited was denied ${lives}`);
  return sentences;
}
