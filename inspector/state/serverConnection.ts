/**
 * The connection to the server: messages become conversations, and requests get their answers. Invariant: records are
 * numbered, so a page that was disconnected requests those after its last number. Frames are applied together, once
 * per animation frame.
 */
import { batch } from '@preact/signals';
import type { Json } from '../../machines/vocabulary.ts';
import type { Chart } from '../../src/inspect/chart.ts';
import {
  type Control,
  type FromPage,
  type Passing,
  REQUEST_MAX,
  type Recorded,
  readFrame,
  type ToPage,
} from '../../src/inspect/wire.ts';
import { Arrivals as ArrivalsOf, type Fact, NOTHING_OBSERVED } from '../model/observedActors.ts';
import { learnChart } from './chartLayouts.ts';
import {
  announcement,
  type Connection,
  type Conversation,
  connection,
  conversations,
  markPartial,
  openConversation,
  openId,
  session,
} from './pageState.ts';

/** The transport of frames: a WebSocket, an event stream with requests, or a channel between tabs. */
export interface Line {
  send(text: string): void;
  close(): void;
}
export type Dial = (handlers: { open(): void; frame(text: string): void; closed(): void }) => Line;

/** Messages that are applied in one animation frame. */
const MESSAGES_A_PICTURE = 2000;
const TRY_AGAIN_MS = [250, 500, 1000, 2000, 4000];
let line: Line | undefined;
let next = 0;
/** The number of records that were dropped before they arrived. */
let missed = 0;
let tries = 0;
const waiting: ToPage[] = [];
let isDue = false;
let requestCount = 0;
const answers = new Map<number, { resolve(value: Json): void; reject(error: Error): void }>();
/** Charts by their keys on the wire and by their names here. */
const charts = new Map<string, Chart>();
/** Chart names by their keys on the wire. */
const names = new Map<string, string>();
/** The conversation of each actor. */
const conversationOfActor = new Map<string, string>();

export const dialServer: Dial = (handlers) => {
  const token = new URLSearchParams(location.search).get('token') ?? '';
  const scheme = location.protocol === 'https:' ? 'wss' : 'ws';
  const socket = new WebSocket(`${scheme}://${location.host}/ws?token=${encodeURIComponent(token)}`);
  socket.onopen = () => handlers.open();
  socket.onmessage = ({ data }) => handlers.frame(`${data}`);
  socket.onclose = () => handlers.closed();
  return { send: (text) => socket.send(text), close: () => socket.close() };
};

/** Connects to `inspectorHandler`: frames arrive as server-sent events, and each request is a POST. */
export const dialEvents: Dial = (handlers) => {
  const query = new URLSearchParams(location.search);
  const events = new EventSource(`./events?${query}`);
  let isLost = false;
  const lose = (): void => {
    if (isLost) return;
    isLost = true;
    events.close();
    handlers.closed();
  };
  events.addEventListener('page', ({ data }) => {
    query.set('page', `${data}`);
    handlers.open();
  });
  events.onmessage = ({ data }) => handlers.frame(`${data}`);
  events.onerror = lose;
  return {
    send(body) {
      const headers = { 'content-type': 'application/json' };
      // A page that the server does not know any more connects again.
      fetch(`./requests?${query}`, { method: 'POST', headers, body }).then(({ ok }) => ok || lose(), lose);
    },
    close: () => events.close(),
  };
};

/** The heartbeats without an answer after which an app is gone. An app that works for long answers late. */
const UNANSWERED_MAX = 3;

