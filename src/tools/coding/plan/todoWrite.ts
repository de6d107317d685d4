/**
 * The TodoWrite tool keeps the model's plan as a list. Rule: each call replaces the whole list. The list is in the log
 * and in the conversation's state, so it survives a restart.
 */
import * as z from 'zod';
import { defineTool, type Tool, toolResult } from '../../tool.ts';

const ITEMS_MAX = 100;
const ITEM_CHARACTERS_MAX = 500;

export const TODO_STATES = ['pending', 'in_progress', 'completed'] as const;

const todo = z.object({
  content: z.string().trim().min(1).max(ITEM_CHARACTERS_MAX).describe('What is to be done, in a few words.'),
  status: z.enum(TODO_STATES),
});
export type Todo = z.infer<typeof todo>;

export const todoWriteTool: Tool = defineTool({
  name: 'TodoWrite',
  description:
    'Keeps the plan of work with several steps as a list that the user sees. Each call gives the whole list. Mark one ' +
    'step in_progress before it begins, and completed as soon as it is done.',
  parameters: z.object({ todos: z.array(todo).max(ITEMS_MAX).describe('All steps, in their order.') }),
  // It changes nothing but the conversation.
  readOnly: true,
  idempotent: true,
  group: 'other-group',
  execute({ todos }) {
    const counts = TODO_STATES.map((state) => todos.filter(({ status }) => status === state).length);
    const [pending, started, completed] = counts;
    const text = `The list has ${todos.length === 1 ? '1 step' : `${todos.length} steps`}: ${completed} completed, ${started} in progress, ${pending} pending.`;
    return toolResult.success(text, { state: { todos } });
  },
});
