/**
 * The virtual objects of the engine: a conversation, its inbox, and the index of conversations. Invariant: one invocation at a time
 * holds a conversation, and nothing is parked while a decision is awaited. An act is in the inbox until the holder's journal has it.
 */
import type * as Restate from '@restatedev/restate-sdk';
import type { EngineAgent } from '../agent.ts';
import { type Conversation, entriesOf } from '../conversation/conversation.ts';
import type { Live } from '../live.ts';
import type { Act, ActAnswer } from '../stores/logStore.ts';
import type { BlobStore } from './blobStore.ts';
import { holdConversation } from './chain/holdConversation.ts';
import { ContentStore } from './contentStore.ts';
import { type LiveHub, lossy } from './liveHub.ts';
import {
  CARRIED,
  callObject,
  type KeptAct,
  LENGTH,
  objectNames,
  READ_MAX,
  type Sdk,
  sendToObject,
  storedEntries,
  VERSION,
  wholeEntries,
} from './objectCalls.ts';
import { indexObject } from './objects/indexObject.ts';
import { dropActsOfParent, emptyInbox, forgetNews, removeConversation } from './objects/removedConversation.ts';
import { RestateAttempt } from './restateAttempt.ts';

export interface ObjectsOptions {
  sdk: Sdk;
  agent: EngineAgent;
  service: string;
  hub: LiveHub;
  /** Keeps large contents. */
  store?: BlobStore | undefined;
}

/** The definitions for an endpoint. */
export const engineObjects = (options: ObjectsOptions) => [
  conversationObject(options),
  inboxObject(options),
  indexObject(options),
];

/** A page of a log. `isWhole`: the blob store's contents are in their places. */
interface ReadRequest {
  from: number;
  most?: number;
  isWhole?: boolean;
}
/** A page ends after this number of characters. */
const PAGE_CHARACTERS = 4_000_000;

/** The first items, at least one. */
function pageOf(items: readonly unknown[]): unknown[] {
  let characters = 0;
  const end = items.findIndex((item, index) => {
    characters += JSON.stringify(item).length;
    return index > 0 && characters > PAGE_CHARACTERS;
  });
  return items.slice(0, end < 0 ? items.length : end);
}

const NO_ACT = 'expected an act: an object with the texts type and actId';
const NO_STORE = 'expected an act, got its name in a blob store: give serveAgent the option store';

const isActLike = (value: unknown): boolean => {
  const { type, actId } = (value ?? {}) as Partial<Act>;
  return typeof type === 'string' && typeof actId === 'string';
};

/** A large act is in the blob store before it waits. */
async function keptAct(
  ctx: Pick<Restate.ObjectSharedContext, 'run'>,
  contents: ContentStore,
  asked: unknown,
): Promise<{ kept: unknown; isAct: boolean }> {
  if (ContentStore.isName(asked))
    return { kept: asked, isAct: await ctx.run('find', async () => isActLike(await contents.whole(asked))) };
  const isAct = isActLike(asked);
  if (!isAct || !contents.isLarge(asked)) return { kept: asked, isAct };
  return { kept: await ctx.run('keep', () => contents.shorten(asked)), isAct };
}

/** An earlier attempt may have streamed a part of the same reply, so the first text of a reply comes after a reset. */
function publishLive(conversation: Conversation, id: string, hub: Pick<LiveHub, 'publish'>): void {
  const begun = new Set<string>();
  conversation.live$.subscribe((signal: Live) => {
    const next = entriesOf(conversation).length;
    const { path } = signal;
    const place = JSON.stringify(path ?? []);
    if ('text' in signal && !begun.has(place)) {
      begun.add(place);
      const reset: Live = { type: 'reset', runId: signal.runId, ...(path && { path }) };
      hub.publish(id, { type: 'live', next, signal: reset });
    }
    hub.publish(id, { type: 'live', next, signal });
  });
}

/** Signals of a sub-agent, for the watchers of its parent. A hub that fails loses them. */
function followLive(hub: LiveHub, id: string, receive: (signal: Live) => void): () => void {
  try {
    return hub.subscribe(id, (signal) => {
      if (signal.type === 'live') receive(signal.signal);
    });
  } catch (error) {
    console.warn({ event: 'hub-failed', error });
    return () => {};
  }
}

