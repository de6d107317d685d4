/** Tests copies of conversations between all pairs of stores. */
import { describe, expect, test } from 'vitest';
import { type LogEntry, sampleEntries } from '../../machines/internal.ts';
import { copyConversations, type LogHandle, type LogStore, memoryStore } from '../../src/index.ts';
import { logEntrySchema } from '../../src/schema.ts';
import {
  all,
  conversation,
  notice,
  opened,
  refused,
  STARTED,
  sameEntries,
  stamped,
  stored,
  write,
} from '../../src/testing/storeSuite/storeCase.ts';
import { volume } from '../support/tier.ts';
import { hasSqlite, sqlitePlaces } from './sqlitePlace.ts';
import { place as jsonlPlace } from './storeDirectory.ts';

const { place: sqlitePlace } = sqlitePlaces();
const makers: Record<string, () => Promise<LogStore>> = {
  memory: async () => memoryStore(),
  jsonl: async () => (await jsonlPlace()).store,
  ...(hasSqlite && { sqlite: async () => (await sqlitePlace()).store }),
};
const kinds = Object.keys(makers);
const pairs = kinds.flatMap((from) => kinds.map((to) => [from, to] as const));
const make = (kind: string): Promise<LogStore> => makers[kind]?.() ?? Promise.reject(new Error(kind));

const bytes = new Uint8Array([137, 80, 78, 71, 0, 255]);
const image = (data: string) => ({ type: 'image', mediaType: 'image/png', data }) as const;
const imageMessage = (id: string, seq: number, data: string): LogEntry =>
  stamped(id, seq, { type: 'user-message', messageId: `m${seq}`, kind: 'direct', content: [image(data)] });
const started = (id: string, seq: number, child: string): LogEntry =>
  stamped(id, seq, { type: 'sub-agent', callId: 'call', child, phase: 'started' });
const childOf = (id: string, conversationId: string): LogEntry => conversation(id, { conversationId, callId: 'call' });
const owned = (id: string, owner: string): LogEntry =>
  stamped(id, 0, { type: 'conversation', schema: 1, cwd: '/', createdAt: STARTED, owner });

/** A conversation with an image, one with sub-agents of two levels, and one of every type of entry. */
async function fill(store: LogStore): Promise<void> {
  await opened(store, 'image', async (handle) => {
    const reference = (await handle.putBlob?.(bytes, 'image/png')) ?? '';
    await handle.append(
      [owned('image', 'ann'), imageMessage('image', 1, reference), notice('image', 2, '\0\ud800 ä')],
      0,
    );
  });
  await write(store, 'inner', [childOf('inner', 'sub'), notice('inner', 1)]);
  await write(store, 'sub', [childOf('sub', 'c'), started('sub', 1, 'inner'), started('sub', 2, 'c')]);
  const renamed = stamped('c', 4, { type: 'renamed', title: 'A title' });
  await write(store, 'c', [
    conversation('c'),
    started('c', 1, 'sub'),
    started('c', 2, 'never'),
    started('c', 3, 'image'),
    renamed,
  ]);
  // The first sample is that of a sub-agent.
  await write(store, 'every', [conversation('every'), ...sampleEntries('every').slice(1)]);
}

const LOGS = ['image', 'inner', 'sub', 'c', 'every'];

async function expectSame(from: LogStore, to: LogStore, ids: readonly string[] = LOGS): Promise<void> {
  for (const id of ids) sameEntries(await stored(to, id), await stored(from, id));
}

/** A store whose process dies before its nth change: all later operations fail too. */
function dyingAt(store: LogStore, at: number): LogStore {
  let changes = 0;
  const live = <T>(act: () => Promise<T>): Promise<T> => {
    changes += 1;
    return changes >= at ? Promise.reject(new Error('it is dead')) : act();
  };
  return {
    list: (options) => store.list(options),
    delete: (id) => live(() => store.delete(id)),
    open: async (id, options) => {
      if (changes >= at) throw new Error('it is dead');
      const handle = await store.open(id, options);
      return withBlobsOf(handle, {
        append: (entries, seq) => live(() => handle.append(entries, seq)),
        putBlob: (blob, mediaType) => live(async () => handle.putBlob?.(blob, mediaType) ?? ''),
      });
    },
  };
}

function withBlobsOf(handle: LogHandle, changes: Partial<LogHandle>): LogHandle {
  return {
    read: (from) => handle.read(from),
    append: (entries, seq) => handle.append(entries, seq),
    close: () => handle.close(),
    getBlob: async (reference) => handle.getBlob?.(reference) ?? new Uint8Array(),
    ...changes,
  };
}

describe.each(pairs)('a copy from %s to %s', (fromKind, toKind) => {
  test('it has every conversation with its entries, blobs and sub-agents, and the same list', async () => {
    const [from, to] = [await make(fromKind), await make(toKind)];
    await fill(from);
    const steps: [number, number][] = [];
    const result = await copyConversations(from, to, { onProgress: (done, of) => void steps.push([done, of]) });
    expect(result).toEqual({ copied: 3, left: [] });
    expect(steps).toEqual([
      [0, 3],
      [1, 3],
      [2, 3],
      [3, 3],
    ]);
    await expectSame(from, to);
    expect(await to.list()).toEqual(await from.list());
    await opened(to, 'image', async (handle) => {
      const [, entry] = await all(handle);
      const [part] = entry?.type === 'user-message' ? entry.content : [];
      expect([...((await handle.getBlob?.(part?.type === 'image' ? part.data : '')) ?? [])]).toEqual([...bytes]);
    });
  });
});

