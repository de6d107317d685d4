/**
 * Where commands run: in a sandbox, or not. Rule: a trial finds out whether there is one, before any command; one that is required
 * and not there is an error, and the description of Bash says what `auto` came to. What permissions allowed as reading sees the
 * working directory read-only, no home directory and no network.
 */
import { ConfigurationError } from '../../errors.ts';
import type { Confinement } from '../tool.ts';
import { bubblewrapFault, bubblewrapWords } from './sandbox/bubblewrap.ts';
import { sandboxExecFault, sandboxExecWords } from './sandbox/sandboxExec.ts';
import { type SandboxOptions, sandboxPlaces } from './sandbox/sandboxPlaces.ts';

export type { SandboxOptions };
export const SANDBOXES = ['off', 'auto', 'required'] as const;
export type SandboxChoice = (typeof SANDBOXES)[number];

export type SandboxStatus = { kind: 'bubblewrap' } | { kind: 'sandbox-exec' } | { kind: 'none'; why: string };

/** What starts a command: the program and what stands before the command's own words. */
export interface Launcher {
  program: string;
  args: readonly string[];
  /** A process of the sandbox itself lives with those of the command, and ends after them. */
  hasFirstProcess?: boolean;
  /** To be called after the command. */
  release(): Promise<void>;
}
/** `confinement`: what permissions found; without it a command may change the working directory. */
export type Sandbox = (cwd: string, confinement: Confinement | undefined) => Promise<Launcher>;

let found: SandboxStatus | undefined;

/** Tried once a process. */
export function sandboxStatus(): SandboxStatus {
  found ??= triedOn(process.platform);
  return found;
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
