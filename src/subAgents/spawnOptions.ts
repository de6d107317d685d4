/** What a spawn tool is made with. Rule: an option that is unknown or cannot work is refused where it is given. */
import type { Model } from '../models/model.ts';
import type { Tool } from '../tools/tool.ts';
import { checkOptionsOf, list, object, span, text, whole, withMethods } from '../validation.ts';

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

const spawns = new WeakMap<Tool, SubAgentOptions>();
export const spawnedWith = (tool: Tool, options: SubAgentOptions): void => void spawns.set(tool, options);
/** The options of a tool that `subAgents` made. */
export const spawnOptionsOf = (tool: Tool): SubAgentOptions | undefined => spawns.get(tool);

const spawnForm = object({
  name: text,
  model: { wanted: 'a Model', takes: (value) => withMethods(value, 'stream'), secret: true },
  tools: list('tools'),
  instructions: text,
  limits: object({ turns: span(1), runMs: span(0) }),
  maxSubAgents: whole(1),
});

/** Throws ConfigurationError for an option that is unknown or cannot work. */
export const checkSpawnOptions = (options: SubAgentOptions): unknown => checkOptionsOf('subAgents', options, spawnForm);
