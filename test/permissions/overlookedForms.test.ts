/**
 * Lines that looked read-only and did more when they ran: options after a `--` that was a value, names of awk attached
 * to numbers, unquoted expansions, files of a commit under other names, and texts that a command passes to a shell.
 */
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type PermissionOptions, permissions, sandboxStatus } from '../../src/node.ts';
import { explain, workspace } from './permissionWorkspace.ts';

const ws = await workspace();
mkdirSync(join(ws, 'secrets'));
writeFileSync(join(ws, 'secrets/key'), 'KEY');
symlinkSync('../ws-evil', join(ws, 'away'));
symlinkSync('.git', join(ws, 'link'));
symlinkSync('secrets', join(ws, 'hidden'));
const outcome = async (command: string, options: PermissionOptions = {}): Promise<string> =>
  (await explain(options, 'Bash', { command }, ws)).outcome;
const hiding: PermissionOptions = { deny: ['read(./secrets/**)'] };

describe('a -- that may be the value of an option', () => {
  it.each([
    'grep -e -- -R KEY .',
    'grep -f -- -R KEY .',
    'ls -I -- -LR .',
    'find . -name -- -o -follow',
    'tree -P -- -o made',
    'sort -k -- -o made README.md',
  ])('it does not hide the option after it: %s', async (command) => {
    expect(await outcome(command)).toBe('ask');
  });

  it.each(['grep -rn -- -x src', 'grep -- -x README.md', 'head -- README.md', 'grep -e KEY -- README.md'])(
    'it ends the options of %s',
    async (command) => {
      expect(await outcome(command)).toBe('allow');
    },
  );
});

describe('programs of awk', () => {
  it.each([
    'awk \'BEGIN { x = 1system("id") }\'',
    'awk \'BEGIN { x = 1e5system("id") }\'',
    'awk \'BEGIN { x = 0getline < "../ws-evil/s"; print }\'',
  ])('they run programs and open files by a name attached to a number: %s', async (command) => {
    expect(await outcome(command)).toBe('ask');
  });
});

describe('an unquoted expansion', () => {
  it.each([
    "x='../ws-evil/*'; echo $x",
    "echo $(echo '../ws-evil/*')",
    "echo `echo '../ws-evil/*'`",
    "read -r x <<< '../ws-evil/*'; echo $x",
    "for x in '../ws-evil/*'; do printf '%s' $x; done",
    'for x in $(cat README.md); do echo "$x"; done',
    'x=..; echo "$x"/*',
    'echo ~+/../ws-evil/*',
    'echo ~root/*',
  ])('it may list files outside: %s', async (command) => {
    expect(await outcome(command)).toBe('ask');
  });

  it.each([
    'echo $?',
    'echo "$(cat README.md)"',
    'x=$(cat README.md); echo "$x"',
    'for i in $(seq 1 3); do echo "$i"; done',
    'echo $(wc -l < README.md)',
    'cat <<< $x',
    '[[ $x == a ]]',
  ])('for a number, in quotes, or where no file names are matched it lists nothing: %s', async (command) => {
    expect(await outcome(command)).toBe('allow');
  });

  it.runIf(sandboxStatus().kind !== 'none')('it is harmless in a sandbox', async () => {
    const { sandboxed } = await explain({}, 'Bash', { command: 'echo $x' }, ws);
    expect(sandboxed?.outcome).toBe('allow');
  });
});

describe('syntax that bash reads before the words', () => {
  it.each([
    'x=..; cat $\\\nx/ws-evil/s',
    'x=..; cat "$\\\nx/ws-evil/s"',
    'cat $\\\n{x}/s',
    'cat <\\\n(make)',
    "cat $'README\\\n.md'",
    "x='a[$(make)]'; y=([x]=1)",
    "x='a[$(make)]'; y+=([x]=1)",
    'cat x=~+/README.md',
    'cat x=~',
  ])('a line requires approval if it changes the words: %j', async (command) => {
    expect(await outcome(command)).toBe('ask');
  });
  it.each(['cat READ\\\nME.md', 'ls src \\\n  | wc -l', 'y=([2]=1 b); echo "done"', 'head {,-1} README.md'])(
    'it changes nothing about %j',
    async (command) => {
      expect(await outcome(command)).toBe('allow');
    },
  );
});

