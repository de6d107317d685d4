/**
 * One page that watches. Rule: a page takes at its own pace from what is kept, so a slow one costs the run nothing: beyond
 * its buffer nothing is made for it, and one that takes nothing for long is let go. What it asks changes something only
 * where control is allowed.
 */
import type { Json } from '../../machines/vocabulary.ts';
import type { Conversation } from '../conversation/conversation.ts';
import type { Live } from '../live.ts';
import { failureOf } from '../transports/acts.ts';
import { type Observed, ownSignals } from './observed.ts';
import { type RecordLog, recordText } from './recordLog.ts';
import { FRAME_MAX, type FromPage, type Passing, readRequest, WIRE } from './wire.ts';

/** The way to a page: a WebSocket, or a channel between tabs. */
export interface Channel {
  send(text: string): void;
  /** Characters or bytes that were sent and have not left. */
  readonly waiting: number;
  /** Ends it at once. */
  drop(): void;
}

export interface PageOptions {
  records: RecordLog;
  observed: Observed;
  /** Of an actor of an app that is connected; null where there is none. */
  appContext(actor: string): Json;
  session: string;
  version: string;
  control: boolean;
  setTimer(ms: number, fire: () => void): () => void;
  now(): number;
  /** How long a page may take nothing. */
  stallMs: number;
}

const FLUSH_MS = 40;
/** Ten times a second. */
const LIVE_MS = 100;
/** What may be on its way. */
const WAITING_MAX = 1024 * 1024;
const FRAME_GOAL = 256 * 1024;
/** Events, transitions and what was settled: many times what a run of many calls at once has. */
const MOVES_AT_ONCE = 5000;
const MOVES_A_SECOND = 2000;
/** Characters of live signals that wait. */
const LIVE_MAX = 256 * 1024;

interface WaitingSignal {
  readonly conversation: string;
  signal: Live;
  /** Text that was joined to the signal's own. */
  text: string;
  /** Number of the next record when it came. */
  readonly behind: number;
}

export class PageConnection {
  readonly #channel: Channel;
  readonly #options: PageOptions;
  /** Number of the next record to be sent; nothing before the page has subscribed. */
  #next: number | undefined;
  readonly #live = new LiveSignals(() => this.#due());
  #pace: Pace;
  #liveAt = Number.NEGATIVE_INFINITY;
  #stalledSince: number | undefined;
  #timer: (() => void) | undefined;
  readonly #stops: (() => void)[] = [];
  #isClosed = false;
  /** Messages that were no request of this protocol, or came where they mean nothing. */
  ignored = 0;

  constructor(channel: Channel, options: PageOptions) {
    this.#channel = channel;
    this.#options = options;
    this.#pace = new Pace(0, options.now);
  }

  receive(text: string): void {
    const request = this.#isClosed ? undefined : readRequest(text);
    if (!request || (request.type === 'subscribe' && this.#next !== undefined)) this.ignored += 1;
    else if (request.type === 'subscribe') this.#subscribe(request);
    else void this.#answer(request);
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.();
    this.#live.stop();
    for (const stop of this.#stops.splice(0)) stop();
  }

  #subscribe({ from: wanted, session: known }: Extract<FromPage, { type: 'subscribe' }>): void {
    const { records, observed, session, version, control } = this.#options;
    const { next } = records;
    const from = known === session ? Math.min(wanted, next) : 0;
    const dropped = next - from - records.countSince(from);
    this.#say({ type: 'hello', wire: WIRE, version, session, control, from, next, dropped });
    this.#next = from;
    this.#pace = new Pace(next, this.#options.now);
    this.#stops.push(records.listen(() => this.#due()));
    const open = observed.conversations((conversation) => this.#live.follow(conversation, records));
    this.#stops.push(open.stop);
    for (const conversation of open.now) this.#live.follow(conversation, records);
    this.#flush(true);
  }

  async #answer(request: Exclude<FromPage, { type: 'subscribe' }>): Promise<void> {
    const { ask } = request;
    const { records, observed, appContext, control } = this.#options;
    try {
      if (request.type === 'context') {
        const { actor } = request;
        this.#say({ type: 'answer', ask, value: observed.contextOf(actor) ?? appContext(actor) });
      } else if (request.type === 'payload') {
        this.#say({ type: 'answer', ask, value: records.eventOf(request.n) });
      } else if (!control) {
        const message = 'the inspector is read-only: start it with control to decide here';
        this.#say({ type: 'refused', ask, code: 'read_only', message });
      } else {
        this.#say({ type: 'answer', ask, value: await observed.control(request) });
      }
    } catch (error) {
      const { code, message } = failureOf(error);
      this.#say({ type: 'refused', ask, code, message });
    }
  }

  #say(message: Passing): void {
    if (!this.#isClosed) this.#channel.send(`[${JSON.stringify(message)}]`);
  }

  #due(ms: number = FLUSH_MS): void {
    if (this.#isClosed || this.#timer) return;
    this.#timer = this.#options.setTimer(ms, () => {
      this.#timer = undefined;
      this.#flush();
    });
  }

