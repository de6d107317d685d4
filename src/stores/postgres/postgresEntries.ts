/**
 * Reads the entries of a log from the database. Invariant: a text that is not the entry of its place is refused. A long log is read in
 * pages, so it may be larger than the memory of its reader.
 */
import type { LogEntry } from '../../../machines/vocabulary.ts';
import { entryIn } from '../entryJson.ts';
import { type Database, storeError } from './database.ts';
import type { Statements } from './statements.ts';

/** Yields entries from seq `from` to before `until`, and fewer if the log is shorter. Throws CorruptLogError. */
export async function* readEntries(
  { database, statements }: { database: Database; statements: Statements },
  id: string,
  from: number,
  until: number,
): AsyncGenerator<LogEntry> {
  for (let next = from; next < until; ) {
    const page = await database.repeat(statements.read, [id, next, until]).catch((cause) => {
      throw storeError(`the log of conversation "${id}" cannot be read`, cause);
    });
    if (page.length === 0) return;
    for (const { entry } of page) {
      yield entryIn(entry, next, id);
      next += 1;
    }
  }
}
