/**
 * Every reading command with the options that leave it one, and with options that write, run a program, or follow
 * links. Invariant: the first kind of line runs unasked without any rule, and the second kind is asked about.
 */
import { describe, expect, it } from 'vitest';
import { explain, workspace } from './permissionWorkspace.ts';

const ws = await workspace();
const F = 'src/a.ts';

/** Each command with endings of a line that only reads, and with endings that may do more. `|` is part of no ending. */
const COMMANDS: readonly (readonly [command: string, reads: readonly string[], others: readonly string[]])[] = [
  ['cat', [F, `-n ${F}`, `-A ${F}`, `--number ${F}`], [`--x/y ${F}`, '$X']],
  ['head', [F, `-5 ${F}`, `-n 5 ${F}`, `-n5 ${F}`, `-c -3 ${F}`, `-q ${F}`, `--lines=+3 ${F}`], [`--follow ${F}`]],
  ['tail', [F, `-n +5 ${F}`, `-v ${F}`, `-z ${F}`, `--bytes=4 ${F}`, `--silent ${F}`], [`-f ${F}`, `-F ${F}`]],
  ['ls', ['', '-la', '-R src', '--color=auto', '-1'], ['-L', '--dereference']],
  ['pwd', ['', '-P', '-L'], ['src', '-x']],
  ['cd', ['src'], ['-P src', 'src docs']],
  ['echo', ['', 'a -n b', '-e x'], []],
  ['printf', ['x', '%s a', '-- x'], []],
  ['true', ['', 'a'], []],
  ['false', ['', 'a'], []],
  [':', ['', 'a'], []],
  ['test', [`-f ${F}`, `-n x`, `a = b`, `! -e ${F}`], ['-f $X']],
  ['[', [`-d src ]`, 'a != b ]'], ['-r $X ]']],
  ['env', [''], ['-i', 'x']],
  ['printenv', ['', 'HOME'], ['-0']],
  ['wc', [F, `-l ${F}`, `-clmwL ${F}`, `--max-line-length ${F}`], [`--files0-from=x`]],
  ['nl', [F, `-ba ${F}`, `--body-numbering=a ${F}`], [`-b/ ${F}`]],
  ['stat', [F, `-c %s ${F}`, `-L ${F}`], [`--x=/ ${F}`]],
  ['file', [F, `-b ${F}`, `-i ${F}`, `--mime-type ${F}`], [`-f ${F}`, `-C`, `-m ${F} x`]],
  ['du', ['', '-sh src', '-d1', '--max-depth=1', '--apparent-size', '--exclude=*.o'], ['-L', '--files0-from=x']],
  ['df', ['-h'], ['--output=/x']],
  ['basename', [F, `-s .ts ${F}`, `${F} .ts`], []],
  ['dirname', [F, `-z ${F}`], []],
  ['realpath', [F, `-m ${F}`], []],
  ['readlink', [F, `-f ${F}`], []],
  ['whoami', [''], ['x']],
  ['id', ['', '-u', '-un root'], []],
  ['uname', ['', '-a'], []],
  ['hostname', [''], ['x', '-F x']],
  ['nproc', ['', '--all'], ['x']],
  ['which', ['node', '-a node'], []],
  ['type', ['node', '-a node'], []],
  ['command', ['-v node', '-V node'], ['node', '-p node']],
  ['cut', [`-d: -f1 ${F}`, `-c1-3 ${F}`, `--fields=1 ${F}`, `-s -f 1 ${F}`], [`-x ${F}`]],
  ['tr', ['a b', '-d x', '-cs a b'], []],
  ['sort', [F, `-rn ${F}`, `-u ${F}`, `-k2 ${F}`, `-t: -k 1,2 ${F}`], [`-o x ${F}`, `--output=x ${F}`, `-T x ${F}`]],
  ['uniq', [F, `-c ${F}`, `-f1 ${F}`, `-w 3`], [`${F} out`, `--x ${F}`]],
  ['comm', [`-12 ${F} ${F}`, `${F} ${F}`], [`--output-delimiter=x ${F} ${F}`]],
  [
    'diff',
    [`${F} ${F}`, `-u ${F} ${F}`, `-U3 ${F} ${F}`, `--brief ${F} ${F}`],
    ['src docs', `-r ${F} ${F}`, `-l ${F} ${F}`],
  ],
  ['cmp', [`${F} ${F}`, `-s ${F} ${F}`], []],
  [
    'rg',
    [`x src`, `-n x`, `-l x src`, `--type=ts x`, `-g *.ts x`],
    ['--pre=sh x', '--pre cat x', '-z x', '-L x', '--hostname-bin=x y', '--follow x'],
  ],
  [
    'find',
    ['. -name x', 'src -type f -print0', '. -maxdepth 1 -not -newer x', '. -regex x -prune', "src -printf '%f'"],
    ['. -delete', '. -exec rm {} +', '. -ok ls {} ;', '-L .', '. -fprint x', '. -fls x', '-files0-from x'],
  ],
  ['tree', ['', '-L 2', '-a src', '--dirsfirst', '--gitignore'], ['-o x', '-l', '--fromfile x']],
  ['sha256sum', [F, `-b ${F}`, `--tag ${F}`], [`-c ${F}`, `--check ${F}`]],
  ['sha1sum', [F, `-t ${F}`], [`-c ${F}`]],
  ['md5sum', [F, `-b ${F}`], [`-c ${F}`]],
  ['seq', ['3', '-s, 1 3', '-w 1 2 9', '1 -1 -3'], ['-f x 3']],
  ['sleep', ['1'], []],
  [
    'jq',
    [`. ${F}`, `-r .a ${F}`, '-n 1', `-c . ${F}`],
    [`-f x ${F}`, `env ${F}`, '-n $ENV.A', `--args . x`, `-L x . ${F}`, `'import "a" as a; 1' ${F}`],
  ],
  ['od', [`-c ${F}`, F], []],
  ['hexdump', [`-C ${F}`, `-n 4 ${F}`, `-s4 ${F}`], [`-f x ${F}`, `-e x ${F}`]],
  ['column', [`-t ${F}`, F], []],
  ['tac', [F, `-r ${F}`], []],
  ['rev', [F], [`-x ${F}`]],
  ['date', ['', '+%s', '-u', '-Iseconds', '-R', '-u +%F'], ['-s now', '--set=now', '-f x', '-r x']],
  ['read', ['-r line', 'line'], ['-u 3 x', 'PATH', '']],
  ['set', ['-e', '-euo pipefail', '-o nounset', '+x'], ['-a', '-o vi', 'x']],
  [
    'sed',
    [`-n 1,40p ${F}`, `s/a/b/ ${F}`, `-e p -e d ${F}`, `-E 's|a|b|g' ${F}`, `'/x/,/y/!d' ${F}`, `'$p' ${F}`],
    [`-i s/a/b/ ${F}`, `-n 'w x' ${F}`, `'s/a/b/w x' ${F}`, `'s/a/b/e' ${F}`, `e ${F}`, `'1r x' ${F}`, `-f x ${F}`],
  ],
  [
    'awk',
    [`'{ print $1 }' ${F}`, `-F: '{ print }' ${F}`, `-v n=1 'NR > n' ${F}`, `'$1 >= 2 { print }' ${F}`],
    [
      `'{ print > "x" }' ${F}`,
      `'{ system("x") }' ${F}`,
      `'{ "x" | getline }' ${F}`,
      `-f x ${F}`,
      `'{ print | "x" }' ${F}`,
      `'{ print ENVIRON["A"] }' ${F}`,
    ],
  ],
];
const GREPS = ['grep', 'egrep', 'fgrep'].map(
  (name) =>
    [
      name,
      [
        `x ${F}`,
        `-rn x src`,
        `-i -A 3 x ${F}`,
        `--include=*.ts -r x src`,
        `-e x ${F}`,
        `--color=never x ${F}`,
        `-c x ${F}`,
        `--max-count=1 x ${F}`,
      ],
      [`-R x src`, `--dereference-recursive x src`, `--exclude-from=/x y src`, `--fi=/x src`],
    ] as const,
);
const lineOf = (command: string, ending: string): string => (ending === '' ? command : `${command} ${ending}`);
const verdictOf = async (command: string): Promise<string> => {
  const { outcome, by } = await explain({}, 'Bash', { command }, ws);
  return `${command}: ${outcome} ${by}`;
};