/** Connects to an app of the same origin in this browser over a BroadcastChannel, see `startChannelInspector`. */
export const dialChannel =
  (name: string): Dial =>
  (handlers) => {
    const page = crypto.randomUUID();
    const channel = new BroadcastChannel(`runchart-inspector:${name}`);
    const post = (frame: string): void => channel.postMessage({ page, frame });
    // The app answers each heartbeat. An app whose tab was closed does not answer.
    let unanswered = 0;
    // An app that is missing or was reloaded is found by its greeting.
    const heartbeat = setInterval(() => {
      if (unanswered >= UNANSWERED_MAX) return lose();
      unanswered += 1;
      post('');
    }, 5000);
    const close = (): void => {
      clearInterval(heartbeat);
      channel.close();
    };
    const lose = (): void => {
      close();
      handlers.closed();
    };
    channel.onmessage = ({ data }) => {
      if (data.to === page) {
        unanswered = 0;
        handlers.frame(`${data.frame}`);
      }
      if (data.begun !== undefined || data.over !== undefined || data.lost === page) lose();
    };
    queueMicrotask(() => handlers.open());
    return { send: post, close };
  };

export function connect(dial: Dial, host: string): void {
  const newLine = dial({
    open() {
      tries = 0;
      sendMessage({ type: 'subscribe', from: next, ...(session.value !== undefined && { session: session.value }) });
    },
    frame(text) {
      waiting.push(...readFrame(text));
      if (isDue) return;
      isDue = true;
      scheduleApply();
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
  line = newLine;
}

function sendMessage(message: FromPage): void {
  line?.send(JSON.stringify(message));
}

/** Rejects with the server's message if it refuses. */
export function ask(
  request: Control | { type: 'context'; actor: string } | { type: 'payload'; n: number },
): Promise<Json> {
  if (connection.value.state !== 'open') return Promise.reject(new Error('not connected'));
  const number = ++requestCount;
  const message = { ...request, ask: number };
  // The server would end the connection, or ignore the request.
  const bytes = new TextEncoder().encode(JSON.stringify(message)).length;
  if (bytes > REQUEST_MAX)
    return Promise.reject(new Error(`too large to be sent from here: ${bytes} bytes, at most ${REQUEST_MAX}`));
  sendMessage(message);
  return new Promise((resolve, reject) => answers.set(number, { resolve, reject }));
}

function applyWaiting(): void {
  // Messages over the limit wait for the next animation frame.
  const messages = waiting.splice(0, MESSAGES_A_PICTURE);
  isDue = waiting.length > 0;
  if (isDue) scheduleApply();
  batch(() => {
    let arrivals = newArrivals();
    for (const message of messages) {
      if ('n' in message) record(message, arrivals);
      else {
        // Nothing that came from another server before is kept.
        if (message.type === 'hello' && isOfOther(message.session)) {
          forget();
          arrivals = newArrivals();
        }
        pass(message, arrivals);
      }
    }
    settle(messages.some((message) => 'n' in message && message.type === 'transition'));
    const changed = arrivals.result();
    if (changed.size > 0) conversations.value = new Map([...conversations.value, ...changed]);
    show(changed);
  });
}

const MOVES_A_SECOND = 10;
let moved: number[] = [];
/** If more moves arrive than a person can follow, the page shows them without motion. */
function settle(isMove: boolean): void {
  const at = performance.now();
  moved = moved.filter((one) => at - one < 1000);
  if (isMove) moved.push(at);
  document.documentElement.toggleAttribute('data-busy', moved.length > MOVES_A_SECOND);
}

/** In a window that is covered or slow, messages are applied after this time. */
const PICTURE_MS = 500;

/**
 * A page in the background gets no animation frames, but continues to update. It may go there while it waits for a frame,
 * so a timer applies the messages if the frame does not come.
 */
function scheduleApply(): void {
  let isApplied = false;
  const apply = (): void => {
    if (isApplied) return;
    isApplied = true;
    clearTimeout(timer);
    applyWaiting();
  };
  const timer = setTimeout(apply, document.hidden ? 50 : PICTURE_MS);
  if (!document.hidden) requestAnimationFrame(apply);
}

/** Opens the first conversation, unless one is open. */
function show(changed: ReadonlyMap<string, Conversation>): void {
  if (openId.value !== undefined) return;
  const roots = [...changed.values()].filter(({ parent }) => parent === undefined);
  const first = roots.at(-1) ?? [...changed.values()][0];
  if (first) openConversation(first.id);
}

type Arrivals = ArrivalsOf<Conversation>;

const newArrivals = (): Arrivals => new ArrivalsOf((id) => conversations.value.get(id) ?? blank(id));
const isOfOther = (server: string): boolean => session.value !== undefined && session.value !== server;

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
      charts.set(message.chart, message.drawn).set(name, message.drawn);
      return;
    }
    case 'conversation': {
      const { conversation, of, parent, takesEvents, unread = [] } = message;
      arrivals.begin(conversation);
      if (of !== 'file')
        return arrivals.change(conversation, { of, ...(parent && { parent }), ...(takesEvents && { takesEvents }) });
      // The positions of these lines in the file are unknown.
      const broken = unread.map((why) => ({ line: 0, why, text: '', entriesBefore: 0 }));
      return arrivals.change(conversation, { of: 'runchart', source: 'file', broken });
    }
    case 'entry':
      if (message.cut) markPartial(message.entry);
      return arrivals.entry(message.conversation, message.entry);
    case 'status':
      return arrivals.change(message.conversation, { status: message.status });
    case 'closed':
      return arrivals.change(message.conversation, { status: 'gone' });
    default: {
      if (message.type === 'actor') conversationOfActor.set(message.actor, message.conversation);
      const conversation = conversationOfActor.get(message.actor);
      if (conversation !== undefined) arrivals.fact(conversation, named(message), charts);
      if (message.type === 'stopped') conversationOfActor.delete(message.actor);
    }
  }
}

