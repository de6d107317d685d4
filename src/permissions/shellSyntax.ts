/**
 * Parses a shell line into its simple commands with `unbash`, including those in pipes, lists, loops, functions,
 * substitutions, heredocs and arithmetic. Rule: syntax that bash may read differently is recorded as a doubt, and a
 * line with a doubt never runs unasked. The commands found in it are still checked.
 */
import { type Command, forEachChild, parse, type Redirection, type SyntaxNode, type Word } from 'unbash';
import { expandedWords, type KnownValues, knownValuesIn, type ShellWord } from './wordExpansion.ts';

export interface ShellRedirect {
  operator: string;
  target: ShellWord | undefined;
  source: string;
}

export interface SimpleCommand {
  source: string;
  words: ShellWord[];
  /** Variables set before the command name. */
  assigned: { name: string; value: string; source: string }[];
  redirects: ShellRedirect[];
  /** Heredocs and here-strings that the command reads. */
  input: string[];
}

export interface ShellLine {
  commands: SimpleCommand[];
  /** Every word of the line, including those of loops, assignments and tests. */
  words: ShellWord[];
  /** Words of loops and lists, which bash matches against file names. */
  lists: ShellWord[];
  /** Words of `[[ … ]]` that name tested files. */
  tested: ShellWord[];
  /** Redirections of whole groups. */
  redirects: ShellRedirect[];
  /** The reasons why the line may do something else than it appears to do. */
  doubts: string[];
  /** Some commands of the line may be missing in `commands`. */
  isUnread: boolean;
}

