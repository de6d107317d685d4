/**
 * The rules that every store shares, at each of their bounds: rows and their status, titles, pages, the order of appends, and entries
 * that are refused. Invariant: each table is written by hand.
 */
import { describe, expect, test } from 'vitest';
import type { LogEntry } from '../../machines/vocabulary.ts';
import {
  ConfigurationError,
  CorruptLogError,
  RunchartError,
  SessionBusyError,
  StoreConflictError,
} from '../../src/errors.ts';
import { type ConversationRow, type Holder, listedRow, statusOf } from '../../src/stores/conversationRow.ts';
import { addToRow } from '../../src/stores/conversationSummary.ts';
import { entryIn, jsonOf, MAX_DEPTH, writtenEntry } from '../../src/stores/entryJson.ts';
import {
  isSubAgentOf,
  mayExist,
  noticeEntries,
  refuseOtherOwner,
  refuseOutOfOrder,
  subAgentIds,
  withLookup,
} from '../../src/stores/logStore.ts';
import { OrderedAppends } from '../../src/stores/orderedAppends.ts';
import { cursorOf, deleteBefore, pageIn, pageOf, placeOf, RowTable } from '../../src/stores/rowTable.ts';
import { conversation, modelReply, notice, notices, stamped } from '../../src/testing/storeSuite/storeCase.ts';
import { resultOrError } from '../support/resultOrError.ts';

const foldOf = (...entries: LogEntry[]): ConversationRow | undefined =>
  entries.reduce<ConversationRow | undefined>((row, entry) => addToRow(row, entry, 'c'), undefined);
const rowOf = (fields: Partial<ConversationRow> = {}): ConversationRow => ({
  ...{ id: 'c', cwd: '/', createdAt: 1, updatedAt: 2, turns: 0, costUsd: 0, length: 1, cycle: 'ended' },
  ...fields,
});

describe('the status of a row', () => {
  const TABLE: readonly (readonly [ConversationRow['cycle'], Holder, string, string | undefined])[] = [
    ['ended', 'nobody', 'idle', 'end_turn'],
    ['ended', 'self', 'idle', 'end_turn'],
    ['ended', 'other', 'active', 'end_turn'],
    ['running', 'nobody', 'idle', 'crash'],
    ['running', 'self', 'active', 'end_turn'],
    ['running', 'other', 'active', 'end_turn'],
    ['suspended', 'nobody', 'waiting', 'end_turn'],
    ['suspended', 'self', 'waiting', 'end_turn'],
    ['suspended', 'other', 'active', 'end_turn'],
  ];
  test.each(TABLE)('%s, held by %s, is %s, and its last cause %s', (cycle, holder, status, lastCause) => {
    const row = rowOf({ cycle, lastCause: 'end_turn', owner: 'ann', title: 't' });
    expect(statusOf(row, holder)).toBe(status);
    const { length: _, cycle: __, ...shown } = row;
    expect(listedRow(row, holder)).toEqual({ ...shown, status, lastCause });
  });

  test('an empty log and a sub-agent have no row', () => {
    for (const holder of ['nobody', 'self', 'other'] as const) {
      expect(listedRow(undefined, holder)).toBeNull();
      expect(listedRow(rowOf({ parentId: 'p' }), holder)).toBeNull();
    }
  });
});

