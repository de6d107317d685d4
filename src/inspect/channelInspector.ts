/**
 * The inspector of an app in a browser. Pages of the same origin, in another frame or tab, connect over a
 * BroadcastChannel. Invariant: the browser admits no other origin, so there is no token. A page that is silent for too
 * long is disconnected.
 */
import type { Conversation } from '../conversation/conversation.ts';
import { checkOptionsOf, flag, nonEmptyText, object } from '../validation.ts';
import { Observed } from './observed.ts';
import { PageConnection } from './page.ts';
import { RecordLog } from './recordLog.ts';
import { readRequest } from './wire.ts';

/** The options of `startChannelInspector`. */
export interface ChannelInspectorOptions {
  /** Pages name the channel in their address: `?channel=<name>`. */
  channel?: string;
  /** Allows pages to decide, cancel, resume and send. */
  control?: boolean;
}

/** An inspector for an agent in a page. Other pages of the same origin show it. */
export interface ChannelInspector {
  /** The name of the channel. */
  readonly channel: string;
  /** Pass it as `inspect` to `createAgent` or to XState's `createActor`. */
  readonly observe: (event: unknown) => void;
  /** Observes a running conversation from now on. The returned function ends that. */
  attach(conversation: Conversation): () => void;
  /** Closes the channel. Agents continue to run. */
  close(): void;
}

/** A page's message: its own name and a frame. An empty frame is a heartbeat. */
interface Posted {
  readonly page: string;
  readonly frame: string;
}

const optionsValidator = object({ channel: nonEmptyText, control: flag });
/** Pages send a heartbeat every five seconds. */
const GONE_MS = 20_000;

const isPosted = (value: unknown): value is Posted => {
  const { page, frame } = (value ?? {}) as Partial<Posted>;
  return typeof page === 'string' && typeof frame === 'string';
};

/** Starts an inspector for an agent in a page. Other pages of the same origin show it. Throws ConfigurationError. */
export function startChannelInspector(options: ChannelInspectorOptions = {}): ChannelInspector {
  checkOptionsOf('startChannelInspector', options, optionsValidator);
  const { channel = 'runchart', control = false } = options;
  const records = new RecordLog(Date.now);
  const observed = new Observed(records);
  const pages = new Pages(new BroadcastChannel(`runchart-inspector:${channel}`), { records, observed, control });
  return {
    channel,
    observe: observed.observe,
    attach: (conversation) => observed.attach(conversation),
    close() {
      observed.close();
      pages.close();
    },
  };
}

interface Page {
  readonly connection: PageConnection;
  seenAt: number;
}

class Pages {
  readonly #channel: BroadcastChannel;
  readonly #options: { records: RecordLog; observed: Observed; control: boolean };
  readonly #session = crypto.randomUUID();
  readonly #pages = new Map<string, Page>();
  readonly #timer: ReturnType<typeof setInterval>;
  #isClosed = false;

  constructor(channel: BroadcastChannel, options: { records: RecordLog; observed: Observed; control: boolean }) {
    this.#channel = channel;
    this.#options = options;
    channel.onmessage = ({ data }) => {
      if (isPosted(data)) this.#receive(data);
    };
    this.#timer = setInterval(() => this.#disconnectSilentPages(), GONE_MS / 4);
    // Tells open pages that a new session has begun, so that they connect again.
    channel.postMessage({ begun: this.#session });
  }

  close(): void {
    // A closed channel refuses every message.
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearInterval(this.#timer);
    for (const { connection } of this.#pages.values()) connection.close();
    this.#channel.postMessage({ over: this.#session });
    this.#channel.close();
  }

  #receive({ page: name, frame }: Posted): void {
    const isNew = readRequest(frame)?.type === 'subscribe';
    const page = this.#pages.get(name) ?? (isNew ? this.#open(name) : undefined);
    // A browser slows down the timers of a page in the background. Such a page was disconnected, and connects again.
    if (!page) return this.#channel.postMessage({ lost: name });
    page.seenAt = performance.now();
    if (frame !== '') page.connection.receive(frame);
    // An empty frame shows the page that the app is still there.
    else this.#channel.postMessage({ to: name, frame: '[]' });
  }

  #open(name: string): Page {
    const { records, observed, control } = this.#options;
    const channel = {
      send: (text: string) => this.#channel.postMessage({ to: name, frame: text }),
      // A BroadcastChannel does not report its buffer. `#disconnectSilentPages` removes pages that are gone.
      waiting: 0,
      drop: () => void this.#pages.delete(name),
    };
    const connection = new PageConnection(channel, {
      ...{ records, observed, control, session: this.#session, version: '', stallMs: GONE_MS },
      appContext: () => null,
      now: () => performance.now(),
      setTimer(ms, fire) {
        const timer = setTimeout(fire, ms);
        return () => clearTimeout(timer);
      },
    });
    const page = { connection, seenAt: 0 };
    this.#pages.set(name, page);
    return page;
  }

  #disconnectSilentPages(): void {
    for (const [name, { connection, seenAt }] of this.#pages) {
      if (performance.now() - seenAt < GONE_MS) continue;
      connection.close();
      this.#pages.delete(name);
    }
  }
}
