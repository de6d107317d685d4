/** Acts of a person on the page: move in a log, decide, settle, send, export, and change settings. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { conversationEntry, logOf, pageBench, waitingLog } from './pageBench.ts';

const stored = new Map<string, string>();
beforeEach(() => {
  stored.clear();
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  const getItem = (name: string) => stored.get(name) ?? null;
  vi.stubGlobal('localStorage', { getItem, setItem: (name: string, value: string) => void stored.set(name, value) });
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

async function openPage(log = waitingLog('A')) {
  const page = await pageBench();
  page.server.greet();
  page.server.conversation('A');
  page.server.entries('A', log);
  page.openConversation('A');
  page.server.take();
  return page;
}
const settled = async (): Promise<void> => {
  for (let turn = 0; turn < 10; turn++) await Promise.resolve();
};

describe('the cursor', () => {
  it('follows the log until it is moved, stays within the log, and follows again at its end', async () => {
    const { server, cursor, last, isPast, isFollowing, moveTo, follow } = await openPage();
    const state = () => [cursor.value, isPast.value, isFollowing.value];
    expect(state()).toEqual([7, false, true]);
    const places: unknown[] = [];
    for (const to of [3, -5, 6, 7, 99]) {
      moveTo(to);
      places.push(state());
    }
    const [past, end] = [(at: number) => [at, true, false], [7, false, true]];
    expect(places).toEqual([past(3), past(0), past(6), end, end]);
    moveTo(2);
    const more = logOf('A', Array(10).fill({ type: 'checkpoint', boundary: 'RunFinished' })).slice(8);
    server.entries('A', more);
    expect([cursor.value, last.value]).toEqual([2, 9]);
    follow();
    expect(state()).toEqual([9, false, true]);
  });

  it('moves to the next entry that counts as a stop, or to the end of the log, in both directions', async () => {
    const { cursor, moveTo, step } = await openPage();
    const from = (at: number, ...how: Parameters<typeof step>) => {
      moveTo(at);
      step(...how);
      return cursor.value;
    };
    const stops = (at: number) => at === 2 || at === 5;
    expect([from(3, 1), from(3, -1), from(0, -1), from(7, 1)]).toEqual([4, 2, 0, 7]);
    expect([from(2, 1, stops), from(5, -1, stops), from(5, 1, stops), from(2, -1, stops)]).toEqual([5, 2, 7, 0]);
  });

  it('is at the end again, with nothing selected, when another conversation is opened', async () => {
    const { server, cursor, chosen, chosenState, playing, moveTo, openConversation } = await openPage();
    server.conversation('B');
    server.entries('B', waitingLog('B').slice(0, 4));
    moveTo(1);
    chosen.value = 'run';
    chosenState.value = 'state';
    playing.value = true;
    openConversation('A');
    expect([cursor.value, chosen.value, playing.value]).toEqual([1, 'run', true]);
    openConversation('B');
    expect([cursor.value, chosen.value, chosenState.value, playing.value]).toEqual([3, undefined, undefined, false]);
  });

  it.each([
    ['live', undefined, 3, 'running'],
    ['live', 'gone', 3, 'open'],
    ['file', undefined, 3, 'open'],
    ['file', undefined, 2, 'running'],
    ['live', 'gone', 2, 'running'],
    ['live', undefined, 0, 'idle'],
  ] as const)('shows the state of the run: %s, %s, entry %i is %s', async (source, status, at, state) => {
    const { stateAt, put, openConversation } = await pageBench();
    const entries = waitingLog('X').slice(0, 4);
    put({ id: 'X', source, of: 'runchart', entries, broken: [], ...(status && { status }) });
    openConversation('X');
    expect(stateAt(at)).toBe(state);
  });
});

describe('a decision', () => {
  const RECEIPTS = {
    held: 'held until the call is suspended',
    duplicate: 'said before',
    conflict: 'somebody else decided first',
    stale: 'too old',
    unknown: 'no such call waits',
    later: 'later',
  };
  const ACTIONS = {
    approve: [{ action: 'approve' }, 'allowed'],
    deny: [{ action: 'deny', reason: 'no' }, 'denied'],
    edit: [{ action: 'edit', args: { text: 'b' } }, 'runs with the new arguments'],
    answer: [{ action: 'answer', payload: 'x' }, 'answered'],
  } as const;

  it.each(Object.entries(ACTIONS))(
    'is sent to the server once, and its receipt closes the typed answer: %s',
    async (_, [answer, words]) => {
      const { server, cards, decide, editing, giving, sent, announcement } = await openPage();
      const [card] = cards();
      if (!card) throw new Error('expected a card');
      editing.value = card.key;
      giving.value = { key: card.key, what: 'answer' };
      const done = decide(card, answer);
      expect(sent.value.get(card.key)).toEqual({ state: 'sending' });
      const [asked, ...others] = server.take();
      expect([asked?.decision, others]).toEqual([{ callId: 'call_0', suspension: 1, ...answer }, []]);
      if (asked) server.answer(asked, { receipt: 'applied' });
      await settled();
      expect([sent.value.get(card.key), announcement.value]).toEqual([{ state: 'said', words }, `note: ${words}`]);
      expect([editing.value, giving.value]).toEqual([undefined, undefined]);
      const [resumed] = server.take();
      expect(resumed).toMatchObject({ type: 'resume', conversation: 'A' });
      if (resumed) server.answer(resumed, { runId: 'r' });
      expect(await done).toBeUndefined();
    },
  );

  it.each(Object.entries(RECEIPTS))('with the receipt %s shows "%s"', async (receipt, words) => {
    const { server, cards, decide, sent } = await openPage();
    const [card] = cards();
    if (!card) throw new Error('expected a card');
    void decide(card, { action: 'approve' });
    const [asked] = server.take();
    if (asked) server.answer(asked, { receipt });
    await settled();
    expect(sent.value.get(card.key)).toEqual({ state: 'said', words });
  });

  it('that is refused may be made again, and what was typed stays', async () => {
    const { server, cards, decide, editing, sent, announcement } = await openPage();
    const [card] = cards();
    if (!card) throw new Error('expected a card');
    editing.value = card.key;
    const refused = decide(card, { action: 'edit', args: 5 });
    const [asked] = server.take();
    if (asked) server.say({ type: 'refused', ask: asked.ask, code: 'invalid_decision', message: 'no object' });
    expect(await refused).toBe('no object');
    expect([sent.value.size, editing.value, announcement.value]).toEqual([0, card.key, 'no object']);
    void decide(card, { action: 'approve' });
    expect(server.take()).toHaveLength(1);
  });

  it('resumes only when no other call waits', async () => {
    const both = (id: string) =>
      logOf(id, [
        conversationEntry,
        { type: 'run-started' },
        { type: 'user-message', messageId: 'm', kind: 'direct', content: [{ type: 'text', text: 'go' }] },
        ...['a', 'b'].map((callId) => ({
          ...({ type: 'agent-output', item: { type: 'tool-call', callId, name: 'note', args: {} } } as const),
        })),
        ...['a', 'b'].map((callId) => ({
          ...({ type: 'tool-suspended', callId, suspension: 1, reason: 'permission' } as const),
        })),
        { type: 'run-suspended', waiting: ['a', 'b'] },
      ]);
    const { server, cards, decide } = await openPage(both('A'));
    const [first] = cards();
    if (!first || cards().length !== 2) throw new Error('expected two cards');
    void decide(first, { action: 'approve' });
    const [asked] = server.take();
    if (asked) server.answer(asked, { receipt: 'applied' });
    await settled();
    expect(server.take()).toEqual([]);
  });

  it.each(['in the past', 'of a file', 'without control', 'after the connection is lost'])(
    'is impossible %s',
    async (when) => {
      const {
        server,
        cards,
        decide,
        settle,
        pressCancel,
        sendEvent,
        maySend,
        mayControl,
        moveTo,
        put,
        openConversation,
      } = await openPage();
      const [card] = cards();
      if (!card) throw new Error('expected a card');
      expect([mayControl(), maySend('cancel.requested', 'CONVERSATION', undefined)]).toEqual([true, true]);
      if (when === 'in the past') moveTo(6);
      if (when === 'after the connection is lost') server.drop();
      if (when === 'without control')
        server.say({
          type: 'hello',
          wire: 1,
          version: '0',
          session: 's',
          control: false,
          from: 9,
          next: 9,
          dropped: 0,
        });
      if (when === 'of a file') {
        put({ id: 'F', source: 'file', of: 'runchart', entries: waitingLog('F'), broken: [] });
        openConversation('F');
      }
      server.take();
      expect([mayControl(), maySend('cancel.requested', 'CONVERSATION', undefined)]).toEqual([false, false]);
      void decide(card, { action: 'approve' });
      void settle(card.call, { retry: true });
      for (const at of [5_000, 5_100]) pressCancel(at);
      expect(await sendEvent('cancel.requested', undefined, '')).toBe('nothing can be sent here');
      expect(server.take()).toEqual([]);
    },
  );
});

describe('a settlement', () => {
  it.each([{ ran: null }, { didNotRun: true }, { retry: true }] as const)('is sent to the server: %j', async (how) => {
    const { server, cards, settle, announcement } = await openPage();
    const [card] = cards();
    if (!card) throw new Error('expected a card');
    for (const refusal of [undefined, 'it runs']) {
      const done = settle(card.call, how);
      const [asked] = server.take();
      expect(asked).toMatchObject({ type: 'settle', conversation: 'A', callId: 'call_0', how });
      if (asked && refusal) server.say({ type: 'refused', ask: asked.ask, code: 'x', message: refusal });
      else if (asked) server.answer(asked, { status: 'waiting' });
      await done;
      expect(announcement.value).toBe(refusal ?? 'note settled');
    }
  });
});

describe('arguments that are too large for the page', () => {
  /** The page has a part of one entry. */
  async function openCut(seq: number, began = 0) {
    const page = await pageBench();
    page.server.greet();
    page.server.conversation('A');
    const log = waitingLog('A', 'call_0', began);
    page.server.entries('A', log.slice(0, seq));
    page.server.entries('A', log.slice(seq, seq + 1), { cut: true });
    page.server.entries('A', log.slice(seq + 1));
    page.openConversation('A');
    page.server.take();
    const [card] = page.cards();
    if (!card) throw new Error('expected a card');
    return { ...page, card };
  }
  const edit = { action: 'edit', args: { text: 'a… 600000 more characters' } } as const;

  it.each([4, 5])('are not edited, because the tool would get their beginning: entry %i', async (seq) => {
    const { decide, card, server, sent, announcement } = await openCut(seq);
    const why = 'the page has only the beginning of these arguments: they are too large to be edited here';
    expect(await decide(card, edit)).toBe(why);
    expect([server.take(), sent.value.size, announcement.value]).toEqual([[], 0, why]);
    void decide(card, { action: 'approve' });
    expect(server.take()).toMatchObject([{ type: 'decide', decision: { action: 'approve' } }]);
  });

  it('do not keep those of other entries, conversations and servers from being edited', async () => {
    const other = await openCut(3);
    void other.decide(other.card, edit);
    expect(other.server.take()).toHaveLength(1);
    const { server, openConversation, cards, decide } = await openCut(4);
    server.conversation('B');
    server.entries('B', waitingLog('B'));
    openConversation('B');
    for (const card of cards()) void decide(card, edit);
    expect(server.take()).toHaveLength(1);
    server.drop();
    vi.advanceTimersByTime(250);
    server.restart();
    server.greet('another');
    server.conversation('A');
    server.entries('A', waitingLog('A', 'call_0', 9));
    openConversation('A');
    server.take();
    for (const card of cards()) void decide(card, edit);
    expect(server.take()).toHaveLength(1);
  });
});