  /** Whether more may be sent; one that takes nothing for too long is let go. */
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
    } else this.#due(LIVE_MS);
    return false;
  }

  /** `first`: what is missing was told by the greeting. */
  #flush(first = false): void {
    if (this.#isClosed || this.#next === undefined || !this.#isReady()) return;
    const { records, now } = this.#options;
    const frame = new Frame((text) => this.#channel.send(text));
    const from = this.#next;
    let seen = from;
    let missed = 0;
    this.#pace.refill();
    for (const record of records.since(from, (n) => this.#pace.takes(n))) {
      if (!first) missed += record.n - seen;
      for (const signal of this.#live.before(record.n)) frame.add(JSON.stringify(signal));
      frame.add(recordText(record));
      seen = record.n + 1;
      if (frame.sent >= WAITING_MAX / 2) break;
    }
    // Told once for all gaps: where moves are left out, there is one before most entries.
    if (missed > 0) frame.add(JSON.stringify({ type: 'dropped', from, count: missed }));
    if (frame.sent < WAITING_MAX / 2 && seen < records.next) {
      frame.add(JSON.stringify({ type: 'dropped', from: seen, count: records.next - seen }));
      seen = records.next;
    }
    this.#next = seen;
    const isAll = seen >= records.next;
    const isTime = now() - this.#liveAt >= LIVE_MS;
    if (isAll && isTime) {
      for (const signal of this.#live.before(Number.POSITIVE_INFINITY)) frame.add(JSON.stringify(signal));
      this.#liveAt = now();
    }
    frame.send();
    if (!isAll || !this.#live.isEmpty) this.#due(isAll ? LIVE_MS : 1);
    this.#live.goOn();
  }
}

/** How many moves a page is shown: what nobody could follow is left out, and told as dropped. The past is shown whole. */
class Pace {
  readonly #past: number;
  readonly #now: () => number;
  #left = MOVES_AT_ONCE;
  #at: number;

  constructor(past: number, now: () => number) {
    this.#past = past;
    this.#now = now;
    this.#at = now();
  }

  takes(n: number): boolean {
    if (n < this.#past) return true;
    if (this.#left < 1) return false;
    this.#left -= 1;
    return true;
  }

  /** For the next flush. */
  refill(): void {
    const now = this.#now();
    this.#left = Math.min(MOVES_AT_ONCE, this.#left + ((now - this.#at) / 1000) * MOVES_A_SECOND);
    this.#at = now;
  }
}

/** Collects messages, and sends them a frame at a time. */
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

/** Live signals for one page, joined while they wait, and in their order among the records. */
class LiveSignals {
  #waiting: WaitingSignal[] = [];
  #size = 0;
  readonly #followed = new Map<Conversation, RecordLog>();
  readonly #stops = new Map<Conversation, () => void>();
  #isLost = false;
  readonly #came: () => void;

  constructor(came: () => void) {
    this.#came = came;
  }

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  follow(conversation: Conversation, records: RecordLog): void {
    this.#followed.set(conversation, records);
    if (this.#isLost) return;
    let isOver = false;
    const over = (): void => {
      isOver = true;
      this.#followed.delete(conversation);
      this.#stops.delete(conversation);
    };
    const stop = ownSignals(conversation, (signal) => this.#put(conversation, signal, records.next), over);
    if (!isOver) this.#stops.set(conversation, stop);
  }

  /** Takes those that came before the record. */
  before(n: number): readonly LiveMessage[] {
    const [first] = this.#waiting;
    if (!first || first.behind > n) return NONE;
    const end = this.#waiting.findIndex(({ behind }) => behind > n);
    const taken = this.#waiting.splice(0, end < 0 ? this.#waiting.length : end);
    if (this.#waiting.length === 0) this.#size = 0;
    return taken.map(({ conversation, signal, text }) => {
      const shown = text === '' ? signal : { ...(signal as Live & { text: string }), text };
      return { type: 'live', conversation, signal: shown };
    });
  }

  /** The page has caught up: what is streamed is shown whole where some of it was lost. */
  goOn(): void {
    if (!this.#isLost) return;
    this.#isLost = false;
    for (const [conversation, records] of this.#followed) this.follow(conversation, records);
  }

  stop(): void {
    for (const stop of this.#stops.values()) stop();
    this.#stops.clear();
  }

  #put({ id: conversation }: Conversation, signal: Live, behind: number): void {
    const last = this.#waiting.at(-1);
    const added = 'text' in signal ? signal.text : '';
    if (last?.behind === behind && last.conversation === conversation && isJoined(last.signal, signal)) {
      if (!('text' in signal)) last.signal = signal;
      else last.text = (last.text || (last.signal as { text: string }).text) + added;
    } else this.#waiting.push({ conversation, signal, text: '', behind });
    this.#size += 64 + added.length;
    if (this.#size > LIVE_MAX) this.#lose();
    this.#came();
  }

  #lose(): void {
    this.stop();
    this.#waiting = [];
    this.#size = 0;
    this.#isLost = true;
  }
}

/** Whether two signals are shown as one. */
function isJoined(last: Live, next: Live): boolean {
  if (last.type !== next.type) return false;
  if (last.type === 'tool-progress' && next.type === 'tool-progress') return last.callId === next.callId;
  if (next.type === 'state') return true;
  if (!('text' in last) || !('text' in next) || last.runId !== next.runId) return false;
  return last.type !== 'tool-input-delta' || next.type !== 'tool-input-delta' || last.index === next.index;
}
