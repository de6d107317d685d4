/** TodoWrite and ExitPlanMode: the words of their results, and both sides of each bound of their arguments. */
import { describe, expect, it } from 'vitest';
import { exitPlanModeTool } from '../../../src/tools/coding/plan/exitPlanMode.ts';
import { TODO_STATES, todoWriteTool } from '../../../src/tools/coding/plan/todoWrite.ts';
import { answerOf, definitionOf, type Tool, type ToolContext } from '../../../src/tools/tool.ts';

/** The result of a call, or undefined if its arguments are refused. */
async function called(tool: Tool, args: object, conversationId = 'c') {
  const definition = definitionOf(tool);
  const checked = await definition?.parameters['~standard'].validate(args);
  if (!definition || !checked || checked.issues) return undefined;
  return answerOf(await definition.execute(checked.value, { conversationId } as ToolContext));
}
const step = (content: string, status: string = 'pending') => ({ content, status });

describe('TodoWrite', () => {
  it.each<[string[], string]>([
    [[], 'The list has 0 steps: 0 completed, 0 in progress, 0 pending.'],
    [['pending'], 'The list has 1 step: 0 completed, 0 in progress, 1 pending.'],
    [['in_progress'], 'The list has 1 step: 0 completed, 1 in progress, 0 pending.'],
    [['completed', 'completed'], 'The list has 2 steps: 2 completed, 0 in progress, 0 pending.'],
    [
      ['completed', 'in_progress', 'pending', 'in_progress', 'pending', 'pending'],
      'The list has 6 steps: 1 completed, 2 in progress, 3 pending.',
    ],
  ])('counts the steps of %j, and keeps them in the state', async (states, text) => {
    const todos = states.map((status, at) => step(`step ${at}`, status));
    expect(await called(todoWriteTool, { todos })).toEqual({ status: 'success', content: text, state: { todos } });
  });

  it.each<[object, boolean]>([
    [{ todos: Array.from({ length: 100 }, () => step('a')) }, true],
    [{ todos: Array.from({ length: 101 }, () => step('a')) }, false],
    [{ todos: [step('a'.repeat(500))] }, true],
    [{ todos: [step('a'.repeat(501))] }, false],
    [{ todos: [step('')] }, false],
    [{ todos: [step(' \n')] }, false],
    ...TODO_STATES.map((state): [object, boolean] => [{ todos: [step('a', state)] }, true]),
    [{ todos: [step('a', 'done')] }, false],
    [{ todos: [{ content: 'a' }] }, false],
    [{}, false],
  ])('%# is accepted: %s', async (args, isAccepted) => {
    expect((await called(todoWriteTool, args)) !== undefined).toBe(isAccepted);
  });

  it('stores a step without the blanks around it', async () => {
    expect(await called(todoWriteTool, { todos: [step(' a b\n')] })).toMatchObject({ state: { todos: [step('a b')] } });
  });
});

describe('ExitPlanMode', () => {
  it('ends plan mode in its own conversation, and names the mode that follows', async () => {
    const ended: string[] = [];
    const tool = exitPlanModeTool({
      endPlan: (conversationId) => void ended.push(conversationId),
      modeOf: (conversationId) => (ended.includes(conversationId) ? `after ${conversationId}` : 'plan'),
    });
    expect(await called(tool, { plan: 'x' }, 'other')).toMatchObject({
      content: expect.stringContaining('the mode is after other: carry the plan out now.'),
    });
    expect(ended).toEqual(['other']);
  });

  it.each([
    ['a', true],
    [' a ', true],
    ['a'.repeat(50_000), true],
    ['a'.repeat(50_001), false],
    ['', false],
    [' \n\t', false],
  ])('takes a plan of 1 to 50,000 characters (%#): %s', async (plan, isAccepted) => {
    const tool = exitPlanModeTool({ endPlan: () => undefined, modeOf: () => 'default' });
    expect((await called(tool, { plan })) !== undefined).toBe(isAccepted);
    expect(definitionOf(tool)).toMatchObject({ needsApproval: true, readOnly: true });
  });
});
