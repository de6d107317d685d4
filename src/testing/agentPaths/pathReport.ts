/**
 * Reports which transitions the cases of an agent cover, which they miss, and why the others are out of its reach.
 * Invariant: the reasons are generated. The same exploration finds them when one capability is added
 * (transitionNeeds.ts).
 */

import { defaultPolicies } from '../../../machines/internal.ts';
import { shortened } from '../../printable.ts';
import { isObject } from '../../validation.ts';
import { type AgentModel, roleOf } from './search/callBehaviour.ts';
import type { Bounds } from './search/nextMoves.ts';
import { allTransitions, type ChartTransition } from './search/takenTransitions.ts';
import { REACH } from './transitionNeeds.ts';
import type { VerdictRow } from './verdictRows.ts';

/** Events that follow a failed or pending append. */
const AFTER_STORE: ReadonlySet<string> = new Set([
  'RUN.active.ToolRound.running xstate.done.actor.round 1',
  'CONVERSATION.closing decision.arrived 0',
  'CONVERSATION.superseding decision.arrived 0',
]);
/** Failing stores and executors are not part of an agent. The library's own tests cover them. */
const isOfStore = (key: string, { event, source }: ChartTransition): boolean =>
  event === 'append.failed' || event === 'effect.failed' || source.endsWith('.late') || AFTER_STORE.has(key);

const NO_DECISION = 'no conversation comes to it: a run looks at decisions only where there is one';
/** Transitions that no case of any agent takes. */
const NEVER: Readonly<Record<string, string>> = {
  'RESUME_TOOL_CALL.DrainDecisionChannel  0': NO_DECISION,
  'RESUME_TOOL_CALL.NoDecision  0': NO_DECISION,
  'RUN.active.StepPrepare.compacted effect.done 1':
    'a summary that uses up limits.tokens or limits.costUsd: what the scripted model says uses nothing',
};

/** Returns why this agent missed a transition that a plain agent takes: its settings, or a case that was omitted. */
function whyNot({ settings: { policies, phases } }: AgentModel, closer: Partial<Bounds> | undefined): string {
  const same = (name: string, value: unknown): boolean =>
    JSON.stringify(value) === JSON.stringify(defaultPolicies[name as keyof typeof defaultPolicies]);
  const set = Object.entries(policies).flatMap(([name, value]) => (same(name, value) ? [] : [name]));
  const heard = Object.entries(phases).flatMap(([phase, is]) => (is ? [phase] : []));
  const causes = [
    ...(set.length > 0 ? [`this agent's policies (${set.join(', ')})`] : []),
    ...(heard.length > 0 ? [`plugins that hear ${heard.join(', ')}`] : []),
    ...(closer ? ['bounds drawn closer'] : ['the options moves and bounds']),
  ];
  return `ruled out by ${causes.join(', or by ')}`;
}

/** Returns the requirement that the event itself determines. */
const needsOf = (key: string, { event }: ChartTransition): string | undefined =>
  REACH[key] ?? (event === 'sub-agent.changed' ? 'sub-agents' : undefined);

/** The coverage of the executed cases. */
export interface AgentPathsReport {
  /** The transitions that a case took. */
  readonly taken: readonly ChartTransition[];
  /** Transitions that this agent can take, but that no case took. */
  readonly missed: readonly ChartTransition[];
  /** The transitions that this agent cannot take, with their requirements. */
  readonly outOfReach: readonly (ChartTransition & { readonly needs: string })[];
  /** Transitions that no case can take, with the reason in `why`. */
  readonly notTried: readonly (ChartTransition & { readonly why: string })[];
  /** Transitions for failing stores and broken executors. The library's own tests take them. */
  readonly ofStore: readonly ChartTransition[];
  /** The limits that were lowered because the exploration exceeded `bounds.steps`. */
  readonly closer?: Readonly<Record<string, number>>;
  /** Returns the report as lines of text. */
  toString(): string;
}

interface Found {
  readonly taken: ReadonlySet<string>;
  readonly reachable: ReadonlySet<string>;
  readonly rows: readonly VerdictRow[];
  readonly cases: number;
  readonly ran: number;
  readonly passed: number;
  readonly model: AgentModel;
  readonly closer: Partial<Bounds> | undefined;
  readonly policies: object;
}

/** Returns the agent's capabilities. The report omits transitions that need other ones. */
function hasOf({ settings, behaviours }: AgentModel): ReadonlySet<string> {
  const roles = new Set(behaviours.map(roleOf));
  const has = (role: string, needs: string): string[] => (roles.has(role) ? [needs] : []);
  return new Set([
    ...(behaviours.length > 0 ? ['a tool'] : []),
    ...has('asks', 'an approval'),
    ...has('waits', 'a tool that waits (pending)'),
    ...(settings.context ? ['the policy context'] : ['nothing in the policy context']),
    ...Object.entries(settings.phases).flatMap(([phase, heard]) => (heard ? [`a plugin with ${phase}`] : [])),
  ]);
}