describe('the row of a log', () => {
  const run = { runId: 'run' };
  const user = (seq: number, ...texts: string[]): LogEntry =>
    stamped('c', seq, {
      ...{ type: 'user-message', messageId: 'm', kind: 'direct' },
      content: texts.map((text) => ({ type: 'text', text })),
    });
  const started = (seq: number): LogEntry => stamped('c', seq, { type: 'run-started', ...run } as never);
  const stop = (seq: number, cause?: unknown): LogEntry =>
    stamped('c', seq, { type: 'run-stop', ...run, reason: 'completed', cause } as never);

  test('has the cycle and the cause of its last change, and no older cause', () => {
    const entries = [
      conversation('c'),
      user(1, 'hi'),
      started(2),
      stamped('c', 3, { type: 'run-suspended', ...run, waiting: ['x'] }),
      stamped('c', 4, { type: 'run-resumed', ...run, of: 'run' } as never),
      stop(5, 'end_turn'),
      started(6),
      stop(7),
    ];
    const seen = entries.map((_, index) => {
      const row = foldOf(...entries.slice(0, index + 1));
      return [row?.cycle, row?.lastCause, row?.length, row?.updatedAt === entries[index]?.at];
    });
    expect(seen).toEqual([
      ['ended', undefined, 1, true],
      ['ended', undefined, 2, true],
      ['running', undefined, 3, true],
      ['suspended', undefined, 4, true],
      ['running', undefined, 5, true],
      ['ended', 'end_turn', 6, true],
      ['running', 'end_turn', 7, true],
      ['ended', undefined, 8, true],
    ]);
  });

  test.each<[string, (number | null)[], number | null]>([
    ['known prices are added up', [0.1, 0.2, 0], 0.1 + 0.2],
    ['an unknown price makes the sum unknown', [0.1, null, 0.2], null],
    ['a price that is no number too', [0.1, Number.NaN], null],
    ['without a reply nothing was spent', [], 0],
  ])('%s', (_, costs, sum) => {
    const row = foldOf(conversation('c'), ...costs.map((cost, index) => modelReply('c', index + 1, cost)));
    expect([row?.costUsd, row?.turns]).toEqual([sum, costs.length]);
  });

  const letters = (length: number): string => 'x'.repeat(length);
  test.each<[string, string | undefined]>([
    ['', undefined],
    [' \n\t', undefined],
    [' two\n\n words ', 'two words'],
    [letters(80), letters(80)],
    [letters(81), `${letters(79)}…`],
    [`${letters(40)} ${letters(60)}`, `${letters(40)} ${letters(38)}…`],
    [`${letters(41)} ${letters(60)}`, `${letters(41)}…`],
    [`${letters(79)} ${letters(9)}`, `${letters(79)}…`],
    [`${letters(78)} ${letters(9)}`, `${letters(78)}…`],
    ['🎉'.repeat(80), '🎉'.repeat(80)],
    ['🎉'.repeat(81), `${'🎉'.repeat(79)}…`],
    [`${' '.repeat(4_095)}a`, 'a'],
    [`${' '.repeat(4_096)}a`, undefined],
    [`a${' '.repeat(4_093)}🎉`, 'a 🎉'],
    [`a${' '.repeat(4_094)}🎉`, 'a'],
    [`${' '.repeat(4_095)}🎉`, undefined],
  ])('the text %j gives the title %j', (text, title) => {
    expect(foldOf(conversation('c'), user(1, text))?.title).toBe(title);
    // The first part and the first message with words count.
    expect(foldOf(conversation('c'), user(1, '', text), user(2, 'later'))?.title).toBe(title ?? 'later');
  });

  test('a name replaces the title, and is not replaced by a message; a name that is no text changes nothing', () => {
    const renamed = (seq: number, title: unknown): LogEntry => stamped('c', seq, { type: 'renamed', title } as never);
    expect(foldOf(conversation('c'), user(1, 'first'), renamed(2, 'name'), user(3, 'more'))?.title).toBe('name');
    expect(foldOf(conversation('c'), renamed(1, ''), user(2, 'more'))?.title).toBe('');
    expect(foldOf(conversation('c'), user(1, 'first'), renamed(2, 7))?.title).toBe('first');
  });

  test('a log of earlier messages has the title of the first message of a person with a text, and the cause history', () => {
    const part = (text: string) => [{ type: 'text', text }];
    const picture = [{ type: 'image', mediaType: 'image/png', data: 'x' }];
    const history = (...messages: unknown[]): LogEntry => stamped('c', 1, { type: 'history', messages } as never);
    const historyEntry = history(
      { role: 'assistant', content: part('an answer'), toolCalls: [] },
      { role: 'tool', callId: 'x', content: part('a result'), isError: false },
      { role: 'user', content: picture },
      { role: 'user', content: part(' the  request ') },
      { role: 'user', content: part('another') },
    );
    expect(foldOf(conversation('c'), historyEntry)).toMatchObject({
      title: 'the request',
      lastCause: 'history',
      cycle: 'ended',
    });
    expect(foldOf(conversation('c'), historyEntry, started(2), stop(3, 'end_turn'))?.lastCause).toBe('end_turn');
    expect(foldOf(conversation('c'), historyEntry, started(2), stop(3))?.lastCause).toBeUndefined();
    for (const messages of [[], [{ role: 'assistant', content: part('an answer') }], [null, 7], undefined, 'odd']) {
      const odd = stamped('c', 1, { type: 'history', messages } as never);
      expect(foldOf(conversation('c'), odd, user(2, 'later'))?.title).toBe('later');
    }
  });

  test('a log that begins otherwise has the time of its first entry, and no directory', () => {
    expect(foldOf(notice('c', 3))).toMatchObject({ cwd: '', createdAt: notice('c', 3).at, turns: 0, costUsd: 0 });
    const odd = { ...conversation('c'), createdAt: Number.NaN, cwd: 7, owner: 7 } as never;
    expect(foldOf(odd)).toEqual(rowOf({ cwd: '', createdAt: conversation('c').at, updatedAt: conversation('c').at }));
    const child = conversation('c', { conversationId: 'p', callId: 'x' });
    expect(foldOf(child)?.parentId).toBe('p');
  });
});

