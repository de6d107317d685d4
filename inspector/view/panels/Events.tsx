/**
 * Every entry as a row. Invariant: only visible rows are in the document, any number of them may be open, and entries
 * after the cursor are pale.
 */
import { computed, signal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import type { LogEntry } from '../../../machines/vocabulary.ts';
import { beginning, jsonLine } from '../../../src/printable.ts';
import { eventRow } from '../../../src/words/entryWords.ts';
import { count, oneLine, plural, shownText, since } from '../../../src/words/formats.ts';
import type { EventRow as AppEvent } from '../../model/observedActors.ts';
import { copy } from '../../state/logFiles.ts';
import {
  announcement,
  cursor,
  entries,
  facts,
  isFollowing,
  isPast,
  moveTo,
  open,
  openId,
  session,
} from '../../state/pageState.ts';
import { ask } from '../../state/serverConnection.ts';
import { actorName } from '../../state/shownActor.ts';
import { Icon } from '../stateMarks.tsx';
import { valueText } from './CallDetail.tsx';

const ROW = 22;
const HEAD = 30;
const DETAIL_LINE = 16;
const BEYOND = 220;

type Row =
  | { readonly kind: 'entry'; readonly index: number; readonly height: number }
  | { readonly kind: 'head'; readonly words: string; readonly height: number }
  | {
      readonly kind: 'broken';
      readonly line: number;
      readonly why: string;
      readonly text: string;
      readonly height: number;
    }
  | { readonly kind: 'event'; readonly event: AppEvent; readonly since: number; readonly height: number };

/** The keys of the open rows, by conversation and by entry index or number of an app event. */
const opened = signal<ReadonlySet<string>>(new Set());
const keyOf = (number: number): string => JSON.stringify([session.value, openId.value, number]);
const isOpened = (number: number): boolean => opened.value.has(keyOf(number));
export const filter = signal('');
const holds = (text: string, words: string): boolean => text.toLowerCase().includes(words.toLowerCase());
const isMatch = (entry: LogEntry, words: string): boolean =>
  words === '' || holds(`${entry.type} ${eventRow(entry).words} ${entry.runId ?? ''}`, words);
const nameOf = (id: string): string => {
  const actor = open.value?.observed?.actors.get(id);
  return actor ? actorName(actor) : id;
};

export const toggleEntry = (index: number): void => {
  const next = new Set(opened.value);
  if (!next.delete(keyOf(index))) next.add(keyOf(index));
  opened.value = next;
};

export const showEntry = (index: number): void => {
  if (!isOpened(index)) toggleEntry(index);
};

/** App events that were requested as a whole. */
const payloads = signal<ReadonlyMap<string, object>>(new Map());
const wholeOf = ({ n, event }: AppEvent): object => payloads.value.get(keyOf(n)) ?? event;

async function toggleEvent({ n, isPart }: AppEvent): Promise<void> {
  toggleEntry(n);
  const key = keyOf(n);
  if (!isPart || payloads.value.has(key)) return;
  try {
    const whole = await ask({ type: 'payload', n });
    payloads.value = new Map(payloads.value).set(key, Object(whole ?? { '…': 'no longer kept' }));
  } catch (error) {
    announcement.value = error instanceof Error ? error.message : String(error);
  }
}

const FIELD_LINES = 12;
/** The row shows these fields itself, so they are not repeated. */
const fieldsOf = (entry: object): [string, string[]][] => {
  const { seq: _, at: __, conversationId: ___, type: ____, runId: _____, ...fields } = entry as Partial<LogEntry>;
  return Object.entries(fields).map(([name, value]) => {
    const isContent = name === 'content' && Array.isArray(value);
    const lines = (isContent ? shownText(value) : valueText(value)).split('\n');
    const rest = lines.length - FIELD_LINES;
    const shown = rest > 1 ? [...lines.slice(0, FIELD_LINES - 2), `… ${count(rest + 2)} more lines`] : lines;
    return [name, shown.map((line) => (line.length > 200 ? `${beginning(line, 200)}…` : line))];
  });
};
const detailHeight = (entry: object): number =>
  fieldsOf(entry).reduce((sum, [, lines]) => sum + lines.length, 0) * DETAIL_LINE + 26;

const rows = computed((): { list: Row[]; tops: number[]; total: number; hidden: number } => {
  const list: Row[] = [];
  const { runs, runAt } = facts.value;
  const broken = [...(open.value?.broken ?? [])];
  let run = -1;
  let hidden = 0;
  const brokenUpTo = (index: number): void => {
    while (broken[0] && broken[0].entriesBefore <= index) {
      const one = broken.shift();
      if (one) list.push({ kind: 'broken', line: one.line, why: one.why, text: one.text, height: ROW });
    }
  };
  for (const [index, entry] of entries.value.entries()) {
    brokenUpTo(index);
    const at = runAt[index] ?? -1;
    const one = runs[at];
    if (at !== run && one && one.from === index) {
      list.push({ kind: 'head', words: `run ${one.number}${one.isResumed ? ' · resumed' : ''}`, height: HEAD });
    }
    run = at;
    if (!isMatch(entry, filter.value)) hidden += 1;
    else list.push({ kind: 'entry', index, height: isOpened(index) ? ROW + detailHeight(entry) : ROW });
  }
  brokenUpTo(entries.value.length);
  if (open.value?.of === 'xstate') {
    let before: AppEvent | undefined;
    for (const event of open.value.observed?.events ?? []) {
      const words = `${event.event.type} ${nameOf(event.actor)}`;
      const height = isOpened(event.n) ? ROW + detailHeight(wholeOf(event)) : ROW;
      if (filter.value !== '' && !holds(words, filter.value)) hidden += 1;
      else list.push({ kind: 'event', event, since: before ? event.at - before.at : 0, height });
      before = event;
    }
  }
  const tops: number[] = [];
  let total = 0;
  for (const { height } of list) {
    tops.push(total);
    total += height;
  }
  return { list, tops, total, hidden };
});

const scrolled = signal(0);
const room = signal(600);

function place(top: number): number {
  const { tops } = rows.value;
  let low = 0;
  let high = tops.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((tops[middle] ?? 0) <= top) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}

export function Events() {
  const box = useRef<HTMLDivElement>(null);
  const before = useRef({ total: 0, isFollowing: false });
  const followsCursor = useRef(false);
  const { list, tops, total: written, hidden } = rows.value;
  const streamed = isPast.value ? undefined : open.value?.inFlight;
  const total = streamed ? written + ROW : written;
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => {
      room.value = element.clientHeight;
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    const element = box.current;
    const at = list.findIndex((row) => row.kind === 'entry' && row.index === cursor.value);
    const wasAtEnd = element && element.scrollTop + element.clientHeight >= before.current.total - ROW;
    const goesOn = isFollowing.value && before.current.isFollowing;
    before.current = { total, isFollowing: isFollowing.value };
    if (element && open.value?.of === 'xstate' && wasAtEnd) element.scrollTop = total;
    if (!goesOn) followsCursor.current = document.activeElement?.matches('.event-row') ?? false;
    if (!element || at < 0) return;
    const top = tops[at] ?? 0;
    const isIn = top >= element.scrollTop && top + ROW <= element.scrollTop + element.clientHeight;
    // Do not scroll away from the reader's position.
    if (goesOn && !wasAtEnd) return;
    if (isFollowing.value) element.scrollTop = total;
    else if (!isIn) element.scrollTop = top - element.clientHeight / 2;
  }, [cursor.value, total]);
  useFocusOnCursor(box, followsCursor);
  const from = place(scrolled.value - BEYOND);
  const to = place(scrolled.value + room.value + BEYOND);
  return (
    <div class="events" id="events">
      <div
        class="scroll"
        ref={box}
        onScroll={(event) => {
          scrolled.value = event.currentTarget.scrollTop;
        }}
      >
        <ul class="sheet" style={{ height: `${total + 8}px` }}>
          {list.slice(from, to + 1).map((row, offset) => (
            <EventRow key={from + offset} row={row} top={tops[from + offset] ?? 0} />
          ))}
          {streamed && (
            <li class="event is-streamed" style={{ top: `${written}px`, height: `${ROW}px` }}>
              <span class="seq mono">…</span>
              <span class="icon-place">
                <Icon name="model" />
              </span>
              <span class="type mono">streaming</span>
              <span class="words">{oneLine(streamed.text || streamed.reasoning, 400)}</span>
            </li>
          )}
        </ul>
      </div>
      {open.value?.rest && (
        <p class="load-more">
          {count(open.value.rest.read)} of {count(open.value.rest.lines)} lines are read
          <button type="button" class="link" onClick={() => void open.value?.rest?.more()}>
            load more
          </button>
        </p>
      )}
      {(list.length > 30 || filter.value !== '') && (
        <label class="filter">
          <Icon name="search" size={12} />
          <input
            aria-label="Filter events by type, actor or text"
            placeholder="filter"
            value={filter.value}
            onInput={(event) => {
              filter.value = event.currentTarget.value;
            }}
          />
          <span class="quiet">{hidden > 0 ? `${count(hidden)} hidden` : ''}</span>
        </label>
      )}
    </div>
  );
}

