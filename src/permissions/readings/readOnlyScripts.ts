/**
 * `sed` scripts and `awk` programs that only print what they read. Rule: a small grammar accepts only constructs that
 * are harmless. Any other script may run programs or open files, so it is no reading.
 */
import type { ShellWord } from '../wordExpansion.ts';

/** The words that name files; undefined if the script may do more than print. */
export type ScriptFiles = readonly ShellWord[] | undefined;

const isOption = ({ value }: ShellWord): boolean => value.startsWith('-') && value !== '-';
const mayNameFile = (word: ShellWord): boolean => word.isLiteral || word.isGlob || word.isQuoted;

const SED_OPTION = /^-[nErszu]+$|^--(quiet|silent|regexp-extended|separate|null-data)$/;

/** `sed -n '1,40p' file`, `sed 's/a/b/' file`: no in-place option, and no script command that writes, reads or runs. */
export function sedFiles(args: readonly ShellWord[]): ScriptFiles {
  const files: ShellWord[] = [];
  const scripts: string[] = [];
  for (let at = 0; at < args.length; at += 1) {
    const word = args[at];
    if (!word) break;
    const next = args[at + 1];
    if (/^-[nErszu]*e$/.test(word.value) && next?.isLiteral) {
      scripts.push(next.value);
      at += 1;
    } else if (isOption(word)) {
      if (!word.isLiteral || !SED_OPTION.test(word.value)) return undefined;
    } else files.push(word);
  }
  if (scripts.length === 0) {
    const [script, ...rest] = files.splice(0);
    if (!script?.isLiteral) return undefined;
    scripts.push(script.value);
    files.push(...rest);
  }
  return scripts.every(printsOnly) && files.every(mayNameFile) ? files : undefined;
}

/** A pattern between two slashes. It ends at the first slash without a backslash, and no bracket may be open there. */
const PATTERN = String.raw`\/(?:[^/\\\n]|\\[^\n])*\/`;
const ADDRESS = String.raw`(?:\d+(?:~\d+)?|\$|${PATTERN}I?)`;
const SED_COMMAND = new RegExp(
  String.raw`^\s*(?:${ADDRESS}(?:\s*,\s*(?:${ADDRESS}|[+~]\d+))?)?\s*!?\s*` +
    String.raw`(?:[pdDPNnhHgGx=l]|[qQ]\d*|\{|(s(?<mark>[/|#,:@])(?:(?!\k<mark>)[^\\\n]|\\[^\n])*\k<mark>(?:(?!\k<mark>)[^\\\n]|\\[^\n])*\k<mark>[gpiI\d]*))?\s*(?:[;\n}]|$)?`,
);

function printsOnly(script: string): boolean {
  if (hasOddBracket(script)) return false;
  let rest = script;
  while (rest.trim() !== '') {
    const command = SED_COMMAND.exec(rest)?.[0] ?? '';
    if (command.trim() === '' || !endsCommand(command, rest)) return false;
    rest = rest.slice(command.length);
  }
  return true;
}

/** Two sed commands need a separator or a brace between them. */
const endsCommand = (command: string, rest: string): boolean =>
  command.length === rest.length || /[;\n{}]\s*$/.test(command);

/** Implementations disagree about brackets that contain a quote mark, a backslash or another bracket. */
function hasOddBracket(script: string): boolean {
  for (let at = 0; at < script.length; at += 1) {
    if (script[at] === '\\') at += 1;
    else if (script[at] === '[') {
      const bracket = /^\[\^?\]?[^\][\\/|#,:@;{}\n]*\]/.exec(script.slice(at))?.[0];
      if (bracket === undefined) return true;
      at += bracket.length - 1;
    }
  }
  return false;
}

// A name may follow a number without a space (`1system(x)`), so these words are refused inside other words too.
const AWK_REFUSED = /system|getline|ARGV|ARGC|ENVIRON|PROCINFO|fflush|close|@|\\\r?\n/;
const AWK_OPTION = /^-F.*$|^-v[a-zA-Z_]\w*=.*$/s;

/** `awk '{ print $1 }' file`: the program opens no file, pipe or library. */
export function awkFiles(args: readonly ShellWord[]): ScriptFiles {
  let at = 0;
  for (let word = args[at]; word && isOption(word); word = args[at]) {
    const isApart = /^-[vF]$/.test(word.value);
    const value = isApart ? args[at + 1] : word;
    const option = `${isApart ? word.value : ''}${value?.value ?? ''}`;
    if (!word.isLiteral || !value?.isLiteral || !AWK_OPTION.test(option)) return undefined;
    at += isApart ? 2 : 1;
  }
  const [program, ...files] = args.slice(at);
  if (!program?.isLiteral || AWK_REFUSED.test(program.value) || !files.every(mayNameFile)) return undefined;
  // Only actions in braces print. Before the first brace, `>` is a comparison.
  const actions = /\{.*$/s.exec(program.value)?.[0] ?? '';
  return /[>|]/.test(actions.replace(/\|\|/g, '').replace(/(?<!>)>=/g, '')) ? undefined : files;
}
