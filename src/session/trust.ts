/**
 * Stores the user's decisions about projects beside the user's configuration: trusted files, and rules that are always
 * allowed. Rule: trust applies to one file with one content. A changed file, for example after a pull, is not trusted.
 * Projects cannot write these records unasked, and a record changes completely or not at all.
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
  /** The value under this path; undefined if there is none. */
  read(path: string): Promise<unknown>;
  /** Adds or replaces these values. */
  write(changes: { readonly [path: string]: unknown }): Promise<void>;
}

/** `what` describes the contents of the file, for messages. */
function userRecord(file: string, what: string): UserRecord {
  const readRecord = async (): Promise<{ [path: string]: unknown }> => {
    const recordFile = await namedFile(file, BYTES_MAX);
    if (!recordFile) return {};
    try {
      const value: unknown = JSON.parse(recordFile.text);
      if (isObject(value)) return { ...value };
    } catch {
      // The error below reports the problem.
    }
    throw new ConfigurationError(`${recordFile.path} is no JSON object of ${what}: mend or remove it`);
  };
  return {
    read: async (path) => {
      const all = await readRecord();
      return Object.hasOwn(all, path) ? all[path] : undefined;
    },
    write: async (changes) => {
      const next = Object.assign(await readRecord(), changes);
      await mkdir(dirname(file), { recursive: true, mode: 0o700 });
      const draft = join(dirname(file), `.${basename(file)}.${randomUUID()}`);
      await writeFile(draft, `${JSON.stringify(next, null, 2)}\n`, { mode: 0o600, flag: 'wx' });
      await rename(draft, file);
    },
  };
}

const turns = new Map<string, Promise<unknown>>();
/** Runs one read-and-write of a file after another, so that two simultaneous changes are both kept. */
function inTurn<T>(file: string, act: () => Promise<T>): Promise<T> {
  const done = (turns.get(file) ?? Promise.resolve()).then(act);
  const removeTurn = done
    .catch(() => undefined)
    .then(() => {
      if (turns.get(file) === removeTurn) turns.delete(file);
    });
  turns.set(file, removeTurn);
  return done;
}

const FOLDER = '.runchart';
const trusted = (userDirectory: string): UserRecord =>
  userRecord(join(userDirectory, 'trusted.json'), 'files that are trusted');

/** The files from the root of the repository down to the working directory. */
export async function projectFiles(cwd: string, name: string, bytesMax: number): Promise<ProjectFile[]> {
  const { repository, own } = await treeOf(cwd);
  const filesOrUndefined = await Promise.all(
    own.map((directory) => fileInTree(repository ?? directory, join(directory, FOLDER, name), bytesMax)),
  );
  return filesOrUndefined.filter((file) => file !== undefined);
}

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex');

export async function isTrusted({ path, text }: ProjectFile, userDirectory: string): Promise<boolean> {
  return (await trusted(userDirectory).read(path)) === hashOf(text);
}

/** Records that the user trusts the current version of these files. */
export async function trustFiles(files: readonly ProjectFile[], userDirectory: string): Promise<void> {
  const hashes = Object.fromEntries(files.map(({ path, text }) => [path, hashOf(text)]));
  await inTurn(`${userDirectory} trusted`, () => trusted(userDirectory).write(hashes));
}

/** The rules that "always allow" saved, each for one working directory. */
interface KeptRules {
  readonly path: string;
  /** Throws ConfigurationError for an invalid file. */
  rulesIn(cwd: string): Promise<string[]>;
  add(cwd: string, rules: readonly string[]): Promise<void>;
  /** Resolves to false if the rule is not kept there. */
  remove(cwd: string, rule: string): Promise<boolean>;
}

export function keptRules(userDirectory: string): KeptRules {
  const path = join(userDirectory, 'allowed.json');
  const record = userRecord(path, 'directories and the rules that are always allowed there');
  const rulesIn = async (cwd: string): Promise<string[]> => {
    const saved = (await record.read(await realpath(cwd).catch(() => cwd))) ?? [];
    try {
      permissions({ allow: saved as string[] });
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw new ConfigurationError(`${path} cannot be used: ${why}`, { cause: error });
    }
    return saved as string[];
  };
  const add = async (cwd: string, rules: readonly string[]): Promise<void> => {
    permissions({ allow: [...rules] });
    await inTurn(path, async () => {
      const all = new Set([...(await rulesIn(cwd)), ...rules]);
      await record.write({ [await realpath(cwd).catch(() => cwd)]: [...all] });
    });
  };
  const remove = (cwd: string, rule: string): Promise<boolean> =>
    inTurn(path, async () => {
      const rules = await rulesIn(cwd);
      const others = rules.filter((each) => each !== rule);
      if (others.length === rules.length) return false;
      await record.write({ [await realpath(cwd).catch(() => cwd)]: others });
      return true;
    });
  return { path, rulesIn, add, remove };
}
