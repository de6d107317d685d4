/**
 * The messages of the PostgreSQL store between processes, without a database: hints, live signals, acts and followers, each at its limits
 * of size and time. The clock is a fake one.
 */
import { Subject } from 'rxjs';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Live } from '../../../src/live.ts';
import type { Act } from '../../../src/stores/logStore.ts';
import { Database, type PostgresPool } from '../../../src/stores/postgres/database.ts';
import { Followers } from '../../../src/stores/postgres/followers.ts';
import { fitsHint, type Hint, Hints } from '../../../src/stores/postgres/hints.ts';
import { AskedActs, TakenActs } from '../../../src/stores/postgres/holderActs.ts';
import { LiveFeed } from '../../../src/stores/postgres/liveFeed.ts';
import type { Statements } from '../../../src/stores/postgres/statements.ts';
import { timeOf } from '../../../src/stores/postgres/storeTime.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

type Rows = Record<string, unknown>[];
type Answer = Rows | Error | Promise<Rows>;
const statements = new Proxy({}, { get: (_, name) => String(name) }) as Statements;
const failure = (code: string): Error => Object.assign(new Error(code), { code });
const lost = (): Error => failure('ECONNRESET');

function databaseOf(answer: (text: string, values: readonly unknown[]) => Answer, more: object = {}) {
  const sent: [text: string, values: readonly unknown[]][] = [];
  const query = async (text: string, values: readonly unknown[] = []): Promise<{ rows: Rows }> => {
    sent.push([text, values]);
    const rows = await answer(text, values);
    if (rows instanceof Error) throw rows;
    return { rows };
  };
  const pool = { query, connect: async () => ({ query, release: () => undefined }), ...more } as PostgresPool;
  return { database: new Database(pool), sent, texts: () => sent.map(([text]) => text) };
}
const recorded = (isListening = true) => {
  const hints: Hint[] = [];
  const face = { time: timeOf({}), isListening, listen: () => undefined, send: (hint: Hint) => void hints.push(hint) };
  return { hints, face: face as unknown as Hints };
};

describe('a hint', () => {
  test('is not listened for in a pool of one connection, so none is kept', async () => {
    for (const [max, connections] of [
      [1, 0],
      [2, 1],
    ] as const) {
      const { database, texts } = databaseOf(() => [], { options: { max } });
      const hints = new Hints(database, statements, 'channel', () => undefined);
      hints.listen();
      hints.listen();
      await vi.advanceTimersByTimeAsync(0);
      expect([texts().length, hints.isListening]).toEqual([connections, connections === 1]);
      hints.close();
    }
  });

  const ofBytes = (bytes: number, character = 'a'): Hint => {
    const size = new TextEncoder().encode(character).length;
    const frame = JSON.stringify({ act: '' }).length;
    return { act: character.repeat(Math.floor((bytes - frame) / size)) + 'a'.repeat((bytes - frame) % size) };
  };
  test.each(['a', 'ü', '€', '😀'])('of %j is sent up to 7,900 bytes, and no longer one', async (character) => {
    const { database, sent } = databaseOf(() => []);
    const hints = new Hints(database, statements, 'channel', () => undefined);
    const [most, more] = [ofBytes(7_900, character), ofBytes(7_901, character)];
    expect([fitsHint(most), fitsHint(more)]).toEqual([true, false]);
    for (const hint of [most, more]) hints.send(hint);
    await vi.advanceTimersByTimeAsync(0);
    expect(sent).toEqual([['notify', ['channel', JSON.stringify(most)]]]);
    hints.close();
    hints.send({ act: 'c' });
    await vi.advanceTimersByTimeAsync(0);
    expect(sent).toHaveLength(1);
  });

  test('that cannot be sent, and a foreign one, change nothing', async () => {
    const received: Hint[] = [];
    let notified = (_: { payload?: string }): void => {};
    const on = (event: string, listener: typeof notified) => {
      if (event === 'notification') notified = listener;
    };
    const query = async () => Promise.reject(lost());
    const connect = async () => ({ query: async () => ({ rows: [] }), on, off: () => undefined });
    const database = new Database({ query, connect } as unknown as PostgresPool);
    const hints = new Hints(database, statements, 'channel', (hint) => void received.push(hint));
    hints.send({ act: 'c' });
    hints.listen();
    await vi.advanceTimersByTimeAsync(0);
    for (const payload of [undefined, '', '{', '{"act":"c"}']) notified(payload === undefined ? {} : { payload });
    expect(received).toEqual([{ act: 'c' }]);
    hints.close();
  });
});