/** Returns the fact with the page's own name for the actor's chart. */
function named(fact: Fact): Fact {
  const name = fact.type === 'actor' && fact.chart !== undefined ? names.get(fact.chart) : undefined;
  return fact.type === 'actor' && name !== undefined ? { ...fact, chart: name } : fact;
}

function pass(message: Passing, arrivals: Arrivals): void {
  switch (message.type) {
    case 'hello': {
      session.value = message.session;
      next = Math.max(next, message.from);
      const now: Connection = { state: 'open', control: message.control, host: location.host };
      connection.value = now;
      if (message.dropped > 0) announcement.value = `${message.dropped} earlier records are no longer kept`;
      return;
    }
    case 'live': {
      const { conversation: id, signal } = message;
      if (signal.path && signal.path.length > 0) return;
      if (signal.type === 'reset') arrivals.addStreamed(id, undefined);
      else if (signal.type === 'text-delta') arrivals.addStreamed(id, { text: signal.text });
      else if (signal.type === 'reasoning-delta') arrivals.addStreamed(id, { reasoning: signal.text });
      return;
    }
    case 'dropped':
      next = Math.max(next, message.from + message.count);
      missed += message.count;
      announcement.value = `${missed} records came faster than they could be shown`;
      return;
    case 'states':
      for (const state of message.states) {
        const conversation = conversationOfActor.get(state.actor);
        const fact: Fact = { n: next, at: Date.now(), type: 'settled', event: '', ...state };
        if (conversation !== undefined) arrivals.fact(conversation, fact, charts);
      }
      return;
    case 'answer':
      answers.get(message.ask)?.resolve(message.value);
      return void answers.delete(message.ask);
    case 'refused':
      answers.get(message.ask)?.reject(new Error(message.message));
      return void answers.delete(message.ask);
  }
}

/** Another server has started: everything of the last one is dropped. */
function forget(): void {
  next = 0;
  missed = 0;
  charts.clear();
  names.clear();
  conversationOfActor.clear();
  conversations.value = new Map([...conversations.value].filter(([, { source }]) => source === 'file'));
  if (openId.value !== undefined && !conversations.value.has(openId.value)) openId.value = undefined;
}
