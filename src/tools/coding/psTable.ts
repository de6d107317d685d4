/**
 * The process table by `ps`, where there is no /proc (macOS). Rule: text of somebody else's program, read strictly; a
 * line that does not look as expected is not a process. It tells no sessions, so a group stands for one.
 */
import { execFile } from 'node:child_process';
import type { Process } from './procfs.ts';

/** With `-E` the environment stands behind the command. */
const ARGUMENTS = ['-A', '-E', '-ww', '-o', 'pid=,ppid=,pgid=,stat=,command='];
const LINE = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s(.*)$/;
const TABLE_BYTES = 64 * 1_048_576;
const WAIT_MS = 500;

/** A row of the table, and whether the process was started with the mark in its environment. */
export interface Row {
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
