/**
 * The contract of a log store as cases. Rule: what is asked here holds for every store; a store's own format, limits
 * and crashes are tested beside it.
 */
import type { LogStore } from '../stores/store.ts';
import { appendCases } from './logStoreAppendCases.ts';
import { contentCases } from './logStoreContentCases.ts';
import { leaseCases } from './logStoreLeaseCases.ts';
import { deleteCases, listCases } from './logStoreListCases.ts';
import type { StoreCase } from './storeCase.ts';

export interface SuiteRunner {
  describe(name: string, body: () => void): void;
  test(name: string, body: () => Promise<void>): void;
}

const groups: readonly (readonly [name: string, cases: readonly StoreCase[]])[] = [
  ['entries are appended and read', appendCases],
  ['what an entry holds comes back', contentCases],
  ['one opener at a time', leaseCases],
  ['the list of conversations', listCases],
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
