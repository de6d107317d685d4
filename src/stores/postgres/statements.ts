/**
 * The statements of the store. Invariant: a lease is judged by the database's clock, inside the statement that depends on it. Only the
 * quoted schema is inserted into the text.
 */
const lease = (parameter: string): string => `${NOW} + ${parameter}::double precision * interval '1 millisecond'`;

export type Statements = ReturnType<typeof statementsOf>;

const NOW = 'clock_timestamp()';
/** $1 channel, $2 payload. A notification need not be durable. */
export const NOTIFY = "select pg_notify($1, $2), set_config('synchronous_commit', 'off', true)";

export function statementsOf(schema: string) {
  const conversations = `${schema}.conversations`;
  const entries = `${schema}.entries`;
  const blobs = `${schema}.blobs`;
  return {
    ...appendStatements(schema),
    ...actStatements(schema),
    epochs: `select nextval('${schema}.epochs') as epoch`,

    find: `select owner, length, lease_until > ${NOW} as held from ${conversations} where id = $1`,

    /** $1 id, $2 place, $3 epoch, $4 lease. Repeated with one epoch it has one effect. No row is returned if there is another holder. */
    open: `
      insert into ${conversations} as c (id, place, epoch, lease_until)
      values ($1, decode($2, 'hex'), $3::bigint, ${lease('$4')})
      on conflict (id) do update set epoch = excluded.epoch, lease_until = excluded.lease_until
        where c.lease_until <= ${NOW} or c.epoch = excluded.epoch
      returning length, summary, owner`,

    /** $1 id, $2 epoch. */
    release: `
      with empty as (delete from ${conversations} where id = $1 and epoch = $2::bigint and length = 0)
      update ${conversations} set lease_until = '-infinity' where id = $1 and epoch = $2::bigint and length > 0`,

    /** $1 ids, $2 epochs, $3 lease. A row that is being changed is left out: that change renews it itself, or ends the lease. */
    renew: `
      with held as (
        select c.id from ${conversations} c
        join unnest(($1::text)::text[], ($2::text)::bigint[]) as h (id, epoch) on c.id = h.id and c.epoch = h.epoch
        where c.lease_until > ${NOW} for update of c skip locked
      )
      update ${conversations} c set lease_until = ${lease('$3')} from held
      where c.id = held.id and c.lease_until > ${NOW} returning c.id`,

    /** $1 ids, $2 epochs. Those whose lease is still held. */
    held: `
      select c.id from ${conversations} c
      join unnest(($1::text)::text[], ($2::text)::bigint[]) as h (id, epoch) on c.id = h.id and c.epoch = h.epoch
      where c.lease_until > ${NOW}`,

    /**
     * $1 id, $2 epoch, $3 the next epoch, $4 lease. Statements that were sent under the old epoch are stored now, or never will be.
     * A lease that is over stays over. No row is returned if there is another holder.
     */
    fence: `
      update ${conversations} set epoch = $3::bigint,
        lease_until = case when lease_until > ${NOW} then ${lease('$4')} else lease_until end
      where id = $1 and epoch in ($2::bigint, $3::bigint)
      returning length, lease_until > ${NOW} as held`,

    /** $1 id, $2 epoch, $3 first seq, $4 the seq after the last. */
    countOf: `
      select count(*) as count from ${entries}
      where conversation = $1 and epoch = $2::bigint and seq >= $3::integer and seq < $4::integer`,

    /**
     * $1 id, $2 first seq, $3 the seq after the last. At most 1000 entries, and about 8 MiB. The range is small, whatever statistics the
     * planner has of the table.
     */
    read: `
      select entry from (
        select seq, entry, sum(octet_length(entry)) over (order by seq) - octet_length(entry) as before from ${entries}
        where conversation = $1 and seq >= $2::integer and seq < least($3::integer, $2::integer + 1000)
      ) sized where before < 8388608 order by seq`,

    /** $1 id, $2 epoch, $3 SHA-256, $4 bytes. No row is returned if there is another holder. */
    putBlob: `
      with held as (select id from ${conversations} where id = $1 and epoch = $2::bigint and lease_until > ${NOW}),
      put as (
        insert into ${blobs} (conversation, sha256, bytes) select id, $3, $4::bytea from held on conflict do nothing
      )
      select id from held`,

    /** $1 id, $2 SHA-256. */
    getBlob: `select bytes from ${blobs} where conversation = $1 and sha256 = $2`,

    /** $1 id. Locks the conversation and its sub-agents, in one order. */
    lockFamily: `
      with recursive family as (
        select id from ${conversations} where id = $1
        union select c.id from ${conversations} c join family f on c.parent = f.id
      )
      select id, lease_until > ${NOW} as held from ${conversations} where id in (select id from family) order by id for update`,

    /** $1 ids. */
    deleteAll: [`${schema}.acts`, blobs, entries].map(
      (table) => `delete from ${table} where conversation = any(($1::text)::text[])`,
    ),
    deleteRows: `delete from ${conversations} where id = any(($1::text)::text[])`,

    list: listStatement(conversations),

    /**
     * $1 ids. The query that followers repeat. A conversation that is gone has no row. `cut_off`: its holder has died in the middle
     * of a run, or between the repair of the log and the resumption. A holder that releases a conversation has ended its work.
     */
    states: `
      select id, length, coalesce(lease_until <= ${NOW} and (cycle is not distinct from 'running'
        or (lease_until > '-infinity' and summary like '%"lastCause":"crash"%')), false) as cut_off
      from ${conversations} where id = any(($1::text)::text[])`,

    notify: NOTIFY,
  } as const;
}

