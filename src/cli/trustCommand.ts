/**
 * `runchart trust`: applies a project's files in full from now on: configuration, MCP servers, agents, commands and
 * skills. Invariant: it prints the files, and the settings that were ignored before. A file that changes afterwards is no longer
 * trusted.
 */

import { printableLine } from '../printable.ts';
import { loadConfiguration, trustProject, userDirectoryOf } from '../session/configuration.ts';
import { trustEquipment } from './definitions/agentEquipment.ts';
import { isServerFile } from './definitions/definitionFiles.ts';
import { loadDefinitions } from './definitions/definitions.ts';
import { serverEntries } from './servers/serverEntries.ts';
import { workingDirectory } from './sessions/sessionStore.ts';

/** Rejects with ConfigurationError for an invalid file. */
export async function trustCommand(directory: string | undefined, write: (text: string) => void): Promise<void> {
  const cwd = await workingDirectory(directory);
  const { ignored } = await loadConfiguration({ cwd });
  const files = await trustProject({ cwd });
  const others = await trustEquipment(cwd);
  if (files.length + others.length === 0) write('this project has no configuration file\n');
  for (const file of files) write(`trusted as it is now: ${printableLine(file)}\n`);
  for (const setting of ignored) write(`  counts from now on: ${printableLine(setting)}\n`);
  for (const { path } of others) write(`trusted as it is now: ${printableLine(path)}\n`);
  const { environment } = await loadConfiguration({ cwd });
  const serverLists = others.filter(isServerFile).map((file) => ({ ...file, isTrusted: true }));
  const servers = serverEntries(serverLists, (name) => process.env[name] || environment[name], cwd);
  for (const { name, about, why } of servers.entries) {
    const server = `the MCP server ${printableLine(name)}: ${printableLine(about)}`;
    write(
      why === undefined ? `  starts from now on: ${server}\n` : `  does not start: ${server} (${printableLine(why)})\n`,
    );
  }
  const { problems } = await loadDefinitions({ cwd, userDirectory: userDirectoryOf() });
  for (const problem of [...servers.problems, ...problems]) write(`  ${printableLine(problem)}\n`);
}
