/**
 * Command lines from the manuals of programs: each option of each read-only program, in every form that the program
 * accepts. Their paths are hidden, outside, or targets that the program would write or run.
 */
import { spawnSync } from 'node:child_process';
import { type Chance, chance } from '../../support/seededChance.ts';
import type { OraclePlace } from './oracleDirectory.ts';

/** Programs of the list of read-only commands. */
const PROGRAMS =
  `cat head tail ls pwd cd echo printf true false : test [ wc nl stat file du df basename dirname realpath readlink
  whoami id uname hostname nproc which type command cut tr sort uniq comm diff cmp grep egrep fgrep rg find tree sha256sum
  sha1sum md5sum seq sleep jq od hexdump column tac rev date sed git`
    .trim()
    .split(/\s+/);

/** Options that no help prints, or prints in another form. */
const MORE: Readonly<Record<string, readonly string[]>> = {
  file: [
    '-m',
    '--magic-file',
    '-C',
    '--compile',
    '-f',
    '--files-from',
    '-z',
    '-Z',
    '-L',
    '-P',
    '-e',
    '-F',
    '-s',
    '-S',
    '-d',
  ],
  find: [
    ...[
      '-newer',
      '-newerXY',
      '-samefile',
      '-fls',
      '-fprint',
      '-fprint0',
      '-fprintf',
      '-exec',
      '-execdir',
      '-ok',
      '-okdir',
    ],
    ...['-delete', '-files0-from', '-L', '-H', '-P', '-D', '-O3', '-follow', '-anewer', '-cnewer', '-lname', '-ilname'],
    ...[
      '-printf',
      '-ls',
      '-quit',
      '-fstype',
      '-context',
      '-readable',
      '-used',
      '-regextype',
      '-noleaf',
      '-mount',
      '-xdev',
    ],
  ],
  hexdump: ['-f', '-e', '-C', '-n', '-s', '-v', '--format-file', '--format', '--length', '--skip'],
  test: [
    '-e',
    '-f',
    '-d',
    '-r',
    '-w',
    '-x',
    '-s',
    '-nt',
    '-ot',
    '-ef',
    '-L',
    '-v',
    '-R',
    '-N',
    '-O',
    '-G',
    '-S',
    '-p',
    '-a',
    '-o',
  ],
  sed: ['-n', '-e', '-f', '-i', '-s', '-u', '-z', '-E', '--file', '--in-place', '--expression', '--quiet'],
  jq: [
    ...[
      '-f',
      '--from-file',
      '-L',
      '--library-path',
      '--slurpfile',
      '--rawfile',
      '--arg',
      '--argjson',
      '--args',
      '--jsonargs',
    ],
    ...[
      '-n',
      '-r',
      '-R',
      '-s',
      '-S',
      '-e',
      '-a',
      '-j',
      '-c',
      '-C',
      '-M',
      '--seq',
      '--stream',
      '--tab',
      '--indent',
      '--raw-input',
    ],
  ],
  column: [
    '-t',
    '-s',
    '-o',
    '-c',
    '-J',
    '-n',
    '-N',
    '--table',
    '--json',
    '--table-columns',
    '--output-width',
    '--tree',
  ],
  date: ['-f', '--file', '-r', '--reference', '-s', '--set', '-d', '--date'],
  cd: ['-L', '-P', '-e', '-@'],
  type: ['-a', '-t', '-p', '-P', '-f'],
  command: ['-v', '-V', '-p'],
  printf: ['-v', '%s', '%q', '%(%F)T', '%n'],
  tree: [
    ...[
      '-o',
      '--fromfile',
      '--fromtabfile',
      '--info',
      '--infofile',
      '--gitfile',
      '-l',
      '-a',
      '-f',
      '-x',
      '-L',
      '-P',
      '-R',
      '-H',
    ],
    ...['--filelimit', '--prune', '--du', '-J', '-X'],
  ],
  rev: ['-0', '--zero'],
  git: [],
};

