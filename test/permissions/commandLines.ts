/**
 * Command lines that try to bypass the rules. A seed gives one line, from programs with the options of their manuals,
 * paths in every spelling, and constructs of bash around a command. Invariant: no line names a path outside the place
 * that the workspace makes, and none runs for long.
 */
import { type Chance, chance } from '../support/seededChance.ts';

const PATHS = [
  ...['src/a.ts', 'src/.env', 'secrets/key', 'secrets/sub/deep', 'package.json', 'README.md', 'list0', 'made/x'],
  ...['src', 'secrets', '.', 'docs', 'link', 'link/secret', 'link/../secret', 'inner/sub/deep', 'hooks/../config'],
  ...[
    '../out/secret',
    '../out',
    '~/.ssh/id',
    '.git/config',
    '.git/hooks/pre-commit',
    '.envrc',
    'old.txt',
    '/etc/hostname',
  ],
] as const;

const READERS = [
  ...[
    'cat',
    'head -1',
    'tail -n 2',
    'wc',
    'wc -l',
    'nl',
    'tac',
    'rev',
    'sort',
    'uniq',
    'cut -c1-40',
    'od -c',
    'hexdump -C',
  ],
  ...[
    'ls',
    'ls -la',
    'ls -R',
    'ls -d',
    'stat',
    'file',
    'du -a',
    'find',
    'tree',
    'realpath',
    'readlink -f',
    'md5sum',
    'cmp',
  ],
  ...[
    'diff',
    'diff -r',
    'diff -u',
    'comm',
    'grep KEY',
    'grep -r KEY',
    'grep -rn KEY',
    'grep -R KEY',
    'rg KEY',
    'rg -uu KEY',
  ],
  ...["sed -n '1,3p'", 'jq .', 'echo', 'printf %s', 'test -f', '[ -d', 'column', 'basename', 'dirname', 'type', 'cd'],
] as const;
const OPENERS = [
  ...[
    'wc --files0-from=',
    'wc --files=',
    'du --files0-from=',
    'sort --files0-from=',
    'grep -f',
    'grep -rf',
    'grep --file=',
  ],
  ...[
    'grep --exclude-from=',
    'grep --fil=',
    'diff -X',
    'diff --from-file=',
    'hexdump -f',
    'file -f',
    'rg -f',
    'rg --ignore-file=',
  ],
  ...[
    'tree --fromfile ',
    'tree -o ',
    'sort -o',
    'uniq README.md ',
    'date -f',
    'jq -f ',
    'jq --slurpfile x ',
    'find -newer ',
  ],
  ...[
    'find . -fprint ',
    'find . -name x -o -path ',
    'sort --compress-program=./run ',
    'rg --pre ./run KEY ',
    'tail --retry ',
  ],
] as const;
const GIT = [
  ...[
    'status',
    'status -s',
    'diff',
    'diff --stat',
    'diff HEAD',
    'log',
    'log --oneline',
    'log -p',
    'log -p --follow --',
    'show',
  ],
  ...[
    'show HEAD:',
    'show HEAD~1:',
    'branch',
    'log -1 --format=%G?',
    'log --show-signature',
    'diff --ext-diff',
    'diff --no-index',
  ],
  ...[
    'grep KEY',
    "grep -O'./run' KEY",
    'log --output=',
    'cat-file -p HEAD:',
    'archive HEAD',
    'blame',
    'log -S KEY --',
    'diff --textconv',
  ],
  ...[
    'show --textconv HEAD:',
    'log -L1,1:',
    'ls-files',
    'config -l',
    '-c core.fsmonitor=./run status',
    '-C src diff',
    'stash list',
  ],
] as const;
const WRITERS = [
  'tee',
  'touch',
  'cp README.md',
  'mv old.txt',
  'rm',
  'ln -s ../out',
  'mkdir -p',
  'truncate -s 0',
] as const;

/** Characters of a path replaced by bash expansions. */
function spelled(path: string, by: Chance): string {
  const at = by.below(path.length);
  const replaced = (text: string): string => path.slice(0, at) + text + path.slice(at + 1);
  switch (by.below(16)) {
    case 0:
      return replaced('?');
    case 1:
      return replaced('*');
    case 2:
      return replaced(`[${path[at] ?? 'a'}]`);
    case 3:
      return replaced(`{${path[at] ?? ''},z}`);
    case 4:
      return `$PWD/${path}`;
    case 5:
      return `"$(pwd)"/${path}`;
    case 6:
      return `"${path}"`;
    case 7:
      return `{${path},README.md}`;
    case 8:
      return `./${path}`;
    case 9:
      return path.replace(/[^/]+/, '*');
    case 10:
      return `link/../${path}`;
    case 11:
      return `inner/../../${path}`;
    case 12:
      return replaced(`'${path[at] ?? ''}'`);
    case 13:
      return `\${none:-${path}}`;
    default:
      return path;
  }
}

const pathOf = (by: Chance): string => spelled(by.one(PATHS), by);

function command(by: Chance): string {
  const kind = by.below(10);
  if (kind < 5) {
    const more = by.odds(0.2) ? ` ${pathOf(by)}` : '';
    const reader = by.one(READERS);
    return `${reader} ${pathOf(by)}${more}${reader.startsWith('[') ? ' ]' : ''}`;
  }
  if (kind < 6) return `${by.one(OPENERS)}${pathOf(by)} ${by.odds(0.5) ? pathOf(by) : ''}`;
  if (kind < 8) {
    const git = by.one(GIT);
    return `git ${git}${/[:=]$/.test(git) ? '' : ' '}${by.odds(0.7) ? pathOf(by) : ''}`;
  }
  return `${by.one(WRITERS)} ${pathOf(by)}`;
}

function around(inner: string, by: Chance): string {
  switch (by.below(19)) {
    case 0:
      return `${inner} < ${pathOf(by)}`;
    case 1:
      return `${inner} > ${pathOf(by)}`;
    case 2:
      return `for f in ${pathOf(by)}; do ${inner} "$f"; done`;
    case 3:
      return `cat $(${inner})`;
    case 4:
      return `echo "$(${inner})"`;
    case 5:
      return `timeout 5 ${inner}`;
    case 6:
      return `cd ${pathOf(by)} && ${inner}`;
    case 7:
      return `${command(by)}; ${inner}`;
    case 8:
      return `x=${by.one(PATHS)}; ${inner} $x`;
    case 9:
      return `find ${pathOf(by)} -name '*' | xargs ${inner}`;
    case 10:
      return `find . -name k* -exec ${inner} {} \\;`;
    case 11:
      return `[[ -f ${pathOf(by)} ]] && ${inner}`;
    case 12:
      return `${inner} <> ${pathOf(by)}`;
    case 13:
      return `for f in ${pathOf(by)}; do cat ${by.odds(0.5) ? '< ' : ''}"$f"; done; ${inner}`;
    default:
      return inner;
  }
}

export function commandLine(seed: number): string {
  const by = chance(seed);
  return around(command(by), by);
}
