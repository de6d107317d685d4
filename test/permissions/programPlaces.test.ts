/**
 * Every option of a listed program that names a directory to work in or a file to run, in each form in which the program
 * takes it. Invariant: outside of the working directory such a command is asked about although a pattern allows the
 * program; inside it is not.
 */
import { expect, it } from 'vitest';
import { explain, workspace } from './permissionWorkspace.ts';

const ws = await workspace();

/** `runs`: the first argument is a file that the program runs. */
interface Program {
  names: string;
  letters?: string;
  long?: string;
  runs?: true;
}
const PROGRAMS: readonly Program[] = [
  { names: 'make gmake bmake', letters: 'CfI', long: 'directory file makefile include-dir' },
  { names: 'ninja samu', letters: 'Cf' },
  { names: 'meson', letters: 'C', long: 'sourcedir' },
  { names: 'cmake ctest', letters: 'SBCPH', long: 'build install toolchain test-dir' },
  { names: 'just', letters: 'fd', long: 'justfile working-directory' },
  { names: 'task', letters: 'dt', long: 'dir taskfile' },
  { names: 'rake', letters: 'fRrICg', long: 'rakefile rakelibdir require libdir directory' },
  { names: 'hg', letters: 'R', long: 'repository cwd' },
  { names: 'npm pnpm yarn', letters: 'C', long: 'prefix dir cwd userconfig globalconfig script-shell' },
  { names: 'bun deno', letters: 'cr', long: 'cwd config preload import-map require', runs: true },
  { names: 'tar bsdtar gtar', letters: 'C', long: 'directory cd' },
  { names: 'unzip', letters: 'd' },
  { names: 'cargo', letters: 'C', long: 'manifest-path config path lockfile-path' },
  { names: 'go', long: 'C modfile overlay toolexec exec vettool' },
  { names: 'gradle gradlew', letters: 'pbcI', long: 'project-dir build-file settings-file init-script include-build' },
  { names: 'mvn mvnw', letters: 'fs', long: 'file settings global-settings' },
  { names: 'docker podman nerdctl', letters: 'f', long: 'file project-directory config env-file' },
  { names: 'uv poetry pdm hatch', letters: 'Cp', long: 'directory project config-file' },
  { names: 'pip pip3', letters: 're', long: 'requirement editable constraint' },
  { names: 'pytest py.test tox nox', letters: 'cpf', long: 'rootdir confcutdir config-file workdir noxfile' },
  { names: 'tsc', letters: 'pb', long: 'project build' },
  {
    names: 'vitest jest eslint prettier biome webpack vite rollup esbuild mocha playwright tsup',
    ...{ letters: 'c', long: 'config root dir rootdir' },
  },
  { names: 'turbo nx lerna', long: 'cwd root' },
  { names: 'bundle', long: 'gemfile' },
  { names: 'composer', letters: 'd', long: 'working-dir' },
  { names: 'dotnet', long: 'project configfile' },
  { names: 'swift', letters: 'C', long: 'package-path chdir' },
  { names: 'terraform tofu', long: 'chdir var-file' },
  { names: 'ruby', letters: 'CIrX', runs: true },
  { names: 'perl', letters: 'IMm', runs: true },
  { names: 'awk gawk mawk nawk', letters: 'filE', long: 'file include load exec' },
  { names: 'sed gsed', letters: 'f', long: 'file' },
  { names: 'jq', letters: 'fL', long: 'from-file library-path' },
  { names: 'sh bash dash ksh mksh zsh fish ash', long: 'rcfile init-file', runs: true },
  { names: 'node nodejs', letters: 'r', long: 'require import loader env-file', runs: true },
  { names: 'tsx ts-node', letters: 'rP', long: 'require tsconfig project import', runs: true },
  { names: 'python python3 python3.12 php lua Rscript tclsh osascript', letters: 'fc', runs: true },
];
/** The lines of a program that work at this place. */
const lines = (name: string, { letters = '', long = '', runs }: Program, place: string): string[] => [
  ...[...letters].flatMap((letter) => [`${name} -${letter} ${place}`, `${name} -${letter}${place}`]),
  ...long
    .split(' ')
    .flatMap((option) => (option === '' ? [] : [`${name} --${option} ${place}`, `${name} --${option}=${place}`])),
  ...(runs ? [`${name} ${place}`] : []),
];
/** One of the names of a program is tried with all options; for the others, one option shows that they are listed. */
const rows = PROGRAMS.flatMap((program) =>
  program.names.split(' ').map((name, at): [name: string, Program] => {
    const { letters, long, runs } = program;
    const one: Program = letters
      ? { names: name, letters: letters.slice(0, 1) }
      : { names: name, long: long?.split(' ')[0] ?? '' };
    return [name, at === 0 ? program : { ...one, ...(runs && { runs }) }];
  }),
);
const outcomes = async (name: string, program: Program, place: string): Promise<string[]> =>
  Promise.all(
    lines(name, program, place).map(async (command) => {
      const { outcome } = await explain({ allow: [`bash(${name} *)`] }, 'Bash', { command }, ws);
      return `${outcome} ${command}`;
    }),
  );

it.each(rows)(
  '%s is asked about where it would work at a place outside, however its option is written',
  async (name, program) => {
    for (const place of ['../ws-evil', '/etc/x'])
      expect(await outcomes(name, program, place)).toEqual(lines(name, program, place).map((line) => `ask ${line}`));
  },
);

/** Interpreters and npm are asked about for these options in any case. */
const FIRST_NAMES = PROGRAMS.filter(({ names, runs }) => !runs && !names.startsWith('npm')).map(
  (program) => [program.names.split(' ')[0] ?? '', program] as const,
);
it.each(FIRST_NAMES)('%s is not asked about where it works inside', async (name, program) => {
  expect(await outcomes(name, program, 'docs')).toEqual(lines(name, program, 'docs').map((line) => `allow ${line}`));
});
