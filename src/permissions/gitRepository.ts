/**
 * Whether a command of git that only reads can run programs or read files that nobody named. Git does what the settings
 * of a repository say, and a repository may come from anybody. Rule: settings on a list of harmless ones are no reason
 * to ask; any other one is.
 */
import { lstat, readdir, readFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';

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

/** Why git may do more than read in this directory; undefined where it cannot. `root`: links resolved. */
export async function gitDoubt(root: string): Promise<string | undefined> {
  const kind = await kindOf(join(root, '.git'));
  if (kind === 'missing') return outsideDoubt(root);
  if (kind !== 'directory' && kind !== 'file') return 'the repository lies elsewhere';
  const home = kind === 'directory' ? join(root, '.git') : await linkedRepository(join(root, '.git'));
  if (home === undefined) return 'the repository lies elsewhere';
  if (kind === 'directory' && (await kindOf(join(home, 'commondir'))) !== 'missing')
    return 'the repository lies elsewhere';
  if ((await kindOf(join(root, '.gitmodules'))) !== 'missing') return 'the repository has submodules';
  if ((await kindOf(join(home, 'objects/info/alternates'))) !== 'missing') return 'the repository borrows from another';
  const hooks = [join(home, 'hooks')];
  for (const name of ['config', 'config.worktree']) {
    const settings = await settingsOf(join(home, name));
    if (settings === undefined) return "the repository's settings cannot be read";
    const odd = settings.find(({ key }) => !HARMLESS.some((harmless) => harmless.test(key)));
    if (odd) return `the repository's settings hold ${odd.key}`;
    hooks.push(...settings.flatMap(({ key, value }) => (key === 'core.hookspath' ? [resolve(root, value)] : [])));
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

async function kindOf(path: string): Promise<'missing' | 'file' | 'directory' | 'other'> {
  const found = await lstat(path).catch(() => undefined);
  if (!found) return 'missing';
  if (found.isFile()) return 'file';
  return found.isDirectory() ? 'directory' : 'other';
}

/** The repository that a working tree of `git worktree` belongs to. */
async function linkedRepository(file: string): Promise<string | undefined> {
  const place = /^gitdir: (.+)\s*$/.exec(await readFile(file, 'utf8').catch(() => ''))?.[1]?.trim();
  if (place === undefined) return undefined;
  const own = resolve(dirname(file), place);
  const common = (await readFile(join(own, 'commondir'), 'utf8').catch(() => '')).trim();
  return common === '' ? undefined : resolve(own, common);
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
