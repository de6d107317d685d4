/**
 * The tasks of a spawn call. Rule: the model's arguments are checked field by field and bounded. A repeated id or an
 * empty task refuses the whole call, and no sub-agent starts.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec';
import { canonical, hash, type Json } from '../../machines/internal.ts';
import type { Task } from '../runtime/subAgentPort.ts';

/** The most tasks of one call; fewer run at once. */
export const TASKS_MOST = 64;
const ID_LONGEST = 64;

/**
 * The conversation id of a task. It is the same after a restart, so the log is found again. Call and task ids may
 * contain any text, so the id holds only a hash of them; the log's first entry names the parent.
 */
export function childIdOf(conversationId: string, callId: string, taskId: string): string {
  const names = canonical([conversationId, callId, taskId]);
  return `sub-${hash(names)}${hash(`${names}, the other half`)}`;
}

const ownField = (value: unknown, key: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    ? (value as { [key: string]: unknown })[key]
    : undefined;

type Issue = StandardSchemaV1.Issue;
const issue = (message: string, ...path: (string | number)[]): Issue => ({ message, path });

function readTasks(args: unknown): { tasks: Task[] } | Issue[] {
  const list = ownField(args, 'tasks');
  if (!Array.isArray(list)) return [issue('expected a list of { id, task }', 'tasks')];
  if (list.length === 0) return [issue('expected at least one task', 'tasks')];
  if (list.length > TASKS_MOST) return [issue(`at most ${TASKS_MOST} tasks a call, got ${list.length}`, 'tasks')];
  const issues: Issue[] = [];
  const tasks: Task[] = [];
  const ids = new Set<string>();
  for (const [index, item] of list.entries()) {
    const id = ownField(item, 'id');
    const task = ownField(item, 'task');
    const named = typeof id === 'string' && id !== '' && id.length <= ID_LONGEST;
    if (!named) issues.push(issue(`expected a text of 1 to ${ID_LONGEST} characters`, 'tasks', index, 'id'));
    else if (ids.has(id)) issues.push(issue(`two tasks have the id ${JSON.stringify(id)}`, 'tasks', index, 'id'));
    else ids.add(id);
    if (typeof task !== 'string' || task.trim() === '') {
      issues.push(issue('expected a text that says what to do', 'tasks', index, 'task'));
    } else if (named) tasks.push({ id, task });
  }
  return issues.length > 0 ? issues : { tasks };
}

/** A hand-written Standard Schema: a check, and the JSON Schema that the model receives. */
export function schemaOf<T>(check: (value: unknown) => T | Issue[], parameters: Json): StandardSchemaV1<unknown, T> {
  const standard = {
    version: 1 as const,
    vendor: 'runchart',
    validate: (value: unknown) => {
      const checked = check(value);
      return Array.isArray(checked) ? { issues: checked as Issue[] } : { value: checked as T };
    },
    jsonSchema: { input: () => parameters },
  };
  return { '~standard': standard };
}

const TEXT = { type: 'string', minLength: 1 };
export const taskList = schemaOf(readTasks, {
  type: 'object',
  properties: {
    tasks: {
      type: 'array',
      minItems: 1,
      maxItems: TASKS_MOST,
      items: {
        type: 'object',
        properties: {
          id: { ...TEXT, maxLength: ID_LONGEST, description: 'A short name of your choice, unique in this call.' },
          task: { ...TEXT, description: 'Everything the sub-agent needs to know: it sees nothing else of this talk.' },
        },
        required: ['id', 'task'],
        additionalProperties: false,
      },
    },
  },
  required: ['tasks'],
  additionalProperties: false,
});

/** The tasks in the logged arguments of a call. */
export function tasksOf(args: Json): Task[] {
  const tasksOrIssues = readTasks(args);
  return Array.isArray(tasksOrIssues) ? [] : tasksOrIssues.tasks;
}
