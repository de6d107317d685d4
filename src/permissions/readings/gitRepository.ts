/**
 * Decides whether a read-only git command can run programs or read files that no argument names. Git follows the
 * settings of the repository, which may come from anybody. Rule: only settings on a list of harmless ones are accepted.
 * Any other setting, and a repository that lies partly or wholly elsewhere, requires permission.
 */
import { lstat, readdir, readFile, realpath } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { indexNames } from './gitIndex.ts';

const CONFIG_BYTES_MAX = 262_144;

/** Settings that name no program and no file, in lower case. The middle part of a key is left out. */
const HARMLESS: readonly RegExp[] = [
  /^core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|safecrlf|eol)$/,
  /^core\.(abbrev|compression|protectntfs|protecthfs|longpaths|untrackedcache|commitgraph|multipackindex|whitespace)$/,
  /^core\.(quotepath|checkstat|trustctime|preloadindex|hookspath|sharedrepository|bigfilethreshold)$/,
  /^remote\.(url|fetch|push|pushurl|tagopt|prune|prunetags|mirror|pushdefault|gh-resolved)$/,
  /^branch\.[a-z-]+$/,
  /^(user\.(name|email)|init\.defaultbranch|extensions\.(worktreeconfig|objectformat))$/,
  /^(alias|color|column|advice|gc|maintenance|pull|push|fetch|rebase|rerere|credential|http|https|lfs)\.[a-z0-9-]+$/,
  /^diff\.(renames|renamelimit|algorithm|colormoved|mnemonicprefix|noprefix|context|interhunkcontext|indentheuristic)$/,
  /^(log\.(date|decorate|abbrevcommit)|merge\.(conflictstyle|ff|renames)|status\.[a-z]+|index\.version|feature\.[a-z]+)$/,
];
/** Hooks that git runs even when it only reads. */
const READING_HOOKS: readonly string[] = ['post-index-change', 'fsmonitor-watchman', 'query-watchman'];
const PLAIN_PATH = /^[\w./-]+$/;

/**
 * The reason why git may do more than read in this directory; undefined if it cannot. `root` has its links resolved.
 */
export async function gitDoubt(root: string): Promise<string | undefined> {
  const kind = await kindOf(join(root, '.git'));
  if (kind === 'missing') return outsideDoubt(root);
  const repository = await repositoryAt(join(root, '.git'), kind);
  if (repository === undefined) return 'the repository lies elsewhere';
  const { own, common } = repository;
  // Git skips an incomplete repository and uses the next one above.
  if (!(await isWhole(repository))) return 'the repository is not whole';
  for (const directory of new Set([own, common])) {
    const part = await unclearPartOf(directory);
    if (part !== undefined) return `the repository has ${part}`;
  }
  if ((await kindOf(join(root, '.gitmodules'))) !== 'missing') return 'the repository has submodules';
  if ((await kindOf(join(common, 'objects/info/alternates'))) !== 'missing')
    return 'the repository borrows from another';
  const hooks = [join(common, 'hooks')];
  let hashBytes = 20;
  for (const file of new Set([join(common, 'config'), ...[common, own].map((each) => join(each, 'config.worktree'))])) {
    const settings = await settingsOf(file);
    if (settings === undefined) return "the repository's settings cannot be read";
    const unlisted = settings.find(({ key }) => !HARMLESS.some((harmless) => harmless.test(key)));
    if (unlisted) return `the repository's settings hold ${unlisted.key}`;
    const places = settings.flatMap(({ key, value }) => (key === 'core.hookspath' ? [value] : []));
    if (settings.some(({ key, value }) => key === 'extensions.objectformat' && value === 'sha256')) hashBytes = 32;
    // Git expands `~` and `%(prefix)`, and interprets quotes, escapes and comments.
    if (!places.every((place) => PLAIN_PATH.test(place))) return 'the repository has hooks at an unclear place';
    hooks.push(...places.map((place) => resolve(root, place)));
  }
  for (const directory of hooks) {
    // Git finds a hook by its name, in a directory that cannot be listed too.
    for (const hook of READING_HOOKS)
      if ((await kindOf(join(directory, hook))) !== 'missing') return `the repository has the hook ${hook}`;
  }
  const names = await indexNames(join(own, 'index'), hashBytes);
  if (names === 'unreadable') return "the repository's index cannot be read";
  return names === 'repositories' ? 'the repository has submodules' : undefined;
}

/** True if the whole repository lies here. A working tree of `git worktree` has its repository elsewhere. */
export const ownsRepository = async (root: string): Promise<boolean> =>
  (await kindOf(join(root, '.git'))) === 'directory';

/** If there is no `.git`, git uses the directory itself as a repository or searches above it. */
async function outsideDoubt(root: string): Promise<string | undefined> {
  const isBare = (await kindOf(join(root, 'HEAD'))) === 'file' && (await kindOf(join(root, 'objects'))) === 'directory';
  if (isBare) return 'the directory may be a repository itself';
  for (let above = dirname(root); ; above = dirname(above)) {
    if ((await kindOf(join(above, '.git'))) !== 'missing') return 'the repository begins above the working directory';
    if (above === dirname(above)) return undefined;
  }
}

