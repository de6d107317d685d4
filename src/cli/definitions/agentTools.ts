/**
 * Agents and skills of Markdown files as tools of the model: `agent_NAME` starts sub-agents, and `Skill` reads the text of
 * a skill. Rule: a sub-agent has its own list of the program's tools, and the rules hold for its calls. A missing tool is reported, and
 * the agent works without it.
 */
import { dirname } from 'node:path';
import { z } from 'zod';
import { thrownMessage } from '../../errors.ts';
import { type Model, subAgents, type Tool } from '../../index.ts';
import { defineTool, toolResult } from '../../tools/tool.ts';
import type { ServerConnections } from '../servers/serverConnections.ts';
import type { AgentDefinition, SkillDefinition } from './definitions.ts';

/** The tool that starts an agent. */
export const agentToolName = (name: string): string => `agent_${name}`;

interface AgentParts {
  /** Makes the tools of the program, new ones for each agent. */
  programTools(): readonly Tool[];
  readonly servers: ServerConnections;
  /** Rejects if the model cannot be used. */
  modelOf(name: string): Promise<Model | undefined>;
}

/** The tools of the agents, and the problems of agents that cannot be used as written. */
export async function agentTools(
  agents: readonly AgentDefinition[],
  parts: AgentParts,
): Promise<{ tools: Tool[]; problems: string[] }> {
  const tools: Tool[] = [];
  const problems: string[] = [];
  for (const agent of agents) {
    try {
      const { tools: own, unknown } = toolsOf(agent, parts);
      if (unknown.length > 0) problems.push(`${agent.path}: there is no tool ${unknown.join(', ')}`);
      const model = agent.model === undefined ? undefined : await parts.modelOf(agent.model);
      const { name, description, instructions } = agent;
      tools.push(
        subAgents({ name: agentToolName(name), description, instructions, tools: own, ...(model && { model }) }),
      );
    } catch (error) {
      problems.push(`${agent.path} is not used: ${thrownMessage(error)}`);
    }
  }
  return { tools, problems };
}

function toolsOf(agent: AgentDefinition, { programTools, servers }: AgentParts): { tools: Tool[]; unknown: string[] } {
  const all = programTools();
  const without = agent.withoutTools.map(namePattern);
  const wanted = agent.tools?.map(namePattern);
  const fits = (name: string): boolean =>
    (wanted === undefined || wanted.some((pattern) => pattern.test(name))) &&
    !without.some((pattern) => pattern.test(name));
  const unknown = (agent.tools ?? []).filter((name, index) => {
    const isServer = name.toLowerCase().startsWith('mcp__');
    return !isServer && !all.some((tool) => wanted?.[index]?.test(tool.name));
  });
  const own = all.filter(({ name }) => fits(name));
  // Tools of servers follow a tool of the program.
  const base = own.length > 0 ? own : all.filter(({ name }) => name === 'Ls');
  return { tools: [...servers.joinedTo(base, fits)], unknown };
}

/** `*` is any text, and capital letters count as small ones. */
function namePattern(name: string): RegExp {
  const pieces = name.split('*').map((piece) => piece.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  const [server, ...rest] = name.split('__').slice(1);
  // `mcp__server` is all of its tools.
  const whole = server !== undefined && rest.length === 0 && /^mcp__/i.test(name) ? '(?:__.*)?' : '';
  return new RegExp(`^${pieces.join('.*')}${whole}$`, 'i');
}

const LISTED_MAX = 16_384;

/** The tool that reads a skill. Its description lists all of them, as far as they fit. */
export function skillTool(skills: readonly SkillDefinition[]): Tool {
  const lines = skills.map(({ name, description }) => `- ${name}: ${description}`);
  const listed = lines.filter((_, index) => lines.slice(0, index + 1).join('\n').length <= LISTED_MAX);
  return defineTool({
    name: 'Skill',
    description: `Reads instructions for a kind of task, before it is begun. There are these skills:\n${listed.join('\n')}`,
    parameters: z.object({ name: z.string().describe('The name of the skill.') }),
    readOnly: true,
    idempotent: true,
    execute: ({ name }) => {
      const skill = skills.find((each) => each.name === name);
      if (!skill) {
        const names = skills.map((each) => each.name).join(', ');
        return toolResult.error(`There is no skill ${JSON.stringify(name)}. There are: ${names}`, 'not_found');
      }
      return `Instructions of the skill ${name}. Files that they name are in ${dirname(skill.path)}\n\n${skill.body}`;
    },
  });
}
