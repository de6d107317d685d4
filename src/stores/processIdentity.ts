/**
 * Which process is it, and does it still live. Rule: a process is named by its number and the time it started, so a
 * number that was given away again does not count; what cannot be seen from here is taken to live.
 */
import { readFileSync, readlinkSync } from 'node:fs';
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

export function lives(found: ProcessIdentity): boolean {
  // The same host, booted or started anew since: its processes of before are gone. Another host cannot be asked.
  if (found.space !== ownSpace()) return found.host !== hostname();
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
