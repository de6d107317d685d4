/**
 * ripgrep as the engine of a search, where the machine has it. Rule: it is given lines and an expression, never a place
 * to look in, so that what is searched does not depend on it; it is given only expressions that it reads like the
 * library's own engine does, and it can be killed at any moment.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { delimiter, isAbsolute, join } from 'node:path';
import type { Hit } from './matcher.ts';

const NAME = process.platform === 'win32' ? 'rg.exe' : 'rg';
const OPTIONS = ['--no-config', '--color=never', '--no-heading', '--no-filename', '--line-number', '--column'];
/** Bytes are taken as they come: neither a mark at their beginning nor a NUL changes what is searched. */
const AS_TEXT = ['--text', '--encoding=none', '--threads=1'];
/** A repetition of more is refused by the library's own engine. */
const REPEATS_MAX = 1_000;

/** Where ripgrep is; a relative entry of PATH would name a program of the directory that is searched. */
export async function findRipgrep(): Promise<string | undefined> {
  for (const directory of (process.env.PATH ?? '').split(delimiter)) {
    const program = join(directory, NAME);
    const found = isAbsolute(directory) && (await access(program, constants.X_OK).then(...YES_OR_NO));
    if (found) return program;
  }
  return undefined;
}
const YES_OR_NO = [() => true, () => false] as const;

/** What each kind of escape means to the library's engine; ripgrep's own are about all of Unicode. */
const CLASSES: { readonly [name: string]: string } = { d: '0-9', w: '0-9A-Za-z_', s: '\\t\\f\\r ' };
const META = /[\\.+*?()|[\]{}^$&~#-]/;
const SET = /^\[\^?(?:[^\p{Cc}[\]\\&~^-]|\\[dws\\\][^.\-/+*?()|{}$"'trf]|-(?!-))+\]/u;
const GROUP = /^\((?:\?:|\?i:|\?P<\w+>|(?!\?))/;
const REPEAT = /^(?:[*+?]|\{(\d{1,4})(?:,(\d{0,4}))?\})\??(?![*+?{])/;
const PLAIN = /^(?:[|).^$]|[^\p{Cc}\p{Surrogate}\\[\](){}*+?])/u;

function ofSet(set: string): string | undefined {
  if (/\\[dws]-(?!\])|-\\[dws]/.test(set)) return undefined;
  return set.replace(
    /\\(.)/g,
    (escaped, name: string) => CLASSES[name] ?? (/[\w]|[\\\][^-]/.test(name) ? escaped : name),
  );
}

function ofEscape(name: string): string | undefined {
  const members = CLASSES[name.toLowerCase()];
  if (members !== undefined) return `[${name === name.toLowerCase() ? '' : '^'}${members}]`;
  if (name === 'b') return '(?-u:\\b)';
  if (/[trfv]/.test(name)) return `\\${name}`;
  if (META.test(name)) return `\\${name}`;
  return /[^\w\s<>\p{Cc}\P{ASCII}]/u.test(name) ? name : undefined;
}

/** The expression as ripgrep has to be told it; undefined where it might read it in another way. */
export function ripgrepForm(source: string): string | undefined {
  const [ignoresCase = ''] = /^\(\?i\)/.exec(source) ?? [];
  const written = [ignoresCase];
  let repeats = 1;
  for (let rest = source.slice(ignoresCase.length); rest !== ''; ) {
    const escaped = /^\\(.)/su.exec(rest);
    const repeat = REPEAT.exec(rest);
    const set = SET.exec(rest);
    const [taken] = escaped ?? repeat ?? set ?? GROUP.exec(rest) ?? PLAIN.exec(rest) ?? [];
    if (taken === undefined) return undefined;
    if (repeat) repeats *= Math.max(1, Number(repeat[1] ?? 1), Number(repeat[2] || 1));
    const form = escaped ? ofEscape(escaped[1] ?? '') : set ? ofSet(taken) : taken;
    if (form === undefined || repeats > REPEATS_MAX) return undefined;
    written.push(form);
    rest = rest.slice(taken.length);
  }
  return written.join('');
}

export type Ran = { kind: 'hits'; hits: Hit[] } | { kind: 'refused' } | { kind: 'stopped' };

/** The first `hitsMax` of the texts that match. `stop` kills it at once; the answer comes when nothing of it is left. */
export async function runRipgrep(
  program: string,
  { form, texts, hitsMax }: { form: string; texts: readonly string[]; hitsMax: number },
  stop: AbortSignal,
): Promise<Ran> {
  const args = [...OPTIONS, ...AS_TEXT, `--max-count=${hitsMax}`, `--regexp=${form}`, '--', '-'];
  const child = spawn(program, args, { cwd: '/', env: {}, stdio: ['pipe', 'pipe', 'ignore'], windowsHide: true });
  const kill = (): void => void child.kill('SIGKILL');
  stop.addEventListener('abort', kill);
  try {
    if (stop.aborted) kill();
    const chunks: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
    // It ends before it has read everything where enough was found.
    child.stdin.on('error', () => undefined).end(texts.map((text) => `${text}\n`).join(''));
    const [code] = await once(child, 'close');
    if (stop.aborted) return { kind: 'stopped' };
    if (code !== 0 && code !== 1) return { kind: 'refused' };
    return { kind: 'hits', hits: hitsOf(Buffer.concat(chunks).toString(), texts) };
  } catch {
    return { kind: 'refused' };
  } finally {
    stop.removeEventListener('abort', kill);
  }
}

/** Lines of `number:column:text`; a column counts bytes, from 1. */
function hitsOf(printed: string, texts: readonly string[]): Hit[] {
  const hits: Hit[] = [];
  for (const [, number, column] of printed.matchAll(/^(\d+):(\d+):.*$/gm)) {
    const index = Number(number) - 1;
    const before = Buffer.from(texts[index] ?? '').subarray(0, Number(column) - 1);
    hits.push([index, before.toString().length]);
  }
  return hits;
}
