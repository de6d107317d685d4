/**
 * What the rules say of a line of the shell: a verdict for each command and redirection in it, and the strictest of them
 * for the line. Rule: every part must be allowed for the line to be; a doubt about the line asks at best; deny rules are
 * tried on everything that was found, and on the raw text where it could not be read.
 */
import { stat } from 'node:fs/promises';
import {
  allowForm,
  baseName,
  exactForms,
  innerScripts,
  strictForms,
  unwrapped,
  wantsExactRule,
} from './commandForms.ts';
import {
  isInsideRoot,
  type PathSubject,
  pathRule,
  pathSubject,
  protectedPlace,
  type Surroundings,
} from './pathRules.ts';
import { type Reading, readingOf } from './readOnlyCommands.ts';
import { exactCommandRule, type Rule } from './rules.ts';
import {
  isHarmlessVariable,
  readShellLine,
  type ShellLine,
  type ShellRedirect,
  type ShellWord,
  type SimpleCommand,
} from './shellSyntax.ts';
import { type Finding, findingOf, type JudgedVerdict, type RuleSet, strictest } from './verdict.ts';
import { candidatesOf, globStaysInside, mayBecomeOption, mayMatch, pathspecs } from './wordPaths.ts';

const DIRECTORIES_MAX = 16;
const PATHS_MAX = 2_000;
const NESTED_MAX = 4;
/** Files that take anything and keep nothing, or are the command's own outputs. */
const SINKS: ReadonlySet<string> = new Set(['/dev/null', '/dev/stdout', '/dev/stderr', '/dev/fd/1', '/dev/fd/2']);

type Part = Finding & { text: string };

export async function shellVerdict(text: string, rules: RuleSet, around: Surroundings): Promise<JudgedVerdict> {
  const line = readShellLine(text);
  const places = await placesOf(line, around);
  return new LineJudge(rules, around, line, places).verdict(text);
}

/** Where the words of a line lead, looked up before anything is judged. */
interface Places {
  doubts: string[];
  subjects: ReadonlyMap<string, readonly PathSubject[]>;
  /** Globs that match nothing outside the working directory. */
  insideGlobs: ReadonlySet<string>;
  /** Of the words that name something that is there: is it a file? */
  areFiles: ReadonlyMap<string, boolean>;
}

async function placesOf(line: ShellLine, around: Surroundings): Promise<Places> {
  const { directories, doubts } = await directoriesOf(line, around);
  const redirects = [...line.redirects, ...line.commands.flatMap((command) => command.redirects)];
  const words = [...line.words, ...redirects.flatMap(({ target }) => (target ? [target] : []))];
  const found = [...new Set(words.flatMap((word) => candidatesOf(word, around.home)))];
  if (found.length > PATHS_MAX) doubts.push('the line names too many files');
  const subjects = new Map<string, readonly PathSubject[]>();
  for (const path of found.slice(0, PATHS_MAX)) {
    subjects.set(path, await Promise.all(directories.map((directory) => pathSubject(path, directory))));
  }
  const insideGlobs = new Set<string>();
  for (const { value, isGlob } of words) {
    for (const directory of isGlob ? directories : [])
      if (await mayBecomeOption(value, directory)) doubts.push('the name of a file may become an option');
    const stays = (directory: string): Promise<boolean> => globStaysInside(value, directory, around);
    if (isGlob && (await Promise.all(directories.map(stays))).every(Boolean)) insideGlobs.add(value);
  }
  const areFiles = new Map<string, boolean>();
  for (const [path, [subject]] of subjects) {
    const found = subject?.real === undefined ? undefined : await stat(subject.real).catch(() => undefined);
    if (found) areFiles.set(path, found.isFile());
  }
  return { doubts, subjects, insideGlobs, areFiles };
}

