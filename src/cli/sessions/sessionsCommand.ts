/**
 * `runchart sessions` and `runchart rm`: what is kept, and how to be rid of it. Rule: a list takes no lease and changes nothing; nothing is
 * removed before every name was found.
 */
import { SessionBusyError } from '../../errors.ts';
import { jsonlStore } from '../../stores/jsonl/store.ts';
import type { ConversationInfo } from '../../stores/store.ts';
import { BUSY } from '../exitCodes.ts';
import { jsonLine, type Screen, shortened } from '../screen.ts';
import { costText, count } from '../tally.ts';
import { checkSession, sessionsDirectory, workingDirectory } from './sessionStore.ts';

export interface SessionsOptions {
  store?: string;
  cwd?: string;
  /** Of every working directory. */
  all?: boolean;
  json?: boolean;
  /** Nothing but the ids. */
  ids?: boolean;
}

const ID_MAX = 40;
const CWD_MAX = 60;

export async function sessionsCommand(options: SessionsOptions, screen: Screen, now: number): Promise<number> {
  const directory = sessionsDirectory(options.store);
  const cwd = options.all ? undefined : await workingDirectory(options.cwd);
  const found = (await jsonlStore(directory).list()).filter((session) => cwd === undefined || session.cwd === cwd);
  if (options.json) {
    for (const session of found) screen.reply(`${jsonLine(session)}\n`);
  } else if (options.ids) {
    for (const { id } of found) screen.reply(`${id}\n`);
  } else {
    for (const session of found) screen.reply(`${sessionText(session, now, options.all === true)}\n`);
    const where = cwd === undefined ? directory : `${directory} works in ${cwd}; --all shows those of every directory`;
    if (found.length === 0) screen.line(['dim', `no session in ${where}`]);
  }
  screen.endLine();
  return 0;
}

/** One line: id, age, what it took, how it stands. */
export function sessionText(session: ConversationInfo, now: number, withDirectory = false): string {
  const { id, updatedAt, turns, costUsd, status, lastCause, cwd } = session;
  const cost = costText({ turns, inputTokens: 0, outputTokens: 0, costUsd });
  const stands = status === 'idle' && lastCause !== undefined && lastCause !== 'end_turn' ? lastCause : status;
  const parts = [id.padEnd(24), ageText(now - updatedAt).padStart(6), count(turns, 'turn').padStart(9), cost, stands];
  return [...parts, ...(withDirectory ? [shortened(cwd, CWD_MAX)] : [])].join('  ');
}

const UNITS: readonly [string, number][] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
];

function ageText(ms: number): string {
  const [name, size] = UNITS.find(([, unit]) => ms >= unit) ?? ['s', 1_000];
  return `${Math.max(0, Math.floor(ms / size))} ${name}`;
}

/** Removes sessions with all that belongs to them. Rejects with ConfigurationError, before anything is removed, for one that is not there. */
export async function removeCommand(
  ids: readonly string[],
  store: string | undefined,
  screen: Screen,
): Promise<number> {
  const directory = sessionsDirectory(store);
  for (const id of ids) await checkSession(directory, id);
  let code = 0;
  for (const id of new Set(ids)) {
    try {
      await jsonlStore(directory).delete(id);
      screen.line(['plain', `removed ${shortened(id, ID_MAX)}`]);
    } catch (error) {
      if (!(error instanceof SessionBusyError)) throw error;
      screen.line(['red', `${shortened(id, ID_MAX)} is in use and stays: ${error.message}`]);
      code = BUSY;
    }
  }
  return code;
}
