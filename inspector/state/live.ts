/**
 * The way to the server: what it tells becomes conversations, and what is asked of it is answered. Rule: what lasts is
 * numbered, so a page that was cut off asks for what is behind the number it has; frames are taken together, once a picture.
 */
import { batch } from '@preact/signals';
import type { Json } from '../../machines/vocabulary.ts';
import type { Chart } from '../../src/inspect/chart.ts';
import {
  type Control,
  type FromPage,
  type Passing,
  type Recorded,
  readFrame,
  type ToPage,
} from '../../src/inspect/wire.ts';
import { Arrivals as ArrivalsOf, type Fact, NOTHING_OBSERVED } from '../model/observed.ts';
import { learnChart } from './layouts.ts';
import {
  type Connection,
  type Conversation,
  connection,
  conversations,
  openConversation,
  openId,
  said,
} from './store.ts';

/** What carries frames: a WebSocket, or a channel between tabs. */
export interface Line {
  send(text: string): void;
  close(): void;
}
export type Dial = (heard: { open(): void; frame(text: string): void; closed(): void }) => Line;

/** Messages of the server that are taken together. */
const MESSAGES_A_PICTURE = 2000;
const TRY_AGAIN_MS = [250, 500, 1000, 2000, 4000];
let line: Line | undefined;
let next = 0;
/** Records that were dropped before they came here. */
let missed = 0;
let session: string | undefined;
let tries = 0;
const waiting: ToPage[] = [];
let isDue = false;
let asked = 0;
const answers = new Map<number, { resolve(value: Json): void; reject(error: Error): void }>();
/** By what the wire calls them, and by their names here. */
const told = new Map<string, Chart>();
/** By what the wire calls them. */
const names = new Map<string, string>();
/** By actor: its conversation. */
const homes = new Map<string, string>();

export const dialServer: Dial = (heard) => {
  const token = new URLSearchParams(location.search).get('token') ?? '';
  const scheme = location.protocol === 'https:' ? 'wss' : 'ws';
  const socket = new WebSocket(`${scheme}://${location.host}/ws?token=${encodeURIComponent(token)}`);
  socket.onopen = () => heard.open();
  socket.onmessage = ({ data }) => heard.frame(`${data}`);
  socket.onclose = () => heard.closed();
  return { send: (text) => socket.send(text), close: () => socket.close() };
};

/** An app in this browser, of the same origin: over a BroadcastChannel, as `startChannelInspector` of the app has it. */
export const dialChannel =
  (name: string): Dial =>
  (heard) => {
    const page = crypto.randomUUID();
    const channel = new BroadcastChannel(`runchart-inspector:${name}`);
    const post = (frame: string): void => channel.postMessage({ page, frame });
    // An app that is not there, or was loaded anew, is found when it begins.
    const here = setInterval(() => post(''), 5000);
    const close = (): void => {
      clearInterval(here);
      channel.close();
    };
    channel.onmessage = ({ data }) => {
      if (data.to === page) heard.frame(`${data.frame}`);
      if (data.begun === undefined && data.over === undefined) return;
      close();
      heard.closed();
    };
    queueMicrotask(() => heard.open());
    return { send: post, close };
  };

export function connect(dial: Dial, host: string): void {
  const mine = dial({
    open() {
      tries = 0;
      tell({ type: 'subscribe', from: next, ...(session !== undefined && { session }) });
    },
    frame(text) {
      waiting.push(...readFrame(text));
      if (isDue) return;
      isDue = true;
      soon();
    },
    closed() {
      const before = connection.value;
      const control = before.state !== 'none' && before.control;
      if (before.state !== 'lost') connection.value = { state: 'lost', control, host, since: Date.now() };
      for (const { reject } of answers.values()) reject(new Error('the connection was lost'));
      answers.clear();
      setTimeout(() => connect(dial, host), TRY_AGAIN_MS[Math.min(tries++, TRY_AGAIN_MS.length - 1)]);
    },
  });
  line = mine;
}

function tell(message: FromPage): void {
  line?.send(JSON.stringify(message));
}

/** Rejects with what the server says where it refuses. */
export function ask(
  request: Control | { type: 'context'; actor: string } | { type: 'payload'; n: number },
): Promise<Json> {
  if (connection.value.state !== 'open') return Promise.reject(new Error('not connected'));
  const number = ++asked;
  tell({ ...request, ask: number });
  return new Promise((resolve, reject) => answers.set(number, { resolve, reject }));
}

