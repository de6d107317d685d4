/**
 * Whether a command of git that only reads can run programs or read files that nobody named. Git does what the settings
 * of a repository say, and a repository may come from anybody. Rule: settings on a list of harmless ones are no reason
 * to ask; any other one is, and so is a repository that git finds elsewhere, as a whole or in part.
 */
import { lstat, readdir, readFile, realpath } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';

const CONFIG_BYTES_MAX = 262_144;

/** Settings that name no program and no file, in lower case; a name in the middle is left out. */
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
/** Hooks that git runs when it only reads. */
const READING_HOOKS: readonly string[] = ['post-index-change', 'fsmonitor-watchman', 'query-watchman'];
const PLAIN_PATH = /^[\w./-]+$/;

/** Why git may do more than read in this directory; undefined where it cannot. `root`: links resolved. */
export async function gitDoubt(root: string): Promise<string | undefined> {
  const kind = await kindOf(join(root, '.git'));
  if (kind === 'missing') return outsideDoubt(root);
  const repository = await repositoryAt(join(root, '.git'), kind);
  if (repository === undefined) return 'the repository lies elsewhere';
  const { own, common } = repository;
  // Git passes over what is no whole repository and takes the next one that it finds.
  if (!(await isWhole(repository))) return 'the repository is not whole';
  for (const directory of new Set([own, common])) {
    const link = await linkIn(directory);
    if (link !== undefined) return `the repository has the link ${link}`;
  }
  if ((await kindOf(join(root, '.gitmodules'))) !== 'missing') return 'the repository has submodules';
  if ((await kindOf(join(common, 'objects/info/alternates'))) !== 'missing')
    return 'the repository borrows from another';
  const hooks = [join(common, 'hooks')];
  for (const file of new Set([join(common, 'config'), ...[common, own].map((each) => join(each, 'config.worktree'))])) {
    const settings = await settingsOf(file);
    if (settings === undefined) return "the repository's settings cannot be read";
    const odd = settings.find(({ key }) => !HARMLESS.some((harmless) => harmless.test(key)));
    if (odd) return `the repository's settings hold ${odd.key}`;
    const places = settings.flatMap(({ key, value }) => (key === 'core.hookspath' ? [value] : []));
    // Git expands `~` and `%(prefix)`, and reads quotes, escapes and comments.
    if (!places.every((place) => PLAIN_PATH.test(place))) return 'the repository has hooks at an unclear place';
    hooks.push(...places.map((place) => resolve(root, place)));
  }
  for (const directory of hooks) {
    const names = await readdir(directory).catch(() => []);
    const hook = names.find((name) => READING_HOOKS.includes(name));
    if (hook !== undefined) return `the repository has the hook ${hook}`;
  }
  return undefined;
}

/** The repository lies here as a whole; a working tree of `git worktree` has it elsewhere. */
export const ownsRepository = async (root: string): Promise<boolean> =>
  (await kindOf(join(root, '.git'))) === 'directory';

/** Without a `.git` of its own, git takes the directory itself, or looks above it. */
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
  const found = await lstat(path).catch(() => undefined);
  if (!found) return 'missing';
  if (found.isFile()) return 'file';
  return found.isDirectory() ? 'directory' : 'other';
}

interface Repository {
  /** What belongs to this working tree: its index and its HEAD. */
  own: string;
  /** Objects, settings and hooks, which all working trees share. */
  common: string;
}

/** Undefined where the repository is neither here nor that of a working tree of `git worktree`. */
async function repositoryAt(place: string, kind: Kind): Promise<Repository | undefined> {
  if (kind === 'file') return linkedRepository(place);
  const isHere = kind === 'directory' && (await kindOf(join(place, 'commondir'))) === 'missing';
  return isHere ? { own: place, common: place } : undefined;
}

/** The repository that a working tree of `git worktree` belongs to. It names this tree too: nobody else can claim it. */
async function linkedRepository(file: string): Promise<Repository | undefined> {
  const place = /^gitdir: (.+)\s*$/.exec(await textOf(file))?.[1]?.trim();
  if (place === undefined) return undefined;
  const own = resolve(dirname(file), place);
  const common = resolve(own, '../..');
  const [commonName, back] = [
    (await textOf(join(own, 'commondir'))).trim(),
    (await textOf(join(own, 'gitdir'))).trim(),
  ];
  const isItsOwn = basename(dirname(own)) === 'worktrees' && commonName !== '' && resolve(own, commonName) === common;
  const real = await realpath(own).catch(() => undefined);
  return isItsOwn && real === own && resolve(own, back) === file ? { own, common } : undefined;
}

const textOf = (file: string): Promise<string> => readFile(file, 'utf8').catch(() => '');

/** What git looks for before it takes a directory for a repository. */
async function isWhole({ own, common }: Repository): Promise<boolean> {
  const head = join(own, 'HEAD');
  if ((await kindOf(head)) !== 'file' || !/^(ref: *refs\/|[0-9a-f]{40})/.test(await textOf(head))) return false;
  const kinds = await Promise.all(['objects', 'refs'].map((name) => kindOf(join(common, name))));
  return kinds.every((kind) => kind === 'directory');
}

/** Directories of a repository in which git looks for files by name. Loose objects are known by their contents. */
const LOOKED_THROUGH = /^(info|refs|logs|worktrees|objects(\/(info|pack))?)(?=\/|$)/;
const ENTRIES_MAX = 50_000;

/** A link in a repository, relative to it. Hooks that git runs are looked at by themselves. */
async function linkIn(repository: string): Promise<string | undefined> {
  const directories = [''];
  let seen = 0;
  for (let directory = directories.pop(); directory !== undefined; directory = directories.pop()) {
    const entries = await readdir(join(repository, directory), { withFileTypes: true }).catch(() => []);
    seen += entries.length;
    if (seen > ENTRIES_MAX) return 'or too many files to look through';
    for (const entry of entries) {
      const path = join(directory, entry.name);
      if (entry.isSymbolicLink() && path !== 'hooks') return path;
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

/** Empty for a file that is not there; undefined for one that is not understood. */
async function settingsOf(file: string): Promise<Setting[] | undefined> {
  const kind = await kindOf(file);
  if (kind === 'missing') return [];
  if (kind !== 'file' || (await lstat(file)).size > CONFIG_BYTES_MAX) return undefined;
  const settings: Setting[] = [];
  let section: string | undefined;
  for (const line of (await readFile(file, 'utf8')).split(/\r?\n/)) {
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
