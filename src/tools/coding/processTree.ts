/**
 * Finds and ends all processes that one command started. Rule: a process belongs to the tree by its session, its parent
 * or the mark in its environment, so it is found even if it left some of these. This program never belongs. `end` sends
 * TERM, then KILL after 50 ms, until nothing is left. Running trees are killed when this process exits; the library
 * installs no signal handlers.
 */
import { spawnSync } from 'node:child_process';
import { setTimeout as wait } from 'node:timers/promises';
import {
  carries,
  carriesNow,
  childrenOf,
  type Process,
  psRows,
  readProcess,
  startOf,
  youngProcesses,
  youngProcessesNow,
} from './processTable.ts';

type Signal = 'SIGTERM' | 'SIGKILL';

const KILL_AFTER_MS = 50;
const SWEEP_MS = 1_000;
const LOOK_AGAIN_MS = 10;
/** A table is not a snapshot: a process forked during one reading appears in the next. */
const CLEAN_LOOKS = 2;
/** The most descendants that are recorded. Others are still found by group and session. */
const KNOWN_MOST = 1_000;
const LAST_LOOKS = 5;

export class ProcessTree {
  /** The pid of the command, which leads its own group and session. */
  readonly #root: number;
  readonly #mark: string;
  /** The start time of the root; 0 without /proc. */
  readonly #since: number;
  /** Descendants that were seen, by pid. */
  #seenProcesses = new Map<number, Process>();
  #ending: Promise<number> | undefined;

  /** `mark`: a text in the environment of the root and of nothing else. */
  constructor(root: number, mark: string) {
    this.#root = root;
    this.#mark = mark;
    this.#since = startOf(root);
  }

