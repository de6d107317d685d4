/**
 * Simulates one conversation: real charts and runtime among models, tools, stores and a host that fail in every way. Rule:
 * seed or tape decide all of it; the same numbers give the same log, byte for byte. Such a run is called a life.
 */
import type { Decision, Json, LogEntry } from '../../../machines/internal.ts';
import { type Agent, createAgent } from '../../agent.ts';
import { ConfigurationError, thrownText } from '../../errors.ts';
import type { Model } from '../../models/model.ts';
import type { InspectObserver } from '../../options.ts';
import type { Interpreter } from '../../runtime/interpreter/interpreter.ts';
import type { Ports } from '../../runtime/ports.ts';
import type { LogStore } from '../../stores/store.ts';
import { subAgents } from '../../subAgents/spawnTool.ts';
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
import type { Equipment } from './equipment.ts';
import { Host } from './host.ts';
import { drawProfile } from './profile.ts';
import { SimulationLoop } from './simulationLoop.ts';
import { continued, recorded, seeded, type Tape } from './tape.ts';
import { ToolExecutions } from './watch/toolExecutions.ts';
import { answerSchema } from './world/finalAnswer.ts';
import { SimulatedModel } from './world/model.ts';
import { SECRET } from './world/secret.ts';
import { simulatedGuard, simulatedPlugin } from './world/simulatedPlugin.ts';
import { SimulatedStore } from './world/store.ts';
import { simulatedTools } from './world/tools.ts';
import { CONVERSATION, type Group, type Violation, World } from './world/world.ts';

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

/** What an agent under test is made with; to be spread into `createAgent`, last. */
export interface AgentWorld {
  /** Calls the tools it is offered, and fails as models do. */
  readonly model: Model;
  /** Outlives a crash. */
  readonly store: LogStore;
  /** The clock and everything else that a seed decides. */
  readonly ports: Partial<Ports>;
  readonly inspect: InspectObserver;
}

export interface SimulationOptions {
  seed: number;
  /**
   * The agent to simulate, made anew for every process of the run: `createAgent({ tools, …, ...world })`. What is no
   * agent, or is one without these ports or with another store, is the violation `setup`, and so is what this throws.
   */
  agent?(world: AgentWorld): Agent;
  /** Arguments that its tools are called with, besides those drawn from their schemas. */
  args?: { readonly [tool: string]: readonly Json[] };
  /** Checks of the durable log, made whenever the conversation is at rest: each returns what is wrong, or undefined. */
  invariants?: readonly ((log: readonly LogEntry[]) => string | undefined)[];
  /** Choices to make instead of the seed's. */
  tape?: readonly number[];
  /** Choices to make before the seed's: the way to a place from which the seed goes on. */
  prefix?: readonly number[];
  /** Steps before faults are switched off; drawn from the tape where it is not given. */
  maxSteps?: number;
  /**
   * Told what XState tells an inspector of the agent that is simulated by default, with the number of choices made so
   * far: so many numbers of the report's tape lead to that moment.
   */
  inspect?(event: unknown, choices: number): void;
  /** Runs the charts of the agent that is simulated by default. */
  interpreter?: Interpreter;
}

/** Makes what a life's agent has besides what every simulated agent has, before its first process. */
export type Equip = (world: World, store: SimulatedStore) => Promise<readonly Equipment[]>;

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
/** With options that pass, a simulation comes to its end. */
const optionsValidator = object({
  seed,
  agent: callback,
  args: examples,
  invariants: list('functions', callback.test),
  tape: numbers,
  prefix: numbers,
  maxSteps: whole(0),
  inspect: callback,
  interpreter: callback,
});

/** The violation of an agent that the seed does not decide. */
const NO_PORTS = 'the agent does not use its ports: createAgent({ …, ports })';

/**
 * Runs one simulation. Rejects with ConfigurationError for an option that is unknown or cannot work, and never for a defect it
 * finds: that is a violation in the report.
 */
export async function simulate(options: SimulationOptions): Promise<SimulationReport> {
  return simulateEquipped(options);
}