describe('a command that reads', () => {
  it.each([...COMMANDS, ...GREPS])(
    '%s runs unasked with %j, and is asked about with %j',
    async (command, reads, others) => {
      for (const ending of reads) {
        const line = lineOf(command, ending);
        expect(await verdictOf(line)).toBe(`${line}: allow read-only`);
      }
      for (const ending of others) {
        const line = lineOf(command, ending);
        expect(await verdictOf(line)).toBe(`${line}: ask mode default`);
      }
    },
  );
});

/** The same for the commands of git. */
const GIT: readonly (readonly [command: string, reads: readonly string[], others: readonly string[]])[] = [
  ['status', ['', '-s', '-sb', '--short --branch', '--porcelain=v2', '--ignored', '-uno', '-u'], ['--x']],
  [
    'log',
    ['', '-5', '-n 5', '--oneline', '--graph --all', '--author=x --since=1.week', '--format=%h', '-i --grep=x'],
    ['--format=%G?', '--show-signature', '--output=x', '--ext-diff'],
  ],
  ['reflog', ['', 'show', '-5', 'HEAD'], ['expire', 'delete x']],
  [
    'branch',
    ['', '-a', '-r', '-vv', '--list', '--show-current', '--merged=x', '--contains x', '--sort=x'],
    ['x', '-v x', '-vv x', '-q x', '-d x', '-D x', '-m x', '-f x y', '--edit-description'],
  ],
  ['tag', ['', '-l', '-n2', '--list x', '--points-at=x', '--sort=x'], ['x', '-d x', '-a x', '-s x', '-v x']],
  [
    'remote',
    ['', '-v', '--verbose', 'get-url origin', 'get-url --all origin'],
    ['add a b', 'remove a', 'set-url a b', 'update', 'show a', 'get-url --x a'],
  ],
  ['worktree', ['list', 'list --porcelain'], ['', 'add x', 'remove x', 'list -v', 'prune']],
  ['stash', ['list', 'show --stat'], ['', 'pop', 'drop', 'apply', 'push', 'clear']],
  [
    'rev-parse',
    ['HEAD', '--abbrev-ref HEAD', '--show-toplevel', '--short=8 HEAD', '--is-inside-work-tree'],
    ['--parseopt x', '--local-env-vars'],
  ],
  [
    'rev-list',
    ['--count HEAD', '-5 HEAD', '--since=x HEAD', '--merges --all'],
    ['--objects HEAD', '--disk-usage HEAD'],
  ],
  ['merge-base', ['a b', '--is-ancestor a b', '--all a b'], ['--x a b']],
  ['ls-files', ['', '-m', '--others --exclude-standard', '-z src'], ['-X x', '--exclude-from=x']],
  ['ls-tree', ['HEAD', '-r HEAD', '--name-only HEAD'], ['--format=x HEAD']],
  ['describe', ['', '--tags --always', '--abbrev=4', '--exact-match'], ['--debug']],
  ['shortlog', ['-sn HEAD', '--summary --numbered HEAD', '--since=x HEAD'], ['--output=x HEAD']],
  ['check-ignore', ['src', '-v src'], ['--stdin']],
  ['for-each-ref', ['', '--count=3', '--format=x'], ['--shell', '--format=%(raw)']],
  ['show-ref', ['', '--heads', '--tags', '--verify x'], ['--exclude-existing']],
  ['name-rev', ['HEAD', '--name-only HEAD'], ['--stdin']],
  ['count-objects', ['', '-v', '-vH'], ['-x']],
  [
    'diff',
    ['--stat', '--name-only HEAD~1', '--cached --numstat'],
    ['--output=x', '--ext-diff', '--no-index a b', '--textconv'],
  ],
  ['show', ['--stat HEAD', '-s HEAD', '--name-status HEAD~2'], ['--output=x', '--format=%G?']],
];
const WRITES: readonly string[] =
  `add am apply bisect checkout cherry-pick clean clone commit config fetch gc init merge mv notes pull push rebase
  reset restore revert rm submodule switch update-ref write-tree`.split(/\s+/);

describe('a command of git that reads', () => {
  it.each(GIT)('%s runs unasked with %j, and is asked about with %j', async (command, reads, others) => {
    for (const ending of reads) {
      const line = lineOf(`git ${command}`, ending);
      expect(await verdictOf(line)).toBe(`${line}: allow read-only`);
    }
    for (const ending of others) {
      const line = lineOf(`git ${command}`, ending);
      expect(await verdictOf(line)).toMatch(/: ask /);
    }
  });

  it.each(WRITES)('is not git %s', async (command) => {
    for (const line of [`git ${command}`, `git ${command} x`]) expect(await verdictOf(line)).toMatch(/: ask /);
  });
});
