/**
 * The sandbox of macOS, tested by its profile text and with a program in place of `sandbox-exec`. Invariant: a separate
 * reader (`sandboxProfile.ts`) interprets the profile. The trial on macOS checks that macOS enforces it.
 */
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, delimiter, dirname, join } from 'node:path';
import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { bashTool } from '../../../src/tools/coding/bash.ts';
import type { SandboxOptions } from '../../../src/tools/coding/sandbox/sandboxPlaces.ts';
import { type Sandbox, sandboxFor, triedOn } from '../../../src/tools/coding/sandbox.ts';
import { answerOf, type Confinement, definitionOf } from '../../../src/tools/tool.ts';
import { volume } from '../../support/tier.ts';
import { type Allows, readProfile } from './sandboxProfile.ts';

let place: string;
let root: string;
let home: string;
beforeEach(async () => {
  place = await realpath(await mkdtemp(join(tmpdir(), 'runchart-seatbelt-')));
  [root, home] = [join(place, 'ws'), join(place, 'home')];
  for (const directory of [root, home, join(home, '.ssh'), join(place, 'bin')]) await mkdir(directory);
  vi.stubEnv('HOME', home);
  vi.stubEnv('PATH', [join(place, 'bin'), '/usr/bin', '/bin'].join(delimiter));
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(place, { recursive: true, force: true });
});

const CHANGING: Confinement = { writes: true, hide: [], network: false, opensProtected: false };
const READING: Confinement = { ...CHANGING, writes: false };
const sandbox = (options: SandboxOptions = {}): Sandbox => {
  const made = sandboxFor('required', options, () => ({ kind: 'sandbox-exec' }));
  if (!made) throw new Error('there is no sandbox');
  return made;
};

/** The permissions of a command, and its directory for temporary files. */
async function profileFor(confinement: Confinement, options: SandboxOptions = {}, cwd = root) {
  const launcher = await sandbox(options)(cwd, confinement);
  const [option, profile = '', env, temporary = ''] = launcher.args;
  expect([launcher.program, option, env, launcher.args.length]).toEqual(['sandbox-exec', '-p', '/usr/bin/env', 4]);
  await launcher.release();
  return { allows: readProfile(profile), profile, temporary: temporary.replace(/^TMPDIR=/, '') };
}

const READ = 'file-read-data';
const LOOK = 'file-read-metadata';
const MAKE = 'file-write-create';
const CHANGE = 'file-write-data';
const REMOVE = 'file-write-unlink';
/** The allowed paths. */
const allowed = (allows: Allows, acts: readonly (readonly [operation: string, path: string])[]): string[] =>
  acts.flatMap(([operation, path]) => (allows(operation, path) ? [`${operation} ${path}`] : []));