describe('a page', () => {
  const ROWS = [
    rowOf({ id: 'a', updatedAt: 5 }),
    rowOf({ id: 'b', updatedAt: 5, owner: 'ann' }),
    rowOf({ id: 'B', updatedAt: 5 }),
    rowOf({ id: 'new', updatedAt: 9, owner: 'ann', cycle: 'suspended' }),
    rowOf({ id: 'old', updatedAt: -1.5, cycle: 'running' }),
    rowOf({ id: 'child', updatedAt: 7, parentId: 'a' }),
  ];
  const ORDER = ['new', 'B', 'a', 'b', 'old'];
  const table = (rows = ROWS): RowTable => {
    const made = new RowTable();
    for (const row of rows) made.set(row.id, row);
    return made;
  };
  const nobody = (): Holder => 'nobody';
  const idsOf = (page: readonly { id: string }[]): string[] => page.map(({ id }) => id);

  test('is in the order of the last use, then of the ids, from any order in which rows were added', () => {
    for (let turn = 0; turn < ROWS.length; turn += 1) {
      const rows = [...ROWS.slice(turn), ...ROWS.slice(0, turn)];
      expect(idsOf(table(rows).page({}, nobody))).toEqual(ORDER);
    }
  });

  test('of every limit after every row is the same from a table, from rows and from a whole list', () => {
    const rows = table();
    const list = rows.page({}, nobody).map(({ cursor: _, ...info }) => info);
    for (const limit of [undefined, 0, 1, 2, 4, 5, 6, Number.POSITIVE_INFINITY]) {
      for (const [index, id] of [undefined, ...ORDER].entries()) {
        const info = list.find((each) => each.id === id);
        const options = { limit, ...(info && { cursor: cursorOf(info) }) };
        const expected = ORDER.slice(index).slice(0, limit ?? 9);
        expect(idsOf(rows.page(options, nobody))).toEqual(expected);
        expect(idsOf(pageOf([...list].reverse(), options))).toEqual(expected);
      }
    }
    for (const info of rows.page({}, nobody)) expect(info.cursor).toBe(cursorOf(info));
  });

  test('is limited to an owner and a status, before its limit', () => {
    const page = (options: object): string[] => idsOf(table().page(options, nobody));
    expect(page({ owner: 'ann' })).toEqual(['new', 'b']);
    expect(page({ status: 'idle' })).toEqual(['B', 'a', 'b', 'old']);
    expect(page({ status: 'waiting' })).toEqual(['new']);
    expect(page({ status: 'active' })).toEqual([]);
    expect(page({ owner: 'ann', status: 'idle', limit: 1 })).toEqual(['b']);
    expect(page({ owner: 'bob' })).toEqual([]);
    const asked: string[] = [];
    const holderOf = ({ id }: { id: string }): Holder => {
      asked.push(id);
      return id === 'a' ? 'other' : 'nobody';
    };
    expect(idsOf(pageIn(ROWS, { status: 'active' }, holderOf))).toEqual(['a']);
    expect(idsOf(pageIn(ROWS, { limit: 0 }, () => expect.unreachable()))).toEqual([]);
    expect(asked).not.toContain('child');
  });

  test('shows a row that has moved, is changed in place, or is gone, at the next call', () => {
    const rows = table();
    rows.page({}, nobody);
    rows.set('old', rowOf({ id: 'old', updatedAt: 6 }));
    expect(idsOf(rows.page({}, nobody))).toEqual(['new', 'old', 'B', 'a', 'b']);
    const row = rows.get('b') as ConversationRow;
    row.updatedAt = 10;
    rows.set('b', row);
    rows.set('a', undefined);
    rows.set('nobody', undefined);
    expect(idsOf(rows.page({}, nobody))).toEqual(['b', 'new', 'old', 'B']);
    expect(idsOf(rows.page({ cursor: cursorOf({ id: 'a', updatedAt: 5 }) }, nobody))).toEqual([]);
    expect([rows.get('a'), rows.get('old')?.updatedAt]).toEqual([undefined, 6]);
  });

  test.each([
    ['5:a', { updatedAt: 5, id: 'a' }],
    ['-1.5:a:b', { updatedAt: -1.5, id: 'a:b' }],
    ['0:', { updatedAt: 0, id: '' }],
    [':a', undefined],
    ['a', undefined],
    ['', undefined],
    [' 5:a', undefined],
    ['5 :a', undefined],
    ['Infinity:a', undefined],
    ['x:a', undefined],
  ])('the cursor %j names %j', (cursor, place) => {
    if (place) expect(placeOf(cursor)).toEqual(place);
    else expect(resultOrError(() => placeOf(cursor))).toBeInstanceOf(ConfigurationError);
  });

  test.each([0, 1, 199, 200, 201, 400, 401])(
    'of %i old conversations all are deleted, and none that was used at the time or later',
    async (count) => {
      const old = Array.from({ length: count }, (_, index) => rowOf({ id: `o${index}`, updatedAt: index % 7 }));
      const rows = table([
        ...old,
        rowOf({ id: '', updatedAt: 7 }),
        rowOf({ id: 'at', updatedAt: 7 }),
        rowOf({ updatedAt: 8 }),
      ]);
      const store = {
        list: async (options = {}) => rows.page(options, nobody),
        async delete(id: string) {
          if (id === 'o3') throw new SessionBusyError('open');
          rows.set(id, undefined);
        },
      };
      const deleted = await deleteBefore(store as never, 7);
      const expected = idsOf(old).filter((id) => id !== 'o3');
      expect(deleted.sort()).toEqual(expected.sort());
      expect(idsOf(rows.page({}, nobody))).toEqual(['c', '', 'at', ...(count > 3 ? ['o3'] : [])]);
    },
  );

  test('a deletion that fails otherwise is reported, and no time is guessed', async () => {
    const list = async () => [{ ...rowOf(), cursor: 'x' }];
    const store = { list, delete: () => Promise.reject(new RunchartError('store', 'disk')) };
    await expect(deleteBefore(store as never, 9)).rejects.toMatchObject({ code: 'store' });
    for (const time of [Number.NaN, Number.POSITIVE_INFINITY, '7', undefined])
      await expect(deleteBefore(store as never, time as number)).rejects.toBeInstanceOf(ConfigurationError);
  });
});

