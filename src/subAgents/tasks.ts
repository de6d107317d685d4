/**
 * The tasks of a spawn call. Rule: what a model writes is read field by field and bounded; a task that cannot be told
 * from another one, or holds nothing to do, refuses the whole call, and nothing is begun.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec';
import { canonical, hash, type Json } from '../../machines/internal.ts';
import type { Task } from '../runtime/subAgentPort.ts';

/** How many tasks one call may hold; fewer of them run at once. */
export const TASKS_MOST = 64;
const ID_LONGEST = 64;

/**
 * The conversation of a task: the same whenever it is asked for, so that a restart finds it. Ids of calls and tasks are
 * any text, so they are not part of it as they are; whose log it is says its first entry.
 */
export function childIdOf(conversationId: string, callId: string, taskId: string): string {
  const names = canonical([conversationId, callId, taskId]);
  return `sub-${hash(names)}${hash(`${names}, the other half`)}`;
}

const own = (value: unknown, key: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    ? (value as { [key: string]: unknown })[key]
    : undefined;

type Issue = StandardSchemaV1.Issue;
const issue = (message: string, ...path: (string | number)[]): Issue => ({ message, path });

function read(given: unknown): { tasks: Task[] } | Issue[] {
  const list = own(given, 'tasks');
  if (!Array.isArray(list)) return [issue('expected a list of { id, task }', 'tasks')];
  if (list.length === 0) return [issue('expected at least one task', 'tasks')];
  if (list.length > TASKS_MOST) return [issue(`at most ${TASKS_MOST} tasks a call, got ${list.length}`, 'tasks')];
  const issues: Issue[] = [];
  const tasks: Task[] = [];
  const ids = new Set<string>();
  for (const [index, item] of list.entries()) {
    const id = own(item, 'id');
    const task = own(item, 'task');
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

/** The same for any Standard Schema that is written by hand: what it accepts, and how a model is told. */
export function schemaOf<T>(check: (given: unknown) => T | Issue[], parameters: Json): StandardSchemaV1<unknown, T> {
  const standard = {
    version: 1 as const,
    vendor: 'runchart',
    validate: (given: unknown) => {
      const checked = check(given);
      return Array.isArray(checked) ? { issues: checked as Issue[] } : { value: checked as T };
    },
    jsonSchema: { input: () => parameters },
  };
  return { '~standard': standard };
}

const TEXT = { type: 'string', minLength: 1 };
export const taskList = schemaOf(read, {
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

/** The tasks of a call whose arguments stand in the log. */
export function tasksOf(args: Json): Task[] {
  const given = read(args);
  return Array.isArray(given) ? [] : given.tasks;
}