describe('the profile of a command that changes files', () => {
  it('it may write in the working directory and where the host permits, and nowhere else', async () => {
    const cache = join(place, 'cache');
    mkdirSync(cache);
    const { allows, temporary } = await profileFor(CHANGING, { write: [cache] });
    for (const path of [join(root, 'a/b'), join(cache, 'x'), join(temporary, 'x')])
      for (const operation of [MAKE, CHANGE, REMOVE, 'file-write-mode'])
        expect(allows(operation, path), path).toBe(true);
    const elsewhere = [
      place,
      join(place, 'x'),
      `${root}x`,
      '/etc/hosts',
      join(home, 'x'),
      '/private/tmp/x',
      '/usr/bin/x',
    ];
    expect(
      allowed(
        allows,
        elsewhere.flatMap(
          (path) =>
            [
              [MAKE, path],
              [CHANGE, path],
              [REMOVE, path],
            ] as const,
        ),
      ),
    ).toEqual([]);
  });

  it('it may read the machine without credentials and without the temporary files of others', async () => {
    const { allows } = await profileFor(CHANGING);
    for (const path of ['/etc/hosts', '/usr/bin/git', join(root, 'a'), '/Users/somebody/project/a'])
      expect(allows(READ, path), path).toBe(true);
    const kept = [
      join(home, '.ssh'),
      join(home, '.ssh/id'),
      '/private/tmp/x',
      '/private/var/folders/a/b',
      '/System/Volumes/Data/Users/a',
    ];
    expect(
      allowed(
        allows,
        kept.flatMap(
          (path) =>
            [
              [READ, path],
              [LOOK, path],
            ] as const,
        ),
      ),
    ).toEqual([]);
  });

  it('denied files cannot be read, changed, moved, or moved together with their directory', async () => {
    await mkdir(join(root, 'deep/secrets'), { recursive: true });
    for (const name of ['.env', 'deep/key', 'deep/secrets/a']) await writeFile(join(root, name), 'KEY');
    const [file, key, directory] = [join(root, '.env'), join(root, 'deep/key'), join(root, 'deep/secrets')];
    const { allows } = await profileFor({ ...CHANGING, hide: [key, directory] }, { hide: ['.env'] });
    const hidden = [file, key, directory, join(directory, 'a'), join(directory, 'new')];
    expect(
      allowed(
        allows,
        hidden.flatMap(
          (path) =>
            [
              [READ, path],
              [MAKE, path],
              [CHANGE, path],
              [REMOVE, path],
            ] as const,
        ),
      ),
    ).toEqual([]);
    expect(
      allowed(allows, [
        [REMOVE, root],
        [REMOVE, join(root, 'deep')],
      ]),
    ).toEqual([]);
    // A program that lists the directory sees their names, and no content of a hidden directory.
    expect([file, key, directory].map((path) => allows(LOOK, path))).toEqual([true, true, true]);
    expect(allows(LOOK, join(directory, 'a'))).toBe(false);
    expect([allows(READ, join(root, 'deep/other')), allows(MAKE, join(root, 'deep/other'))]).toEqual([true, true]);
  });

  it('protected places are unchanged, existing and missing ones, in upper and lower case', async () => {
    await mkdir(join(root, '.git/hooks'), { recursive: true });
    await mkdir(join(root, '.vscode'));
    const { allows } = await profileFor(CHANGING);
    const guarded = ['.git/config', '.git/hooks', '.git/hooks/pre-commit', '.git/commondir', '.git/config.worktree'];
    const missing = [
      '.husky',
      '.husky/x',
      '.envrc',
      '.ENVRC',
      '.Mcp.json',
      '.vscode/tasks.json',
      '.VSCode',
      '.bashrc',
      '.ssh/config',
    ];
    const acts = [...guarded, ...missing].flatMap((name) =>
      [MAKE, CHANGE, REMOVE].map((act) => [act, join(root, name)] as const),
    );
    expect(allowed(allows, acts)).toEqual([]);
    expect(allows(REMOVE, join(root, '.git'))).toBe(false);
    expect(allows(REMOVE, join(root, '.vscode'))).toBe(false);
    for (const name of ['.git/index', '.git/objects/ab', '.envrc2', 'envrc', '.gitignore', '.husky2/x']) {
      expect(allows(CHANGE, join(root, name)), name).toBe(true);
      expect(allows(READ, join(root, name)), name).toBe(true);
    }
  });

  it('the targets of protected links are unchanged, and so are the links', async () => {
    for (const name of ['shared', 'store', 'store/hooks']) await mkdir(join(root, name));
    await symlink('shared', join(root, '.husky'));
    await symlink('store', join(root, '.git'));
    const { allows } = await profileFor(CHANGING);
    const kept = ['.husky', 'shared', 'shared/x', 'store/hooks/x', 'store/config'].map(
      (name) => [CHANGE, join(root, name)] as const,
    );
    expect(allowed(allows, [...kept, [REMOVE, join(root, '.git')], [REMOVE, join(root, 'store')]])).toEqual([]);
    expect(allows(CHANGE, join(root, 'store/index'))).toBe(true);
  });

  it('protected places are open to a command that a person approved, and a new repository to one that creates it', async () => {
    const [all, git] = [
      { ...CHANGING, opensProtected: true },
      { ...CHANGING, makesRepository: true },
    ];
    const open = (await profileFor(all)).allows;
    expect([open(MAKE, join(root, '.envrc')), open(MAKE, join(root, '.git/config'))]).toEqual([true, true]);
    const made = (await profileFor(git)).allows;
    expect([made(MAKE, join(root, '.envrc')), made(MAKE, join(root, '.git/config'))]).toEqual([false, true]);
    expect((await profileFor(CHANGING)).allows(MAKE, join(root, '.git'))).toBe(false);
  });

  it('no service of the machine that would leave the sandbox is reachable', async () => {
    const { profile, allows } = await profileFor({ ...CHANGING, network: true });
    expect(profile).not.toMatch(/mach-lookup\)|launchservices|appleevent|lsopen/);
    expect(
      ['appleevent-send', 'lsopen', 'mach-register', 'file-ioctl', 'mount'].filter((operation) => allows(operation)),
    ).toEqual([]);
  });
});