describe('an append', () => {
  const at = (...seqs: number[]) => seqs.map((seq) => ({ seq }));
  test.each<[number, number, number[], boolean]>([
    [0, 0, [0, 1], true],
    [3, 3, [], true],
    [3, 3, [3, 4], true],
    [3, 2, [], false],
    [3, 4, [4], false],
    [3, 3, [4], false],
    [3, 3, [3, 5], false],
    [3, 3, [3, 3], false],
  ])('to a log of %i entries, expected at %i, with the seqs %j follows: %s', (next, expected, seqs, follows) => {
    const error = resultOrError(() => refuseOutOfOrder('c', next, at(...seqs), expected));
    if (follows) expect(error).toBeUndefined();
    else expect(error).toBeInstanceOf(StoreConflictError);
  });

  test('waits for those before it; one that does not follow fails alone, and one write fails all that it has', async () => {
    let next = 0;
    const writes: number[][] = [];
    let refusal: Error | undefined;
    const appended: number[] = [];
    const queue = new OrderedAppends<LogEntry>({
      id: 'c',
      nextSeq: () => next,
      async store(pending) {
        writes.push(pending.map(({ seq }) => seq));
        await new Promise((resolve) => setImmediate(resolve));
        if (refusal) throw refusal;
        next += pending.length;
      },
      appended: (entries) => void appended.push(...entries.map(({ seq }) => seq)),
    });
    const add = (from: number, count: number, seq = from): Promise<string> => {
      const entries = notices('c', seq, count);
      return queue.add(entries, entries, from).then(
        () => 'stored',
        (error: { code: string }) => error.code,
      );
    };
    await queue.drained();
    expect(await Promise.all([add(0, 2), add(9, 1), add(2, 1), add(3, 1, 4)])).toEqual([
      ...['stored', 'store_conflict', 'stored', 'store_conflict'],
    ]);
    expect([writes, appended]).toEqual([[[0, 1, 2]], [0, 1, 2]]);
    refusal = new RunchartError('store', 'full');
    const failed = [add(3, 1), add(4, 1)];
    expect(await Promise.all(failed)).toEqual(['store', 'store']);
    refusal = undefined;
    // Appends that come during a write share the next one.
    const first = add(3, 1);
    await new Promise((resolve) => setImmediate(resolve));
    const rest = [add(4, 1), add(5, 2)];
    await queue.drained();
    expect(await Promise.all([first, ...rest])).toEqual(['stored', 'stored', 'stored']);
    expect(writes.slice(2)).toEqual([[3], [4, 5, 6]]);
    expect(appended).toEqual([0, 1, 2, 3, 4, 5, 6]);
  });
});