describe('a cancel', () => {
  it.each([
    [1_999, 1],
    [2_000, 1],
    [2_001, 0],
  ])('needs a second press within two seconds: after %i ms', async (ms, requests) => {
    const { server, pressCancel, announcement } = await openPage();
    pressCancel(10_000);
    expect([server.take(), announcement.value]).toEqual([[], 'X again cancels this run']);
    pressCancel(10_000 + ms);
    const asked = server.take();
    expect(asked.map(({ type }) => type)).toEqual(Array(requests).fill('cancel'));
    for (const each of asked) server.answer(each, { status: 'idle' });
    await settled();
    if (requests > 0) expect(announcement.value).toBe('cancelled');
    pressCancel(10_001 + ms);
    expect(server.take()).toHaveLength(requests === 0 ? 1 : 0);
  });

  it.each([0, 500, 2_000])('needs a second press also %i ms after the page was opened', async (at) => {
    const { server, pressCancel, openConversation } = await openPage();
    pressCancel(at);
    expect(server.take()).toEqual([]);
    server.conversation('B');
    openConversation('B');
    pressCancel(at + 1);
    expect(server.take()).toEqual([]);
    pressCancel(at + 2);
    expect(server.take()).toMatchObject([{ type: 'cancel', conversation: 'B' }]);
    pressCancel(at + 3);
    expect(server.take()).toEqual([]);
  });
});

