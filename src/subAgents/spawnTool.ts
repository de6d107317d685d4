/**
 * The tool that spawns sub-agents (docs/internals/contracts.md, REQ-BED-008). Invariant: the call has no effect other
 * than its sub-agents, and each of them has its own log. After a crash the call can run again: it reads finished
 * sub-agents from their logs and continues the others.
 */
import { ConfigurationError } from '../errors.ts';
import { type MakeSubAgents, spawning, subAgentsOf } from '../runtime/subAgentPort.ts';
import { defineTool, type Tool, type ToolDefinition } from '../tools/tool.ts';
import { checkSpawnOptions, type SubAgentOptions, spawnProfiles } from './spawnProfile.ts';
import { taskList } from './spawnTasks.ts';
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
        const makeSubAgents: MakeSubAgents = (parent) =>
          new SubAgentRegistry({ ...parent, spawns: profiles, callIds: new CallIds() });
        return { makeSubAgents, models: [...profiles.values()].flatMap(({ profile }) => profile.models) };
      },
    }),
  );
}
