/**
 * Follows the names of a path through the parts of path patterns. Rule: two paths with equal steps have the same matches
 * below them. So a search visits a directory once for each of its steps, even if links form a cycle.
 */
import { sep } from 'node:path';
import ignore from 'ignore';
import { isInside } from '../../tools/coding/workspace.ts';
import type { PathPattern, Surroundings } from '../pathRules.ts';

/** For each pattern, the numbers of the parts that the next name may match. The number after the last part means that all below matches. */
export type Steps = readonly (readonly number[])[];

interface Rule {
  /** From the root of the file system, unless the pattern matches at any depth. */
  parts: readonly ((name: string) => boolean)[];
  /** The places of `**` among the parts. */
  deep: ReadonlySet<number>;
  isFloating: boolean;
  /** The last part that a name can match without being named by the pattern. */
  free: number;
}

const folded = (name: string): string => name.normalize('NFC').toUpperCase();
const namesOf = (path: string): string[] => path.split(sep).filter((name) => name !== '');

function matcherOf(part: string): (name: string) => boolean {
  if (!/[*?[\]\\]/.test(part)) return (name) => folded(name) === folded(part);
  const matcher = ignore({ ignorecase: true }).add(`/${part.normalize('NFC')}/`);
  return (name) => matcher.ignores(`${name.normalize('NFC')}/`);
}

function ruleOf({ anchor, parts: written }: PathPattern, { root, home }: Surroundings): Rule {
  const base = anchor ? namesOf({ root: '/', home, cwd: root }[anchor.base]) : [];
  const startsDeep = !anchor || (anchor.base === 'cwd' && written[0] === '**');
  const parts = [...(startsDeep ? ['**'] : []), ...written].filter(
    (part, at, all) => part !== '**' || all[at - 1] !== '**',
  );
  const deep = parts.flatMap((part, at) => (part === '**' ? [base.length + at] : []));
  return {
    parts: [...base.map((name) => (other: string) => folded(other) === folded(name)), ...parts.map(matcherOf)],
    deep: new Set(deep),
    isFloating: !anchor,
    free: startsDeep ? base.length + 1 : -1,
  };
}

export class PatternSteps {
  readonly #rules: readonly Rule[];
  readonly #root: string;

  constructor(patterns: readonly PathPattern[], around: Surroundings) {
    this.#rules = patterns.map((pattern) => ruleOf(pattern, around));
    this.#root = around.root;
  }

  /** The steps at an absolute path. The names above the working directory do not count for a pattern that matches at any depth. */
  at(path: string): Steps {
    const below = isInside(this.#root, path) ? path.slice(this.#root.length) : path;
    return this.#rules.map((rule) =>
      namesOf(rule.isFloating ? below : path).reduce<readonly number[]>(
        (steps, name) => next(rule, steps, name),
        withDeep(rule, [0]),
      ),
    );
  }

  after(steps: Steps, name: string): Steps {
    return this.#rules.map((rule, at) => next(rule, steps[at] ?? [], name));
  }

  mayMatchBelow(steps: Steps): boolean {
    return steps.some((each) => each.length > 0);
  }

  /** True if a pattern names this place: more than a leading `**` has matched. */
  areNamed(steps: Steps): boolean {
    return this.#rules.some(({ free }, at) => steps[at]?.some((step) => step > free));
  }
}

/** A `**` may also match no name, unless it is last. */
function withDeep({ deep, parts }: Rule, steps: readonly number[]): number[] {
  const all = new Set(steps);
  for (const step of all) if (deep.has(step) && step + 1 < parts.length) all.add(step + 1);
  return [...all].sort((a, b) => a - b);
}

function next(rule: Rule, steps: readonly number[], name: string): number[] {
  const { parts, deep } = rule;
  const reached = steps.flatMap((step) => {
    if (step === parts.length) return [step];
    if (deep.has(step)) return step + 1 === parts.length ? [parts.length] : [step];
    return parts[step]?.(name) ? [step + 1] : [];
  });
  return withDeep(rule, reached);
}
