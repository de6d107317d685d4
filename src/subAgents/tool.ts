/**
 * The tool that spawns sub-agents (conversation-requirements, REQ-BED-008). Rule: a call has no effect but what its
 * sub-agents do, and those keep logs of their own: what has ended is read, what was cut short goes on by its own rules.
 * So the call may run again after a crash, and does nothing twice.
 */
import { ConfigurationError } from '../errors.ts';
import { defineTool, type Tool } from '../tools/tool.ts';
import { spawnCasts } from './cast.ts';
import { Claims } from './claims.ts';
import { type Nest, nestedOf, spawnsBy } from './nested.ts';
import { Nursery } from './nursery.ts';
import { checkSpawnOptions, type SubAgentOptions, spawnedWith } from './spawnOptions.ts';
import { taskList } from './task.ts';

const DESCRIPTION =
  'Gives tasks to sub-agents, which work on them at the same time with tools of their own and see nothing of this conversation. ' +
  'Answers when all have ended, with what each handed in or why it failed, in the order in which they ended.';

/**
 * A tool `spawn_agents { tasks: { id, task }[] }` whose sub-agents end by `submit_result { result }`. Each is a
 * conversation of its own. Throws ConfigurationError for an option that is unknown or cannot work.
 */
export function subAgents(options: SubAgentOptions = {}): Tool {
  checkSpawnOptions(options);
  const tool = defineTool({
    name: options.name ?? 'spawn_agents',
    description: DESCRIPTION,
    parameters: taskList,
    idempotent: true,
    // Each sub-agent has its own time.
    timeoutMs: Number.POSITIVE_INFINITY,
    execute({ tasks }, context) {
      const nested = nestedOf(context);
      if (!nested) throw new ConfigurationError('sub-agents need an agent around them');
      return nested.raise(tasks, context);
    },
  });
  spawnedWith(tool, options);
  spawnsBy(tool, (tools, agent) => {
    const casts = spawnCasts(tools, agent);
    const nest: Nest = (around) => new Nursery({ ...around, spawns: casts, claims: new Claims() });
    return { nest, models: [...casts.values()].flatMap(({ cast }) => cast.models) };
  });
  return tool;
}