  /** Records the descendants now: after an intermediate process has ended, nothing shows their origin. */
  capture(): void {
    if (this.#since === 0) return;
    const descendants = new Map<number, Process>();
    const note = (pid: number, start?: number): void => {
      const process = readProcess(pid);
      if (process && (start === undefined || process.start === start) && descendants.size < KNOWN_MOST)
        descendants.set(pid, process);
    };
    note(this.#root, this.#since);
    for (const { pid, start } of this.#seenProcesses.values()) note(pid, start);
    // The map grows during the iteration.
    for (const pid of descendants.keys()) for (const child of childrenOf(pid)) if (!descendants.has(child)) note(child);
    this.#seenProcesses = descendants;
  }

  /** The running processes of the tree; undefined if the table cannot be read, for example without file descriptors. */
  async living(): Promise<Process[] | undefined> {
    const rows = await (this.#since === 0 ? psRows(this.#mark) : this.#procRows()).catch(() => undefined);
    if (rows === undefined) return undefined;
    return this.#noted(
      rows.map(({ process }) => process),
      new Set(rows.flatMap(markedPid)),
    );
  }

  /**
   * Starts to end the whole tree. Resolves with the number of survivors, which is 0 unless a process may not be killed.
   */
  end(): Promise<number> {
    this.#ending ??= this.#end();
    return this.#ending;
  }

  /** Ends the whole tree synchronously, for a process that is exiting. */
  kill(): void {
    this.capture();
    this.#signal('SIGKILL', this.#seenProcesses.values());
    for (let look = 0; this.#since > 0 && look < LAST_LOOKS; look += 1) {
      const young = youngProcessesNow(this.#since);
      const marked = young.filter(({ pid }) => carriesNow(pid, this.#mark));
      const running = this.#noted(young, new Set(marked.map(({ pid }) => pid)));
      if (running.length === 0) return;
      this.#signal('SIGKILL', running);
    }
  }

  async #end(): Promise<number> {
    const since = performance.now();
    let signal = 'SIGTERM' as Signal;
    this.capture();
    this.#signal(signal, this.#seenProcesses.values());
    const signalled = new Set(this.#seenProcesses.keys());
    const kill = setTimeout(() => {
      signal = 'SIGKILL';
      this.#signal(signal, this.#seenProcesses.values());
    }, KILL_AFTER_MS);
    try {
      for (let clean = 0; ; ) {
        // This wait also comes before the first check, so that the caller of `end` continues before the table is read.
        await wait(LOOK_AGAIN_MS);
        const running = await this.living();
        clean = running?.length === 0 ? clean + 1 : 0;
        if (clean === CLEAN_LOOKS || performance.now() - since > SWEEP_MS) return running?.length ?? 0;
        // TERM is sent once to each process. KILL is sent again at every check.
        const targets = (running ?? []).filter(({ pid }) => signal === 'SIGKILL' || !signalled.has(pid));
        for (const { pid } of targets) signalled.add(pid);
        this.#signal(signal, targets);
      }
    } finally {
      clearTimeout(kill);
    }
  }

  async #procRows(): Promise<{ process: Process; marked: boolean }[]> {
    const young = await youngProcesses(this.#since);
    return Promise.all(young.map(async (process) => ({ process, marked: await carries(process.pid, this.#mark) })));
  }

  #noted(table: readonly Process[], marked: ReadonlySet<number>): Process[] {
    const host = (table.find(({ pid }) => pid === process.pid) ?? readProcess(process.pid))?.session ?? 0;
    const running = processesOf(table, {
      root: this.#root,
      since: this.#since,
      host,
      seenBefore: this.#seenProcesses,
      marked,
    });
    this.#seenProcesses = new Map(running.slice(0, KNOWN_MOST).map((each) => [each.pid, each]));
    return running;
  }

  /**
   * Signals whole groups, so that no process can fork between two signals. The root's group is always included: its pid
   * cannot be reused within the second that this takes.
   */
  #signal(signal: Signal, processes: Iterable<Process>): void {
    if (process.platform === 'win32') {
      spawnSync('taskkill', ['/pid', String(this.#root), '/T', '/F'], { stdio: 'ignore' });
      return;
    }
    const groups = new Set([this.#root, ...[...processes].map(({ group }) => group)]);
    for (const group of groups) {
      try {
        process.kill(-group, signal);
      } catch {
        // The group has ended or belongs to another user. The next reading of the table shows which.
      }
    }
  }
}

const markedPid = (row: { process: Process; marked: boolean }): number[] => (row.marked ? [row.process.pid] : []);

interface CommandTree {
  /** The pid of the command, which led its own session. */
  root: number;
  /** Its start time. */
  since: number;
  /** The session of this program. */
  host: number;
  /** Processes that belonged to the tree at an earlier reading, by pid. */
  seenBefore: ReadonlyMap<number, Process>;
  marked: ReadonlySet<number>;
}

export function processesOf(
  table: readonly Process[],
  { root, since, host, seenBefore, marked }: CommandTree,
): Process[] {
  const leader = table.find(({ pid }) => pid === root);
  // If another process reused the pid, the session with that number is not the command's.
  const sessions = new Set(leader === undefined || leader.start === since ? [root] : []);
  const pids = new Set(sessions);
  const members = new Map<number, Process>();
  const belongs = ({ pid, parent, session, start }: Process): boolean =>
    sessions.has(session) || pids.has(parent) || marked.has(pid) || seenBefore.get(pid)?.start === start;
  const rest = table.filter(({ pid, session }) => pid !== process.pid && session !== host && session > 1);
  for (let before = -1; before < members.size; ) {
    before = members.size;
    for (const each of rest) {
      if (members.has(each.pid) || !belongs(each)) continue;
      members.set(each.pid, each);
      pids.add(each.pid);
      sessions.add(each.session);
    }
  }
  return [...members.values()];
}

const liveTrees = new Set<ProcessTree>();

const endAll = (): void => {
  for (const tree of liveTrees) tree.kill();
};

/** Kills the tree if this process exits. Returns a function to call after the tree has ended. */
export function endOnExit(tree: ProcessTree): () => void {
  if (liveTrees.size === 0) process.on('exit', endAll);
  liveTrees.add(tree);
  return () => {
    if (liveTrees.delete(tree) && liveTrees.size === 0) process.off('exit', endAll);
  };
}
