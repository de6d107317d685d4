/**
 * The tree of conversations and their actors. Invariant: of the open conversation's rows, only the visible ones and those
 * that keys reach next are in the document.
 */
import { signal, useSignal } from '@preact/signals';
import type { TargetedKeyboardEvent } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { runStateAt } from '../model/logFacts.ts';
import {
  actorRows,
  type MarkName,
  markOfRun,
  RUNS_BEFORE,
  runRows,
  siblingPlaces,
  type TreeRow,
} from '../model/treeRows.ts';
import { charts } from '../state/chartLayouts.ts';
import type { Conversation } from '../state/pageState.ts';
import {
  chosen,
  conversationNamed,
  conversations,
  factsOf,
  folds,
  last,
  moment,
  open,
  openConversation,
  setFold,
  stateAt,
  treeIsOpen,
} from '../state/pageState.ts';
import { isAsking, selectedKey } from '../state/shownActor.ts';
import { Icon, Key, Mark } from './stateMarks.tsx';

/** The number of runs before the cursor that have rows. */
const runsBefore = signal(RUNS_BEFORE);

const ROW = 26;
/** The number of rows above and below the visible ones that are in the document. */
const BEYOND = 12;
const scrolled = signal(0);
const room = signal(600);
/** The row that had the focus last, and the row that gets it as soon as it is in the document. */
const focusedKey = signal<string | undefined>(undefined);
const requestedKey = signal<string | undefined>(undefined);

const isOpenRow = (key: string, byDefault: boolean): boolean =>
  folds.value.get(`${open.value?.id} ${key}`) ?? byDefault;

function markOfOther({ entries, observed, of, status }: Conversation): MarkName {
  if (of === 'xstate') {
    const alive = [...(observed?.actors.values() ?? [])].some((actor) => actor.status === 'active');
    return alive && status !== 'gone' ? 'running' : 'done';
  }
  const run = factsOf(entries).runs.at(-1);
  return run ? markOfRun(runStateAt(run, entries.length - 1)) : 'idle';
}

function ownRows(): TreeRow[] {
  const conversation = open.value;
  if (!conversation) return [];
  if (conversation.of === 'xstate') {
    const actors = [...(conversation.observed?.actors.values() ?? [])];
    return actorRows(actors, isOpenRow, (key) => charts.value.get(key)?.chart);
  }
  return runRows(moment.value, isOpenRow, isAsking.value, runsBefore.value);
}

const rowsAround = (row: HTMLElement): HTMLElement[] => [
  ...(row.closest('[role="tree"]')?.querySelectorAll<HTMLElement>('[role="treeitem"]') ?? []),
];

function focusBeside(row: HTMLElement, by: 1 | -1): void {
  const all = rowsAround(row);
  all[all.indexOf(row) + by]?.focus();
}

const levelOf = (row: Element): number => Number(row.ariaLevel);

/** Focuses the row that contains a row of the open conversation, which may not be in the document. */
function focusParent(rows: readonly TreeRow[], index: number): void {
  const depth = rows[index]?.depth ?? 0;
  const parent = rows
    .slice(0, index)
    .filter((row) => row.depth < depth)
    .at(-1);
  if (parent) requestedKey.value = parent.key;
  else document.querySelector<HTMLElement>('#tree [role="treeitem"]')?.focus();
}

function focusFirstChild(row: HTMLElement): void {
  const all = rowsAround(row);
  const next = all[all.indexOf(row) + 1];
  if (next && levelOf(next) > levelOf(row)) next.focus();
}

/**
 * Handles the keys of a row. Up and down move. Left folds an open row, and otherwise leads to the parent. Right unfolds a
 * folded row, and otherwise leads to the first child. Space folds and unfolds. Enter chooses.
 */
function onRowKey(
  event: TargetedKeyboardEvent<HTMLElement>,
  toggle?: (isOpen: boolean) => void,
  toParent?: () => void,
): void {
  const row = event.currentTarget;
  const isOpen = row.ariaExpanded === 'true';
  if (event.key === 'Enter') row.click();
  else if (event.key === ' ' && toggle) toggle(!isOpen);
  else if (event.key === 'ArrowLeft') isOpen && toggle ? toggle(false) : toParent?.();
  else if (event.key === 'ArrowRight') isOpen || !toggle ? focusFirstChild(row) : toggle(true);
  else if (event.key === 'ArrowDown') focusBeside(row, 1);
  else if (event.key === 'ArrowUp') focusBeside(row, -1);
  else return;
  event.preventDefault();
}

