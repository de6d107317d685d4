/**
 * One attempt of the invocation of a Restate server that holds a conversation. Invariant: the appends and answers of the conversation are
 * sent in their order, before anything else is recorded. Large contents are stored before the server receives their names.
 */
import type * as Restate from '@restatedev/restate-sdk';
import type { LogEntry } from '../../machines/internal.ts';
import { ENDS_REPLY } from '../remote/streamedReply.ts';
import { platformPorts } from '../runtime/hostPorts.ts';
import type { ConversationRow } from '../stores/conversationRow.ts';
import { addToRow } from '../stores/conversationSummary.ts';
import type { Act, ActAnswer } from '../stores/logStore.ts';
import {
  type AttemptListener,
  type CarriedRun,
  type EngineAttempt,
  type EngineTimer,
  isNews,
  type RecordedLine,
  type StoredLog,
  type Waiting,
} from './chain/engineAttempt.ts';
import { type ContentStore, LARGEST_CHARACTERS } from './contentStore.ts';
import type { LiveHub } from './liveHub.ts';
import {
  CARRIED,
  callObject,
  entryKey,
  type KeptAct,
  LENGTH,
  type ObjectNames,
  READ_MAX,
  type Sdk,
  sendToObject,
  shardOf,
  storedEntries,
  subAgentKey,
  VERSION,
  wholeEntries,
} from './objectCalls.ts';

/** Entries after which a list shows something else. */
const LISTED: ReadonlySet<LogEntry['type']> = new Set([
  'conversation',
  'run-started',
  'run-resumed',
  'run-suspended',
  'run-stop',
  'renamed',
]);

/** A log that is longer is read in pages, so that the journal of an invocation has few items. */
const SHORT_LOG = 50;
const carriedKey = (page: number): string => `c/${page}`;

/** The server takes no value of any size. */
const CARRIED_CHARACTERS = 1_000_000;
function pagesOf(lines: readonly RecordedLine[]): RecordedLine[][] {
  const pages: RecordedLine[][] = [];
  let characters = Number.POSITIVE_INFINITY;
  for (const line of lines) {
    if (characters > CARRIED_CHARACTERS) {
      pages.push([]);
      characters = 0;
    }
    characters += JSON.stringify(line).length;
    pages.at(-1)?.push(line);
  }
  return pages;
}

/** The record of a run that another invocation continues. Its pages are read by `wholeRun`. */
export interface StoredRun {
  version: number;
  pages: readonly unknown[];
}

export async function storedRun(ctx: Pick<Restate.ObjectContext, 'get'>): Promise<StoredRun | undefined> {
  const carried = await ctx.get<{ version: number; pages: number }>(CARRIED);
  if (!carried) return undefined;
  const pages: unknown[] = [];
  for (let page = 0; page < carried.pages; page += 1) pages.push(await ctx.get<unknown>(carriedKey(page)));
  return { version: carried.version, pages };
}

export async function wholeRun({ version, pages }: StoredRun, contents: ContentStore): Promise<CarriedRun> {
  const lines: RecordedLine[] = [];
  for (const page of pages) lines.push(...(await contents.whole<RecordedLine[]>(page)));
  return { version, lines };
}

export interface RestateAttemptOptions {
  sdk: Sdk;
  ctx: Restate.ObjectContext;
  names: ObjectNames;
  hub: Pick<LiveHub, 'publish'>;
  contentsOf(conversationId: string): ContentStore;
}

export class RestateAttempt implements EngineAttempt {
  readonly conversationId: string;
  readonly attempt: string = crypto.randomUUID();
  readonly signal: AbortSignal;
  readonly charactersMost: number;
  readonly #options: RestateAttemptOptions;
  /** The contents of this conversation, and of those that it sends something to. */
  readonly #contents = new Map<string, ContentStore>();
  #bell: Restate.RestatePromise<unknown> | undefined;
  readonly #timers = new Map<EngineTimer, Restate.RestatePromise<{ timer: EngineTimer }>>();
  #row: ConversationRow | undefined;
  #version = 0;
  #carried: { version: number; pages: number } | null = null;
  /** Appends and answers that have not been sent. */
  #unsent: (() => Promise<void> | void)[] = [];

