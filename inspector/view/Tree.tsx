/** Conversations and what lives in them. */
import { signal, useSignal } from '@preact/signals';
import { runStateAt } from '../model/facts.ts';
import type { ActorView } from '../model/observed.ts';
import { type MarkName, markOfRun, RUNS_BEHIND, runRows, type TreeRow } from '../model/tree.ts';
import { charts } from '../state/layouts.ts';
import type { Conversation } from '../state/store.ts';
import {
  chosen,
  conversationNamed,
  conversations,
  facts,
  factsOf,
  folds,
  last,
  moment,
  open,
  openConversation,
  setFold,
  stateAt,
  treeIsOpen,
} from '../state/store.ts';
import { isAsking, selectedKey } from '../state/subject.ts';
import { Icon, Key, Mark } from './marks.tsx';

/** Runs before the cursor that have rows. */
const runsBehind = signal(RUNS_BEHIND);

const isOpenRow = (key: string, ifUntold: boolean): boolean => folds.value.get(`${open.value?.id} ${key}`) ?? ifUntold;

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
  if (conversation.of === 'xstate') return actorRows([...(conversation.observed?.actors.values() ?? [])]);
  return runRows(moment.value, isOpenRow, isAsking.value, runsBehind.value);
}

function actorRows(actors: readonly ActorView[]): TreeRow[] {
  const below = (parent: string | undefined, depth: number): TreeRow[] =>
    actors
      .filter(
        (actor) => actor.parent === parent || (parent === undefined && !actors.some(({ id }) => id === actor.parent)),
      )
      .flatMap((actor) => {
        const inner = depth > 12 ? [] : below(actor.id, depth + 1);
        const state = actor.leaves.map((leaf) => leaf.split('.').at(-1)).join(', ');
        const mark: MarkName = actor.status === 'active' ? 'running' : actor.status === 'error' ? 'failed' : 'done';
        const machine = actor.chart === undefined ? undefined : charts.value.get(actor.chart)?.chart.name;
        const row: TreeRow = {
          key: `actor ${actor.id}`,
          depth,
          mark,
          ...(machine !== undefined && { machine }),
          name: /^x:\d+$/.test(actor.name) ? '' : actor.name,
          fact: state,
          hasChildren: inner.length > 0,
          isOpen: isOpenRow(`actor ${actor.id}`, true),
          isLater: false,
        };
        return row.isOpen ? [row, ...inner] : [row];
      });
  return below(undefined, 1);
}

const focusRow = (element: Element | null): void => {
  if (element instanceof HTMLElement && element.role === 'treeitem') element.focus();
};

function Row({ row }: { row: TreeRow }) {
  const isSelected = row.key === selectedKey.value;
  const { isOpen } = row;
  const toggle = (): void => setFold(`${open.value?.id} ${row.key}`, !isOpen);
  return (
    <div
      role="treeitem"
      aria-selected={isSelected}
      aria-expanded={row.hasChildren ? isOpen : undefined}
      aria-level={row.depth + 1}
      tabIndex={isSelected ? 0 : -1}
      class={`tree-row${isSelected ? ' is-selected' : ''}${row.isLater ? ' is-later' : ''}`}
      style={{ '--depth': row.depth }}
      onClick={() => {
        if (row.icon === 'branch') {
          const child = row.child === undefined ? undefined : conversationNamed(row.child);
          if (child) openConversation(child.id);
        } else if (row.key === 'earlier') runsBehind.value += RUNS_BEHIND;
        else chosen.value = row.key;
      }}
      onKeyDown={(event) => {
        if (event.key === 'Enter') event.currentTarget.click();
        else if (event.key === 'ArrowLeft' && row.hasChildren && isOpen) toggle();
        else if (event.key === 'ArrowRight' && row.hasChildren && !isOpen) toggle();
        else if (event.key === 'ArrowDown') focusRow(event.currentTarget.nextElementSibling);
        else if (event.key === 'ArrowUp') focusRow(event.currentTarget.previousElementSibling);
        else if (!event.key.startsWith('Arrow')) return;
        event.preventDefault();
      }}
    >
      <Chevron isOpen={isOpen} isNone={!row.hasChildren} toggle={toggle} />
      {row.icon ? <Icon name={row.icon} /> : <Mark name={row.mark} />}
      {row.machine !== undefined && <b class="mono">{row.machine}</b>}
      <span class="tree-name">{row.name}</span>
      <span class="fact">{row.fact}</span>
    </div>
  );
}

function Chevron({ isOpen, isNone, toggle }: { isOpen: boolean; isNone: boolean; toggle(): void }) {
  if (isNone) return <span class="chevron" />;
  return (
    <button
      type="button"
      class="chevron"
      tabIndex={-1}
      aria-label={isOpen ? 'fold' : 'unfold'}
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

export function Tree() {
  const search = useSignal('');
  const all = [...conversations.value.values()].filter(
    ({ parent }) => parent === undefined || !conversationNamed(parent.conversation),
  );
  const others = all.filter(({ id }) => id !== open.value?.id && (search.value === '' || matches(search.value, id)));
  const rows = ownRows().filter(
    (row) => search.value === '' || matches(search.value, `${row.machine ?? ''} ${row.name} ${row.key} ${row.mark}`),
  );
  const state = stateAt(last.value);
  const mark: MarkName = state === 'idle' || state === 'open' ? 'idle' : markOfRun(state);
  return (
    <nav class={treeIsOpen.value ? 'tree is-open' : 'tree'} id="tree" aria-label="Conversations">
      <div class="panel-head">
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
        {open.value && (
          <div
            role="treeitem"
            aria-selected={selectedKey.value === 'conversation'}
            aria-expanded="true"
            tabIndex={-1}
            class={
              selectedKey.value === 'conversation' && facts.value.runs.length > 0 ? 'tree-row is-selected' : 'tree-row'
            }
            onClick={() => {
              // An app has no chart above its actors'.
              chosen.value = open.value?.of === 'xstate' ? undefined : 'conversation';
            }}
            onKeyDown={() => {}}
          >
            <Chevron isOpen isNone={false} toggle={() => {}} />
            <Mark name={open.value.of === 'xstate' ? markOfOther(open.value) : mark} />
            <b class="tree-name">{open.value.id}</b>
          </div>
        )}
        {rows.map((row) => (
          <Row key={row.key} row={row} />
        ))}
        {others.length > 0 && <p class="tree-head">{open.value ? 'Others' : ''}</p>}
        {others.map((other) => (
          <div
            key={other.id}
            role="treeitem"
            aria-selected="false"
            tabIndex={-1}
            class="tree-row"
            onClick={() => openConversation(other.id)}
            onKeyDown={() => {}}
          >
            <Chevron isOpen={false} isNone={false} toggle={() => openConversation(other.id)} />
            <Mark name={markOfOther(other)} />
            <span class="tree-name">{other.id}</span>
            <span class="fact">
              {other.of === 'xstate'
                ? ''
                : factsOf(other.entries).runs.filter(({ isResumed }) => !isResumed).length || ''}
            </span>
          </div>
        ))}
      </div>
    </nav>
  );
}
