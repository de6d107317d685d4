/**
 * The order in which what the rules say of one act becomes its verdict: deny rules, protected places, plan mode, ask rules,
 * allow rules, the mode. Rule: how specific a rule is never matters, and nothing that comes later takes back a denial.
 */
import type { PathPattern } from './pathRules.ts';
import type { Rule } from './rules.ts';

export const PERMISSION_MODES = ['default', 'acceptEdits', 'plan', 'dontAsk', 'bypass'] as const;
export type PermissionMode = (typeof PERMISSION_MODES)[number];
export type PermissionOutcome = 'allow' | 'ask' | 'deny';

export interface PermissionVerdict {
  outcome: PermissionOutcome;
  /** The rule, mode or place that decided. */
  by: string;
  /** The layer of the rule that decided; `session` for what "always allow" added. Absent for rules of the host's own. */
  layer?: string;
  /** Every rule that fits, of any list. */
  matched: string[];
  /** What holds where the command runs in a sandbox, on a machine that has one. */
  sandboxed?: { outcome: PermissionOutcome; by: string };
  /** The commands a shell line holds, each with its own verdict. */
  parts: { text: string; outcome: PermissionOutcome; by: string; why?: string }[];
}
export interface Finding extends Omit<PermissionVerdict, 'parts'> {
  /** In a sandbox it does no more than read what is not hidden: its programs only read, whatever their words name. */
  confined?: boolean;
  /** Of a question: which word led to it, and where that word leads. */
  why?: string | undefined;
  /** The rule that would allow just this; only where a rule would. */
  save?: string | undefined;
}
export interface JudgedVerdict extends PermissionVerdict {
  /** The rules that would allow just this call; empty where none would. */
  saves: readonly string[];
  /** The place that a file tool wants, links resolved. */
  place?: string;
  /** It lies outside the working directory. */
  isOutside?: boolean;
  /** In a sandbox the command does no more than read what is not hidden, and may run unasked there. */
  confined?: boolean;
}

export interface RuleSet {
  mode: PermissionMode;
  deny: readonly Rule[];
  ask: readonly Rule[];
  allow: readonly Rule[];
  /** Places that no rule opens, besides those that never are. */
  protect: readonly PathPattern[];
  /** What a hook said of the call: no more than a rule could. */
  hook?: 'allow' | 'ask' | undefined;
  /** The tool itself wants approval. */
  needsApproval?: boolean | undefined;
}

/** What was found about one act. */
export interface Facts {
  deny: readonly Rule[];
  ask: readonly Rule[];
  allow: readonly Rule[];
  /** The protected place it would change. */
  guarded?: string | undefined;
  /** It reads only, and inside the working directory. */
  reads: boolean;
  /** It is an edit of a file inside the working directory by a file tool. */
  edits?: boolean;
  /** A rule that would allow just this. */
  save?: string | undefined;
}

export function findingOf(facts: Facts, { mode, hook, needsApproval }: RuleSet): Finding {
  const { deny, ask, allow, guarded, reads, edits, save } = facts;
  const matched = [...new Set([...deny, ...ask, ...allow].map(({ text }) => text))];
  const said = (outcome: PermissionOutcome, by: string, rule?: Rule): Finding => ({
    outcome,
    by,
    matched,
    ...(rule?.layer !== undefined && { layer: rule.layer }),
  });
  const [denied] = deny;
  const [asked] = ask;
  const [allowed] = allow;
  if (denied) return said('deny', `deny ${denied.text}`, denied);
  if (mode === 'plan' && !reads) return said('deny', 'mode plan');
  if (guarded !== undefined) return said('ask', `protected ${guarded}`);
  if (asked) return said('ask', `ask ${asked.text}`, asked);
  if (hook === 'ask') return said('ask', 'hook');
  if (needsApproval) return said('ask', 'needsApproval');
  if (allowed) return said('allow', `allow ${allowed.text}`, allowed);
  if (hook === 'allow') return said('allow', 'hook');
  if (mode === 'bypass') return said('allow', 'mode bypass');
  if (reads) return said('allow', 'read-only');
  if (edits && mode === 'acceptEdits') return said('allow', 'mode acceptEdits');
  return { ...said('ask', `mode ${mode}`), save };
}

const STRICTNESS: readonly PermissionOutcome[] = ['allow', 'ask', 'deny'];

/** The first of those that say the strictest thing. */
export function strictest(findings: readonly Finding[]): Finding {
  const [first, ...rest] = findings;
  if (!first) throw new TypeError('a verdict needs a finding');
  return rest.reduce(
    (worst, each) => (STRICTNESS.indexOf(each.outcome) > STRICTNESS.indexOf(worst.outcome) ? each : worst),
    first,
  );
}
