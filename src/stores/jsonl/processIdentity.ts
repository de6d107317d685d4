/**
 * Names a process and tells whether it still lives. Rule: a process is its number and the time it started, so a reused
 * number does not count. A process that cannot be seen from here is taken to live, with one exception: one that ran
 * under this host's name in another container is the one that was here before, and is gone.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';

export interface ProcessIdentity {
  pid: number;
  /** Start time in clock ticks since boot; null where the system does not tell. */
  started: string | null;
  /** Boot and process namespace: within one, process numbers mean the same. Empty where the system does not tell. */
  space: string;
  host: string;
}

export function ownIdentity(): ProcessIdentity {
  return { pid: process.pid, started: stateOf(process.pid)?.started ?? null, space: ownSpace(), host: hostname() };
}

export function isSameProcess(a: ProcessIdentity, b: ProcessIdentity): boolean {
  return a.pid === b.pid && a.started === b.started && a.space === b.space;
}

export function isAlive(found: ProcessIdentity): boolean {
  // Another host cannot be asked.
  if (found.space !== ownSpace()) return found.host !== hostname() || isAliveElsewhere(found);
  try {
    process.kill(found.pid, 0);
  } catch (cause) {
    // EPERM: it lives and belongs to someone else.
    return (cause as NodeJS.ErrnoException).code === 'EPERM';
  }
  const state = stateOf(found.pid);
  if (state === null || found.started === null) return true;
  return state.started === found.started && !state.ended;
}

/** The first namespace of a boot: it ends with the boot alone, and has the same number everywhere (PROC_PID_INIT_INO). */
const FIRST_NAMESPACE = 'pid:[4026531836]';

/**
 * Of this host's name and another space. Of an earlier boot nothing is left. What runs in a namespace within this one
 * is seen; what runs in the first one, around this one, is not. Any other namespace is that of an earlier start of this
 * container, which took its processes along.
 */
function isAliveElsewhere({ space, pid, started }: ProcessIdentity): boolean {
  const [boot, namespace] = space.split(' ');
  if (boot === '' || boot !== ownSpace().split(' ')[0]) return false;
  return namespace === FIRST_NAMESPACE || (started !== null && isWithin(pid, started));
}

/** A process has a number in each namespace from here down to its own; the last is the one it knows. */
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

/** Null where /proc does not exist or hides the process. */
function stateOf(pid: number): { started: string; ended: boolean } | null {
  const text = textOf(`/proc/${pid}/stat`);
  // The second field is the program's name in brackets and may hold anything; fields 3 and 22 follow it.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const started = fields[19];
  // A zombie or dead process runs nothing any more.
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
    // Not Linux, or hidden.
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
