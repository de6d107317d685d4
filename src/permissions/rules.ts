/**
 * Parses permission rules: `tool`, `tool(spec)`, `mcp__server__*`. Rule: each rule is parsed once, at configuration. A
 * misspelt rule throws a ConfigurationError that names it, so it never silently protects nothing.
 */
import { ConfigurationError } from '../errors.ts';
import { type PathPattern, pathPatterns } from './pathRules.ts';

/** The subject of a rule, besides the tool. */
export type RuleSubject =
  | { kind: 'tool' }
  | { kind: 'command'; pattern: CommandPattern }
  | { kind: 'path'; pattern: PathPattern }
  | { kind: 'agent'; pattern: CommandPattern }
  | { kind: 'domain'; matches(host: string): boolean };

export interface Rule {
  text: string;
  /** The layer of the rule; absent for a rule of the host. */
  layer?: string;
  /** Expects the tool's name in lower case. */
  covers(tool: string): boolean;
  subject: RuleSubject;
}

export interface CommandPattern {
  matches(text: string): boolean;
  /** The pattern has no `*`, so it matches one command only. */
  exact: boolean;
  /** The text before the first `*`. */
  head: string;
}

export const READ_TOOLS: readonly string[] = ['read', 'ls', 'glob', 'grep'];
export const EDIT_TOOLS: readonly string[] = ['edit', 'write', 'multiedit'];

/** The tools that a path rule covers: `read` covers all reading tools, `edit`, `write` and `multiedit` each cover all three. */
const PATH_TOOLS: { readonly [name: string]: readonly string[] } = {
  read: READ_TOOLS,
  ls: ['ls'],
  glob: ['glob'],
  grep: ['grep'],
  edit: EDIT_TOOLS,
  write: EDIT_TOOLS,
  multiedit: EDIT_TOOLS,
};

const NAME = /^[a-z_][\w.-]*$/i;
const MCP_NAME = /^mcp__[\w.*-]+$/i;
const LONGEST = 4_096;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/;

/** True if the rule covers every call of the tool. */
export const isWhole = (rule: Rule, tool: string): boolean => rule.subject.kind === 'tool' && rule.covers(tool);

/**
 * Parses one rule. A path rule with braces has one result for each alternative. Throws a ConfigurationError that quotes an
 * invalid rule.
 */
export function parseRule(input: unknown): readonly Rule[] {
  if (typeof input !== 'string')
    throw new ConfigurationError(`a permission rule must be a string; got ${typeof input}`);
  const wrong = (why: string): ConfigurationError =>
    new ConfigurationError(`the permission rule ${JSON.stringify(input.slice(0, LONGEST))} ${why}`);
  const text = input.trim();
  if (text.length > LONGEST) throw wrong(`is longer than ${LONGEST} characters`);
  if (CONTROLS.test(text)) throw wrong('holds a control character');
  const open = text.indexOf('(');
  const name = (open === -1 ? text : text.slice(0, open)).toLowerCase();
  const spec = open === -1 ? undefined : text.slice(open + 1, -1);
  if (open !== -1 && !text.endsWith(')')) throw wrong('has no closing parenthesis');
  if (spec !== undefined && spec.trim() === '') throw wrong('has nothing between its parentheses');
  if (!NAME.test(name) && !MCP_NAME.test(name)) throw wrong('must be a tool name, or a tool name with (what of it)');
  if (spec === undefined) return [{ text, covers: namesTool(name), subject: { kind: 'tool' } }];
  if (name === 'bash' || name === 'agent') {
    const pattern = commandPattern(spec);
    if (pattern === undefined) throw wrong('has no command before its *');
    if (name === 'bash') return [{ text, covers: (tool) => tool === 'bash', subject: { kind: 'command', pattern } }];
    return [{ text, covers: () => true, subject: { kind: 'agent', pattern } }];
  }
  if (name === 'webfetch') {
    const matches = domainPattern(spec);
    if (matches === undefined) throw wrong('must name a host, as in WebFetch(domain:example.com)');
    return [{ text, covers: (tool) => tool === 'webfetch', subject: { kind: 'domain', matches } }];
  }
  const tools = PATH_TOOLS[name];
  if (!Object.hasOwn(PATH_TOOLS, name) || tools === undefined) {
    const toolNames = ['bash', 'agent', 'webfetch', ...Object.keys(PATH_TOOLS)].join(', ');
    throw wrong(`gives a part of ${name}, and only ${toolNames} have parts`);
  }
  const patterns = pathPatterns(spec);
  if (typeof patterns === 'string') throw wrong(patterns);
  return patterns.map((pattern) => ({
    ...{ text, covers: (tool) => tools.includes(tool) },
    subject: { kind: 'path', pattern },
  }));
}