describe('an event that a click sends', () => {
  const app = async (takesEvents: true | undefined) => {
    const page = await openPage();
    const { open, put } = page;
    if (open.value) put({ ...open.value, of: 'xstate', ...(takesEvents && { takesEvents }) });
    return page;
  };

  it('is one of an app that accepts events, to an actor, and none of the interpreter', async () => {
    const { maySend } = await app(true);
    const types = ['GO', 'xstate.done', '*', 'go.*', 'go home', 'cancel.requested'];
    expect(types.filter((type) => maySend(type, 'APP', 'a1'))).toEqual(['GO', 'go home', 'cancel.requested']);
    expect(maySend('GO', 'APP', undefined)).toBe(false);
    expect((await app(undefined)).maySend('GO', 'APP', 'a1')).toBe(false);
  });

  it('of a conversation is its resumption or its cancel, in its own chart only', async () => {
    const { maySend, sendEvent, server } = await openPage();
    const types = ['resume.requested', 'cancel.requested', 'GO', 'toString'];
    expect(types.filter((type) => maySend(type, 'CONVERSATION', 'a1'))).toEqual(types.slice(0, 2));
    expect(types.filter((type) => maySend(type, 'RUN', 'a1'))).toEqual([]);
    void sendEvent('resume.requested', undefined, '');
    expect(server.take()).toMatchObject([{ type: 'resume', conversation: 'A' }]);
  });

  it.each([
    ['', { type: 'GO' }],
    ['  ', { type: 'GO' }],
    ['{"n":1,"type":"OTHER"}', { n: 1, type: 'GO' }],
  ])('has the fields %j', async (fields, event) => {
    const { sendEvent, server, announcement } = await app(true);
    const done = sendEvent('GO', 'a1', fields);
    const [asked] = server.take();
    expect(asked).toMatchObject({ type: 'event', conversation: 'A', actor: 'a1', event });
    if (asked) server.answer(asked, { status: 'sent' });
    expect([await done, announcement.value]).toEqual([undefined, 'GO sent']);
  });

  it.each(['5', 'null', '[1]', '{', '"x"'])('is not sent with the fields %j', async (fields) => {
    const { sendEvent, server } = await app(true);
    expect(await sendEvent('GO', 'a1', fields)).toMatch(fields === '{' ? /JSON/ : /expected an object of fields/);
    expect(server.take()).toEqual([]);
  });

  it('is no longer about to be sent when another conversation is opened', async () => {
    const { server, sending, openConversation } = await openPage();
    server.conversation('B');
    server.entries('B', waitingLog('B'));
    sending.value = { key: 'k', refused: '' };
    openConversation('B');
    expect(sending.value).toBeUndefined();
  });
});