/** A change of directory may happen or not, so each path is judged in every directory the line may be in. */
async function directoriesOf({ commands }: ShellLine, around: Surroundings) {
  const doubts: string[] = [];
  const found = new Set([around.cwd]);
  for (const { words } of commands) {
    const [name, to, ...more] = unwrapped(words);
    if (!name || !['cd', 'pushd', 'popd', 'chdir'].includes(name.value)) continue;
    if (name.value !== 'cd' || !to?.isLiteral || more.length > 0 || /^[-~]/.test(to.value)) {
      doubts.push('the directory is changed to one that is not known');
      continue;
    }
    for (const directory of [...found]) {
      const next = await pathSubject(to.value, directory);
      if (!isInsideRoot(next, around)) doubts.push('the working directory is left');
      if (found.size < DIRECTORIES_MAX) found.add(next.spelled);
      else doubts.push('the directory is changed too often');
    }
  }
  // What is configured in the other directory can make git run anything.
  const usesGit = commands.some(({ words }) => words.some(({ value }) => baseName(value) === 'git'));
  if (found.size > 1 && usesGit) doubts.push('git is used in another directory');
  return { directories: [...found], doubts };
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
    const shown = parts.map((part) => ({ text: part.text, outcome: part.outcome, by: part.by }));
    const saves = savesOf([...parts, ...line]);
    return { outcome, by, ...(layer !== undefined && { layer }), matched, parts: shown, saves };
  }

  /** What is said of the line as a whole. */
  #ofLine(text: string, doubts: readonly string[]): Finding[] {
    const { deny, ask } = this.#rules;
    const words = this.#line.words.filter(
      (word) => !this.#line.commands.some((command) => command.words.includes(word)),
    );
    const facts = { deny: this.#naming(deny, words), ask: this.#naming(ask, words), allow: [], reads: true };
    const found: Finding[] = [findingOf(facts, this.#rules)];
    const [doubt] = doubts;
    if (doubt === undefined) return found;
    const pieces = this.#line.isUnread ? piecesOf(text) : [];
    const denied = deny.filter((rule) => pieces.some((piece) => isCommand(rule, piece)));
    if (denied.length > 0) found.push(findingOf({ ...facts, deny: denied }, this.#rules));
    return [...found, { outcome: 'ask', by: `doubt: ${doubt}`, matched: [] }];
  }

  #ofCommand(command: SimpleCommand): Part {
    const { deny, ask, allow } = this.#rules;
    const exactOnly = wantsExactRule(command.words);
    const form = allowForm(command);
    const reading = exactOnly || form === undefined ? undefined : readingOf(unwrapped(command.words));
    const named = reading?.paths ?? command.words;
    const forms = [...strictForms(command), ...innerForms(command)];
    const strict = (rules: readonly Rule[]): Rule[] => [
      ...rules.filter((rule) => isWhole(rule, 'bash') || forms.some((text) => isCommand(rule, text))),
      ...this.#naming(rules, named, reading === undefined ? ['read', 'edit'] : ['read']),
    ];
    const exact = exactForms(command);
    const allows = (rule: Rule): boolean => {
      if (isWhole(rule, 'bash')) return true;
      if (rule.subject.kind !== 'command') return false;
      const texts = rule.subject.pattern.exact ? exact : [];
      if (!exactOnly && form !== undefined) texts.push(form);
      return texts.some((text) => isCommand(rule, text));
    };
    const guarded = reading ? undefined : this.#guarded(command.words);
    const facts = {
      deny: strict(deny),
      ask: [...strict(ask), ...this.#guessed([...deny, ...ask], named, pathspecs(unwrapped(command.words)))],
      allow: allow.filter(allows),
      guarded,
      reads: reading ? this.#mayRead(reading) : setsOnly(command),
      save: ruleFor(command, exactOnly || form === undefined ? exact[0] : form),
    };
    return { text: command.source, ...findingOf(facts, this.#rules) };
  }

  #ofRedirect({ operator, target, source }: ShellRedirect): Part {
    const { deny, ask, allow } = this.#rules;
    const reads = operator === '<';
    const tools = operator === '<>' ? ['read', 'edit'] : [reads ? 'read' : 'edit'];
    const words = target ? [target] : [];
    if (target?.isLiteral && SINKS.has(target.value)) {
      return { text: source, outcome: 'allow', by: 'read-only', matched: [] };
    }
    const subjects = target?.isLiteral ? this.#subjects(target) : [];
    const opens = (rule: Rule): boolean =>
      isWhole(rule, 'bash') || (subjects.length > 0 && tools.every((tool) => this.#allowsPaths(rule, tool, subjects)));
    const facts = {
      deny: this.#naming(deny, words, tools),
      ask: [...this.#naming(ask, words, tools), ...this.#guessed([...deny, ...ask], words)],
      allow: allow.filter(opens),
      guarded: reads ? undefined : this.#guarded(words),
      reads: reads && subjects.length > 0 && subjects.every((path) => isInsideRoot(path, this.#around)),
      save: subjects.length === 1 && subjects[0] ? pathRule(tools[0] ?? 'edit', subjects[0], this.#around) : undefined,
    };
    return { text: source, ...findingOf(facts, this.#rules) };
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
  #guessed(rules: readonly Rule[], words: readonly ShellWord[], shown: readonly ShellWord[] = []): Rule[] {
    const globs = words.filter(({ isGlob }) => isGlob);
    return rules.filter(({ subject, covers }) => {
      if (subject.kind !== 'path') return false;
      const { last } = subject.pattern;
      if (globs.some(({ value }) => mayMatch(value, last, false))) return true;
      return covers('read') && shown.some(({ value }) => mayMatch(value, last, true));
    });
  }

  #guarded(words: readonly ShellWord[]): string | undefined {
    for (const path of words.flatMap(this.#subjects)) {
      const place = protectedPlace(path, this.#around, this.#rules.protect);
      if (place !== undefined) return place;
    }
    return undefined;
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

  /** Everything it may read is known, and lies inside, or where a rule allows to read. */
  #mayRead({ paths, descends, unless }: Reading): boolean {
    const { deny, ask, allow } = this.#rules;
    const isBounded = unless && this.#areFiles(unless);
    const mayHide = ({ subject, covers }: Rule): boolean =>
      subject.kind === 'path' && covers('read') && (descends === 'all' || subject.pattern.seesVisible);
    if (descends !== false && !isBounded && [...deny, ...ask].some(mayHide)) return false;
    return paths.every((word) => {
      if (!word.isLiteral && !word.isGlob) return false;
      if (word.isGlob && !this.#places.insideGlobs.has(word.value)) return false;
      const subjects = this.#subjects(word);
      const isInside = subjects.every((path) => isInsideRoot(path, this.#around));
      return isInside || allow.some((rule) => this.#allowsPaths(rule, 'read', subjects));
    });
  }
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
