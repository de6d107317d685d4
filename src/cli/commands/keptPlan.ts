/**
 * The list that TodoWrite keeps, as lines. Invariant: arguments that are no such list show nothing. The list of a session comes from its
 * last successful call that was not undone.
 */
import { type Json, type LogEntry, standingEntries } from '../../../machines/internal.ts';
import { printableLine } from '../../printable.ts';
import { TODO_STATES, type Todo } from '../../tools/coding/plan/todoWrite.ts';
import { isObject } from '../../validation.ts';
import { count } from '../costTally.ts';
import { FOREIGN, ownLine, type TextLine } from '../interactive/textRows.ts';
import type { Span, Style } from '../screen.ts';

const MARKS: { readonly [State in Todo['status']]: readonly [Style, string, Style] } = {
  pending: ['plain', '☐ ', 'plain'],
  in_progress: ['cyan', '▸ ', 'bold'],
  completed: ['green', '✓ ', 'dim'],
};

/** Undefined for another tool. */
export function todosOf(name: string, args: Json): readonly Todo[] | undefined {
  if (name !== 'TodoWrite' || !isObject(args) || !Array.isArray(args.todos)) return undefined;
  return args.todos.every(isTodo) ? args.todos : undefined;
}

const isTodo = (value: unknown): value is Todo =>
  isObject(value) && typeof value.content === 'string' && TODO_STATES.some((state) => state === value.status);

export const todoLines = (todos: readonly Todo[]): TextLine[] =>
  todos.map(({ content, status }) => {
    const [markStyle, mark, style] = MARKS[status];
    const spans: Span[] = [
      [markStyle, mark],
      [style, printableLine(content)],
    ];
    return ownLine(['plain', FOREIGN], ...spans);
  });

export const doneText = (todos: readonly Todo[]): string =>
  `${todos.filter(({ status }) => status === 'completed').length} of ${count(todos.length, 'step')} done`;

/** The latest list in the log; empty if there is none. */
export function keptTodos(entries: readonly LogEntry[]): readonly Todo[] {
  const calls = new Map<string, readonly Todo[]>();
  let kept: readonly Todo[] = [];
  for (const entry of standingEntries(entries)) {
    if (entry.type === 'agent-output' && entry.item.type === 'tool-call') {
      const todos = todosOf(entry.item.name, entry.item.args);
      if (todos) calls.set(entry.item.callId, todos);
    } else if (entry.type === 'tool-result' && entry.outcome === 'succeeded') kept = calls.get(entry.callId) ?? kept;
  }
  return kept;
}

/** The list of a reopened session, if one of its steps is not done. */
export function openedPlanLines(entries: readonly LogEntry[]): TextLine[] {
  const todos = keptTodos(entries);
  if (todos.every(({ status }) => status === 'completed')) return [];
  return [ownLine(['bold', 'the plan of this session']), ...todoLines(todos)];
}
