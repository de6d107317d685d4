/** Each key of the page, and each state in which it does nothing. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { conversationEntry, logOf, pageBench, waitingLog } from './pageBench.ts';

class Target {
  readonly tagName: string;
  readonly isContentEditable: boolean;
  readonly blur = vi.fn();
  constructor(tagName = 'DIV', isContentEditable = false) {
    this.tagName = tagName;
    this.isContentEditable = isContentEditable;
  }
}
class Button extends Target {}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  vi.stubGlobal('HTMLElement', Target).stubGlobal('HTMLButtonElement', Button);
  vi.stubGlobal('localStorage', { getItem: () => null, setItem: () => undefined });
  vi.stubGlobal('matchMedia', () => ({ matches: false, addEventListener: () => undefined }));
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

/** Two requests; the first has a call that ran, the second a call that waits. */
const twoRequests = () => {
  const text = (words: string) => [{ type: 'text' as const, text: words }];
  const asked = (messageId: string) =>
    ({ type: 'user-message', messageId, kind: 'direct', content: text('go') }) as const;
  return logOf('A', [
    conversationEntry,
    { type: 'run-started' },
    asked('m1'),
    { type: 'checkpoint', boundary: 'UserMessage' },
    { type: 'agent-output', item: { type: 'assistant', text: 'done' } },
    { type: 'run-stop', reason: 'completed', cause: 'end_turn' },
    { type: 'checkpoint', boundary: 'RunFinished' },
    { type: 'run-started', runId: 'r2' },
    { ...asked('m2'), runId: 'r2' },
    { type: 'checkpoint', boundary: 'UserMessage', runId: 'r2' },
    { type: 'agent-output', item: { type: 'tool-call', callId: 'c', name: 'note', args: {} }, runId: 'r2' },
    { type: 'tool-suspended', callId: 'c', suspension: 1, reason: 'permission', runId: 'r2' },
    { type: 'run-suspended', waiting: ['c'], runId: 'r2' },
    { type: 'checkpoint', boundary: 'RunFinished', runId: 'r2' },
  ]);
};

async function keyboard(log = twoRequests()) {
  const page = await pageBench();
  const focused: string[] = [];
  const inner = (id: string) => ({ focus: () => void focused.push(id) });
  const panel = (id: string) => ({ ...inner(id), querySelector: () => inner(id) });
  vi.stubGlobal('document', { ...document, getElementById: panel });
  let listener = (_: object): void => {};
  vi.stubGlobal('addEventListener', (type: string, handler: typeof listener) => {
    if (type === 'keydown') listener = handler;
  });
  const { listenForKeys } = await import('../../../inspector/state/keyboard.ts');
  const preferences = await import('../../../inspector/state/preferences.ts');
  const chart = await import('../../../inspector/view/ChartPanel.tsx');
  listenForKeys();
  page.server.greet();
  page.server.conversation('A');
  page.server.entries('A', log);
  page.openConversation('A');
  page.server.take();
  let timeStamp = 10_000;
  /** True if the page took the key. */
  const press = (key: string, more: object = {}): boolean => {
    const preventDefault = vi.fn();
    timeStamp += 10;
    listener({ key, code: '', target: new Target(), timeStamp, preventDefault, defaultPrevented: false, ...more });
    return preventDefault.mock.calls.length > 0;
  };
  /** Draws the cards, and lets the time pass after which keys act on them. */
  const showCards = () => {
    for (const { key } of page.cards()) page.showCard(key, performance.now());
    vi.advanceTimersByTime(400);
  };
  return { ...page, ...preferences, ...chart, focused, press, showCards };
}
type Page = Awaited<ReturnType<typeof keyboard>>;

