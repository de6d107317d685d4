/**
 * Cases of the store suite for the ids and the list of conversations. The rules are in storeCase.ts. A store may accept
 * or refuse an unusual id. It refuses with `configuration`, or stores a separate conversation.
 */
import assert from 'node:assert/strict';
import { RunchartError } from '../../errors.ts';
import type { LogStore } from '../../stores/logStore.ts';
import {
  conversation,
  modelReply,
  notice,
  onlyListed,
  opened,
  refused,
  STARTED,
  type StoreCase,
  sameEntries,
  stored,
  turn,
  write,
} from './storeCase.ts';

export const listCases: readonly StoreCase[] = [
  ['a new store lists nothing', async (store) => assert.deepEqual(await store.list(), [])],
  [
    'a conversation is listed with its place, times, turns and cost',
    async (store) => {
      await write(store, 'c', [conversation('c'), modelReply('c', 1, 0.5), modelReply('c', 2, 0.25)]);
      const { cursor: _, ...row } = await onlyListed(store);
      assert.deepEqual(row, {
        id: 'c',
        cwd: '/home/case',
        createdAt: STARTED,
        updatedAt: STARTED + 2000,
        turns: 2,
        costUsd: 0.75,
        status: 'idle',
      });
    },
  ],
  [
    'costs are added up to the last digit, however small',
    async (store) => {
      const costs = [2 ** -40, 2 ** -24, 2 ** -10, 1 + 2 ** -40];
      await write(store, 'c', [conversation('c'), ...costs.map((cost, index) => modelReply('c', index + 1, cost))]);
      assert.equal((await onlyListed(store)).costUsd, 1 + 2 ** -10 + 2 ** -24 + 2 ** -39);
    },
  ],
  [
    "sub-agents' conversations and empty ones are not listed",
    async (store) => {
      await write(store, 'sub', [conversation('sub', { conversationId: 'c', callId: 'call' })]);
      await opened(store, 'empty', async () => {});
      await write(store, 'c', [conversation('c')]);
      assert.equal((await onlyListed(store)).id, 'c');
    },
  ],
  [
    'what is appended after opening again counts in the list',
    async (store) => {
      await write(store, 'c', [conversation('c'), modelReply('c', 1, 0.5)]);
      await opened(store, 'c', (handle) => handle.append([modelReply('c', 2, 0.5), notice('c', 3)], 2));
      const { turns, costUsd, createdAt, updatedAt } = await onlyListed(store);
      const expected = { turns: 2, costUsd: 1, createdAt: STARTED, updatedAt: STARTED + 3000 };
      assert.deepEqual({ turns, costUsd, createdAt, updatedAt }, expected);
    },
  ],
  [
    'the last entry says when a conversation was updated, also where its clock went back',
    async (store) => {
      await write(store, 'c', [conversation('c'), notice('c', 1), { ...notice('c', 2), at: STARTED - 5000 }]);
      assert.equal((await onlyListed(store)).updatedAt, STARTED - 5000);
    },
  ],
  [
    'a log that begins otherwise than a conversation does is listed all the same',
    async (store) => {
      await write(store, 'c', [notice('c', 0), modelReply('c', 1, 1)]);
      const { id, turns, updatedAt } = await onlyListed(store);
      assert.deepEqual({ id, turns, updatedAt }, { id: 'c', turns: 1, updatedAt: STARTED + 1000 });
    },
  ],
  [
    'the list begins with the conversation that was used last',
    async (store) => {
      for (const [id, seconds] of Object.entries({ old: 1, newest: 9, middle: 5 })) {
        await write(store, id, [conversation(id), { ...notice(id, 1), at: STARTED + seconds * 1000 }]);
      }
      assert.deepEqual(await idsIn(store), ['newest', 'middle', 'old']);
      await opened(store, 'old', (handle) => handle.append([{ ...notice('old', 2), at: STARTED + 20_000 }], 2));
      assert.deepEqual(await idsIn(store), ['old', 'newest', 'middle']);
    },
  ],
  [
    'listing disturbs no open handle and keeps no conversation from being opened',
    async (store) => {
      await write(store, 'c', [conversation('c')]);
      await opened(store, 'other', async (handle) => {
        await handle.append([conversation('other')], 0);
        const appending = handle.append([notice('other', 1)], 1);
        const [, c] = await Promise.all([store.list(), store.open('c'), store.list(), appending]);
        await c.append([notice('c', 1)], 1);
        await c.close();
        assert.deepEqual((await idsIn(store)).sort(), ['c', 'other']);
        await refused('session_busy', () => store.open('other'));
      });
    },
  ],
  [
    'a list is for its caller to change',
    async (store) => {
      await write(store, 'c', [conversation('c')]);
      const list = await store.list();
      for (const found of list) Reflect.set(found, 'id', 'changed');
      list.push(...list);
      assert.equal((await onlyListed(store)).id, 'c');
    },
  ],
  [
    'a list asked for during an append shows the conversation before or after it',
    async (store) => {
      await opened(store, 'c', async (handle) => {
        await handle.append([conversation('c')], 0);
        for (let seq = 1; seq < 20; seq += 2) {
          let isSettled = false;
          const append = async () => {
            try {
              await handle.append([modelReply('c', seq, 1), modelReply('c', seq + 1, 1)], seq);
            } finally {
              isSettled = true;
            }
          };
          const look = async () => {
            for (; !isSettled; await turn()) {
              const { turns } = await onlyListed(store);
              assert.ok([seq - 1, seq + 1].includes(turns), `${turns} turns between ${seq - 1} and ${seq + 1}`);
            }
          };
          await Promise.all([append(), look()]);
        }
      });
    },
  ],
  [
    'a hundred and one conversations are listed',
    async (store) => {
      const ids = Array.from({ length: 101 }, (_, index) => `conversation ${index}`);
      for (let at = 0; at < ids.length; at += 10) {
        await Promise.all(ids.slice(at, at + 10).map((id) => write(store, id, [conversation(id)])));
      }
      assert.deepEqual((await idsIn(store)).sort(), ids.sort());
    },
  ],
  [
    'every conversation is listed once, under the id it is opened by',
    async (store) => {
      const ids = ['a', 'b c', '.d', 'ä%'];
      for (const id of ids) await write(store, id, [conversation(id)]);
      assert.deepEqual((await idsIn(store)).sort(), ids.sort());
    },
  ],
];

