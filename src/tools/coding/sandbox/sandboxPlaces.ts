/**
 * Determines which places a sandboxed command can see and change. Rule: every kind of sandbox uses the same places.
 * Existing paths have their links resolved. Protected places are included whether or not they exist.
 */
import { realpath, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, isAbsolute, join, resolve } from 'node:path';
import type { Confinement } from '../../tool.ts';
import { isInside } from '../workspace.ts';
import { PROTECTED_BELOW_HOME, PROTECTED_NAMES, PROTECTED_PARTS } from './protectedNames.ts';

/** The places that a sandboxed command sees and writes. */
export interface SandboxOptions {
  /** Files that commands cannot open, and directories that they find empty; relative to the working directory, or `~/…`. */
  hide?: readonly string[];
  /** Directories that commands may write besides the working directory, for example caches. */
  write?: readonly string[];
  /** If not true, commands have no network. */
  network?: boolean;
}

export interface FoundPlace {
  /** Links resolved. */
  path: string;
  isDirectory: boolean;
}

/** Places that a command must not change, although it may change the directories around them. */
export interface ProtectedPlaces {
  paths: readonly string[];
  /** Files that can lead git to other settings. Git fails if a directory takes their place. */
  leading: readonly string[];
  /** The git directory with links resolved, if there is one. */
  repository: string | undefined;
}

export interface SandboxPlaces {
  /** The working directory. */
  root: string;
  /** The command only reads: it can change nothing, and sees only programs and the working directory. */
  onlyReads: boolean;
  /** The directories in `PATH`, and the libraries beside them. */
  programs: readonly string[];
  /** The working directory comes first; empty for a command that only reads. */
  writable: readonly string[];
  /** Directories inside the working directory that cannot be renamed. */
  hold: readonly string[];
  /** Undefined if the command has permission to change them. */
  protected: ProtectedPlaces | undefined;
  hidden: readonly FoundPlace[];
  network: boolean;
}

/** `confinement` is the result of the permissions. Without it, a command may change the working directory. */
export async function sandboxPlaces(
  cwd: string,
  options: SandboxOptions,
  confinement: Confinement | undefined,
): Promise<SandboxPlaces> {
  const root = await realpath(cwd);
  const onlyReads = confinement?.writes === false;
  const writable = onlyReads ? [] : await foundPlaces([root, ...(options.write ?? [])], root);
  const directories = writable.map(({ path }) => path);
  const programs = await programDirectories();
  const credentials = await foundPlaces(CREDENTIALS, root);
  // A command that only reads sees nothing else of the home directory.
  const isSeen = ({ path }: FoundPlace): boolean =>
    !onlyReads || [root, ...programs].some((from) => isInside(from, path));
  const named = await foundPlaces([...(options.hide ?? []), ...(confinement?.hide ?? [])], root);
  const isGuarded = !onlyReads && !confinement?.opensProtected;
  return {
    root,
    onlyReads,
    programs,
    writable: directories,
    hold: onlyReads ? [] : (confinement?.hold ?? []).filter((path) => isInside(root, path)),
    protected: isGuarded ? await protectedPlaces(root, directories, confinement?.makesRepository) : undefined,
    hidden: [...credentials.filter(isSeen), ...named],
    network: confinement?.network === true || options.network === true,
  };
}

/** The absolute directories in `PATH`. Relative ones are ignored, because the repository could put programs there. */
async function programDirectories(): Promise<string[]> {
  const directories = (process.env.PATH ?? '').split(delimiter).filter((path) => isAbsolute(path));
  const realPaths = await Promise.all(
    directories.flatMap((path) => [path, join(path, '../lib')]).map((path) => realpath(path).catch(() => undefined)),
  );
  return [...new Set(realPaths.flatMap((path) => (path === undefined || path === '/' ? [] : [path])))];
}

/** Credentials below the home directory. No command of an agent can see them. */
const CREDENTIALS = [
  ...['.ssh', '.gnupg', '.aws', '.azure', '.kube', '.docker', '.netrc', '.npmrc', '.pypirc', '.git-credentials'],
  ...['.config/gh', '.config/gcloud', '.config/git/credentials', '.cargo/credentials.toml', '.local/share/keyrings'],
  ...['Library/Keychains', 'Library/Cookies'],
].map((path) => `~/${path}`);

/** The paths that exist. */
async function foundPlaces(paths: readonly string[], root: string): Promise<FoundPlace[]> {
  const existing: FoundPlace[] = [];
  for (const path of paths) {
    const place = await placed(resolve(root, path.replace(/^~(?=\/|$)/, homedir())));
    if (place) existing.push(place);
  }
  return existing;
}

/** The target of a path; undefined if nothing exists there. */
export async function placed(path: string): Promise<FoundPlace | undefined> {
  try {
    const real = await realpath(path);
    return { path: real, isDirectory: (await stat(real)).isDirectory() };
  } catch {
    return undefined;
  }
}

const LEADING_GIT = ['commondir', 'config.worktree'];
/** Parts of a repository that git commands do not need to change. */
const SETTING_GIT = ['config', 'hooks'];

async function protectedPlaces(
  root: string,
  writable: readonly string[],
  makesRepository = false,
): Promise<ProtectedPlaces> {
  const paths = namedPlaces(root, writable).filter((path) => path !== join(root, '.git'));
  const git = await placed(join(root, '.git'));
  if (!git?.isDirectory) {
    const isMade = git === undefined && makesRepository;
    return { paths: isMade ? paths : [...paths, join(root, '.git')], leading: [], repository: undefined };
  }
  const below = (names: readonly string[]): string[] => names.map((name) => join(git.path, name));
  return { paths: [...paths, ...below(SETTING_GIT)], leading: below(LEADING_GIT), repository: git.path };
}

function namedPlaces(root: string, writable: readonly string[]): string[] {
  const names = [...PROTECTED_PARTS, ...PROTECTED_NAMES].filter((name) => name !== 'git~1');
  const home = homedir();
  const { XDG_STATE_HOME, XDG_CONFIG_HOME } = process.env;
  const own = [XDG_STATE_HOME, XDG_CONFIG_HOME].flatMap((stateDirectory) =>
    stateDirectory && isAbsolute(stateDirectory) ? [resolve(stateDirectory, 'runchart')] : [],
  );
  const below = [...names, ...PROTECTED_BELOW_HOME].map((name) => join(home, name));
  const elsewhere = [...below, ...own].filter((path) => writable.some((from) => isInside(from, path)));
  return [...new Set([...names.map((name) => join(root, name)), ...elsewhere])];
}
