/**
 * The removal of a conversation: its log, its contents, its row, and what waits in its inbox, with those of its sub-agents. Invariant: no
 * act of a client is dropped without an answer, and what another conversation of the same id receives later stays.
 */
import type * as Restate from '@restatedev/restate-sdk';
import type { LogEntry } from '../../../machines/internal.ts';
import { type Act, type ActAnswer, isSubAgentOf, noConversation } from '../../stores/logStore.ts';
import type { BlobStore } from '../blobStore.ts';
import { unansweredIn } from '../chain/continuedAttempt.ts';
import { ContentStore } from '../contentStore.ts';
import {
  callObject,
  type KeptAct,
  LENGTH,
  type ObjectNames,
  type Sdk,
  sendToObject,
  shardOf,
  storedEntries,
  subAgentsIn,
} from '../objectCalls.ts';
import { storedRun, wholeRun } from '../restateAttempt.ts';

const REMOVED: ActAnswer = { error: { code: 'not_found', message: noConversation().message } };

interface Removal {
  sdk: Sdk;
  names: ObjectNames;
  store: BlobStore | undefined;
}

/** `parentId`: the parent that is removed. The log of another conversation stays. */
export async function removeConversation(
  ctx: Restate.ObjectContext,
  { sdk, names, store }: Removal,
  parentId: string | undefined,
): Promise<void> {
  const [first] = (await storedEntries(ctx, 0, 1)) as LogEntry[];
  // A sub-agent that could not be opened has no log, and has reported this.
  if (parentId !== undefined && first && !isSubAgentOf(first, parentId)) return;
  const send = (service: string, key: string, method: string, parameter: object): void =>
    sendToObject(sdk, ctx, { service, key, method, parameter });
  for (const key of subAgentsIn(await ctx.stateKeys())) {
    // Sent from here: an act of a later parent with this id arrives after it.
    send(names.inbox, key, 'dropActsOfParent', {});
    send(names.conversation, key, 'remove', { of: ctx.key });
  }
  // The invocation that waits for an act continues after the removal, and finds an empty object.
  for (const to of await unansweredActs(ctx, { sdk, store })) ctx.resolveAwakeable(to, REMOVED);
  ctx.clearAll();
  if (store) await ctx.run('remove', () => store.delete(ctx.key));
  await callObject(sdk, ctx, { service: names.inbox, key: ctx.key, method: 'empty', parameter: {} });
  send(names.index, shardOf(ctx.key), 'put', { id: ctx.key });
  if (parentId !== undefined) send(names.conversation, parentId, 'forget', {});
}

const READ_RETRIES = { maxRetryAttempts: 10, maxRetryDuration: 60_000 };

/**
 * The acts of clients that the stored record of a run contains and that have no answer. It is a step of its own, because the record is
 * deleted afterwards. If the record is lost, these acts are unknown, and get no answer.
 */
async function unansweredActs(
  ctx: Restate.ObjectContext,
  { sdk, store }: Pick<Removal, 'sdk' | 'store'>,
): Promise<string[]> {
  const stored = await storedRun(ctx);
  if (!stored) return [];
  const read = async (): Promise<string[]> => {
    const run = await wholeRun(stored, new ContentStore(store, ctx.key));
    return unansweredIn(run).flatMap(({ to, place }) => (place ? [] : [to]));
  };
  try {
    return await ctx.run('unanswered', read, READ_RETRIES);
  } catch (error) {
    if (!(error instanceof sdk.TerminalError)) throw error;
    return [];
  }
}

/** A sub-agent of a removed conversation was removed too. It may have sent news after the removal of its parent. */
export async function forgetNews(ctx: Restate.ObjectContext, { sdk, names, store }: Removal): Promise<void> {
  // Another conversation of this id takes them and ignores them.
  if ((await ctx.get<number>(LENGTH)) !== null) return;
  const request = { service: names.inbox, key: ctx.key, method: 'empty', parameter: {} };
  const { hadContents } = await callObject<Emptied>(sdk, ctx, request);
  if (store && hadContents) await ctx.run('remove', () => store.delete(ctx.key));
}

interface Emptied {
  /** Something was dropped whose contents are in the blob store. */
  hadContents: boolean;
}

const isOpen = (waiting: KeptAct): boolean => 'act' in waiting && (waiting.act as Partial<Act> | null)?.type === 'open';

/**
 * Called when nothing holds the conversation. A client opens a conversation first, so acts before an `open` are for the removed one. The
 * contents of a large act may be deleted already.
 */
export async function emptyInbox(ctx: Restate.ObjectContext): Promise<Emptied> {
  const waiting = (await ctx.get<KeptAct[]>('acts')) ?? [];
  const opening = waiting.findIndex(isOpen);
  const isForLater = (each: KeptAct, index: number): boolean =>
    'act' in each ? opening >= 0 && index >= opening && !ContentStore.isName(each.act) : !each.isNews;
  const dropped = waiting.filter((each, index) => !isForLater(each, index));
  for (const each of dropped) if ('act' in each) ctx.resolveAwakeable(each.to, REMOVED);
  keep(ctx, waiting.filter(isForLater));
  ctx.clear('bell');
  return { hadContents: dropped.some((each) => ContentStore.isName('act' in each ? each.act : each.sent)) };
}

/** The parent of this sub-agent is removed and waits for no answer. */
export async function dropActsOfParent(ctx: Restate.ObjectContext): Promise<void> {
  const waiting = (await ctx.get<KeptAct[]>('acts')) ?? [];
  keep(
    ctx,
    waiting.filter((each) => 'act' in each || each.isNews),
  );
}

function keep(ctx: Pick<Restate.ObjectContext, 'set' | 'clear'>, acts: readonly KeptAct[]): void {
  if (acts.length > 0) ctx.set('acts', acts);
  else ctx.clear('acts');
}
