/**
 * Faults in the messages and cycles of a log. Invariant: the checks read the entries alone and use none of the
 * library's folds.
 */
import type { LogEntry } from '../../src/index.ts';

/** Every queued message has left the queue once, or is listed. */
export function queueFaults(log: readonly LogEntry[], queued: readonly string[]): string[] {
  const waiting = new Set<string>();
  for (const each of log) {
    if (each.type === 'message-queued') waiting.add(each.messageId);
    if (each.type === 'user-message' || each.type === 'message-returned') waiting.delete(each.messageId);
  }
  return [...waiting].join() === [...queued].join() ? [] : [`${[...waiting]} wait, and ${queued} are listed`];
}

/**
 * Each run has one end, each cycle has one root, and a stop comes before the next. `mayLack`: the last end was not
 * stored.
 */
export function cycleFaults(log: readonly LogEntry[], mayLack: boolean): string[] {
  const faults: string[] = [];
  let state: 'idle' | 'running' | 'suspended' = 'idle';
  let roots = 1;
  for (const { type, seq, ...each } of log) {
    if (type === 'run-started' || type === 'run-resumed') {
      if (state === 'running') faults.push(`${seq}: a run begins in a run`);
      if (type === 'run-started' && state === 'suspended') faults.push(`${seq}: the cycle before has no stop`);
      if (type === 'run-started' && roots !== 1) faults.push(`${seq}: the cycle before has ${roots} roots`);
      if (type === 'run-started') roots = 0;
      state = 'running';
    } else if (type === 'run-stop') {
      if (state === 'idle') faults.push(`${seq}: a stop that ends nothing`);
      state = 'idle';
    } else if (type === 'run-suspended') {
      if (state !== 'running') faults.push(`${seq}: a suspension of nothing`);
      state = 'suspended';
    } else if (type === 'user-message' && 'kind' in each && each.kind !== 'steer') roots += 1;
  }
  return state === 'running' && !mayLack ? [...faults, 'the last run has no end'] : faults;
}