async function idsIn(store: LogStore): Promise<string[]> {
  return (await store.list()).map(({ id }) => id);
}

export const idCases: readonly StoreCase[] = [
  [
    'ids of letters, digits, dots, dashes and underscores are taken',
    async (store) => {
      const ids = ['a', 'a.b', '.a', 'a-b', 'a_b', '-a', '0', '3f2a-b', 'a..b', 'x'.repeat(100)];
      assert.deepEqual(await keptApart(store, ids), ids);
    },
  ],
  [
    'ids of any language, with spaces or percent signs, are kept apart',
    async (store) => {
      const ids = ['a b', 'a%20b', 'a+b', '%', '%zz', 'ä', 'a\u0308', '日本', '🎉', 'İ', 'ﬁ', 'fi'];
      assert.deepEqual(await keptApart(store, ids), ids);
    },
  ],
  [
    'ids with names that mean something to objects or to the store are ordinary',
    async (store) => {
      const ids = [
        '__proto__',
        'constructor',
        'toString',
        'c',
        'c.jsonl',
        'c.lock',
        'c.jsonl.lock',
        'c.blobs',
        'index',
      ];
      assert.deepEqual(await keptApart(store, ids), ids);
    },
  ],
  [
    'ids that differ in case only are two conversations',
    async (store) => {
      const ids = ['case', 'Case', 'CASE'];
      assert.deepEqual(await keptApart(store, ids), ids);
    },
  ],
  [
    'ids that look like one number are kept apart',
    async (store) => {
      const ids = ['1', '01', '1.0', '1e0', '+1', '0x1'];
      assert.deepEqual(await keptApart(store, ids), ids);
    },
  ],
  [
    'ids that differ in white space only are never mixed up',
    (store) => keptApart(store, ['w', ' w', 'w ', 'w\t', 'w\n']),
  ],
  [
    'ids that look like paths are refused, or are no paths',
    (store) => keptApart(store, ['p', '.', '..', '../p', './p', 'p/', '/p', 'q/../p', 'p\\q', 'p/q', 'C:p', 'file:p']),
  ],
  [
    'empty ids and ids that are no well-formed text are refused, or kept apart',
    (store) => keptApart(store, ['', '\ud800', '\udfff', '\ufffd', 'n', 'n\0', '\0n', 'n\0m']),
  ],
  [
    'ids that differ at the end of a long text only are never mixed up',
    async (store) => {
      for (const length of [150, 255, 4096, 100_000]) {
        const long = 'l'.repeat(length);
        await keptApart(store, [`${long}a`, `${long}b`, long]);
      }
    },
  ],
];

/** Returns the accepted ids. Each has its own conversation, which is read and listed under that id. */
async function keptApart(store: LogStore, ids: readonly string[]): Promise<string[]> {
  const taken: string[] = [];
  const before = (await store.list()).length;
  for (const id of ids) {
    try {
      await write(store, id, [conversation(id), notice(id, 1, `of ${id}`)]);
      taken.push(id);
    } catch (error) {
      if (!RunchartError.isRunchartError(error)) throw error;
      assert.equal(error.code, 'configuration', error.message);
    }
  }
  for (const id of taken) sameEntries(await stored(store, id), [conversation(id), notice(id, 1, `of ${id}`)]);
  const listed = new Set((await store.list()).map((info) => info.id));
  assert.equal(listed.size, before + taken.length);
  for (const id of taken) assert.ok(listed.has(id), `${JSON.stringify(id.slice(0, 99))} is not listed`);
  return taken;
}