describe('[[ … ]], type and which', () => {
  it.each(['[[ -f ../ws-evil/s ]]', '[[ -e away/s ]]', '[[ ../ws-evil/s -nt README.md ]]', '[[ -d "$x" ]]'])(
    '%s tests whether a file outside exists',
    async (command) => {
      expect(await outcome(command)).toBe('ask');
    },
  );
  it.each(['type ../ws-evil/s', 'which ../ws-evil/s', 'command -v ../ws-evil/s'])('so does %s', async (command) => {
    expect(await outcome(command)).toBe('ask');
  });
  it.each(['[[ -f README.md && ! -d src ]]', '[[ -n $x ]]', 'type ls', 'which node npm', 'command -v make'])(
    '%s does not test whether a file outside exists',
    async (command) => {
      expect(await outcome(command)).toBe('allow');
    },
  );

  it('they name the target, and deny rules apply', async () => {
    const { parts } = await explain({}, 'Bash', { command: '[[ -f away/s ]]' }, ws);
    expect(parts.map(({ why }) => why)).toEqual([`away/s leads to ${join(ws, '..', 'ws-evil/s')}`]);
    expect(await outcome('[[ -f secrets/key ]]', hiding)).toBe('deny');
  });
});

describe('a file of a commit', () => {
  it.each([
    'git cat-file blob 1234abcd',
    'git show -s 1234abcd',
    'git show --stat v1',
    'git show --name-only x-g1234abcd',
    'git diff 1234abcd README.md',
    'git diff 1234abcd -- README.md',
    "git for-each-ref --format='%(raw)'",
    'git log -p --fol -- README.md',
  ])('it may be one that a rule hides: %s', async (command) => {
    expect(await outcome(command, hiding)).toBe('ask');
  });
  it.each([
    'git show --stat HEAD~2',
    'git show -s @',
    'git diff HEAD^ README.md',
    'git diff main...HEAD README.md',
    'git cat-file -t 1234abcd',
    'git log -p main -- README.md',
  ])('it is not hidden in %s', async (command) => {
    expect(await outcome(command, hiding)).toBe('allow');
  });
  it.each(['git log --remerge-diff', 'git log --help', 'git diff --diff-merges=remerge'])(
    '%s does more than show',
    async (command) => {
      expect(await outcome(command)).toBe('ask');
    },
  );
});

describe('a text that a command passes to a shell', () => {
  const bypass: PermissionOptions = { mode: 'bypass', ...hiding };
  it.each([
    "bash -c 'cat secrets/key'",
    "sh -c 'cat<secrets/key'",
    'eval "cat secrets/key"',
    "env -S 'cat secrets/key'",
    "trap 'cat secrets/key' EXIT",
    "alias x='cat secrets/key'",
    "tar -xf x.tar --to-command='cat secrets/key'",
    "tar -cf x.tar src --checkpoint-action=exec='cat secrets/key'",
    "rsync --rsh 'cat secrets/key' a b:c",
    "bash -c 'cd secrets; cat key'",
  ])('deny rules apply to it: %s', async (command) => {
    expect(await outcome(command, bypass)).toBe('deny');
  });
  it.each([
    "bash -c 'echo x > .git/config'",
    'sh -c "cd .git; tee config"',
    "eval 'tee .envrc'",
    "bash -c 'cat $F'",
    "bash -c 'cd $D; tee config'",
    "bash -c 'ls; ('",
  ])('it requires approval if it may change protected places: %s', async (command) => {
    expect(await outcome(command, { mode: 'bypass' })).toBe('ask');
  });
  it('other text may be anything, also under a rule for exactly it', async () => {
    expect(await outcome("bash -c 'make test > out.log'", { mode: 'bypass' })).toBe('allow');
    expect(await outcome("bash -c 'cat $F'", { allow: ["bash(bash -c 'cat $F')"] })).toBe('allow');
    expect(await outcome("bash -c 'tee .envrc'", { allow: ["bash(bash -c 'tee .envrc')"] })).toBe('ask');
  });
});

describe('a program that an option names', () => {
  it.each(['rg --pre rm x', 'rg --pre=rm x', 'sort --compress-program=rm x', "tar -xf x --to-command='rm z'"])(
    'deny rules apply to it: %s',
    async (command) => {
      expect(await outcome(command, { mode: 'bypass', deny: ['bash(rm *)'] })).toBe('deny');
    },
  );
});

describe('in mode bypass', () => {
  it.each([
    'git config core.fsmonitor ./run',
    'git -C . config --unset a.b',
    'git config --global a.b c',
    'git submodule add x',
    'env git config core.fsmonitor ./run',
    'sudo -u me git -C . config --unset a.b',
    'setsid nice git submodule add x',
    'rm -rf "$PWD"',
    'chmod -R 777 .',
    'timeout 5 chmod -R 777 .',
    'env rm -rf "$PWD"',
    'env A=1 rm -rf .',
    'sudo rm -rf ..',
    'setsid -w nice -n 5 chmod -R 777 .',
    'nice -n 5 mv . ../other',
    'echo .git/config | xargs tee',
    'find . -name config -exec tee {} +',
    'echo x | sh',
    'echo x | sh > out.log',
    'bash < <(cat README.md)',
  ])('%s requires approval', async (command) => {
    expect(await outcome(command, { mode: 'bypass' })).toBe('ask');
  });
  it.each([
    'git config --get user.name',
    'git config -l',
    'env git config -l',
    'git remote add x y',
    'rm -rf src',
    'ls | xargs cat',
    'find . -exec grep x {} +',
    'bash run.sh',
    'bash <<< "make"',
  ])('%s requires no approval', async (command) => {
    expect(await outcome(command, { mode: 'bypass' })).toBe('allow');
  });
});