describe('the profile of a command that only reads', () => {
  it('it may see programs and the working directory, and change only its temporary files', async () => {
    await writeFile(join(root, '.env'), 'KEY');
    const { allows, temporary } = await profileFor({ ...READING, hide: [join(root, '.env')] });
    for (const path of [root, join(root, 'a'), '/usr/bin/git', '/bin/ls', join(temporary, 'x')])
      expect(allows(READ, path), path).toBe(true);
    const outside = [
      place,
      join(place, 'x'),
      '/etc/passwd',
      '/private/etc/passwd',
      home,
      join(home, 'x'),
      '/Library/Keychains/a',
      join(root, '.env'),
    ];
    expect(
      allowed(
        allows,
        outside.map((path) => [READ, path] as const),
      ),
    ).toEqual([]);
    expect(
      allowed(
        allows,
        [LOOK, MAKE, CHANGE, REMOVE].map((act) => [act, join(home, 'x')] as const),
      ),
    ).toEqual([]);
    expect(
      allowed(
        allows,
        [root, join(root, 'a')].flatMap((path) =>
          [MAKE, CHANGE, REMOVE, 'file-write-times'].map((act) => [act, path] as const),
        ),
      ),
    ).toEqual([]);
    // It may traverse the path to the working directory, and not list it.
    expect([allows(LOOK, dirname(root)), allows(READ, dirname(root))]).toEqual([true, false]);
    expect(allows(MAKE, join(temporary, 'x'))).toBe(true);
  });
});

describe('the network', () => {
  it.each([
    ['is unavailable without permission', CHANGING, {}, false],
    ['is unavailable to a read-only command', READING, {}, false],
    ['is available to a call with permission', { ...CHANGING, network: true }, {}, true],
    ['is available if the host permits it to all', CHANGING, { network: true }, true],
  ] as const)('%s', async (_, confinement, options, reaches) => {
    const { allows } = await profileFor(confinement, options);
    expect(['network-outbound', 'network-bind', 'system-socket'].map((operation) => allows(operation))).toEqual(
      Array(3).fill(reaches),
    );
    expect(allows('network-outbound', '/private/var/run/docker.sock')).toBe(false);
    expect(allows('network-outbound', join(root, 'agent.sock'))).toBe(false);
  });
});

