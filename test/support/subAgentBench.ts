/**
 * Sub-agents for tests: a model with one script a task, and the contents of their logs. Invariant: a sub-agent's log is
 * read from the store, as any caller can read it.
 */
import { type LogEntry, type LogStore, type Model, memoryStore } from '../../src/index.ts';
import { childIdOf } from '../../src/subAgents/spawnTasks.ts';
import { type Reply, type ScriptedModel, scripted } from './scriptedReplies.ts';

export { spawn, submit } from './replyParts.ts';

export interface TaskModel extends Model {
  /** The model of one task. */
  of(task: string): ScriptedModel;
  /** The tasks in the order of the model calls. */
  readonly order: readonly string[];
}

/** One script a task, selected by the text of the first message. */
export function byTask(
  scripts: { [task: string]: readonly Reply[] },
  options: Parameters<typeof scripted>[1] = {},
): TaskModel {
  const models = new Map(Object.entries(scripts).map(([task, replies]) => [task, scripted(replies, options)]));
  const order: string[] = [];
  const modelOf = (task: string): ScriptedModel => {
    const model = models.get(task);
    if (!model) throw new Error(`no script for the task ${task}`);
    return model;
  };
  return {
    id: 'scripted',
    ...options,
    of: modelOf,
    order,
    stream(request, context) {
      const [first] = request.messages[0]?.content ?? [];
      const task = first?.type === 'text' ? first.text : '';
      order.push(task);
      return modelOf(task).stream(request, context);
    },
  };
}

export const childOf = (callId: string, taskId: string): string => childIdOf('c', callId, taskId);

/** The log of a conversation that is not open. */
export async function logOf(store: LogStore, id: string): Promise<LogEntry[]> {
  const handle = await store.open(id);
  const entries: LogEntry[] = [];
  for await (const entry of handle.read()) entries.push(entry);
  await handle.close();
  return entries;
}

export interface Reported {
  id: string;
  task: string;
  outcome: string;
  implicit?: boolean;
  text: string;
}
/** The result of a spawn call, as a parent's model reads it. Undefined if the call has no result of its own. */
export function reported(log: readonly LogEntry[], callId: string): Reported[] {
  const result = log.find((entry) => entry.type === 'tool-result' && entry.callId === callId);
  const [part] = result?.type === 'tool-result' && result.outcome === 'succeeded' ? result.content : [];
  return part?.type === 'text' ? (JSON.parse(part.text) as Reported[]) : [];
}

/** The store as another process finds it after the writer of these logs has died. */
export async function storeOf(logs: { [id: string]: readonly LogEntry[] }): Promise<LogStore> {
  const store = memoryStore();
  for (const [id, log] of Object.entries(logs)) {
    const handle = await store.open(id);
    await handle.append([...log], 0);
    await handle.close();
  }
  return store;
}

/** A store that returns copies of logs that are open. */
export function watched() {
  const inner = memoryStore();
  const logs: { [id: string]: LogEntry[] } = {};
  const store: LogStore = {
    ...inner,
    async open(id) {
      const handle = await inner.open(id);
      const kept: LogEntry[] = [];
      logs[id] = kept;
      const { appendNow: _, ...rest } = handle;
      return {
        ...rest,
        async append(entries, seq) {
          await handle.append(entries, seq);
          kept.push(...entries);
        },
      };
    },
  };
  return { store, copy: () => structuredClone(logs) };
}