const CHARACTERS_MAX = 10_000;
const COMMANDS_MAX = 256;
/** The most commands that are checked in one line. */
const LOOKED_AT_MAX = 20_000;
const DEPTH_MAX = 100;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is sought
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/;
/** Bash removes a backslash at the end of a line before it reads the characters around it. */
const CONTINUED = /\$[\w{(]*\\\r?\n|[<>&|;(]\\\r?\n[<>&|;(]/;
const DIGITS = /^\d+$/;
/** Operators of `test` and `[[` that look a file up. */
export const FILE_TEST = /^-[abcdefghkprstuwxGLNOS]$/;

/** Never throws: a text that the parser cannot read gives a doubt. */
export function readShellLine(text: string, around?: { cwd: string; home: string }): ShellLine {
  const reader = new LineReader(around ? knownValuesIn(text, around) : {});
  if (text.length > CHARACTERS_MAX) reader.doubt(`the command is longer than ${CHARACTERS_MAX} characters`);
  if (CONTROLS.test(text)) reader.doubt('the command holds control characters');
  if (CONTINUED.test(text)) reader.doubt('a line continues inside an expansion or an operator');
  try {
    reader.script(text);
  } catch {
    reader.unread('the command cannot be parsed');
  }
  if (reader.line.commands.length > COMMANDS_MAX) reader.doubt(`the line holds more than ${COMMANDS_MAX} commands`);
  return reader.line;
}

class LineReader {
  readonly line: ShellLine = {
    ...{ commands: [], words: [], lists: [], tested: [] },
    ...{ redirects: [], doubts: [], isUnread: false },
  };
  readonly #knownValues: KnownValues;
  readonly #words = new Map<Word, readonly ShellWord[]>();
  #source = '';
  #depth = 0;

  constructor(knownValues: KnownValues) {
    this.#knownValues = knownValues;
  }

  doubt(why: string): void {
    if (!this.line.doubts.includes(why)) this.line.doubts.push(why);
  }

  unread(why: string): void {
    this.line.isUnread = true;
    this.doubt(why);
  }

  script(text: string): void {
    const script = parse(text);
    this.#source = text;
    if (script.errors?.length) this.unread('the command cannot be parsed');
    this.#visit(script);
  }

  #visit(node: SyntaxNode): void {
    if (this.#depth > DEPTH_MAX || this.line.commands.length > LOOKED_AT_MAX) {
      this.unread('the command is nested too deeply, or too long');
      return;
    }
    const outer = this.#source;
    this.#depth += 1;
    if (node.type === 'Script') {
      if ('errors' in node && node.errors?.length) this.unread('the command cannot be parsed');
      if (node.source !== undefined) this.#source = node.source;
    }
    this.#look(node);
    forEachChild(node, (child) => this.#visit(child));
    this.#depth -= 1;
    this.#source = outer;
  }

  #look(node: SyntaxNode): void {
    switch (node.type) {
      case 'Command':
        this.line.commands.push(this.#command(node));
        break;
      case 'Redirected':
        for (const each of node.redirects) this.#redirect(each, this.line.redirects);
        break;
      case 'CaseItem':
        // `case` patterns are compared with a text, never with file names.
        for (const pattern of node.pattern) this.#words.set(pattern, []);
        break;
      case 'Word':
        this.#expanded(node);
        break;
      case 'Function':
        this.doubt('a function is defined');
        break;
      case 'Coproc':
        this.doubt('a coprocess is started');
        break;
      case 'For':
      case 'Select':
        if (!isHarmlessVariable(node.name.value)) this.doubt(`the variable ${node.name.value} is set`);
        for (const word of node.wordlist ?? []) this.line.lists.push(...this.#expanded(word));
        break;
      case 'ArrayValue':
        for (const word of node.elements) this.#element(word);
        break;
      case 'CommandExpansion':
      case 'ProcessSubstitution':
        if (node.script === undefined) this.unread('a substitution cannot be parsed');
        break;
      default:
        this.#lookAtExpansion(node);
    }
  }

  /** Arithmetic and some parameter expansions run the commands in a variable's value (`a[$(x)]`). */
  #lookAtExpansion(node: SyntaxNode): void {
    switch (node.type) {
      case 'ArithmeticWord':
        if (!DIGITS.test(node.value)) this.doubt('arithmetic uses a variable');
        break;
      case 'ArithmeticExpansion':
      case 'ArithmeticCommand':
        if (node.expression === undefined) this.doubt('arithmetic cannot be parsed');
        break;
      case 'TestUnary':
        if (['-v', '-R'].includes(node.operator)) this.doubt('a test looks a variable up by its name');
        if (FILE_TEST.test(node.operator)) this.line.tested.push(...this.#expanded(node.operand));
        break;
      case 'TestBinary':
        if (/^-(eq|ne|lt|le|gt|ge)$/.test(node.operator)) this.doubt('arithmetic in a test');
        if (/^-(nt|ot|ef)$/.test(node.operator))
          this.line.tested.push(...this.#expanded(node.left), ...this.#expanded(node.right));
        break;
      case 'ParameterExpansion': {
        const { index, operation, prefix } = node;
        if (index !== undefined && !/^(\d+|@|\*)$/.test(index.value)) this.doubt('a list is read at a computed place');
        const sets = operation?.type === 'Default' && operation.operator.includes('=');
        const runs = operation && ['Transform', 'Slice', 'Unknown'].includes(operation.type);
        if (prefix === '!' || runs || sets) this.doubt('a parameter is expanded in an unusual way');
        break;
      }
      case 'Redirect':
        if (node.descriptor?.type === 'FileDescriptorVariable') this.doubt('a redirection sets a variable');
        break;
      case 'HereDoc':
        if (node.closing === undefined) this.doubt('a heredoc has no end');
        break;
    }
  }

  /** Bash evaluates an array index (`a=([x]=1)`), which runs the commands in a variable's value. */
  #element(word: Word): void {
    if (/^\[(?!\d+\]\+?=).*=/s.test(word.text)) this.doubt('a list is written at a computed place');
    this.line.lists.push(...this.#expanded(word));
  }

  #command(node: Command): SimpleCommand {
    const redirects: ShellRedirect[] = [];
    const command: SimpleCommand = {
      source: this.#source.slice(node.pos, node.end).trim(),
      words: [],
      assigned: [],
      redirects,
      input: [],
    };
    if (node.name) command.words.push(...this.#expanded(node.name));
    for (const each of node.prefix) {
      if (each.type !== 'Assignment') continue;
      const value = each.value.type === 'Word' ? each.value.value : '';
      command.assigned.push({ name: each.index ? `${each.name}[]` : each.name, value, source: each.text });
    }
    for (const each of node.args) {
      if (each.type === 'Word') command.words.push(...this.#expanded(each));
      else command.words.push(this.#assignmentWord(each));
    }
    this.#nameDirectory(command.words);
    for (const each of node.redirects) {
      this.#redirect(each, redirects);
      if (each.type === 'HereDoc') command.input.push(each.body.text);
      if (each.type === 'HereString' && each.target) command.input.push(each.target.value);
    }
    return command;
  }

  /** `git -C` with the path of the working directory equals `git -C .`. */
  #nameDirectory(words: ShellWord[]): void {
    const [name, option, directory] = words;
    if (name?.value !== 'git' || option?.value !== '-C' || !directory?.isLiteral) return;
    if (directory.value === this.#knownValues.PWD) words[2] = { ...directory, value: '.' };
  }

  /** `export A=b`: only some builtins read the argument as an assignment. */
  #assignmentWord(node: { pos: number; end: number; text: string; name: string; value: { type: string } }): ShellWord {
    const source = this.#source.slice(node.pos, node.end);
    const word = node.value.type === 'Word' ? this.#word(node.value as unknown as Word) : undefined;
    if (!word || /\[/.test(source.split('=')[0] ?? '')) {
      return { value: source, source, isLiteral: false, isGlob: false, isQuoted: false };
    }
    const head = source.slice(0, source.length - word.source.length);
    const whole = { ...word, value: head + word.value, source, isQuoted: false };
    this.line.words.push(whole);
    return whole;
  }

  /** Reads a word in a place where bash needs exactly one. If its braces give several, it counts as computed. */
  #word(word: Word): ShellWord {
    const [first, ...more] = this.#expanded(word);
    const whole = { value: word.value, source: word.text, isLiteral: false, isGlob: false, isQuoted: false };
    return first && more.length === 0 ? first : whole;
  }

  #expanded(word: Word): readonly ShellWord[] {
    const cached = this.#words.get(word);
    if (cached) return cached;
    const words = expandedWords(word, this.#knownValues);
    this.#words.set(word, words);
    this.line.words.push(...words);
    return words;
  }

  #redirect(node: Redirection, into: ShellRedirect[]): void {
    if (node.type !== 'Redirect') return;
    const target = node.target && this.#word(node.target);
    // A copy of a file descriptor (`2>&1`) or its closing (`>&-`) names no file.
    const isCopy = node.operator === '>&' || node.operator === '<&';
    if (isCopy && target?.isLiteral && /^(\d+-?|-)$/.test(target.value)) return;
    into.push({ operator: node.operator, target, source: this.#source.slice(node.pos, node.end) });
  }
}

const HARMLESS_VARIABLES: ReadonlySet<string> = new Set([
  ...['LANG', 'NODE_ENV', 'CI', 'NO_COLOR', 'FORCE_COLOR', 'TERM', 'COLUMNS', 'LINES', 'CGO_ENABLED', 'GOOS', 'GOARCH'],
  ...['RUST_BACKTRACE', 'PYTHONUNBUFFERED', 'PYTHONDONTWRITEBYTECODE'],
]);

/** If such a variable is set for one command, it changes the output format of the command, never the program that runs. */
export const isHarmlessEnvironment = (name: string): boolean =>
  HARMLESS_VARIABLES.has(name) || /^LC_[A-Z]+$/.test(name);

/**
 * Set in the shell, such a variable does not affect later commands: apart from the exceptions, programs ignore
 * lower-case names.
 */
export const isHarmlessVariable = (name: string): boolean =>
  isHarmlessEnvironment(name) || (/^[a-z][a-z0-9_]*$/.test(name) && !/_proxy$|^npm_/.test(name));
