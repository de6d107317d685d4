/**
 * Scripts of `sed` and programs of `awk` that do no more than print what they read. Rule: a small grammar of what is
 * known to be harmless; whatever does not fit it may run programs or open files, and is no reading.
 */
import type { ShellWord } from '../wordExpansion.ts';

/** The words that name files; undefined where the script may do more than print. */
export type ScriptFiles = readonly ShellWord[] | undefined;

const isOption = ({ value }: ShellWord): boolean => value.startsWith('-') && value !== '-';
const mayNameFile = (word: ShellWord): boolean => word.isLiteral || word.isGlob || word.isQuoted;

const SED_OPTION = /^-[nErszu]+$|^--(quiet|silent|regexp-extended|separate|null-data)$/;

/** `sed -n '1,40p' file`, `sed 's/a/b/' file`: no option that edits in place, no command that writes, reads or runs. */
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

/** A pattern between two slashes: the first one without a backslash ends it, and no bracket may be open there. */
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
    const found = SED_COMMAND.exec(rest)?.[0] ?? '';
    if (found.trim() === '' || !endsCommand(found, rest)) return false;
    rest = rest.slice(found.length);
  }
  return true;
}

/** Between two commands stands a separator, or a brace. */
const endsCommand = (command: string, rest: string): boolean =>
  command.length === rest.length || /[;\n{}]\s*$/.test(command);

/** What stands in brackets is read in two ways where a mark, a backslash or another bracket is among it. */
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

// A name may follow a number without a space (`1system(x)`), so these are refused inside of other words too.
const AWK_REFUSED = /system|getline|ARGV|ARGC|ENVIRON|PROCINFO|fflush|close|@|\\\r?\n/;
const AWK_OPTION = /^-F.*$|^-v[a-zA-Z_]\w*=.*$/s;

/** `awk '{ print $1 }' file`: a program that opens no file, pipe or library of its own. */
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
  // Only an action in braces prints, so what stands before the first one compares.
  const actions = /\{.*$/s.exec(program.value)?.[0] ?? '';
  return /[>|]/.test(actions.replace(/\|\|/g, '').replace(/(?<!>)>=/g, '')) ? undefined : files;
}
