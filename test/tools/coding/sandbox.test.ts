/**
 * The sandbox of Bash. Its restrictions are tested if bubblewrap works; the behaviour without one is tested everywhere.
 */
import { accessSync, constants, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { access, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ConfigurationError } from '../../../src/errors.ts';
import { bashTool } from '../../../src/tools/coding/bash.ts';
import { type CodingToolOptions, codingTools } from '../../../src/tools/coding/index.ts';
import { type Sandbox, sandboxFor, sandboxStatus } from '../../../src/tools/coding/sandbox.ts';
import { answerOf, type CallGrant, definitionOf, type Tool } from '../../../src/tools/tool.ts';
import { volume } from '../../support/tier.ts';
import { type Bench, makeBench } from './codingBench.ts';

let bench: Bench;
beforeEach(async () => {
  bench = await makeBench();
});
afterEach(() => bench.remove());

async function run(
  command: string,
  options: CodingToolOptions,
  signal = new AbortController().signal,
): Promise<string> {
  const tool = codingTools(options).find(({ name }) => name === 'Bash');
  return executed(tool, { command }, signal);
}

async function executed(
  tool: Tool | undefined,
  args: { command: string; network?: boolean },
  signal = new AbortController().signal,
  more: { cwd?: string; grant?: CallGrant } = {},
): Promise<string> {
  const definition = tool && definitionOf(tool);
  const context = {
    callId: 'c1',
    conversationId: 'c',
    runId: 'r',
    cwd: bench.root,
    signal,
    idempotencyKey: 'k',
    origin: { messageId: 'm' },
    state: {},
  };
  const clock = { progress: () => undefined, now: () => 0, sleep: () => Promise.resolve() };
  const answer = answerOf(await definition?.execute(args, { ...context, ...clock, ...more }));
  return answer && answer.status !== 'pending' ? String(answer.content) : '';
}

describe('the choice of a sandbox', () => {
  const none = () => ({ kind: 'none' as const, why: 'bubblewrap (bwrap) is not installed' });

  it('a required sandbox that is missing is a ConfigurationError with the reason', () => {
    expect(() => sandboxFor('required', {}, none)).toThrow(ConfigurationError);
    expect(() => sandboxFor('required', {}, none)).toThrow('bubblewrap (bwrap) is not installed');
  });

  it('auto runs without a sandbox, off skips the search, and an unknown value is refused', () => {
    expect(sandboxFor('auto', {}, none)).toBeUndefined();
    const look = () => expect.unreachable();
    expect(sandboxFor('off', {}, look as never)).toBeUndefined();
    expect(() => codingTools({ sandbox: 'on' as 'off' })).toThrow(ConfigurationError);
    expect(() => codingTools({ sandboxOptions: { hidden: [] } as never })).toThrow(ConfigurationError);
  });

  it.each([
    ['allow', undefined, true],
    ['allow', true, true],
    ['ask', undefined, false],
    ['ask', true, true],
    ['deny', undefined, false],
    ['deny', true, false],
  ] as const)(
    'without permissions a command under network %j that requests it: %j reaches it: %j',
    async (choice, asks, reaches) => {
      const reached: unknown[] = [];
      const sandbox: Sandbox = async (_, confinement) => {
        reached.push(confinement?.network);
        return { program: 'env', args: [], release: async () => undefined };
      };
      const args = { command: 'true', ...(asks && { network: true }) };
      expect(await executed(bashTool(sandbox, choice), args)).toBe('(no output)');
      expect(reached).toEqual([reaches]);
    },
  );

  it.each<[string, string, object, RegExp]>([
    ['that succeeds', 'echo done', {}, /^done$/],
    ['that fails', 'exit 3', {}, /exit code 3/],
    ['that kills itself', 'kill -9 $$', {}, /killed by SIGKILL/],
    ['that exceeds its time', 'sleep 60', { timeoutMs: 50 }, /timed out/],
    ['that cannot be started', 'true', { program: '/nowhere/bwrap' }, /could not be started/],
    ['that is cancelled', 'sleep 60', { cancelled: true }, /^rejected$/],
    ['that was cancelled before', 'true', { aborted: true }, /^rejected$/],
  ])('a command %s releases its place in the sandbox once', async (_, command, more, expected) => {
    const { program = 'env', cancelled, aborted, ...args } = more as { program?: string; [more: string]: unknown };
    const { signal, abort } = aborting();
    let held = 0;
    const sandbox: Sandbox = async () => {
      held += 1;
      if (aborted) abort();
      const release = async (): Promise<void> => {
        held -= 1;
      };
      return { program, args: [], release };
    };
    const running = executed(bashTool(sandbox, 'deny'), { command, ...args }, signal);
    const outcome = running.catch(() => 'rejected');
    if (cancelled) {
      await expect.poll(() => held).toBe(1);
      abort();
    }
    expect(await outcome).toMatch(expected);
    expect(held).toBe(0);
  });

  it('the description of Bash and sandboxStatus contain the result of auto', () => {
    const description = codingTools({ sandbox: 'auto' }).find(({ name }) => name === 'Bash')?.description ?? '';
    expect(description.includes('sandbox')).toBe(sandboxStatus().kind === 'bubblewrap');
  });
});

describe.runIf(sandboxStatus().kind === 'bubblewrap')('a command in the sandbox', () => {
  const required: CodingToolOptions = { sandbox: 'required' };
  const inSandbox = (): Tool => bashTool(sandboxFor('required', {}));
  const confined = (hide: string[], writes: boolean): { grant: CallGrant } => ({
    grant: { confinement: { writes, hide, network: false, opensProtected: false } },
  });
  const exists = (path: string): Promise<boolean> =>
    access(path).then(
      () => true,
      () => false,
    );

  it('it writes in the working directory and nowhere else', async () => {
    expect(await run('pwd; echo a > inside; cat inside', required)).toBe(`${bench.root}\na`);
    expect(await readFile(join(bench.root, 'inside'), 'utf8')).toBe('a\n');
    const outside = join(bench.evil, 'new');
    expect(await run(`echo a > ${outside}`, required)).toContain('exit code');
    expect(await run('echo a > /etc/runchart-new', required)).toContain('Read-only file system');
    expect([await exists(outside), await exists('/etc/runchart-new')]).toEqual([false, false]);
  });

  it('H-226 it cannot read hidden files, in any spelling', async () => {
    await bench.write('.env', 'KEY=1');
    await mkdir(join(bench.root, 'secrets'));
    await bench.write('secrets/a', 'KEY=2');
    await bench.link('alias', '.env');
    const options: CodingToolOptions = { ...required, sandboxOptions: { hide: ['.env', 'secrets'] } };
    const command = 'cat .env alias "$(printf .en)v"; ls secrets; cat secrets/a';
    expect(await run(command, required)).toContain('KEY=1');
    expect(await run(command, options)).not.toMatch(/KEY/);
  });

  it.each([
    ['reads', false],
    ['changes', true],
  ])(
    'a command that %s has no capabilities, and sees no process and no shared memory of the machine',
    async (_, writes) => {
      const command = 'grep CapEff /proc/self/status; readlink /proc/self/ns/ipc /proc/self/ns/uts; ls -d /proc/[0-9]*';
      const text = await executed(inSandbox(), { command }, undefined, confined([], writes));
      const [capabilities, ipc, uts, ...processes] = text.split('\n');
      expect(capabilities).toMatch(/^CapEff:\s+0+$/);
      expect([ipc, uts]).not.toContain(readlinkSync('/proc/self/ns/ipc'));
      expect([ipc, uts]).not.toContain(readlinkSync('/proc/self/ns/uts'));
      expect(processes.length).toBeLessThan(6);
    },
  );

  it('it changes neither hooks nor configuration of git, and creates no hooks', async () => {
    await bench.write('.git/config', '[core]');
    expect(await run('echo x > .git/hooks/pre-commit', required)).toContain('Read-only');
    expect(await run('echo x >> .git/config', required)).toContain('Read-only');
    expect(await run('echo x > .git/index && echo done', required)).toBe('done');
    expect(await exists(join(bench.root, '.git/hooks/pre-commit'))).toBe(false);
    expect(await readFile(join(bench.root, '.git/config'), 'utf8')).toBe('[core]');
  });

  it('it reaches no network without permission', async () => {
    const server = createServer((socket) => socket.end('hello\n'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as { port: number };
    const command = `cat < /dev/tcp/127.0.0.1/${port}`;
    expect(await run(command, required)).toContain('exit code 1');
    expect(await run(command, { ...required, sandboxOptions: { network: true } })).toBe('hello');
    await new Promise((resolve) => server.close(resolve));
  });

  it('H-228 a cancel leaves no process, however it hides', async () => {
    const { signal, abort } = aborting();
    const running = run(`nohup ${SLEEP} & disown; (setsid ${SLEEP} &); touch up; ${SLEEP}`, required, signal);
    await expect.poll(() => exists(join(bench.root, 'up'))).toBe(true);
    await expect.poll(sleeping).toBe(3);
    abort();
    await expect(running).rejects.toThrow();
    await expect.poll(sleeping).toBe(0);
  });

  it('background processes end with its sandbox, and the note appears only if there were any', async () => {
    for (let time = 0; time < volume.sandboxRuns; time += 1) expect(await run('echo done', required)).toBe('done');
    expect(await run(`${SLEEP} & echo done`, required)).toMatch(/^done/);
    await expect.poll(sleeping).toBe(0);
  });

  it.each([
    [false, true],
    [true, false],
  ])(
    'a first process that survives its namespace is ended; of the sandbox: %j, reported: %j',
    async (own, isReported) => {
      // The creator of the namespace ends at once, and its first process survives.
      const script = `unshare -Urpf bash -c 'echo > up; exec ${SLEEP}' & until [ -e up ]; do :; done; kill -9 $!; exec "$@"`;
      const sandbox: Sandbox = async () => ({
        ...{ program: 'bash', args: ['-c', script, 'launcher'], hasFirstProcess: own },
        release: async () => undefined,
      });
      const text = await executed(bashTool(sandbox, 'deny'), { command: 'echo done' });
      expect(text).toBe(isReported ? 'done\n[what it left running was ended]' : 'done');
      expect(sleeping()).toBe(0);
    },
  );

  it.each(['TMPDIR', 'TEMP', 'TMP'])(
    'its programs use its own /tmp, whatever %s is, unless they may write there',
    async (name) => {
      vi.stubEnv(name, bench.evil);
      try {
        const command = `mktemp; echo "$${name}"`;
        expect(await run(command, required)).toMatch(/^\/tmp\/tmp\.\w+$/);
        const options = { ...required, sandboxOptions: { write: [bench.evil] } };
        expect((await run(command, options)).split('\n').at(-1)).toBe(bench.evil);
      } finally {
        vi.unstubAllEnvs();
      }
    },
  );

  it.each([
    ['reads', false],
    ['changes', true],
  ])('a command that %s runs, and reads no hidden file, wherever it is', async (_, writes) => {
    await bench.write('a', 'b');
    const hide = ['/etc/passwd', join(bench.evil, 's'), ...readdirSync('/run').map((name) => join('/run', name))];
    const command = 'cat a; cat /etc/passwd; echo c > /made; echo c > /run/made; ls -A /made /run/made';
    const text = await executed(inSandbox(), { command }, undefined, confined(hide, writes));
    expect(text).toMatch(/^b/);
    expect(text).not.toContain('root:');
    expect(text.match(/cannot access/g)).toHaveLength(2);
  });

  it.runIf(isWritable('/run'))('it runs in a directory below /run', async () => {
    const cwd = await mkdtemp('/run/runchart-');
    try {
      const command = `echo a > inside; cat inside; ls /run; echo b > /run/made`;
      const text = await executed(inSandbox(), { command }, undefined, { cwd });
      expect(text).toMatch(new RegExp(`^a\n${basename(cwd)}\n.*Read-only`));
    } finally {
      await rm(cwd, { recursive: true });
    }
  });

  it('it may write where the host permits, and in its own /tmp only', async () => {
    const options: CodingToolOptions = { ...required, sandboxOptions: { write: [bench.evil] } };
    await run(`echo b > ${join(bench.evil, 'new')}; echo c > /tmp/runchart-own; ls /tmp`, options);
    expect(await readFile(join(bench.evil, 'new'), 'utf8')).toBe('b\n');
    expect(await exists('/tmp/runchart-own')).toBe(false);
  });
});

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function aborting(): { signal: AbortSignal; abort(): void } {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort(new Error('cancelled')) };
}

/** A command line of this process alone, different from those of parallel test runs. */
const SLEEP = `sleep 9${process.pid}`;
/** Processes of the whole machine that run it. */
const sleeping = (): number =>
  readdirSync('/proc').filter((name) => {
    try {
      return (
        /^\d+$/.test(name) &&
        readFileSync(`/proc/${name}/cmdline`, 'latin1') === `${SLEEP.replace(' ', '\u0000')}\u0000`
      );
    } catch {
      return false;
    }
  }).length;
