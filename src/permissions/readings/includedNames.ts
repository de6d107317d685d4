/**
 * Names with a leading dot that ripgrep searches nevertheless, because a glob, a file type or a `!` line of an ignore
 * file includes them. Rule: a pattern that is not understood includes every name.
 */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import ignore from 'ignore';
import type { ShellWord } from '../wordExpansion.ts';

const IGNORE_FILES: readonly string[] = ['.gitignore', '.ignore', '.rgignore', '.git/info/exclude'];
/** A pipe without a writer does not block. */
const UNBLOCKED = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);
const FILE_BYTES_MAX = 256 * 1_024;
/** A pattern with more stars takes too long to compare. */
const STARS_MAX = 6;
const EVERY_NAME = '*';
/** Types that consist of file endings. Such a type includes `.a.ts`, and never `.env`. */
const TYPES_BY_ENDING =
  /^(c|cpp|cs|css|go|html|java|js|json|kotlin|md|markdown|php|py|python|rust|sql|swift|toml|ts|typescript|txt|xml|yaml)$/;
const ENDING = '?*.*';

/** The patterns of names that these arguments of ripgrep include. */
export function includedBy(args: readonly ShellWord[]): string[] {
  return args.flatMap(({ value }, at) => {
    if (/^--type-add(=|$)/.test(value)) return [EVERY_NAME];
    const long = /^--(i?glob|type)(?:=(.*))?$/s.exec(value);
    const [, option = '', attached] = long ?? /^-[a-zA-Z0-9.]*?([gt])=?(.*)$/s.exec(value) ?? [];
    if (option === '') return [];
    const next = args[at + 1];
    const isAttached = long ? attached !== undefined : attached !== '';
    const pattern = isAttached ? attached : next?.isLiteral || next?.isGlob ? next.value : EVERY_NAME;
    if (pattern === undefined || pattern.startsWith('!')) return [];
    if (option.startsWith('t')) return [TYPES_BY_ENDING.test(pattern) ? ENDING : EVERY_NAME];
    return [pattern];
  });
}

/** The patterns of names that the ignore files of a directory include. */
export async function includedByFiles(directory: string): Promise<string[]> {
  const texts = await Promise.all(IGNORE_FILES.map((name) => textOf(join(directory, name))));
  return texts.flatMap((text) => {
    if (text === undefined) return [EVERY_NAME];
    const lines = text.split(/\r?\n/);
    return lines.flatMap((line) => (line.startsWith('!') ? [line.slice(1).trimEnd()] : []));
  });
}

/** The patterns of names that the ignore files of all directories above include. */
export async function includedAbove(directory: string): Promise<string[]> {
  const patterns: string[] = [];
  for (let below = directory, above = dirname(below); above !== below; below = above, above = dirname(above))
    patterns.push(...(await includedByFiles(above)));
  return patterns;
}

/** Empty where the file is missing; undefined where it cannot be read as a whole. */
async function textOf(path: string): Promise<string | undefined> {
  const file = await open(path, UNBLOCKED).catch(() => undefined);
  try {
    const stats = await file?.stat();
    if (!file || !stats || stats.isDirectory()) return '';
    return stats.isFile() && stats.size <= FILE_BYTES_MAX ? new TextDecoder().decode(await file.readFile()) : undefined;
  } catch {
    return undefined;
  } finally {
    await file?.close();
  }
}

/** True if one of the patterns may match this name of a file or directory. */
export function includesName(patterns: readonly string[], name: string): boolean {
  return patterns.flatMap(lastParts).some((part) => {
    if (part.split('*').length > STARS_MAX) return true;
    return ignore({ ignorecase: true }).add(part.replace(/^[!#]/, '\\$&')).ignores(name);
  });
}

/** The last part of a pattern, once for each alternative of its braces. */
function lastParts(pattern: string): string[] {
  const [, head, alternatives, tail] = /^([^{}]*)\{([^{}]*)\}([^{}]*)$/s.exec(pattern) ?? [];
  if (alternatives === undefined && pattern.includes('{')) return [EVERY_NAME];
  const texts = alternatives?.split(',').map((each) => `${head}${each}${tail}`) ?? [pattern];
  return texts.map((text) => text.replace(/\/+$/, '').split('/').at(-1) || EVERY_NAME);
}
