/**
 * Finds the words of a command that name the working directory of a known program, or a file that it runs. Rule: a
 * pattern such as `bash(make *)` covers the project's own make only. If such a word leads outside, the command needs
 * permission.
 */

import type { ShellWord } from './wordExpansion.ts';
import { baseName } from './wrappers.ts';

interface Workplace {
  /** Short options that take such a value. */
  letters?: string;
  /** Long options that take such a value, without their dashes. */
  long?: readonly string[];
  /** The program runs a file: its first argument that is no option, no value of one and no subcommand. */
  runsFile?: true;
}

const CONFIGURED: Workplace = { letters: 'c', long: ['config', 'root', 'dir', 'rootdir'] };
const PROGRAMS: readonly (readonly [names: string, Workplace])[] = [
  ['make gmake bmake', { letters: 'CfI', long: ['directory', 'file', 'makefile', 'include-dir'] }],
  ['ninja samu', { letters: 'Cf' }],
  ['meson', { letters: 'C', long: ['sourcedir'] }],
  ['cmake ctest', { letters: 'SBCPH', long: ['build', 'install', 'toolchain', 'test-dir'] }],
  ['just', { letters: 'fd', long: ['justfile', 'working-directory'] }],
  ['task', { letters: 'dt', long: ['dir', 'taskfile'] }],
  ['rake', { letters: 'fRrICg', long: ['rakefile', 'rakelibdir', 'require', 'libdir', 'directory'] }],
  ['git hg', { letters: 'CR', long: ['git-dir', 'work-tree', 'repository', 'cwd', 'exec-path'] }],
  ['npm pnpm yarn', { letters: 'C', long: ['prefix', 'dir', 'cwd', 'userconfig', 'globalconfig', 'script-shell'] }],
  ['bun deno', { letters: 'cr', long: ['cwd', 'config', 'preload', 'import-map', 'require'], runsFile: true }],
  ['tar bsdtar gtar', { letters: 'C', long: ['directory', 'cd'] }],
  ['unzip', { letters: 'd' }],
  ['cargo', { letters: 'C', long: ['manifest-path', 'config', 'path', 'lockfile-path'] }],
  ['go', { letters: 'C', long: ['C', 'modfile', 'overlay', 'toolexec', 'exec', 'vettool'] }],
  [
    'gradle gradlew',
    { letters: 'pbcI', long: ['project-dir', 'build-file', 'settings-file', 'init-script', 'include-build'] },
  ],
  ['mvn mvnw', { letters: 'fs', long: ['file', 'settings', 'global-settings'] }],
  ['docker podman nerdctl', { letters: 'f', long: ['file', 'project-directory', 'config', 'env-file'] }],
  ['uv poetry pdm hatch', { letters: 'Cp', long: ['directory', 'project', 'config-file'] }],
  ['pip pip3', { letters: 're', long: ['requirement', 'editable', 'constraint'] }],
  ['pytest py.test tox nox', { letters: 'cpf', long: ['rootdir', 'confcutdir', 'config-file', 'workdir', 'noxfile'] }],
  ['tsc', { letters: 'pb', long: ['project', 'build'] }],
  ['vitest jest eslint prettier biome webpack vite rollup esbuild mocha playwright tsup', CONFIGURED],
  ['turbo nx lerna', { long: ['cwd', 'root'] }],
  ['bundle', { long: ['gemfile'] }],
  ['composer', { letters: 'd', long: ['working-dir'] }],
  ['dotnet', { long: ['project', 'configfile'] }],
  ['swift', { letters: 'C', long: ['package-path', 'chdir'] }],
  ['terraform tofu', { long: ['chdir', 'var-file'] }],
  ['ruby', { letters: 'CIrX', runsFile: true }],
  ['perl', { letters: 'IMm', runsFile: true }],
  ['awk gawk mawk nawk', { letters: 'filE', long: ['file', 'include', 'load', 'exec'] }],
  ['sed gsed', { letters: 'f', long: ['file'] }],
  ['jq', { letters: 'fL', long: ['from-file', 'library-path'] }],
  ['sh bash dash ksh mksh zsh fish ash', { long: ['rcfile', 'init-file'], runsFile: true }],
  ['node nodejs', { letters: 'r', long: ['require', 'import', 'loader', 'env-file'], runsFile: true }],
  ['tsx ts-node', { letters: 'rP', long: ['require', 'tsconfig', 'project', 'import'], runsFile: true }],
  ['python php lua Rscript tclsh osascript', { letters: 'fc', runsFile: true }],
  ['env', { letters: 'C', long: ['chdir'] }],
];
const BY_NAME = new Map(PROGRAMS.flatMap(([names, place]) => names.split(' ').map((name) => [name, place] as const)));

/** Expects a command without wrappers. */
export function workPlacesOf(words: readonly ShellWord[]): readonly ShellWord[] {
  const [name, ...args] = words;
  const program = baseName(name?.value ?? '');
  const workplace = BY_NAME.get(program) ?? BY_NAME.get(program.replace(/[\d.]+$/, ''));
  if (!workplace) return [];
  const { letters = '', long = [], runsFile } = workplace;
  const places: ShellWord[] = [];
  for (const [at, word] of args.entries()) {
    const takes = takesPlace(word.value, letters, long);
    if (takes === 'here' || takes === 'here or next') places.push(word);
    const next = args[at + 1];
    if (next && (takes === 'next' || takes === 'here or next')) places.push(next);
  }
  // Option letters without a dash: the values of all of them follow.
  if (/^(bsd|g)?tar$/.test(program) && /^[a-zA-Z]*C/.test(args[0]?.value ?? '')) places.push(...args.slice(1));
  return runsFile ? [...places, ...possibleScripts(args)] : places;
}

/** The words up to the file that the program runs. A word after an option may be its value, and one without a dot or slash a subcommand. */
function possibleScripts(args: readonly ShellWord[]): ShellWord[] {
  const isPlain = (word: ShellWord | undefined): boolean => word !== undefined && !word.value.startsWith('-');
  const script = args.findIndex(
    (word, at) => isPlain(word) && /[./]/.test(word.value) && (at === 0 || isPlain(args[at - 1])),
  );
  return (script === -1 ? args : args.slice(0, script + 1)).filter(isPlain);
}

type Takes = 'no' | 'here' | 'next' | 'here or next';

/** Finds the value of an option. Any prefix of a long option counts, also with one dash. */
function takesPlace(value: string, letters: string, long: readonly string[]): Takes {
  const option = /^--?([\w-]+)(=?)/.exec(value);
  if (!option) return 'no';
  const [, name = '', equals] = option;
  const isLong = long.some((each) => each.startsWith(name) && (name.length > 1 || each === name));
  if (isLong) return equals === '=' ? 'here' : 'next';
  if (value.startsWith('--')) return 'no';
  const at = [...name].findIndex((letter) => letters.includes(letter));
  if (at === -1) return 'no';
  return at === value.length - 2 ? 'next' : 'here or next';
}