describe('a deny rule for a subcommand', () => {
  const deny = ['bash(npm publish*)', 'bash(kubectl delete *)', 'bash(terraform destroy*)', 'bash(gh repo delete *)'];
  it.each([
    'npm --tag next publish',
    'npm --loglevel=silent --otp 1 publish --access public',
    'kubectl -n live delete pod web',
    'kubectl --context=live -n web delete pod x',
    'unbuffer kubectl delete pod x',
    'terraform -chdir=live destroy -auto-approve',
    'gh -R a/b repo delete a/b',
  ])('applies after options of the program: %s', async (command) => {
    expect(await outcome(command, { allow: ['bash'], deny })).toBe('deny');
  });
  it.each(['npm run publish', 'kubectl -n live get delete', 'echo -n npm publish', 'gh -R a/b repo view a/b'])(
    'does not apply to another subcommand: %s',
    async (command) => {
      expect(await outcome(command, { allow: ['bash'], deny })).not.toBe('deny');
    },
  );
});

describe('programs that copy directories', () => {
  const allow = ['bash(tar *)', 'bash(cp *)', 'bash(rsync *)', 'bash(zip *)'];
  it.each(['tar -cf made.tar .', 'tar c -- *', 'cp -r . ../copy', 'cp -a "$PWD" x', 'rsync -a ./ x', 'zip -r x .'])(
    'they require approval if a rule hides a file below one: %s',
    async (command) => {
      expect(await outcome(command, { allow, ...hiding })).toBe('ask');
      expect(await outcome(command, { mode: 'bypass', ...hiding })).toBe('ask');
    },
  );
  it.each(['tar -cf made.tar src', 'cp -r src made', 'cp README.md made'])(
    'they require none otherwise: %s',
    async (command) => {
      expect(await outcome(command, { allow, ...hiding })).toBe('allow');
      expect(await permissions({ allow }).explain('Bash', { command }, ws)).toMatchObject({ outcome: 'allow' });
    },
  );
});

describe('explain names the word and its target', () => {
  const place = (name: string): string => join(ws, name);
  it.each([
    ['tee link/config', {}, `link/config leads to ${place('.git/config')}`],
    ['echo x > link/config', {}, `link/config leads to ${place('.git/config')}`],
    ['cat hidden/key', { deny: ['read(./secrets/**)'] }, `hidden/key leads to ${place('secrets/key')}`],
    ['cat hidden/k*', { ask: ['read(./secrets/**)'] }, `hidden/k* leads to ${place('secrets/key')}`],
    ['cat < away/s', {}, `< away/s leads to ${join(ws, '..', 'ws-evil/s')}`],
  ])('this is so in %s', async (command, options, why) => {
    const { parts } = await explain(options, 'Bash', { command }, ws);
    expect(parts.flatMap((part) => part.why ?? [])).toEqual([why]);
  });

  it('this is so for file tools too', async () => {
    const { parts } = await explain({}, 'Write', { file_path: 'link/config', content: '' }, ws);
    expect(parts).toMatchObject([{ outcome: 'ask', why: `link/config leads to ${place('.git/config')}` }]);
  });
});

describe('a wide rule for xargs', () => {
  const allow = ['bash(xargs *)', 'bash(mytool *)'];
  it.each([
    'xargs -I{} sh -c "{}"',
    'xargs -n1 mytool',
    'xargs -0 -n1 rm',
    'xargs --max-args=1 mytool',
    'xargs',
    'xargs env mytool',
    'xargs find . -delete',
    'xargs sh -c x',
  ])('does not cover its options, or what runs another program: %s', async (command) => {
    expect(await outcome(`ls | ${command}`, { allow })).toBe('ask');
  });
  it.each(['xargs mytool', 'xargs mytool --all'])('covers a command that follows it: %s', async (command) => {
    expect(await outcome(`ls | ${command}`, { allow })).toBe('allow');
  });
});

describe('uniq with a glob', () => {
  it.each(['uniq *.md', 'uniq -c src/*', 'uniq READM? '])(
    'it may become two files, and uniq overwrites the second: %s',
    async (command) => {
      expect(await outcome(command)).toBe('ask');
    },
  );

  it('one file without a glob is only read', async () => {
    expect(await outcome('uniq -c README.md')).toBe('allow');
  });
});

