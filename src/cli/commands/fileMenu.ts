/**
 * The menu below an `@`: files of the working directory whose paths contain the typed text. Invariant: files that `.gitignore` files name
 * come last, and no link is followed to such a file. The list is read in the background, bounded, one at a
 * time, and no program runs for it.
 */
import { readdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { printableLine } from '../../printable.ts';
import { IgnoredEntries } from '../../tools/coding/search/ignoredEntries.ts';
import type { CodingAgent } from '../codingAgent.ts';
import { allCommands } from '../interactive/slashCommands.ts';
import { ownLine, type TextLine } from '../interactive/textRows.ts';
import { CommandMenu } from './commandMenu.ts';

const MENTION = /(^|\s)@([^\s@]*)$/;
const SHOWN = 8;
const FILES_MAX = 20_000;
const ENTRIES_MAX = 100_000;
const DEPTH_MAX = 12;
const FRESH_MS = 3_000;

interface Listed {
  readonly path: string;
  readonly isIgnored: boolean;
}

export class FileMenu {
  readonly #cwd: () => string;
  readonly #changed: () => void;
  #files: readonly Listed[] = [];
  #readAt = Number.NEGATIVE_INFINITY;
  #listing: Promise<void> | undefined;
  #text = '';
  #chosen = 0;

  /** `changed` is called when the lines have changed. */
  constructor(cwd: () => string, changed: () => void) {
    this.#cwd = cwd;
    this.#changed = changed;
  }

  /** The paths that fit the text. Empty if it does not end with an `@` and a part of a path. */
  #matches(text: string): readonly Listed[] {
    if (text !== this.#text) [this.#text, this.#chosen] = [text, 0];
    const [, , part] = MENTION.exec(text) ?? [];
    if (part === undefined) return [];
    this.#refresh();
    return matchingFiles(this.#files, part);
  }

  #refresh(): void {
    if (this.#listing || performance.now() - this.#readAt < FRESH_MS) return;
    this.#listing = this.#list(this.#cwd());
  }

  async #list(cwd: string): Promise<void> {
    this.#files = await listedFiles(cwd);
    this.#readAt = performance.now();
    this.#listing = undefined;
    this.#changed();
  }

  lines(text: string): TextLine[] {
    return this.#matches(text).map(({ path, isIgnored }, index) => {
      const isChosen = index === this.#chosen;
      const mark = ownLine([isChosen ? 'bold' : 'cyan', `${isChosen ? '›' : ' '} ${printableLine(path)}`]);
      return isIgnored ? { ...mark, spans: [...mark.spans, ['dim', '  ignored']] } : mark;
    });
  }

  /** Chooses the next or an earlier file. False if no menu is open. */
  move(text: string, step: number): boolean {
    const { length } = this.#matches(text);
    if (length < 2) return false;
    this.#chosen = (this.#chosen + step + length) % length;
    return true;
  }

  /** The text with the chosen file, else the text. A directory may be continued. */
  completed(text: string): string {
    const file = this.#matches(text)[this.#chosen];
    if (!file) return text;
    return text.replace(MENTION, (_, before: string) => `${before}@${file.path}${file.path.endsWith('/') ? '' : ' '}`);
  }
}

/** The menus below the typed line: of commands, and of files. */
export class InputMenus {
  readonly #commands: CommandMenu;
  readonly #files: FileMenu;

  constructor(made: () => CodingAgent, changed: () => void) {
    this.#commands = new CommandMenu(() => allCommands(made().equipment.commands));
    this.#files = new FileMenu(() => made().cwd, changed);
  }

  lines(text: string): TextLine[] {
    return [...this.#commands.lines(text), ...this.#files.lines(text)];
  }

  move(text: string, step: number): boolean {
    return this.#commands.move(text, step) || this.#files.move(text, step);
  }

  completed(text: string): string {
    return this.#files.completed(this.#commands.completed(text));
  }
}

/** Names that begin with the part first, then paths that contain it; shorter ones first, ignored ones last. */
export function matchingFiles(files: readonly Listed[], part: string): Listed[] {
  const wanted = part.toLowerCase();
  const rank = ({ path, isIgnored }: Listed): number => {
    const lower = path.toLowerCase();
    const isStart = lower.startsWith(wanted) || basename(lower).startsWith(wanted);
    return (isIgnored ? 2 : 0) + (isStart ? 0 : 1);
  };
  return files
    .filter(({ path }) => path.toLowerCase().includes(wanted))
    .sort((a, b) => rank(a) - rank(b) || a.path.length - b.path.length || (a.path < b.path ? -1 : 1))
    .slice(0, SHOWN);
}

/** Files below a directory. A name with a space is left out, because a message could not mention it. */
export async function listedFiles(root: string): Promise<Listed[]> {
  const files: Listed[] = [];
  const ignored = await IgnoredEntries.above(root, root);
  let seen = 0;
  const walk = async (folder: string, depth: number): Promise<void> => {
    const directory = join(root, folder);
    const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
    const kept = new Set(await ignored?.kept(directory, directory, entries));
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      seen += 1;
      if (files.length >= FILES_MAX || seen > ENTRIES_MAX) return;
      if (entry.name === '.git' || /[\s@]/.test(entry.name)) continue;
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
      const isIgnored = !kept.has(entry);
      if (isIgnored || entry.isFile()) files.push({ path: entry.isDirectory() ? `${path}/` : path, isIgnored });
      else if (entry.isDirectory() && depth < DEPTH_MAX) await walk(path, depth + 1);
    }
  };
  await walk('', 0);
  return files;
}