describe('a key that moves', () => {
  const moves: readonly (readonly [key: string, more: object, from: number, to: number])[] = [
    ['j', {}, 3, 4],
    ['k', {}, 3, 2],
    ['ArrowRight', {}, 3, 4],
    ['ArrowLeft', {}, 3, 2],
    ['Home', {}, 3, 0],
    ['End', {}, 3, 13],
    ['l', {}, 3, 13],
    ['J', { shiftKey: true }, 3, 7],
    ['K', { shiftKey: true }, 9, 7],
    ['K', { shiftKey: true }, 7, 1],
    ['ArrowRight', { shiftKey: true }, 3, 7],
  ];
  it.each(moves)('%s with %j moves from %i to %i, and stops playing', async (key, more, from, to) => {
    const { press, moveTo, cursor, playing } = await keyboard();
    moveTo(from);
    playing.value = true;
    expect(press(key, more)).toBe(true);
    expect(cursor.value).toBe(to);
    if (key !== 'Home' && key !== 'End') expect(playing.value).toBe(false);
  });

  it.each([
    ['ø', 'KeyK', -1],
    ['∆', 'KeyJ', 1],
  ])('with alt it is the physical key that counts: %s', async (key, code, direction) => {
    const { press, moveTo, cursor } = await keyboard();
    moveTo(5);
    expect([press(key, { code }), cursor.value]).toEqual([false, 5]);
    expect(press(key, { altKey: true, code })).toBe(true);
    expect(Math.sign(cursor.value - 5)).toBe(direction);
  });

  it('with alt does nothing else: Alt with a letter or digit is a key of the browser', async () => {
    const { press, showCards, server, cards, chosenCard, coverage, editing } = await keyboard();
    showCards();
    for (const key of ['a', 'd', 'e', 'x', '1', 'c', 't', 's', 'Home'])
      expect([key, press(key, { altKey: true })]).toEqual([key, false]);
    expect([server.take(), cards().length, chosenCard.value, coverage.value, editing.value]).toEqual([
      [],
      1,
      undefined,
      false,
      undefined,
    ]);
  });

  it('plays from the beginning at the end of the log, and from its place in the past', async () => {
    const { press, cursor, playing, moveTo } = await keyboard();
    press(' ');
    expect([cursor.value, playing.value]).toEqual([0, true]);
    moveTo(4);
    press(' ');
    expect([cursor.value, playing.value]).toEqual([4, false]);
    press(' ');
    expect([cursor.value, playing.value]).toEqual([4, true]);
  });
});

describe('a key that switches', () => {
  const switches: readonly (readonly [key: string, name: string, value: (page: Page) => unknown])[] = [
    ['c', 'the coverage', ({ coverage }) => coverage.value],
    ['t', 'the time line', ({ dockIsOpen }) => dockIsOpen.value ?? true],
    ['?', 'the help', ({ helpIsOpen }) => helpIsOpen.value],
  ];
  it.each(switches)('%s switches %s, and back', async (key, _, value) => {
    const page = await keyboard();
    const values = [value(page), page.press(key), value(page), page.press(key), value(page)];
    expect(values).toEqual([values[0], true, !values[0], true, values[0]]);
  });

  it('T switches the theme, f fits the chart, and + - 0 zoom it', async () => {
    const { press, theme, fitAsked, zoomAsked } = await keyboard();
    press('T');
    expect(theme.value).toBe('light');
    press('f');
    expect(fitAsked.value).toBe(1);
    const zooms = ['+', '-', '0'].map((key) => press(key) && zoomAsked.value.by);
    expect(zooms).toEqual([1.2, 1 / 1.2, 0]);
    expect(zoomAsked.value.n).toBe(3);
  });

  it.each([
    ['c', 'chart', 'steps'],
    ['s', 'steps', 'steps'],
    ['e', 'events', 'events'],
    ['q', 'sequence', 'sequence'],
    ['x', 'context', 'context'],
    ['t', 'tree', 'steps'],
  ])('g and %s go to the panel %s', async (key, name, shown) => {
    const { press, focused, tab, coverage, server } = await keyboard();
    press('g');
    expect(press(key)).toBe(true);
    expect([focused, tab.value, coverage.value, server.take()]).toEqual([[name], shown, false, []]);
    // The next key is one of its own again.
    if (key === 'c') expect([press('c'), coverage.value]).toEqual([true, true]);
  });

  it.each([
    [1_199, ['events']],
    [1_200, []],
  ])('g counts for %i ms', async (ms, expected) => {
    const { press, focused } = await keyboard();
    press('g', { timeStamp: 50_000 });
    press('e', { timeStamp: 50_000 + ms });
    expect(focused).toEqual(expected);
  });

  it('c switches the coverage also soon after the page was opened, and after g it goes to the chart', async () => {
    const { press, coverage, focused } = await keyboard();
    for (const timeStamp of [0, 1_199, 1_201]) {
      const before = coverage.value;
      press('c', { timeStamp });
      expect([timeStamp, coverage.value, focused]).toEqual([timeStamp, !before, []]);
    }
    press('g', { timeStamp: 1_300 });
    press('c', { timeStamp: 1_400 });
    expect([coverage.value, focused]).toEqual([true, ['chart']]);
  });

  it('x twice cancels the run', async () => {
    const { press, server } = await keyboard();
    press('x');
    expect(server.take()).toEqual([]);
    press('x');
    expect(server.take()).toMatchObject([{ type: 'cancel', conversation: 'A' }]);
  });

  it.each([
    [1_359, true],
    [1_360, false],
  ])('/ goes to the search, and opens the tree in a window of %i px', async (width, isOpen) => {
    const { press, windowSize, treeIsOpen, focused } = await keyboard();
    windowSize.value = { width, height: 900 };
    press('/');
    expect([treeIsOpen.value, focused]).toEqual([isOpen, ['search']]);
  });
});

