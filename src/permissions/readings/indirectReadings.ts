/**
 * Commands that pass file names to another command which only reads: `xargs cat`, `find -exec grep x {} +`. Rule: the
 * file names are unknown in advance. Therefore these commands run unasked only in a sandbox that hides the denied
 * files.
 */

import type { ShellWord } from '../wordExpansion.ts';
import { baseName, unwrapped } from '../wrappers.ts';
import type { Reading } from './reading.ts';
import { readingOf } from './readOnlyCommands.ts';

const XARGS_FLAG =
  /^(-[0rtx]+|--(null|no-run-if-empty|verbose)|-[nPLd]\S+|-I\S+|--(max-args|max-procs|delimiter)=\S+)$/;
const XARGS_VALUED = /^-[nPLdI]$/;
const ENDS = /^[;+]$/;

/** A placeholder for a file name that is unknown until the command runs. */
const name = (source: string): ShellWord => ({
  ...{ value: source, source, isLiteral: false, isGlob: false, isQuoted: true },
});

/** Expects a command without wrappers. Returns undefined if it, or a command that it runs, may do more than read. */
export function indirectReadingOf(words: readonly ShellWord[]): Reading | undefined {
  const [program, ...args] = words;
  if (!program?.isLiteral) return undefined;
  if (program.value === 'xargs') return xargsReading(args);
  return program.value === 'find' ? findReading(program, args) : undefined;
}

/** True if the command passes names to another command that are unknown until it runs. */
export const passesUnknownNames = ([program, ...args]: readonly ShellWord[]): boolean => {
  const base = baseName(program?.value ?? '');
  return /^(xargs|parallel)$/.test(base) || (base === 'find' && args.some(({ value }) => /^-(exec|ok)/.test(value)));
};

function xargsReading(args: readonly ShellWord[]): Reading | undefined {
  let at = 0;
  let mark: string | undefined;
  for (let word = args[at]; word?.value.startsWith('-'); word = args[at]) {
    const isValued = XARGS_VALUED.test(word.value);
    const value = isValued ? args[at + 1] : word;
    if (!word.isLiteral || !value?.isLiteral || !(isValued || XARGS_FLAG.test(word.value))) return undefined;
    if (word.value.startsWith('-I')) mark = isValued ? value.value : word.value.slice(2);
    at += isValued ? 2 : 1;
  }
  const inner = args.slice(at);
  const named = mark === undefined ? [...inner, name('{}')] : withNames(inner, mark);
  return inner.length === 0 ? undefined : readingOf(unwrapped(named), true);
}

/** Checks each `-exec … ;` and `-exec … +` as its own command, and the rest as a plain `find`. */
function findReading(program: ShellWord, args: readonly ShellWord[]): Reading | undefined {
  const own: ShellWord[] = [program];
  const readings: Reading[] = [];
  for (let at = 0; at < args.length; at += 1) {
    const word = args[at];
    if (!word || !/^-exec(dir)?$/.test(word.value)) {
      if (word) own.push(word);
      continue;
    }
    const length = args.slice(at).findIndex(({ value, isLiteral }) => isLiteral && ENDS.test(value));
    if (word.value === '-execdir' || length < 0) return undefined;
    const reading = readingOf(unwrapped(withNames(args.slice(at + 1, at + length), '{}')), true);
    if (!reading) return undefined;
    readings.push(reading);
    at += length;
  }
  const ownReading = readings.length > 0 ? readingOf(own, true) : undefined;
  if (!ownReading) return undefined;
  const all = [ownReading, ...readings];
  return {
    ...{ paths: all.flatMap(({ paths }) => paths), descends: 'all', namesOnly: false, filesOnly: false },
    usesGit: all.some(({ usesGit }) => usesGit),
  };
}

const withNames = (words: readonly ShellWord[], mark: string): ShellWord[] =>
  words.map((word) => (word.isLiteral && word.value.includes(mark) ? name(word.source) : word));
