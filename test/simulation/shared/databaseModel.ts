/**
 * The database of a shared store in memory: the effect of each statement of `runchart/postgres` on the tables. Invariant: it gives the
 * answers of PostgreSQL to the text of each statement, which `test/stores/postgres/statementsAsModelled.ts` compares. A statement is
 * atomic, and its caller passes the time.
 */
import { quotedSchema } from '../../../src/stores/postgres/migrations.ts';
import { type Statements, statementsOf } from '../../../src/stores/postgres/statements.ts';

export type Answer = Record<string, unknown>[];

interface ConversationRow {
  id: string;
  place: string;
  epoch: number;
  leaseUntil: number;
  length: number;
  summary: string | null;
  owner: string | null;
  parent: string | null;
  cycle: string | null;
}

interface ActRow {
  readonly actId: string;
  readonly place: number;
  readonly conversation: string;
  readonly act: string;
  readonly expiresAt: number;
  claimed: number | null;
  answer: string | null;
}

/** The single statements of the store; those with other forms are not simulated. */
export type StatementName = Exclude<keyof Statements, 'list' | 'deleteAll'>;

export const SCHEMA = 'simulated';
const texts = statementsOf(quotedSchema(SCHEMA));
const names = new Map<string, StatementName>();
for (const [name, text] of Object.entries(texts)) if (typeof text === 'string') names.set(text, name as StatementName);

/** Throws for a statement that the model does not have. */
export function statementNamed(text: string): StatementName {
  const name = names.get(text);
  if (name === undefined) throw new Error(`the simulated database has no such statement: ${text}`);
  return name;
}

/** The texts of an array in PostgreSQL's notation, in which the store escapes only quotes and backslashes. */
export const textsIn = (array: unknown): string[] => JSON.parse(`[${String(array).slice(1, -1)}]`);

const EPOCHS_AT_ONCE = 100;
const ACT_KEPT_MS = 3_600_000;

type Values = readonly unknown[];

export class DatabaseModel {
  readonly conversations = new Map<string, ConversationRow>();
  readonly entries = new Map<string, { epoch: number; text: string }[]>();
  readonly acts = new Map<string, ActRow>();
  #nextEpoch = 1;
  #nextPlace = 1;

  /** Executes a statement at this time. `skips`: a row that another transaction holds is left out by `renew`. */
  execute(name: StatementName, values: Values, now: number, skips: (id: string) => boolean = () => false): Answer {
    switch (name) {
      case 'append':
      case 'appendWithAnswers':
        return this.#append(values, now);
      case 'renew':
        return this.#renew(values, now, skips);
      case 'claimActs':
        return this.#claim(values, now);
      case 'putAct':
        return this.#putAct(values, now);
      default:
        return this.#ofOne(name, values, now);
    }
  }

  #ofOne(name: StatementName, values: Values, now: number): Answer {
    const [id, second] = values as [string, unknown];
    const row = this.conversations.get(id);
    switch (name) {
      case 'epochs':
        this.#nextEpoch += EPOCHS_AT_ONCE;
        return [{ epoch: String(this.#nextEpoch - EPOCHS_AT_ONCE) }];
      case 'find':
        return row ? [{ owner: row.owner, length: row.length, held: row.leaseUntil > now }] : [];
      case 'open':
        return this.#open(values, now);
      case 'release':
        if (row?.epoch !== Number(second)) return [];
        if (row.length === 0) this.conversations.delete(id);
        else row.leaseUntil = Number.NEGATIVE_INFINITY;
        return [];
      case 'held':
        return this.#heldOf(values, now).map((held) => ({ id: held.id }));
      case 'fence':
        return this.#fence(values, now);
      case 'countOf': {
        const [, epoch, first, end] = values.map(Number);
        const range = (this.entries.get(id) ?? []).slice(first, end);
        return [{ count: String(range.filter((entry) => entry.epoch === epoch).length) }];
      }
      case 'read': {
        const [, first = 0, end = 0] = values.map(Number);
        return (this.entries.get(id) ?? [])
          .slice(first, Math.min(end, first + 1000))
          .map(({ text }) => ({ entry: text }));
      }
      case 'states':
        return textsIn(id).flatMap((each) => {
          const conversation = this.conversations.get(each);
          if (!conversation) return [];
          const { leaseUntil, summary } = conversation;
          const isRepaired = leaseUntil > Number.NEGATIVE_INFINITY && !!summary?.includes('"lastCause":"crash"');
          const cutOff = leaseUntil <= now && (conversation.cycle === 'running' || isRepaired);
          return [{ id: each, length: conversation.length, cut_off: cutOff }];
        });
      case 'actState':
        return this.#actState(id, second as string, now);
      case 'withdrawAct':
        return this.#withdrawAct(id, now);
      case 'answerAct': {
        const act = this.acts.get(id);
        const epochs = textsIn(values[2]).map(Number);
        if (act?.claimed != null && epochs.includes(act.claimed) && act.answer === null) act.answer = String(second);
        return [];
      }
      default:
        throw new Error(`the simulated database does not execute ${name}`);
    }
  }

  #open([id, place, epoch, lease]: Values, now: number): Answer {
    const conversation = this.conversations.get(String(id));
    if (conversation && conversation.leaseUntil > now && conversation.epoch !== Number(epoch)) return [];
    const row = conversation ?? {
      ...{ id: String(id), place: String(place), length: 0, summary: null, owner: null, parent: null, cycle: null },
      ...{ epoch: 0, leaseUntil: 0 },
    };
    this.conversations.set(row.id, row);
    row.epoch = Number(epoch);
    row.leaseUntil = now + Number(lease);
    return [{ length: row.length, summary: row.summary, owner: row.owner }];
  }

  #append(values: Values, now: number): Answer {
    const [id, epoch, seq, entries, count, summary, , owner, parent, cycle, lease, actIds, answers] = values;
    const row = this.conversations.get(String(id));
    if (!row || row.epoch !== Number(epoch) || row.length !== Number(seq) || row.leaseUntil <= now) return [];
    const log = this.entries.get(row.id) ?? [];
    this.entries.set(row.id, log);
    for (const text of textsIn(entries)) log.push({ epoch: row.epoch, text });
    Object.assign(row, { summary, owner, parent, cycle });
    row.length += Number(count);
    row.leaseUntil = now + Number(lease);
    if (actIds !== undefined) {
      const answersInOrder = textsIn(answers);
      for (const [index, actId] of textsIn(actIds).entries()) {
        const act = this.acts.get(actId);
        if (act && act.answer === null) act.answer = answersInOrder[index] ?? null;
      }
    }
    return [{ length: row.length }];
  }

