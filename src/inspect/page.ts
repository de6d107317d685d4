/**
 * The connection to one page. Invariant: a page reads at its own pace, so a slow page costs the run nothing. When its
 * buffer is full, nothing more is prepared for it, and a page that stops reading is disconnected. Requests change
 * something only if control is allowed.
 */
import type { Json } from '../../machines/vocabulary.ts';
import type { Conversation } from '../conversation/conversation.ts';
import type { Live } from '../live.ts';
import { failureOf } from '../transports/clientActs.ts';
import { type ExcerptLimits, excerpt, pageJson } from './excerpt.ts';
import { type Observed, ownSignals } from './observed.ts';
import { type RecordLog, recordText } from './recordLog.ts';
import { type ActorState, FRAME_MAX, type FromPage, type Passing, readRequest, WIRE } from './wire.ts';

/** The connection to a page: a WebSocket, an event stream, or a channel between tabs. */
export interface Channel {
  send(text: string): void;
  /** The number of buffered characters or bytes. */
  readonly waiting: number;
  /** Disconnects at once. */
  drop(): void;
}

export interface PageOptions {
  records: RecordLog;
  observed: Observed;
  /** The context of a connected app's actor, or null. */
  appContext(actor: string): Json;
  /** The states of the actors of connected apps. */
  appStates?(): readonly ActorState[];
  session: string;
  version: string;
  control: boolean;
  setTimer(ms: number, fire: () => void): () => void;
  now(): number;
  /** The time after which a page that does not read is disconnected. */
  stallMs: number;
}

const FLUSH_MS = 40;
/** The interval of live signals: ten times a second. */
const LIVE_MS = 100;
/** The limit of the channel's buffer. */
const WAITING_MAX = 1024 * 1024;
const FRAME_GOAL = 256 * 1024;
/**
 * Limits of moves: events, transitions and settled states. The limits are far above the number of moves in a run with
 * many parallel calls.
 */
const MOVES_AT_ONCE = 5000;
const MOVES_A_SECOND = 2000;
/** The states in one message. */
const STATES_AT_ONCE = 500;
/** The limit of waiting live signals, in characters. */
const LIVE_MAX = 256 * 1024;

interface WaitingSignal {
  readonly conversation: string;
  signal: Live;
  /** The joined text, if more signals were added to this one. */
  text: string;
  /** The number of the next record when the signal came. The signal is sent before that record. */
  readonly before: number;
}

export class PageConnection {
  readonly #channel: Channel;
  readonly #options: PageOptions;
  /** The number of the next record to send. Undefined until the page subscribes. */
  #next: number | undefined;
  readonly #live = new LiveSignals(() => this.#scheduleFlush());
  #pace: Pace;
  /** Missing records that the greeting has reported, and that are not passed yet. */
  #reportedMissing = 0;
  /** The page has missed moves since it received the states of the actors. */
  #isIncomplete = false;
  #liveAt = Number.NEGATIVE_INFINITY;
  #stalledSince: number | undefined;
  #timer: (() => void) | undefined;
  readonly #stops: (() => void)[] = [];
  #isClosed = false;
  /** Counts invalid messages and unexpected ones. */
  ignored = 0;

  constructor(channel: Channel, options: PageOptions) {
    this.#channel = channel;
    this.#options = options;
    this.#pace = new Pace(0, options.now);
  }

