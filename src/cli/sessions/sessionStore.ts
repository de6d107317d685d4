/**
 * Where sessions are kept: `--store`, else `$XDG_STATE_HOME/runchart`, else `~/.local/state/runchart`. Rule: a log lies outside the
 * directory its run works in, so that no tool of the run can change it. A name without a session is answered with the
 * names it may stand for.
 */
import { randomBytes } from 'node:crypto';
import { lstat, realpath, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';
import { ConfigurationError } from '../../errors.ts';
import { fileNameOf } from '../../stores/jsonl/fileName.ts';
import { jsonlStore } from '../../stores/jsonl/store.ts';

/** `given` by --store, else where they usually are. */
export function sessionsDirectory(given?: string, environment: NodeJS.ProcessEnv = process.env): string {
  if (given !== undefined && given !== '') return resolve(given);
  const state = environment.XDG_STATE_HOME ?? '';
  return join(isAbsolute(state) ? state : join(homedir(), '.local', 'state'), 'runchart');
}

/** The log of a session. Throws ConfigurationError for an id that is no name. */
export const logPath = (directory: string, session: string): string => join(directory, fileNameOf(session));

/** An id that sorts by time. */
export function newSessionId(now = new Date()): string {
  const time = now.toISOString().slice(0, 19).replaceAll(/[-:]/g, '').replace('T', '-');
  return `${time}-${randomBytes(3).toString('hex')}`;
}

/** Throws ConfigurationError where there is none to go on with, and where there is one already that is to be begun. */
export async function checkSession(directory: string, session: string, begins?: boolean): Promise<void> {
  const found = await lstat(logPath(directory, session)).catch(() => undefined);
  if (begins && found) {
    throw new ConfigurationError(`the session ${session} exists already: leave out --new to go on with it`);
  }
  if (begins || found) return;
  const near = await nearSessions(directory, session);
  const how = begins === undefined ? '' : ': --new begins one of that name';
  throw new ConfigurationError(`there is no session ${session} in ${directory}${how}.${near}`);
}

/** Which session is meant, by its name or as the latest of this directory. */
export interface SessionChoice {
  session?: string;
  new?: boolean;
  continue?: boolean;
  resume?: string | true;
}

/** The session that options choose, checked; undefined where a new one is to be begun under a name of its own. Throws ConfigurationError. */
export async function chosenSession(
  choice: SessionChoice,
  directory: string,
  cwd: string,
): Promise<string | undefined> {
  const { session, resume, new: begins = false } = choice;
  const named = session ?? (typeof resume === 'string' ? resume : undefined);
  const chosen = [session, resume, choice.continue || undefined].filter((given) => given !== undefined);
  if (chosen.length > 1) throw new ConfigurationError('give one of --session, --continue and --resume');
  if (named !== undefined) {
    await checkSession(directory, named, session === undefined ? undefined : begins);
    return named;
  }
  if (begins) throw new ConfigurationError('--new begins the session that --session names: give both');
  if (choice.continue) return latestSession(directory, cwd);
  if (resume !== true) return undefined;
  throw new ConfigurationError(`expected --resume to name a session.${await nearSessions(directory, '')}`);
}

async function latestSession(directory: string, cwd: string): Promise<string> {
  const latest = (await jsonlStore(directory).list()).find((session) => session.cwd === cwd);
  if (latest) return latest.id;
  throw new ConfigurationError(`there is no session to continue: none in ${directory} works in ${cwd}`);
}

/** For a message: the sessions whose names are near, else the latest ones; nothing where there is none at all. */
export async function nearSessions(directory: string, given: string): Promise<string> {
  const ids = (await jsonlStore(directory).list()).map(({ id }) => id);
  const near = nearNames(given, ids);
  if (near.length > 0) return ` Did you mean ${near.join(' or ')}?`;
  return ids.length > 0 ? ` The latest are ${ids.slice(0, SHOWN).join(', ')}.` : '';
}

const SHOWN = 3;

/** Nearest first: what begins so, or is at most a third of its letters away. */
export function nearNames(given: string, names: readonly string[]): string[] {
  const wanted = given.toLowerCase();
  const most = Math.max(1, Math.floor(given.length / 3));
  return names
    .map((name) => {
      const other = name.toLowerCase();
      return { name, away: wanted !== '' && other.startsWith(wanted) ? 0 : editsBetween(wanted, other, most) };
    })
    .filter(({ away }) => away <= most)
    .sort((a, b) => a.away - b.away)
    .slice(0, SHOWN)
    .map(({ name }) => name);
}

/** How many letters must be put in, left out, changed or swapped with the next; more than `most` is not counted. */
function editsBetween(from: string, to: string, most: number): number {
  if (Math.abs(from.length - to.length) > most) return most + 1;
  const at = (row: readonly number[] | undefined, column: number) => row?.[column] ?? most + 1;
  const rows: number[][] = [Array.from({ length: to.length + 1 }, (_, column) => column)];
  for (let down = 1; down <= from.length; down += 1) {
    const row = [down];
    for (let across = 1; across <= to.length; across += 1) {
      const same = from[down - 1] === to[across - 1] ? 0 : 1;
      const swapped = from[down - 1] === to[across - 2] && from[down - 2] === to[across - 1];
      row.push(
        Math.min(
          at(rows[down - 1], across) + 1,
          at(row, across - 1) + 1,
          at(rows[down - 1], across - 1) + same,
          swapped ? at(rows[down - 2], across - 2) + 1 : most + 1,
        ),
      );
    }
    rows.push(row);
  }
  return at(rows[from.length], to.length);
}

/** The directory a run works in, by its real path. Throws ConfigurationError where it is none. */
export async function workingDirectory(given = '.'): Promise<string> {
  const path = resolve(given);
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory()) return realpath(path);
  const what = found ? 'is not a directory' : 'does not exist';
  throw new ConfigurationError(`expected a working directory, but ${path} ${what}: give one with --cwd`);
}
