/**
 * `runchart sessions` and `runchart rm`: list and remove sessions. Invariant: a list takes no lease and changes
 * nothing. Nothing is removed until every name was found.
 */
import { SessionBusyError } from '../../errors.ts';
import { jsonLine, printableLine, shortened } from '../../printable.ts';
import type { ConversationInfo } from '../../stores/logStore.ts';
import { costText, count } from '../costTally.ts';
import { BUSY } from '../exitCodes.ts';
import type { Screen } from '../screen.ts';
import { sessionPlace } from './sessionPlace.ts';
import { removeSession } from './sessionRemoval.ts';
import { checkSession, isPlainWord, workingDirectory } from './sessionStore.ts';

export interface SessionsOptions {
  store?: string;
  cwd?: string;
  /** Sessions of every working directory. */
  all?: boolean;
  json?: boolean;
  /** Only the ids that a shell reads literally, for completion. */
  ids?: boolean;
}

const ID_MAX = 40;
const CWD_MAX = 60;
const TITLE_MAX = 60;

export async function sessionsCommand(options: SessionsOptions, screen: Screen, now: number): Promise<number> {
  const place = await sessionPlace(options.store);
  const cwd = options.all ? undefined : await workingDirectory(options.cwd);
  const sessions = (await place.store.list()).filter((session) => cwd === undefined || session.cwd === cwd);
  if (options.json) {
    for (const session of sessions) screen.reply(`${jsonLine(session)}\n`);
  } else if (options.ids) {
    for (const { id } of sessions) if (isPlainWord(id)) screen.reply(`${id}\n`);
  } else {
    for (const session of sessions) screen.reply(`${sessionText(session, now, options.all === true)}\n`);
    const where =
      cwd === undefined ? place.path : `${place.path} works in ${cwd}; --all shows those of every directory`;
    if (sessions.length === 0) screen.line(['dim', `no session in ${where}`]);
  }
  screen.endLine();
  await place.close();
  return 0;
}

/** Returns one printable line: id, age, turns, cost, status, title. */
export function sessionText(session: ConversationInfo, now: number, withDirectory = false): string {
  const { id, cwd } = session;
  const { age, turns, cost, state, title } = sessionFacts(session, now);
  const parts = [id.padEnd(24), age.padStart(6), turns.padStart(9), cost, state];
  return printableLine([...parts, ...(withDirectory ? [shortened(cwd, CWD_MAX)] : []), title].join('  ').trimEnd());
}

/** The facts about a session in lists, as printable texts. The title is empty if there is none. */
export function sessionFacts(session: ConversationInfo, now: number) {
  const { updatedAt, turns, costUsd, title = '' } = session;
  return {
    age: ageText(now - updatedAt),
    turns: count(turns, 'turn'),
    cost: turns === 0 ? 'no cost' : costText({ turns, inputTokens: 0, outputTokens: 0, costUsd }),
    state: printableLine(stateText(session)),
    title: printableLine(shortened(title, TITLE_MAX)),
  };
}

/** Causes of a stop that are failures. Others are limits, decisions of the host, or names of plugins that ended a run. */
const FAILURES = new Set(['model', 'store', 'executor', 'tool', 'state', 'internal']);

function stateText({ status, lastCause }: ConversationInfo): string {
  // If a new conversation received earlier messages, its cause is `history`.
  const isPlain = lastCause === undefined || lastCause === 'end_turn' || lastCause === 'history';
  if (status !== 'idle' || isPlain) return status;
  // Its process has ended.
  if (lastCause === 'crash') return 'interrupted';
  return FAILURES.has(lastCause) ? `failed (${lastCause})` : lastCause;
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

/**
 * Removes sessions with all their files. Rejects with ConfigurationError for an unknown one, before anything is
 * removed.
 */
export async function removeCommand(
  ids: readonly string[],
  store: string | undefined,
  screen: Screen,
): Promise<number> {
  const place = await sessionPlace(store);
  for (const id of ids) await checkSession(place, id);
  let code = 0;
  for (const id of new Set(ids)) {
    try {
      await removeSession(place, id);
      screen.line(['plain', `removed ${shortened(id, ID_MAX)}`]);
    } catch (error) {
      if (!(error instanceof SessionBusyError)) throw error;
      screen.line(['red', `${shortened(id, ID_MAX)} is in use and stays: ${error.message}`]);
      code = BUSY;
    }
  }
  await place.close();
  return code;
}