describe('a path', () => {
  const ODD = [
    '"',
    '\\',
    '\n',
    '(',
    ')',
    '")(allow default)',
    '\\"',
    ';',
    '#',
    "'",
    '$(x)',
    '.*',
    '[a]',
    '^a$',
    '{2}',
    'é',
    '🎉',
    '\t',
    '\r',
    ' ',
    '|',
    '+?',
  ];
  it.each(ODD)('a path with %j is the same path in the profile', async (odd) => {
    await holdsFor(`a${odd}b`);
  });

  it('a path of any characters is the same path in the profile', async () => {
    const names = fc
      .oneof(
        fc.string({ unit: 'binary', minLength: 1, maxLength: 30 }),
        fc.string({ unit: fc.constantFrom(...ODD), minLength: 1, maxLength: 6 }),
      )
      .filter((name) => !/[/\0]|^\.\.?$/.test(name) && Buffer.byteLength(name) < 200);
    await fc.assert(fc.asyncProperty(names, holdsFor), { numRuns: volume.profilePaths });
  });

  async function holdsFor(name: string): Promise<void> {
    const directory = join(root, name);
    await mkdir(directory, { recursive: true });
    const hidden = join(directory, `hidden ${name}`);
    await writeFile(hidden, 'KEY');
    const { allows } = await profileFor({ ...CHANGING, hide: [hidden] }, {}, directory);
    const beside = join(root, `${name}b`);
    expect([
      allows(READ, hidden),
      allows(CHANGE, hidden),
      allows(MAKE, join(directory, '.envrc')),
      allows(MAKE, beside),
    ]).toEqual(Array(4).fill(false));
    expect([allows(READ, join(directory, 'x')), allows(MAKE, join(directory, 'x'))]).toEqual([true, true]);
    await rm(directory, { recursive: true });
  }
});

describe.runIf(process.platform !== 'win32')('a program in place of sandbox-exec', () => {
  async function standIn(script: string): Promise<void> {
    await writeFile(join(place, 'bin/sandbox-exec'), `#!/bin/bash\n${script}\n`);
    await chmod(join(place, 'bin/sandbox-exec'), 0o755);
  }
  const KEEPS = 'printf %s "$2" > "$HOME/profile"; shift 2; exec "$@"';

  it('it runs each command with its profile, and with an empty directory for temporary files that is removed afterwards', async () => {
    await standIn(KEEPS);
    const definition = definitionOf(bashTool(sandbox(), 'deny'));
    const answer = answerOf(
      await definition?.execute({ command: 'echo "$TMPDIR"; ls -A "$TMPDIR"; echo x > "$TMPDIR/x"; pwd' } as never, {
        ...{
          callId: 'c1',
          conversationId: 'c',
          runId: 'r',
          cwd: root,
          signal: new AbortController().signal,
          idempotencyKey: 'k',
          origin: { messageId: 'm' },
        },
        ...{ state: {}, progress: () => undefined, now: () => 0, sleep: () => Promise.resolve() },
      }),
    );
    const [temporary = '', cwd] = String(answer && 'content' in answer ? answer.content : '').split('\n');
    expect(cwd).toBe(root);
    expect(basename(temporary)).toMatch(/^runchart-tmp-/);
    expect(existsSync(temporary)).toBe(false);
    const allows = readProfile(readFileSync(join(home, 'profile'), 'utf8'));
    expect([allows(MAKE, join(temporary, 'x')), allows(MAKE, join(root, 'x')), allows(MAKE, join(home, 'x'))]).toEqual([
      true,
      true,
      false,
    ]);
  });

  it('it counts as a sandbox only if it permits exactly what the profile permits', async () => {
    const none = (why: unknown) => ({ kind: 'none', why });
    expect(triedOn('darwin')).toEqual(none(expect.stringMatching(/^sandbox-exec cannot be started: .*ENOENT/)));
    await standIn('echo "sandbox_apply: Operation not permitted" >&2; exit 71');
    expect(triedOn('darwin')).toEqual(none('sandbox-exec does not work here: sandbox_apply: Operation not permitted'));
    await standIn(KEEPS);
    expect(triedOn('darwin')).toEqual(none('sandbox-exec does not keep a command from "cat above/hidden"'));
    await standIn('exit 0');
    expect(triedOn('darwin')).toMatchObject({ kind: 'none' });
    await standIn('echo holds');
    expect(triedOn('darwin')).toEqual({ kind: 'sandbox-exec' });
    expect(triedOn('win32')).toEqual(none('there is none for win32'));
  });

  it('it is not needed if a sandbox is not required', () => {
    const status = triedOn('darwin');
    expect(sandboxFor('auto', {}, () => status)).toBeUndefined();
    expect(() => sandboxFor('required', {}, () => status)).toThrow('sandbox-exec cannot be started');
  });
});
