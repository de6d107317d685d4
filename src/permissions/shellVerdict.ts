/**
 * Evaluates a shell line: one verdict for each command and redirection, and the strictest of them for the line. Rule:
 * the line is allowed only if every part is allowed. A line with a doubt is never allowed unasked. Deny rules apply to
 * every command that was found, and to the raw text of a part that could not be parsed.
 */

import { allowForm, exactForms, namedProgram, needsExactRule, strictForms } from './commandForms.ts';
import { type Places, placesOf } from './linePlaces.ts';
import { NamedFiles } from './namedFiles.ts';
import { isInsideRoot, type PathSubject, pathRule, type Surroundings } from './pathRules.ts';
import { indirectReadingOf, passesUnknownNames } from './readings/indirectReadings.ts';
import { innerLinesOf, piecesOf, programDoubt, readsCommands, redirectsOf } from './readings/innerCommands.ts';
import type { Reading } from './readings/reading.ts';
import { readingOf } from './readings/readOnlyCommands.ts';
import { exactCommandRule, isWhole, type Rule } from './rules.ts';
import {
  isHarmlessVariable,
  readShellLine,
  type ShellLine,
  type ShellRedirect,
  type SimpleCommand,
} from './shellSyntax.ts';
import { type Finding, findingOf, type JudgedVerdict, type RuleSet, strictest } from './verdict.ts';
import type { ShellWord } from './wordExpansion.ts';
import { globsDirectories, pathspecs } from './wordPaths.ts';
import { unwrapped } from './wrappers.ts';

/** Files that store nothing, or are the command's own outputs. */
const SINKS: ReadonlySet<string> = new Set(['/dev/null', '/dev/stdout', '/dev/stderr', '/dev/fd/1', '/dev/fd/2']);

/** Verdicts on the commands in a text that carry over to the command which runs the text. */
const INNER = /^(deny|protected|ask|doubt:) /;

/** `isExact`: a rule for exactly this command allows it. */
type Part = Finding & { text: string; isExact?: boolean };

export async function shellVerdict(text: string, rules: RuleSet, around: Surroundings): Promise<JudgedVerdict> {
  const line = readShellLine(text, around);
  const hiding = [...rules.deny, ...rules.ask].filter(
    ({ subject, covers }) => subject.kind === 'path' && covers('read'),
  );
  const inner = innerLinesOf(line);
  const places = await placesOf(line, { inner: [...inner.values()].flat(), around, hiding });
  return new LineJudge(rules, around, { line, inner, places }).verdict(text);
}

interface JudgedLine {
  line: ShellLine;
  /** The shell lines in the texts that its commands run. */
  inner: ReadonlyMap<SimpleCommand, readonly ShellLine[]>;
  places: Places;
}

class LineJudge {
  readonly #rules: RuleSet;
  readonly #around: Surroundings;
  readonly #line: ShellLine;
  readonly #inner: JudgedLine['inner'];
  readonly #places: Places;
  readonly #files: NamedFiles;

  constructor(rules: RuleSet, around: Surroundings, { line, inner, places }: JudgedLine) {
    this.#rules = rules;
    this.#around = around;
    this.#line = line;
    this.#inner = inner;
    this.#places = places;
    this.#files = new NamedFiles(rules, around, places);
  }

