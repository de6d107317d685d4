/**
 * The virtual objects of the engine: a conversation, its inbox, and the index of conversations. Invariant: one invocation at a time
 * holds a conversation, and nothing is parked while a decision is awaited. An act is in the inbox until the holder's journal has it.
 */
import type * as Restate from '@restatedev/restate-sdk';
import type { LogEntry } from '../../machines/internal.ts';
import type { EngineAgent } from '../agent.ts';
import { entriesOf } from '../conversation/conversation.ts';
import type { Live } from '../live.ts';
import type { ConversationRow } from '../stores/conversationRow.ts';
import { addToRow } from '../stores/conversationSummary.ts';
import type { Act, ActAnswer } from '../stores/logStore.ts';
import { type EngineAttempt, holdConversation, type WaitingAct } from './heldConversation.ts';
import { type LiveHub, lossy } from './liveHub.ts';

export type Sdk = typeof Restate;

/** The names of the objects of one service. */
export const objectNames = (service: string) => ({
  conversation: service,
  inbox: `${service}Inbox`,
  index: `${service}Index`,
});

/** The number of objects over which the index is spread. */
export const INDEX_SHARDS = 16;
export function shardOf(id: string): string {
  let hash = 0;
  for (const character of id) hash = (Math.imul(hash, 31) + (character.codePointAt(0) ?? 0)) | 0;
  return String(Math.abs(hash) % INDEX_SHARDS);
}

/** The most entries of one answer. */
export const READ_MAX = 500;

const keyOf = (seq: number): string => `e/${seq}`;

export interface ObjectsOptions {
  sdk: Sdk;
  agent: EngineAgent;
  service: string;
  hub: LiveHub;
}

/** The definitions for an endpoint. */
export const engineObjects = (options: ObjectsOptions) => [
  conversationObject(options),
  inboxObject(options),
  indexObject(options),
];

const readEntries = async (
  ctx: Pick<Restate.ObjectSharedContext, 'get'>,
  from: number,
  upTo: number,
): Promise<LogEntry[]> => {
  const asked = Array.from({ length: Math.max(0, upTo - from) }, (_, index) => ctx.get<LogEntry>(keyOf(from + index)));
  const entries: LogEntry[] = [];
  for (const get of asked) {
    const entry = await get;
    if (entry) entries.push(entry);
  }
  return entries;
};

function conversationObject({ sdk, agent, service, hub: given }: ObjectsOptions) {
  const names = objectNames(service);
  const hub = lossy(given);
  const { shared, exclusive } = sdk.handlers.object;
  return sdk.object({
    name: names.conversation,
    handlers: {
      hold: exclusive({ ingressPrivate: true }, async (ctx: Restate.ObjectContext): Promise<void> => {
        const invocation = new RestateInvocation(sdk, ctx, names, hub);
        await holdConversation({
          agent,
          invocation,
          opened: (conversation) => {
            const { live$ } = conversation;
            live$.subscribe((signal: Live) => {
              hub.publish(ctx.key, { type: 'live', next: entriesOf(conversation).length, signal });
            });
          },
        });
      }),
      ask: shared(async (ctx: Restate.ObjectSharedContext, act: Act): Promise<ActAnswer> => {
        // An act that nobody can carry out would stay in the inbox.
        if (typeof act?.type !== 'string' || typeof act.actId !== 'string')
          throw new sdk.TerminalError('expected an act: an object with the texts type and actId', { errorCode: 400 });
        const { id, promise } = ctx.awakeable<ActAnswer>();
        await call(sdk, ctx, { service: names.inbox, key: ctx.key, method: 'put', parameter: { act, to: id } });
        return promise;
      }),
      read: shared(async (ctx: Restate.ObjectSharedContext, { from }: { from: number }) => {
        const length = (await ctx.get<number>('length')) ?? 0;
        return { length, entries: await readEntries(ctx, from, Math.min(length, from + READ_MAX)) };
      }),
      remove: exclusive(async (ctx: Restate.ObjectContext): Promise<void> => {
        ctx.clearAll();
        send(sdk, ctx, { service: names.index, key: shardOf(ctx.key), method: 'put', parameter: { id: ctx.key } });
      }),
    },
    options: { enableLazyState: true, journalRetention: 0, idempotencyRetention: { hours: 1 } },
  });
}

/** Acts that no holder has taken. */
function inboxObject({ sdk, service }: ObjectsOptions) {
  const names = objectNames(service);
  return sdk.object({
    name: names.inbox,
    handlers: {
      put: async (ctx: Restate.ObjectContext, waiting: WaitingAct): Promise<void> => {
        ctx.set('acts', [...((await ctx.get<WaitingAct[]>('acts')) ?? []), waiting]);
        const bell = await ctx.get<string>('bell');
        ctx.clear('bell');
        if (bell) ctx.resolveAwakeable(bell, null);
        // The holder may be about to end, so another one follows it.
        send(sdk, ctx, { service: names.conversation, key: ctx.key, method: 'hold', parameter: {} });
      },
      /** `bell`: an awakeable that the next act resolves. */
      take: async (ctx: Restate.ObjectContext, { bell }: { bell: string | null }): Promise<WaitingAct[]> => {
        const acts = (await ctx.get<WaitingAct[]>('acts')) ?? [];
        ctx.clear('acts');
        if (bell === null) ctx.clear('bell');
        else ctx.set('bell', bell);
        return acts;
      },
    },
    options: { ingressPrivate: true, journalRetention: 0 },
  });
}

