/**
 * The contract of a log store as cases. Invariant: every case applies to every store. A store's own format, limits and
 * crashes have separate tests.
 */
import type { LogStore } from '../../stores/logStore.ts';
import { appendCases, ownershipCases } from './appendCases.ts';
import { blobCases, blobPlaceCases } from './blobCases.ts';
import { contentCases } from './contentCases.ts';
import { closeCases, deleteCases, leaseCases } from './lifecycleCases.ts';
import { idCases, listCases } from './listCases.ts';
import { ownerCases, pageCases } from './pageCases.ts';
import { readCases, sizeCases } from './readCases.ts';
import { actCases, followerCases, takeoverCases } from './sharedCases.ts';
import { statusCases } from './statusCases.ts';
import type { SharedPlace, StoreCase } from './storeCase.ts';

/** The test functions that a suite uses, for example those of Vitest. */
export interface SuiteRunner {
  /** Groups tests under a name. */
  describe(name: string, body: () => void): void;
  /** Declares one test. */
  test(name: string, body: () => Promise<void>): void;
}

const groups: readonly (readonly [name: string, cases: readonly StoreCase[]])[] = [
  ['entries are appended', appendCases],
  ['entries are read', readCases],
  ['what an entry holds comes back', contentCases],
  ['long logs and large entries', sizeCases],
  ['whose an entry is once it was handed over', ownershipCases],
  ['bytes beside the entries', blobCases],
  ['where bytes belong', blobPlaceCases],
  ['one opener at a time', leaseCases],
  ['handles are closed', closeCases],
  ['ids of conversations', idCases],
  ['the list of conversations', listCases],
  ['what the list says of a conversation', statusCases],
  ['pages of the list, and titles', pageCases],
  ['owners of conversations', ownerCases],
  ['deleting a conversation', deleteCases],
  ['followers of other processes', followerCases],
  ['acts of other processes', actCases],
];

/**
 * Declares one test for each case. `makeStore` returns an empty store each time. `runner` contains vitest's or
 * node:test's `describe` and `test`, or your own. A failed case rejects with an AssertionError. `shared`: for a store that several
 * processes share; without `endLeases` the end of a holder is not tested.
 */
export function logStoreSuite(
  makeStore: () => Promise<LogStore>,
  runner: SuiteRunner,
  shared: Partial<SharedPlace> = {},
): void {
  const { another, endLeases } = shared;
  const takeover = endLeases ? [['holders that die', takeoverCases] as const] : [];
  for (const [group, cases] of [...groups, ...takeover]) {
    runner.describe(group, () => {
      for (const [name, check] of cases) {
        runner.test(name, async () => {
          const store = await makeStore();
          await check(store, { another: another ?? (async () => store), ...(endLeases && { endLeases }) });
        });
      }
    });
  }
}