const delta = (text: string, more: object = {}): Live => ({ type: 'text-delta', runId: 'r', text, ...more }) as Live;

describe('the live signals of a holder', () => {
  function feeding() {
    const { hints, face } = recorded();
    const live$ = new Subject<Live>();
    const at = { next: 1 };
    const feed = new LiveFeed('c', face, live$, () => at.next);
    feed.follow(60_000, false);
    const texts = () =>
      hints.flatMap((hint) =>
        'live' in hint ? [[hint.next, ...hint.signals.map((each) => ('text' in each ? each.text : each.type))]] : [],
      );
    return { hints, live$, at, feed, texts };
  }

  test('are sent 50 ms after the first of them, joined where they are pieces of one text', async () => {
    const { live$, texts } = feeding();
    live$.next(delta('a'));
    await vi.advanceTimersByTimeAsync(30);
    live$.next(delta('b'));
    await vi.advanceTimersByTimeAsync(19);
    expect(texts()).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(texts()).toEqual([[1, 'ab']]);
    live$.next(delta('c'));
    await vi.advanceTimersByTimeAsync(50);
    expect(texts()).toEqual([
      [1, 'ab'],
      [1, 'c'],
    ]);
  });

  test('stay apart where they differ in anything but the text, and where entries came between them', async () => {
    const { live$, at, texts } = feeding();
    for (const more of [{}, { path: ['c1'] }, { path: ['c2'] }, { runId: 'other' }, { type: 'reasoning-delta' }])
      live$.next(delta('x', more));
    live$.next({ type: 'reset', runId: 'r' } as Live);
    live$.next(delta('y'));
    at.next = 2;
    live$.next(delta('z'));
    await vi.advanceTimersByTimeAsync(50);
    expect(texts()).toEqual([
      [1, 'x', 'x', 'x', 'x', 'x', 'reset', 'y'],
      [2, 'z'],
    ]);
  });

  test('are sent at once before an entry is announced, and not again afterwards', async () => {
    const { live$, feed, texts } = feeding();
    live$.next(delta('a'));
    feed.flush();
    feed.flush();
    expect(texts()).toEqual([[1, 'a']]);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(texts()).toEqual([[1, 'a']]);
    live$.next(delta('b'));
    feed.stop();
    await vi.advanceTimersByTimeAsync(1_000);
    expect([texts(), live$.observed, vi.getTimerCount()]).toEqual([[[1, 'a']], false, 0]);
  });

  test.each([
    ['one long text', ['x'.repeat(10_000)]],
    ['a text of wide characters', ['€😀'.repeat(4_000)]],
    ['many short pieces', Array.from({ length: 3_000 }, (_, index) => `piece ${index} `)],
    ['control characters, which take six bytes each', ['\u0001'.repeat(5_000)]],
  ])('of %s arrive whole and in order, in hints that fit', async (_, pieces) => {
    const { live$, hints } = feeding();
    for (const piece of pieces) live$.next(delta(piece));
    await vi.advanceTimersByTimeAsync(50);
    expect(hints.filter((hint) => !fitsHint(hint))).toEqual([]);
    const text = hints
      .flatMap((hint) => ('live' in hint ? hint.signals : []))
      .map((each) => 'text' in each && each.text);
    expect(text.join('')).toBe(pieces.join(''));
  });
});

