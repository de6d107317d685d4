/**
 * The profile of the sub-agents of a spawn tool, and the options of the tool. Invariant: the profile is the agent's
 * own, except for the options, and never contains a tool that spawns (docs/internals/contracts.md, REQ-BED-009). The
 * check runs when the agent is made.
 */

import { modelsOf } from '../agentPolicies.ts';
import { ConfigurationError } from '../errors.ts';
import type { Model } from '../models/model.ts';
import { noNames } from '../runtime/currentRequest.ts';
import { type AgentProfile, type OwnProfile, spawnOf } from '../runtime/subAgentPort.ts';
import { definitionOf, type Tool } from '../tools/tool.ts';
import { Toolbox } from '../tools/toolbox.ts';
import { checkOptionsOf, hasMethods, list, numberOrInfinity, object, text, whole } from '../validation.ts';
import { SUBMIT, submitTool } from './submitTool.ts';

export interface SpawnProfile {
  profile: OwnProfile;
  /** The most sub-agents of one call that work at once. */
  concurrency: number;
  /** The number of turns with tools. */
  turns: number;
  /** The sub-agent has its own model, regardless of the choice of the request. */
  hasOwnModel: boolean;
}
/** By the name of the spawn tool. */
export type SpawnProfiles = ReadonlyMap<string, SpawnProfile>;

/** The profiles of an agent's spawn tools. Throws ConfigurationError. */
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
    // The parent decides when the sub-agent continues, and limits its cost.
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
    named: options.model ? noNames : agent.named,
  };
  const concurrency = Math.min(options.maxSubAgents ?? Number.POSITIVE_INFINITY, limits.subAgents);
  return { profile, turns, concurrency, hasOwnModel: options.model !== undefined };
}

/** The options of `subAgents`. */
export interface SubAgentOptions {
  /** The name of the tool. Default: `spawn_agents`. */
  name?: string;
  /** The purpose of these sub-agents. The model reads it before the general description of the tool. */
  description?: string;
  /** The model of the sub-agents. Default: the agent's model. */
  model?: Model;
  /** Default: the agent's tools. `submit_result` is added. A tool that spawns is refused. */
  tools?: readonly Tool[];
  /** The system text of the sub-agents. Default: the agent's instructions. */
  instructions?: string;
  /**
   * `turns` counts turns with tools; one more without tools follows. `runMs` counts working time without waits for a
   * person.
   */
  limits?: { turns?: number; runMs?: number };
  /**
   * The most sub-agents of one call that work at once. The policy `limits.subAgents` is the limit for the conversation.
   */
  maxSubAgents?: number;
}

/** The options of a tool that `subAgents` made. */
const spawnOptionsOf = (tool: Tool): SubAgentOptions | undefined => spawnOf(tool)?.options;

const spawnValidator = object({
  name: text,
  description: text,
  model: { expected: 'a Model', test: (value) => hasMethods(value, 'stream'), secret: true },
  tools: list('tools'),
  instructions: text,
  limits: object({ turns: numberOrInfinity(1), runMs: numberOrInfinity(0) }),
  maxSubAgents: whole(1),
});

/** Throws ConfigurationError for an unknown or invalid option. */
export const checkSpawnOptions = (options: SubAgentOptions): unknown =>
  checkOptionsOf('subAgents', options, spawnValidator);
