/**
 * Cases of the store suite about pages of the list, titles and owners. Rule: see storeCase.ts. A row's cursor names its
 * place, so a page begins after it, whatever has changed since.
 */
import assert from 'node:assert/strict';
import type { LogEntry } from '../../../machines/vocabulary.ts';
import type { ListOptions, LogStore } from '../../stores/logStore.ts';
import {
  conversation,
  notice,
  onlyListed,
  opened,
  refused,
  STARTED,
  type StoreCase,
  stamped,
  stored,
  write,
} from './storeCase.ts';

export const pageCases: readonly StoreCase[] = [
  [
    'pages that follow each other list every conversation once, in the order of the whole list',
    async (store) => {
      const whole = await numbered(store, 23);
      for (const limit of [1, 7, 23, 100]) assert.deepEqual(await pagesOf(store, { limit }), whole);
    },
  ],
  [
    'a page has at most as many rows as its limit',
    async (store) => {
      const whole = await numbered(store, 5);
      assert.deepEqual(idsOf(await store.list({ limit: 2 })), whole.slice(0, 2));
      assert.deepEqual(idsOf(await store.list({ limit: 9 })), whole);
    },
  ],
  [
    'conversations that were used at one time keep their order over pages',
    async (store) => {
      const ids = ['e', 'a', 'd', 'b', 'c'];
      for (const id of ids) await write(store, id, [conversation(id)]);
      assert.deepEqual(idsOf(await store.list()), [...ids].sort());
      assert.deepEqual(await pagesOf(store, { limit: 2 }), [...ids].sort());
    },
  ],
  [
    'a page begins after the place of its cursor, also when the row there has moved or is gone',
    async (store) => {
      const whole = await numbered(store, 8);
      const page = await store.list({ limit: 3 });
      const [first, , third] = idsOf(page);
      const cursor = page.at(-1)?.cursor ?? '';
      await opened(store, third as string, (handle) => handle.append([later(third as string, 1000)], 2));
      await store.delete(first as string);
      assert.deepEqual(idsOf(await store.list({ cursor })), whole.slice(3));
      assert.deepEqual(idsOf(await store.list({ limit: 2 })), [third, whole[1]]);
    },
  ],
  [
    'a cursor that no row has is refused',
    async (store) => {
      await numbered(store, 2);
      for (const cursor of ['x', ':', 'NaN:a', ' 1:a']) await refused('configuration', () => store.list({ cursor }));
    },
  ],
  [
    'a list can be limited to a status',
    async (store) => {
      const run = { runId: 'run' };
      await write(store, 'idle', [conversation('idle')]);
      await write(store, 'waits', [
        conversation('waits'),
        stamped('waits', 1, { type: 'run-started', ...run }),
        stamped('waits', 2, { type: 'run-suspended', ...run, waiting: ['call'] }),
      ]);
      await opened(store, 'runs', async (handle) => {
        await handle.append([conversation('runs'), stamped('runs', 1, { type: 'run-started', ...run })], 0);
        assert.deepEqual(idsOf(await store.list({ status: 'idle' })), ['idle']);
        assert.deepEqual(idsOf(await store.list({ status: 'waiting', limit: 1 })), ['waits']);
        assert.deepEqual(idsOf(await store.list({ status: 'active' })), ['runs']);
      });
    },
  ],
  [
    'the title is the first words of the first message with a text, until it is renamed',
    async (store) => {
      const log = [
        conversation('c'),
        userMessage(1, ' \n'),
        userMessage(2, '  Pay\n the   rent. '),
        userMessage(3, 'Then sleep.'),
      ];
      await write(store, 'c', log.slice(0, 2));
      assert.equal('title' in (await onlyListed(store)), false);
      await opened(store, 'c', (handle) => handle.append(log.slice(2), 2));
      assert.equal((await onlyListed(store)).title, 'Pay the rent.');
      const renamed = [
        stamped('c', 4, { type: 'renamed', title: 'Rent' }),
        stamped('c', 5, { type: 'renamed', title: 'The rent' }),
      ];
      await opened(store, 'c', (handle) => handle.append(renamed, 4));
      assert.equal((await onlyListed(store)).title, 'The rent');
    },
  ],
  [
    'a title that was given is any text, and is kept whole',
    async (store) => {
      const titles = ['', ' a\nb ', '\0', '\ud800', '🎉', '%s_%', 'word '.repeat(400)];
      for (const [index, title] of titles.entries()) {
        const id = `c${index}`;
        await write(store, id, [conversation(id), stamped(id, 1, { type: 'renamed', title })]);
      }
      const listed = new Map((await store.list()).map((row) => [row.id, row.title]));
      assert.deepEqual(
        titles.map((_, index) => listed.get(`c${index}`)),
        titles,
      );
    },
  ],
  [
    'a long message gives a short title',
    async (store) => {
      await write(store, 'c', [conversation('c'), userMessage(1, 'word '.repeat(1000))]);
      const { title = '' } = await onlyListed(store);
      assert.match(title, /^word( word){10,}…$/);
      assert.ok(title.length <= 80);
    },
  ],
];

