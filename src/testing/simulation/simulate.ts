/**
 * Simulates one conversation: real charts and runtime among models, stores and a host that fail in every way. Rule: seed or tape
 * decide all of it; the same numbers give the same log, byte for byte. Such a run is called a life.
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

export interface SimulationReport {
  readonly seed: number;
  readonly steps: number;
  readonly crashes: number;
  /** The durable log at the end. */
  readonly log: readonly LogEntry[];
  /** Every choice that was made; given back as `tape` it makes the same run. */
  readonly tape: readonly number[];
  readonly violations: readonly Violation[];
  /** Faults and acts by kind. */
  readonly faults: Readonly<Record<string, number>>;
  /** Names of the tools that the model was offered. */
  readonly tools: readonly string[];
  /** How often each kind of tool, outcome, stop and so on occurred. */
  readonly reached: Readonly<Record<Group, Readonly<Record<string, number>>>>;
}

export interface SimulationOptions {
  seed: number;
  /**
   * The agent to simulate, made anew for every process of the run: `createAgent({ tools, …, ...world })`. What is no
   * agent, or is one without these ports or with another store, is the violation `setup`, and so is what this throws.
   * Default: an agent with one tool that asks for approval.
   */
  agent?(world: AgentWorld): Agent;
  /** Arguments that its tools are called with, besides those drawn from their schemas. */
  args?: { readonly [tool: string]: readonly Json[] };
  /** Checks of the durable log, made whenever the conversation is at rest: each returns what is wrong, or undefined. */
  invariants?: readonly ((log: readonly LogEntry[]) => string | undefined)[];
  /** Choices to make instead of the seed's. */
  tape?: readonly number[];
  /** Choices to make before the seed's. They lead to a state from which the seed continues. */
  prefix?: readonly number[];
  /** Steps before faults are switched off; drawn from the tape if it is absent. */
  maxSteps?: number;
}

/** Makes the agent of a process. */
type MakeAgent = (world: AgentWorld) => Agent;
/** The parts of a life, before its first process. */
export interface Life<W extends SimulatedWorld> {
  readonly world: W;
  readonly store: SimulatedStore;
  readonly model: SimulatedModel;
  readonly host: Host;
}
/** What surrounds the conversation, and who makes its agent. */
export interface Subject<W extends SimulatedWorld> {
  world(tape: Tape): W;
  setUp(life: Life<W>): MakeAgent | Promise<MakeAgent>;
}

const seed: Validator = { expected: 'a whole number', test: Number.isSafeInteger };
/** A choice is taken modulo how many there are: it may be larger than any of them. */
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

/** The violation of an agent that the seed does not decide. */
const NO_PORTS = 'the agent does not use its ports: createAgent({ …, ports })';

/**
 * Runs one simulation. Rejects with ConfigurationError for an option that is unknown or cannot work, and never for a defect it
 * finds: that is a violation in the report.
 */
export function simulate(options: SimulationOptions): Promise<SimulationReport> {
  return simulateLife(options, {
    world: (tape) => new SimulatedWorld(tape, drawProfile(tape), { examples: options.args }),
    setUp: () => options.agent ?? plainAgent,
  });
}

/** As `simulate`, with a world and an agent of the caller's choice. */
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

/** Violations after a wrong setup are its consequences, and left out. */
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

/** Undefined, and a violation, where the function gives no agent. */
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

/** A rejection of an async factory is part of the same violation. */
function describe(made: unknown): string {
  if (!hasMethods(made, 'then')) return display(made);
  Promise.resolve(made).catch(() => undefined);
  return 'a promise';
}

type ReportPart = Pick<SimulationReport, 'tools' | 'reached'>;

/**
 * Tools, approvals and denials that no simulation reached, in the conversation or in a sub-agent's: what was never reached is
 * not tested. Returns a sentence for each, so that a test can expect none.
 */
export function neverReached(reports: readonly ReportPart[]): string[] {
  const lives = reports.length === 1 ? 'in this life' : `in ${reports.length} lives`;
  const offered = new Set(reports.flatMap(({ tools }) => tools));
  const ran = new Set(reports.flatMap(({ reached }) => Object.keys(reached.tools)));
  const decided = new Set(reports.flatMap(({ reached }) => Object.keys(reached.decisions)));
  const said = [...offered].filter((name) => !ran.has(name)).map((name) => `the tool ${name} never ran ${lives}`);
  if (!decided.has('asked')) return [...said, `no call waited for a decision ${lives}`];
  const isTaken = (action: string): boolean => decided.has(action) || decided.has(`early ${action}`);
  if (!['approve', 'edit', 'answer'].some(isTaken)) said.push(`no call that waited was approved ${lives}`);
  if (!isTaken('deny')) said.push(`no call that waited was denied ${lives}`);
  return said;
}
