/** The conversation as a document: requests, replies, calls with their results, and decisions in their place. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { cost, count, duration, oneLine, plural, telling } from '../../../src/words/formats.ts';
import { argsAt, callNotes, waitingAt } from '../../model/callStates.ts';
import type { PlacedNote } from '../../model/entryNotes.ts';
import { type CycleRows, cyclesAt, latestShown, queuedAt, type StepRow } from '../../model/stepRows.ts';
import { markOfCall } from '../../model/treeRows.ts';
import { cardOf, cards, cardsBelow, waitsWithin } from '../../state/decisionCards.ts';
import { cursor, entries, facts, isNarrow, isPast, lastRun, moment, now, open } from '../../state/pageState.ts';
import { groupIcon, Icon, Mark } from '../stateMarks.tsx';
import { CallDetail } from './CallDetail.tsx';
import { Decision, Settlement } from './Decision.tsx';

/**
 * The limits of all cycles together. Each `load more` adds the same number again, because all rows render on each
 * change.
 */
const CYCLES = 40;
const ROWS = 240;
/** The limit of one cycle. */
const ROWS_MAX = 300;
/** Within this distance in pixels the panel counts as scrolled to the end. */
const NEAR_END = 24;

export function Steps() {
  const [times, show] = useState(1);
  const most = { cycles: times * CYCLES, rows: times * ROWS };
  const cycles = cyclesAt(moment.value, most.cycles);
  const shown = cycles.slice(cycles.length - latestShown(cycles, most));
  const hidden = cycles.length - shown.length;
  const waits = isPast.value ? [] : cards();
  const { box, content } = useEnd();
  return (
    <div class="steps" id="steps" ref={box}>
      <div ref={content}>
        {hidden > 0 && (
          <button type="button" class="quiet-button more" onClick={() => show(times + 1)}>
            {plural(hidden, 'earlier request')} · load more
          </button>
        )}
        {shown.map((cycle, index) => (
          <Cycle key={cycle.id} cycle={cycle} isLast={index === shown.length - 1} waits={waits.length} />
        ))}
        {cycles.length === 0 && open.value && <p class="panel-empty">No request yet.</p>}
        {open.value && <QueuedMessages />}
      </div>
    </div>
  );
}

/** Keeps the panel scrolled to the end during a run, but not when a person unfolds something there. */
function useEnd() {
  const box = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const [panel, inner] = [box.current, content.current];
    if (!panel || !inner) return;
    let isAtEnd = true;
    const look = (): void => {
      isAtEnd = panel.scrollTop + panel.clientHeight >= panel.scrollHeight - NEAR_END;
    };
    const leave = (): void => {
      isAtEnd = false;
    };
    const observer = new ResizeObserver(() => {
      if (isAtEnd) panel.scrollTop = panel.scrollHeight;
      else look();
    });
    observer.observe(inner);
    observer.observe(panel);
    panel.addEventListener('scroll', look);
    inner.addEventListener('click', leave);
    return () => {
      observer.disconnect();
      panel.removeEventListener('scroll', look);
      inner.removeEventListener('click', leave);
    };
  }, []);
  return { box, content };
}

function QueuedMessages() {
  const queued = queuedAt(moment.value);
  if (queued.length === 0) return null;
  return (
    <ul class="queue" aria-label="Messages that wait for their turn">
      {queued.map(({ id, text, kind }) => (
        <li key={id}>
          <Mark name="queued" />
          <span class="words">{text}</span>
          <span class="quiet">{kind === 'steer' ? 'steers at the next step' : 'follows this request'}</span>
        </li>
      ))}
    </ul>
  );
}

function Cycle({ cycle, isLast, waits }: { cycle: CycleRows; isLast: boolean; waits: number }) {
  const [most, show] = useState(ROWS_MAX);
  const rows = cycle.rows.slice(-most);
  const hidden = cycle.rows.length - rows.length;
  const inFlight = isLast && !isPast.value ? open.value?.inFlight : undefined;
  const isAsking =
    isLast && cycle.isOpen && lastRun.value !== undefined && !lastRun.value.stop && inFlight !== undefined;
  return (
    <article class="cycle">
      <header>
        <Icon name="person" />
        <h3>{cycle.request}</h3>
        <span class="number">{cycle.number}</span>
      </header>
      <div class="line">
        {hidden > 0 && (
          <button type="button" class="quiet-button more" onClick={() => show(most + ROWS_MAX)}>
            {plural(hidden, 'earlier step')} · load more
          </button>
        )}
        {isLast && waits > 1 && <p class="waits-head">{waits} calls wait</p>}
        {rows.map((row) => (
          <StepView key={row.key} row={row} />
        ))}
        {isAsking && (
          <Streaming text={inFlight?.text ?? ''} reasoning={inFlight?.reasoning ?? ''} round={cycle.rounds + 1} />
        )}
      </div>
      {rows.at(-1)?.kind === 'stop' && <StopRow row={rows.at(-1)} />}
    </article>
  );
}

