/** Places that depend on the process which looks them up: links below `/proc`, and the directories of `CDPATH`. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { explain, workspace } from './permissionWorkspace.ts';

const ws = await workspace();
mkdirSync(join(ws, 'secrets'));
writeFileSync(join(ws, 'secrets/key'), 'KEY');
const wide = { allow: ['bash'], deny: ['read(./secrets/**)'] };
const outcome = async (command: string, options = wide): Promise<string> =>
  (await explain(options, 'Bash', { command }, ws)).outcome;

describe.runIf(process.platform === 'linux')('a link below /proc', () => {
  it.each([
    'cat /proc/self/cwd/secrets/key',
    'cat //proc/./self/cwd/secrets/key',
    'cat /proc/thread-self/cwd/secrets/key',
    'cat /proc/self/task/1/cwd/secrets/key',
    'cat < /proc/self/cwd/secrets/key',
    'head --bytes=9 /proc/self/cwd/secrets/key',
    'grep -f/proc/self/cwd/secrets/key README.md',
    `cat /proc/self/root${ws}/secrets/key`,
    'cd secrets && cat /proc/self/cwd/key',
    'cd /proc/self/cwd/secrets && cat key',
    "bash -c 'cat /proc/self/cwd/secrets/key'",
  ])('it leads to the directory or root of the command, and deny rules apply: %s', async (command) => {
    expect(await outcome(command)).toBe('deny');
  });

  it.each([
    'cat /proc/self/cwd/secrets/k*',
    'cat /proc/self/cwd/sec*/key',
    'grep -r KEY /proc/self/cwd',
    'cat /proc/1/cwd/secrets/key',
    'cat /proc/1/root/etc/passwd',
    'grep -r KEY /proc/1/cwd',
    'exec 3< .; cat /dev/fd/3/secrets/key',
    'exec 3< .; cat /proc/self/fd/3/secrets/key',
  ])('it requires approval if it may lead to a denied file: %s', async (command) => {
    expect(await outcome(command)).toBe('ask');
  });

  it.each(['cat /proc/self/cwd/README.md', 'ls /proc/self/cwd/src', 'cat /proc/cpuinfo /proc/self/status'])(
    'it requires none otherwise: %s',
    async (command) => {
      expect(await outcome(command)).toBe('allow');
    },
  );

  it.each([
    ['cat /proc/self/cwd/README.md', 'allow'],
    ['cat /proc/self/root/etc/passwd', 'ask'],
    ['cat /proc/1/cwd/README.md', 'ask'],
    ['cat /proc/self/cwd/../ws-evil/s', 'ask'],
  ])('without a rule %s: %s', async (command, expected) => {
    expect(await outcome(command, { allow: [], deny: [] })).toBe(expected);
  });
});

describe('CDPATH', () => {
  it.each([
    'CDPATH=secrets cd . && cat key',
    'CDPATH=secrets; cd . && cat key',
    'export CDPATH=secrets; cd sub && cat key',
    'export CDPATH+=:secrets; cd sub && cat key',
    'read -r CDPATH <<< secrets; cd sub && cat key',
    "CDPATH=secrets bash -c 'cd sub && cat key'",
    "bash -c 'CDPATH=secrets cd . && cat key'",
    "env CDPATH=secrets bash -c 'cd sub; cat key'",
    'shopt -s autocd; secrets; cat key',
    'shopt -s cdable_vars; d=secrets; cd d; cat key',
  ])('a line that may change where cd leads requires approval: %s', async (command) => {
    expect(await outcome(command)).toBe('ask');
  });

  it.each(['CDPATH= cd src && ls', 'unset CDPATH; cd src && ls', 'cd src && ls', 'grep -rn CDPATH src; cd src'])(
    'this does not concern %s',
    async (command) => {
      expect(await outcome(command)).toBe('allow');
    },
  );
});