function appendStatements(schema: string) {
  const conversations = `${schema}.conversations`;
  const entries = `${schema}.entries`;
  const acts = `${schema}.acts`;
  const appended = `
        update ${conversations} set length = length + $5::integer, summary = $6, updated_at = $7::double precision,
          owner = $8, parent = $9, cycle = $10, lease_until = ${lease('$11')}
        where id = $1 and epoch = $2::bigint and length = $3::integer and lease_until > ${NOW}
        returning length`;
  const added = `
        insert into ${entries} (conversation, seq, epoch, entry)
        select $1, $3::integer + place::integer - 1, $2::bigint, entry
        from unnest(($4::text)::text[]) with ordinality as t (entry, place) where exists (select from held)`;
  return {
    /**
     * The same with $12 the ids of the acts whose effects the entries are, and $13 their answers. An act is answered with its
     * effect or not at all.
     */
    appendWithAnswers: `
      with held as (
        ${appended}
      ), added as (
        ${added}
      ), answered as (
        update ${acts} a set answer = t.answer from unnest(($12::text)::text[], ($13::text)::text[]) as t (act_id, answer)
        where a.act_id = t.act_id and a.answer is null and exists (select from held)
      )
      select length from held`,

    /**
     * $1 id, $2 epoch, $3 expected seq, $4 entries, $5 their number, $6 to $10 the row in lists, $11 lease. Proves the epoch, the
     * lease and the seq, and renews the lease. No row is returned if nothing was stored.
     */
    append: `
      with held as (
        ${appended}
      ), added as (
        ${added}
      )
      select length from held`,
  } as const;
}

