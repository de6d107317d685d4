/** Commands that another command runs: launchers, aliases, settings of git, options, variables and scripts. */
import { describe, expect, it } from 'vitest';
import { explain, workspace } from './permissionWorkspace.ts';

const ws = await workspace();
const wide = { allow: ['bash'], deny: ['bash(git push *)', 'bash(rm *)', 'bash(curl *)'] };
const outcome = async (command: string, options: Parameters<typeof explain>[0] = wide): Promise<string> =>
  (await explain(options, 'Bash', { command }, ws)).outcome;

describe('a program that starts another one', () => {
  it.each([
    ...['gdb --args rm x', 'gdb -batch -ex run --args rm x', 'lldb -- rm x', 'proot rm x', 'proot -r / rm x'],
    ...['catchsegv rm x', '/lib64/ld-linux-x86-64.so.2 /bin/rm x', '/lib/ld-musl-x86_64.so.1 /bin/rm x'],
    ...['setarch x86_64 rm x', 'setarch -R rm x', 'linux32 rm x', 'perf stat rm x', 'perf record -o f rm x'],
    ...['valgrind --tool=memcheck rm x', 'rr record rm x', 'uftrace record rm x', 'qemu-x86_64 /bin/rm x'],
    ...['start-stop-daemon --start --exec /bin/rm -- x', 'daemonize /bin/rm x', 'systemd-inhibit rm x'],
    ...['pkexec rm x', 'run0 rm x', 'sg wheel rm x', 'cgexec -g cpu:x rm x', 'schroot -c x rm x'],
    ...['bwrap --ro-bind / / rm x', 'bwrap --dev /dev -- rm x', 'cset shield --exec rm x', 'runcon -t x rm x'],
    ...['ip netns exec n rm x', 'lxc exec c -- rm x', 'kubectl run p --image=i -- rm x', 'mosh h -- rm x'],
    ...['tmux new-session -d rm x', 'screen -dm rm x', 'xterm -e rm x', 'hyperfine rm', 'watchexec -- rm x'],
    ...['torsocks rm x', 'dumb-init rm x', 'chpst -u u rm x', 'envdir d rm x', 'eatmydata rm x', 'choom -n 0 -- rm x'],
    ...['pipenv run rm x', 'pyenv exec rm x', 'mamba run rm x', 'aws-vault exec p -- rm x', 'op run -- rm x'],
    ...['cmake -E env rm x', 'cmake -E rm x', 'nix develop -c rm x', 'docker-compose run s rm x'],
    ...['gosu root rm x', 'su-exec root rm x', 'runcon a:b:c rm x', 'timeout 0x5 rm x', 'timeout 1e2s rm x'],
    ...['timeout inf rm x', 'timeout +5 rm x', "timeout ' 5' rm x", 'timeout infinity git push'],
    ...['find . -exec grep x {} \\; -exec rm {} \\;', `${'env '.repeat(12)}rm x`, 'setarch -R git push'],
  ])('a deny rule applies to the other one: %s', async (command) => {
    expect(await outcome(command)).toBe('deny');
  });

  it.each(['proot rm x', 'setarch -R make', '/lib64/ld-linux-x86-64.so.2 ./x', 'systemd-inhibit make'])(
    'a pattern does not allow %s',
    async (command) => {
      expect(await outcome(command, { allow: [`bash(${command.split(' ')[0]} *)`] })).toBe('ask');
    },
  );
});

describe('an alias of the shell', () => {
  it.each([
    'alias q=rm; q x',
    'shopt -s expand_aliases\nalias q=rm\nq x',
    "shopt -s expand_aliases\nalias q='git '\nalias p=push\nq p",
    'alias g=git\ng push',
    'alias q=g g=rm\nq x',
    "eval 'alias q=rm'; q x",
    'hash -p /bin/rm q; q x',
    'alias q=rm\ntime q x',
  ])('a deny rule applies to its text: %j', async (command) => {
    expect(await outcome(command)).toBe('deny');
  });

  it.each(['alias "$x"; q y', 'alias q=$x; q y', 'BASH_ALIASES[q]=rm\nq x', 'BASH_CMDS[q]=/bin/rm\nq x'])(
    'it requires approval if its text cannot be determined: %j',
    async (command) => {
      expect(await outcome(command)).toBe('ask');
    },
  );

  it.each(["alias ll='ls -l'; ll", "alias ls='ls --color'; ls src", 'alias q=rm; ls'])(
    'it requires none otherwise: %s',
    async (command) => {
      expect(await outcome(command)).toBe('allow');
    },
  );
});

