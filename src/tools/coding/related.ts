/**
 * Which rows of a process table belong to one command. Rule: the command leads a session of its own, so a whole session
 * belongs to it or none of it; whoever is of another session belongs to it by a parent that does, by the mark it was
 * started with, or because it was seen to before. This program itself never does.
 */
import type { Process } from './procfs.ts';

export interface Kinship {
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

export function related(table: readonly Process[], { root, since, host, known, marked }: Kinship): Process[] {
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