function actStatements(schema: string) {
  const conversations = `${schema}.conversations`;
  const acts = `${schema}.acts`;
  return {
    /** $1 act id, $2 conversation, $3 act, $4 its time in ms. Removes acts that nobody can ask about any more. */
    putAct: `
      with old as (
        delete from ${acts} where act_id in (
          select act_id from ${acts} where expires_at < ${NOW} - interval '1 hour' limit 100 for update skip locked
        )
      )
      insert into ${acts} (act_id, conversation, act, expires_at) values ($1, $2, $3, ${lease('$4')})
      on conflict (act_id) do nothing`,

    /**
     * $1 act id, $2 conversation. `open`: a holder may still begin with it. `under_way`: a living holder has begun. `held`: somebody
     * holds the conversation.
     */
    actState: `
      select a.answer, a.conversation = $2 as same, a.expires_at > ${NOW} as open,
        coalesce(c.lease_until > ${NOW}, false) as held,
        coalesce(c.lease_until > ${NOW} and c.epoch = a.claimed, false) as under_way
      from ${acts} a left join ${conversations} c on c.id = a.conversation where a.act_id = $1`,

    /** $1 act id. Only while no living holder has begun with it. */
    withdrawAct: `
      delete from ${acts} a where a.act_id = $1 and a.answer is null and not exists (
        select from ${conversations} c where c.id = a.conversation and c.epoch = a.claimed and c.lease_until > ${NOW}
      ) returning a.act_id`,

    /** $1 ids, $2 epochs. The acts of these conversations that have no answer, again and again. */
    claimActs: `
      update ${acts} a set claimed = c.epoch from ${conversations} c
      join unnest(($1::text)::text[], ($2::text)::bigint[]) as h (id, epoch) on c.id = h.id and c.epoch = h.epoch
      where a.conversation = c.id and a.answer is null
        and c.lease_until > ${NOW} and (a.expires_at > ${NOW} or a.claimed is not null)
      returning a.act_id, a.conversation, a.act, a.place`,

    /**
     * $1 act id, $2 answer, $3 the epochs that its holder has had. For an act without an entry of its own. Proves that no other holder
     * has begun with the act. A lease is not needed: an act that closes the conversation is answered after its release.
     */
    answerAct: `
      update ${acts} set answer = $2
      where act_id = $1 and answer is null and claimed = any(($3::text)::bigint[])`,
  } as const;
}

export interface ListFilter {
  owner?: string | undefined;
  status?: 'idle' | 'waiting' | 'active' | undefined;
  after?: { updatedAt: number; place: string } | undefined;
  limit?: number | undefined;
}

const STATUS = {
  active: `(lease_until > ${NOW} and cycle = 'running')`,
  waiting: "cycle = 'suspended'",
  idle: `(cycle = 'ended' or (cycle = 'running' and lease_until <= ${NOW}))`,
} as const;

/** The text contains only the requested conditions, so that the indexes are used. */
const listStatement =
  (conversations: string) =>
  ({ owner, status, after, limit }: ListFilter): { text: string; values: unknown[] } => {
    const values: unknown[] = [];
    const value = (parameter: unknown): string => `$${values.push(parameter)}`;
    const where = ['length > 0', 'parent is null'];
    if (owner !== undefined) where.push(`owner = ${value(owner)}`);
    if (status !== undefined) where.push(STATUS[status]);
    return pageStatement(`select summary, lease_until > ${NOW} as held from ${conversations}`, {
      ...{ where, values, after, limit },
    });
  };

interface Page extends Pick<ListFilter, 'after' | 'limit'> {
  /** Conditions that refer to the values. */
  where: readonly string[];
  values: readonly unknown[];
}

/** A page of rows with the columns `updated_at` and `place`, in the order of a list. */
export function pageStatement(select: string, { where, values, after, limit }: Page) {
  const all = [...values];
  const value = (parameter: unknown): string => `$${all.push(parameter)}`;
  const conditions = [...where];
  if (after !== undefined) {
    const time = `${value(after.updatedAt)}::double precision`;
    const place = `decode(${value(after.place)}, 'hex')`;
    conditions.push(`updated_at <= ${time} and (updated_at < ${time} or place > ${place})`);
  }
  const most = limit === undefined || limit === Number.POSITIVE_INFINITY ? '' : ` limit ${value(limit)}::bigint`;
  const text = `${select}
      where ${conditions.join(' and ')} order by updated_at desc, place${most}`;
  return { text, values: all };
}