const GIT_SUBCOMMANDS = [
  'status',
  'log',
  'diff',
  'show',
  'branch',
  'grep',
  'blame',
  'stash list',
  'ls-files',
  'shortlog',
  'cat-file',
];
const DIFF_OPTIONS =
  `-p -u --patch -s --no-patch -U --unified --output --output-indicator-new --raw --patch-with-raw --indent-heuristic
  --minimal --patience --histogram --anchored --diff-algorithm --stat --compact-summary --numstat --shortstat -X --dirstat
  --cumulative --dirstat-by-file --summary --patch-with-stat -z --name-only --name-status --submodule --color --no-color
  --color-moved --color-moved-ws --word-diff --word-diff-regex --color-words --no-renames --rename-empty --check
  --ws-error-highlight --full-index --binary --abbrev -B --break-rewrites -M --find-renames -C --find-copies
  --find-copies-harder -D --irreversible-delete -l --diff-filter -S -G --find-object --pickaxe-all --pickaxe-regex -O -R
  --relative --no-relative -a --text --ignore-cr-at-eol --ignore-space-at-eol -b --ignore-space-change -w --ignore-all-space
  --ignore-blank-lines -I --inter-hunk-context -W --function-context --exit-code --quiet --ext-diff --no-ext-diff --textconv
  --no-textconv --ignore-submodules --src-prefix --dst-prefix --no-prefix --default-prefix --line-prefix --ita-invisible-in-index
  --cached --staged --merge-base --no-index --follow --no-decorate --decorate --decorate-refs --source --mailmap --full-diff
  --log-size -L --grep --author --committer --grep-reflog --all-match --invert-grep -i -E -F -P --remove-empty --merges
  --min-parents --first-parent --not --all --branches --tags --remotes --glob --exclude --exclude-hidden --reflog
  --alternate-refs --single-worktree --ignore-missing --bisect --stdin --cherry-mark --cherry-pick --left-only --cherry -g
  --walk-reflogs --merge --boundary --simplify-by-decoration --show-pulls --full-history --dense --sparse --simplify-merges
  --ancestry-path --date-order --topo-order --reverse --no-walk --do-walk --pretty --format --abbrev-commit --oneline
  --encoding --expand-tabs --notes --show-notes --show-signature --relative-date --date --parents --children --left-right
  --graph --show-linear-break -c --cc --combined-all-paths -m -r -t --remerge-diff --diff-merges --exclude-standard
  --others --ignored --exclude-from --exclude-per-directory --contents --open-files-in-pager --recurse-submodules --help
  --output-directory --porcelain --show-stash --ahead-behind --find-renames --untracked-files --column --pathspec-from-file`
    .trim()
    .split(/\s+/);

