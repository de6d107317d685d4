/** Begins the page: theme, clock, keys, drops, and the server, where one served it. */
import { effect } from '@preact/signals';
import { render } from 'preact';
import { duration } from './model/words.ts';
import { cards } from './state/deciding.ts';
import { listenForDrops, openText } from './state/files.ts';
import { listenForKeys } from './state/keys.ts';
import { connect, dialChannel, dialServer } from './state/live.ts';
import { theme } from './state/preferences.ts';
import {
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
  said,
  speed,
  stateAt,
  windowSize,
} from './state/store.ts';
import './style.css';
import { App } from './view/App.tsx';

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

/** Playing keeps log time, each gap capped. */
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
  document.title = `${waits.length > 0 ? '◆ ' : ''}${name} · runchart`;
  const [first] = waits;
  if (first) said.value = `${first.call.name} asks to run`;
  else if (said.peek().endsWith(' asks to run')) said.value = '';
});
/** What a run has come to is said once, of the conversation that is open. */
let heard: { id: string | undefined; state: PageState } = { id: undefined, state: 'idle' };
effect(() => {
  const { id, source } = open.value ?? {};
  const state = stateAt(last.value);
  const isNews = heard.id === id && heard.state !== state && source === 'live';
  heard = { id, state };
  if (isNews && (state === 'completed' || state === 'failed' || state === 'cancelled')) said.value = `${id}: ${state}`;
});
effect(() => {
  document.documentElement.dataset.state = stateAt(cursor.value);
});

addEventListener('resize', () => {
  windowSize.value = { width: innerWidth, height: innerHeight };
});
listenForKeys();
listenForDrops();

const place = document.getElementById('page');
if (place) render(<App />, place);

const asked = new URLSearchParams(location.search);
const file = asked.get('log');
const channel = asked.get('channel');
if (asked.has('token')) connect(dialServer, location.host);
else if (channel) connect(dialChannel(channel), 'this browser');
if (file !== null && /^[\w-][\w.-]*\.jsonl$/.test(file)) {
  const began = performance.now();
  void fetch(file)
    .then((answer) => answer.text())
    .then((text) => openText(text, file.split('/').at(-1) ?? file))
    .then(() => {
      said.value = `read in ${duration(performance.now() - began)}`;
    });
}
