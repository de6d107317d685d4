/**
 * The names of sessions: new ones, chosen ones, and quoted ones. Invariant: an unknown session name is answered with
 * similar names.
 */
import { randomBytes } from 'node:crypto';
import { realpath, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { ConfigurationError } from '../../errors.ts';
import type { ConversationInfo, ListOptions, LogStore } from '../../stores/logStore.ts';
import type { SessionPlace } from './sessionPlace.ts';

/** Returns an id that sorts by time. */
export function newSessionId(now = new Date()): string {
  const time = now.toISOString().slice(0, 19).replaceAll(/[-:]/g, '').replace('T', '-');
  return `${time}-${randomBytes(3).toString('hex')}`;
}

/** Returns true if a shell reads the text as one literal word, and no command reads it as an option. */
export const isPlainWord = (text: string): boolean => /^[\w.@%+][\w.@%+:-]*$/.test(text);

/** Quotes a text as one word of a command line. */
export const shellWord = (text: string): string => (isPlainWord(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** Throws ConfigurationError if the session to continue does not exist, or if the session to begin exists. */
export async function checkSession(place: SessionPlace, session: string, begins?: boolean): Promise<void> {
  const exists = await place.has(session);
  if (begins && exists) {
    throw new ConfigurationError(`the session ${session} exists already: leave out --new to go on with it`);
  }
  if (begins || exists) return;
  const near = await nearSessions(place, session);
  const how = begins === undefined ? '' : ': --new begins one of that name';
  throw new ConfigurationError(`there is no session ${session} in ${place.path}${how}.${near}`);
}

/** The options that choose a session, by its name or as the latest of this directory. */
export interface SessionChoice {
  session?: string;
  new?: boolean;
  continue?: boolean;
  resume?: string | true;
}

/**
 * Resolves to the chosen session, checked, or to undefined for a new one with a generated name. Throws
 * ConfigurationError.
 */
export async function chosenSession(
  choice: SessionChoice,
  place: SessionPlace,
  cwd: string,
): Promise<string | undefined> {
  const { session, resume, new: begins = false } = choice;
  const named = session ?? (typeof resume === 'string' ? resume : undefined);
  const chosen = [session, resume, choice.continue || undefined].filter((option) => option !== undefined);
  if (chosen.length > 1) throw new ConfigurationError('give one of --session, --continue and --resume');
  if (named !== undefined) {
    await checkSession(place, named, session === undefined ? undefined : begins);
    return named;
  }
  if (begins) throw new ConfigurationError('--new begins the session that --session names: give both');
  if (choice.continue) return latestSession(place, cwd);
  if (resume !== true) return undefined;
  throw new ConfigurationError(`expected --resume to name a session.${await nearSessions(place, '')}`);
}

async function latestSession({ store, path }: SessionPlace, cwd: string): Promise<string> {
  // A session without a message is not the latest session for a person.
  const latest = (await store.list()).find(
    ({ cwd: where, title, turns }) => where === cwd && (title !== undefined || turns > 0),
  );
  if (latest) return latest.id;
  throw new ConfigurationError(`there is no session to continue: none in ${path} works in ${cwd}`);
}

/** For a message: sessions with similar names, else the latest ones. Empty if there are none. */
export async function nearSessions({ store }: SessionPlace, name: string): Promise<string> {
  const ids = (await store.list()).map(({ id }) => id);
  const near = nearNames(name, ids);
  if (near.length > 0) return ` Did you mean ${near.join(' or ')}?`;
  return ids.length > 0 ? ` The latest are ${ids.slice(0, SHOWN).join(', ')}.` : '';
}

const SHOWN = 3;

/** Returns the nearest names: those that begin with it, or differ in at most a third of the letters. */
export function nearNames(name: string, names: readonly string[]): string[] {
  const wanted = name.toLowerCase();
  const most = Math.max(1, Math.floor(name.length / 3));
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

/** Counts insertions, deletions, changes and swaps of neighbours. Stops counting above `most`. */
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

/** Resolves to the real path of the working directory. Throws ConfigurationError if it is not a directory. */
export async function workingDirectory(directory = '.'): Promise<string> {
  const path = resolve(directory);
  const status = await stat(path).catch(() => undefined);
  if (status?.isDirectory()) return realpath(path);
  const what = status ? 'is not a directory' : 'does not exist';
  throw new ConfigurationError(`expected a working directory, but ${path} ${what}: give one with --cwd`);
}

const PAGE = 200;

/** The sessions of one directory: pages of all sessions are read until one of these is full. */
export async function sessionsIn(
  cwd: string,
  agent: Pick<LogStore, 'list'>,
  options: ListOptions = {},
): Promise<ConversationInfo[]> {
  const { limit, ...rest } = options;
  const found: ConversationInfo[] = [];
  for (let { cursor } = options; ; ) {
    const page = await agent.list({ ...rest, limit: PAGE, ...(cursor !== undefined && { cursor }) });
    found.push(...page.filter((session) => session.cwd === cwd));
    cursor = page.at(-1)?.cursor;
    if (page.length < PAGE || found.length >= (limit ?? Number.POSITIVE_INFINITY)) return found.slice(0, limit);
  }
}
