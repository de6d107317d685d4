/**
 * What the rules say of a line of the shell: a verdict for each command and redirection in it, and the strictest of them
 * for the line. Rule: every part must be allowed for the line to be; a doubt about the line asks at best; deny rules are
 * tried on everything that was found, and on the raw text where it could not be read.
 */

import { allowForm, exactForms, namedProgram, strictForms, unwrapped, wantsExactRule } from './commandForms.ts';
import { type Places, placesOf } from './linePlaces.ts';
import { NamedFiles } from './namedFiles.ts';
import { isInsideRoot, type PathSubject, pathRule, type Surroundings } from './pathRules.ts';
import { handsOn, indirectReadingOf } from './readings/indirectReadings.ts';
import { innerLines, piecesOf, readsCommands, redirectsOf } from './readings/innerCommands.ts';
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

/** Files that take anything and keep nothing, or are the command's own outputs. */
const SINKS: ReadonlySet<string> = new Set(['/dev/null', '/dev/stdout', '/dev/stderr', '/dev/fd/1', '/dev/fd/2']);

/** What holds of the commands in a text that another one runs. */
const INNER = /^(deny|protected|ask|doubt:) /;

/** `isExact`: a rule for exactly this command allows it. */
type Part = Finding & { text: string; isExact?: boolean };

export async function shellVerdict(text: string, rules: RuleSet, around: Surroundings): Promise<JudgedVerdict> {
  const line = readShellLine(text, around);
  const hiding = [...rules.deny, ...rules.ask].filter(
    ({ subject, covers }) => subject.kind === 'path' && covers('read'),
  );
  const inner = new Map(line.commands.map((command) => [command, innerLines(command)]));
  const places = await placesOf(line, { inner: [...inner.values()].flat(), around, hiding });
  return new LineJudge(rules, around, { line, inner, places }).verdict(text);
}