describe('a setting of git on the line', () => {
  it.each([
    'git -c alias.x=push x',
    'git -c ALIAS.x=push x',
    'git -c alias.x.command=push x',
    'git -c alias.x="-c a.b=c push" x',
    'git -c "alias.x=!rm -rf y" x',
    "git -c alias.x='!rm' x -rf y",
    'git --no-pager -c core.editor=rm commit',
    'git -c core.fsmonitor=rm status',
    "git -c 'url.ext::rm x.insteadOf=y' fetch",
    "git clone 'ext::rm x' y",
    "git -c protocol.ext.allow=always clone 'ext::sh -c rm% x' y",
    'git for-each-repo --config=x push',
    'sudo git -c alias.x=push x',
  ])('a deny rule applies to the command that it runs: %s', async (command) => {
    expect(await outcome(command)).toBe('deny');
  });

  it.each([
    'git --config-env=alias.x=V x',
    'V=push git --config-env alias.x=V x',
    'git -c include.path=/tmp/x x',
    'GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.x GIT_CONFIG_VALUE_0=push git x',
    `GIT_CONFIG_PARAMETERS="'alias.x=push'" git x`,
    'GIT_CONFIG_GLOBAL=x git y',
    'env GIT_CONFIG_GLOBAL=x git y',
    "bash -c 'git --config-env=alias.x=V x'",
  ])('it requires approval if the line does not show it and a rule denies a command: %s', async (command) => {
    expect(await outcome(command)).toBe('ask');
    expect(await outcome(command, { allow: ['bash'] })).toBe('allow');
  });

  it.each([
    'git -c color.ui=never log',
    "git -c safe.directory='*' status",
    'git --config-env=user.name=N commit',
    'GIT_CONFIG_GLOBAL=/dev/null git status',
  ])('it requires none otherwise: %s', async (command) => {
    expect(await outcome(command)).toBe('allow');
  });
});

describe('an option or variable that names a command', () => {
  it.each([
    ...["rsync -e 'rm x' a b:c", 'rsync -avze rm a b:c', "rsync --rsync-path='rm x' a b:c", 'scp -S rm a b:c'],
    ...["ssh -o ProxyCommand='rm x' h", 'ssh -oProxyCommand=rm h', "scp -o 'ProxyCommand rm x' a b:c"],
    ...["ssh h <<< 'rm x'", "script -qc 'rm x' f", 'script -c rm f', 'flock f -c rm', "sg wheel -c 'rm x'"],
    ...['tar -I rm -xf x', "tar -cf x -F 'rm x' y", "tar --info-script='rm x' -cf x y", "zip x y -T -TT 'rm x'"],
    ...['split --filter=rm y', 'nc -e /bin/rm h 1', "nc -c 'rm x' h 1", "ncat --sh-exec 'rm x' h 1"],
    ...['socat - EXEC:rm', "socat - 'SYSTEM:rm x,pty'", "man -P 'rm x' ls", 'man --pager=rm ls'],
    ...['go test -exec rm .', "go build -toolexec='rm x'", 'gcc -wrapper rm,x a.c', 'fd --exec=rm', 'mapfile -C rm a'],
    ...["tar --to-command='rm x' -xf y", 'tar --checkpoint-action=exec=rm -cf y z', 'sort --compress-program=rm y'],
    ...["nix-shell --run 'rm x'", "nodemon --exec 'rm x'", "fzf --preview 'rm x'", "hyperfine ls 'rm x'"],
    ...["tmux send-keys 'rm x' Enter", "make SHELL='rm x'", "make CC='rm x'", "bun exec 'rm x'", "at now <<< 'rm x'"],
    ...["crontab - <<< '* * * * * rm x'", "crontab - <<< '@daily rm x'", 'install -s --strip-program=rm a b'],
    ...['PAGER=rm man ls', "PAGER='rm x' man ls", "GIT_SSH_COMMAND='rm x' git fetch", 'GIT_EDITOR=rm git commit'],
    ...["export PAGER='rm x'; man ls", "env EDITOR='rm x' crontab -e", "LESSOPEN='|rm %s' less x"],
    ...['docker run --entrypoint rm i x', "source /dev/stdin <<< 'rm x'", "bash /dev/stdin <<< 'rm x'"],
  ])('a deny rule applies to it: %s', async (command) => {
    expect(await outcome(command)).toBe('deny');
  });

  it.each([
    ...['tar -xvf x.tgz', 'rsync -avz src/ h:x', 'make -j4 CFLAGS="-O2 -g"', 'SHELL=/bin/bash make', 'man ls'],
    ...['CC=gcc CXX="ccache g++" make', 'GIT_SSH_COMMAND="ssh -i k" git fetch', 'GIT_PAGER=cat git log'],
    ...['EDITOR=vim git commit', 'go test ./...', 'docker run --rm -it i sh', 'vim +10 f', 'bash -ex run.sh'],
  ])('it may be another command: %s', async (command) => {
    expect(await outcome(command)).toBe('allow');
  });
});

