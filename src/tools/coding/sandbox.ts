/**
 * Where commands run: in a sandbox of bubblewrap, or not. Rule: whether there is one is found out by trying it, before any
 * command; one that is required and not there is an error, and what `auto` came to is told, never silent.
 */
import { spawnSync } from 'node:child_process';
import { realpath, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { ConfigurationError } from '../../errors.ts';

export const SANDBOXES = ['off', 'auto', 'required'] as const;
export type SandboxChoice = (typeof SANDBOXES)[number];

export interface SandboxOptions {
  /** Files and directories that commands find empty; relative to the working directory, or `~/…`. */
  hide?: readonly string[];
  /** Directories that commands may write besides the working directory, caches for example. */
  write?: readonly string[];
  /** Without it, commands reach no network. */
  network?: boolean;
}

export type SandboxStatus = { kind: 'bubblewrap' } | { kind: 'none'; why: string };

/** What starts a command: the program and what stands before the command's own words. */
export interface Launcher {
  program: string;
  args: readonly string[];
}
export type Sandbox = (cwd: string) => Promise<Launcher>;

const BASE = ['--unshare-user-try', '--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try'];
const HELD = ['--die-with-parent', '--cap-drop', 'ALL', '--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc'];
const TRIAL_MS = 5_000;

let found: SandboxStatus | undefined;

/** Tried once a process. */
export function sandboxStatus(): SandboxStatus {
  found ??= tried();
  return found;
}

function tried(): SandboxStatus {
  if (process.platform !== 'linux') return { kind: 'none', why: `there is none for ${process.platform}` };
  const trial = spawnSync('bwrap', [...BASE, '--unshare-net', ...HELD, 'true'], {
    timeout: TRIAL_MS,
    encoding: 'utf8',
  });
  if (trial.status === 0) return { kind: 'bubblewrap' };
  const why = trial.error
    ? 'bubblewrap (bwrap) is not installed'
    : `bubblewrap does not work here: ${trial.stderr.trim()}`;
  return { kind: 'none', why };
}

/** Undefined where commands run without one. Throws ConfigurationError where one is required and there is none. */
export function sandboxFor(
  choice: SandboxChoice,
  options: SandboxOptions,
  status: () => SandboxStatus = sandboxStatus,
): Sandbox | undefined {
  if (!SANDBOXES.includes(choice)) {
    throw new ConfigurationError(`sandbox must be ${SANDBOXES.join(', ')}; got ${String(choice)}`);
  }
  if (choice === 'off') return undefined;
  const state = status();
  if (state.kind === 'bubblewrap') return (cwd) => launcherOf(cwd, options);
  if (choice === 'auto') return undefined;
  throw new ConfigurationError(`sandbox is 'required', and ${state.why}: leave Bash out, or give 'off'`);
}

/** Later binds lie over earlier ones: first what may be written, then what may not, then what is hidden. */
async function launcherOf(cwd: string, { hide = [], write = [], network = false }: SandboxOptions): Promise<Launcher> {
  const root = await realpath(cwd);
  const args = [...BASE, ...(network ? [] : ['--unshare-net']), ...HELD, '--tmpfs', '/tmp'];
  for (const path of [root, ...write]) {
    const place = await placed(path, root);
    if (place) args.push('--bind', place.path, place.path);
  }
  const git = await placed('.git', root);
  if (git?.isDirectory) {
    const hooks = join(git.path, 'hooks');
    // Where there are none, none can be made.
    args.push(
      ...((await placed(hooks, root)) ? ['--ro-bind', hooks, hooks] : ['--tmpfs', hooks, '--remount-ro', hooks]),
    );
    const config = await placed(join(git.path, 'config'), root);
    if (config) args.push('--ro-bind', config.path, config.path);
  }
  for (const path of hide) {
    const place = await placed(path, root);
    if (place) args.push(...(place.isDirectory ? ['--tmpfs', place.path] : ['--ro-bind', '/dev/null', place.path]));
  }
  return { program: 'bwrap', args: [...args, '--chdir', root, '--'] };
}

/** Where a path leads; undefined where nothing is there. */
async function placed(path: string, root: string): Promise<{ path: string; isDirectory: boolean } | undefined> {
  const whole = resolve(root, path.replace(/^~(?=\/|$)/, homedir()));
  try {
    const real = await realpath(whole);
    return { path: real, isDirectory: (await stat(real)).isDirectory() };
  } catch {
    return undefined;
  }
}
