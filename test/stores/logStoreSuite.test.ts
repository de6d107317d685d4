/** Tests that the store suite passes correct stores and fails broken ones. */
import { describe, expect, test } from 'vitest';
import type { LogStore } from '../../src/stores/logStore.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { logStoreSuite } from '../../src/testing/storeSuite/logStoreSuite.ts';
import { proves, sampled, volume } from '../support/tier.ts';
import { brokenStore, FAULTS, type Fault } from './brokenStore.ts';

interface Case {
  group: string;
  name: string;
  run(): Promise<void>;
}

/** A case of a broken store that does not end has failed. */
const PATIENCE_MS = 1500;

/** The cases of the suite as a runner receives them. */
function casesFor(makeStore: () => LogStore): Case[] {
  const cases: Case[] = [];
  let group = '';
  logStoreSuite(async () => makeStore(), {
    describe(name, body) {
      group = name;
      body();
    },
    test: (name, run) => void cases.push({ group, name, run }),
  });
  return cases;
}

async function failuresOf(cases: readonly Case[], patienceMs = PATIENCE_MS): Promise<string[]> {
  const failed: string[] = [];
  for (const { name, run } of cases) {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error('it does not end')), patienceMs);
    });
    await Promise.race([run(), late]).catch(() => failed.push(name));
    clearTimeout(timer);
  }
  return failed;
}

const cases = casesFor(memoryStore);
const LISTS = ['the list of conversations', 'what the list says of a conversation', 'pages of the list, and titles'];
/** The case groups that must detect a kind of fault. All groups would take a minute. */
const GROUPS: Record<keyof typeof FAULTS, readonly string[]> = {
  store: [
    'entries are read',
    'one opener at a time',
    'handles are closed',
    'where bytes belong',
    'deleting a conversation',
    LISTS[0] ?? '',
    LISTS[2] ?? '',
    'owners of conversations',
  ],
  handle: [
    'entries are appended',
    'entries are read',
    'whose an entry is once it was handed over',
    'one opener at a time',
    'handles are closed',
    'where bytes belong',
  ],
  blobs: ['bytes beside the entries', 'where bytes belong'],
  content: ['what an entry holds comes back'],
  sizes: ['long logs and large entries'],
  ids: ['ids of conversations'],
  list: LISTS,
};
const faults = (Object.keys(FAULTS) as (keyof typeof FAULTS)[]).flatMap((kind) =>
  FAULTS[kind].map((fault): [Fault, readonly string[]] => [fault, GROUPS[kind]]),
);

describe('the suite', () => {
  test('has at least eighty cases, each with a name of its own', () => {
    expect(cases.length).toBeGreaterThanOrEqual(80);
    expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length);
  });

  test('finds nothing wrong with a store without faults', { timeout: 120_000 }, async () => {
    expect(
      await failuresOf(
        casesFor(() => brokenStore(new Set())),
        60_000,
      ),
    ).toEqual([]);
  });

  test('fails a store with every fault in at least twenty cases', { timeout: 120_000 }, async () => {
    const every = new Set(faults.map(([fault]) => fault));
    const failed = await failuresOf(casesFor(() => brokenStore(every)));
    expect(failed.length).toBeGreaterThanOrEqual(20);
  });
});

describe('a store with one fault fails the suite:', () => {
  const found = new Set<string>();

  test.each(sampled(faults, volume.storeFaultOf))('it %s', { timeout: 120_000 }, async (fault, groups) => {
    const looked = casesFor(() => brokenStore(new Set([fault]))).filter(({ group }) => groups.includes(group));
    const failed = await failuresOf(looked);
    for (const name of failed) found.add(name);
    expect(failed).not.toEqual([]);
  });

  test.skipIf(!proves)(
    'and every case for stores of one process has found one of these (test/stores/sharedStoreSuite.test.ts has the others)',
    () => {
      const ofOneProcess = cases.filter(({ group }) => !group.endsWith('of other processes'));
      expect(ofOneProcess.map(({ name }) => name).filter((name) => !found.has(name))).toEqual([]);
    },
  );
});
