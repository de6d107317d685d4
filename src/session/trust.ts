/**
 * Which configuration files of projects the user trusts. Rule: trust is for one file with one content: what changes, by a pull for
 * example, is not trusted any more; where trust is kept no project can write unasked.
 */
import { createHash, randomUUID } from 'node:crypto';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ConfigurationError } from '../errors.ts';
import { isObject } from '../validation.ts';
import { fileInTree, namedFile, type ProjectFile, treeOf } from './projectFiles.ts';

const FOLDER = '.runchart';
const TRUSTED = 'trusted.json';
const BYTES_MAX = 1_048_576;

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
  const known = await trustedFiles(userDirectory);
  return Object.hasOwn(known, path) && known[path] === hashOf(text);
}

/** The user trusts these files as they are now. */
export async function trustFiles(files: readonly ProjectFile[], userDirectory: string): Promise<void> {
  const known = { ...(await trustedFiles(userDirectory)) };
  for (const { path, text } of files) known[path] = hashOf(text);
  await mkdir(userDirectory, { recursive: true, mode: 0o700 });
  const draft = join(userDirectory, `.${TRUSTED}.${randomUUID()}`);
  await writeFile(draft, `${JSON.stringify(known, null, 2)}\n`, { mode: 0o600, flag: 'wx' });
  await rename(draft, join(userDirectory, TRUSTED));
}

async function trustedFiles(userDirectory: string): Promise<{ [path: string]: unknown }> {
  const file = await namedFile(join(userDirectory, TRUSTED), BYTES_MAX);
  if (!file) return {};
  try {
    const known: unknown = JSON.parse(file.text);
    if (isObject(known)) return { ...known };
  } catch {
    // It is told below.
  }
  throw new ConfigurationError(`${file.path} is no JSON object of files that are trusted: mend or remove it`);
}
