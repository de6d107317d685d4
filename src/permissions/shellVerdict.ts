/**
 * What the rules say of a line of the shell: a verdict for each command and redirection in it, and the strictest of them
 * for the line. Rule: every part must be allowed for the line to be; a doubt about the line asks at best; deny rules are
 * tried on everything that was found, and on the raw text where it could not be read.
 */

import { PROTECTED_NAMES, PROTECTED_PARTS } from '../tools/coding/sandbox/protectedNames.ts';
import {
  allowForm,
  exactForms,
  innerScripts,
  namedProgram,
  strictForms,
  unwrapped,
  wantsExactRule,
} from './commandForms.ts';
import { type Places, placesOf } from './linePlaces.ts';
import {
  isInsideRoot,
  type PathPattern,
  type PathSubject,
  pathRule,
  protectedPlace,
  type Surroundings,
} from './pathRules.ts';
import { mayMeetGlob } from './patternReach.ts';
import { indirectReadingOf } from './readings/indirectReadings.ts';
import type { Reading } from './readings/reading.ts';
import { readingOf } from './readings/readOnlyCommands.ts';
import { exactCommandRule, type Rule } from './rules.ts';
import {
  isHarmlessVariable,
  readShellLine,
  type ShellLine,
  type ShellRedirect,
  type SimpleCommand,
} from './shellSyntax.ts';
import { type Finding, findingOf, type JudgedVerdict, type RuleSet, strictest } from './verdict.ts';
import type { ShellWord } from './wordExpansion.ts';
import { candidatesOf, type GlobMatches, globsDirectories, mayMatch, mayMatchName, pathspecs } from './wordPaths.ts';
import { workPlacesOf } from './workPlaces.ts';

const NESTED_MAX = 4;
/** Files that take anything and keep nothing, or are the command's own outputs. */
const SINKS: ReadonlySet<string> = new Set(['/dev/null', '/dev/stdout', '/dev/stderr', '/dev/fd/1', '/dev/fd/2']);

type Part = Finding & { text: string };

export async function shellVerdict(text: string, rules: RuleSet, around: Surroundings): Promise<JudgedVerdict> {
  const line = readShellLine(text, around);
  const hiding = [...rules.deny, ...rules.ask].filter(
    ({ subject, covers }) => subject.kind === 'path' && covers('read'),
  );
  const places = await placesOf(line, around, hiding);
  return new LineJudge(rules, around, line, places).verdict(text);
}

const isWhole = (rule: Rule, tool: string): boolean => rule.subject.kind === 'tool' && rule.covers(tool);

class LineJudge {
  readonly #rules: RuleSet;
  readonly #around: Surroundings;
  readonly #line: ShellLine;
  readonly #places: Places;

  constructor(rules: RuleSet, around: Surroundings, line: ShellLine, places: Places) {
    this.#rules = rules;
    this.#around = around;
    this.#line = line;
    this.#places = places;
  }

