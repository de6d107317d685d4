/** Tests that the SQLite store keeps the contract of stores, with both durabilities. */
import { describe, expect, test } from 'vitest';
import { sqliteStore } from '../../src/stores/sqlite/sqliteStore.ts';
import { logStoreSuite } from '../../src/testing/storeSuite/logStoreSuite.ts';
import { proves, sampled, volume } from '../support/tier.ts';
import { hasSqlite, sqlitePlaces } from './sqlitePlace.ts';

const { place } = sqlitePlaces();

describe.skipIf(hasSqlite)('sqliteStore on a Node without node:sqlite', () => {
  test('is refused at the call, with the version that is needed', () => {
    expect(() => sqliteStore('conversations.db')).toThrow(
      expect.objectContaining({ code: 'configuration', message: expect.stringContaining('Node has from 22.13 on') }),
    );
  });
});

describe.runIf(hasSqlite).each(['process', 'power'] as const)('sqliteStore, durability %s', (durability) => {
  const makeStore = async () => (await place({ durability })).store;
  const names: string[] = [];
  logStoreSuite(makeStore, { describe: (_, body) => body(), test: (name) => void names.push(name) });
  // Both durabilities take the same way, except for the sync.
  const taken = new Set(sampled(names, volume.threadedCaseOf));
  logStoreSuite(makeStore, {
    describe,
    test: (name, body) => test.skipIf(!taken.has(name) || (!proves && name.includes('hundred thousand')))(name, body),
  });
});