describe('the settings of a person', () => {
  const load = async () => {
    await pageBench();
    return import('../../../inspector/state/preferences.ts');
  };

  it('are stored, and read at the next visit', async () => {
    vi.stubGlobal('matchMedia', () => ({ matches: false }));
    const first = await load();
    expect([first.theme.value, first.lettersAreOn.value, first.sizes.value]).toEqual([undefined, true, {}]);
    first.switchTheme();
    first.switchLetters();
    first.resize('tree', 200.4, 0);
    first.resize('dock', 100, 0);
    expect(Object.fromEntries(stored)).toEqual({
      ...{ 'runchart-theme': 'light', 'runchart-letters': 'off', 'runchart-sizes': '{"tree":200,"dock":100}' },
    });
    const second = await load();
    expect([second.theme.value, second.lettersAreOn.value]).toEqual(['light', false]);
    expect(second.sizes.value).toEqual({ tree: 200, dock: 100 });
    second.switchTheme();
    second.switchLetters();
    second.resize('tree', undefined, 0);
    const third = await load();
    expect([third.theme.value, third.lettersAreOn.value, third.sizes.value]).toEqual(['dark', true, { dock: 100 }]);
  });

  it('begin with the other theme than that of the system', async () => {
    vi.stubGlobal('matchMedia', (query: string) => ({ matches: query.includes('light') }));
    const { theme, switchTheme } = await load();
    switchTheme();
    expect(theme.value).toBe('dark');
  });

  it('are those of the page if the stored ones are invalid, or if the browser stores nothing', async () => {
    stored.set('runchart-theme', 'pink');
    stored.set('runchart-sizes', '{"tree":159,"right":800,"events":"300","dock":701,"other":300}');
    const invalid = await load();
    expect([invalid.theme.value, invalid.sizes.value]).toEqual([undefined, { right: 800 }]);
    stored.set('runchart-sizes', '{"tree":160,"right":300,"events":700,"dock":70}');
    expect((await load()).sizes.value).toEqual({ tree: 160, right: 300, events: 700, dock: 70 });
    stored.set('runchart-sizes', 'null');
    expect((await load()).sizes.value).toEqual({});
    stored.set('runchart-sizes', '{');
    expect((await load()).sizes.value).toEqual({});
    const refuses = () => {
      throw new Error('no storage');
    };
    vi.stubGlobal('localStorage', { getItem: refuses, setItem: refuses });
    const without = await load();
    without.switchLetters();
    without.resize('tree', 300, 0);
    expect([without.lettersAreOn.value, without.sizes.value]).toEqual([false, { tree: 300 }]);
  });

  it.each([
    ['tree', 159, 0, 160],
    ['tree', 481, 0, 480],
    ['tree', 400, 700, 380],
    ['right', 299, 0, 300],
    ['right', 801, 0, 800],
    ['events', 239, 0, 240],
    ['events', 701, 0, 700],
    ['dock', 69, 0, 70],
    ['dock', 700, 0, 660],
    ['dock', 500, 300, 360],
  ] as const)('leave room for the chart: %s of %i px beside %i px is %i px', async (name, asked, others, size) => {
    const { resize, sizes } = await load();
    resize(name, asked, others);
    expect(sizes.value).toEqual({ [name]: size });
  });
});

describe('a log that names itself as its parent', () => {
  it('has no waiting calls of sub-agents, and can be opened', async () => {
    const { put, cards, openConversation, stateAt, last } = await pageBench();
    const suspended = { type: 'tool-suspended', callId: 'call_0', suspension: 1, reason: 'sub-agent' };
    const entries = waitingLog('a').map((entry) =>
      entry.type === 'tool-suspended' ? { ...entry, ...suspended } : entry,
    );
    const parent = { conversation: 'a', callId: 'call_0' };
    put({ id: 'a', source: 'file', of: 'runchart', entries: entries as never, broken: [], parent });
    openConversation('a');
    expect([cards(), stateAt(last.value)]).toEqual([[], 'waiting']);
  });
});
