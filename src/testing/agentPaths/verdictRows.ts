/**
 * The rows of the verdict table, and the selection of representative ones. Invariant: a person's edit of a call's
 * arguments is judged like the model's arguments. A person may answer a question, but cannot override a refusal.
 */
import { canonical, type Json } from '../../../machines/internal.ts';
import type { Verdict } from './pathOptions.ts';

/** The verdict of an agent's rules about one call. */
export interface VerdictRow {
  /** The name of the tool. */
  readonly tool: string;
  /** The arguments of the call. */
  readonly args: Json;
  /** The verdict. */
  readonly verdict: Verdict;
  /** The reason of a question, or the code of a block or refusal. */
  readonly reason?: string;
  /** The outcome of the execution, if the call ran. */
  readonly end?: 'succeeded' | 'failed' | 'pending';
  /** Another verdict begins next to this row. */
  readonly edge: boolean;
  /** The verdict that an example or a rule requires. */
  readonly expected?: Verdict;
}

/** A fault that a probe found without a case. */
export interface ProbeFault {
  readonly name: string;
  readonly message: string;
}

/** The most edits by a person that are tried for a call that needs approval. */
const EDITS_MAX = 4;

/** Returns true for verdicts that no approval changes. */
const isNever = (verdict: Verdict): boolean => verdict === 'blocked' || verdict === 'refused';

/**
 * Returns arguments that a person may use instead of those of a row: for each other verdict the values at an edge, else
 * the first.
 */
export function editsOf({ tool, args }: VerdictRow, rows: readonly VerdictRow[]): VerdictRow[] {
  const own = canonical(args);
  const others = rows.filter(
    (row) => row.tool === tool && row.reason !== 'invalid_arguments' && canonical(row.args) !== own,
  );
  return representatives(others).slice(0, EDITS_MAX);
}

/** Returns for each tool and verdict the values at an edge, else the first. */
export function representatives(rows: readonly VerdictRow[]): VerdictRow[] {
  const groups = new Map<string, VerdictRow[]>();
  for (const row of rows) {
    const name = `${row.tool} ${row.verdict} ${row.reason ?? ''} ${row.end ?? ''}`;
    groups.set(name, [...(groups.get(name) ?? []), row]);
  }
  return [...groups.values()].flatMap((group) => group.find(({ edge }) => edge) ?? group.slice(0, 1));
}

/** Returns the fault of a call that ran with a person's edit. */
export function faultOfEdit(
  { tool, args }: Pick<VerdictRow, 'tool' | 'args'>,
  edit: VerdictRow,
  ran: boolean,
): ProbeFault | undefined {
  const forbidden = [edit.expected ?? edit.verdict, edit.verdict].find(isNever);
  if (!ran || forbidden === undefined) return undefined;
  const name = `${tool}(${JSON.stringify(args)}), edited to ${JSON.stringify(edit.args)}, does not run`;
  const message = `edit: ${tool} ran with what a person put in place of its arguments, and the model's call with the same is ${forbidden}`;
  return { name, message };
}