describe('a key on a card', () => {
  const acts: readonly (readonly [key: string, effect: (page: Page) => unknown, expected: unknown])[] = [
    [
      'a',
      ({ server }) => server.take().map(({ decision }) => decision),
      [{ callId: 'c', suspension: 1, action: 'approve' }],
    ],
    [
      'd',
      ({ server }) => server.take().map(({ decision }) => decision),
      [{ callId: 'c', suspension: 1, action: 'deny' }],
    ],
    ['D', ({ giving }) => giving.value?.what, 'reason'],
    ['e', ({ editing, cards }) => editing.value === cards()[0]?.key, true],
  ];
  it.each(acts)('%s acts only once its buttons have been visible for a while', async (key, effect, expected) => {
    const page = await keyboard();
    page.press(key);
    expect(effect(page)).not.toEqual(expected);
    page.showCards();
    expect(page.press(key)).toBe(true);
    expect(effect(page)).toEqual(expected);
  });

  it.each(['help', 'redactions', 'the past'])('a acts on no card while %s is shown', async (what) => {
    const { press, showCards, server, helpIsOpen, redactionsAreOpen, moveTo } = await keyboard();
    showCards();
    if (what === 'help') helpIsOpen.value = true;
    if (what === 'redactions') redactionsAreOpen.value = true;
    if (what === 'the past') moveTo(12);
    press('a');
    expect(server.take()).toEqual([]);
  });

  it.each([
    ['permission', false],
    ['elicitation', true],
  ])('r answers a question, and no permission: %s', async (reason, answers) => {
    const log = waitingLog('A').map((entry) => (entry.type === 'tool-suspended' ? { ...entry, reason } : entry));
    const { press, showCards, giving } = await keyboard(log);
    showCards();
    press('r');
    expect(giving.value?.what).toBe(answers ? 'answer' : undefined);
  });

  it('a digit selects one of several cards, without which no key acts', async () => {
    const log = logOf('A', [
      ...[conversationEntry, { type: 'run-started' } as const],
      ...['a', 'b'].map((callId) => ({
        ...({ type: 'agent-output', item: { type: 'tool-call', callId, name: 'note', args: {} } } as const),
      })),
      ...['a', 'b'].map((callId) => ({
        ...({ type: 'tool-suspended', callId, suspension: 1, reason: 'permission' } as const),
      })),
      { type: 'run-suspended', waiting: ['a', 'b'] },
    ]);
    const { press, showCards, server, cards, chosenCard } = await keyboard(log);
    showCards();
    press('a');
    expect(server.take()).toEqual([]);
    press('2');
    press('9');
    expect(chosenCard.value).toBe(cards()[1]?.key);
    press('a');
    expect(server.take()).toMatchObject([{ decision: { callId: 'b', action: 'approve' } }]);
  });
});

