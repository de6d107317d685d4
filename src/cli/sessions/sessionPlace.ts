/**
 * Where sessions are kept: a directory of files, or with `--store sqlite:path` a SQLite file. Invariant: it is outside a
 * run's working directory or protected there, so no tool of the run can change a log.
 */
import { lstat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';
import { fileNameOf } from '../../stores/jsonl/fileName.ts';
import { jsonlStore } from '../../stores/jsonl/jsonlStore.ts';
import { type LogStore, mayExist } from '../../stores/logStore.ts';

export interface SessionPlace {
  /** The directory, or the file of the database. */
  readonly path: string;
  readonly store: LogStore;
  /** The directory with the contents of files before the agent changed them. */
  readonly history: string;
  /** The files and directories that no tool may change. */
  readonly files: readonly string[];
  /** True if there is a session of this name, also one with a damaged log. Throws ConfigurationError for an invalid name. */
  has(session: string): Promise<boolean>;
  /** Where the log of a session is, for people. */
  logText(session: string): string;
  /** The file of a session. Undefined in a database. Throws ConfigurationError for an invalid name. */
  logFile(session: string): string | undefined;
  /** Passes on the values of a log that is no file. Resolves with notes about omitted parts. Takes no lease. */
  readLog?(session: string, take: (value: unknown) => void): Promise<string[]>;
  close(): Promise<void>;
}

const SQLITE = /^sqlite:(?=.)/;

/** The place of `--store`, else the default one. Rejects with ConfigurationError if this Node has no SQLite. */
export async function sessionPlace(store?: string): Promise<SessionPlace> {
  if (store !== undefined && SQLITE.test(store)) return databasePlace(resolve(store.replace(SQLITE, '')));
  const directory = sessionsDirectory(store);
  return {
    path: directory,
    store: jsonlStore(directory),
    history: join(directory, 'history'),
    files: [directory],
    has: async (session) => (await lstat(logPath(directory, session)).catch(() => undefined)) !== undefined,
    logText: (session) => `log ${logPath(directory, session)}`,
    logFile: (session) => logPath(directory, session),
    close: async () => undefined,
  };
}

async function databasePlace(path: string): Promise<SessionPlace> {
  const { sqliteStore } = await import('../../stores/sqlite/sqliteStore.ts');
  const store = sqliteStore(path);
  return {
    path,
    store,
    // SQLite keeps the last two beside the file.
    files: [path, `${path}-wal`, `${path}-shm`, `${path}-history`],
    history: `${path}-history`,
    has: (session) => mayExist(store, session),
    logText: () => `database ${path}`,
    logFile: () => undefined,
    async readLog(session, take) {
      const { readSqliteLog } = await import('../../stores/sqlite/readSqliteLog.ts');
      const unreadable = readSqliteLog(path, session, take);
      return unreadable === 0 ? [] : [`${unreadable} entries are no JSON and were left out`];
    },
    close: () => store.close(),
  };
}

/** Returns the directory of `--store`, else `$XDG_STATE_HOME/runchart`, else `~/.local/state/runchart`. */
export function sessionsDirectory(store?: string, environment: NodeJS.ProcessEnv = process.env): string {
  if (store !== undefined && store !== '') return resolve(store);
  const state = environment.XDG_STATE_HOME ?? '';
  return join(isAbsolute(state) ? state : join(homedir(), '.local', 'state'), 'runchart');
}

/** Returns the log file of a session. Throws ConfigurationError for an invalid id. */
export const logPath = (directory: string, session: string): string => join(directory, fileNameOf(session));
