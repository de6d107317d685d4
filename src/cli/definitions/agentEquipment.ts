/**
 * The additions of the user and the project to the agent of the program: MCP servers, agents, commands and skills. Rule: a file of the
 * project is
 * ignored until the user trusts it, and an unusable file does not stop the program.
 */
import type { Model, Tool } from '../../index.ts';
import type { PermissionLayer } from '../../permissions/permissions.ts';
import { userDirectoryOf } from '../../session/configuration.ts';
import { trustFiles } from '../../session/trust.ts';
import { isProgramCommand } from '../interactive/slashCommands.ts';
import { ServerConnections } from '../servers/serverConnections.ts';
import { type ServerEntry, serverEntries } from '../servers/serverEntries.ts';
import { agentToolName, agentTools, skillTool } from './agentTools.ts';
import { type DefinitionFile, definitionFiles, serverFiles } from './definitionFiles.ts';
import { type Definitions, loadDefinitions } from './definitions.ts';

export interface Equipment extends Pick<Definitions, 'agents' | 'commands' | 'skills' | 'problems' | 'untrusted'> {
  readonly tools: readonly Tool[];
  readonly servers: ServerConnections;
  /** Agents start without a question, because the rules judge each of their calls. */
  readonly layers: readonly PermissionLayer[];
}

export interface EquipmentOptions {
  readonly cwd: string;
  /** Makes the coding tools, new ones at each call. */
  codingTools(): readonly Tool[];
  /** A variable of the process or of the configuration. */
  variableOf(name: string): string | undefined;
  modelOf(name: string): Promise<Model | undefined>;
  /** MCP servers besides those of files. They take the place of servers with the same names. */
  readonly moreServers?: readonly ServerEntry[] | undefined;
  /** The connections of an earlier agent of the same directory. */
  readonly servers?: ServerConnections | undefined;
}

/** If it rejects, the servers that it has started are ended. */
export async function equipmentOf(options: EquipmentOptions): Promise<Equipment> {
  const { cwd, variableOf } = options;
  const place = { cwd, userDirectory: userDirectoryOf() };
  const [definitions, files] = await Promise.all([loadDefinitions(place), serverFiles(place)]);
  const listed = serverEntries(files, variableOf, cwd);
  const { moreServers = [] } = options;
  const entries = new Map([...listed.entries, ...moreServers].map((entry) => [entry.name, entry]));
  const servers = options.servers?.shared() ?? new ServerConnections([...entries.values()]);
  try {
    return await equipmentWith(servers, definitions, listed, options);
  } catch (error) {
    await servers.close();
    throw error;
  }
}

async function equipmentWith(
  servers: ServerConnections,
  definitions: Definitions,
  listed: ReturnType<typeof serverEntries>,
  { codingTools, modelOf, moreServers = [] }: EquipmentOptions,
): Promise<Equipment> {
  const { agents, skills } = definitions;
  const commands = definitions.commands.filter(({ name }) => !isProgramCommand(name));
  const taken = definitions.commands.filter(({ name }) => isProgramCommand(name));
  const programTools = (): readonly Tool[] =>
    skills.length > 0 ? [...codingTools(), skillTool(skills)] : codingTools();
  const made = await agentTools(agents, { programTools, servers, modelOf });
  return {
    ...{ agents, commands, skills, servers },
    tools: [...servers.joinedTo(programTools(), () => true), ...made.tools],
    layers:
      agents.length > 0
        ? [{ name: 'agents', trusted: true, allow: agents.map(({ name }) => agentToolName(name)) }]
        : [],
    problems: [
      ...definitions.problems,
      ...taken.map(({ name, path }) => `${path} is not used: /${name} is a command of the program`),
      ...listed.problems,
      ...made.problems,
      ...moreServers.flatMap(({ name, why }) =>
        why === undefined ? [] : [`the MCP server ${name} is not used: ${why}`],
      ),
    ],
    untrusted: [...definitions.untrusted, ...listed.untrusted],
  };
}

/** Trusts the project's lists of servers, agents, commands and skills as they are now. Returns their files. */
export async function trustEquipment(cwd: string): Promise<DefinitionFile[]> {
  const place = { cwd, userDirectory: userDirectoryOf() };
  const kinds = (['agents', 'commands', 'skills'] as const).map((kind) => definitionFiles(kind, place));
  const files = [await serverFiles(place), ...(await Promise.all(kinds))].flat().filter(({ of }) => of === 'project');
  await trustFiles(files, place.userDirectory);
  return files;
}
