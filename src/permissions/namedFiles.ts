/**
 * Checks the files that the words of a shell line name: which path rules match, which protected place would change, and
 * whether a file lies outside. Rule: this module reads no files; `linePlaces.ts` has resolved every path before.
 */
import { PROTECTED_NAMES, PROTECTED_PARTS } from '../tools/coding/sandbox/protectedNames.ts';
import { isInside } from '../tools/coding/workspace.ts';
import { settingsChangedBy } from './commandForms.ts';
import type { Places } from './linePlaces.ts';
import { isInsideRoot, type PathPattern, type PathSubject, protectedPlace, type Surroundings } from './pathRules.ts';
import { mayMeetGlob } from './patternReach.ts';
import type { Reading } from './readings/reading.ts';
import { isWhole, type Rule } from './rules.ts';
import type { RuleSet } from './verdict.ts';
import type { ShellWord } from './wordExpansion.ts';
import { candidatesOf, type GlobMatches, mayMatch, mayMatchName } from './wordPaths.ts';
import { workPlacesOf } from './workPlaces.ts';
import { baseName, readingsOf } from './wrappers.ts';

/** These commands change everything below a directory. */
const CHANGES_BELOW = /^(rm|mv|chmod|chown|chgrp)$/;

export class NamedFiles {
  readonly #rules: RuleSet;
  readonly #around: Surroundings;
  readonly #places: Places;

  constructor(rules: RuleSet, around: Surroundings, places: Places) {
    this.#rules = rules;
    this.#around = around;
    this.#places = places;
  }

  globOf = ({ value }: ShellWord): GlobMatches | undefined => this.#places.globs.get(value);

  subjects = (word: ShellWord): readonly PathSubject[] =>
    candidatesOf(word, this.#around.home).flatMap((path) => this.#places.subjects.get(path) ?? []);

  /** The word that matched the deciding rule or protected place, and where that word leads. */
  causeOf(by: string, words: readonly ShellWord[]): string | undefined {
    const rule = [...this.#rules.deny, ...this.#rules.ask].find(
      ({ text }) => by === `deny ${text}` || by === `ask ${text}`,
    );
    const decides = (path: PathSubject): boolean => {
      if (by.startsWith('protected ')) return protectedPlace(path, this.#around, this.#rules.protect) !== undefined;
      return rule?.subject.kind === 'path' && rule.subject.pattern.matches(path, this.#around, false);
    };
    for (const word of words) {
      const path = [...this.subjects(word), ...((word.isGlob && this.globOf(word)?.paths) || [])].find(decides);
      if (path) return `${word.source} leads to ${path.real ?? 'an unknown place'}`;
    }
    return undefined;
  }

  /** The path rules that one of these words may match. */
  rulesNaming(
    rules: readonly Rule[],
    words: readonly ShellWord[],
    tools: readonly string[] = ['read', 'edit'],
  ): Rule[] {
    const subjects = words.flatMap(this.subjects);
    return rules.filter(({ subject, covers }) => {
      if (subject.kind !== 'path' || !tools.some(covers)) return false;
      return subjects.some((path) => subject.pattern.matches(path, this.#around, false));
    });
  }

  /** The path rules that a glob among these words may match. */
  rulesMatchingGlobs(
    rules: readonly Rule[],
    words: readonly ShellWord[],
    namesOnly: boolean,
    shown: readonly ShellWord[] = [],
  ): Rule[] {
    const globs = words.filter(({ isGlob }) => isGlob);
    const matches = namesOnly ? [] : globs.flatMap((word) => this.globOf(word)?.paths ?? []);
    return rules.filter(({ subject, covers }) => {
      if (subject.kind !== 'path') return false;
      const { last, matches: fits } = subject.pattern;
      if (globs.some((word) => mayMatch(word.value, last, false) && this.#mayMeet(subject.pattern, word))) return true;
      if (matches.some((path) => fits(path, this.#around, false))) return true;
      return covers('read') && shown.some(({ value }) => mayMatch(value, last, true));
    });
  }

  #mayMeet(pattern: PathPattern, glob: ShellWord): boolean {
    const directories = this.subjects(glob);
    return directories.length === 0 || directories.some((from) => mayMeetGlob(pattern, glob.value, from, this.#around));
  }

  protectedPlaceOf(words: readonly ShellWord[]): string | undefined {
    const { root } = this.#around;
    // Also where another program runs the command, as in `env rm`.
    const changed = new Set<ShellWord>();
    for (const reading of readingsOf(words)) {
      const settings = settingsChangedBy(reading);
      if (settings !== undefined) return settings;
      if (CHANGES_BELOW.test(baseName(reading[0]?.value ?? ''))) for (const word of reading.slice(1)) changed.add(word);
    }
    const isAbove = ({ real }: PathSubject): boolean => real !== undefined && isInside(real, root);
    const above = [...changed].find((word) => this.subjects(word).some(isAbove));
    if (above) return above.source;
    const matches = words.flatMap((word) => (word.isGlob ? (this.globOf(word)?.paths ?? []) : []));
    for (const path of [...words.flatMap(this.subjects), ...matches]) {
      const place = protectedPlace(path, this.#around, this.#rules.protect);
      if (place !== undefined) return place;
    }
    const glob = words.find(
      ({ value, isGlob }) => isGlob && mayMatchName(value, [...PROTECTED_PARTS, ...PROTECTED_NAMES]),
    );
    return glob?.source;
  }

  allowsPaths(rule: Rule, tool: string, subjects: readonly PathSubject[]): boolean {
    const { subject, covers } = rule;
    if (isWhole(rule, tool)) return true;
    if (subject.kind !== 'path' || !covers(tool)) return false;
    return subjects.every((path) => subject.pattern.matches(path, this.#around, true));
  }

  areFiles({ words, areAll }: NonNullable<Reading['unless']>): boolean {
    const isFile = words.flatMap(({ value, isLiteral }) => {
      const is = isLiteral ? this.#places.areFiles.get(value) : false;
      return is === undefined && !areAll ? [] : [is === true];
    });
    return isFile.length > 0 && isFile.every(Boolean);
  }

  isCertainlyOutside(words: readonly ShellWord[]): boolean {
    return words.some(
      (word) => word.isLiteral && this.subjects(word).some((path) => !isInsideRoot(path, this.#around)),
    );
  }

  /**
   * A rule that hides everything below one of these directories. A program that receives such a directory may read any
   * file in it.
   */
  ruleHidingAllBelow(words: readonly ShellWord[]): Rule | undefined {
    const below = words.flatMap(this.subjects).map(({ written, spelled, real }) => ({
      ...{ written, spelled: `${spelled}/anything` },
      real: real === undefined ? undefined : `${real}/anything`,
    }));
    return [...this.#rules.deny, ...this.#rules.ask].find(
      ({ subject, covers }) =>
        subject.kind === 'path' &&
        covers('read') &&
        below.some((path) => subject.pattern.matches(path, this.#around, false)),
    );
  }

  /**
   * The first word that makes a program work outside, or run a file from there. A pattern such as `bash(make *)` covers
   * the project's own make only.
   */
  worksOutside(words: readonly ShellWord[]): string | undefined {
    const outside = workPlacesOf(words).find(
      (word) =>
        this.subjects(word).some((path) => !isInsideRoot(path, this.#around)) ||
        (word.isGlob && !this.globOf(word)?.staysInside),
    );
    return outside && `${outside.source} leads outside`;
  }
}