describe('an entry', () => {
  const text = (fields: object = {}): string => JSON.stringify({ ...notice('c', 3), ...fields });
  test.each<[string, unknown, string | undefined]>([
    ['as it is', text(), undefined],
    ['of no run', text({ runId: null }), undefined],
    ['of a later kind', text({ type: 'new-kind' }), undefined],
    ['that is no text', 7, 'corrupt'],
    ['that is no JSON', '{', 'corrupt'],
    ['that is a list', '[]', 'corrupt'],
    ['that is null', 'null', 'corrupt'],
    ['without a time', text({ at: undefined }), 'corrupt'],
    ['whose time is a text', text({ at: '5' }), 'corrupt'],
    ['without a conversation', text({ conversationId: undefined }), 'corrupt'],
    ['whose run is a number', text({ runId: 7 }), 'corrupt'],
    ['without a run', text({ runId: undefined }), 'corrupt'],
    ['without a type', text({ type: undefined }), 'corrupt'],
    ['of an earlier place', text({ seq: 2 }), 'gap'],
    ['of a later place', text({ seq: 4 }), 'gap'],
    ['without a place', text({ seq: undefined }), 'gap'],
  ])('%s is read as the one of its place, or refused with the line', (_, line, code) => {
    const read = resultOrError(() => entryIn(line, 3, 'c'));
    if (code === undefined) return expect(read).toEqual(JSON.parse(String(line)));
    expect(read).toBeInstanceOf(CorruptLogError);
    expect(read).toMatchObject({ code, line: 4 });
  });

  test('of the greatest depth is written, and of one level more is not', () => {
    const deep = (levels: number): unknown => (levels === 0 ? 'x'.repeat(2_000) : [deep(levels - 1)]);
    const nested = (levels: number): LogEntry => ({ ...notice('c', 0), value: deep(levels) }) as never;
    // The entry itself is a level.
    expect(() => jsonOf(nested(MAX_DEPTH - 1))).not.toThrow();
    expect(resultOrError(() => jsonOf(nested(MAX_DEPTH)))).toMatchObject({ code: 'store' });
  });

  test('that is not frozen is copied at the call, and a frozen one is not', () => {
    const frozen = Object.freeze(notice('c', 0));
    expect(writtenEntry(frozen).entry).toBe(frozen);
    const open = notice('c', 0) as { text?: string } & LogEntry;
    const { entry, seq } = writtenEntry(open);
    open.text = 'changed';
    expect([seq, entry]).toEqual([0, notice('c', 0)]);
    for (const fields of [{ at: Number.NaN }, { conversationId: 7 }, { runId: undefined }, { type: 7 }])
      expect(resultOrError(() => writtenEntry({ ...notice('c', 0), ...fields } as never))).toMatchObject({
        code: 'store',
      });
  });
});

