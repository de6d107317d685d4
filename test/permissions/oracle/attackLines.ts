/** Lines that try to leave a sandbox, after an assumed approval. The rules' interpretation does not matter. */
import { chance } from '../../support/seededChance.ts';

const HIDDEN_ONES = ['secrets/key', 'src/.env', 'secrets/sub/deep', 'inner/key'] as const;
const PROTECTED = [
  ...[
    '.git/config',
    '.git/hooks/post-checkout',
    '.git/commondir',
    '.git/config.worktree',
    '.gitmodules',
    '.envrc',
    '.bashrc',
    '.profile',
  ],
  ...[
    '.husky/pre-commit',
    '.vscode/tasks.json',
    '.idea/x',
    '.runchart/config.json',
    '.mcp.json',
    '.ssh/config',
    '.gnupg/x',
    '.gitconfig',
    '.zshrc',
  ],
] as const;
const READS = [
  ...[
    'cat PATH',
    'python3 -c "print(open(\'PATH\').read())"',
    'cp PATH made/c; cat made/c',
    'ln PATH made/l; cat made/l',
    'tar c PATH | tar xO',
  ],
  ...[
    'mv PATH made/m; cat made/m',
    'cat /proc/self/cwd/PATH',
    'cat /proc/1/root$PWD/PATH',
    'cat /proc/1/cwd/PATH',
    'dd if=PATH',
    'base64 -d <(base64 PATH)',
  ],
  ...[
    'mount --bind / made; cat made$PWD/PATH',
    'umount PATH; cat PATH',
    'umount -l PATH; cat PATH',
    'unshare -rm sh -c "umount PATH; cat PATH"',
  ],
  ...[
    'nsenter -t 1 -m cat PATH',
    'mv secrets s2; cat s2/key',
    'cp -r . /tmp/copy; cat /tmp/copy/PATH',
    'git add -f PATH; git show :PATH',
    'rm -f PATH; cat PATH',
  ],
  ...[
    'git hash-object -w PATH | xargs git cat-file -p',
    'git stash; git stash show -p',
    'exec 3<PATH; cat <&3',
    'sh -c \'cat "$0"\' PATH',
    'perl -pe 1 PATH',
  ],
  ...[
    'cat ~/.ssh/id',
    'cat "$HOME/.ssh/id"',
    'ls ~/.ssh',
    'cp -r ~/.ssh made/s; cat made/s/id',
    'cat /root/.ssh/id',
    'find / -xdev -name id -path "*ssh*" -exec cat {} + 2>/dev/null | head',
  ],
] as const;
const WRITES = [
  ...[
    'echo x > PATH',
    'mkdir -p "$(dirname PATH)"; echo x > PATH',
    'rm -rf PATH; echo x > PATH',
    'ln -sf /bin/true PATH',
    'cp README.md PATH',
    'mv README.md PATH',
  ],
  ...[
    "python3 -c \"open('PATH','w').write('x')\"",
    'echo x >> PATH',
    'chmod 777 PATH; echo x > PATH',
    'mv .git g; mkdir .git; echo x > PATH',
    'rm -rf .git; git init; echo x > PATH',
  ],
  ...[
    'cp -r .git g; rm -rf .git; mv g .git; echo x > PATH',
    'truncate -s 0 PATH',
    'rm -rf PATH',
    'mv PATH made/gone',
    'git config core.fsmonitor ./run',
    'git config -f PATH a.b c',
  ],
  ...[
    'umount PATH; echo x > PATH',
    'mount -o remount,rw PATH; echo x > PATH',
    'touch PATH',
    'install -D run PATH',
    'git worktree add made/w',
    'git clean -fdxq',
    'ln made/x PATH',
  ],
  ...[
    'echo x > ../out/made',
    'rm -rf ../out',
    'echo x > ~/.bashrc',
    'cd ..; echo x > out/secret',
    'echo x > /etc/runchart-oracle',
    'mv ../out ../gone',
    'ln -s ../out o; echo x > o/made',
  ],
  ...[
    'echo x > link/made',
    'mkdir -p ~/.config/runchart; echo x > ~/.config/runchart/config.json',
    'chmod -R 777 ..',
    'touch ../ran',
    './run',
    'git -c core.fsmonitor=./run status',
  ],
] as const;

export function attackLine(seed: number): string {
  const by = chance(seed);
  const written = by.odds(0.5);
  const line = written
    ? by.one(WRITES).replaceAll('PATH', by.one(PROTECTED))
    : by.one(READS).replaceAll('PATH', by.one(HIDDEN_ONES));
  return by.odds(0.3) ? `${line}; ${by.one(READS).replaceAll('PATH', by.one(HIDDEN_ONES))}` : line;
}