export const ownerCases: readonly StoreCase[] = [
  [
    'a list can be limited to an owner, also over pages',
    async (store) => {
      for (const [index, owner] of ['ann', 'bob', undefined, 'ann', 'bob', 'ann'].entries())
        await write(store, `c${index}`, owned(`c${index}`, owner));
      assert.deepEqual((await pagesOf(store, { owner: 'ann', limit: 1 })).sort(), ['c0', 'c3', 'c5']);
      assert.deepEqual(idsOf(await store.list({ owner: 'bob', limit: 2 })).sort(), ['c1', 'c4']);
      assert.deepEqual(await store.list({ owner: 'nobody' }), []);
      assert.equal((await store.list({ owner: 'ann' }))[0]?.owner, 'ann');
    },
  ],
  [
    'an owner is any text, and is matched as a whole',
    async (store) => {
      const owners = ['ann', 'Ann', 'ann ', 'an', '%', 'an_', '', '\0', '\ud800', '\ufffd', 'ä', 'a\u0308'];
      for (const [index, owner] of owners.entries()) await write(store, `c${index}`, owned(`c${index}`, owner));
      for (const [index, owner] of owners.entries()) {
        assert.deepEqual(idsOf(await store.list({ owner })), [`c${index}`], JSON.stringify(owner));
        await (await store.open(`c${index}`, { owner, existing: true })).close();
        const other = `c${(index + 1) % owners.length}`;
        await refused('not_found', () => store.open(other, { owner, existing: true }));
      }
    },
  ],
  [
    'a list can be limited to an owner and a status at once, also over pages',
    async (store) => {
      const run = { runId: 'run' };
      for (let index = 0; index < 8; index += 1) {
        const id = `c${index}`;
        const waits = [
          stamped(id, 2, { type: 'run-started', ...run }),
          stamped(id, 3, { type: 'run-suspended', ...run, waiting: ['call'] }),
        ];
        await write(store, id, [...owned(id, index < 4 ? 'ann' : 'bob'), ...(index % 2 === 0 ? waits : [])]);
      }
      for (const limit of [1, 2, 5]) {
        assert.deepEqual(await pagesOf(store, { owner: 'bob', status: 'waiting', limit }), ['c4', 'c6']);
        assert.deepEqual(await pagesOf(store, { owner: 'ann', status: 'idle', limit }), ['c1', 'c3']);
      }
      assert.deepEqual(await store.list({ owner: 'ann', status: 'active' }), []);
    },
  ],
  [
    "another owner's conversation cannot be opened, nor one without an owner",
    async (store) => {
      await write(store, 'anns', owned('anns', 'ann'));
      await write(store, 'free', owned('free', undefined));
      for (const id of ['anns', 'free']) {
        await refused('not_found', () => store.open(id, { owner: 'bob' }));
        await refused('not_found', () => store.open(id, { owner: 'bob', existing: true }));
        assert.equal((await stored(store, id)).length, 2);
      }
      await (await store.open('anns', { owner: 'ann' })).close();
    },
  ],
  [
    "another owner's conversation is not found while it is open, too",
    async (store) => {
      await write(store, 'anns', owned('anns', 'ann'));
      await opened(store, 'anns', async () => {
        await refused('not_found', () => store.open('anns', { owner: 'bob' }));
        await refused('session_busy', () => store.open('anns', { owner: 'ann' }));
      });
    },
  ],
  [
    'an opening for an owner makes a new conversation, unless it must exist',
    async (store) => {
      await refused('not_found', () => store.open('new', { owner: 'ann', existing: true }));
      await refused('not_found', () => store.open('new', { existing: true }));
      const handle = await store.open('new', { owner: 'ann' });
      await handle.append(owned('new', 'ann'), 0);
      await handle.close();
      assert.equal((await onlyListed(store)).owner, 'ann');
    },
  ],
];

function owned(id: string, owner: string | undefined): LogEntry[] {
  const first = { type: 'conversation', schema: 1, cwd: '/home/case', createdAt: STARTED } as const;
  return [stamped(id, 0, owner === undefined ? first : { ...first, owner }), notice(id, 1)];
}

const userMessage = (seq: number, text: string): LogEntry =>
  stamped('c', seq, { type: 'user-message', messageId: `m${seq}`, kind: 'direct', content: [{ type: 'text', text }] });

const later = (id: string, seconds: number): LogEntry => ({ ...notice(id, 2), at: STARTED + seconds * 1000 });

const idsOf = (rows: readonly { id: string }[]): string[] => rows.map(({ id }) => id);

/** Conversations with times of their own; resolves with their ids, the last used first. */
async function numbered(store: LogStore, count: number): Promise<string[]> {
  // Used in another order than they are made.
  const ids = Array.from({ length: count }, (_, index) => `c${(index * 7) % count}`);
  for (const [index, id] of ids.entries())
    await write(store, id, [conversation(id), { ...notice(id, 1), at: STARTED + ((index * 5) % count) * 1000 }]);
  const whole = await store.list();
  assert.equal(whole.length, count);
  return idsOf(whole);
}

/** The ids of all pages, one after the other. */
async function pagesOf(store: LogStore, options: ListOptions & { limit: number }): Promise<string[]> {
  const ids: string[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await store.list({ ...options, ...(cursor !== undefined && { cursor }) });
    ids.push(...idsOf(page));
    const last = page.at(-1)?.cursor;
    if (page.length < options.limit) return ids;
    assert.ok(last !== undefined && last !== cursor, 'expected the last row of a full page to have a new cursor');
    cursor = last;
  }
}
