/**
 * The list of conversations in a table of PostgreSQL. Invariant: a page has the order, the cursors and the statuses of a list from the
 * engine's index. A write that comes late, of a worker that is cut off, replaces no later row.
 */
import { type ConversationRow, listedRow } from '../stores/conversationRow.ts';
import type { ConversationInfo, ListOptions } from '../stores/logStore.ts';
import { storeError } from '../stores/postgres/database.ts';
import { placeText } from '../stores/postgres/identifiers.ts';
import { pageStatement } from '../stores/postgres/statements.ts';
import { cursorOf, placeOf } from '../stores/rowTable.ts';
import { sha256 } from '../stores/sha256.ts';
import { hasMethods } from '../validation.ts';
import type { BlobStore } from './blobStore.ts';

/** A place for large contents that also keeps the list of conversations of each service. */
export interface ListingStore extends BlobStore {
  /** Stores the row of a conversation. Undefined removes it. */
  putRow(service: string, conversationId: string, row: ConversationRow | undefined): Promise<void>;
  /** Resolves with a page of the conversations of a service, as `list` of an agent does. */
  listRows(service: string, options?: ListOptions): Promise<ConversationInfo[]>;
}

export const isListing = (store: BlobStore | undefined): store is ListingStore =>
  hasMethods(store, 'putRow', 'listRows');

type Rows = Pick<ListingStore, 'putRow' | 'listRows'>;
type Query = (text: string, values: unknown[]) => Promise<Record<string, unknown>[]>;

/** The statements that make the table in the quoted schema. */
export const listTables = (schema: string): string[] => [
  // `conversation` and `owner` are hashes, because a text may have a NUL or half of a surrogate pair, or be too long for an index.
  // `place` is the id as UTF-16, the order of JavaScript.
  `create table if not exists ${schema}.listed (
    service text collate "C" not null,
    conversation text collate "C" not null,
    place bytea not null,
    updated_at double precision not null,
    length integer not null,
    owner text collate "C",
    cycle text collate "C" not null,
    summary text not null,
    primary key (service, conversation)
  )`,
  `create index if not exists listed_latest on ${schema}.listed (service, updated_at desc)`,
  `create index if not exists listed_owned on ${schema}.listed (service, owner, updated_at desc) where owner is not null`,
  `create index if not exists listed_open on ${schema}.listed (service, cycle, updated_at desc) where cycle <> 'ended'`,
];
/** The object that is made last, as an argument of `to_regclass`. */
export const lastOfList = (schema: string): string => `${schema}.listed_open`;

/** JSON has neither NUL nor half of a surrogate pair. */
const hashOf = (text: string): string => sha256(new TextEncoder().encode(JSON.stringify(text)));
const CYCLES = { active: 'running', waiting: 'suspended', idle: 'ended' } as const;

/** `query` sends a statement when the table exists. */
export function rowsIn(schema: string, query: Query): Rows {
  const table = `${schema}.listed`;
  return {
    async putRow(service, id, row) {
      // The conversation of a sub-agent is not listed.
      if (!row || row.parentId !== undefined)
        return void (await query(`delete from ${table} where service = $1 and conversation = $2`, [
          service,
          hashOf(id),
        ]));
      const { updatedAt, length, owner, cycle } = row;
      const statement = `insert into ${table} as stored
          (service, conversation, place, updated_at, length, owner, cycle, summary)
        values ($1, $2, decode($3, 'hex'), $4::double precision, $5::integer, $6, $7, $8)
        on conflict (service, conversation) do update set updated_at = excluded.updated_at, length = excluded.length,
          owner = excluded.owner, cycle = excluded.cycle, summary = excluded.summary
          where stored.length <= excluded.length`;
      const values = [updatedAt, length, owner === undefined ? null : hashOf(owner), cycle, JSON.stringify(row)];
      await query(statement, [service, hashOf(id), placeText(id), ...values]);
    },
    async listRows(service, { owner, status, limit, cursor } = {}) {
      const after = cursor === undefined ? undefined : placeOf(cursor);
      const values: unknown[] = [service];
      const where = ['service = $1'];
      if (owner !== undefined) where.push(`owner = $${values.push(hashOf(owner))}`);
      if (status !== undefined) where.push(`cycle = $${values.push(CYCLES[status])}`);
      const place = after && { updatedAt: after.updatedAt, place: placeText(after.id) };
      const statement = pageStatement(`select summary from ${table}`, { where, values, after: place, limit });
      const rows = await query(statement.text, statement.values).catch((cause) => {
        throw storeError('the conversations cannot be listed', cause);
      });
      return rows.flatMap(({ summary }) => {
        const row = JSON.parse(String(summary)) as ConversationRow;
        const info = engineRow(row);
        return info ? [{ ...info, cursor: cursorOf(row) }] : [];
      });
    },
  };
}

/** The row as a list shows it: a run has a holder in the engine until it ends. */
export const engineRow = (row: ConversationRow): ConversationInfo | null =>
  listedRow(row, row.cycle === 'running' ? 'other' : 'nobody');
