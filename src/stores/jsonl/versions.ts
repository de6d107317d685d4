/**
 * The versions a log's lines have had. Rule: the newest is written; a record of an older one is upgraded one version at
 * a time as it is read; a version without a way to the newest is refused.
 */
export type StoredRecord = { [key: string]: unknown };

export const VERSION = 2;

/**
 * By version: what makes one of its records into one of the next version. 1 is the first that was released; 2 leaves out
 * more of a line, and its entries are the same. A new version adds its step here, and fixtures of the one before it stay
 * in test/stores/fixtures.
 */
export const UPGRADES: ReadonlyMap<number, (record: StoredRecord) => StoredRecord> = new Map([[1, (record) => record]]);
