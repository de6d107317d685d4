/**
 * The names of tools in the options of a test. Invariant: a name that is not a tool of the agent is refused, because
 * its option would have no effect.
 */
import type { Agent } from '../agent.ts';
import { ConfigurationError } from '../errors.ts';
import { spawnOf } from '../runtime/subAgentPort.ts';
import type { Tool } from '../tools/tool.ts';

/** Returns the tools of the agent and of its sub-agents by name, or undefined if the agent does not expose them. */
function toolNamesOf({ profile }: Partial<Agent>): ReadonlySet<string> | undefined {
  if (!profile) return undefined;
  const names = new Set(profile.toolbox.specs.map(({ name }) => name));
  for (const name of [...names]) {
    const tool = profile.toolbox.find(name);
    const { tools = [] } = (tool && (spawnOf(tool)?.options as { tools?: readonly Tool[] })) ?? {};
    for (const own of tools) names.add(own.name);
  }
  return names;
}

/** Throws ConfigurationError if a name under `option` is not a tool of the agent. */
export function checkToolNames(call: string, agent: Agent, option: string, names: readonly string[]): void {
  const agentTools = toolNamesOf(agent);
  const stray = agentTools && names.find((name) => !agentTools.has(name));
  if (stray === undefined || !agentTools) return;
  const list = agentTools.size === 0 ? 'the agent has no tools' : `the agent's tools are ${[...agentTools].join(', ')}`;
  throw new ConfigurationError(`${call}: ${option} names the tool ${stray}; ${list}`);
}
