/**
 * The tool that spawns sub-agents (docs/internals/contracts.md, REQ-BED-008). Invariant: the call has no effect other
 * than its sub-agents, and each of them has its own log. After a crash the call can run again: it reads finished
 * sub-agents from their logs and continues the others.
 */
import { ConfigurationError } from '../errors.ts';
import { type MakeSubAgents, type OpenApart, type OwnProfile, spawning, subAgentsOf } from '../runtime/subAgentPort.ts';
import { defineTool, type Tool, type ToolDefinition } from '../tools/tool.ts';
import { checkSpawnOptions, type SpawnProfiles, type SubAgentOptions, spawnProfiles } from './spawnProfile.ts';
import { taskList } from './spawnTasks.ts';
import { openSubAgent } from './subAgent.ts';
import { CallIds } from './subAgentRecords.ts';
import { SubAgentRegistry } from './subAgentRegistry.ts';

const DESCRIPTION =
  'Gives tasks to sub-agents, which work on them at the same time with tools of their own and see nothing of this conversation. ' +
  'Answers when all have ended, with what each handed in or why it failed, in the order in which they ended.';

/**
 * Makes a tool `spawn_agents { tasks: { id, task }[] }`. Its sub-agents end with `submit_result { result }`, and each
 * is a conversation. Throws ConfigurationError for an unknown or invalid option.
 */
export function subAgents(options: SubAgentOptions = {}): Tool {
  checkSpawnOptions(options);
  const definition: ToolDefinition<typeof taskList> = {
    name: options.name ?? 'spawn_agents',
    description: options.description === undefined ? DESCRIPTION : `${options.description}\n\n${DESCRIPTION}`,
    parameters: taskList,
    idempotent: true,
    // Each sub-agent has its own time limit.
    timeoutMs: Number.POSITIVE_INFINITY,
    execute({ tasks }, context) {
      const owner = subAgentsOf(context);
      if (!owner) throw new ConfigurationError('sub-agents need an agent around them');
      return owner.run(tasks, context);
    },
  };
  return defineTool(
    spawning(definition, {
      options,
      plan(tools, agent) {
        const profiles = spawnProfiles(tools, agent);
        const withSpawns: MakeSubAgents = (parent) =>
          new SubAgentRegistry({ ...parent, spawns: profiles, callIds: new CallIds() });
        const makeSubAgents = Object.assign(withSpawns, { openApart: openerApart(profiles, agent) });
        return { makeSubAgents, models: [...profiles.values()].flatMap(({ profile }) => profile.models) };
      },
    }),
  );
}

/** Opens sub-agents of these spawn tools one by one, where an engine holds each. */
function openerApart(profiles: SpawnProfiles, { policies }: OwnProfile): OpenApart {
  return async ({ tool, isTaken, ...request }) => {
    const spawn = profiles.get(tool);
    if (!spawn) throw new ConfigurationError(`the agent has no tool ${tool} that spawns sub-agents`);
    const callIds = new CallIds(isTaken);
    const makeSubAgents: MakeSubAgents = (owner) => new SubAgentRegistry({ ...owner, callIds, spawns: new Map() });
    return openSubAgent({ ...request, makeSubAgents, spawn, limits: policies.limits });
  };
}
