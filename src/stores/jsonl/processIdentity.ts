/**
 * Identifies a process and checks whether it is alive. Invariant: number and start time identify a process, so a reused
 * number does not count. An invisible process counts as alive, except one of an earlier container with this host name.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';

export interface ProcessIdentity {
  pid: number;
  /** Start time in clock ticks since boot. Null if unknown. */
  started: string | null;
  /** Boot id and process namespace, within which numbers are unique. Empty if unknown. */
  space: string;
  host: string;
}

export function ownIdentity(): ProcessIdentity {
  return { pid: process.pid, started: stateOf(process.pid)?.started ?? null, space: ownSpace(), host: hostname() };
}

/** Returns null for a value that is no identity. */
export function identityIn(value: unknown): ProcessIdentity | null {
  if (typeof value !== 'object' || value === null) return null;
  const { pid, started = null, space, host } = value as { [key: string]: unknown };
  if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid <= 0) return null;
  if (typeof space !== 'string' || typeof host !== 'string') return null;
  return { pid, started: typeof started === 'string' ? started : null, space, host };
}

export function isSameProcess(a: ProcessIdentity, b: ProcessIdentity): boolean {
  return a.pid === b.pid && a.started === b.started && a.space === b.space;
}

export function isAlive(identity: ProcessIdentity): boolean {
  // Processes of another host are invisible.
  if (identity.space !== ownSpace()) return identity.host !== hostname() || isAliveElsewhere(identity);
  try {
    process.kill(identity.pid, 0);
  } catch (cause) {
    // EPERM: the process is alive and belongs to another user.
    return (cause as NodeJS.ErrnoException).code === 'EPERM';
  }
  const state = stateOf(identity.pid);
  if (state === null || identity.started === null) return true;
  return state.started === identity.started && !state.ended;
}

/** The initial namespace of a boot. It has the same number on every system (PROC_PID_INIT_INO) and ends with the boot. */
const FIRST_NAMESPACE = 'pid:[4026531836]';

/**
 * For a process with this host name and another space. After a reboot it has ended. Processes of nested namespaces are
 * visible; those of the initial namespace are not. Any other namespace belongs to an earlier start of this container,
 * whose processes have ended.
 */
function isAliveElsewhere({ space, pid, started }: ProcessIdentity): boolean {
  const [boot, namespace] = space.split(' ');
  if (boot === '' || boot !== ownSpace().split(' ')[0]) return false;
  return namespace === FIRST_NAMESPACE || (started !== null && isWithin(pid, started));
}

/** A process has a number in each namespace from this one to its own. The last one is its own number. */
function isWithin(pid: number, started: string): boolean {
  return processes().some((seen) => {
    const numbers =
      /^NSpid:(.*)$/m
        .exec(textOf(`/proc/${seen}/status`))?.[1]
        ?.trim()
        .split(/\s+/) ?? [];
    if (numbers.length < 2 || numbers.at(-1) !== String(pid)) return false;
    const state = stateOf(seen);
    return state !== null && state.started === started && !state.ended;
  });
}

function processes(): number[] {
  try {
    return readdirSync('/proc')
      .filter((name) => /^[1-9]\d*$/.test(name))
      .map(Number);
  } catch {
    return [];
  }
}

/** Returns null if /proc does not exist or hides the process. */
function stateOf(pid: number): { started: string; ended: boolean } | null {
  const text = textOf(`/proc/${pid}/stat`);
  // The second field is the program's name in brackets, with any characters. Fields 3 and 22 follow it.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const started = fields[19];
  // A zombie or dead process runs no code.
  return started === undefined ? null : { started, ended: fields[0] === 'Z' || fields[0] === 'X' };
}

let space: string | undefined;
function ownSpace(): string {
  if (space !== undefined) return space;
  const boot = textOf('/proc/sys/kernel/random/boot_id').trim();
  let namespace = '';
  try {
    namespace = readlinkSync('/proc/self/ns/pid');
  } catch {
    // Another system than Linux, or hidden.
  }
  space = boot === '' ? '' : `${boot} ${namespace}`;
  return space;
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}