  /** The rows of the holders in the first two values whose lease is not over. */
  #heldOf([ids, epochs]: Values, now: number): ConversationRow[] {
    const epochsInOrder = textsIn(epochs);
    return textsIn(ids).flatMap((id, index) => {
      const row = this.conversations.get(id);
      return row && row.epoch === Number(epochsInOrder[index]) && row.leaseUntil > now ? [row] : [];
    });
  }

  #renew(values: Values, now: number, skips: (id: string) => boolean): Answer {
    const held = this.#heldOf(values, now).filter(({ id }) => !skips(id));
    for (const row of held) row.leaseUntil = now + Number(values[2]);
    return held.map(({ id }) => ({ id }));
  }

  #fence([id, epoch, next, lease]: Values, now: number): Answer {
    const row = this.conversations.get(String(id));
    if (!row || (row.epoch !== Number(epoch) && row.epoch !== Number(next))) return [];
    row.epoch = Number(next);
    if (row.leaseUntil > now) row.leaseUntil = now + Number(lease);
    return [{ length: row.length, held: row.leaseUntil > now }];
  }

  #putAct([actId, conversation, act, lease]: Values, now: number): Answer {
    for (const old of this.acts.values()) if (old.expiresAt < now - ACT_KEPT_MS) this.acts.delete(old.actId);
    if (this.acts.has(String(actId))) return [];
    this.acts.set(String(actId), {
      ...{ actId: String(actId), place: this.#nextPlace, conversation: String(conversation), act: String(act) },
      ...{ expiresAt: now + Number(lease), claimed: null, answer: null },
    });
    this.#nextPlace += 1;
    return [];
  }

  /** A living holder has begun with the act. */
  #isUnderWay({ conversation, claimed }: ActRow, now: number): boolean {
    const row = this.conversations.get(conversation);
    return row !== undefined && row.leaseUntil > now && row.epoch === claimed;
  }

  #actState(actId: string, conversation: string, now: number): Answer {
    const act = this.acts.get(actId);
    if (!act) return [];
    const { answer, expiresAt } = act;
    const held = (this.conversations.get(act.conversation)?.leaseUntil ?? Number.NEGATIVE_INFINITY) > now;
    const same = act.conversation === conversation;
    return [{ answer, same, open: expiresAt > now, held, under_way: this.#isUnderWay(act, now) }];
  }

  #withdrawAct(actId: string, now: number): Answer {
    const act = this.acts.get(actId);
    if (!act || act.answer !== null || this.#isUnderWay(act, now)) return [];
    this.acts.delete(actId);
    return [{ act_id: actId }];
  }

  #claim(values: Values, now: number): Answer {
    const held = new Map(this.#heldOf(values, now).map((row) => [row.id, row.epoch]));
    const claimed: Answer = [];
    for (const act of this.acts.values()) {
      const epoch = held.get(act.conversation);
      if (epoch === undefined || act.answer !== null || (act.expiresAt <= now && act.claimed === null)) continue;
      act.claimed = epoch;
      const { actId: act_id, conversation, place } = act;
      claimed.push({ act_id, conversation, act: act.act, place: String(place) });
    }
    return claimed;
  }
}
