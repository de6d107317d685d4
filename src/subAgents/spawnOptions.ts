/** What a spawn tool is made with. Rule: an option that is unknown or cannot work is refused where it is given. */
import { ConfigurationError } from '../errors.ts';
import type { Model } from '../models/model.ts';
import type { Tool } from '../tools/define.ts';

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

const KEYS = ['name', 'model', 'tools', 'instructions', 'limits', 'maxSubAgents'];
const spawns = new WeakMap<Tool, SubAgentOptions>();
export const spawnedWith = (tool: Tool, options: SubAgentOptions): void => void spawns.set(tool, options);
/** The options of a tool that `subAgents` made. */
export const spawnOptionsOf = (tool: Tool): SubAgentOptions | undefined => spawns.get(tool);

/** Throws ConfigurationError for an option that is unknown or cannot work. */
export function checkSpawnOptions(options: SubAgentOptions): void {
  const stray = Object.keys(options).find((key) => !KEYS.includes(key));
  if (stray !== undefined) throw new ConfigurationError(`subAgents knows no option ${stray}, only ${KEYS.join(', ')}`);
  const { maxSubAgents, model, tools, limits = {} } = options;
  if (maxSubAgents !== undefined && !(Number.isInteger(maxSubAgents) && maxSubAgents >= 1)) {
    throw new ConfigurationError(`maxSubAgents must be a whole number of at least 1, got ${maxSubAgents}`);
  }
  if (model !== undefined && typeof model.stream !== 'function') throw new ConfigurationError('model must be a Model');
  if (tools !== undefined && !Array.isArray(tools)) throw new ConfigurationError('tools must be a list of tools');
  for (const [key, value] of Object.entries(limits)) {
    if (key !== 'turns' && key !== 'runMs') throw new ConfigurationError(`limits knows turns and runMs, not ${key}`);
    if (value !== undefined && !(typeof value === 'number' && value >= (key === 'turns' ? 1 : 0))) {
      throw new ConfigurationError(`limits.${key} must be a number of at least ${key === 'turns' ? 1 : 0}`);
    }
  }
}