interface RowProps {
  readonly row: TreeRow;
  readonly index: number;
  readonly place: number;
  readonly of: number;
  toParent(): void;
}

function Row({ row, index, place, of, toParent }: RowProps) {
  const isSelected = row.key === selectedKey.value;
  const { isOpen } = row;
  const fold = (to: boolean): void => setFold(`${open.value?.id} ${row.key}`, to);
  return (
    <div
      role="treeitem"
      aria-selected={isSelected}
      aria-expanded={row.hasChildren ? isOpen : undefined}
      aria-level={row.depth + 1}
      aria-posinset={place}
      aria-setsize={of}
      data-key={row.key}
      tabIndex={isSelected ? 0 : -1}
      class={`tree-row${isSelected ? ' is-selected' : ''}${row.isLater ? ' is-later' : ''}`}
      style={{ '--depth': row.depth, top: `${index * ROW}px` }}
      aria-label={[row.machine, row.name, row.fact, row.icon ? '' : row.mark].filter(Boolean).join(', ')}
      onClick={() => {
        treeIsOpen.value = false;
        if (row.icon === 'branch') {
          const child = row.child === undefined ? undefined : conversationNamed(row.child);
          if (child) openConversation(child.id);
        } else if (row.key === 'earlier') runsBefore.value += RUNS_BEFORE;
        else chosen.value = row.key;
      }}
      onFocus={() => {
        focusedKey.value = row.key;
      }}
      onKeyDown={(event) => onRowKey(event, row.hasChildren ? fold : undefined, toParent)}
    >
      <Chevron isOpen={isOpen} isNone={!row.hasChildren} toggle={() => fold(!isOpen)} />
      {row.icon ? <Icon name={row.icon} /> : <Mark name={row.mark} />}
      {row.machine !== undefined && <b class="mono">{row.machine}</b>}
      <span class="tree-name">{row.name}</span>
      <span class="fact">{row.fact}</span>
    </div>
  );
}

/** Only for the pointer: screen readers and keys use the row itself. */
function Chevron({ isOpen, isNone, toggle }: { isOpen: boolean; isNone: boolean; toggle(): void }) {
  if (isNone) return <span class="chevron" />;
  return (
    <button
      type="button"
      class="chevron"
      tabIndex={-1}
      aria-hidden="true"
      onClick={(event) => {
        event.stopPropagation();
        toggle();
      }}
    >
      <Icon name={isOpen ? 'open' : 'closed'} size={9} />
    </button>
  );
}

/** Returns the indices of the rows in the document, in order. */
function shownIndices(rows: readonly TreeRow[]): number[] {
  const indexOf = (key: string | undefined): number =>
    key === undefined ? -1 : rows.findIndex((row) => row.key === key);
  const from = Math.floor(scrolled.value / ROW) - BEYOND;
  const visible = Array.from({ length: Math.ceil(room.value / ROW) + 2 * BEYOND }, (_, offset) => from + offset);
  const focused = indexOf(focusedKey.value);
  const beside = focused < 0 ? [] : [focused - 1, focused, focused + 1];
  const others = [0, rows.length - 1, indexOf(selectedKey.value), indexOf(requestedKey.value)];
  return [...new Set([...visible, ...beside, ...others])]
    .filter((index) => index >= 0 && index < rows.length)
    .sort((a, b) => a - b);
}

/** The rows of the open conversation. */
function OwnRows({ rows }: { rows: readonly TreeRow[] }) {
  const box = useRef<HTMLDivElement>(null);
  const places = siblingPlaces(rows);
  useLayoutEffect(() => {
    const key = requestedKey.value;
    if (key === undefined) return;
    requestedKey.value = undefined;
    box.current?.querySelector<HTMLElement>(`[data-key="${CSS.escape(key)}"]`)?.focus();
  }, [requestedKey.value]);
  return (
    <div ref={box} class="tree-rows" role="none" style={{ height: `${rows.length * ROW}px` }}>
      {shownIndices(rows).map((index) => {
        const row = rows[index];
        const { place, of } = places[index] ?? { place: 1, of: 1 };
        if (!row) return null;
        const toParent = (): void => focusParent(rows, index);
        return <Row key={row.key} row={row} index={index} place={place} of={of} toParent={toParent} />;
      })}
    </div>
  );
}

