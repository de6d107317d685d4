/**
 * The process table: /proc of Linux, or `ps` where there is none (macOS). Rule: a process is its pid together with the
 * time it started, so that a reused number is never taken for the first; what cannot be read, or does not look as
 * expected, is not there. `ps` tells no sessions, so a group stands for one.
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
/** Where the fields stand behind the name of the program, which is in brackets and may hold anything. */
const STATE = 0;
const PARENT = 1;
const GROUP = 2;
const SESSION = 3;
const START = 19;

const room = Buffer.alloc(4_096);

/** A short file of the kernel; undefined where its process is gone. */
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

/** When a process started, also of one that ended and was not taken note of; 0 where there is no telling. */
export const startOf = (pid: number): number => Number(fieldsOf(pid)[START] ?? 0);

/** A process that lives; undefined for one that ended, also while nobody has taken note of its end. */
export function readProcess(pid: number): Process | undefined {
  const fields = fieldsOf(pid);
  if (/^[ZXx]?$/.test(fields[STATE] ?? '')) return undefined;
  const at = (index: number): number => Number(fields[index]);
  return { pid, parent: at(PARENT), group: at(GROUP), session: at(SESSION), start: at(START) };
}

/** The first process of a pid namespace below this program's own, such as that of a sandbox; undefined for one that ended. */
export function isFirstOfNamespace(pid: number): boolean | undefined {
  const numbers = namespacePids(String(pid));
  return numbers && numbers.length === (namespacePids('self')?.length ?? 0) + 1 && numbers.at(-1) === '1';
}

/** The pids that a process has in its namespaces, the outermost first. */
const namespacePids = (name: string): string[] | undefined =>
  /^NSpid:\s*(.*)$/m.exec(shortText(`/proc/${name}/status`) ?? '')?.[1]?.split(/\s+/);

/** The pids of the children, by all threads of the process; none where the kernel does not tell. */
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
    const found = readProcess(pid);
    return found !== undefined && found.start >= since ? [found] : [];
  });

/** What lives and started at `since` or later; read in slices, so that nothing else waits for the whole table. */
export async function youngProcesses(since: number): Promise<Process[]> {
  const all = pids();
  const young: Process[] = [];
  for (let at = 0; at < all.length; at += SLICE) {
    young.push(...readYoung(all.slice(at, at + SLICE), since));
    await setImmediate();
  }
  return young;
}

/** The same at once, for a process that ends; none where the table cannot be read. */
export function youngProcessesNow(since: number): Process[] {
  try {
    return readYoung(pids(), since);
  } catch {
    return [];
  }
}

/** Whether a process was started with this text in its environment. Not known (another user's) is no. */
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

/** With `-E` the environment stands behind the command. */
const ARGUMENTS = ['-A', '-E', '-ww', '-o', 'pid=,ppid=,pgid=,stat=,command='];
const LINE = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s(.*)$/;
const TABLE_BYTES = 64 * 1_048_576;
const WAIT_MS = 500;

/** A row of the table, and whether the process was started with the mark in its environment. */
interface Row {
  process: Process;
  marked: boolean;
}

/** The rows of what `ps` printed, without those that ended. */
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

/** What runs now; empty where `ps` does not answer. */
export function psRows(mark: string): Promise<Row[]> {
  return new Promise((resolve) => {
    const options = { maxBuffer: TABLE_BYTES, timeout: WAIT_MS, killSignal: 'SIGKILL' } as const;
    execFile('ps', ARGUMENTS, options, (error, stdout) => resolve(error ? [] : rowsIn(stdout, mark)));
  });
}
