/**
 * What the cases of an agent took of the charts, what they missed, and why the rest is out of its reach. Rule: nobody has
 * written the reasons by hand: they are what the same exploration finds where one capability is added (reach.ts).
 */

import { REACH } from './reach.ts';
import { allTransitions, type ChartTransition } from './search/coverage.ts';
import type { VerdictRow } from './verdicts.ts';

/** Stores that fail and executors that break are nobody's agent; the library's own tests make them. */
const isOfStore = ({ event, source }: ChartTransition): boolean =>
  event === 'append.failed' || event === 'effect.failed' || source.endsWith('.late');

/** Told by the event itself. */
const needsOf = (key: string, { event }: ChartTransition): string | undefined =>
  REACH[key] ?? (event === 'sub-agent.changed' ? 'sub-agents' : undefined);

export interface AgentPathsReport {
  readonly taken: readonly ChartTransition[];
  /** An agent like this can take them, and no case did. */
  readonly missed: readonly ChartTransition[];
  readonly outOfReach: readonly (ChartTransition & { readonly needs: string })[];
  readonly notTried: readonly ChartTransition[];
  /** Of stores that fail and of executors that break: the library's own tests take them. */
  readonly ofStore: readonly ChartTransition[];
  toString(): string;
}

interface Found {
  readonly taken: ReadonlySet<string>;
  readonly reachable: ReadonlySet<string>;
  readonly rows: readonly VerdictRow[];
  readonly cases: number;
  readonly ran: number;
  readonly passed: number;
}

export function reportOf({ taken, reachable, rows, cases, ran, passed }: Found): AgentPathsReport {
  const groups = {
    taken: [] as ChartTransition[],
    missed: [] as ChartTransition[],
    outOfReach: [] as (ChartTransition & { needs: string })[],
    notTried: [] as ChartTransition[],
    ofStore: [] as ChartTransition[],
  };
  const all = allTransitions();
  for (const [key, transition] of all) {
    const needs = needsOf(key, transition);
    if (taken.has(key)) groups.taken.push(transition);
    else if (reachable.has(key)) groups.missed.push(transition);
    else if (isOfStore(transition)) groups.ofStore.push(transition);
    else if (needs !== undefined) groups.outOfReach.push({ ...transition, needs });
    else groups.notTried.push(transition);
  }
  const head = `${cases} cases, ${ran} ran, ${passed} passed · ${groups.taken.length} of ${all.size} transitions taken, ${groups.missed.length} missed`;
  return { ...groups, toString: () => inWords(head, groups, rows) };
}

function inWords(head: string, groups: Omit<AgentPathsReport, 'toString'>, rows: readonly VerdictRow[]): string {
  const needs = counted(groups.outOfReach.map((each) => each.needs)).map(([why, count]) => `${count} need ${why}`);
  const notTried = groups.notTried.length > 0 ? [WHY_NOT_TRIED, ...groups.notTried.map(nameOf)] : [];
  const lines = [
    head,
    ...verdictLines(rows),
    ...grouped('missed', groups.missed.map(nameOf)),
    ...grouped('out of reach', needs, groups.outOfReach.length),
    ...grouped('not tried', notTried, groups.notTried.length),
    ...grouped(
      'of the store',
      groups.ofStore.length > 0 ? ["taken by runchart's own tests"] : [],
      groups.ofStore.length,
    ),
  ];
  return lines.join('\n');
}

/** Cases stop only where something takes time: a model, a tool, a person. */
const WHY_NOT_TRIED = 'two things at once, or what comes in the middle of a commit or a phase; simulate tries them:';

const nameOf = ({ source, event }: ChartTransition): string => `${source} ${event || '(at once)'}`;

function grouped(title: string, lines: readonly string[], count = lines.length): string[] {
  if (lines.length === 0) return [];
  return lines.map((line, index) => `  ${(index === 0 ? `${title} (${count})` : '').padEnd(19)}${line}`);
}

function counted(words: readonly string[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]);
}

const ARGS_SHOWN = 60;

/** Of each tool: the values at its thresholds, else the first of each verdict. */
function verdictLines(rows: readonly VerdictRow[]): string[] {
  const lines: string[] = [];
  for (const tool of new Set(rows.map((row) => row.tool))) {
    const own = rows.filter((row) => row.tool === tool);
    const told = [...new Set(own.map(({ verdict }) => verdict))].map((verdict) => {
      const ofVerdict = own.filter((row) => row.verdict === verdict);
      const shown = ofVerdict.find(({ edge }) => edge) ?? ofVerdict[0];
      const args = JSON.stringify(shown?.args ?? null);
      const cut = args.length > ARGS_SHOWN ? `${args.slice(0, ARGS_SHOWN - 1)}…` : args;
      return `${verdict} ${shown?.edge ? 'at the edge' : 'as with'} ${cut}`;
    });
    lines.push(`  ${(lines.length === 0 ? 'verdicts' : '').padEnd(19)}${tool}: ${told.join(', ')}`);
  }
  return lines;
}
