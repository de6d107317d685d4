/** Starts the page: theme, clock, keys, dropped files, and the connection if a server delivered the page. */
import { effect } from '@preact/signals';
import { render } from 'preact';
import { duration } from '../src/words/formats.ts';
import { cards } from './state/decisionCards.ts';
import { listenForKeys } from './state/keyboard.ts';
import { listenForDrops, openText } from './state/logFiles.ts';
import {
  announcement,
  clock,
  cursor,
  entries,
  isMoving,
  isPast,
  last,
  moveTo,
  open,
  type PageState,
  playing,
  speed,
  stateAt,
  windowSize,
} from './state/pageState.ts';
import { theme } from './state/preferences.ts';
import { connect, dialChannel, dialEvents, dialServer } from './state/serverConnection.ts';
import './style.css';
import { App } from './view/App.tsx';
import { drawTextsSafely, shownText } from './view/foreignText.ts';

const CLOCK_MS = 100;
const LONGEST_GAP_MS = 800;

effect(() => {
  if (theme.value) document.documentElement.dataset.theme = theme.value;
  else delete document.documentElement.dataset.theme;
});

effect(() => {
  if (!isMoving.value) return;
  const timer = setInterval(() => {
    clock.value = Date.now();
  }, CLOCK_MS);
  return () => clearInterval(timer);
});

/** Playback follows log time. Each gap is shortened to a maximum. */
effect(() => {
  if (!playing.value) return;
  if (!isPast.value) {
    playing.value = false;
    return;
  }
  const index = cursor.value;
  const gap = (entries.value[index + 1]?.at ?? 0) - (entries.value[index]?.at ?? 0);
  const timer = setTimeout(() => moveTo(index + 1), Math.max(30, Math.min(LONGEST_GAP_MS, gap)) / speed.value);
  return () => clearTimeout(timer);
});

effect(() => {
  const waits = open.value?.source === 'live' ? cards() : [];
  const name = open.value?.id ?? 'runchart';
  document.title = shownText(`${waits.length > 0 ? '◆ ' : ''}${name} · runchart`);
  const [first] = waits;
  if (first) announcement.value = `${first.call.name} asks to run`;
  else if (announcement.peek().endsWith(' asks to run')) announcement.value = '';
});
/** A run's outcome is announced once, for the open conversation. */
let announced: { id: string | undefined; state: PageState } = { id: undefined, state: 'idle' };
effect(() => {
  const { id, source } = open.value ?? {};
  const state = stateAt(last.value);
  const isNews = announced.id === id && announced.state !== state && source === 'live';
  announced = { id, state };
  if (isNews && (state === 'completed' || state === 'failed' || state === 'cancelled'))
    announcement.value = `${id}: ${state}`;
});
effect(() => {
  document.documentElement.dataset.state = stateAt(cursor.value);
});

addEventListener('resize', () => {
  windowSize.value = { width: innerWidth, height: innerHeight };
});
drawTextsSafely();
listenForKeys();
listenForDrops();

const place = document.getElementById('page');
if (place) render(<App />, place);

const query = new URLSearchParams(location.search);
const file = query.get('log');
const channel = query.get('channel');
// `inspectorHandler` adds it to the page.
const hasEvents = document.querySelector('meta[name="runchart-connection"][content="events"]') !== null;
if (hasEvents) connect(dialEvents, location.host);
else if (query.has('token')) connect(dialServer, location.host);
else if (channel) connect(dialChannel(channel), 'this browser');
if (file !== null && /^[\w-][\w.-]*\.jsonl$/.test(file)) {
  const began = performance.now();
  void fetch(file)
    .then((answer) => answer.text())
    .then((text) => openText(text, file.split('/').at(-1) ?? file))
    .then(() => {
      announcement.value = `read in ${duration(performance.now() - began)}`;
    });
}