  constructor(options: RestateAttemptOptions) {
    const { ctx } = options;
    this.#options = options;
    this.conversationId = ctx.key;
    this.signal = ctx.request().attemptCompletedSignal;
    // The entry of a delivery, and its report to a parent, are a little longer.
    this.charactersMost = this.#contentsOf().isKept ? Number.POSITIVE_INFINITY : LARGEST_CHARACTERS - 100_000;
  }

  #contentsOf(id = this.conversationId): ContentStore {
    const contents = this.#contents.get(id) ?? this.#options.contentsOf(id);
    this.#contents.set(id, contents);
    return contents;
  }

  get blobs(): EngineAttempt['blobs'] {
    const contents = this.#contentsOf();
    return contents.isKept ? contents : undefined;
  }

  async step<T>(name: string, act: () => T | Promise<T>, listener?: AttemptListener): Promise<T> {
    await this.sent();
    const { sdk, ctx } = this.#options;
    const contents = this.#contentsOf();
    const run = ctx
      // Each attempt returns the same value, because records are JSON.
      .run(name, async () => {
        const text = JSON.stringify(await act());
        for (const each of this.#contents.values()) await each.settled();
        return contents.shorten(text);
      })
      .map((recorded) => ({ recorded }));
    for (;;) {
      const first = listener ? await sdk.RestatePromise.race([run, ...this.#waits()]) : await run;
      if ('recorded' in first) return JSON.parse(await contents.whole<string>(first.recorded)) as T;
      if (listener) await this.#tell(first, listener);
    }
  }

  startTimer(timer: EngineTimer): void {
    const { ctx } = this.#options;
    this.#unsent.push(() => {
      const elapsed = ctx.sleep(Math.max(0, timer.until - platformPorts.now()));
      this.#timers.set(
        timer,
        elapsed.map(() => ({ timer })),
      );
    });
  }

  async listen(listener: AttemptListener): Promise<void> {
    await this.sent();
    await this.#tell(await this.#options.sdk.RestatePromise.race(this.#waits()), listener);
  }

  /** The promises of the bell and of the timers. */
  #waits(): Restate.RestatePromise<{ timer?: EngineTimer }>[] {
    const bell = this.#bell?.map(() => ({}));
    return [...(bell ? [bell] : []), ...this.#timers.values()];
  }

  async #tell({ timer }: { timer?: EngineTimer }, { rung, elapsed }: AttemptListener): Promise<void> {
    if (timer) {
      this.#timers.delete(timer);
      return elapsed(timer);
    }
    this.#bell = undefined;
    await rung();
  }

  async takeActs(isListening: boolean): Promise<readonly Waiting[]> {
    await this.sent();
    const { sdk, ctx, names } = this.#options;
    const contents = this.#contentsOf();
    const bell = isListening ? ctx.awakeable<null>() : undefined;
    this.#bell = bell?.promise;
    const inbox = await callObject<readonly KeptAct[]>(sdk, ctx, {
      service: names.inbox,
      key: this.conversationId,
      method: 'take',
      parameter: { bell: bell?.id ?? null },
    });
    return Promise.all(
      inbox.map(async (kept) =>
        'sent' in kept ? contents.whole<Waiting>(kept.sent) : { to: kept.to, act: await contents.whole<Act>(kept.act) },
      ),
    );
  }

  async readCarried(): Promise<CarriedRun | undefined> {
    const stored = await storedRun(this.#options.ctx);
    this.#carried = stored ? { version: stored.version, pages: stored.pages.length } : null;
    return stored && wholeRun(stored, this.#contentsOf());
  }

  async readLog(subAgent?: string): Promise<StoredLog> {
    await this.sent();
    if (subAgent !== undefined) return this.#readSubAgent(subAgent);
    const { ctx } = this.#options;
    const length = (await ctx.get<number>(LENGTH)) ?? 0;
    this.#version = (await ctx.get<number>(VERSION)) ?? 0;
    const stored =
      length <= SHORT_LOG ? await storedEntries(ctx, 0, length) : await this.#pages(this.conversationId, length);
    const entries = await wholeEntries(this.#contentsOf(), stored);
    for (const entry of entries) this.#row = addToRow(this.#row, entry, this.conversationId);
    return { entries, version: this.#version };
  }

  /** Waits until nothing holds the sub-agent. */
  async #readSubAgent(id: string): Promise<StoredLog> {
    const { sdk, ctx, names } = this.#options;
    const request = { service: names.conversation, key: id, method: 'state', parameter: {} };
    const { length, ...state } = await callObject<Omit<StoredLog, 'entries'> & { length: number }>(sdk, ctx, request);
    return { ...state, entries: await wholeEntries(this.#contentsOf(id), await this.#pages(id, length)) };
  }

  append(entries: readonly LogEntry[], version: number): void {
    this.#unsent.push(() => this.#store(entries, version));
  }

  tell(id: string, waiting: Waiting): void {
    const { sdk, ctx, names } = this.#options;
    this.#unsent.push(async () => {
      // It is removed with this conversation.
      if ('place' in waiting) ctx.set(subAgentKey(id), true);
      const sent = await this.#contentsOf(id).shorten(waiting);
      const parameter: KeptAct = { sent, isNews: isNews(waiting) };
      sendToObject(sdk, ctx, { service: names.inbox, key: id, method: 'put', parameter });
    });
  }

  answer(to: string, answer: ActAnswer): void {
    const { ctx } = this.#options;
    this.#unsent.push(async () => ctx.resolveAwakeable(to, await this.#contentsOf().shorten(answer)));
  }

  carryOn({ version, lines }: CarriedRun): void {
    const { sdk, ctx, names } = this.#options;
    const contents = this.#contentsOf();
    this.#unsent.push(async () => {
      let pages = this.#carried?.pages ?? 0;
      for (const page of pagesOf(lines)) {
        ctx.set(carriedKey(pages), await contents.shorten(page));
        pages += 1;
      }
      ctx.set(CARRIED, { version, pages });
      sendToObject(sdk, ctx, {
        service: names.conversation,
        key: this.conversationId,
        method: 'hold',
        parameter: {},
      });
    });
  }

  dropCarried(): void {
    const { pages } = this.#carried ?? { pages: 0 };
    this.#carried = null;
    const { ctx } = this.#options;
    this.#unsent.push(() => {
      for (let page = 0; page < pages; page += 1) ctx.clear(carriedKey(page));
      ctx.clear(CARRIED);
    });
  }

  /** Resolves when everything was sent. */
  async sent(): Promise<void> {
    for (const sending of this.#unsent.splice(0)) await sending();
  }

  async #store(entries: readonly LogEntry[], version: number): Promise<void> {
    const { sdk, ctx, names, hub } = this.#options;
    for (const entry of entries) {
      ctx.set(entryKey(entry.seq), await this.#contentsOf().shorten(entry));
      this.#row = addToRow(this.#row, entry, this.conversationId);
    }
    const length = (entries.at(-1)?.seq ?? -1) + 1;
    ctx.set(LENGTH, length);
    if (version !== this.#version) ctx.set(VERSION, version);
    this.#version = version;
    // Lists show no sub-agents.
    if (!this.#row?.parentId && entries.some(({ type }) => LISTED.has(type)))
      sendToObject(sdk, ctx, {
        service: names.index,
        key: shardOf(this.conversationId),
        method: 'put',
        parameter: { id: this.conversationId, row: { ...this.#row } },
      });
    const isReplyOpen = !entries.some(({ type }) => ENDS_REPLY.has(type));
    hub.publish(this.conversationId, { type: 'appended', length, ...(isReplyOpen && { isReplyOpen }) });
  }

  async #pages(id: string, length: number): Promise<unknown[]> {
    const { sdk, ctx, names } = this.#options;
    const entries: unknown[] = [];
    while (entries.length < length) {
      const page = await callObject<{ entries: unknown[] }>(sdk, ctx, {
        service: names.conversation,
        key: id,
        method: 'read',
        parameter: { from: entries.length, most: Math.min(READ_MAX, length - entries.length), isWhole: false },
      });
      if (page.entries.length === 0) break;
      entries.push(...page.entries);
    }
    return entries;
  }
}