/** As `simulate`; `equip` adds to the agent that is simulated by default. */
export async function simulateEquipped(options: SimulationOptions, equip?: Equip): Promise<SimulationReport> {
  checkOptionsOf('simulate', options, optionsValidator);
  if (options.seed === undefined) throw new ConfigurationError('simulate needs a seed, a whole number');
  const { seed, tape: numbers, prefix, args, invariants, inspect, interpreter } = options;
  const tape: Tape = numbers ? recorded(numbers) : prefix ? continued(prefix, seed) : seeded(seed);
  const profile = drawProfile(tape);
  const world = new World(tape, profile, options.agent ? undefined : profile.policies, args);
  const store = new SimulatedStore(world);
  const model = new SimulatedModel(world);
  const inspector: InspectObserver = (event) => inspect?.(event, tape.taken.length);
  if (equip) world.equipment = await equip(world, store);
  let refusal: unknown;
  const given = (around: AgentWorld): Agent | undefined => {
    const agent = options.agent?.(around);
    try {
      if (hasMethods(agent, 'open', 'close'))
        checkToolNames('simulate', agent as Agent, 'args', Object.keys(args ?? {}));
    } catch (error) {
      refusal = error;
      throw error;
    }
    return agent;
  };
  const make = options.agent ? given : ownAgent(world, store, model, inspect !== undefined);
  const ports = (): Partial<Ports> => ({ ...world.ports(), store, ...(interpreter && { interpreter }) });
  const agentWorld = (): AgentWorld => ({ model, store, ports: ports(), inspect: inspector });
  const host = new Host(world, store, () => madeIn(world, () => make(agentWorld())));
  const loop = new SimulationLoop(world, store, host, invariants);
  await loop.run(options.maxSteps ?? profile.steps).catch((error) => world.violate('uncaught', thrownText(error)));
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

/** Violations behind a wrong setup are its consequences, and left out. */
function withoutConsequences(violations: readonly Violation[]): readonly Violation[] {
  const setup = violations.findIndex(({ invariant }) => invariant === 'setup');
  return setup < 0 ? violations : violations.slice(0, setup + 1);
}

/** The agent that is simulated by default: it has everything that an agent can have. */
function ownAgent(
  world: World,
  store: SimulatedStore,
  model: SimulatedModel,
  isInspected: boolean,
): (around: AgentWorld) => Agent {
  const { profile, tape, facts } = world;
  const own = simulatedTools(world, new ToolExecutions(world, store));
  const authorize = ({ by }: Decision): boolean => {
    const away = world.fault('unauthorized', profile.unauthorized);
    if (away && by !== undefined) facts.turnedAway.add(by);
    return !away;
  };
  return ({ ports, inspect }) => {
    const plugins = profile.plugin > 0 ? [simulatedPlugin(world), simulatedGuard(world)] : [];
    if (tape.next(2) === 1) plugins.reverse();
    const fallbackModels = profile.fallback ? [model.fallback()] : [];
    const policies = { ...profile.policies, modelRetry: { ...profile.policies.modelRetry, fallbackModels } };
    const spawns = profile.spawns ? [subAgents({ tools: own, limits: { turns: 2 }, maxSubAgents: 2 })] : [];
    const parts = world.equipment.map((each) => each.parts());
    const tools = [...own, ...spawns, ...parts.flatMap((part) => part.tools ?? [])];
    plugins.push(...parts.flatMap((part) => part.plugins ?? []));
    const observe = parts.find((part) => part.inspect)?.inspect;
    return createAgent({
      ...{ model, tools, plugins, policies, store, authorize, ports },
      ...{ cwd: '/', secrets: [SECRET] },
      ...(profile.answers?.askers.includes('agent') && { output: answerSchema('agent') }),
      ...(observe && { inspect: observe }),
      ...(isInspected && { inspect }),
    });
  };
}

const GIVES = 'agent() must give an agent of createAgent at once';

/** Undefined, and a violation, where the function gives no agent. */
export function madeIn(world: World, make: () => Agent | undefined): Agent | undefined {
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
