/**
 * Reads a log of a SQLite file that may be damaged or in use. Invariant: it takes no lease. Values that are not JSON are skipped and
 * counted.
 */
import { parsed } from '../entryJson.ts';
import { LogDatabase } from './logDatabase.ts';

/** Passes on the values of a log in order, in the calling thread. Returns the number of those that cannot be read. */
export function readSqliteLog(path: string, id: string, take: (value: unknown) => void): number {
  const database = new LogDatabase(path, 'NORMAL');
  let unreadable = 0;
  try {
    for (const text of database.texts({ id })) {
      const value = parsed(text);
      if (value === undefined) unreadable += 1;
      else take(value);
    }
    return unreadable;
  } finally {
    database.close();
  }
}
