/** Tests that the store suite passes a correct store that processes share, and fails broken ones. */
import { describe, expect, test } from 'vitest';
import type { LogEntry } from '../../src/index.ts';
import type { Live } from '../../src/live.ts';
import type { Act, LogHandle, LogStore } from '../../src/stores/logStore.ts';
import { logStoreSuite } from '../../src/testing/storeSuite/logStoreSuite.ts';
import { sharedMemoryStore } from '../support/sharedMemoryStore.ts';

type SharedStore = ReturnType<typeof sharedMemoryStore>;
type Following = AsyncIterable<LogEntry | Live>;

const PATIENCE_MS = 500;
const GROUPS = ['followers of other processes', 'acts of other processes'];

async function failuresOf(makeStore: () => LogStore): Promise<string[]> {
  const cases: [name: string, body: () => Promise<void>][] = [];
  let isShared = false;
  logStoreSuite(async () => makeStore(), {
    describe(name, body) {
      isShared = GROUPS.includes(name);
      body();
    },
    test: (name, body) => void (isShared && cases.push([name, body])),
  });
  const failed = await Promise.all(
    cases.map(async ([name, body]) => {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(new Error('it does not end')), PATIENCE_MS);
      });
      try {
        await Promise.race([body(), late]);
        return [];
      } catch {
        return [name];
      } finally {
        clearTimeout(timer);
      }
    }),
  );
  return failed.flat();
}

async function* mapped(items: Following, map: (item: LogEntry | Live) => (LogEntry | Live)[]): Following {
  for await (const item of items) yield* map(item);
}
const isSeq = (item: LogEntry | Live, seq: number): boolean => 'seq' in item && item.seq === seq;

/** The store, whose handles are changed. */
function withHandles(store: SharedStore, change: (handle: LogHandle) => LogHandle): LogStore {
  const open = store.open.bind(store);
  return Object.assign(store, { open: async (id: string, options?: object) => change(await open(id, options)) });
}

const FAULTS: Record<string, (store: SharedStore) => LogStore> = {
  'a follower that repeats an entry': (store) => {
    const { follow } = store;
    return Object.assign(store, {
      follow: (id: string, from?: number) =>
        mapped(follow(id, from), (item) => (isSeq(item, 1) ? [item, item] : [item])),
    });
  },
  'a follower that leaves an entry out': (store) => {
    const { follow } = store;
    return Object.assign(store, {
      follow: (id: string, from?: number) => mapped(follow(id, from), (item) => (isSeq(item, 1) ? [] : [item])),
    });
  },
  'a follower that always begins at the first entry': (store) => {
    const { follow } = store;
    return Object.assign(store, { follow: (id: string) => follow(id) });
  },
  'a follower of nothing that waits': (store) => {
    const { follow } = store;
    return Object.assign(store, {
      follow: async function* (id: string, from?: number) {
        if (id === 'nothing') await new Promise(() => {});
        yield* follow(id, from);
      },
    });
  },
  'a state without its holder': (store) => {
    const { stateOf } = store;
    return Object.assign(store, { stateOf: async (id: string) => ({ ...(await stateOf(id)), isHeld: false }) });
  },
  'an act that is done again under its id': (store) => {
    const { act } = store;
    let count = 0;
    return Object.assign(store, {
      act: (id: string, asked: Act) => {
        count += 1;
        return act(id, { ...asked, actId: `${asked.actId}${count}` });
      },
    });
  },
  'an act that loses what it asks for': (store) => {
    const { act } = store;
    return Object.assign(store, { act: (id: string, { actId }: Act) => act(id, { actId, type: 'case' }) });
  },
  'an act that waits for a holder for ever': (store) => {
    const { act } = store;
    return Object.assign(store, {
      act: async (id: string, asked: Act) =>
        (await store.stateOf(id)).isHeld ? act(id, asked) : new Promise<never>(() => {}),
    });
  },
  'handles without acts': (store) => withHandles(store, ({ acts$: _, ...handle }) => handle),
  'acts that go on after the handle': (store) =>
    withHandles(store, (handle) => {
      const { acts$ } = handle;
      if (!acts$) return handle;
      return {
        ...handle,
        acts$: { subscribe: (observer: object) => acts$.subscribe({ ...observer, complete() {} }) } as never,
      };
    }),
  'an effect that is not answered': (store) => withHandles(store, (handle) => ({ ...handle, expectEffect: () => {} })),
};

describe('the suite for stores that processes share', () => {
  test('passes a correct store, and a store without such parts', async () => {
    expect(await failuresOf(sharedMemoryStore)).toEqual([]);
    const bare = (): LogStore => {
      const { open, list, delete: remove } = sharedMemoryStore();
      return { open, list, delete: remove };
    };
    expect(await failuresOf(bare)).toEqual([]);
  });

  test.each(Object.entries(FAULTS))('fails one with %s', async (_, broken) => {
    expect(await failuresOf(() => broken(sharedMemoryStore()))).not.toEqual([]);
  });
});