/** Moves the focus from a row to the row of the cursor, as soon as that row is in the document. */
function useFocusOnCursor(box: { current: HTMLElement | null }, follows: { current: boolean }): void {
  useLayoutEffect(() => {
    // The row itself may not have rendered the new cursor yet.
    const at = follows.current ? entries.value[cursor.value]?.seq : undefined;
    const row = at === undefined ? null : box.current?.querySelector<HTMLElement>(`[data-seq="${at}"] > .event-row`);
    if (!row) return;
    follows.current = false;
    const focused = document.activeElement;
    // The focused row may have left the document. Another element keeps the focus.
    if (focused === document.body || focused?.matches('.event-row')) row.focus({ preventScroll: true });
  });
}

function EventRow({ row, top }: { row: Row; top: number }) {
  const style = { top: `${top}px`, height: `${row.height}px` };
  if (row.kind === 'head') {
    return (
      <li class="run-head" style={style}>
        <span>{row.words}</span>
        <i />
      </li>
    );
  }
  if (row.kind === 'broken') {
    return (
      <li class="event is-broken" style={style}>
        <span class="seq" />
        <Icon name="broken" />
        <span class="type mono">{row.line > 0 ? `line ${row.line}` : 'not read'}</span>
        <span class="words">{row.why}</span>
      </li>
    );
  }
  if (row.kind === 'event') return <AppEventRow row={row.event} ms={row.since} style={style} />;
  const entry = entries.value[row.index];
  if (!entry) return null;
  return <EntryRow entry={entry} index={row.index} style={style} />;
}