interface JudgedLine {
  line: ShellLine;
  /** The lines in texts that its commands run. */
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
      const part = this.#ofCommand(command);
      const own = command.redirects.map((redirect) => this.#ofRedirect(redirect));
      return [part, ...own, ...this.#ofInner(command, part)];
    });
    parts.push(...redirects.map((redirect) => this.#ofRedirect(redirect)));
    parts.push(...this.#line.tested.map((word) => this.#ofTest(word)).filter(({ outcome }) => outcome !== 'allow'));
    const line = this.#ofLine(text, [...doubts, ...this.#places.doubts]);
    const { outcome, by, layer } = strictest([...parts, ...line]);
    const matched = [...new Set([...parts, ...line].flatMap((each) => each.matched))];
    const shown = parts.map(({ text, outcome, by, why }) => ({ text, outcome, by, ...(why !== undefined && { why }) }));
    const saves = savesOf([...parts, ...line]);
    const confined = [...parts, ...line].every((each) => each.confined === true);
    return { outcome, by, ...(layer !== undefined && { layer }), matched, parts: shown, saves, confined };
  }

  /** What the commands in the texts of a command would do that nobody may, or that has to be asked about. */
  #ofInner(command: SimpleCommand, { isExact }: Part): Part[] {
    const lines = this.#inner.get(command) ?? [];
    const parts = lines.flatMap((line) => [
      ...line.commands.map((inner) => this.#ofCommand(inner)),
      ...redirectsOf(line).map((redirect) => this.#ofRedirect(redirect)),
    ]);
    const [doubt = lines.some(({ isUnread }) => isUnread) ? 'a text in it cannot be parsed' : undefined] =
      lines.length > 0 ? this.#places.innerDoubts : [];
    const held = parts.filter(({ by }) => INNER.test(by) && !(isExact && by.startsWith('doubt:')));
    if (doubt !== undefined && !isExact)
      held.push({ text: command.source, outcome: 'ask', by: `doubt: ${doubt}`, matched: [] });
    return held.map((part) => ({ ...part, confined: false }));
  }

  /** A file that `[[ -f x ]]` looks up: like `test`, it tells whether the file is there. */
  #ofTest(word: ShellWord): Part {
    const { deny, ask, allow } = this.#rules;
    const subjects = this.#files.subjects(word);
    const outside = subjects.find((path) => !isInsideRoot(path, this.#around));
    const isKnown = word.isLiteral || word.isGlob;
    const opens = (rule: Rule): boolean => outside !== undefined && this.#files.allowsPaths(rule, 'read', subjects);
    const facts = {
      ...{ deny: this.#files.naming(deny, [word], ['read']), ask: this.#files.naming(ask, [word], ['read']) },
      ...{ allow: allow.filter(opens), reads: isKnown && outside === undefined },
    };
    const finding = findingOf(facts, this.#rules);
    const why = isKnown
      ? `${word.source} leads to ${outside?.real ?? 'an unknown place'}`
      : `${word.source} is computed`;
    const confined = finding.outcome !== 'deny' && !this.#files.isCertainlyOutside([word]);
    return { text: word.source, ...finding, confined, ...(finding.outcome === 'ask' && { why }) };
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
    const facts = {
      deny: this.#files.naming(deny, words),
      ask: this.#files.naming(ask, words),
      allow: [],
      reads: true,
    };
    const whole = findingOf(facts, this.#rules);
    const found: Finding[] = [{ ...whole, confined: whole.outcome === 'allow' }];
    const lists = new Set(this.#line.lists);
    const leaves = words.find(
      (word) => (word.isGlob && !this.#files.globOf(word)?.staysInside) || (lists.has(word) && word.mayBecomeGlob),
    );
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
    const inner = (this.#inner.get(command) ?? []).flatMap(({ commands }) => commands);
    const forms = [command, ...inner].flatMap(strictForms);
    const strict = (rules: readonly Rule[]): Rule[] => [
      ...rules.filter((rule) => isWhole(rule, 'bash') || forms.some((text) => isCommand(rule, text))),
      ...this.#files.naming(rules, named, reading === undefined ? ['read', 'edit'] : ['read']),
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
        ...this.#files.guessed([...deny, ...ask], named, reading?.namesOnly === true, pathspecs(words)),
      ],
      allow: allow.filter(allows),
      guarded: reading ? undefined : this.#files.guarded(command.words),
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

  /** Why a command is asked about though something allows it, and no rule for exactly this command does. */
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
    const whole = reading ? undefined : (this.#files.hiddenWhole(words.slice(1)) ?? this.#places.copied.get(command));
    if (whole) return `it may show files of ${whole.text}`;
    // A rule for such commands was made for what they show; one for every command was not.
    if (allow.some(({ subject }) => subject.kind === 'command')) return this.#files.worksOutside(words);
    const hidden = this.#hidden(command, reading);
    if (hidden) return `it may show files of ${hidden.text}`;
    if (reading || indirectReadingOf(words)) return undefined;
    const isKnownLate = handsOn(words) || readsCommands({ ...command, words: [...words] });
    return isKnownLate ? 'what it changes is known only when it runs' : undefined;
  }

  /** A rule that hides files which the command would show. Of commits nobody knows what they hold. */
  #hidden(command: SimpleCommand, { unless }: Partial<Reading> = {}): Rule | undefined {
    return unless && this.#files.areFiles(unless) ? undefined : this.#places.hidden.get(command);
  }

  get #hides(): boolean {
    return [...this.#rules.deny, ...this.#rules.ask].some(
      ({ subject, covers }) => subject.kind === 'path' && covers('read'),
    );
  }

  #ofRedirect({ operator, target, source }: ShellRedirect): Part {
    const { deny, ask, allow } = this.#rules;
    const reads = operator === '<';
    const tools = operator === '<>' ? ['read', 'edit'] : [reads ? 'read' : 'edit'];
    const words = target ? [target] : [];
    if (target?.isLiteral && SINKS.has(target.value)) {
      return { text: source, outcome: 'allow', by: 'read-only', matched: [], confined: true };
    }
    const subjects = target?.isLiteral ? this.#files.subjects(target) : [];
    const isPipe = target?.isProcess === true;
    const opens = (rule: Rule): boolean =>
      isWhole(rule, 'bash') ||
      (subjects.length > 0 && tools.every((tool) => this.#files.allowsPaths(rule, tool, subjects)));
    const facts = {
      deny: this.#files.naming(deny, words, tools),
      ask: [...this.#files.naming(ask, words, tools), ...this.#files.guessed([...deny, ...ask], words, false)],
      allow: allow.filter(opens),
      guarded: reads ? undefined : this.#files.guarded(words),
      reads: reads && (isPipe || (subjects.length > 0 && subjects.every((path) => isInsideRoot(path, this.#around)))),
      save: this.#saved(tools, subjects),
    };
    const strictly = findingOf({ ...facts, ask: this.#files.naming(ask, words, tools), reads: true }, this.#rules);
    const confined = reads && strictly.outcome === 'allow' && !this.#files.isCertainlyOutside(words);
    const held = findingOf(facts, this.#rules);
    const outside = subjects.find((path) => !isInsideRoot(path, this.#around));
    const cause =
      this.#files.causeOf(held.by, words) ?? (outside && `${source} leads to ${outside.real ?? 'an unknown place'}`);
    const why = held.outcome === 'allow' ? undefined : cause;
    const finding = { text: source, ...held, confined, ...(why !== undefined && { why }) };
    if (finding.outcome !== 'allow' || !target || target.isLiteral || target.isProcess) return finding;
    return { ...finding, outcome: 'ask', by: `doubt: ${target.source} is computed` };
  }

  /** In a sandbox, a reading command finds nothing outside; one that names it for certain is asked about all the same. */
  #isConfined(command: SimpleCommand, reading: Reading): boolean {
    const { paths, usesGit } = reading;
    // What a commit holds of a hidden file is in the repository, and no sandbox hides that.
    if (usesGit && (this.#hidden(command, reading) || !this.#places.ownsRepository)) return false;
    if (usesGit && this.#hides && !paths.every(({ isLiteral }) => isLiteral)) return false;
    return !this.#files.isCertainlyOutside(paths);
  }

  /** No one rule allows what both reads and writes. */
  #saved([tool, ...more]: readonly string[], [path, ...others]: readonly PathSubject[]): string | undefined {
    if (!tool || !path || more.length + others.length > 0) return undefined;
    return pathRule(tool, path, this.#around);
  }

  /** Why a reading command may read what nobody allowed: something is unknown, hidden by a rule, or lies outside. */
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
