/** The tree of conversations and their actors. */
import { signal, useSignal } from '@preact/signals';
import type { TargetedKeyboardEvent } from 'preact';
import { runStateAt } from '../model/logFacts.ts';
import { actorRows, type MarkName, markOfRun, RUNS_BEFORE, runRows, type TreeRow } from '../model/treeRows.ts';
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

function focusParent(row: HTMLElement): void {
  const all = rowsAround(row);
  const parents = all.slice(0, all.indexOf(row)).filter((other) => levelOf(other) < levelOf(row));
  parents.at(-1)?.focus();
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
function onRowKey(event: TargetedKeyboardEvent<HTMLElement>, toggle?: (isOpen: boolean) => void): void {
  const row = event.currentTarget;
  const isOpen = row.ariaExpanded === 'true';
  if (event.key === 'Enter') row.click();
  else if (event.key === ' ' && toggle) toggle(!isOpen);
  else if (event.key === 'ArrowLeft') isOpen && toggle ? toggle(false) : focusParent(row);
  else if (event.key === 'ArrowRight') isOpen || !toggle ? focusFirstChild(row) : toggle(true);
  else if (event.key === 'ArrowDown') focusBeside(row, 1);
  else if (event.key === 'ArrowUp') focusBeside(row, -1);
  else return;
  event.preventDefault();
}

function Row({ row }: { row: TreeRow }) {
  const isSelected = row.key === selectedKey.value;
  const { isOpen } = row;
  const fold = (to: boolean): void => setFold(`${open.value?.id} ${row.key}`, to);
  return (
    <div
      role="treeitem"
      aria-selected={isSelected}
      aria-expanded={row.hasChildren ? isOpen : undefined}
      aria-level={row.depth + 1}
      tabIndex={isSelected ? 0 : -1}
      class={`tree-row${isSelected ? ' is-selected' : ''}${row.isLater ? ' is-later' : ''}`}
      style={{ '--depth': row.depth }}
      aria-label={[row.machine, row.name, row.fact, row.icon ? '' : row.mark].filter(Boolean).join(', ')}
      onClick={() => {
        treeIsOpen.value = false;
        if (row.icon === 'branch') {
          const child = row.child === undefined ? undefined : conversationNamed(row.child);
          if (child) openConversation(child.id);
        } else if (row.key === 'earlier') runsBefore.value += RUNS_BEFORE;
        else chosen.value = row.key;
      }}
      onKeyDown={(event) => onRowKey(event, row.hasChildren ? fold : undefined)}
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
      <div role="tree" aria-label="Conversations">
        {open.value && <OpenConversation conversation={open.value} isReached={!hasSelected} />}
        {rows.map((row) => (
          <Row key={row.key} row={row} />
        ))}
        {others.length > 0 && <p class="tree-head">{open.value ? 'Others' : ''}</p>}
        {others.map((other, index) => (
          <OtherConversation key={other.id} other={other} isReached={!open.value && index === 0} />
        ))}
      </div>
    </nav>
  );
}
