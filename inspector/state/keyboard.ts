/**
 * The keyboard shortcuts of the page. Invariant: single letters do nothing while a person types, and no key acts during
 * IME composition. Decision keys act only on a card with visible buttons.
 */
import { fitAsked, zoomAsked } from '../view/ChartPanel.tsx';
import { toggleEntry } from '../view/panels/Events.tsx';
import {
  acceptsKeys,
  type Card,
  cards,
  chosenCard,
  decide,
  editing,
  giving,
  mayControl,
  pressCancel,
  sending,
} from './decisionCards.ts';
import { exportLog, exportTest } from './logExports.ts';
import { chooseFile } from './logFiles.ts';
import {
  chosen,
  chosenState,
  coverage,
  cursor,
  dockIsOpen,
  entries,
  facts,
  follow,
  helpIsOpen,
  isNarrow,
  isPast,
  last,
  moveTo,
  narrowTab,
  open,
  playing,
  redactionsAreOpen,
  step,
  tab,
  treeIsOpen,
  windowSize,
} from './pageState.ts';
import { lettersAreOn, switchTheme } from './preferences.ts';
import { crumbs, selectedKey } from './shownActor.ts';

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|SELECT)$/.test(target.tagName));

const beginsCycle = (index: number): boolean => facts.value.runs.some((run) => run.from === index && !run.isResumed);
const endsStep = (index: number): boolean => facts.value.steps[index]?.end === index;

function moveBy(direction: 1 | -1, event: KeyboardEvent): void {
  playing.value = false;
  step(direction, event.shiftKey ? beginsCycle : event.altKey ? endsStep : undefined);
}

/** Returns the card that keys act on: the only one, or the selected one. */
function card(): Card | undefined {
  const all = cards();
  const one = all.length === 1 ? all[0] : all.find(({ key }) => key === chosenCard.value);
  return one && acceptsKeys(one, performance.now()) ? one : undefined;
}

function onCard(event: KeyboardEvent): boolean {
  const isCovered = helpIsOpen.value || redactionsAreOpen.value;
  if (isCovered || !mayControl() || cards().length === 0) return false;
  if (/^[1-9]$/.test(event.key)) {
    const named = cards()[Number(event.key) - 1];
    if (named) chosenCard.value = named.key;
    return true;
  }
  const one = card();
  if (!one) return false;
  const { key } = one;
  switch (event.key) {
    case 'a':
      void decide(one, { action: 'approve' });
      return true;
    case 'd':
      void decide(one, { action: 'deny' });
      return true;
    case 'D':
      giving.value = { key, what: 'reason' };
      return true;
    case 'e':
      editing.value = key;
      return true;
    case 'r':
      if (one.suspension.reason === 'permission') return false;
      giving.value = { key, what: 'answer' };
      return true;
    default:
      return false;
  }
}

function crumbBy(direction: 1 | -1): void {
  const list = crumbs.value;
  const at = list.findIndex(({ key }) => key === selectedKey.value);
  const next = list[at + direction];
  if (next) chosen.value = next.key;
}

const focusOn = (id: string): void => {
  const panel = document.getElementById(id);
  const inner =
    panel?.querySelector<HTMLElement>('[tabindex="0"]') ?? panel?.querySelector<HTMLElement>('button, input');
  (inner ?? panel)?.focus();
};

let goPressedAt = Number.NEGATIVE_INFINITY;
const GO_MS = 1200;
function go(key: string): boolean {
  const panels: Readonly<Record<string, string>> = {
    c: 'chart',
    s: 'steps',
    e: 'events',
    q: 'sequence',
    x: 'context',
    t: 'tree',
  };
  const name = panels[key];
  if (name === undefined) return false;
  if (isNarrow.value && (name === 'chart' || name === 'steps' || name === 'events')) narrowTab.value = name;
  // In a wide window the events have their own column.
  const isShown = name === 'events' && open.value?.of === 'runchart' && windowSize.value.width >= 1760;
  if (!isShown && (name === 'steps' || name === 'events' || name === 'sequence' || name === 'context'))
    tab.value = name;
  requestAnimationFrame(() => focusOn(name));
  return true;
}

const ACTS: Readonly<Record<string, (event: KeyboardEvent) => void>> = {
  j: (event) => moveBy(1, event),
  k: (event) => moveBy(-1, event),
  J: (event) => moveBy(1, event),
  K: (event) => moveBy(-1, event),
  ' ': () => {
    if (!playing.value && !isPast.value) moveTo(0);
    playing.value = !playing.value;
  },
  l: () => follow(),
  Home: () => moveTo(0),
  End: () => moveTo(last.value),
  x: (event) => pressCancel(event.timeStamp),
  '[': () => crumbBy(-1),
  ']': () => crumbBy(1),
  f: () => {
    fitAsked.value += 1;
  },
  '+': () => zoomBy(1.2),
  '-': () => zoomBy(1 / 1.2),
  '0': () => zoomBy(0),
  '/': () => {
    treeIsOpen.value = windowSize.value.width < 1360;
    requestAnimationFrame(() => document.getElementById('search')?.focus());
  },
  c: () => {
    coverage.value = !coverage.value;
  },
  t: () => {
    dockIsOpen.value = !(dockIsOpen.value ?? windowSize.value.height >= 840);
  },
  m: () => void exportTest(),
  s: () => exportLog(),
  o: () => chooseFile(),
  '?': () => {
    helpIsOpen.value = !helpIsOpen.value;
  },
  T: () => switchTheme(),
  Enter: () => toggleEntry(cursor.value),
};

function zoomBy(by: number): void {
  zoomAsked.value = { by, n: zoomAsked.value.n + 1 };
}

function onKey(event: KeyboardEvent): void {
  // A composed character is not a key yet.
  if (event.isComposing) return;
  if (event.key === 'Escape') {
    helpIsOpen.value = false;
    redactionsAreOpen.value = false;
    treeIsOpen.value = false;
    chosenState.value = undefined;
    editing.value = undefined;
    giving.value = undefined;
    sending.value = undefined;
    if (isTyping(event.target)) (event.target as HTMLElement).blur();
    return;
  }
  if (isTyping(event.target) || event.metaKey || event.ctrlKey || event.defaultPrevented) return;
  const onButton = event.target instanceof HTMLButtonElement && (event.key === 'Enter' || event.key === ' ');
  if (onButton) return;
  if (!lettersAreOn.value && /^\S$/u.test(event.key)) return;
  const isStep = event.altKey && /^Key[JK]$/.test(event.code);
  // Other keys with Alt belong to the browser: Alt with D leads to the address.
  if (event.altKey && !isStep && !/^(Arrow(Left|Right)|[jkJK])$/.test(event.key)) return;
  if (event.timeStamp - goPressedAt < GO_MS && go(event.key)) {
    goPressedAt = Number.NEGATIVE_INFINITY;
    return event.preventDefault();
  }
  if (event.key === 'g') {
    goPressedAt = event.timeStamp;
    return;
  }
  if (onCard(event)) return event.preventDefault();
  const arrow = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : undefined;
  if (arrow && entries.value.length > 0) {
    moveBy(arrow, event);
    return event.preventDefault();
  }
  // With ⌥ a Mac key types another letter, so the physical key counts.
  const key = isStep ? event.code.slice(3).toLowerCase() : event.key;
  const act = ACTS[key];
  if (!act) return;
  act(event);
  event.preventDefault();
}

export const listenForKeys = (): void => addEventListener('keydown', onKey);
