/** The frame of the panels: the top bar, the crumbs over the chart, and the status bar with the keys that work now. */

import { cost, count, duration, plural } from '../../src/words/formats.ts';
import type { MarkName } from '../model/treeRows.ts';
import { coverageWords } from '../state/chartCoverage.ts';
import { cards, mayControl } from '../state/decisionCards.ts';
import { chooseFile } from '../state/logFiles.ts';
import {
  announcement,
  chosen,
  clock,
  connection,
  coverage,
  cursor,
  entries,
  facts,
  helpIsOpen,
  isPast,
  last,
  moment,
  open,
  type PageState,
  reading,
  redactions,
  redactionsAreOpen,
  seqOf,
  stateAt,
  treeIsOpen,
} from '../state/pageState.ts';
import { lettersAreOn } from '../state/preferences.ts';
import { crumbs, selectedKey, stateWord } from '../state/shownActor.ts';
import { drawing, fitAsked } from './ChartPanel.tsx';
import { Icon, Key, Mark, toneOf } from './stateMarks.tsx';

const STATES: Readonly<Record<PageState, readonly [MarkName, string]>> = {
  running: ['running', 'running'],
  waiting: ['waiting', 'waits for you'],
  completed: ['done', 'completed'],
  failed: ['failed', 'failed'],
  cancelled: ['cancelled', 'cancelled'],
  idle: ['idle', 'idle'],
  open: ['idle', 'not over'],
};

function worked(): number {
  const { sums, runs } = facts.value;
  const sum = sums[cursor.value]?.worked ?? 0;
  const run = runs.at(-1);
  const runs_on = run && stateAt(cursor.value) === 'running';
  const at = entries.value[cursor.value]?.at ?? 0;
  return sum + (runs_on ? Math.max(0, moment.value.now - at) : 0);
}

function Pill() {
  const past = isPast.value;
  const lost = connection.value;
  if (lost.state === 'lost' && open.value?.source === 'live') {
    const ago = duration(Math.max(0, clock.value - (entries.value.at(-1)?.at ?? lost.since)));
    return <span class="pill tone-stop">not connected, last entry {ago} ago</span>;
  }
  if (past) {
    const { place, of } = facts.value.steps[cursor.value] ?? { place: 1, of: 1 };
    return (
      <span class="pill past">
        <Mark name="idle" /> entry {count(seqOf(cursor.value))} of {count(seqOf(last.value))}
        {of > 1 && place < of && (
          <span class="quiet">
            {' '}
            · {place} of {of} of this step
          </span>
        )}
      </span>
    );
  }
  const [mark, words] = STATES[stateAt(cursor.value)];
  return (
    <span class={`pill tone-${toneOf[mark]}`}>
      <Mark name={mark} /> {words}
    </span>
  );
}

export function TopBar() {
  const conversation = open.value;
  const sums = facts.value.sums[cursor.value];
  const [liveMark, liveWord] = STATES[stateAt(last.value)];
  const isXstate = conversation?.of === 'xstate';
  return (
    <header class="top-bar">
      <span class="brand">
        <svg width="18" height="18" viewBox="0 0 18 18" aria-hidden="true" class="brand-mark">
          <rect x="1" y="1" width="16" height="16" rx="4.5" />
          <circle cx="5.8" cy="9" r="1.7" />
          <path d="M8.5 9h5M11.2 6.6 13.6 9l-2.4 2.4" />
        </svg>
        runchart
      </span>
      {!conversation && <span class="nobody">No conversation yet</span>}
      {conversation && (
        <>
          <b class="name">{conversation.id}</b>
          {!isXstate && <Pill />}
          {conversation.source === 'file' && <span class="quiet">read here, sent nowhere</span>}
          {isXstate && <span class="quiet app-word">an XState app</span>}
          {sums && (
            <span class="sums">
              <b>{duration(worked())}</b> worked <b class="next">{`${count(sums.input)} → ${count(sums.output)}`}</b>{' '}
              tokens <b class="next">{cost(sums.cost)}</b>
            </span>
          )}
        </>
      )}
      <span class="right">
        {isPast.value && (
          <span class="live-word">
            <Mark name={liveMark} /> {conversation?.source === 'file' ? 'end' : 'live'}: {liveWord}
          </span>
        )}
        <button type="button" class="quiet-button" onClick={chooseFile}>
          <Icon name="file" /> Open log
        </button>
        <button
          type="button"
          class="quiet-button"
          aria-label="All keys"
          onClick={() => {
            helpIsOpen.value = !helpIsOpen.value;
          }}
        >
          <Icon name="help" />
        </button>
      </span>
    </header>
  );
}