/** The text is a valid rule. */
export function isRule(text: string): boolean {
  try {
    parseRule(text);
    return true;
  } catch {
    return false;
  }
}

export function parseRules(what: string, rules: unknown, layer?: string): Rule[] {
  if (rules === undefined) return [];
  if (!Array.isArray(rules))
    throw new ConfigurationError(`${what} must be a list of rules, like ["bash(git status *)"]`);
  const parsed = rules.flatMap(parseRule);
  return layer === undefined ? parsed : parsed.map((rule) => ({ ...rule, layer }));
}

function namesTool(name: string): (tool: string) => boolean {
  if (name.includes('*')) {
    const pattern = textPattern(name);
    return (tool) => pattern(tool);
  }
  const tools = EDIT_TOOLS.includes(name) ? EDIT_TOOLS : [name];
  const wholeServer = name.startsWith('mcp__') && name.split('__').length === 2 ? `${name}__` : undefined;
  return (tool) => tools.includes(tool) || (wholeServer !== undefined && tool.startsWith(wholeServer));
}

/**
 * `*` matches any text and `\` makes the next character literal. A trailing ` *` or `:*` also matches a command without
 * arguments. A run of blanks outside of quotes counts as one blank.
 */
export function commandPattern(spec: string): CommandPattern | undefined {
  const written = spec.trim().replace(/:\*$/, ' *');
  const pattern = withSingleBlanks(written, QUOTED_IN_RULE);
  if (pattern === '*') return { matches: () => true, exact: false, head: '' };
  const pieces = piecesOf(pattern);
  const [first = ''] = pieces;
  if (pieces.length > 1 && first.trim() === '') return undefined;
  const tests = [...new Set([pattern, written])].flatMap((text) => {
    const all = textPattern(text);
    return text.endsWith(' *') && !text.endsWith('\\ *') ? [all, textPattern(text.slice(0, -2))] : [all];
  });
  return { matches: (text) => tests.some((test) => test(text)), exact: pieces.length === 1, head: first };
}

/** Matches quoted parts in the text of a command, and runs of blanks. */
export const QUOTED = /\\.|'[^']*'|"(?:\\.|[^"\\])*"|[ \t]+/gs;
/** The same in a rule, where `\` makes the next character literal. */
const QUOTED_IN_RULE = /\\\\(?:\\.|[^\\])|\\.|'(?:\\.|[^'\\])*'|"(?:\\\\(?:\\.|[^\\])|\\.|[^"\\])*"|[ \t]+/gs;

/** The text with one blank in place of each run of blanks outside of quotes. */
export const withSingleBlanks = (text: string, quoted: RegExp): string =>
  text.replace(quoted, (part) => (/^[ \t]/.test(part) ? ' ' : part));

/** `domain:example.com` is that host; `domain:*.example.com` is every host below it. */
function domainPattern(spec: string): ((host: string) => boolean) | undefined {
  const [, below, name] = /^domain:\s*(\*\.)?([^\s*/:@?#]+)\s*$/i.exec(spec.trim()) ?? [];
  if (name === undefined || !URL.canParse(`http://${name}`)) return undefined;
  const host = hostName(new URL(`http://${name}`));
  return below === undefined ? (each) => each === host : (each) => each.endsWith(`.${host}`);
}

/** The host of an address as rules compare it. */
export const hostName = ({ hostname }: URL): string => hostname.replace(/\.$/, '');

/** The literal texts around each `*`. */
function piecesOf(pattern: string): string[] {
  const pieces = [''];
  for (let at = 0; at < pattern.length; at += 1) {
    const character = pattern[at] ?? '';
    const literal = character === '\\' && at + 1 < pattern.length;
    if (literal) at += 1;
    if (character === '*' && !literal) pieces.push('');
    else pieces.push(`${pieces.pop() ?? ''}${literal ? (pattern[at] ?? '') : character}`);
  }
  return pieces;
}

/** Takes the first occurrence of each piece, so matching is linear in the text. */
function textPattern(pattern: string): (text: string) => boolean {
  const pieces = piecesOf(pattern);
  const first = pieces[0] ?? '';
  const last = pieces.at(-1) ?? '';
  const middle = pieces.slice(1, -1);
  if (pieces.length === 1) return (text) => text === first;
  return (text) => {
    if (!text.startsWith(first) || !text.endsWith(last) || text.length < first.length + last.length) return false;
    let at = first.length;
    const end = text.length - last.length;
    for (const piece of middle) {
      const index = text.indexOf(piece, at);
      if (index === -1 || index + piece.length > end) return false;
      at = index + piece.length;
    }
    return true;
  };
}

/** A rule for exactly this command, whatever characters it contains. */
export const exactCommandRule = (text: string): string => `bash(${text.replace(/[\\*]/g, '\\$&')})`;