describe('options of git before the subcommand', () => {
  it.each(['git --attr-source HEAD push', 'git --shallow-file x push -f'])(
    'a deny rule for the subcommand applies: %s',
    async (command) => {
      expect(await outcome(command, { mode: 'bypass', deny: ['bash(git push *)'] })).toBe('deny');
    },
  );
});

describe('a quoted word that is computed', () => {
  it.each([
    'x=-v; printf "$x" \'a[$(touch made)]\' y',
    'printf "$(echo -v)" PATH /tmp; ls',
    'x=v; printf "-$x" PATH /tmp; ls',
    'x=-v; test "$x" \'a[$(touch made)]\'',
    'x=-v; [ "$x" \'a[$(touch made)]\' ]',
    'x=-v; [ ! "$x" \'a[$(touch made)]\' ]',
    'x=-v; [ -n y -o "$x" \'a[$(touch made)]\' ]',
  ])('it may become the option that runs the commands of an array index: %s', async (command) => {
    expect(await outcome(command)).toBe('ask');
  });

  it.each(['x=--pre=sh; rg "$x" foo .', 'rg "`echo --pre=sh`" foo', 'x=-f; grep "$x" README.md src/a.ts'])(
    'it may become an option of a search: %s',
    async (command) => {
      expect(await outcome(command)).toBe('ask');
    },
  );

  it.each([
    'x=-delete; find . "$x"',
    'find . -name a "$(echo -delete)"',
    'x=-exec; find . "$x" rm {} +',
    'x=-fprint; find . "$x" made',
    'find "$x" -name a',
    'find . -name -name "$x"',
  ])('H-214 it may become an action of find, also under a rule for find: %s', async (command) => {
    expect(await outcome(command, { allow: ['bash(find *)'] })).toBe('ask');
  });

  it.each(['find . -name "$x"', 'find . -type f -ipath "*$x" -print', 'find "src/$x" -name a'])(
    'it is a value or a path in %s, so a rule for find allows it',
    async (command) => {
      expect(await outcome(command, { allow: ['bash(find *)'] })).toBe('allow');
    },
  );

  it.each(['x=%n; printf "a$x" PATH; ls', 'x=%n y=PATH; printf "a$x" "$y"; ls', 'printf "a$x" "$y"'])(
    'it may make printf count into a variable: %s',
    async (command) => {
      expect(await outcome(command)).toBe('ask');
    },
  );

  it('it may be a filter of jq that reads other files', async () => {
    const command = 'x=\'import "s" as $d {search:"../ws-evil"}; $d\'; jq -n "$x"';
    expect(await outcome(command)).toBe('ask');
  });

  it.each([
    'printf "%s" "$x"',
    'printf "$x"',
    'printf "name: $x %s" y',
    '[ "$x" ]',
    '[ -n "$x" ]',
    '[ "$x" = y ]',
    '[ -z "$x" -o "$y" != z ]',
    'test ! "$x"',
    'grep -- "$x" README.md',
    'grep "name: $x" README.md',
    'echo "$x" y',
  ])('it is no option in %s', async (command) => {
    expect(await outcome(command)).toBe('allow');
  });
});

describe('printf with %n, which sets the variable that a word names', () => {
  it.each([
    'printf %n PATH; ls',
    "printf 'ab%n' IFS",
    'printf -- %n PATH',
    'printf "%-5.3ln" LD_PRELOAD',
    'printf %n%n x PATH',
  ])('it is asked about, also under a rule for printf: %s', async (command) => {
    expect(await outcome(command)).toBe('ask');
    expect(await outcome(command, { allow: ['bash(printf *)'] })).toBe('ask');
  });

  it.each(["printf '%s\\n' PATH", "printf '%%n' PATH", 'printf %bn PATH', 'printf %n', 'printf %n x'])(
    'it only prints in %s',
    async (command) => {
      expect(await outcome(command)).toBe('allow');
    },
  );
});

describe('a text of one word that a shell runs', () => {
  it.each([
    'bash -c reboot',
    'sh -ec reboot',
    'rbash -c "reboot now"',
    'bash <<< reboot',
    'trap reboot EXIT',
    'git rebase -x reboot main',
    "git -c alias.x='!reboot' x",
    "git -c alias.x='!reboot now' x",
    'env -Sreboot',
    'env -iS reboot',
    'env --split-string=reboot',
    'env -S "reboot now"',
  ])('a deny rule for its command applies: %s', async (command) => {
    expect(await outcome(command, { mode: 'bypass', deny: ['bash(reboot *)'] })).toBe('deny');
  });

  it('it is asked about if a part of it is computed', async () => {
    const command = "bash -c 'rm$IFS-rf'";
    expect(await outcome(command, { mode: 'bypass', deny: ['bash(rm *)'] })).toBe('ask');
  });

  it('the name of a script is no command', async () => {
    expect(await outcome('bash reboot', { mode: 'bypass', deny: ['bash(reboot *)'] })).toBe('allow');
  });
});