describe('a copy of conversations', () => {
  test.each(kinds)('one to %s that was interrupted at any change is completed by the next one', async (kind) => {
    for (let at = 1; ; at += volume.caseOf) {
      const [from, to] = [memoryStore(), await make(kind)];
      await fill(from);
      const dead = await copyConversations(from, dyingAt(to, at)).then(
        () => false,
        (error: Error) => error.message === 'it is dead',
      );
      const { copied, left } = await copyConversations(from, to);
      expect(copied + left.length).toBe(3);
      await expectSame(from, to);
      expect(await to.list()).toEqual(await from.list());
      if (!dead) return expect(left.length).toBe(3);
      expect(at).toBeLessThan(40);
    }
  });

  test('an existing conversation of the target is left and listed, also while it is open there', async () => {
    const [from, to] = [memoryStore(), memoryStore()];
    await fill(from);
    await write(to, 'c', [conversation('c'), notice('c', 1, 'another one')]);
    await write(to, 'image', [conversation('image')]);
    const result = await opened(to, 'image', () => copyConversations(from, to));
    expect([result.copied, [...result.left].sort()]).toEqual([1, ['c', 'image']]);
    expect(await stored(to, 'c')).toEqual([conversation('c'), notice('c', 1, 'another one')]);
    expect(await stored(to, 'sub')).toEqual([]);
    expect((await copyConversations(from, to)).copied).toBe(0);
  });

  test.each([{ nope: 1 }, { owner: 5 }, { onProgress: 'yes' }])(
    'it refuses the options %j by name',
    async (options) => {
      const copying = copyConversations(memoryStore(), memoryStore(), options as never);
      await expect(copying).rejects.toMatchObject({
        code: 'configuration',
        message: expect.stringMatching(new RegExp(`copyConversations.*${Object.keys(options)[0]}`)),
      });
    },
  );

  test('it can be limited to an owner', async () => {
    const [from, to] = [memoryStore(), memoryStore()];
    await fill(from);
    expect(await copyConversations(from, to, { owner: 'ann' })).toEqual({ copied: 1, left: [] });
    expect((await to.list()).map(({ id }) => id)).toEqual(['image']);
  });

  test.each<[string, (entries: LogEntry[]) => LogEntry[]]>([
    ['loses an entry', (entries) => entries.slice(0, -1)],
    ['changes an entry', (entries) => entries.map((entry) => ({ ...entry, at: 0 }))],
  ])('a copy in a store that %s is an error, and is removed', async (_, distorted) => {
    const [from, inner] = [memoryStore(), memoryStore()];
    await write(from, 'c', [conversation('c'), notice('c', 1)]);
    const to: LogStore = {
      ...inner,
      async open(id, options) {
        const handle = await inner.open(id, options);
        const append = async (entries: readonly LogEntry[], seq: number) =>
          handle.append(id === 'c' ? distorted([...entries]) : entries, seq);
        return withBlobsOf(handle, { append });
      },
    };
    await expect(copyConversations(from, to)).rejects.toMatchObject({
      code: 'store',
      message: expect.stringContaining('the copy of conversation "c" differs and was removed'),
    });
    expect(await inner.list()).toEqual([]);
    expect(await copyConversations(from, inner)).toEqual({ copied: 1, left: [] });
  });

  test('each entry that a copy writes has the shape of an entry, also that of its mark', async () => {
    const [from, inner] = [memoryStore(), memoryStore()];
    await fill(from);
    const written: LogEntry[] = [];
    const to: LogStore = {
      ...inner,
      async open(id, options) {
        const handle = await inner.open(id, options);
        const append = async (entries: readonly LogEntry[], seq: number) => {
          written.push(...entries);
          await handle.append(entries, seq);
        };
        return withBlobsOf(handle, { append });
      },
    };
    await copyConversations(from, to);
    const marks = written.filter(({ conversationId }) => conversationId.startsWith('copy-'));
    expect(marks).toHaveLength(3);
    const faulty = written.filter((entry) => !logEntrySchema.safeParse(entry).success);
    expect(faulty).toEqual([]);
  });

  test('bytes that differ in the copy are an error', async () => {
    const [from, inner] = [memoryStore(), memoryStore()];
    await fill(from);
    const to: LogStore = {
      ...inner,
      async open(id, options) {
        const handle = await inner.open(id, options);
        const putBlob = async (blob: Uint8Array, mediaType: string) => handle.putBlob?.(blob.slice(1), mediaType) ?? '';
        return withBlobsOf(handle, { putBlob });
      },
    };
    await refused('store', () => copyConversations(from, to, { owner: 'ann' }));
    expect(await stored(inner, 'image')).toEqual([]);
  });

  test('a store without blobs receives base64', async () => {
    const [from, inner] = [memoryStore(), memoryStore()];
    await fill(from);
    const to: LogStore = {
      ...inner,
      async open(id, options) {
        const handle = await inner.open(id, options);
        return {
          read: (seq) => handle.read(seq),
          append: (entries, seq) => handle.append(entries, seq),
          close: () => handle.close(),
        };
      },
    };
    await copyConversations(from, to, { owner: 'ann' });
    expect((await stored(inner, 'image'))[1]).toEqual(imageMessage('image', 1, Buffer.from(bytes).toString('base64')));
  });

  test('a conversation that is open, and a sub-agent whose id the target has, are refused', async () => {
    const [from, to] = [memoryStore(), memoryStore()];
    await fill(from);
    await opened(from, 'c', () => refused('session_busy', () => copyConversations(from, to)));
    await write(to, 'sub', [conversation('sub')]);
    await refused('configuration', () => copyConversations(from, to));
    expect(await stored(to, 'sub')).toEqual([conversation('sub')]);
    await refused('configuration', () => copyConversations(from, from));
    await refused('configuration', () => copyConversations({} as LogStore, to));
  });
});