const optionsByProgram = new Map<string, readonly string[]>();
/** The options in the help of a program, and the ones listed here. */
function optionsOf(program: string, { env, ws }: Pick<OraclePlace, 'env' | 'ws'>): readonly string[] {
  const kept = optionsByProgram.get(program);
  if (kept) return kept;
  const { stdout, stderr } = spawnSync(program, ['--help'], { env: env(), cwd: ws, encoding: 'utf8', timeout: 5_000 });
  const found = [...`${stdout ?? ''}${stderr ?? ''}`.matchAll(/(?<=^\s*|[\s,[|])--?[a-zA-Z0-9][\w-]*/gm)].map(
    ([option]) => option,
  );
  const all = [...new Set([...found, ...(MORE[program] ?? []), ...(program === 'git' ? DIFF_OPTIONS : [])])];
  optionsByProgram.set(program, all);
  return all;
}

const PATHS = [
  ...[
    'secrets/key',
    'src/.env',
    '../out/secret',
    '~/.ssh/id',
    'list0',
    './run',
    'made/y',
    'src/a.ts',
    '.',
    'secrets',
    'sums',
  ],
  ...[
    'link',
    'link/secret',
    'outside.txt',
    'inner/key',
    'prog',
    'patterns',
    '.git/config',
    'HEAD:secrets/key',
    '/etc/hostname',
  ],
] as const;

/** A shortened long option: GNU programs, git and others accept any unambiguous prefix. */
const cut = (option: string, by: Chance): string =>
  option.startsWith('--') && option.length > 4 ? option.slice(0, 3 + by.below(option.length - 3)) : option;

function withValue(option: string, path: string, by: Chance): string {
  switch (by.below(9)) {
    case 0:
      return `${option}${path}`;
    case 1:
      return `${option}=${path}`;
    case 2:
      return `${option} ${path}`;
    case 3:
      return `${cut(option, by)}=${path}`;
    case 4:
      return `${cut(option, by)} ${path}`;
    case 5:
      return option.startsWith('--') ? option : `-n${option.slice(1)}${path}`;
    case 6:
      return cut(option, by);
    case 7:
      // The previous option determines whether `--` ends the options.
      return `${option} --`;
    default:
      return option;
  }
}

/** The line of a seed. */
export function manualLine(seed: number, place: Pick<OraclePlace, 'env' | 'ws'>): string {
  const by = chance(seed);
  // Arguments that programs and options need to do anything.
  const program = by.odds(0.25) ? 'git' : (PROGRAMS[by.below(PROGRAMS.length)] ?? 'cat');
  const options = optionsOf(program, place);
  const drawn = Array.from({ length: 1 + by.below(2) }, () => options[by.below(options.length)] ?? '');
  const words = drawn.map((option) => withValue(option, by.one(PATHS), by));
  const operands = Array.from({ length: by.below(3) }, () => by.one(PATHS));
  const pattern = /^(e|f)?grep$|^rg$/.test(program) && by.odds(0.8) ? ['KEY'] : program === 'jq' ? ['.'] : [];
  const all = by.odds(0.7) ? [...words, ...pattern, ...operands] : [...pattern, ...operands, ...words];
  const name = program === 'git' ? `git ${by.one(GIT_SUBCOMMANDS as [string, ...string[]])}` : program;
  return `${name} ${all.join(' ')}${program === '[' ? ' ]' : ''}`.trim();
}

const CHANGES = [
  ...[
    'shopt -s extglob',
    'shopt -s dotglob',
    'shopt -s globstar',
    'shopt -s nullglob',
    'shopt -s nocaseglob',
    'set -f',
  ],
  ...[
    'set -o noglob',
    'set +o posix',
    "IFS='/'",
    'IFS=s',
    "GLOBIGNORE='*.md'",
    'GLOBIGNORE=.',
    'CDPATH=../out',
    'cd dir',
  ],
  ...[
    'LC_ALL=C',
    'LANG=C',
    'export LC_ALL=C',
    'HOME=../out',
    'PWD=../out',
    'OLDPWD=../out; cd -',
    'PATH=.',
    'enable -n echo',
  ],
  ...[
    'BASH_ENV=./run',
    'alias cat=./run',
    'hash -p ./run cat',
    'declare -n x=y',
    'unset HOME',
    'pushd ../out',
    'ulimit -n 3',
  ],
  ...[
    'x=..',
    'f=secrets/key',
    'a=(secrets/key)',
    'read -r f < list0',
    'readonly f=src/.env',
    'printf -v f secrets/key',
    ':',
  ],
] as const;
const READ = [
  ...[
    "f='../out/*'; echo $f",
    "echo $(echo '../out/*')",
    'for f in $(cat list0); do echo "$f"; done',
    'x=..; echo "$x"/*',
    'echo ~+/../out/*',
    '[[ -f ../out/secret ]]',
    'x=..; cat $\\\nx/out/secret',
    "x='a[$(cat ../out/secret >&2)]'; y=([x]=1)",
    '[[ link/secret -nt README.md ]]',
    'type ../out/secret',
  ],
  ...[
    'awk \'BEGIN { x = 1system("cat ../out/secret") }\'',
    'awk \'BEGIN { x = 0getline < "../out/secret"; print }\'',
    "awk '1' secrets/key",
    "sed -n 'w made/y' README.md",
    "bash -c 'cat secrets/key'",
    "eval 'cat secrets/key'",
    "env -S 'cat secrets/key'",
    'git cat-file blob $(git rev-parse HEAD:secrets/key)',
  ],
  ...[
    'cat *',
    'cat @(secrets|docs)/*',
    'cat **/key',
    'ls -a *',
    'cat ?(.)*',
    'cat !(x)',
    'head s*/k*',
    'cat src/*',
    'cat src/.*',
  ],
  ...[
    'cat [!m]*/key',
    'cat [a-Z]ecrets/key',
    'cat [[:lower:]]*/key',
    'cat secret[r-t]/key',
    'cat SECRETS/KEY',
    'cat $f',
    'cat "$f"',
  ],
  ...[
    'cat $x/out/secret',
    'cat "$OLDPWD"/secret',
    'cat ~+/secrets/key',
    'cat ~-/secret',
    'cat \x24{a[0]}',
    'cat "\x24{a[@]}"',
    'cat $HOME/secret',
  ],
  ...[
    'cat \x24{f/x/y}',
    'cat \x24{f:-secrets/key}',
    "cat $'secrets/k\\145y'",
    'cat $"secrets/key"',
    'cat sec\\rets/key',
    'cat s{e,}crets/key',
  ],
  ...[
    'cat {secrets,docs}/{key,x.md}',
    'cat secrets//key',
    'cat ./secrets/./key',
    'cat made/../secrets/key',
    'cat "secrets"/key',
  ],
  ...[
    'cat < secrets/key',
    'cat 0<secrets/key',
    'cat <<<"$(<secrets/key)"',
    'echo $(<secrets/key)',
    'echo "$(< src/.env)"',
    'cat <(cat secrets/key)',
  ],
  ...[
    'cd secrets; cat key',
    'cd secrets && cat *',
    'cd src && cat .env',
    'cd inner; cat key',
    'cd link && cat secret',
    'cd; cat .ssh/id',
    'cd -; cat secret',
  ],
  ...[
    '(cd secrets; cat key)',
    '{ cd src; cat .env; }',
    'while read -r l; do echo "$l"; done < secrets/key',
    'mapfile -t m < src/.env; echo "$m"',
  ],
  ...[
    'printf "%s\\n" "$(cat secrets/key)"',
    'if test -f secrets/key; then cat secrets/key; fi',
    'case x in *) cat secrets/key;; esac',
  ],
  ...[
    'for f in secrets/*; do cat "$f"; done',
    'for f in *; do cat "$f"; done',
    'select f in secrets/key; do cat "$f"; done',
    'cat secrets/key | wc -l',
  ],
  ...[
    '! cat secrets/key',
    'time cat secrets/key',
    'cat secrets/key &',
    'coproc cat secrets/key',
    'f() { cat secrets/key; }; f',
    'cat -- secrets/key',
  ],
  ...[
    '/bin/cat secrets/key',
    'command cat secrets/key',
    '\\cat secrets/key',
    'c""at secrets/key',
    '$(echo cat) secrets/key',
    'grep -r KEY',
    'rg KEY',
    'rg -. KEY',
  ],
] as const;

/** A line that changes the shell itself before a command reads. */
export function shellLine(seed: number): string {
  const by = chance(seed);
  const read = by.one(READ);
  const change = by.one(CHANGES);
  switch (by.below(4)) {
    case 0:
      return read;
    case 1:
      return /^[A-Z_a-z]+=\S*$/.test(change) ? `${change} ${read}` : `${change} && ${read}`;
    case 2:
      return `${change}\n${read}`;
    default:
      return `${change}; ${by.odds(0.3) ? `${by.one(CHANGES)}; ` : ''}${read}`;
  }
}
