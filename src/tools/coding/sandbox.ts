/**
 * Selects how commands run: in a sandbox or without one. Rule: a trial before the first command decides whether a
 * sandbox works. If one is required and none works, that is an error. The description of Bash states the result of
 * `auto`. A command that permissions classified as reading gets a read-only working directory, no home directory and no
 * network.
 */
import { ConfigurationError } from '../../errors.ts';
import type { Confinement } from '../tool.ts';
import { bubblewrapFault, bubblewrapWords } from './sandbox/bubblewrap.ts';
import { sandboxExecFault, sandboxExecWords } from './sandbox/sandboxExec.ts';
import { type SandboxOptions, sandboxPlaces } from './sandbox/sandboxPlaces.ts';

export type { SandboxOptions };
export const SANDBOXES = ['off', 'auto', 'required'] as const;
/** Whether commands run in a sandbox. */
export type SandboxChoice = (typeof SANDBOXES)[number];

/** The sandbox of this machine, or the reason why there is none. */
export type SandboxStatus = { kind: 'bubblewrap' } | { kind: 'sandbox-exec' } | { kind: 'none'; why: string };

/** Starts a command: the program, and the words before the command's own. */
export interface Launcher {
  program: string;
  args: readonly string[];
  /** The sandbox has a first process of its own, which ends after the command's processes. */
  hasFirstProcess?: boolean;
  /** Must be called after the command. */
  release(): Promise<void>;
}
/** `confinement` is the result of the permissions. Without it, a command may change the working directory. */
export type Sandbox = (cwd: string, confinement: Confinement | undefined) => Promise<Launcher>;

let cachedStatus: SandboxStatus | undefined;

/** The trial runs once in each process. */
export function sandboxStatus(): SandboxStatus {
  cachedStatus ??= triedOn(process.platform);
  return cachedStatus;
}

export function triedOn(platform: string): SandboxStatus {
  if (platform === 'linux') {
    const why = bubblewrapFault();
    return why === undefined ? { kind: 'bubblewrap' } : { kind: 'none', why };
  }
  if (platform !== 'darwin') return { kind: 'none', why: `there is none for ${platform}` };
  const why = sandboxExecFault();
  return why === undefined ? { kind: 'sandbox-exec' } : { kind: 'none', why };
}

/**
 * Undefined if commands run without a sandbox. Throws ConfigurationError if one is required and the machine has none.
 */
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
  switch (state.kind) {
    case 'bubblewrap':
      return async (cwd, confinement) => ({
        program: 'bwrap',
        ...(await bubblewrapWords(await sandboxPlaces(cwd, options, confinement))),
        hasFirstProcess: true,
      });
    case 'sandbox-exec':
      return async (cwd, confinement) => ({
        program: 'sandbox-exec',
        ...(await sandboxExecWords(await sandboxPlaces(cwd, options, confinement))),
      });
    case 'none':
      if (choice === 'auto') return undefined;
      throw new ConfigurationError(`sandbox is 'required', and ${state.why}: leave Bash out, or give 'off'`);
  }
}
