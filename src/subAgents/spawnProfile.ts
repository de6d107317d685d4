/**
 * The profile of the sub-agents of a spawn tool, and the options of the tool. Invariant: the profile is the agent's
 * own, except for the options, and never contains a tool that spawns (docs/internals/contracts.md, REQ-BED-009). The
 * check runs when the agent is made.
 */

import { ConfigurationError } from '../errors.ts';
import type { Model } from '../models/model.ts';
import { modelsOf } from '../policies.ts';
import { type AgentProfile, type OwnProfile, spawnOf } from '../runtime/subAgentPort.ts';
import { definitionOf, type Tool } from '../tools/tool.ts';
import { Toolbox } from '../tools/toolbox.ts';
import { checkOptionsOf, hasMethods, list, numberOrInfinity, object, text, whole } from '../validation.ts';
import { SUBMIT, submitTool } from './submit.ts';

export interface SpawnProfile {
  profile: OwnProfile;
  /** Of one call, at once. */
  concurrency: number;
  /** Turns with tools. */
  turns: number;
}
/** By the name of the spawn tool. */
export type SpawnProfiles = ReadonlyMap<string, SpawnProfile>;

/** The casts of an agent's spawn tools. Throws ConfigurationError. */
export function spawnProfiles(tools: readonly Tool[], agent: OwnProfile): SpawnProfiles {
  const profiles = new Map<string, SpawnProfile>();
  for (const tool of tools) {
    const options = spawnOptionsOf(tool);
    if (options) profiles.set(tool.name, profileOf(tool.name, options, tools, agent));
  }
  return profiles;
}

function profileOf(name: string, options: SubAgentOptions, tools: readonly Tool[], agent: OwnProfile) {
  const own = options.tools ?? tools.filter((tool) => !spawnOptionsOf(tool));
  const spawner = own.find(spawnOptionsOf);
  if (spawner) throw new ConfigurationError(`the sub-agents of ${name} may not have ${spawner.name}: it spawns others`);
  if (own.some((tool) => !definitionOf(tool))) throw new ConfigurationError('tools must be made by defineTool');
  const names = own.map((tool) => tool.name);
  const twice = names.find((each, index) => names.indexOf(each) !== index || each === SUBMIT);
  if (twice !== undefined) throw new ConfigurationError(`the sub-agents of ${name} would have two tools ${twice}`);
  const { limits } = agent.policies;
  const { turns = limits.turns, runMs = limits.runMs } = options.limits ?? {};
  const policies = {
    ...agent.policies,
    // Its parent says when it goes on, and what is left to be spent.
    onRestart: 'idle' as const,
    limits: { ...limits, turns: turns + 1, runMs, costUsd: false as const, tokens: false as const },
  };
  const models = options.model ? modelsOf(options.model, policies) : agent.models;
  const unpriced = models.find(({ prices }) => !prices);
  if (limits.costUsd !== false && unpriced) {
    throw new ConfigurationError(`limits.costUsd needs prices, and the model ${unpriced.id} of ${name} has none`);
  }
  const profile = {
    models: models as AgentProfile['models'],
    toolbox: new Toolbox([...own, submitTool]),
    plugins: agent.plugins,
    policies,
    instructions: options.instructions ?? agent.instructions,
  };
  return { profile, turns, concurrency: Math.min(options.maxSubAgents ?? Number.POSITIVE_INFINITY, limits.subAgents) };
}

export interface SubAgentOptions {
  /** `spawn_agents` where it is not given. */
  name?: string;
  /** The agent's own where it is not given. */
  model?: Model;
  /** The agent's tools where they are not given; `submit_result` is added. A tool that spawns is refused. */
  tools?: readonly Tool[];
  /** The agent's own where they are not given. */
  instructions?: string;
  /** `turns`: with tools, before a last one without; `runMs`: while it works, waiting for a person not counted. */
  limits?: { turns?: number; runMs?: number };
  /** How many of one call work at once; `limits.subAgents` of the policies is the most of a conversation. */
  maxSubAgents?: number;
}

/** The options of a tool that `subAgents` made. */
const spawnOptionsOf = (tool: Tool): SubAgentOptions | undefined => spawnOf(tool)?.options;

const spawnValidator = object({
  name: text,
  model: { expected: 'a Model', test: (value) => hasMethods(value, 'stream'), secret: true },
  tools: list('tools'),
  instructions: text,
  limits: object({ turns: numberOrInfinity(1), runMs: numberOrInfinity(0) }),
  maxSubAgents: whole(1),
});

/** Throws ConfigurationError for an option that is unknown or cannot work. */
export const checkSpawnOptions = (options: SubAgentOptions): unknown =>
  checkOptionsOf('subAgents', options, spawnValidator);
