/**
 * The inspector of an app that runs in a browser: pages of the same origin, in a frame or a tab of their own, watch over a
 * BroadcastChannel. Rule: the browser lets no other origin in, so there is no token; a page that says nothing for a while
 * is gone, and costs nothing more.
 */
import type { Conversation } from '../conversation/conversation.ts';
import { checkOptionsOf, flag, nonEmptyText, object } from '../validation.ts';
import { Observed } from './observed.ts';
import { PageConnection } from './page.ts';
import { RecordLog } from './recordLog.ts';

export interface ChannelInspectorOptions {
  /** Pages name it in their address: `?channel=<name>`. */
  channel?: string;
  /** Lets pages decide, cancel, resume and send. */
  control?: boolean;
}

export interface ChannelInspector {
  readonly channel: string;
  /** As `inspect` of `createAgent` or of XState's `createActor`. */
  readonly observe: (event: unknown) => void;
  /** A living conversation, at any time; what it answers ends it. */
  attach(conversation: Conversation): () => void;
  close(): void;
}

/** What a page posts: its own name, and a frame; an empty one says that it is still there. */
interface Posted {
  readonly page: string;
  readonly frame: string;
}

const optionsValidator = object({ channel: nonEmptyText, control: flag });
/** Pages speak every five seconds. */
const GONE_MS = 20_000;

const isPosted = (given: unknown): given is Posted => {
  const { page, frame } = (given ?? {}) as Partial<Posted>;
  return typeof page === 'string' && typeof frame === 'string';
};

/** Throws ConfigurationError. */
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

  constructor(channel: BroadcastChannel, options: { records: RecordLog; observed: Observed; control: boolean }) {
    this.#channel = channel;
    this.#options = options;
    channel.onmessage = ({ data }) => {
      if (isPosted(data)) this.#take(data);
    };
    this.#timer = setInterval(() => this.#forget(), GONE_MS / 4);
    // Pages that were here before begin anew.
    channel.postMessage({ begun: this.#session });
  }

  close(): void {
    clearInterval(this.#timer);
    for (const { connection } of this.#pages.values()) connection.close();
    this.#channel.postMessage({ over: this.#session });
    this.#channel.close();
  }

  #take({ page: name, frame }: Posted): void {
    const page = this.#pages.get(name) ?? this.#open(name);
    page.seenAt = performance.now();
    if (frame !== '') page.connection.receive(frame);
  }

  #open(name: string): Page {
    const { records, observed, control } = this.#options;
    const way = {
      send: (text: string) => this.#channel.postMessage({ to: name, frame: text }),
      // The browser says nothing of what waits; a page that is gone is forgotten.
      waiting: 0,
      drop: () => void this.#pages.delete(name),
    };
    const connection = new PageConnection(way, {
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

  #forget(): void {
    for (const [name, { connection, seenAt }] of this.#pages) {
      if (performance.now() - seenAt < GONE_MS) continue;
      connection.close();
      this.#pages.delete(name);
    }
  }
}