export function reportOf({
  taken,
  reachable,
  rows,
  cases,
  ran,
  passed,
  model,
  closer,
  policies,
}: Found): AgentPathsReport {
  const had = hasOf(model);
  const ruledOut = whyNot(model, closer);
  const groups = {
    taken: [] as ChartTransition[],
    missed: [] as ChartTransition[],
    outOfReach: [] as (ChartTransition & { needs: string })[],
    notTried: [] as (ChartTransition & { why: string })[],
    ofStore: [] as ChartTransition[],
  };
  const all = allTransitions();
  for (const [key, transition] of all) {
    const needs = needsOf(key, transition);
    if (taken.has(key)) groups.taken.push(transition);
    else if (reachable.has(key)) groups.missed.push(transition);
    else if (isOfStore(key, transition)) groups.ofStore.push(transition);
    else if (needs !== undefined && !had.has(needs)) groups.outOfReach.push({ ...transition, needs });
    else groups.notTried.push({ ...transition, why: NEVER[key] ?? ruledOut });
  }
  const head = `${cases} cases, ${ran} ran, ${passed} passed · ${groups.taken.length} of ${all.size} transitions taken, ${groups.missed.length} missed`;
  const narrowed = closer && Object.keys(closer).length > 0 ? { closer: { ...closer } } : {};
  return {
    ...groups,
    ...narrowed,
    toString: () => inWords(head, { ...groups, ...narrowed }, [...policyLines(policies), ...verdictLines(rows)]),
  };
}

function inWords(head: string, groups: Omit<AgentPathsReport, 'toString'>, ofAgent: readonly string[]): string {
  const needs = counted(groups.outOfReach.map((each) => each.needs)).map(([why, count]) => `${count} need ${why}`);
  const notTried = counted(groups.notTried.map(({ why }) => why)).flatMap(([why, count]) => [
    `${count} ${why}`,
    ...groups.notTried.filter((each) => each.why === why).map((each) => `  ${nameOf(each)}`),
  ]);
  const lines = [
    head,
    ...closerLines(groups.closer),
    ...ofAgent,
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

function closerLines(closer: Readonly<Record<string, number>> | undefined): string[] {
  if (!closer) return [];
  const within = Object.entries(closer).map(([name, most]) => `bounds.${name} ${most}`);
  return [
    `  drawn closer       explored within ${within.join(', ')}: more than bounds.steps (give more of them to go further)`,
  ];
}

const nameOf = ({ source, event, target }: ChartTransition): string =>
  `${source} ${event || '(at once)'}${target === source ? '' : ` → ${target}`}`;

function grouped(title: string, lines: readonly string[], count = lines.length): string[] {
  if (lines.length === 0) return [];
  return lines.map((line, index) => `  ${(index === 0 ? `${title} (${count})` : '').padEnd(19)}${line}`);
}

function counted(words: readonly string[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]);
}

/** Returns every policy with its value, so that a review shows each change. */
function policyLines(policies: object): string[] {
  const shown = (value: unknown): string => {
    if (typeof value === 'string') return value;
    if (Array.isArray(value)) return `[${value.map(shown).join(' ')}]`;
    if (typeof value !== 'object' || value === null) return String(value);
    return 'id' in value ? shown(value.id) : `{ ${listed(value)} }`;
  };
  const listed = (object: object): string =>
    Object.entries(object)
      .map(([name, value]) => `${name} ${shown(value)}`)
      .join(', ');
  const grouped = Object.entries(policies).filter(([, value]) => isObject(value));
  const plain = Object.entries(policies).filter(([, value]) => !isObject(value));
  if (grouped.length + plain.length === 0) return [];
  const lines = [
    ['policies', listed(Object.fromEntries(plain))],
    ...grouped.map(([name, value]) => [name, listed(value)]),
  ];
  return lines.map(([name = '', words = '']) => `  ${name.padEnd(19)}${words}`);
}

const ARGS_SHOWN = 60;

/** Returns for each tool the values at its thresholds, or else the first value of each verdict. */
function verdictLines(rows: readonly VerdictRow[]): string[] {
  const lines: string[] = [];
  for (const tool of new Set(rows.map((row) => row.tool))) {
    const own = rows.filter((row) => row.tool === tool);
    const verdictTexts = [...new Set(own.map(({ verdict }) => verdict))].map((verdict) => {
      const ofVerdict = own.filter((row) => row.verdict === verdict);
      const shown = ofVerdict.find(({ edge }) => edge) ?? ofVerdict[0];
      const args = JSON.stringify(shown?.args ?? null);
      return `${verdict} ${shown?.edge ? 'at the edge' : 'as with'} ${shortened(args, ARGS_SHOWN)}`;
    });
    lines.push(`  ${(lines.length === 0 ? 'verdicts' : '').padEnd(19)}${tool}: ${verdictTexts.join(', ')}`);
  }
  return lines;
}
