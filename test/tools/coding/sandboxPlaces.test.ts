/**
 * Protected places in the sandbox. Rule: a command that may change the working directory changes none of them, makes none that is
 * missing, moves none away, and nothing that the sandbox needs for that is left on the disk.
 */
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
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

describe.runIf(sandboxStatus().kind === 'bubblewrap')('a protected place', () => {
  it('that is missing cannot be made, and leaves nothing behind', async () => {
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

  it('that is missing cannot be made where there is no repository either, but by a command that makes one', async () => {
    await run('mkdir .git; mkdir -p .git/hooks; echo x > .git/config');
    expect(existsSync(join(bench.root, '.git'))).toBe(false);
    await run('git init -q .', { makesRepository: true });
    expect(existsSync(join(bench.root, '.git/config'))).toBe(true);
  });

  it('is not moved away with the directory that holds it', async () => {
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

  it('of git that cannot be masked is removed when the command has ended', async () => {
    await bench.write('.git/config', '[core]');
    await run('echo ../evil > .git/commondir; echo x > .git/config.worktree');
    expect(readdirSync(join(bench.root, '.git'))).toEqual(['config']);
  });

  it('stays masked while another command ends, and one of another process too', async () => {
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

  it('that a crash left behind is removed by the next command; one of a person stays', async () => {
    for (const name of ['.envrc', '.vscode']) mkdirSync(join(bench.root, name));
    chmodSync(join(bench.root, '.envrc'), 0o1555);
    await run('true');
    expect(readdirSync(bench.root).filter((name) => name.startsWith('.'))).toEqual(['.vscode']);
  });

  it('is free again after a command that was cancelled', async () => {
    const controller = new AbortController();
    const running = run('touch up; sleep 60', {}, controller.signal);
    await expect.poll(() => existsSync(join(bench.root, 'up')), { timeout: 10_000 }).toBe(true);
    controller.abort(new Error('cancelled'));
    await expect(running).rejects.toThrow('cancelled');
    expect(existsSync(join(bench.root, '.envrc'))).toBe(false);
  });
});

describe.runIf(sandboxStatus().kind === 'bubblewrap' && process.getuid?.() === 0)('a socket of the machine', () => {
  it('is not reached', async () => {
    const path = `/run/runchart-test-${process.pid}.sock`;
    const server = createServer((socket) => socket.end('hello'));
    await new Promise<void>((resolve) => server.listen(path, resolve));
    const command = `node -e "require('net').connect('${path}').on('data', (d) => console.log('got ' + d)).on('error', (e) => console.log(e.code))"`;
    expect(await run(command)).toContain('ENOENT');
    await new Promise((resolve) => server.close(resolve));
  });
});