type Kind = 'missing' | 'file' | 'directory' | 'other';

async function kindOf(path: string): Promise<Kind> {
  const stats = await lstat(path).catch(() => undefined);
  if (!stats) return 'missing';
  if (stats.isFile()) return 'file';
  return stats.isDirectory() ? 'directory' : 'other';
}

interface Repository {
  /** The part of this working tree: its index and its HEAD. */
  own: string;
  /** Objects, settings and hooks, which all working trees share. */
  common: string;
}

/** Returns undefined if the repository is neither here nor that of a working tree of `git worktree`. */
async function repositoryAt(place: string, kind: Kind): Promise<Repository | undefined> {
  if (kind === 'file') return linkedRepository(place);
  const isHere = kind === 'directory' && (await kindOf(join(place, 'commondir'))) === 'missing';
  return isHere ? { own: place, common: place } : undefined;
}

/**
 * The repository of a `git worktree` working tree. The repository must name this tree too, so no other directory can
 * claim it.
 */
async function linkedRepository(file: string): Promise<Repository | undefined> {
  const place = /^gitdir: (.+)$/.exec(await pathIn(file))?.[1];
  if (place === undefined) return undefined;
  const own = resolve(dirname(file), place);
  const common = resolve(own, '../..');
  const [commonName, back] = [await pathIn(join(own, 'commondir')), await pathIn(join(own, 'gitdir'))];
  const isItsOwn = basename(dirname(own)) === 'worktrees' && commonName !== '' && resolve(own, commonName) === common;
  const real = await realpath(own).catch(() => undefined);
  return isItsOwn && real === own && resolve(own, back) === file ? { own, common } : undefined;
}

const textOf = (file: string): Promise<string> => readFile(file, 'utf8').catch(() => '');

/** A path as git reads it: only line ends are removed. Empty if it is not UTF-8, because it would be another path here. */
async function pathIn(file: string): Promise<string> {
  const text = await textOf(file);
  return text.includes('\ufffd') ? '' : text.replace(/[\r\n]+$/, '');
}

/** Checks the files that git requires before it accepts a directory as a repository. */
async function isWhole({ own, common }: Repository): Promise<boolean> {
  const head = join(own, 'HEAD');
  if ((await kindOf(head)) !== 'file' || !/^(ref: *refs\/|[0-9a-f]{40})/.test(await textOf(head))) return false;
  const parts = ['objects', 'refs'].map((name) => join(common, name));
  // The second path needs the right to open entries of the directory.
  const kinds = await Promise.all(parts.flatMap((part) => [kindOf(part), kindOf(`${part}/.`)]));
  return kinds.every((kind) => kind === 'directory');
}

/**
 * Directories of a repository in which git looks files up by name. Loose objects are excluded: git checks them against
 * their hashes.
 */
const LOOKED_THROUGH = /^(info|refs|logs|worktrees|objects(\/(info|pack))?)(?=\/|$)/;
const ENTRIES_MAX = 50_000;

/** The first link in a repository, with its relative path, or a directory in which links may be. Hooks are checked elsewhere. */
async function unclearPartOf(repository: string): Promise<string | undefined> {
  const directories = [''];
  let entryCount = 0;
  for (let directory = directories.pop(); directory !== undefined; directory = directories.pop()) {
    const entries = await readdir(join(repository, directory), { withFileTypes: true }).catch(() => undefined);
    if (!entries) return 'a directory that cannot be listed';
    entryCount += entries.length;
    if (entryCount > ENTRIES_MAX) return 'too many files to look through';
    for (const entry of entries) {
      const path = join(directory, entry.name);
      if (entry.isSymbolicLink() && path !== 'hooks') return `the link ${path}`;
      const [looked] = LOOKED_THROUGH.exec(path) ?? [];
      if (entry.isDirectory() && looked && (looked !== 'objects' || path === 'objects')) directories.push(path);
    }
  }
  return undefined;
}

interface Setting {
  /** Section and name, in lower case. */
  key: string;
  value: string;
}

/** Returns an empty list if the file does not exist, and undefined if it is not understood. */
async function settingsOf(file: string): Promise<Setting[] | undefined> {
  const kind = await kindOf(file);
  if (kind === 'missing') return [];
  if (kind !== 'file' || (await lstat(file)).size > CONFIG_BYTES_MAX) return undefined;
  const written = await readFile(file, 'utf8').catch(() => undefined);
  if (written === undefined) return undefined;
  const settings: Setting[] = [];
  let section: string | undefined;
  for (const line of written.split(/\r?\n/)) {
    const text = line.trim();
    if (text === '' || /^[#;]/.test(text)) continue;
    const header = /^\[\s*([A-Za-z0-9-]+)(?:\s+"(?:[^"\\]|\\.)*")?\s*\]$/.exec(text);
    if (header) {
      section = header[1]?.toLowerCase();
      continue;
    }
    const entry = /^([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*))?$/.exec(text);
    // A backslash at the end continues a line.
    if (section === undefined || !entry || text.endsWith('\\')) return undefined;
    settings.push({ key: `${section}.${entry[1]?.toLowerCase()}`, value: (entry[2] ?? '').replace(/^"|"$/g, '') });
  }
  return settings;
}