describe('a key does nothing', () => {
  const ignored: readonly (readonly [string, object])[] = [
    ['while a text is composed', { isComposing: true }],
    ['with the command key', { metaKey: true }],
    ['with the control key', { ctrlKey: true }],
    ['that another part of the page took', { defaultPrevented: true }],
    ['in an input', { target: new Target('INPUT') }],
    ['in a select', { target: new Target('SELECT') }],
    ['in editable text', { target: new Target('DIV', true) }],
  ];
  it.each(ignored)('%s', async (_, more) => {
    const { press, moveTo, cursor, coverage, server, showCards, focused } = await keyboard();
    showCards();
    moveTo(13);
    for (const key of ['a', 'k', 'ArrowLeft', 'Home', 'c', 'x', 'x', 'g', 'e', ' '])
      expect([key, press(key, more)]).toEqual([key, false]);
    expect([cursor.value, coverage.value, server.take(), focused]).toEqual([13, false, [], []]);
  });

  it('in a log without entries, if it is an arrow', async () => {
    const { press } = await keyboard([]);
    expect([press('ArrowRight'), press('F5')]).toEqual([false, false]);
  });

  it('on a button, if it presses that button', async () => {
    const { press, playing } = await keyboard();
    const target = new Button('BUTTON');
    expect([press(' ', { target }), press('Enter', { target }), playing.value]).toEqual([false, false, false]);
    expect(press('k', { target })).toBe(true);
  });

  it('as a single letter, digit or sign while these are off; others act', async () => {
    const { press, switchLetters, cursor, moveTo, server, showCards } = await keyboard();
    showCards();
    switchLetters();
    for (const key of ['a', 'k', 'x', 'x', '1', '+', '?', '/', 'g']) expect([key, press(key)]).toEqual([key, false]);
    expect(server.take()).toEqual([]);
    moveTo(5);
    for (const key of ['ArrowLeft', 'End', 'Home', ' ']) expect([key, press(key)]).toEqual([key, true]);
    expect(cursor.value).toBe(0);
  });
});

it('Escape closes all that is open above the page, and leaves a text', async () => {
  const page = await keyboard();
  const { press, helpIsOpen, redactionsAreOpen, treeIsOpen, chosenState, editing, giving, sending } = page;
  const target = new Target('INPUT');
  for (const each of [helpIsOpen, redactionsAreOpen, treeIsOpen]) each.value = true;
  for (const each of [chosenState, editing]) each.value = 'x';
  giving.value = { key: 'k', what: 'reason' };
  sending.value = { key: 'k', refused: '' };
  press('Escape', { target });
  const open = [helpIsOpen, redactionsAreOpen, treeIsOpen, chosenState, editing, giving, sending];
  expect(open.map(({ value }) => value)).toEqual([false, false, false, ...Array(4).fill(undefined)]);
  expect(target.blur).toHaveBeenCalledOnce();
});

describe('G with a letter in a narrow window', () => {
  it.each([
    ['c', 'chart', 'steps', 'chart'],
    ['s', 'steps', 'chart', 'steps'],
    ['e', 'events', 'chart', 'events'],
  ] as const)('%s shows the tab of %s first', async (key, panel, before, after) => {
    const { press, focused, narrowTab, windowSize } = await keyboard();
    windowSize.value = { width: 800, height: 900 };
    narrowTab.value = before;
    press('g');
    press(key);
    expect([narrowTab.value, focused]).toEqual([after, [panel]]);
  });
});