function Streaming({ text, reasoning, round }: { text: string; reasoning: string; round: number }) {
  const since = entries.value[entries.value.length - 1]?.at ?? now.value;
  return (
    <>
      {reasoning !== '' && text === '' && <p class="said reasoning is-live">{reasoning}</p>}
      <p class="said is-live" aria-live="off">
        <i class="dot" />
        {text}
        <i class="caret" />
      </p>
      <div class="round is-live">
        <span>round {round}</span>
        <i />
        <span>{duration(now.value - since)}</span>
      </div>
    </>
  );
}

function StepView({ row }: { row: StepRow }) {
  switch (row.kind) {
    case 'text':
      return (
        <p class="said">
          <i class="square" />
          {row.text}
          {row.flag !== undefined && <span class="flag"> {row.flag}</span>}
        </p>
      );
    case 'reasoning':
      return <Reasoning text={row.text} />;
    case 'steer':
      return (
        <p class="said steer">
          <i class="at-line">
            <Icon name="person" />
          </i>
          {row.text}
        </p>
      );
    case 'note':
      return <NoteRow note={row.note} />;
    case 'call':
      return <CallRow row={row} />;
    case 'round':
      return (
        <div class="round">
          <span>round {row.number}</span>
          <i />
          <span>
            {count(row.input)} in · {count(row.output)} out · {cost(row.cost)}
          </span>
        </div>
      );
    case 'stop':
      return null;
  }
}

/** An event between the steps. Details unfold. */
function NoteRow({ note: { words, more, isFault } }: { note: PlacedNote }) {
  const [isOpen, open] = useState(false);
  const hasMore = more !== undefined && more !== '' && more !== words;
  return (
    <div class={isFault ? 'note is-fault' : 'note'}>
      <p>
        {words}
        {hasMore && (
          <button type="button" class="link" aria-expanded={isOpen} onClick={() => open(!isOpen)}>
            {isOpen ? 'less' : 'more'}
          </button>
        )}
      </p>
      {isOpen && hasMore && <pre>{more}</pre>}
    </div>
  );
}

function Reasoning({ text }: { text: string }) {
  const [isOpen, open] = useState(false);
  const lines = text.trim().split('\n');
  return (
    <p class="said reasoning">
      <i class="square" />
      {isOpen ? text : lines[0]}
      {(lines.length > 1 || text.length > 120) && (
        <button type="button" class="link" aria-expanded={isOpen} onClick={() => open(!isOpen)}>
          {isOpen ? 'less' : 'more'}
        </button>
      )}
    </p>
  );
}

function CallRow({ row }: { row: Extract<StepRow, { kind: 'call' }> }) {
  const [isOpen, open] = useState(false);
  const { call, state, ms } = row;
  const notes = callNotes(call, cursor.value);
  const suspension = waitingAt(call, cursor.value);
  const card = suspension && cardOf(call, suspension);
  // In a narrow window the card is shown above.
  const isAbove = isNarrow.value && !isPast.value;
  if (card && !waitsWithin(card) && !isAbove) return <Decision card={card} ms={ms} />;
  if (state === 'unknown') return <Settlement call={call} />;
  return (
    <div class={`call is-${state}`}>
      <button type="button" class="call-row" aria-expanded={isOpen} onClick={() => open(!isOpen)}>
        <Mark name={markOfCall(state)} />
        <Icon name={groupIcon(call.group)} />
        <b>{call.name}</b>
        <span class="mono argument">{telling(argsAt(call, cursor.value), 120)}</span>
        {notes.length > 0 && <span class="call-notes">{notes.join(' · ')}</span>}
        <span class="time">{ms > 0 || state === 'done' ? duration(ms) : state === 'queued' ? 'queued' : ''}</span>
      </button>
      {isOpen && <CallDetail call={call} />}
      {card &&
        !isPast.value &&
        !isAbove &&
        cardsBelow(card).map((below) => <Decision key={below.key} card={below} ms={ms} />)}
    </div>
  );
}

/** The most characters of an error's first line. */
const FIRST_LINE = 160;

function StopRow({ row }: { row: StepRow | undefined }) {
  if (row?.kind !== 'stop') return null;
  const mark = row.state === 'completed' ? 'done' : row.state;
  return (
    <footer class="stop">
      <Mark name={mark} />
      <span class={row.state === 'completed' ? '' : `tone-text-${row.state === 'failed' ? 'fail' : 'stop'}`}>
        {row.state}
      </span>
      <span class="quiet">{duration(row.ms)}</span>
      {!['', 'end_turn', row.state].includes(row.cause) && <span class="quiet mono">{row.cause}</span>}
      {row.why !== '' && <Failure why={row.why} />}
    </footer>
  );
}

/** Shows the first line of an error, and the whole error on request. */
function Failure({ why }: { why: string }) {
  const [isOpen, open] = useState(false);
  const text = why.trim();
  const [first = ''] = text.split('\n');
  const hasMore = text !== first || first.length > FIRST_LINE;
  return (
    <div class="why">
      <p>{isOpen || !hasMore ? text : oneLine(first, FIRST_LINE)}</p>
      {hasMore && (
        <button type="button" class="link" aria-expanded={isOpen} onClick={() => open(!isOpen)}>
          {isOpen ? 'less' : 'whole error'}
        </button>
      )}
    </div>
  );
}

export const cycleCount = (): number =>
  facts.value.runs.filter(({ isResumed, from }) => !isResumed && from <= cursor.value).length;