export function Crumbs() {
  const list = crumbs.value;
  const layout = drawing.value?.layout;
  return (
    <nav class="crumbs" aria-label="Actors">
      <button
        type="button"
        class="rail-button quiet-button"
        aria-label="Conversations"
        onClick={() => {
          treeIsOpen.value = !treeIsOpen.value;
        }}
      >
        <Icon name="closed" />
      </button>
      {list.length === 0 && (
        <span class="crumb is-selected">
          <b class="mono">RUN</b> not started
        </span>
      )}
      {list.map((one, index) => (
        <span key={one.key} class="crumb-place">
          {index > 0 && <Icon name="closed" size={10} />}
          <button
            type="button"
            class={one.key === selectedKey.value ? 'crumb is-selected' : 'crumb'}
            aria-current={one.key === selectedKey.value ? 'true' : undefined}
            onClick={() => {
              chosen.value = one.key;
            }}
          >
            {(index > 0 || one.mark === 'waiting') && (one.key === selectedKey.value || one.mark === 'waiting') && (
              <Mark name={one.mark} />
            )}
            <b class="mono">{one.label}</b> {stateWord(one)}
          </button>
        </span>
      ))}
      <span class="right">
        {coverage.value && layout && <span class="quiet">{coverageWords(layout.states, layout.arrows)}</span>}
        <button
          type="button"
          class={coverage.value ? 'quiet-button is-on' : 'quiet-button'}
          aria-pressed={coverage.value}
          onClick={() => {
            coverage.value = !coverage.value;
          }}
        >
          Coverage <Key>C</Key>
        </button>
        <button
          type="button"
          class="quiet-button"
          onClick={() => {
            fitAsked.value += 1;
          }}
        >
          <Icon name="fit" /> Fit <Key>F</Key>
        </button>
      </span>
    </nav>
  );
}

function keysNow(): [string[], string][] {
  if (!lettersAreOn.value)
    return [
      [['←', '→'], 'entry'],
      [['space'], 'play'],
      [['Home', 'End'], 'first, last'],
    ];
  if (!open.value)
    return [
      [['O'], 'open log'],
      [['?'], 'all keys'],
    ];
  if (open.value.of === 'xstate') {
    return [
      [['F'], 'fit'],
      [['C'], 'coverage'],
      [['?'], 'all keys'],
    ];
  }
  const decides: [string[], string][] =
    mayControl() && cards().length > 0
      ? [
          [['A'], 'allow'],
          [['D'], 'deny'],
          [['E'], 'edit'],
        ]
      : [];
  return [
    ...decides,
    [['J', 'K'], 'entry'],
    [['⇧J', '⇧K'], 'cycle'],
    [['space'], 'play'],
    [['L'], open.value.source === 'file' ? 'end' : 'live'],
    [['F'], 'fit'],
    [['?'], 'all keys'],
  ];
}

export function StatusBar() {
  const at = connection.value;
  return (
    <footer class="status-bar">
      {keysNow().map(([keys, word]) => (
        <span key={word} class="key-hint">
          {keys.map((key) => (
            <Key key={key}>{key}</Key>
          ))}
          {word}
        </span>
      ))}
      <span class="said" aria-live="polite">
        {reading.value || announcement.value}
      </span>
      <span class="right">
        {open.value && redactions.value.length > 0 && (
          <button
            type="button"
            aria-expanded={redactionsAreOpen.value}
            onClick={() => {
              redactionsAreOpen.value = !redactionsAreOpen.value;
            }}
          >
            <Icon name="lock" size={12} /> redacted
          </button>
        )}
        {at.state === 'open' && !at.control && open.value && <span>read-only</span>}
        {open.value?.broken.length ? (
          <span class="tone-text-fail">{plural(open.value.broken.length, 'broken line')}</span>
        ) : null}
        {open.value && open.value.of === 'runchart' && (
          <span>{plural(entries.value.length, 'entry').replace('entrys', 'entries')}</span>
        )}
        {at.state === 'open' && !open.value && (
          <span>
            <Mark name="done" /> connected
          </span>
        )}
        {at.state === 'lost' && <span class="tone-text-stop">not connected</span>}
        <span class="mono">{at.state === 'none' ? 'file' : at.host.replace(/:\d+$/, '')}</span>
      </span>
    </footer>
  );
}
