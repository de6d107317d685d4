/**
 * Skips the entries of a walk that the `.gitignore` files of the working directory name. Rule: only files inside the working
 * directory count, and none is followed through a link. A search that begins in an ignored directory skips nothing, because
 * its caller named the directory.
 */
import { constants, type Dirent } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { inDirectory, isInside } from '../workspace.ts';
import { type IgnoreRule, ignoreBudget, ignoreRules, isLeftOut } from './ignoreRules.ts';

const FILE = '.gitignore';
const FILE_BYTES_MAX = 64 * 1_024;

export class IgnoredEntries {
  readonly #root: string;
  /** By absolute directory. */
  readonly #rules = new Map<string, IgnoreRule[]>();
  readonly #budget = ignoreBudget();

  private constructor(root: string) {
    this.#root = root;
  }

  /** For a walk below `directory`, which is inside `root`. Undefined if the walk leaves nothing out. */
  static async above(root: string, directory: string): Promise<IgnoredEntries | undefined> {
    const made = new IgnoredEntries(root);
    const parts = relative(root, directory).split(sep).filter(Boolean);
    for (let current = root, at = 0; at < parts.length; at += 1) {
      const next = join(current, parts[at] ?? '');
      await made.#read(current);
      if (made.#isLeftOut(next, true)) return undefined;
      current = next;
    }
    return made;
  }

  /** Returns the entries of a directory that are not left out. `heldPath` reaches it even if it is renamed. */
  async kept(directory: string, heldPath: string, entries: Dirent[]): Promise<Dirent[]> {
    if (entries.some((entry) => entry.name === FILE && entry.isFile()))
      this.#rules.set(directory, await rulesIn(heldPath));
    return entries.filter((entry) => !this.#isLeftOut(join(directory, entry.name), entry.isDirectory()));
  }

  async #read(directory: string): Promise<void> {
    const rules = await inDirectory(directory, rulesIn).catch(() => undefined);
    this.#rules.set(directory, rules ?? []);
  }

  /** The nearest file with a rule that fits decides. */
  #isLeftOut(path: string, isDirectory: boolean): boolean {
    for (let directory = dirname(path); isInside(this.#root, directory); directory = dirname(directory)) {
      const rules = this.#rules.get(directory);
      const parts = rules && rules.length > 0 ? relative(directory, path).split(sep) : undefined;
      const verdict = rules && parts ? isLeftOut(rules, parts, isDirectory, this.#budget) : undefined;
      if (verdict !== undefined) return verdict;
      if (directory === this.#root) break;
    }
    return false;
  }
}

/** No rules where the file is missing, no regular file, or too large. */
async function rulesIn(heldPath: string): Promise<IgnoreRule[]> {
  const flags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);
  const file = await open(join(heldPath, FILE), flags).catch(() => undefined);
  try {
    const stats = await file?.stat();
    if (!file || !stats?.isFile() || stats.size > FILE_BYTES_MAX) return [];
    // Git skips a byte order mark too.
    return ignoreRules((await file.readFile('utf8')).replace(/^\uFEFF/, ''));
  } catch {
    return [];
  } finally {
    await file?.close();
  }
}
