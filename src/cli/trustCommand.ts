/**
 * `runchart trust`: from now on the configuration files of a project count in full. Rule: it says which they are and what they ask for that
 * did not count before; a file that is changed afterwards is not trusted any more.
 */
import { loadConfiguration, trustProject } from '../session/configuration.ts';
import { printableLine } from './screen.ts';
import { workingDirectory } from './sessions/sessionStore.ts';

/** Rejects with ConfigurationError for a file that is wrong. */
export async function trustCommand(given: string | undefined, write: (text: string) => void): Promise<void> {
  const cwd = await workingDirectory(given);
  const { ignored } = await loadConfiguration({ cwd });
  const files = await trustProject({ cwd });
  if (files.length === 0) write('this project has no configuration file\n');
  for (const file of files) write(`trusted as it is now: ${printableLine(file)}\n`);
  for (const wanted of ignored) write(`  counts from now on: ${printableLine(wanted)}\n`);
}
