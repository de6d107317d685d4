/**
 * Who plays in the sub-agents of a spawn tool. Rule: the agent's own, but for what the tool's options change; never a
 * tool that spawns (conversation-requirements, REQ-BED-009). Checked when the agent is made.
 */

import type { Cast } from '../conversation/open.ts';
import { ConfigurationError } from '../errors.ts';
import { modelsOf } from '../policies.ts';
import { definitionOf, type Tool } from '../tools/tool.ts';
import { Toolbox } from '../tools/toolbox.ts';
import { type SubAgentOptions, spawnOptionsOf } from './spawnOptions.ts';
import { SUBMIT, submitTool } from './submit.ts';

export interface SpawnCast {
  cast: Omit<Cast, 'nest'>;
  /** Of one call, at once. */
  most: number;
  /** Turns with tools. */
  turns: number;
}
/** By the name of the spawn tool. */
export type SpawnCasts = ReadonlyMap<string, SpawnCast>;

/** The casts of an agent's spawn tools. Throws ConfigurationError. */
export function spawnCasts(tools: readonly Tool[], agent: Omit<Cast, 'nest'>): SpawnCasts {
  const casts = new Map<string, SpawnCast>();
  for (const tool of tools) {
    const options = spawnOptionsOf(tool);
    if (options) casts.set(tool.name, castOf(tool.name, options, tools, agent));
  }
  return casts;
}

function castOf(name: string, options: SubAgentOptions, tools: readonly Tool[], agent: Omit<Cast, 'nest'>) {
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
  const cast = {
    models: models as Cast['models'],
    toolbox: new Toolbox([...own, submitTool]),
    plugins: agent.plugins,
    policies,
    instructions: options.instructions ?? agent.instructions,
  };
  return { cast, turns, most: Math.min(options.maxSubAgents ?? Number.POSITIVE_INFINITY, limits.subAgents) };
}
