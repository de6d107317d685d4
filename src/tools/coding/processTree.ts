/**
 * All processes that one command started. Rule: a process belongs to the tree by its session, its parent, or the mark
 * in its environment, so that one that left the group, the session or its parents is found by what it kept; this
 * program never belongs. The end is TERM, KILL after 50 ms, and another look until nothing is left. Living trees end
 * with this process; signals are left to the program that uses the library.
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
/** A table is not read at one moment: what was forked meanwhile shows in the next. */
const CLEAN_LOOKS = 2;
/** More descendants than these are not written down; group and session have them still. */
const KNOWN_MOST = 1_000;
const LAST_LOOKS = 5;

export class ProcessTree {
  /** Leader of its own group and session. */
  readonly #root: number;
  readonly #mark: string;
  /** When it started; 0 where there is no /proc to tell. */
  readonly #since: number;
  /** Descendants that were seen, by pid. */
  #known = new Map<number, Process>();
  #ending: Promise<number> | undefined;

  /** `mark`: what stands in the environment of the root, and of nothing else. */
  constructor(root: number, mark: string) {
    this.#root = root;
    this.#mark = mark;
    this.#since = startOf(root);
  }

  /** Writes down who descends from whom, which nobody can tell any more once the one between has ended. */
  capture(): void {
    if (this.#since === 0) return;
    const seen = new Map<number, Process>();
    const note = (pid: number, start?: number): void => {
      const found = readProcess(pid);
      if (found && (start === undefined || found.start === start) && seen.size < KNOWN_MOST) seen.set(pid, found);
    };
    note(this.#root, this.#since);
    for (const { pid, start } of this.#known.values()) note(pid, start);
    // The map grows while it is walked.
    for (const pid of seen.keys()) for (const child of childrenOf(pid)) if (!seen.has(child)) note(child);
    this.#known = seen;
  }

  /** What of the tree lives now; undefined where the table cannot be read, for want of file descriptors for example. */
  async living(): Promise<Process[] | undefined> {
    const rows = await (this.#since === 0 ? psRows(this.#mark) : this.#procRows()).catch(() => undefined);
    if (rows === undefined) return undefined;
    return this.#noted(
      rows.map(({ process }) => process),
      new Set(rows.flatMap(markedPid)),
    );
  }

  /** Ends all of it, beginning at once; resolves with how many are left, which is none but for what may not be killed. */
  end(): Promise<number> {
    this.#ending ??= this.#end();
    return this.#ending;
  }

  /** Ends all of it before it returns: for a process that ends itself. */
  kill(): void {
    this.capture();
    this.#signal('SIGKILL', this.#known.values());
    for (let look = 0; this.#since > 0 && look < LAST_LOOKS; look += 1) {
      const young = youngProcessesNow(this.#since);
      const marked = young.filter(({ pid }) => carriesNow(pid, this.#mark));
      const left = this.#noted(young, new Set(marked.map(({ pid }) => pid)));
      if (left.length === 0) return;
      this.#signal('SIGKILL', left);
    }
  }

  async #end(): Promise<number> {
    const since = performance.now();
    let signal = 'SIGTERM' as Signal;
    this.capture();
    this.#signal(signal, this.#known.values());
    const told = new Set(this.#known.keys());
    const kill = setTimeout(() => {
      signal = 'SIGKILL';
      this.#signal(signal, this.#known.values());
    }, KILL_AFTER_MS);
    try {
      for (let clean = 0; ; ) {
        // First of all, too: whoever cancels goes on before the table is read.
        await wait(LOOK_AGAIN_MS);
        const left = await this.living();
        clean = left?.length === 0 ? clean + 1 : 0;
        if (clean === CLEAN_LOOKS || performance.now() - since > SWEEP_MS) return left?.length ?? 0;
        // Once is enough of a request, and never of an order.
        const news = (left ?? []).filter(({ pid }) => signal === 'SIGKILL' || !told.has(pid));
        for (const { pid } of news) told.add(pid);
        this.#signal(signal, news);
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
    const found = processesOf(table, { root: this.#root, since: this.#since, host, known: this.#known, marked });
    this.#known = new Map(found.slice(0, KNOWN_MOST).map((each) => [each.pid, each]));
    return found;
  }

  /**
   * By group, so that nothing can be forked between two of them. The root's own is always told: its number cannot come
   * round to somebody else in the second that an end takes.
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
        // It has ended, or belongs to another user: the next look tells.
      }
    }
  }
}

const markedPid = (row: { process: Process; marked: boolean }): number[] => (row.marked ? [row.process.pid] : []);

interface CommandTree {
  /** Pid of the command, which led its own session. */
  root: number;
  /** When it started. */
  since: number;
  /** The session of this program. */
  host: number;
  /** Seen to belong before, by pid. */
  known: ReadonlyMap<number, Process>;
  marked: ReadonlySet<number>;
}

export function processesOf(table: readonly Process[], { root, since, host, known, marked }: CommandTree): Process[] {
  const leader = table.find(({ pid }) => pid === root);
  // Where the number was given to another process since, the session of that number is another's too.
  const sessions = new Set(leader === undefined || leader.start === since ? [root] : []);
  const pids = new Set(sessions);
  const found = new Map<number, Process>();
  const belongs = ({ pid, parent, session, start }: Process): boolean =>
    sessions.has(session) || pids.has(parent) || marked.has(pid) || known.get(pid)?.start === start;
  const rest = table.filter(({ pid, session }) => pid !== process.pid && session !== host && session > 1);
  for (let before = -1; before < found.size; ) {
    before = found.size;
    for (const each of rest) {
      if (found.has(each.pid) || !belongs(each)) continue;
      found.set(each.pid, each);
      pids.add(each.pid);
      sessions.add(each.session);
    }
  }
  return [...found.values()];
}

const liveTrees = new Set<ProcessTree>();

const endAll = (): void => {
  for (const tree of liveTrees) tree.kill();
};

/** Answers what takes the tree off the list, once nothing of it lives. */
export function endOnExit(tree: ProcessTree): () => void {
  if (liveTrees.size === 0) process.on('exit', endAll);
  liveTrees.add(tree);
  return () => {
    if (liveTrees.delete(tree) && liveTrees.size === 0) process.off('exit', endAll);
  };
}