describe('an act that a process asks of the holder', () => {
  const act = { actId: 'one', type: 'resume' } as unknown as Act;
  const open = { same: true, open: true, held: true, under_way: false };
  function asking(stateAt: (ms: number) => Rows[number] | undefined, { isListening = true, withdrawn = true } = {}) {
    const began = Date.now();
    const times: number[] = [];
    const { database, sent } = databaseOf((text) => {
      if (text === 'withdrawAct') return withdrawn ? [{ act_id: 'one' }] : [];
      if (text !== 'actState') return [];
      times.push(Date.now() - began);
      const row = stateAt(Date.now() - began);
      return row === undefined ? [] : [row];
    });
    const { hints, face } = recorded(isListening);
    const acts = new AskedActs({ database, statements, hints: face });
    const ended = { at: 0, value: undefined as unknown };
    const end = (value: unknown): void => void Object.assign(ended, { at: Date.now() - began, value });
    acts.ask('c', act).then(end, end);
    return { acts, times, ended, sent, hints };
  }

  test.each<[string, Rows[number] | undefined, unknown]>([
    ['is answered', { ...open, answer: '{"value":{"a":1}}' }, { a: 1 }],
    ['fails there', { ...open, answer: '{"error":{"code":"usage","message":"no"}}' }, { code: 'usage', message: 'no' }],
    ['is gone', undefined, { code: 'unavailable' }],
    ['belongs to another conversation', { ...open, same: false, answer: '{"value":1}' }, { code: 'configuration' }],
    ['finds nobody who holds it', { ...open, held: false }, { code: 'unavailable' }],
    ['waited in vain for its holder', { ...open, open: false }, { code: 'unavailable' }],
  ])('and that %s ends at the first look', async (_, state, end) => {
    const { ended, sent, hints } = asking(() => state);
    await vi.advanceTimersByTimeAsync(0);
    const timers = vi.getTimerCount();
    await vi.advanceTimersByTimeAsync(2_000);
    if (end instanceof Object && 'code' in end) expect(ended.value).toMatchObject(end);
    else expect(ended.value).toEqual(end);
    expect([ended.at, timers]).toEqual([0, 0]);
    expect(sent[0]).toEqual(['putAct', ['one', 'c', JSON.stringify(act), 5_000]]);
    expect(hints).toEqual([{ act: 'c' }]);
  });

  test('is not withdrawn while its holder is at it, and its answer counts if it came before the withdrawal', async () => {
    const busy = asking((ms) => ({
      ...open,
      open: false,
      under_way: true,
      ...(ms > 3_000 && { answer: '{"value":1}' }),
    }));
    const late = asking((ms) => ({ ...open, held: false, ...(ms > 100 && { answer: '{"value":2}' }) }), {
      withdrawn: false,
    });
    await vi.advanceTimersByTimeAsync(10_000);
    expect([busy.ended.value, late.ended.value]).toEqual([1, 2]);
    expect(busy.sent.some(([text]) => text === 'withdrawAct')).toBe(false);
  });

  test.each([
    [true, [0, 20, 60, 140, 300, 620, 1_260, 2_260, 3_260]],
    [false, [0, 20, 60, 140, 300, 500, 700, 900, 1_100]],
  ])('is looked at less and less often (hints arrive: %s), until a minute is over', async (isListening, times) => {
    const asked = asking(() => open, { isListening });
    await vi.advanceTimersByTimeAsync(59_000);
    expect([asked.times.slice(0, times.length), asked.ended.value]).toEqual([times, undefined]);
    await vi.advanceTimersByTimeAsync(3_000);
    expect(asked.ended.value).toMatchObject({ code: 'unavailable' });
    expect(asked.ended.at).toBeGreaterThan(60_000);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('is looked at at once when the hint of its answer arrives, and not for another one', async () => {
    const { acts, times } = asking(() => open);
    await vi.advanceTimersByTimeAsync(2_500);
    const before = times.length;
    acts.answered('other');
    await vi.advanceTimersByTimeAsync(0);
    expect(times).toHaveLength(before);
    acts.answered('one');
    await vi.advanceTimersByTimeAsync(0);
    expect(times.slice(before)).toEqual([2_500]);
  });

  test.each(['', 'x'.repeat(201), 'a\0b', '\ud83d', 5, undefined])('needs an id, and %j is none', async (actId) => {
    const { database, sent } = databaseOf(() => []);
    const acts = new AskedActs({ database, statements, hints: recorded().face });
    await expect(acts.ask('c', { actId } as unknown as Act)).rejects.toMatchObject({ code: 'configuration' });
    expect(sent).toEqual([]);
  });
});

describe('the acts that a holder takes', () => {
  const row = (place: number, actId: string, conversation = 'c') => ({
    ...{ act_id: actId, conversation, place },
    act: JSON.stringify({ actId }),
  });
  function taking(isListening = true) {
    const claims: Rows[] = [];
    const failing = { is: false };
    const { database, sent } = databaseOf(() => (failing.is ? lost() : (claims.shift() ?? [])));
    const acts = new TakenActs({ database, statements, hints: recorded(isListening).face });
    const received: string[] = [];
    const open = (id: string, epoch: number) =>
      acts.of({ id, epoch }).subscribe(({ actId }) => received.push(`${id}${epoch} ${actId}`));
    return { acts, claims, failing, sent, received, open };
  }

  test('come in the order in which they were asked, each once, and again to the next holder', async () => {
    const { acts, claims, received, open } = taking();
    const first = open('c', 1);
    await vi.advanceTimersByTimeAsync(10);
    claims.push([row(10, 'b'), row(9, 'a'), row(1, 'x', 'elsewhere')], [row(9, 'a'), row(11, 'c')]);
    for (const _ of [1, 2]) {
      acts.came('c');
      await vi.advanceTimersByTimeAsync(0);
    }
    expect(received).toEqual(['c1 a', 'c1 b', 'c1 c']);
    first.unsubscribe();
    claims.push([row(11, 'c')]);
    const second = open('c', 2);
    await vi.advanceTimersByTimeAsync(0);
    expect(received.slice(3)).toEqual(['c2 c']);
    second.unsubscribe();
    expect(vi.getTimerCount()).toBe(0);
  });

  test.each(Array.from({ length: 20 }, (_, turns) => turns))(
    'are looked for without a pause %i turns after an earlier look began',
    async (turns) => {
      const { acts, claims, received, open } = taking();
      const subscription = open('c', 1);
      await vi.advanceTimersByTimeAsync(10);
      acts.came('c');
      for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
      claims.splice(0, claims.length, [row(1, 'a')]);
      acts.came('c');
      await vi.advanceTimersByTimeAsync(0);
      expect(received).toEqual(['c1 a']);
      subscription.unsubscribe();
    },
  );

  test.each([
    [true, 1_000],
    [false, 200],
  ])(
    'are looked for again (hints arrive: %s) every %i ms, also after a failure, for all conversations together',
    async (isListening, ms) => {
      const { acts, claims, failing, sent, received, open } = taking(isListening);
      const subscriptions = [open('c', 1), open('d', 7)];
      await vi.advanceTimersByTimeAsync(0);
      sent.length = 0;
      failing.is = true;
      acts.came('unknown');
      await vi.advanceTimersByTimeAsync(ms);
      failing.is = false;
      claims.push([row(1, 'a', 'd')]);
      await vi.advanceTimersByTimeAsync(ms);
      expect(sent.map(([, values]) => values)).toEqual(Array(2).fill(['{"c","d"}', '{"1","7"}']));
      expect(received).toEqual(['d7 a']);
      for (const each of subscriptions) each.unsubscribe();
      expect(vi.getTimerCount()).toBe(0);
    },
  );
});

describe('a follower', () => {
  const entry = (seq: number) => ({
    entry: JSON.stringify({ seq, at: 0, conversationId: 'a', runId: null, type: 'notice', code: 'x', text: '' }),
  });
  function following(options: { takesOver?: boolean } = {}) {
    const state: { row?: Rows[number]; fails?: boolean; gone?: () => void } = { row: { length: 1 } };
    const { database, sent } = databaseOf((text, values) => {
      if (state.fails) return failure('53100');
      if (text === 'read' && state.gone) {
        state.gone();
        return [];
      }
      if (text === 'read')
        return Array.from({ length: Number(values[2]) - Number(values[1]) }, (_, at) => entry(Number(values[1]) + at));
      const ids = String(values[0]).match(/[^{}",]+/g) ?? [];
      return text === 'states' && state.row ? ids.map((id) => ({ id, ...state.row })) : [];
    });
    const { hints, face } = recorded();
    const common = { database, statements, hints: face, leaseMs: 60_000, ready: async () => undefined };
    const followers = new Followers({ ...common, takesOver: options.takesOver ?? true });
    const items: unknown[] = [];
    const begin = (from: number) => {
      const follower = followers.follow('a', from);
      const run = async (): Promise<void> => {
        for await (const item of follower)
          items.push('seq' in item ? item.seq : 'text' in item ? item.text : item.type);
        items.push('end');
      };
      run().catch(({ code }) => items.push(code));
      return follower;
    };
    return { followers, state, items, begin, hints, sent };
  }

  test.each<[string, Rows[number] | undefined, boolean, unknown[]]>([
    ['does not exist', undefined, true, ['not_found']],
    ['is empty', { length: 0 }, true, ['not_found']],
    ['exists', { length: 2 }, true, [0, 1]],
    ['has a dead holder in the middle of a run', { length: 2, cut_off: true }, true, [0, 1, 'end']],
    ['has such a holder, where this process takes nothing over', { length: 2, cut_off: true }, false, [0, 1]],
  ])('of a conversation that %s', async (_, row, takesOver, wanted) => {
    const { state, items, begin, followers } = following({ takesOver });
    if (row) state.row = row;
    else delete state.row;
    begin(0);
    await vi.advanceTimersByTimeAsync(10);
    expect(items).toEqual(wanted);
    followers.close();
  });

  test.each([
    ['deleted', undefined],
    ['deleted and made again', { length: 1 }],
  ])('ends when its conversation is %s', async (_, row) => {
    const { state, items, begin } = following();
    state.row = { length: 3 };
    begin(0);
    await vi.advanceTimersByTimeAsync(10);
    if (row) state.row = row;
    else delete state.row;
    await vi.advanceTimersByTimeAsync(1_000);
    expect([items, vi.getTimerCount()]).toEqual([[0, 1, 2, 'end'], 0]);
  });

  test.each<[string, number, (parts: Pick<ReturnType<typeof following>, 'state' | 'followers'>) => void]>([
    ['its conversation was deleted', 1_100, ({ state }) => void delete state.row],
    [
      'its conversation was deleted and made again',
      1_100,
      ({ state }) => void Object.assign(state, { row: { length: 1 } }),
    ],
    ['its store was closed', 10, ({ followers }) => followers.close()],
  ])('ends if %s during its reading', async (_, ms, change) => {
    const { state, items, begin, followers } = following();
    state.row = { length: 3 };
    state.gone = () => change({ state, followers });
    begin(0);
    await vi.advanceTimersByTimeAsync(ms);
    expect([items, vi.getTimerCount()]).toEqual([['end'], 0]);
  });

  test('is refused by a database that fails at its beginning, and waits for one that fails later', async () => {
    const { state, items, begin, followers } = following();
    state.fails = true;
    begin(0);
    await vi.advanceTimersByTimeAsync(10);
    expect(items).toEqual(['store']);
    state.fails = false;
    begin(0);
    await vi.advanceTimersByTimeAsync(10);
    state.fails = true;
    await vi.advanceTimersByTimeAsync(2_000);
    state.fails = false;
    state.row = { length: 2 };
    await vi.advanceTimersByTimeAsync(1_000);
    expect(items).toEqual(['store', 0, 1]);
    followers.close();
  });

  test('receives a signal after the entries before it, none that comes too late, and the last thousand', async () => {
    const { followers, state, items, begin } = following();
    begin(0);
    await vi.advanceTimersByTimeAsync(10);
    followers.signalled('a', 2, [delta('after 1')]);
    expect(items).toEqual([0]);
    state.row = { length: 2 };
    followers.appended(['a']);
    await vi.advanceTimersByTimeAsync(10);
    followers.signalled('a', 1, [delta('late')]);
    followers.signalled('other', 2, [delta('elsewhere')]);
    await vi.advanceTimersByTimeAsync(10);
    expect(items).toEqual([0, 1, 'after 1']);
    items.length = 0;
    followers.signalled(
      'a',
      2,
      Array.from({ length: 1_002 }, (_, index) => delta(`${index}`)),
    );
    await vi.advanceTimersByTimeAsync(10);
    expect([items.length, items[0], items.at(-1)]).toEqual([1_000, '2', '1001']);
    followers.close();
  });

  test.each(Array.from({ length: 40 }, (_, turns) => turns))(
    'that begins %i turns after another one is asked for without a pause',
    async (turns) => {
      const { followers, items, begin } = following();
      begin(0);
      for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
      begin(0);
      await vi.advanceTimersByTimeAsync(10);
      expect(items).toEqual([0, 0]);
      followers.close();
    },
  );

  test('is announced when it begins, and every third of a lease with all others, in hints that fit', async () => {
    const { followers, hints } = following();
    const ids = Array.from({ length: 300 }, (_, index) => `${index}`.padStart(60, 'x'));
    const all = ids.map((id) => followers.follow(id, 1));
    for (const each of all) void each.next().catch(() => undefined);
    await vi.advanceTimersByTimeAsync(0);
    expect(hints).toEqual(ids.map((id) => ({ followed: [id], isNew: true })));
    const renewals: [at: number, ids: string[]][] = [];
    for (let second = 1; second <= 60; second += 1) {
      hints.length = 0;
      await vi.advanceTimersByTimeAsync(1_000);
      expect(hints.filter((hint) => !fitsHint(hint) || 'isNew' in hint)).toEqual([]);
      const followed = hints.flatMap((hint) => ('followed' in hint ? hint.followed : []));
      if (hints.length > 0) renewals.push([second, followed]);
      if (hints.length > 0) expect(hints).toHaveLength(3);
    }
    expect(renewals.map(([, followed]) => followed)).toEqual(renewals.map(() => ids));
    expect(renewals.map(([second], index) => second - (renewals[index - 1]?.[0] ?? second - 20))).toEqual([20, 20, 20]);
    followers.close();
  });
});
