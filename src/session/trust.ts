/**
 * What the user has said of projects, kept beside the user's own configuration: which of their files are trusted, and what is always
 * allowed in them. Rule: trust is for one file with one content: what changes, by a pull for example, is not trusted any more; where this
 * is kept no project can write unasked, and a record changes as a whole or not at all.
 */
import { createHash, randomUUID } from 'node:crypto';
import { mkdir, realpath, rename, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { ConfigurationError } from '../errors.ts';
import { permissions } from '../permissions/permissions.ts';
import { isObject } from '../validation.ts';
import { fileInTree, namedFile, type ProjectFile, treeOf } from './projectFiles.ts';

const BYTES_MAX = 1_048_576;

interface UserRecord {
  /** What is kept under this path; undefined where nothing is. */
  read(path: string): Promise<unknown>;
  /** Adds these, or puts them in place of what was there. */
  write(changes: { readonly [path: string]: unknown }): Promise<void>;
}

/** `what`: what the file is of, for messages. */
function userRecord(file: string, what: string): UserRecord {
  const known = async (): Promise<{ [path: string]: unknown }> => {
    const found = await namedFile(file, BYTES_MAX);
    if (!found) return {};
    try {
      const value: unknown = JSON.parse(found.text);
      if (isObject(value)) return { ...value };
    } catch {
      // It is told below.
    }
    throw new ConfigurationError(`${found.path} is no JSON object of ${what}: mend or remove it`);
  };
  return {
    read: async (path) => {
      const all = await known();
      return Object.hasOwn(all, path) ? all[path] : undefined;
    },
    write: async (changes) => {
      const next = Object.assign(await known(), changes);
      await mkdir(dirname(file), { recursive: true, mode: 0o700 });
      const draft = join(dirname(file), `.${basename(file)}.${randomUUID()}`);
      await writeFile(draft, `${JSON.stringify(next, null, 2)}\n`, { mode: 0o600, flag: 'wx' });
      await rename(draft, file);
    },
  };
}

const turns = new Map<string, Promise<unknown>>();
/** What reads a file and then writes it waits for who does so already: of two changes at once neither is lost. */
function inTurn<T>(file: string, act: () => Promise<T>): Promise<T> {
  const done = (turns.get(file) ?? Promise.resolve()).then(act);
  const over = done
    .catch(() => undefined)
    .then(() => {
      if (turns.get(file) === over) turns.delete(file);
    });
  turns.set(file, over);
  return done;
}

const FOLDER = '.runchart';
const trusted = (userDirectory: string): UserRecord =>
  userRecord(join(userDirectory, 'trusted.json'), 'files that are trusted');

/** Those from the root of the repository down to the working directory. */
export async function projectFiles(cwd: string, name: string, bytesMax: number): Promise<ProjectFile[]> {
  const { repository, own } = await treeOf(cwd);
  const found = await Promise.all(
    own.map((directory) => fileInTree(repository ?? directory, join(directory, FOLDER, name), bytesMax)),
  );
  return found.filter((file) => file !== undefined);
}

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex');

export async function isTrusted({ path, text }: ProjectFile, userDirectory: string): Promise<boolean> {
  return (await trusted(userDirectory).read(path)) === hashOf(text);
}

/** The user trusts these files as they are now. */
export async function trustFiles(files: readonly ProjectFile[], userDirectory: string): Promise<void> {
  const hashes = Object.fromEntries(files.map(({ path, text }) => [path, hashOf(text)]));
  await inTurn(`${userDirectory} trusted`, () => trusted(userDirectory).write(hashes));
}

/** The rules that "always allow" kept, each for one working directory. */
interface KeptRules {
  readonly path: string;
  /** Throws ConfigurationError for a file that is wrong. */
  of(cwd: string): Promise<string[]>;
  add(cwd: string, rules: readonly string[]): Promise<void>;
}

export function keptRules(userDirectory: string): KeptRules {
  const path = join(userDirectory, 'allowed.json');
  const record = userRecord(path, 'directories and the rules that are always allowed there');
  const of = async (cwd: string): Promise<string[]> => {
    const given = (await record.read(await realpath(cwd).catch(() => cwd))) ?? [];
    try {
      permissions({ allow: given as string[] });
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw new ConfigurationError(`${path} cannot be used: ${why}`, { cause: error });
    }
    return given as string[];
  };
  const add = async (cwd: string, rules: readonly string[]): Promise<void> => {
    permissions({ allow: [...rules] });
    await inTurn(path, async () => {
      const all = new Set([...(await of(cwd)), ...rules]);
      await record.write({ [await realpath(cwd).catch(() => cwd)]: [...all] });
    });
  };
  return { path, of, add };
}