function take(): void {
  // What is too much for one picture waits for the next.
  const messages = waiting.splice(0, MESSAGES_A_PICTURE);
  isDue = waiting.length > 0;
  if (isDue) soon();
  batch(() => {
    const arrivals: Arrivals = new ArrivalsOf((id) => conversations.value.get(id) ?? blank(id));
    for (const message of messages) {
      if ('n' in message) record(message, arrivals);
      else pass(message, arrivals);
    }
    settle(messages.some((message) => 'n' in message && message.type === 'transition'));
    const changed = arrivals.result();
    if (changed.size > 0) conversations.value = new Map([...conversations.value, ...changed]);
    show(changed);
  });
}

const MOVES_A_SECOND = 10;
let moved: number[] = [];
/** Where more moves come than one could follow, the page shows them without motion. */
function settle(isMove: boolean): void {
  const at = performance.now();
  moved = moved.filter((one) => at - one < 1000);
  if (isMove) moved.push(at);
  document.documentElement.toggleAttribute('data-busy', moved.length > MOVES_A_SECOND);
}

/** A page in the background gets no pictures, and lives all the same. */
function soon(): void {
  if (document.hidden) setTimeout(take, 50);
  else requestAnimationFrame(take);
}

/** The first conversation opens by itself; later ones where nothing else is looked at. */
function show(changed: ReadonlyMap<string, Conversation>): void {
  if (openId.value !== undefined) return;
  const roots = [...changed.values()].filter(({ parent }) => parent === undefined);
  const first = roots.at(-1) ?? [...changed.values()][0];
  if (first) openConversation(first.id);
}

type Arrivals = ArrivalsOf<Conversation>;

const blank = (id: string): Conversation => ({
  id,
  source: 'live',
  of: 'runchart',
  entries: [],
  broken: [],
  observed: NOTHING_OBSERVED,
});

function record(message: Recorded, arrivals: Arrivals): void {
  if (message.n < next) return;
  next = message.n + 1;
  switch (message.type) {
    case 'chart': {
      const name = learnChart(message.chart, message.drawn);
      names.set(message.chart, name);
      told.set(message.chart, message.drawn).set(name, message.drawn);
      return;
    }
    case 'conversation': {
      const { conversation, of, parent, takesEvents, unread = [] } = message;
      if (of !== 'file')
        return arrivals.change(conversation, { of, ...(parent && { parent }), ...(takesEvents && { takesEvents }) });
      // Where in the file they stand is not told.
      const broken = unread.map((why) => ({ line: 0, why, text: '', behind: 0 }));
      return arrivals.change(conversation, { of: 'runchart', source: 'file', broken });
    }
    case 'entry':
      return arrivals.entry(message.conversation, message.entry);
    case 'status':
      return arrivals.change(message.conversation, { status: message.status });
    case 'closed':
      return arrivals.change(message.conversation, { status: 'gone' });
    default: {
      if (message.type === 'actor') homes.set(message.actor, message.conversation);
      const home = homes.get(message.actor);
      if (home !== undefined) arrivals.fact(home, named(message), told);
    }
  }
}

/** With the page's own name for the chart of an actor. */
function named(fact: Fact): Fact {
  const name = fact.type === 'actor' && fact.chart !== undefined ? names.get(fact.chart) : undefined;
  return fact.type === 'actor' && name !== undefined ? { ...fact, chart: name } : fact;
}

function pass(message: Passing, arrivals: Arrivals): void {
  switch (message.type) {
    case 'hello': {
      if (session !== undefined && session !== message.session) forget();
      session = message.session;
      next = Math.max(next, message.from);
      const now: Connection = { state: 'open', control: message.control, host: location.host };
      connection.value = now;
      if (message.dropped > 0) said.value = `${message.dropped} earlier records are no longer kept`;
      return;
    }
    case 'live': {
      const { conversation: id, signal } = message;
      if (signal.path && signal.path.length > 0) return;
      if (signal.type === 'reset') arrivals.streamed(id, undefined);
      else if (signal.type === 'text-delta') arrivals.streamed(id, { text: signal.text });
      else if (signal.type === 'reasoning-delta') arrivals.streamed(id, { reasoning: signal.text });
      return;
    }
    case 'dropped':
      next = Math.max(next, message.from + message.count);
      missed += message.count;
      said.value = `${missed} records came faster than they could be shown`;
      return;
    case 'answer':
      answers.get(message.ask)?.resolve(message.value);
      return void answers.delete(message.ask);
    case 'refused':
      answers.get(message.ask)?.reject(new Error(message.message));
      return void answers.delete(message.ask);
  }
}

/** The server is another one: what the last one told is over. */
function forget(): void {
  next = 0;
  missed = 0;
  told.clear();
  names.clear();
  homes.clear();
  conversations.value = new Map([...conversations.value].filter(([, { source }]) => source === 'file'));
  if (openId.value !== undefined && !conversations.value.has(openId.value)) openId.value = undefined;
}
