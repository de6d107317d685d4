/**
 * Protected places in the sandbox. Invariant: a command that may change the working directory changes none of them,
 * creates no missing one, and moves none. No placeholder of the sandbox remains on the disk.
 */
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { delimiter, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { isMask, maskMissing, unmask } from '../../../src/tools/coding/sandbox/sandboxMasks.ts';
import { sandboxPlaces } from '../../../src/tools/coding/sandbox/sandboxPlaces.ts';
import { sandboxFor, sandboxStatus } from '../../../src/tools/coding/sandbox.ts';
import { runShell } from '../../../src/tools/coding/shell.ts';
import type { Confinement } from '../../../src/tools/tool.ts';
import { sampled, volume } from '../../support/tier.ts';
import { type Bench, makeBench } from './codingBench.ts';

let bench: Bench;
beforeEach(async () => {
  bench = await makeBench();
});
afterEach(() => bench.remove());

const MISSING = [
  '.envrc',
  '.bashrc',
  '.zshrc',
  '.husky',
  '.vscode',
  '.idea',
  '.runchart',
  '.mcp.json',
  '.gitmodules',
  '.ssh',
];

async function run(command: string, more: Partial<Confinement> = {}, signal = new AbortController().signal) {
  const sandbox = sandboxFor('required', {});
  const launcher = await sandbox?.(bench.root, {
    writes: true,
    hide: [],
    network: false,
    opensProtected: false,
    ...more,
  });
  try {
    const options = { cwd: bench.root, signal, timeoutMs: 20_000, progress: () => undefined, launcher };
    const { output } = await runShell(command, options);
    return output.text();
  } finally {
    await launcher?.release();
  }
}

it('a placeholder stays while any command uses it, also one that begins while the last other one ends', async () => {
  const place = join(bench.root, '.envrc');
  for (const others of [0, 1, 2]) {
    for (let other = 0; other <= others; other += 1) expect(await maskMissing([place])).toEqual([place]);
    for (let other = 0; other < others; other += 1) await unmask([place]);
    const [, masked] = await Promise.all([unmask([place]), maskMissing([place])]);
    expect([masked, await isMask(place)]).toEqual([[place], true]);
    await unmask([place]);
    expect(existsSync(place)).toBe(false);
  }
});

describe.runIf(sandboxStatus().kind === 'bubblewrap')('a protected place', () => {
  it('a missing one cannot be created, and no placeholder remains', async () => {
    mkdirSync(join(bench.root, '.git'));
    await run('true');
    const before = readdirSync(bench.root);
    for (const name of sampled([...MISSING, '.git/hooks', '.git/config'], volume.caseOf)) {
      const made = `mkdir -p ${name}; echo x > ${name}/x; rm -rf ${name}; echo x > ${name}; ln -sf /bin x; mv x ${name}; touch made && echo went on`;
      expect(await run(made), name).toContain('went on');
      expect(existsSync(join(bench.root, name)), name).toBe(false);
    }
    expect(readdirSync(bench.root).sort()).toEqual([...before, 'made', 'x'].sort());
    expect(readdirSync(join(bench.root, '.git'))).toEqual([]);
  });

  it('without a repository a missing one can be created only by a command that creates a repository', async () => {
    await run('mkdir .git; mkdir -p .git/hooks; echo x > .git/config');
    expect(existsSync(join(bench.root, '.git'))).toBe(false);
    await run('git init -q .', { makesRepository: true });
    expect(existsSync(join(bench.root, '.git/config'))).toBe(true);
  });

  it('it is not moved with its parent directory', async () => {
    await bench.write('.git/config', '[core]');
    await bench.write('secrets/key', 'KEY');
    const hide = [join(bench.root, 'secrets/key')];
    await run(
      'mv .git g; mkdir -p .git/hooks; echo x > .git/hooks/x; mv secrets s; cp -r secrets s2; ln secrets/key l',
      {
        ...{ hide, hold: [join(bench.root, 'secrets')] },
      },
    );
    expect(readFileSync(join(bench.root, '.git/config'), 'utf8')).toBe('[core]');
    expect(existsSync(join(bench.root, '.git/hooks/x'))).toBe(false);
    expect(readFileSync(join(bench.root, 'secrets/key'), 'utf8')).toBe('KEY');
  });

  it('a place of git that cannot be masked is removed after the command', async () => {
    await bench.write('.git/config', '[core]');
    await run('echo ../evil > .git/commondir; echo x > .git/config.worktree');
    expect(readdirSync(join(bench.root, '.git'))).toEqual(['config']);
  });

  it('it stays masked while another command ends, also one of another process', async () => {
    const [first] = await Promise.all([
      run('touch up; while [ ! -e gone ]; do :; done; echo x > .envrc; ls -d .envrc', {}),
      (async () => {
        await expect.poll(() => existsSync(join(bench.root, 'up')), { timeout: 10_000 }).toBe(true);
        expect(await run('echo x > .envrc; true')).toContain('directory');
        await run('touch gone');
      })(),
    ]);
    expect(first).toContain('s a directory');
    expect(existsSync(join(bench.root, '.envrc'))).toBe(false);
  });

  it("the next command removes a placeholder that a crash left, and keeps a user's file", async () => {
    for (const name of ['.envrc', '.vscode']) mkdirSync(join(bench.root, name));
    chmodSync(join(bench.root, '.envrc'), 0o1555);
    await run('true');
    expect(readdirSync(bench.root).filter((name) => name.startsWith('.'))).toEqual(['.vscode']);
  });

  it('it is free again after a cancelled command', async () => {
    const controller = new AbortController();
    const running = run('touch up; sleep 60', {}, controller.signal);
    await expect.poll(() => existsSync(join(bench.root, 'up')), { timeout: 10_000 }).toBe(true);
    controller.abort(new Error('cancelled'));
    await expect(running).rejects.toThrow('cancelled');
    expect(existsSync(join(bench.root, '.envrc'))).toBe(false);
  });
});

describe.runIf(sandboxStatus().kind === 'bubblewrap')('credentials of the home directory', () => {
  afterEach(() => vi.unstubAllEnvs());

  it.each([
    ['reads', false],
    ['changes', true],
  ])('are hidden from a command that %s and starts there', async (_, writes) => {
    vi.stubEnv('HOME', bench.root);
    await bench.write('.aws/credentials', 'KEY');
    await bench.write('.netrc', 'KEY');
    await bench.write('notes', 'words');
    const text = await run('cat notes .netrc .aws/credentials; grep -r KEY .; ls -d .aws', { writes });
    expect(text).toMatch(/^words/);
    expect(text).not.toContain('KEY');
    expect(text).toMatch(/^\.aws$/m);
  });
});

describe('the places of a command', () => {
  afterEach(() => vi.unstubAllEnvs());
  const reading: Confinement = { writes: false, hide: [], network: false, opensProtected: false };

  it('contain the absolute directories of PATH with their libraries, and neither the root nor relative ones', async () => {
    for (const name of ['bin', 'lib', 'tools/bin']) mkdirSync(join(bench.evil, name), { recursive: true });
    const path = ['bin', '', '.', '/', '/nowhere/bin', join(bench.evil, 'bin'), join(bench.evil, 'tools/bin')];
    vi.stubEnv('PATH', path.join(delimiter));
    const { programs } = await sandboxPlaces(bench.root, {}, reading);
    const expected = [join(bench.evil, 'bin'), join(bench.evil, 'lib'), join(bench.evil, 'tools/bin')];
    expect(programs.filter((each) => !/^(\/usr)?\/lib$/.test(each))).toEqual(expected);
  });

  it('that are protected include the state and the settings of runchart, wherever these are', async () => {
    const { protected: before } = await sandboxPlaces(bench.root, {}, undefined);
    vi.stubEnv('XDG_STATE_HOME', join(bench.root, 'state'));
    vi.stubEnv('XDG_CONFIG_HOME', join(bench.root, 'config'));
    const own = [join(bench.root, 'state/runchart'), join(bench.root, 'config/runchart')];
    const { protected: places } = await sandboxPlaces(bench.root, {}, undefined);
    expect(places?.paths.filter((path) => !before?.paths.includes(path)).sort()).toEqual(own.sort());
    vi.stubEnv('XDG_STATE_HOME', 'state');
    vi.stubEnv('XDG_CONFIG_HOME', bench.evil);
    // The specification ignores a relative one, also where the program runs in the working directory.
    const cwd = vi.spyOn(process, 'cwd').mockReturnValue(bench.root);
    expect((await sandboxPlaces(bench.root, {}, undefined)).protected).toEqual(before);
    cwd.mockRestore();
  });

  it('that are hidden are relative to the working directory, to the home directory after ~/, or absolute', async () => {
    vi.stubEnv('HOME', bench.evil);
    for (const name of ['~me', 'sub/a', 's']) await bench.write(name, 'x');
    const hide = ['~me', 'sub', '~/s', join(bench.root, 's'), 'missing'];
    const { hidden } = await sandboxPlaces(bench.root, { hide }, reading);
    expect(hidden).toEqual([
      { path: join(bench.root, '~me'), isDirectory: false },
      { path: join(bench.root, 'sub'), isDirectory: true },
      { path: join(bench.evil, 's'), isDirectory: false },
      { path: join(bench.root, 's'), isDirectory: false },
    ]);
  });

  it.each([
    [undefined, undefined, false],
    [true, undefined, true],
    [undefined, true, true],
    [false, true, true],
    [false, false, false],
  ])('have the network if the call (%s) or the host (%s) gives it: %s', async (call, host, has) => {
    const options = host === undefined ? {} : { network: host };
    const confinement = call === undefined ? undefined : { ...reading, network: call };
    expect((await sandboxPlaces(bench.root, options, confinement)).network).toBe(has);
  });

  it('that are held are inside the working directory, and only for a command that changes files', async () => {
    const hold = [join(bench.root, 'a'), bench.evil, `${bench.root}x`];
    expect((await sandboxPlaces(bench.root, {}, { ...reading, writes: true, hold })).hold).toEqual([hold[0]]);
    expect((await sandboxPlaces(bench.root, {}, { ...reading, hold })).hold).toEqual([]);
  });
});

describe.runIf(sandboxStatus().kind === 'bubblewrap' && process.getuid?.() === 0)('a socket of the machine', () => {
  it('it is not reachable', async () => {
    const path = `/run/runchart-test-${process.pid}.sock`;
    const server = createServer((socket) => socket.end('hello'));
    await new Promise<void>((resolve) => server.listen(path, resolve));
    const command = `node -e "require('net').connect('${path}').on('data', (d) => console.log('got ' + d)).on('error', (e) => console.log(e.code))"`;
    expect(await run(command)).toContain('ENOENT');
    await new Promise((resolve) => server.close(resolve));
  });
});