/** Measures the visible part of the tree. */
function useVisiblePart() {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    scrolled.value = element.scrollTop;
    const observer = new ResizeObserver(() => {
      room.value = element.clientHeight;
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return box;
}

const matches = (words: string, text: string): boolean => text.toLowerCase().includes(words.toLowerCase());

/** The open conversation, with its actors below. */
function OpenConversation({ conversation, isReached }: { conversation: Conversation; isReached: boolean }) {
  const state = stateAt(last.value);
  const isApp = conversation.of === 'xstate';
  const mark: MarkName = isApp
    ? markOfOther(conversation)
    : state === 'idle' || state === 'open'
      ? 'idle'
      : markOfRun(state);
  const isSelected = selectedKey.value === 'conversation';
  const isOpen = isOpenRow('conversation', true);
  const fold = (to: boolean): void => setFold(`${conversation.id} conversation`, to);
  return (
    <div
      role="treeitem"
      aria-selected={isSelected}
      aria-expanded={isOpen}
      aria-level={1}
      tabIndex={isReached ? 0 : -1}
      class={isSelected ? 'tree-row is-selected' : 'tree-row'}
      aria-label={`${conversation.id}, ${mark}`}
      onClick={() => {
        treeIsOpen.value = false;
        // An app has no chart above those of its actors.
        chosen.value = isApp ? undefined : 'conversation';
      }}
      onKeyDown={(event) => onRowKey(event, fold)}
    >
      <Chevron isOpen={isOpen} isNone={false} toggle={() => fold(!isOpen)} />
      {conversation.isFork ? <Icon name="branch" /> : <Mark name={mark} />}
      <b class="tree-name">{conversation.id}</b>
    </div>
  );
}

function OtherConversation({ other, isReached }: { other: Conversation; isReached: boolean }) {
  const mark = markOfOther(other);
  const show = (): void => {
    treeIsOpen.value = false;
    openConversation(other.id);
  };
  const runs = other.of === 'xstate' ? 0 : factsOf(other.entries).runs.filter(({ isResumed }) => !isResumed).length;
  return (
    <div
      role="treeitem"
      aria-selected="false"
      aria-expanded="false"
      aria-level={1}
      tabIndex={isReached ? 0 : -1}
      class="tree-row"
      aria-label={`${other.id}, ${mark}`}
      onClick={show}
      onKeyDown={(event) => onRowKey(event, (isOpen) => isOpen && show())}
    >
      <Chevron isOpen={false} isNone={false} toggle={show} />
      {other.isFork ? <Icon name="branch" /> : <Mark name={mark} />}
      <span class="tree-name">{other.id}</span>
      <span class="fact">{runs || ''}</span>
    </div>
  );
}

export function Tree() {
  const search = useSignal('');
  const box = useVisiblePart();
  const all = [...conversations.value.values()].filter(
    ({ parent }) => parent === undefined || !conversationNamed(parent.conversation),
  );
  const others = all.filter(({ id }) => id !== open.value?.id && (search.value === '' || matches(search.value, id)));
  const own = isOpenRow('conversation', true) ? ownRows() : [];
  const rows = own.filter(
    (row) => search.value === '' || matches(search.value, `${row.machine ?? ''} ${row.name} ${row.key} ${row.mark}`),
  );
  const hasSelected = rows.some(({ key }) => key === selectedKey.value);
  return (
    <nav class={treeIsOpen.value ? 'tree is-open' : 'tree'} id="tree" aria-label="Conversations">
      <div class="panel-head">
        <button
          type="button"
          class="quiet-button fold-tree"
          aria-label="Fold the conversations"
          onClick={() => {
            treeIsOpen.value = false;
          }}
        >
          <Icon name="previous" size={12} />
        </button>
        <b>Conversations</b>
        <label class="search">
          <Icon name="search" size={12} />
          <input
            id="search"
            aria-label="Search conversations and actors"
            class={search.value === '' ? '' : 'has-words'}
            value={search.value}
            onInput={(event) => {
              search.value = event.currentTarget.value;
            }}
          />
          <Key>/</Key>
        </label>
      </div>
      {all.length === 0 && <p class="tree-empty">A conversation shows here as soon as an agent opens one.</p>}
      <div
        ref={box}
        role="tree"
        aria-label="Conversations"
        onScroll={(event) => {
          scrolled.value = event.currentTarget.scrollTop;
        }}
      >
        {open.value && <OpenConversation conversation={open.value} isReached={!hasSelected} />}
        {rows.length > 0 && <OwnRows rows={rows} />}
        {others.length > 0 && <p class="tree-head">{open.value ? 'Others' : ''}</p>}
        {others.map((other, index) => (
          <OtherConversation key={other.id} other={other} isReached={!open.value && index === 0} />
        ))}
      </div>
    </nav>
  );
}
