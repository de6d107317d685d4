/**
 * The order of a log. Rule: what is appended starts at the log's next seq and counts on without a gap, or nothing of
 * it is stored.
 */
import { StoreConflictError } from '../errors.ts';

/** What every store checks before it appends: the writer knows the log's length, and its entries follow on. */
export function refuseOutOfOrder(
  id: string,
  next: number,
  entries: readonly { readonly seq: number }[],
  expectedSeq: number,
): void {
  if (expectedSeq !== next) {
    throw new StoreConflictError(
      `the log of conversation "${id}" goes on at seq ${next}, the writer expected ${expectedSeq}: open it again`,
    );
  }
  const stray = entries.findIndex((entry, index) => entry.seq !== next + index);
  if (stray === -1) return;
  throw new StoreConflictError(
    `entry ${stray} of an append to conversation "${id}" has seq ${entries[stray]?.seq}, expected ${next + stray}`,
  );
}
