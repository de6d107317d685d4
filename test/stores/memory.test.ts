/** Tests that the memory store keeps the contract of stores. */
import { describe, expect, test } from 'vitest';
import { memoryStore } from '../../src/stores/memory.ts';
import { logStoreSuite } from '../../src/testing/storeSuite/logStoreSuite.ts';
import { all, conversation, notice } from '../../src/testing/storeSuite/storeCase.ts';

describe('memoryStore', () => {
  logStoreSuite(async () => memoryStore(), { describe, test });

  test('frozen entries are stored without a copy', async () => {
    const handle = await memoryStore().open('c');
    const entry = Object.freeze(notice('c', 0));
    handle.appendNow?.([entry], 0);
    const [stored] = await all(handle);
    expect(stored).toBe(entry);
  });

  test('two stores share nothing', async () => {
    const one = await memoryStore().open('c');
    await one.append([conversation('c')], 0);
    const other = memoryStore();
    expect(await all(await other.open('c'))).toEqual([]);
  });

  test('a synchronous append to a closed handle is refused', async () => {
    const handle = await memoryStore().open('c');
    await handle.close();
    expect(() => handle.appendNow?.([notice('c', 0)], 0)).toThrow(expect.objectContaining({ code: 'closed' }));
  });
});
