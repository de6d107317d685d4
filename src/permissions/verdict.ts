/**
 * Combines the rules for one act into a verdict, in this order: deny rules, plan mode, protected places, ask rules,
 * allow rules, the mode. Rule: it never matters how specific a rule is, and no later step overrides a denial.
 */
import type { PathPattern } from './pathRules.ts';
import type { Rule } from './rules.ts';

export const PERMISSION_MODES = ['default', 'acceptEdits', 'plan', 'dontAsk', 'bypass'] as const;
/** The decision about calls that no rule matches: docs/permissions.md describes each mode. */
export type PermissionMode = (typeof PERMISSION_MODES)[number];
/** Whether a call runs, waits for a person or is denied. */
export type PermissionOutcome = 'allow' | 'ask' | 'deny';

/** The verdict of the rules about one call, with the rules that decided. */
export interface PermissionVerdict {
  /** Whether the call runs, waits for a person or is denied. */
  outcome: PermissionOutcome;
  /** The rule, mode or protected place that decided. */
  by: string;
  /** The layer of the deciding rule; `session` for "always allow". Absent for rules of the host. */
  layer?: string;
  /** Every matching rule of all lists. */
  matched: string[];
  /** The verdict for a sandboxed run, on a machine that has a sandbox. */
  sandboxed?: { outcome: PermissionOutcome; by: string };
  /** The commands of a shell line, each with its own verdict. */
  parts: { text: string; outcome: PermissionOutcome; by: string; why?: string }[];
}
export interface Finding extends Omit<PermissionVerdict, 'parts'> {
  /** In a sandbox, the act only reads files that are not hidden, whatever its words name. */
  confined?: boolean;
  /** For a question: the word that caused it, and where that word leads. */
  why?: string | undefined;
  /** A rule that would allow exactly this act, if there is one. */
  save?: string | undefined;
}
export interface JudgedVerdict extends PermissionVerdict {
  /** Rules that would allow exactly this call; empty if there are none. */
  saves: readonly string[];
  /** The path that a file tool uses, links resolved. */
  place?: string;
  /** The path lies outside the working directory. */
  isOutside?: boolean;
  /** In a sandbox, the command only reads files that are not hidden, so it may run unasked there. */
  confined?: boolean;
}

export interface RuleSet {
  mode: PermissionMode;
  deny: readonly Rule[];
  ask: readonly Rule[];
  allow: readonly Rule[];
  /** Places that no rule opens, in addition to the built-in ones. */
  protect: readonly PathPattern[];
  /** The decision of a hook. It counts as much as a rule. */
  hook?: 'allow' | 'ask' | undefined;
  /** The tool itself requires approval. */
  needsApproval?: boolean | undefined;
}

/** The facts about one act. */
export interface Facts {
  deny: readonly Rule[];
  ask: readonly Rule[];
  allow: readonly Rule[];
  /** The protected place that the act would change. */
  guarded?: string | undefined;
  /** The act only reads, and only inside the working directory. */
  reads: boolean;
  /** A file tool edits a file inside the working directory. */
  edits?: boolean;
  /** A rule that would allow exactly this act. */
  save?: string | undefined;
}

export function findingOf(facts: Facts, { mode, hook, needsApproval }: RuleSet): Finding {
  const { deny, ask, allow, guarded, reads, edits, save } = facts;
  const matched = [...new Set([...deny, ...ask, ...allow].map(({ text }) => text))];
  const findingWith = (outcome: PermissionOutcome, by: string, rule?: Rule): Finding => ({
    outcome,
    by,
    matched,
    ...(rule?.layer !== undefined && { layer: rule.layer }),
  });
  const [denied] = deny;
  const [askRule] = ask;
  const [allowed] = allow;
  if (denied) return findingWith('deny', `deny ${denied.text}`, denied);
  if (mode === 'plan' && !reads) return findingWith('deny', 'mode plan');
  if (guarded !== undefined) return findingWith('ask', `protected ${guarded}`);
  if (askRule) return findingWith('ask', `ask ${askRule.text}`, askRule);
  if (hook === 'ask') return findingWith('ask', 'hook');
  if (needsApproval) return findingWith('ask', 'needsApproval');
  if (allowed) return findingWith('allow', `allow ${allowed.text}`, allowed);
  if (hook === 'allow') return findingWith('allow', 'hook');
  if (mode === 'bypass') return findingWith('allow', 'mode bypass');
  if (reads) return findingWith('allow', 'read-only');
  if (edits && mode === 'acceptEdits') return findingWith('allow', 'mode acceptEdits');
  return { ...findingWith('ask', `mode ${mode}`), save };
}

const STRICTNESS: readonly PermissionOutcome[] = ['allow', 'ask', 'deny'];

/** True if the finding allows only reading. It does not explain why the rest of a line is allowed. */
const onlyReads = ({ outcome, by }: Finding): boolean => outcome === 'allow' && by === 'read-only';

/** The first of the strictest findings. One that allows more than reading counts before one that allows reading. */
export function strictest(findings: readonly Finding[]): Finding {
  const [first, ...rest] = findings;
  if (!first) throw new TypeError('a verdict needs a finding');
  const isStricter = (each: Finding, other: Finding): boolean =>
    STRICTNESS.indexOf(each.outcome) > STRICTNESS.indexOf(other.outcome) || (onlyReads(other) && !onlyReads(each));
  return rest.reduce((worst, each) => (isStricter(each, worst) ? each : worst), first);
}