type Place = { top: string; height: string };

function AppEventRow({ row, ms, style }: { row: AppEvent; ms: number; style: Place }) {
  const isOpen = isOpened(row.n);
  const from = row.from === undefined ? '' : `${nameOf(row.from)} → `;
  return (
    <li class="event" style={style}>
      <button type="button" class="event-row" aria-expanded={isOpen} onClick={() => void toggleEvent(row)}>
        <span class="seq mono">{row.n}</span>
        <span class="icon-place">
          <Icon name="started" />
        </span>
        <span class="type mono">{row.event.type}</span>
        <span class="words">
          {from}
          {nameOf(row.actor)}
        </span>
        <span class="since mono">{since(ms)}</span>
      </button>
      {isOpen && <Detail value={wholeOf(row)} name={`event ${row.n}`} />}
    </li>
  );
}

function Detail({ value, name }: { value: object; name: string }) {
  const fields = fieldsOf(value);
  return (
    <div class="event-detail mono">
      {fields.length === 0 && <span class="quiet">no fields</span>}
      {fields.map(([field, lines]) => (
        <div key={field} class="field">
          <span>{field}</span>
          <pre>{lines.join('\n')}</pre>
        </div>
      ))}
      <button type="button" class="link" onClick={() => void copy(jsonLine(value), name)}>
        copy as JSON
      </button>
    </div>
  );
}

function EntryRow({ entry, index, style }: { entry: LogEntry; index: number; style: Place }) {
  const { icon, words } = eventRow(entry);
  const before = entries.value[index - 1];
  const isAt = index === cursor.value;
  const isOpen = isOpened(index);
  const looks = [
    'event',
    isAt ? 'is-at' : '',
    index > cursor.value ? 'is-later' : '',
    entry.type === 'checkpoint' ? 'is-grid' : '',
  ];
  return (
    <li class={looks.join(' ')} style={style} data-seq={entry.seq}>
      <button
        type="button"
        class="event-row"
        aria-expanded={isOpen}
        tabIndex={isAt ? 0 : -1}
        onClick={() => {
          if (isAt || isOpen) toggleEntry(index);
          moveTo(index);
        }}
      >
        <span class="seq mono">{entry.seq}</span>
        <span class="icon-place">
          <Icon name={icon} />
        </span>
        <span class="type mono">{entry.type}</span>
        <span class="words">{words}</span>
        <span class="since mono">{since(before ? entry.at - before.at : 0)}</span>
      </button>
      {isOpen && <Detail value={entry} name={`entry ${entry.seq}`} />}
    </li>
  );
}

export const eventsTitle = (): string => {
  const app = open.value?.of === 'xstate' ? (open.value.observed?.events.length ?? 0) : entries.value.length;
  return count(app);
};
export const latestWords = (): string => {
  const entry = entries.value[cursor.value];
  return entry ? `${entry.type} ${oneLine(eventRow(entry).words, 70)}` : plural(0, 'entry');
};