describe('the beginning of a long option, which GNU programs accept', () => {
  it.each([
    ...[
      "tar --to-com='rm x' -xf y",
      "tar -xf y --to-comm 'rm x'",
      "tar --use-comp='rm x' -xf y",
      "man --pag='rm x' ls",
    ],
    ...['tar --checkpoint-act=exec=rm -cf y z', "split --filt='rm x' y", 'sort --compress-prog=rm y', 'su --comm=rm a'],
    ...["runuser --session-comm='rm x' a", 'install -s --strip-prog=rm a b'],
  ])('a deny rule applies to the command in its value: %s', async (command) => {
    expect(await outcome(command)).toBe('deny');
  });

  it.each(['tar --checkpoint=100 -cf y rm', 'sort --check y', 'split --lines=5 rm', 'tar --totals -xf rm'])(
    'it may be another option: %s',
    async (command) => {
      expect(await outcome(command)).toBe('allow');
    },
  );
});

describe('a program in another language', () => {
  it.each([
    ...["vim -c '!rm x'", "vim '+!rm x' y", "vim -es -c 'silent !rm x'", `vi -c ':call system("rm x")'`],
    ...[`emacs --batch --eval '(shell-command "rm x")'`, "gdb -ex 'shell rm x'", "gdb -ex '!rm x'", "less '+!rm x' y"],
    ...[`awk 'BEGIN{system("rm x")}'`, `awk 'BEGIN{"rm x"|getline}'`, "sed '1e rm x' f", "sed 's/.*/rm x/e' f"],
    ...[`perl -e 'system("rm x")'`, 'perl -e \'exec "rm", "x"\'', `python3 -c 'import os; os.system("rm x")'`],
    ...[`python3 -c 'run(["git","push"])'`, `python3 <<EOF\nimport os\nos.system("rm x")\nEOF`, "ruby -e '`rm x`'"],
    ...[`node -e 'execSync("rm x")'`, `php -r 'system("rm x");'`, `lua -e 'os.execute("rm x")'`],
    ...["expect -c 'spawn rm x'", "sqlite3 x '.shell rm x'", "psql -c '\\! rm x'", "mysql -e 'system rm x'"],
    ...["make --eval='$(shell rm x)'", "dc -e '!rm x'", "m4 <<< 'syscmd(rm x)'"],
    ...['bash -c "perl -e \'system(qq{rm x})\'"', `bind -x '"a":rm x'`, `osascript -e 'do shell script "rm x"'`],
  ])('it requires approval if it names a denied command: %j', async (command) => {
    expect(await outcome(command)).toBe('ask');
  });

  it.each([
    ...['python3 -c "print(1)"', "node -e 'console.log(1)'", "sed -i 's/rm x/y/' f", "awk '/rm x/{print $1}' f"],
    ...['python3 manage.py rm', 'node cli.js -e', "psql -c 'select 1'", "sqlite3 db 'select 1'"],
  ])('it requires none otherwise: %s', async (command) => {
    expect(await outcome(command)).toBe('allow');
  });
});

describe('a shell that reads its commands from elsewhere', () => {
  it.each([
    ...['cat f | sh -x', 'cat f | bash -s -- -y', 'cat f | bash -', 'bash <(cat f)', '. <(cat f)'],
    ...['cat f | bash /dev/stdin', 'cat f | source /dev/stdin', 'cat f | at now'],
  ])('it requires approval: %s', async (command) => {
    expect(await outcome(command)).toBe('ask');
  });

  it.each(['bash -x run.sh', 'bash -o pipefail run.sh', 'source .venv/bin/activate', 'at -l', 'bash -x < run.sh'])(
    'it requires none if it runs a script: %s',
    async (command) => {
      expect(await outcome(command)).toBe('allow');
    },
  );
});

describe('programs that start each other', () => {
  it('more than a hundred of them require approval if a rule denies a command', async () => {
    expect(await outcome(`${'env '.repeat(120)}rm x`)).toBe('ask');
    expect(await outcome(`${'env '.repeat(90)}rm x`)).toBe('deny');
  });
});