describe('the notices of an opening', () => {
  test('are logged unless the log has one of the same code and detail', () => {
    const openingNotices = [{ code: 'a' }, { code: 'a', detail: { line: 2 } }, { code: 'b', detail: null }];
    const logged = (code: string, detail?: unknown): LogEntry =>
      stamped('c', 0, { type: 'diagnostic', code, ...(detail !== undefined && { detail }) } as never);
    const codes = (...entries: LogEntry[]) =>
      noticeEntries(openingNotices as never, entries).map((entry) => ({ ...entry }));
    const [a, line, b] = openingNotices.map((each) => ({ runId: null, type: 'diagnostic', ...each }));
    expect(codes()).toEqual([a, line, b]);
    expect(codes(logged('a'))).toEqual([line, b]);
    expect(codes(logged('a', null), logged('b'))).toEqual([line]);
    expect(codes(logged('a', { line: 3 }), stamped('c', 0, { type: 'notice', code: 'a', text: '' }))).toEqual([
      a,
      line,
      b,
    ]);
  });
});

describe('the owner and the parent of a log', () => {
  const owned = (owner?: string): LogEntry =>
    ({ ...conversation('c'), ...(owner !== undefined && { owner }) }) as LogEntry;
  test.each<[LogEntry | undefined, string | undefined, boolean]>([
    [undefined, 'ann', true],
    [owned('ann'), undefined, true],
    [owned('ann'), 'ann', true],
    [owned('ann'), 'Ann', false],
    [owned(), 'ann', false],
    [owned(''), '', true],
    [notice('c', 0), 'ann', false],
  ])('%#: it may be opened, or is not found', (first, owner, may) => {
    const error = resultOrError(() => refuseOtherOwner(first, owner));
    expect(error === undefined ? 'open' : (error as RunchartError).code).toBe(may ? 'open' : 'not_found');
  });

  test('sub-agents are those that a log names, in the form of today and the one before', () => {
    const named = (fields: object): LogEntry => stamped('c', 1, { type: 'sub-agent', callId: 'x', ...fields } as never);
    const entries = [
      named({ child: 'a' }),
      named({ child: 'a' }),
      { ...named({}), conversationId: 'b' },
      named({ child: 7 }),
    ];
    expect([...subAgentIds(entries as LogEntry[])]).toEqual(['a', 'b']);
    const child = conversation('k', { conversationId: 'c', callId: 'x' });
    expect([isSubAgentOf(child, 'c'), isSubAgentOf(child, 'd')]).toEqual([true, false]);
    expect([isSubAgentOf(conversation('k'), 'c'), isSubAgentOf(undefined, 'c')]).toEqual([false, false]);
  });

  test('a store without a lookup may have any log', async () => {
    const asked: unknown[] = [];
    const store = withLookup({ list: async () => [] } as never, async (...args) => asked.push(args) > 1);
    expect(await mayExist(undefined, 'c')).toBe(true);
    expect(await mayExist({ list: async () => [] }, 'c')).toBe(true);
    expect([await mayExist(store, 'c', 'ann'), await mayExist(store, 'd')]).toEqual([false, true]);
    expect(asked).toEqual([
      ['c', 'ann'],
      ['d', undefined],
    ]);
  });
});