/** The rows of the conversations of one shard. */
function indexObject({ sdk, service }: ObjectsOptions) {
  return sdk.object({
    name: objectNames(service).index,
    handlers: {
      /** Without a row, the conversation is removed. */
      put: async (ctx: Restate.ObjectContext, { id, row }: { id: string; row?: ConversationRow }): Promise<void> => {
        if (row) ctx.set(id, row);
        else ctx.clear(id);
      },
      list: sdk.handlers.object.shared(async (ctx: Restate.ObjectSharedContext): Promise<ConversationRow[]> => {
        const rows: ConversationRow[] = [];
        for (const key of await ctx.stateKeys()) {
          const row = await ctx.get<ConversationRow>(key);
          if (row) rows.push(row);
        }
        return rows;
      }),
    },
    options: { journalRetention: 0 },
  });
}

type Caller = Pick<Restate.ObjectContext, 'genericCall' | 'genericSend'>;

/** A request from one object to another. */
interface ObjectRequest {
  service: string;
  key: string;
  method: string;
  parameter: object;
}

/** Its type has an optional field that may also be undefined. */
const jsonOf = <T>({ serde }: Sdk): Restate.Serde<T> => serde.json as Restate.Serde<T>;

const call = <T>(sdk: Sdk, ctx: Caller, request: ObjectRequest): Promise<T> =>
  ctx.genericCall<object, T>({ ...request, inputSerde: jsonOf(sdk), outputSerde: jsonOf(sdk) });

const send = (sdk: Sdk, ctx: Caller, request: ObjectRequest): void =>
  void ctx.genericSend<object>({ ...request, inputSerde: jsonOf(sdk) });

/** Entries after which a list shows something else. */
const LISTED: ReadonlySet<LogEntry['type']> = new Set([
  'conversation',
  'run-started',
  'run-resumed',
  'run-suspended',
  'run-stop',
  'renamed',
]);

/** One attempt of the invocation that holds a conversation. */
class RestateInvocation implements EngineAttempt {
  readonly conversationId: string;
  readonly attempt: string = crypto.randomUUID();
  readonly signal: AbortSignal;
  readonly #sdk: Sdk;
  readonly #ctx: Restate.ObjectContext;
  readonly #names: ReturnType<typeof objectNames>;
  readonly #hub: Pick<LiveHub, 'publish'>;
  #bell: Restate.RestatePromise<unknown> | undefined;
  #row: ConversationRow | undefined;

  constructor(
    sdk: Sdk,
    ctx: Restate.ObjectContext,
    names: ReturnType<typeof objectNames>,
    hub: Pick<LiveHub, 'publish'>,
  ) {
    this.conversationId = ctx.key;
    this.signal = ctx.request().attemptCompletedSignal;
    this.#sdk = sdk;
    this.#ctx = ctx;
    this.#names = names;
    this.#hub = hub;
  }

  async step<T>(name: string, act: () => T | Promise<T>, rung?: () => Promise<void>): Promise<T> {
    // The same value in each attempt: what is recorded is JSON.
    const run = this.#ctx.run(name, async () => JSON.stringify(await act())).map((text) => ({ text }));
    for (;;) {
      const bell = rung ? this.#bell : undefined;
      const { text } = bell
        ? await this.#sdk.RestatePromise.race([run, bell.map(() => ({ text: undefined }))])
        : await run;
      if (text !== undefined) return JSON.parse(text) as T;
      this.#bell = undefined;
      await rung?.();
    }
  }

  async takeActs(isListening: boolean): Promise<readonly WaitingAct[]> {
    const bell = isListening ? this.#ctx.awakeable<null>() : undefined;
    this.#bell = bell?.promise;
    const parameter = { bell: bell?.id ?? null };
    return call(this.#sdk, this.#ctx, {
      service: this.#names.inbox,
      key: this.conversationId,
      method: 'take',
      parameter,
    });
  }

  async readLog(): Promise<LogEntry[]> {
    const entries = await readEntries(this.#ctx, 0, (await this.#ctx.get<number>('length')) ?? 0);
    for (const entry of entries) this.#row = addToRow(this.#row, entry, this.conversationId);
    return entries;
  }

  append(entries: readonly LogEntry[]): void {
    for (const entry of entries) {
      this.#ctx.set(keyOf(entry.seq), entry);
      this.#row = addToRow(this.#row, entry, this.conversationId);
    }
    const length = (entries.at(-1)?.seq ?? -1) + 1;
    this.#ctx.set('length', length);
    if (entries.some(({ type }) => LISTED.has(type)))
      send(this.#sdk, this.#ctx, {
        service: this.#names.index,
        key: shardOf(this.conversationId),
        method: 'put',
        parameter: { id: this.conversationId, row: { ...this.#row } },
      });
    this.#hub.publish(this.conversationId, { type: 'appended', length });
  }

  answer(to: string, answer: ActAnswer): void {
    this.#ctx.resolveAwakeable(to, answer);
  }
}