  /** `by`: the person who acts, as the host of the server names them. */
  receive(text: string, by?: string): void {
    const request = this.#isClosed ? undefined : readRequest(text);
    if (!request || (request.type === 'subscribe' && this.#next !== undefined)) this.ignored += 1;
    else if (request.type === 'subscribe') this.#subscribe(request);
    else void this.#answerRequest(request, by);
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.();
    this.#live.stop();
    for (const stop of this.#stops.splice(0)) stop();
  }

  #subscribe({ from: wantedFrom, session: knownSession }: Extract<FromPage, { type: 'subscribe' }>): void {
    const { records, observed, session, version, control } = this.#options;
    const { next } = records;
    const from = knownSession === session ? Math.min(wantedFrom, next) : 0;
    const dropped = next - from - records.countSince(from);
    this.#sendMessage({ type: 'hello', wire: WIRE, version, session, control, from, next, dropped });
    this.#next = from;
    this.#reportedMissing = dropped;
    this.#isIncomplete = dropped > 0;
    this.#pace = new Pace(next, this.#options.now);
    this.#stops.push(records.listen(() => this.#scheduleFlush()));
    const open = observed.conversations({
      begun: (conversation) => this.#live.follow(conversation, records),
      ended: (conversation) => this.#live.unfollow(conversation),
    });
    this.#stops.push(open.stop);
    for (const conversation of open.now) this.#live.follow(conversation, records);
    this.#flush();
  }

  async #answerRequest(request: Exclude<FromPage, { type: 'subscribe' }>, by?: string): Promise<void> {
    const { ask } = request;
    const { records, observed, appContext, control } = this.#options;
    try {
      if (this.#channel.waiting > WAITING_MAX && (request.type === 'context' || request.type === 'payload')) {
        const message = 'the page does not read what it was sent before';
        this.#sendMessage({ type: 'refused', ask, code: 'limit', message });
      } else if (request.type === 'context') {
        const { actor } = request;
        this.#sendMessage({ type: 'answer', ask, value: fitting(observed.contextOf(actor) ?? appContext(actor)) });
      } else if (request.type === 'payload') {
        this.#sendMessage({ type: 'answer', ask, value: records.eventOf(request.n) });
      } else if (!control) {
        const message = 'the inspector is read-only: start it with control to decide here';
        this.#sendMessage({ type: 'refused', ask, code: 'read_only', message });
      } else {
        this.#sendMessage({ type: 'answer', ask, value: await observed.control(request, by) });
      }
    } catch (error) {
      const { code, message } = failureOf(error);
      this.#sendMessage({ type: 'refused', ask, code, message });
    }
  }

  #sendMessage(message: Passing): void {
    if (!this.#isClosed) this.#channel.send(`[${JSON.stringify(message)}]`);
  }

  #scheduleFlush(ms: number = FLUSH_MS): void {
    if (this.#isClosed || this.#timer) return;
    this.#timer = this.#options.setTimer(ms, () => {
      this.#timer = undefined;
      this.#flush();
    });
  }

  /** Returns true if more may be sent. Disconnects a page that has not read for too long. */
  #isReady(): boolean {
    const { now, stallMs } = this.#options;
    if (this.#channel.waiting <= WAITING_MAX) {
      this.#stalledSince = undefined;
      return true;
    }
    this.#stalledSince ??= now();
    if (now() - this.#stalledSince >= stallMs) {
      this.close();
      this.#channel.drop();
    } else this.#scheduleFlush(LIVE_MS);
    return false;
  }

  /** The number of these missing records that no message has reported. */
  #unreported(missing: number): number {
    const reported = Math.min(missing, this.#reportedMissing);
    this.#reportedMissing -= reported;
    return missing - reported;
  }

  #flush(): void {
    if (this.#isClosed || this.#next === undefined || !this.#isReady()) return;
    const { records, now } = this.#options;
    const frame = new Frame((text) => this.#channel.send(text));
    const from = this.#next;
    let sentUpTo = from;
    let missed = 0;
    this.#pace.refill();
    for (const record of records.since(from, (n) => this.#pace.allows(n))) {
      missed += this.#unreported(record.n - sentUpTo);
      for (const signal of this.#live.takeBefore(record.n)) frame.add(JSON.stringify(signal));
      frame.add(recordText(record));
      sentUpTo = record.n + 1;
      if (frame.sent >= WAITING_MAX / 2) break;
    }
    // One message reports all gaps, because a gap may come before almost every entry.
    if (missed > 0) frame.add(JSON.stringify({ type: 'dropped', from, count: missed }));
    let misses = missed > 0;
    if (frame.sent < WAITING_MAX / 2 && sentUpTo < records.next) {
      misses = true;
      frame.add(JSON.stringify({ type: 'dropped', from: sentUpTo, count: records.next - sentUpTo }));
      sentUpTo = records.next;
    }
    this.#next = sentUpTo;
    const isAll = sentUpTo >= records.next;
    // While moves are too fast, later ones follow in any case.
    if (misses) this.#isIncomplete = true;
    else if (isAll && this.#isIncomplete) this.#addStates(frame);
    const isTime = now() - this.#liveAt >= LIVE_MS;
    if (isAll && isTime) {
      for (const signal of this.#live.takeBefore(Number.POSITIVE_INFINITY)) frame.add(JSON.stringify(signal));
      this.#liveAt = now();
    }
    frame.send();
    if (!isAll || !this.#live.isEmpty || this.#isIncomplete) this.#scheduleFlush(isAll ? LIVE_MS : 1);
    this.#live.resumeAfterLoss();
  }

  #addStates(frame: Frame): void {
    this.#isIncomplete = false;
    const { observed, appStates } = this.#options;
    const states = [...observed.states(), ...(appStates?.() ?? [])];
    for (let at = 0; at < states.length; at += STATES_AT_ONCE)
      frame.add(JSON.stringify({ type: 'states', states: states.slice(at, at + STATES_AT_ONCE) }));
  }
}

/** The limits of a context that does not fit a frame, one after the other. */
const SMALLER: readonly ExcerptLimits[] = [
  { text: 1000, items: 100, depth: 10, values: 1000 },
  { text: 200, items: 50, depth: 6, values: 400 },
];

/** Returns a value that fits a frame. */
function fitting(value: Json): Json {
  const fits = (one: Json): boolean => JSON.stringify(one).length < FRAME_MAX / 2;
  let shown = value;
  for (const limits of SMALLER) if (!fits(shown)) shown = excerpt(value, limits);
  return fits(shown) ? shown : 'too large to be shown';
}

/**
 * Limits the moves that a page receives. Moves that are too fast for a person are omitted and reported as dropped. Past
 * records are never omitted.
 */
class Pace {
  readonly #past: number;
  readonly #now: () => number;
  #movesLeft = MOVES_AT_ONCE;
  #at: number;

  constructor(past: number, now: () => number) {
    this.#past = past;
    this.#now = now;
    this.#at = now();
  }

  allows(n: number): boolean {
    if (n < this.#past) return true;
    if (this.#movesLeft < 1) return false;
    this.#movesLeft -= 1;
    return true;
  }

  /** Called before each flush. */
  refill(): void {
    const now = this.#now();
    this.#movesLeft = Math.min(MOVES_AT_ONCE, this.#movesLeft + ((now - this.#at) / 1000) * MOVES_A_SECOND);
    this.#at = now;
  }
}

/** Collects messages and sends them in frames. */
class Frame {
  readonly #send: (text: string) => void;
  #texts: string[] = [];
  #length = 0;
  sent = 0;

  constructor(send: (text: string) => void) {
    this.#send = send;
  }

  add(text: string): void {
    if (this.#length > 0 && this.#length + text.length > FRAME_MAX / 2) this.send();
    this.#texts.push(text);
    this.#length += text.length + 1;
    if (this.#length >= FRAME_GOAL) this.send();
  }

  send(): void {
    if (this.#texts.length === 0) return;
    this.#send(`[${this.#texts.join(',')}]`);
    this.sent += this.#length;
    this.#texts = [];
    this.#length = 0;
  }
}

type LiveMessage = Extract<Passing, { type: 'live' }>;
const NONE: readonly LiveMessage[] = [];

/** Live signals for one page: joined while they wait, and ordered among the records. */
class LiveSignals {
  #waiting: WaitingSignal[] = [];
  #size = 0;
  readonly #followed = new Map<Conversation, RecordLog>();
  readonly #stops = new Map<Conversation, () => void>();
  #isLost = false;
  readonly #onSignal: () => void;

  constructor(onSignal: () => void) {
    this.#onSignal = onSignal;
  }

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  follow(conversation: Conversation, records: RecordLog): void {
    this.#followed.set(conversation, records);
    if (this.#isLost) return;
    let isOver = false;
    const onComplete = (): void => {
      isOver = true;
      this.#followed.delete(conversation);
      this.#stops.delete(conversation);
    };
    const stop = ownSignals(conversation, (signal) => this.#addSignal(conversation, signal, records.next), onComplete);
    if (!isOver) this.#stops.set(conversation, stop);
  }

  unfollow(conversation: Conversation): void {
    this.#followed.delete(conversation);
    this.#stops.get(conversation)?.();
    this.#stops.delete(conversation);
  }

  /** Removes and returns the signals that came before the record. */
  takeBefore(n: number): readonly LiveMessage[] {
    const [first] = this.#waiting;
    if (!first || first.before > n) return NONE;
    const end = this.#waiting.findIndex(({ before }) => before > n);
    const ready = this.#waiting.splice(0, end < 0 ? this.#waiting.length : end);
    if (this.#waiting.length === 0) this.#size = 0;
    return ready.map(({ conversation, signal, text }) => {
      const shown = text === '' ? signal : { ...(signal as Live & { text: string }), text };
      return { type: 'live', conversation, signal: pageJson(shown) };
    });
  }

  /** Called when the page has caught up. If signals were lost, the streamed text is sent again as a whole. */
  resumeAfterLoss(): void {
    if (!this.#isLost) return;
    this.#isLost = false;
    for (const [conversation, records] of this.#followed) this.follow(conversation, records);
  }

  stop(): void {
    for (const stop of this.#stops.values()) stop();
    this.#stops.clear();
  }

  #addSignal({ id: conversation }: Conversation, signal: Live, before: number): void {
    const last = this.#waiting.at(-1);
    const added = 'text' in signal ? signal.text : '';
    if (last?.before === before && last.conversation === conversation && isJoined(last.signal, signal)) {
      if (!('text' in signal)) last.signal = signal;
      else last.text = (last.text || (last.signal as { text: string }).text) + added;
    } else this.#waiting.push({ conversation, signal, text: '', before });
    this.#size += 64 + added.length;
    if (this.#size > LIVE_MAX) this.#dropWaiting();
    this.#onSignal();
  }

  #dropWaiting(): void {
    this.stop();
    this.#waiting = [];
    this.#size = 0;
    this.#isLost = true;
  }
}

/** Returns true if two signals are sent as one. */
function isJoined(last: Live, next: Live): boolean {
  if (last.type !== next.type) return false;
  if (last.type === 'tool-progress' && next.type === 'tool-progress') return last.callId === next.callId;
  if (next.type === 'state') return true;
  if (!('text' in last) || !('text' in next) || last.runId !== next.runId) return false;
  return last.type !== 'tool-input-delta' || next.type !== 'tool-input-delta' || last.index === next.index;
}
