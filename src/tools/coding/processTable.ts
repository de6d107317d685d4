/**
 * Reads the process table: /proc on Linux, or `ps` elsewhere (macOS). Rule: a process is identified by its pid and
 * start time, so a reused pid is not mistaken for it. An unreadable or malformed row is ignored. `ps` reports no
 * sessions, so the group takes the session's place.
 */

import { execFile } from 'node:child_process';
import { closeSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { setImmediate } from 'node:timers/promises';

export interface Process {
  pid: number;
  parent: number;
  group: number;
  session: number;
  /** Clock ticks since the machine started. */
  start: number;
}

const SLICE = 64;
/** Positions of the fields after the program's name, which is in brackets and may contain anything. */
const STATE = 0;
const PARENT = 1;
const GROUP = 2;
const SESSION = 3;
const START = 19;

const room = Buffer.alloc(4_096);

/** A short kernel file; undefined if its process is gone. */
function shortText(path: string): string | undefined {
  try {
    const file = openSync(path, 'r');
    try {
      return room.toString('latin1', 0, readSync(file, room, 0, room.length, 0));
    } finally {
      closeSync(file);
    }
  } catch {
    return undefined;
  }
}

function fieldsOf(pid: number): string[] {
  const text = shortText(`/proc/${pid}/stat`) ?? '';
  return text.slice(text.lastIndexOf(')') + 2).split(' ');
}

/** The start time of a process, including a zombie; 0 if it cannot be read. */
export const startOf = (pid: number): number => Number(fieldsOf(pid)[START] ?? 0);

/** A running process; undefined for one that ended, including a zombie. */
export function readProcess(pid: number): Process | undefined {
  const fields = fieldsOf(pid);
  if (/^[ZXx]?$/.test(fields[STATE] ?? '')) return undefined;
  const at = (index: number): number => Number(fields[index]);
  return { pid, parent: at(PARENT), group: at(GROUP), session: at(SESSION), start: at(START) };
}

/**
 * True if the process is the first of a pid namespace below this program's, such as the sandbox's; undefined if it
 * ended.
 */
export function isFirstOfNamespace(pid: number): boolean | undefined {
  const numbers = namespacePids(String(pid));
  return numbers && numbers.length === (namespacePids('self')?.length ?? 0) + 1 && numbers.at(-1) === '1';
}

/** The pids of a process in its namespaces, the outermost first. */
const namespacePids = (name: string): string[] | undefined =>
  /^NSpid:\s*(.*)$/m.exec(shortText(`/proc/${name}/status`) ?? '')?.[1]?.split(/\s+/);

/** The pids of the children of all threads; empty if the kernel does not report them. */
export function childrenOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, 'latin1').split(' ').filter(Boolean).map(Number),
    );
  } catch {
    return [];
  }
}

const pids = (): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);

const readYoung = (numbers: readonly number[], since: number): Process[] =>
  numbers.flatMap((pid) => {
    const candidate = readProcess(pid);
    return candidate !== undefined && candidate.start >= since ? [candidate] : [];
  });

/** Running processes that started at `since` or later. Reads in slices, so that other work is not blocked. */
export async function youngProcesses(since: number): Promise<Process[]> {
  const all = pids();
  const young: Process[] = [];
  for (let at = 0; at < all.length; at += SLICE) {
    young.push(...readYoung(all.slice(at, at + SLICE), since));
    await setImmediate();
  }
  return young;
}

/** The same, synchronously, for a process that is exiting. Returns none if the table cannot be read. */
export function youngProcessesNow(since: number): Process[] {
  try {
    return readYoung(pids(), since);
  } catch {
    return [];
  }
}

/** True if the process has this text in its environment. An unreadable environment (another user's) counts as no. */
export async function carries(pid: number, mark: string): Promise<boolean> {
  const environment = await readFile(`/proc/${pid}/environ`).catch(() => undefined);
  return environment?.includes(mark) ?? false;
}

export function carriesNow(pid: number, mark: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/environ`).includes(mark);
  } catch {
    return false;
  }
}

/** With `-E`, `ps` prints the environment after the command. */
const ARGUMENTS = ['-A', '-E', '-ww', '-o', 'pid=,ppid=,pgid=,stat=,command='];
const LINE = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s(.*)$/;
const TABLE_BYTES = 64 * 1_048_576;
const WAIT_MS = 500;

/** A row of the table, and whether the process has the mark in its environment. */
interface Row {
  process: Process;
  marked: boolean;
}

/** The rows in the output of `ps`, without ended processes. */
export function rowsIn(table: string, mark: string): Row[] {
  return table.split('\n').flatMap((line) => {
    const [, pid, parent, group, state = 'Z', command = ''] = LINE.exec(line) ?? [];
    if (pid === undefined || state.startsWith('Z')) return [];
    const process = {
      pid: Number(pid),
      parent: Number(parent),
      group: Number(group),
      session: Number(group),
      start: 0,
    };
    return [{ process, marked: command.includes(mark) }];
  });
}

/** The running processes; empty if `ps` does not answer. */
export function psRows(mark: string): Promise<Row[]> {
  return new Promise((resolve) => {
    const options = { maxBuffer: TABLE_BYTES, timeout: WAIT_MS, killSignal: 'SIGKILL' } as const;
    execFile('ps', ARGUMENTS, options, (error, stdout) => resolve(error ? [] : rowsIn(stdout, mark)));
  });
}
