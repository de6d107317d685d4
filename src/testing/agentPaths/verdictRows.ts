/**
 * The rows of the verdict table, and which of them stand for the others. Rule: what a person puts in place of the arguments of a
 * call is judged like what the model asks for: a person may answer a question, and overrides no refusal.
 */
import { canonical, type Json } from '../../../machines/internal.ts';
import type { Verdict } from './pathOptions.ts';

export interface VerdictRow {
  readonly tool: string;
  readonly args: Json;
  readonly verdict: Verdict;
  /** Why it asks, or by which code it is blocked or refused. */
  readonly reason?: string;
  readonly end?: 'succeeded' | 'failed' | 'pending';
  /** Close to here another verdict begins. */
  readonly edge: boolean;
  /** What an example or a rule says. */
  readonly expected?: Verdict;
}

/** What a probe found that no case needs to look for. */
export interface ProbeFault {
  readonly name: string;
  readonly message: string;
}

/** So many other arguments of a person's are tried for a call that asks. */
const EDITS_MAX = 4;

/** No approval of a person's changes it. */
const isNever = (verdict: Verdict): boolean => verdict === 'blocked' || verdict === 'refused';

/** Arguments that a person may put in place of those of a row: of each other verdict the values at an edge, else the first. */
export function editsOf({ tool, args }: VerdictRow, rows: readonly VerdictRow[]): VerdictRow[] {
  const own = canonical(args);
  const others = rows.filter(
    (row) => row.tool === tool && row.reason !== 'invalid_arguments' && canonical(row.args) !== own,
  );
  return representatives(others).slice(0, EDITS_MAX);
}

/** Of each tool and verdict the values at an edge, else the first. */
export function representatives(rows: readonly VerdictRow[]): VerdictRow[] {
  const groups = new Map<string, VerdictRow[]>();
  for (const row of rows) {
    const name = `${row.tool} ${row.verdict} ${row.reason ?? ''} ${row.end ?? ''}`;
    groups.set(name, [...(groups.get(name) ?? []), row]);
  }
  return [...groups.values()].flatMap((group) => group.find(({ edge }) => edge) ?? group.slice(0, 1));
}

/** What is wrong where a call ran with what a person put in place of its arguments. */
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