  verdict(text: string): JudgedVerdict {
    const { commands, redirects, doubts } = this.#line;
    const parts: Part[] = commands.flatMap((command) => [
      this.#ofCommand(command),
      ...command.redirects.map((redirect) => this.#ofRedirect(redirect)),
    ]);
    parts.push(...redirects.map((redirect) => this.#ofRedirect(redirect)));
    const line = this.#ofLine(text, [...doubts, ...this.#places.doubts]);
    const { outcome, by, layer } = strictest([...parts, ...line]);
    const matched = [...new Set([...parts, ...line].flatMap((each) => each.matched))];
    const shown = parts.map(({ text, outcome, by, why }) => ({ text, outcome, by, ...(why !== undefined && { why }) }));
    const saves = savesOf([...parts, ...line]);
    const confined = [...parts, ...line].every((each) => each.confined === true);
    return { outcome, by, ...(layer !== undefined && { layer }), matched, parts: shown, saves, confined };
  }

  /** What is said of the line as a whole. */
  #ofLine(text: string, doubts: readonly string[]): Finding[] {
    const { deny, ask } = this.#rules;
    // Words of commands, and targets of redirections, are judged with these.
    const redirects = [this.#line, ...this.#line.commands].flatMap((each) => each.redirects);
    const judged = new Set([
      ...this.#line.commands.flatMap((command) => command.words),
      ...redirects.map(({ target }) => target),
    ]);
    const words = this.#line.words.filter((word) => !judged.has(word));
    const facts = { deny: this.#naming(deny, words), ask: this.#naming(ask, words), allow: [], reads: true };
    const whole = findingOf(facts, this.#rules);
    const found: Finding[] = [{ ...whole, confined: whole.outcome === 'allow' }];
    const leaves = words.find((word) => word.isGlob && !this.#globOf(word)?.staysInside);
    const [doubt = leaves && `${leaves.source} may match files outside`] = doubts;
    if (doubt === undefined) return found;
    const pieces = this.#line.isUnread ? piecesOf(text) : [];
    const denied = deny.filter((rule) => pieces.some((piece) => isCommand(rule, piece)));
    if (denied.length > 0) found.push(findingOf({ ...facts, deny: denied }, this.#rules));
    // Which files a line names does not matter where it finds none but those it may read; what it runs does.
    return [...found, { outcome: 'ask', by: `doubt: ${doubt}`, matched: [], confined: this.#line.doubts.length === 0 }];
  }

  #ofCommand(command: SimpleCommand): Part {
    const { deny, ask, allow } = this.#rules;
    const words = unwrapped(command.words);
    const exactOnly = wantsExactRule(command.words);
    const form = allowForm(command);
    const reading = exactOnly || form === undefined ? undefined : readingOf(words);
    const named = reading ? [...reading.paths, ...(reading.options ?? [])] : command.words;
    const forms = [...strictForms(command), ...innerForms(command)];
    const strict = (rules: readonly Rule[]): Rule[] => [
      ...rules.filter((rule) => isWhole(rule, 'bash') || forms.some((text) => isCommand(rule, text))),
      ...this.#naming(rules, named, reading === undefined ? ['read', 'edit'] : ['read']),
    ];
    const exact = exactForms(command);
    const program = namedProgram(words);
    const allows = (rule: Rule): boolean => {
      if (isWhole(rule, 'bash')) return true;
      if (rule.subject.kind !== 'command') return false;
      const { pattern } = rule.subject;
      const isNamed = program !== undefined && ` ${pattern.head.trim()} `.startsWith(` ${program} `);
      const texts = pattern.exact ? [...exact] : [];
      if ((!exactOnly || isNamed) && form !== undefined) texts.push(form);
      return texts.some((text) => isCommand(rule, text));
    };
    const unread = reading && this.#unreadable(command, reading);
    const facts = {
      deny: strict(deny),
      ask: [...strict(ask), ...this.#guessed([...deny, ...ask], named, reading?.namesOnly === true, pathspecs(words))],
      allow: allow.filter(allows),
      guarded: reading ? undefined : this.#guarded(command.words),
      reads: reading ? unread === undefined : setsOnly(command),
      save: ruleFor(command, exactOnly || form === undefined ? exact[0] : form),
    };
    const strictly = findingOf({ ...facts, ask: strict(ask), reads: true }, { ...this.#rules, mode: 'default' });
    const inside = reading ?? confinedReadingOf(command, words, exactOnly);
    const confined = (inside ? this.#isConfined(command, inside) : setsOnly(command)) && strictly.outcome === 'allow';
    const finding = { ...findingOf(facts, this.#rules), confined };
    const doubt = finding.outcome === 'allow' ? this.#doubtOf(command, facts.allow, reading) : undefined;
    if (doubt !== undefined)
      return { text: command.source, outcome: 'ask', by: `doubt: ${doubt}`, matched: finding.matched, confined };
    const why = finding.outcome === 'ask' ? unread : undefined;
    return { text: command.source, ...finding, ...(why !== undefined && { why }) };
  }

  /** Why a command is asked about though something allows it; a rule for exactly this command leaves no doubt. */
  #doubtOf(command: SimpleCommand, allow: readonly Rule[], reading: Reading | undefined): string | undefined {
    const words = unwrapped(command.words);
    if (allow.some(({ subject }) => subject.kind === 'command' && subject.pattern.exact)) return undefined;
    const hides = [...this.#rules.deny, ...this.#rules.ask].some(({ subject }) => subject.kind === 'path');
    const isUnclear = (word: ShellWord, at: number): boolean => {
      if (word.isLiteral) return false;
      if (word.isGlob) return at === 0 || (globsDirectories(word.value) && (hides || !reading));
      const mayHide = !reading || (hides && !reading.namesOnly);
      return mayHide && !isMessage(words, at) && !word.isProcess;
    };
    const unclear = words.find(isUnclear);
    if (unclear) return `${unclear.source} ${unclear.isGlob ? 'has a pattern before its last part' : 'is computed'}`;
    const whole = reading ? undefined : this.#hiddenWhole(words.slice(1));
    if (whole) return `it may show files of ${whole.text}`;
    // A rule for such commands was made for what they show; one for every command was not.
    if (allow.some(({ subject }) => subject.kind === 'command')) return this.#worksOutside(words);
    const hidden = this.#hidden(command, reading);
    return hidden && `it may show files of ${hidden.text}`;
  }

  /** A rule that hides all below a directory among these: what a program that is given it reads there, nobody knows. */
  #hiddenWhole(words: readonly ShellWord[]): Rule | undefined {
    const below = words.flatMap(this.#subjects).map(({ given, spelled, real }) => ({
      ...{ given, spelled: `${spelled}/anything` },
      real: real === undefined ? undefined : `${real}/anything`,
    }));
    return [...this.#rules.deny, ...this.#rules.ask].find(
      ({ subject, covers }) =>
        subject.kind === 'path' &&
        covers('read') &&
        below.some((path) => subject.pattern.matches(path, this.#around, false)),
    );
  }

  /** A pattern means the programs of this project: one that works elsewhere, or runs a file from there, is another. */
  #worksOutside(words: readonly ShellWord[]): string | undefined {
    const outside = workPlacesOf(words).find(
      (word) =>
        this.#subjects(word).some((path) => !isInsideRoot(path, this.#around)) ||
        (word.isGlob && !this.#globOf(word)?.staysInside),
    );
    return outside && `${outside.source} leads outside`;
  }

  /** A rule that hides files which the command would show. Of commits nobody knows what they hold. */
  #hidden(command: SimpleCommand, { unless }: Partial<Reading> = {}): Rule | undefined {
    return unless && this.#areFiles(unless) ? undefined : this.#places.hidden.get(command);
  }

  get #hides(): boolean {
    return [...this.#rules.deny, ...this.#rules.ask].some(
      ({ subject, covers }) => subject.kind === 'path' && covers('read'),
    );
  }

  #globOf = ({ value }: ShellWord): GlobMatches | undefined => this.#places.globs.get(value);

  #ofRedirect({ operator, target, source }: ShellRedirect): Part {
    const { deny, ask, allow } = this.#rules;
    const reads = operator === '<';
    const tools = operator === '<>' ? ['read', 'edit'] : [reads ? 'read' : 'edit'];
    const words = target ? [target] : [];
    if (target?.isLiteral && SINKS.has(target.value)) {
      return { text: source, outcome: 'allow', by: 'read-only', matched: [], confined: true };
    }
    const subjects = target?.isLiteral ? this.#subjects(target) : [];
    const isPipe = target?.isProcess === true;
    const opens = (rule: Rule): boolean =>
      isWhole(rule, 'bash') || (subjects.length > 0 && tools.every((tool) => this.#allowsPaths(rule, tool, subjects)));
    const facts = {
      deny: this.#naming(deny, words, tools),
      ask: [...this.#naming(ask, words, tools), ...this.#guessed([...deny, ...ask], words, false)],
      allow: allow.filter(opens),
      guarded: reads ? undefined : this.#guarded(words),
      reads: reads && (isPipe || (subjects.length > 0 && subjects.every((path) => isInsideRoot(path, this.#around)))),
      save: this.#saved(tools, subjects),
    };
    const strictly = findingOf({ ...facts, ask: this.#naming(ask, words, tools), reads: true }, this.#rules);
    const confined = reads && strictly.outcome === 'allow' && !this.#isCertainlyOutside(words);
    const finding = { text: source, ...findingOf(facts, this.#rules), confined };
    if (finding.outcome !== 'allow' || !target || target.isLiteral || target.isProcess) return finding;
    return { ...finding, outcome: 'ask', by: `doubt: ${target.source} is computed` };
  }

  /** In a sandbox, a reading command finds nothing outside; one that names it for certain is asked about all the same. */
  #isConfined(command: SimpleCommand, reading: Reading): boolean {
    const { paths, usesGit } = reading;
    // What a commit holds of a hidden file is in the repository, and no sandbox hides that.
    if (usesGit && (this.#hidden(command, reading) || !this.#places.ownsRepository)) return false;
    if (usesGit && this.#hides && !paths.every(({ isLiteral }) => isLiteral)) return false;
    return !this.#isCertainlyOutside(paths);
  }

  #isCertainlyOutside(words: readonly ShellWord[]): boolean {
    return words.some(
      (word) => word.isLiteral && this.#subjects(word).some((path) => !isInsideRoot(path, this.#around)),
    );
  }

  /** No one rule allows what both reads and writes. */
  #saved([tool, ...more]: readonly string[], [path, ...others]: readonly PathSubject[]): string | undefined {
    if (!tool || !path || more.length + others.length > 0) return undefined;
    return pathRule(tool, path, this.#around);
  }

  #subjects = (word: ShellWord): readonly PathSubject[] =>
    candidatesOf(word, this.#around.home).flatMap((path) => this.#places.subjects.get(path) ?? []);

  /** The rules with a path that one of these words may spell. */
  #naming(rules: readonly Rule[], words: readonly ShellWord[], tools: readonly string[] = ['read', 'edit']): Rule[] {
    const subjects = words.flatMap(this.#subjects);
    return rules.filter(({ subject, covers }) => {
      if (subject.kind !== 'path' || !tools.some(covers)) return false;
      return subjects.some((path) => subject.pattern.matches(path, this.#around, false));
    });
  }

  /** The rules that file names may fit which a glob stands for. */
  #guessed(
    rules: readonly Rule[],
    words: readonly ShellWord[],
    namesOnly: boolean,
    shown: readonly ShellWord[] = [],
  ): Rule[] {
    const globs = words.filter(({ isGlob }) => isGlob);
    const matches = namesOnly ? [] : globs.flatMap((word) => this.#globOf(word)?.paths ?? []);
    return rules.filter(({ subject, covers }) => {
      if (subject.kind !== 'path') return false;
      const { last, matches: fits } = subject.pattern;
      if (globs.some((word) => mayMatch(word.value, last, false) && this.#mayMeet(subject.pattern, word))) return true;
      if (matches.some((path) => fits(path, this.#around, false))) return true;
      return covers('read') && shown.some(({ value }) => mayMatch(value, last, true));
    });
  }

  #mayMeet(pattern: PathPattern, glob: ShellWord): boolean {
    const directories = this.#subjects(glob);
    return directories.length === 0 || directories.some((from) => mayMeetGlob(pattern, glob.value, from, this.#around));
  }

  #guarded(words: readonly ShellWord[]): string | undefined {
    const matches = words.flatMap((word) => (word.isGlob ? (this.#globOf(word)?.paths ?? []) : []));
    for (const path of [...words.flatMap(this.#subjects), ...matches]) {
      const place = protectedPlace(path, this.#around, this.#rules.protect);
      if (place !== undefined) return place;
    }
    const glob = words.find(
      ({ value, isGlob }) => isGlob && mayMatchName(value, [...PROTECTED_PARTS, ...PROTECTED_NAMES]),
    );
    return glob?.source;
  }

  #allowsPaths(rule: Rule, tool: string, subjects: readonly PathSubject[]): boolean {
    const { subject, covers } = rule;
    if (isWhole(rule, tool)) return true;
    if (subject.kind !== 'path' || !covers(tool)) return false;
    return subjects.every((path) => subject.pattern.matches(path, this.#around, true));
  }

  #areFiles({ words, areAll }: NonNullable<Reading['unless']>): boolean {
    const found = words.flatMap(({ value, isLiteral }) => {
      const is = isLiteral ? this.#places.areFiles.get(value) : false;
      return is === undefined && !areAll ? [] : [is === true];
    });
    return found.length > 0 && found.every(Boolean);
  }

  /** Why a reading command may read what nobody allowed: something is unknown, hidden by a rule, or lies outside. */
  #unreadable(command: SimpleCommand, reading: Reading): string | undefined {
    const { paths, options = [], filesOnly, usesGit } = reading;
    const hidden = this.#hidden(command, reading);
    if (hidden) return `it may show files of ${hidden.text}`;
    if (usesGit && this.#places.git !== undefined) return this.#places.git;
    for (const word of [...paths, ...options]) {
      if (!word.isLiteral && !word.isGlob) return `${word.source} is computed`;
      if (word.isGlob && !this.#globOf(word)?.staysInside) return `${word.source} may match files outside`;
      if (filesOnly && word.isLiteral && this.#places.areFiles.get(word.value) === false)
        return `${word.source} is no file`;
      const subjects = this.#subjects(word);
      const outside = subjects.find((path) => !isInsideRoot(path, this.#around));
      if (outside && !this.#rules.allow.some((rule) => this.#allowsPaths(rule, 'read', subjects)))
        return `${word.source} leads to ${outside.real ?? 'an unknown place'}`;
    }
    return undefined;
  }
}

/** The text of a commit's message may be computed: git takes it for nothing else. */
const isMessage = (words: readonly ShellWord[], at: number): boolean =>
  words[0]?.value === 'git' && words[at]?.isQuoted === true && /^(-m|-am|--message)$/.test(words[at - 1]?.value ?? '');

/** What a command reads where nothing can be changed: its files may be known only when it runs. */
function confinedReadingOf(command: SimpleCommand, words: readonly ShellWord[], exactOnly: boolean) {
  if (allowForm(command) === undefined) return undefined;
  return indirectReadingOf(words) ?? (exactOnly ? undefined : readingOf(words, true));
}

/** Deeds of the shell itself: variables are set that no command reads, or files are only redirected. */
const setsOnly = ({ words, assigned }: SimpleCommand): boolean =>
  words.length === 0 && assigned.every(({ name }) => isHarmlessVariable(name));

function isCommand({ subject }: Rule, text: string): boolean {
  return subject.kind === 'command' && subject.pattern.matches(text);
}

/** The forms of the commands in texts that a shell inside the command will read. */
function innerForms(command: SimpleCommand, depth = 0): string[] {
  if (depth > NESTED_MAX) return [];
  return innerScripts(command).flatMap((text) =>
    readShellLine(text).commands.flatMap((inner) => [...strictForms(inner), ...innerForms(inner, depth + 1)]),
  );
}

/** Of a text that could not be read as a line of the shell: what may be commands between its separators. */
function piecesOf(text: string): string[] {
  const pieces = text.split(/[\n;&|(){}`"'$<>]+/).map((piece) => piece.trim());
  const forms = (piece: string): string[] => [piece, ...readShellLine(piece).commands.flatMap(strictForms)];
  return [...new Set(pieces)].filter((piece) => piece !== '').flatMap(forms);
}

const RULE_LONGEST = 4_000;
const SAVED_MAX = 5;

/** For this command and no other. A computed word may become anything, and no rule is saved for that. */
function ruleFor({ words, source }: SimpleCommand, text: string | undefined): string | undefined {
  const isPlain = words.length > 0 && words.every(({ isLiteral, isGlob }) => isLiteral || isGlob);
  if (text === undefined || !isPlain || text.length > RULE_LONGEST || source.length > RULE_LONGEST) return undefined;
  return exactCommandRule(text);
}

/** One rule for each part that needs one; none where they would not be enough. */
function savesOf(findings: readonly Finding[]): string[] {
  const asked = findings.filter(({ outcome }) => outcome !== 'allow');
  const saves = new Set(asked.flatMap(({ save }) => (save === undefined ? [] : [save])));
  const isEnough = asked.every(({ save }) => save !== undefined) && saves.size <= SAVED_MAX;
  return isEnough ? [...saves] : [];
}
