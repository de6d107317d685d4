/**
 * The object of the index of conversations: the rows of one shard, also in the list of the store. Invariant: the writes of a shard have one
 * order, and a write that the database does not take holds up the others for a few seconds at most. It is repeated later.
 */
import type * as Restate from '@restatedev/restate-sdk';
import type { ConversationRow } from '../../stores/conversationRow.ts';
import type { BlobStore } from '../blobStore.ts';
import { isListing } from '../listedRows.ts';
import { objectNames, type Sdk, sendToObject } from '../objectCalls.ts';

/** Without a row, the conversation is removed. */
interface Listed {
  id: string;
  row?: ConversationRow;
}
/** A write whose attempts failed, and the time until it is repeated. */
interface LaterWrite extends Listed {
  waitMs: number;
}

const RETRIES = { maxRetryAttempts: 5, maxRetryDuration: 10_000, initialRetryInterval: 100 };
const WAIT_MS = { first: 60_000, most: 600_000 };

/** The write of a conversation that was removed is followed by that of a later conversation with the same id. */
const rowsAfter = ({ row }: Listed, current: ConversationRow | null): (ConversationRow | undefined)[] =>
  row || !current ? [row] : [undefined, current];

const isSame = (row: ConversationRow, current: ConversationRow | null): boolean =>
  JSON.stringify(row) === JSON.stringify(current);

export function indexObject({ sdk, service, store }: { sdk: Sdk; service: string; store?: BlobStore | undefined }) {
  const { index } = objectNames(service);

  /** Gives up after some attempts, and asks the object to write again later. */
  async function write(
    ctx: Restate.ObjectContext,
    { id, row, waitMs }: LaterWrite,
    act: () => Promise<void>,
    retries: Restate.RunOptions<void>,
  ): Promise<void> {
    try {
      await ctx.run('list', act, retries);
    } catch (error) {
      if (!(error instanceof sdk.TerminalError)) throw error;
      console.warn({ event: 'list-failed', conversationId: id, error });
      const parameter: LaterWrite = { id, ...(row && { row }), waitMs: Math.min(2 * waitMs, WAIT_MS.most) };
      sendToObject(sdk, ctx, { service: index, key: ctx.key, method: 'putAgain', parameter, delay: waitMs });
    }
  }

  return sdk.object({
    name: index,
    handlers: {
      put: async (ctx: Restate.ObjectContext, { id, row }: Listed): Promise<void> => {
        if (row) ctx.set(id, row);
        else ctx.clear(id);
        if (!isListing(store)) return;
        const first = { id, ...(row && { row }), waitMs: WAIT_MS.first };
        await write(ctx, first, () => store.putRow(service, id, row), RETRIES);
      },
      putAgain: sdk.handlers.object.exclusive(
        { ingressPrivate: true },
        async (ctx: Restate.ObjectContext, later: LaterWrite): Promise<void> => {
          if (!isListing(store)) return;
          const { id, row } = later;
          const current = await ctx.get<ConversationRow>(id);
          // A later row has a write of its own.
          if (row && !isSame(row, current)) return;
          const putRows = async (): Promise<void> => {
            for (const each of rowsAfter(later, current)) await store.putRow(service, id, each);
          };
          await write(ctx, later, putRows, { maxRetryAttempts: 1 });
        },
      ),
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
