/**
 * Where sessions are kept: `$XDG_STATE_HOME/runchart`, else `~/.local/state/runchart`. Rule: a log lies outside the
 * directory it tells about, so that no tool of a run can change what the run wrote down.
 */
import { randomBytes } from 'node:crypto';
import { realpath, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';
import { ConfigurationError } from '../errors.ts';
import { fileNameOf } from '../stores/jsonlName.ts';

export function sessionsDirectory(environment: NodeJS.ProcessEnv = process.env): string {
  const given = environment.XDG_STATE_HOME ?? '';
  return join(isAbsolute(given) ? given : join(homedir(), '.local', 'state'), 'runchart');
}

/** The log of a session. Throws ConfigurationError for an id that is no name. */
export const logPath = (directory: string, session: string): string => join(directory, fileNameOf(session));

/** An id that sorts by time. */
export function newSessionId(now = new Date()): string {
  const time = now.toISOString().slice(0, 19).replaceAll(/[-:]/g, '').replace('T', '-');
  return `${time}-${randomBytes(3).toString('hex')}`;
}

/** The directory a run works in, by its real path. Throws ConfigurationError where it is none. */
export async function workingDirectory(given = '.'): Promise<string> {
  const path = resolve(given);
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory()) return realpath(path);
  const what = found ? 'is not a directory' : 'does not exist';
  throw new ConfigurationError(`expected a working directory, but ${path} ${what}: give one with --cwd`);
}
