/**
 * Finds the files that describe agents, commands and skills: those of the user, and those of the project from the root of
 * the repository down to the working directory. Rule: a file of the project counts only while the user trusts its
 * content, and it must lie inside the project, links followed.
 */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { fileInTree, namedFile, type ProjectFile, treeOf } from '../../session/projectFiles.ts';
import { isTrusted } from '../../session/trust.ts';

export type DefinitionFolder = 'agents' | 'commands' | 'skills';

export interface DefinitionFile extends ProjectFile {
  readonly of: 'user' | 'project';
  /** True for the user's own files. */
  readonly isTrusted: boolean;
  /** The name of the file, or for a skill the name of its folder. Folders are separated by `:`. */
  readonly name: string;
}

export interface DefinitionPlace {
  readonly cwd: string;
  /** The directory of the user's own files. */
  readonly userDirectory: string;
}

/** A longer file is not used. */
export const BYTES_MAX = 64 * 1_024;
const FILES_MAX = 200;
const DEPTH_MAX = 3;
/** Later folders take precedence. */
const FOLDERS = ['.claude', '.runchart'];
const SKILL_FILE = 'SKILL.md';
const MCP_FILE = '.mcp.json';
const MCP_BYTES_MAX = 256 * 1_024;
/** The user's file of MCP servers. */
const USER_MCP_FILE = 'mcp.json';

/** The user's files first, then the project's, the nearest to the working directory last. */
export async function definitionFiles(kind: DefinitionFolder, place: DefinitionPlace): Promise<DefinitionFile[]> {
  const own = await namesIn(join(place.userDirectory, kind), kind);
  const files: (DefinitionFile | undefined)[] = await Promise.all(
    own.map(async ({ path, name }) => {
      const file = await namedFile(path, BYTES_MAX);
      return file && { ...file, name, of: 'user' as const, isTrusted: true };
    }),
  );
  const { repository, own: directories } = await treeOf(place.cwd);
  for (const directory of directories) {
    for (const folder of FOLDERS) {
      for (const { path, name } of await namesIn(join(directory, folder, kind), kind)) {
        const file = await fileInTree(repository ?? directory, path, BYTES_MAX);
        files.push(file && (await projectFile(file, name, place)));
      }
    }
  }
  return files.filter((file) => file !== undefined);
}

export const isServerFile = ({ name }: DefinitionFile): boolean => name === MCP_FILE;

/** The files that list MCP servers, in the same order. */
export async function serverFiles(place: DefinitionPlace): Promise<DefinitionFile[]> {
  const own = await namedFile(join(place.userDirectory, USER_MCP_FILE), MCP_BYTES_MAX);
  const files: DefinitionFile[] = own ? [{ ...own, name: USER_MCP_FILE, of: 'user', isTrusted: true }] : [];
  const { repository, own: directories } = await treeOf(place.cwd);
  for (const directory of directories) {
    const file = await fileInTree(repository ?? directory, join(directory, MCP_FILE), MCP_BYTES_MAX);
    if (file) files.push(await projectFile(file, MCP_FILE, place));
  }
  return files;
}

async function projectFile(
  file: ProjectFile,
  name: string,
  { userDirectory }: DefinitionPlace,
): Promise<DefinitionFile> {
  return { ...file, name, of: 'project', isTrusted: await isTrusted(file, userDirectory) };
}

interface NamedPath {
  path: string;
  name: string;
}

/** The files of a folder by their names. Empty if it cannot be read. */
async function namesIn(folder: string, kind: DefinitionFolder): Promise<NamedPath[]> {
  const found: NamedPath[] = [];
  const walk = async (directory: string, above: readonly string[]): Promise<void> => {
    for (const entry of (await readdir(directory).catch(() => [])).sort()) {
      if (found.length >= FILES_MAX) return;
      const path = join(directory, entry);
      const isDirectory = (await stat(path).catch(() => undefined))?.isDirectory() === true;
      if (kind === 'skills') {
        if (isDirectory) found.push({ path: join(path, SKILL_FILE), name: entry });
      } else if (isDirectory && above.length < DEPTH_MAX) await walk(path, [...above, entry]);
      else if (/.\.md$/i.test(entry)) found.push({ path, name: [...above, entry.slice(0, -3)].join(':') });
    }
  };
  await walk(folder, []);
  return found;
}