function conversationObject({ sdk, agent, service, hub: liveHub, store }: ObjectsOptions) {
  const names = objectNames(service);
  const hub = lossy(liveHub);
  const { shared, exclusive } = sdk.handlers.object;
  return sdk.object({
    name: names.conversation,
    handlers: {
      hold: exclusive({ ingressPrivate: true }, async (ctx: Restate.ObjectContext): Promise<void> => {
        const contentsOf = (id: string): ContentStore => new ContentStore(store, id);
        const invocation = new RestateAttempt({ sdk, ctx, names, hub, contentsOf });
        await holdConversation({
          agent,
          invocation,
          opened: (conversation) => publishLive(conversation, ctx.key, hub),
          followLive: (id, receive) => followLive(liveHub, id, receive),
        });
        await invocation.sent();
      }),
      ask: shared(async (ctx: Restate.ObjectSharedContext, asked: unknown): Promise<ActAnswer> => {
        const contents = new ContentStore(store, ctx.key);
        if (ContentStore.isName(asked) && !store) throw new sdk.TerminalError(NO_STORE, { errorCode: 413 });
        const { kept, isAct } = await keptAct(ctx, contents, asked);
        // An act that nobody can carry out would stay in the inbox.
        if (!isAct) throw new sdk.TerminalError(NO_ACT, { errorCode: 400 });
        const { id, promise } = ctx.awakeable<unknown>();
        await callObject(sdk, ctx, {
          service: names.inbox,
          key: ctx.key,
          method: 'put',
          parameter: { act: kept, to: id },
        });
        return contents.whole<ActAnswer>(await promise);
      }),
      read: shared(async (ctx: Restate.ObjectSharedContext, request: ReadRequest) => {
        const { from, most = READ_MAX, isWhole = true } = request;
        const length = (await ctx.get<number>(LENGTH)) ?? 0;
        const stored = await storedEntries(ctx, from, Math.min(length, from + Math.min(most, READ_MAX)));
        const entries = isWhole ? await wholeEntries(new ContentStore(store, ctx.key), stored) : stored;
        return { length, entries: pageOf(entries) };
      }),
      /** For the parent of a sub-agent, when nothing holds it. */
      state: exclusive({ ingressPrivate: true }, async (ctx: Restate.ObjectContext) => ({
        length: (await ctx.get<number>(LENGTH)) ?? 0,
        version: (await ctx.get<number>(VERSION)) ?? 0,
        isUnderWay: (await ctx.get<object>(CARRIED)) !== null,
      })),
      remove: exclusive((ctx: Restate.ObjectContext, request?: { of?: string }) =>
        removeConversation(ctx, { sdk, names, store }, request?.of),
      ),
      forget: exclusive({ ingressPrivate: true }, (ctx: Restate.ObjectContext) =>
        forgetNews(ctx, { sdk, names, store }),
      ),
    },
    options: { enableLazyState: true, journalRetention: 0, idempotencyRetention: { hours: 1 } },
  });
}

/** Acts, and news of sub-agents, that no holder has taken. */
function inboxObject({ sdk, service }: ObjectsOptions) {
  const names = objectNames(service);
  return sdk.object({
    name: names.inbox,
    handlers: {
      put: async (ctx: Restate.ObjectContext, waiting: KeptAct): Promise<void> => {
        ctx.set('acts', [...((await ctx.get<KeptAct[]>('acts')) ?? []), waiting]);
        const bell = await ctx.get<string>('bell');
        ctx.clear('bell');
        if (bell) ctx.resolveAwakeable(bell, null);
        // News matter to a holder alone.
        if ('isNews' in waiting && waiting.isNews) return;
        // The holder may be about to end, so another one follows it.
        sendToObject(sdk, ctx, { service: names.conversation, key: ctx.key, method: 'hold', parameter: {} });
      },
      /** `bell`: an awakeable that the next act resolves. */
      take: async (ctx: Restate.ObjectContext, { bell }: { bell: string | null }): Promise<KeptAct[]> => {
        const acts = (await ctx.get<KeptAct[]>('acts')) ?? [];
        ctx.clear('acts');
        if (bell === null) ctx.clear('bell');
        else ctx.set('bell', bell);
        return acts;
      },
      empty: emptyInbox,
      dropActsOfParent,
    },
    options: { ingressPrivate: true, journalRetention: 0 },
  });
}
