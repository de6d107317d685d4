/**
 * `runchart trust`: applies a project's configuration files in full from now on. Invariant: it prints the files, and
 * the settings that were ignored before. A file that changes afterwards is no longer trusted.
 */

import { printableLine } from '../printable.ts';
import { loadConfiguration, trustProject } from '../session/configuration.ts';
import { workingDirectory } from './sessions/sessionStore.ts';

/** Rejects with ConfigurationError for an invalid file. */
export async function trustCommand(directory: string | undefined, write: (text: string) => void): Promise<void> {
  const cwd = await workingDirectory(directory);
  const { ignored } = await loadConfiguration({ cwd });
  const files = await trustProject({ cwd });
  if (files.length === 0) write('this project has no configuration file\n');
  for (const file of files) write(`trusted as it is now: ${printableLine(file)}\n`);
  for (const setting of ignored) write(`  counts from now on: ${printableLine(setting)}\n`);
}
