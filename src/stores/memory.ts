/**
 * Logs kept in the memory of this process. Rule: entries are stored as given (the caller freezes them), a log outlives
 * its handles and dies with the store object.
 */
import type { LogEntry } from '../../machines/vocabulary.ts';
import { RunchartError, SessionBusyError } from '../errors.ts';
import { refuseOutOfOrder } from './order.ts';
import type { ConversationInfo, LogHandle, LogStore } from './store.ts';
import { conversationSummary, newestFirst } from './summary.ts';

/** A store for tests and short-lived agents: nothing is written anywhere. */
export function memoryStore(): LogStore {
  const logs = new Map<string, LogEntry[]>();
  const leased = new Set<string>();
  const refuseLeased = (id: string) => {
    if (!leased.has(id)) return;
    throw new SessionBusyError(`conversation "${id}" is open already: close the other handle first`);
  };
  return {
    async open(id) {
      refuseLeased(id);
      leased.add(id);
      const entries = logs.get(id) ?? [];
      logs.set(id, entries);
      return memoryHandle(id, entries, () => leased.delete(id));
    },
    async list() {
      const found: ConversationInfo[] = [];
      for (const [id, entries] of logs) {
        const summary = conversationSummary(id);
        for (const entry of entries) summary.add(entry);
        const listed = summary.result(leased.has(id) ? 'self' : 'nobody');
        if (listed) found.push(listed);
      }
      return newestFirst(found);
    },
    async delete(id) {
      refuseLeased(id);
      logs.delete(id);
    },
  };
}

function memoryHandle(id: string, stored: LogEntry[], release: () => void): LogHandle {
  let open = true;
  const refuseClosed = () => {
    if (!open) throw new RunchartError('closed', `the log of conversation "${id}" is closed: open it again`);
  };
  const appendNow = (entries: readonly LogEntry[], expectedSeq: number) => {
    refuseClosed();
    refuseOutOfOrder(id, stored.length, entries, expectedSeq);
    for (const entry of entries) stored.push(entry);
  };
  return {
    async *read(from = 0) {
      refuseClosed();
      const until = stored.length;
      for (const entry of stored.slice(Math.max(0, from), until)) yield entry;
    },
    appendNow,
    async append(entries, expectedSeq) {
      appendNow(entries, expectedSeq);
    },
    async close() {
      if (open) release();
      open = false;
    },
  };
}
