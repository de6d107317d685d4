/** The steps of a path through patterns. Rule: a search that follows them misses nothing that a pattern matches. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { PatternSteps } from '../../src/permissions/hiding/patternSteps.ts';
import { type PathPattern, pathPattern } from '../../src/permissions/pathRules.ts';

const around = { cwd: '/w/s', root: '/w/s', home: '/h', linkAt: async () => undefined };
const name = fc.constantFrom('a', 'b', 'A', '.a', 'ab', 'x y', 'ς', 'σ', 'é', 'e\u0301', '[a]', 'a*');
const part = fc.oneof(
  { weight: 3, arbitrary: name.map((each) => each.replace(/[*[\]]/g, '\\$&')) },
  fc.constantFrom('*', '**', 'a*', '?', '[ab]', '[!a]', '.*', '*b', '\\a'),
);
const spec = fc
  .tuple(
    fc.constantFrom('', './', '//', '~/', '**/', '/'),
    fc.array(part, { minLength: 1, maxLength: 4 }),
    fc.constantFrom('', '/'),
  )
  .map(([base, parts, end]) => base + parts.join('/') + end);
const parsed = spec.map(pathPattern).filter((pattern): pattern is PathPattern => typeof pattern !== 'string');
const names = fc.array(name, { minLength: 1, maxLength: 5 });
const base = fc.constantFrom('/w/s', '/w/s', '/h', '/w', '');

it('they lead to every path that a pattern matches', () => {
  fc.assert(
    fc.property(parsed, base, names, (pattern, from, below) => {
      const path = `${from}/${below.join('/')}`;
      const isMatch = pattern.matches({ written: path, spelled: path, real: undefined }, around, false);
      const steps = new PatternSteps([pattern], around);
      const reached = below.reduce((each, next) => steps.after(each, next), steps.at(from || '/'));
      expect(isMatch && !steps.mayMatchBelow(reached)).toBe(false);
    }),
    { numRuns: 3_000 },
  );
});

it('two paths with equal steps have the same matches below them', () => {
  fc.assert(
    fc.property(parsed, names, names, names, (pattern, first, second, below) => {
      const steps = new PatternSteps([pattern], around);
      const [one, other] = [first, second].map((each) => `/w/s/${each.join('/')}`) as [string, string];
      fc.pre(JSON.stringify(steps.at(one)) === JSON.stringify(steps.at(other)));
      const matched = [one, other].map((each) => {
        const path = `${each}/${below.join('/')}`;
        return pattern.matches({ written: path, spelled: path, real: undefined }, around, false);
      });
      expect(matched[0]).toBe(matched[1]);
    }),
    { numRuns: 3_000 },
  );
});