  verdict(text: string): JudgedVerdict {
    const { commands, redirects, doubts } = this.#line;
    const parts: Part[] = commands.flatMap((command) => {
      const part = this.#commandPart(command);
      const own = command.redirects.map((redirect) => this.#redirectPart(redirect));
      return [part, ...own, ...this.#innerParts(command, part)];
    });
    parts.push(...redirects.map((redirect) => this.#redirectPart(redirect)));
    parts.push(...this.#line.tested.map((word) => this.#testPart(word)).filter(({ outcome }) => outcome !== 'allow'));
    const line = this.#lineFindings(text, [...doubts, ...this.#places.doubts]);
    const { outcome, by, layer } = strictest([...parts, ...line]);
    const matched = [...new Set([...parts, ...line].flatMap((each) => each.matched))];
    const shown = parts.map(({ text, outcome, by, why }) => ({ text, outcome, by, ...(why !== undefined && { why }) }));
    const saves = savesOf([...parts, ...line]);
    const confined = [...parts, ...line].every((each) => each.confined === true);
    return { outcome, by, ...(layer !== undefined && { layer }), matched, parts: shown, saves, confined };
  }

  /** The denied commands, and those that need permission, in the texts that a command runs. */
  #innerParts(command: SimpleCommand, { isExact }: Part): Part[] {
    const lines = this.#inner.get(command) ?? [];
    const parts = lines.flatMap((line) => [
      ...line.commands.map((inner) => this.#commandPart(inner)),
      ...redirectsOf(line).map((redirect) => this.#redirectPart(redirect)),
    ]);
    const isUnread = lines.some((line) => line.isUnread);
    const program = programDoubt(
      [command, ...lines.flatMap(({ commands }) => commands)],
      [...this.#rules.deny, ...this.#rules.ask],
    );
    const [doubt = isUnread ? 'a text in it cannot be parsed' : program] =
      lines.length > 0 ? this.#places.innerDoubts : [];
    const carriedOver = parts.filter(({ by }) => INNER.test(by) && !(isExact && by.startsWith('doubt:')));
    if (doubt !== undefined && !isExact)
      carriedOver.push({ text: command.source, outcome: 'ask', by: `doubt: ${doubt}`, matched: [] });
    return carriedOver.map((part) => ({ ...part, confined: false }));
  }

  /** A file that `[[ -f x ]]` tests. Like `test`, it reveals whether the file exists. */
  #testPart(word: ShellWord): Part {
    const { deny, ask, allow } = this.#rules;
    const subjects = this.#files.subjects(word);
    const outside = subjects.find((path) => !isInsideRoot(path, this.#around));
    const isKnown = word.isLiteral || word.isGlob;
    const opens = (rule: Rule): boolean => outside !== undefined && this.#files.allowsPaths(rule, 'read', subjects);
    const facts = {
      ...{ deny: this.#files.rulesNaming(deny, [word], ['read']), ask: this.#files.rulesNaming(ask, [word], ['read']) },
      ...{ allow: allow.filter(opens), reads: isKnown && outside === undefined },
    };
    const finding = findingOf(facts, this.#rules);
    const why = isKnown
      ? `${word.source} leads to ${outside?.real ?? 'an unknown place'}`
      : `${word.source} is computed`;
    const confined = finding.outcome !== 'deny' && !this.#files.isCertainlyOutside([word]);
    return { text: word.source, ...finding, confined, ...(finding.outcome === 'ask' && { why }) };
  }

  /** The findings about the line as a whole. */
  #lineFindings(text: string, doubts: readonly string[]): Finding[] {
    const { deny, ask } = this.#rules;
    // Words of commands and targets of redirections are checked together with their command.
    const redirects = [this.#line, ...this.#line.commands].flatMap((each) => each.redirects);
    const judged = new Set([
      ...this.#line.commands.flatMap((command) => command.words),
      ...redirects.map(({ target }) => target),
    ]);
    const words = this.#line.words.filter((word) => !judged.has(word));
    const facts = {
      deny: this.#files.rulesNaming(deny, words),
      ask: this.#files.rulesNaming(ask, words),
      allow: [],
      reads: true,
    };
    const whole = findingOf(facts, this.#rules);
    const lineFindings: Finding[] = [{ ...whole, confined: whole.outcome === 'allow' }];
    const lists = new Set(this.#line.lists);
    const leaves = words.find(
      (word) => (word.isGlob && !this.#files.globOf(word)?.staysInside) || (lists.has(word) && word.mayBecomeGlob),
    );
    const [doubt = leaves && `${leaves.source} may match files outside`] = doubts;
    if (doubt === undefined) return lineFindings;
    const pieces = this.#line.isUnread ? piecesOf(text) : [];
    const denied = deny.filter((rule) => pieces.some((piece) => isCommand(rule, piece)));
    if (denied.length > 0) lineFindings.push(findingOf({ ...facts, deny: denied }, this.#rules));
    // A doubt about file names is harmless in a sandbox that hides denied files. A doubt about the syntax is not, since it concerns the
    // commands that run.
    return [
      ...lineFindings,
      { outcome: 'ask', by: `doubt: ${doubt}`, matched: [], confined: this.#line.doubts.length === 0 },
    ];
  }

  #commandPart(command: SimpleCommand): Part {
    const { deny, ask, allow } = this.#rules;
    const words = unwrapped(command.words);
    const exactOnly = needsExactRule(command.words);
    const form = allowForm(command);
    const reading = exactOnly || form === undefined ? undefined : readingOf(words);
    const named = reading ? [...reading.paths, ...(reading.options ?? [])] : command.words;
    const inner = (this.#inner.get(command) ?? []).flatMap(({ commands }) => commands);
    const forms = [command, ...inner].flatMap(strictForms);
    const strict = (rules: readonly Rule[]): Rule[] => [
      ...rules.filter((rule) => isWhole(rule, 'bash') || forms.some((text) => isCommand(rule, text))),
      ...this.#files.rulesNaming(rules, named, reading === undefined ? ['read', 'edit'] : ['read']),
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
      ask: [
        ...strict(ask),
        ...this.#files.rulesMatchingGlobs([...deny, ...ask], named, reading?.namesOnly === true, pathspecs(words)),
      ],
      allow: allow.filter(allows),
      guarded: reading ? undefined : this.#files.protectedPlaceOf(command.words),
      reads: reading ? unread === undefined : setsOnly(command),
      save: ruleFor(command, exactOnly || form === undefined ? exact[0] : form),
    };
    const strictly = findingOf({ ...facts, ask: strict(ask), reads: true }, { ...this.#rules, mode: 'default' });
    const inside = reading ?? confinedReadingOf(command, words, exactOnly);
    const confined = (inside ? this.#isConfined(command, inside) : setsOnly(command)) && strictly.outcome === 'allow';
    const finding = { ...findingOf(facts, this.#rules), confined };
    const isExact = facts.allow.some(({ subject }) => subject.kind === 'command' && subject.pattern.exact);
    const doubt = finding.outcome === 'allow' && !isExact ? this.#doubtOf(command, facts.allow, reading) : undefined;
    if (doubt !== undefined)
      return { text: command.source, outcome: 'ask', by: `doubt: ${doubt}`, matched: finding.matched, confined };
    const cause = finding.outcome === 'allow' ? undefined : this.#files.causeOf(finding.by, command.words);
    const why = finding.outcome === 'ask' ? (cause ?? unread) : cause;
    return { text: command.source, ...finding, isExact, ...(why !== undefined && { why }) };
  }

  /**
   * The reason why an allowed command still needs permission; undefined if a rule for exactly this command allows it.
   */
  #doubtOf(command: SimpleCommand, allow: readonly Rule[], reading: Reading | undefined): string | undefined {
    const words = unwrapped(command.words);
    const hides = [...this.#rules.deny, ...this.#rules.ask].some(({ subject }) => subject.kind === 'path');
    const isUnclear = (word: ShellWord, at: number): boolean => {
      if (word.isLiteral) return false;
      if (word.isGlob) return at === 0 || (globsDirectories(word.value) && (hides || !reading));
      const mayHide = !reading || (hides && !reading.namesOnly);
      return mayHide && !isMessage(words, at) && !word.isProcess;
    };
    const unclear = words.find(isUnclear);
    if (unclear) return `${unclear.source} ${unclear.isGlob ? 'has a pattern before its last part' : 'is computed'}`;
    const whole = reading
      ? undefined
      : (this.#files.ruleHidingAllBelow(words.slice(1)) ?? this.#places.copied.get(command));
    if (whole) return `it may show files of ${whole.text}`;
    // A rule for such commands also accepts their output. A rule for all commands does not.
    if (allow.some(({ subject }) => subject.kind === 'command')) return this.#files.worksOutside(words);
    const hidden = this.#hidden(command, reading);
    if (hidden) return `it may show files of ${hidden.text}`;
    if (reading || indirectReadingOf(words)) return undefined;
    const isKnownLate = passesUnknownNames(words) || readsCommands({ ...command, words: [...words] });
    return isKnownLate ? 'what it changes is known only when it runs' : undefined;
  }

  /** A rule that hides files which the command would show. */
  #hidden(command: SimpleCommand, { unless }: Partial<Reading> = {}): Rule | undefined {
    return unless && this.#files.areFiles(unless) ? undefined : this.#places.hidden.get(command);
  }

  get #hasReadRules(): boolean {
    return [...this.#rules.deny, ...this.#rules.ask].some(
      ({ subject, covers }) => subject.kind === 'path' && covers('read'),
    );
  }

  #redirectPart({ operator, target, source }: ShellRedirect): Part {
    const { deny, ask, allow } = this.#rules;
    const reads = operator === '<';
    const tools = operator === '<>' ? ['read', 'edit'] : [reads ? 'read' : 'edit'];
    const words = target ? [target] : [];
    if (target?.isLiteral && SINKS.has(target.value)) {
      return { text: source, outcome: 'allow', by: 'read-only', matched: [], confined: true };
    }
    const subjects = target?.isLiteral ? this.#files.subjects(target) : [];
    const isPipe = target?.isProcess === true;
    const opens = (rule: Rule, tool: string): boolean =>
      isWhole(rule, 'bash') || (subjects.length > 0 && this.#files.allowsPaths(rule, tool, subjects));
    const isOpen = tools.every((tool) => allow.some((rule) => opens(rule, tool)));
    const facts = {
      deny: this.#files.rulesNaming(deny, words, tools),
      ask: [
        ...this.#files.rulesNaming(ask, words, tools),
        ...this.#files.rulesMatchingGlobs([...deny, ...ask], words, false),
      ],
      allow: isOpen ? allow.filter((rule) => tools.some((tool) => opens(rule, tool))) : [],
      guarded: reads ? undefined : this.#files.protectedPlaceOf(words),
      reads: reads && (isPipe || (subjects.length > 0 && subjects.every((path) => isInsideRoot(path, this.#around)))),
      save: this.#saved(tools, subjects),
    };
    const strictly = findingOf({ ...facts, ask: this.#files.rulesNaming(ask, words, tools), reads: true }, this.#rules);
    const confined = reads && strictly.outcome === 'allow' && !this.#files.isCertainlyOutside(words);
    const verdict = findingOf(facts, this.#rules);
    const outside = subjects.find((path) => !isInsideRoot(path, this.#around));
    const cause =
      this.#files.causeOf(verdict.by, words) ?? (outside && `${source} leads to ${outside.real ?? 'an unknown place'}`);
    const why = verdict.outcome === 'allow' ? undefined : cause;
    const finding = { text: source, ...verdict, confined, ...(why !== undefined && { why }) };
    if (finding.outcome !== 'allow' || !target || target.isLiteral || target.isProcess) return finding;
    return { ...finding, outcome: 'ask', by: `doubt: ${target.source} is computed` };
  }

  /**
   * True if the sandbox hides from a reading command everything outside. A word that certainly names an outside path
   * still needs permission.
   */
  #isConfined(command: SimpleCommand, reading: Reading): boolean {
    const { paths, usesGit } = reading;
    // A commit may contain a hidden file, and no sandbox hides the contents of the repository.
    if (usesGit && (this.#hidden(command, reading) || !this.#places.ownsRepository)) return false;
    if (usesGit && this.#hasReadRules && !paths.every(({ isLiteral }) => isLiteral)) return false;
    return !this.#files.isCertainlyOutside(paths);
  }

  /** No single rule allows both reading and writing. */
  #saved([tool, ...more]: readonly string[], [path, ...others]: readonly PathSubject[]): string | undefined {
    if (!tool || !path || more.length + others.length > 0) return undefined;
    return pathRule(tool, path, this.#around);
  }

  /**
   * The reason why a reading command may read a file that no rule allows: it is unknown, hidden by a rule, or outside.
   */
  #unreadable(command: SimpleCommand, reading: Reading): string | undefined {
    const { paths, options = [], filesOnly, usesGit } = reading;
    const hidden = this.#hidden(command, reading);
    if (hidden) return `it may show files of ${hidden.text}`;
    if (usesGit && this.#places.git !== undefined) return this.#places.git;
    const listed = command.words.find(({ mayBecomeGlob }) => mayBecomeGlob);
    if (listed) return `${listed.source} may match files outside`;
    for (const word of [...paths, ...options]) {
      if (!word.isLiteral && !word.isGlob) return `${word.source} is computed`;
      if (word.isGlob && !this.#files.globOf(word)?.staysInside) return `${word.source} may match files outside`;
      if (filesOnly && word.isLiteral && this.#places.areFiles.get(word.value) === false)
        return `${word.source} is no file`;
      const subjects = this.#files.subjects(word);
      const outside = subjects.find((path) => !isInsideRoot(path, this.#around));
      if (outside && !this.#rules.allow.some((rule) => this.#files.allowsPaths(rule, 'read', subjects)))
        return `${word.source} leads to ${outside.real ?? 'an unknown place'}`;
    }
    return undefined;
  }
}

/** A commit message may be computed, because git never reads it as anything else. */
const isMessage = (words: readonly ShellWord[], at: number): boolean =>
  words[0]?.value === 'git' && words[at]?.isQuoted === true && /^(-m|-am|--message)$/.test(words[at - 1]?.value ?? '');

/** The reading of a command in a sandbox where it can change nothing. Its file names may be unknown until it runs. */
function confinedReadingOf(command: SimpleCommand, words: readonly ShellWord[], exactOnly: boolean) {
  if (allowForm(command) === undefined) return undefined;
  return indirectReadingOf(words) ?? (exactOnly ? undefined : readingOf(words, true));
}

/** True if the command only sets variables that no program reads, or only redirects. */
const setsOnly = ({ words, assigned }: SimpleCommand): boolean =>
  words.length === 0 && assigned.every(({ name }) => isHarmlessVariable(name));

function isCommand({ subject }: Rule, text: string): boolean {
  return subject.kind === 'command' && subject.pattern.matches(text);
}

const RULE_LONGEST = 4_000;
const SAVED_MAX = 5;

/** The rule for exactly this command. A computed word may become anything, so no rule is saved for it. */
function ruleFor({ words, source }: SimpleCommand, text: string | undefined): string | undefined {
  const isPlain = words.length > 0 && words.every(({ isLiteral, isGlob }) => isLiteral || isGlob);
  if (text === undefined || !isPlain || text.length > RULE_LONGEST || source.length > RULE_LONGEST) return undefined;
  return exactCommandRule(text);
}

/** One rule for each part that needs one; empty if rules would not be enough. */
function savesOf(findings: readonly Finding[]): string[] {
  const findingsToSave = findings.filter(({ outcome }) => outcome !== 'allow');
  const saves = new Set(findingsToSave.flatMap(({ save }) => (save === undefined ? [] : [save])));
  const isEnough = findingsToSave.every(({ save }) => save !== undefined) && saves.size <= SAVED_MAX;
  return isEnough ? [...saves] : [];
}
