/**
 * The contract of a log store as cases. Rule: what is asked here holds for every store; a store's own format, limits
 * and crashes are tested beside it.
 */
import type { LogStore } from '../../stores/logStore.ts';
import { appendCases, ownershipCases } from './appendCases.ts';
import { blobCases, blobPlaceCases } from './blobCases.ts';
import { contentCases } from './contentCases.ts';
import { closeCases, deleteCases, leaseCases } from './lifecycleCases.ts';
import { idCases, listCases } from './listCases.ts';
import { readCases, sizeCases } from './readCases.ts';
import { statusCases } from './statusCases.ts';
import type { StoreCase } from './storeCase.ts';

export interface SuiteRunner {
  describe(name: string, body: () => void): void;
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
  ['deleting a conversation', deleteCases],
];

/**
 * Declares one test a case. `makeStore` gives an empty store each time; `runner` is vitest's, node:test's or your own
 * `describe` and `test`. A case that fails rejects with an AssertionError.
 */
export function logStoreSuite(makeStore: () => Promise<LogStore>, runner: SuiteRunner): void {
  for (const [group, cases] of groups) {
    runner.describe(group, () => {
      for (const [name, check] of cases) {
        runner.test(name, async () => {
          await check(await makeStore());
        });
      }
    });
  }
}
