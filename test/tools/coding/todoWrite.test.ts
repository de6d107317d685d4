/** TodoWrite: the list in the log, in the state of the conversation, and in the program. */
import { expect, it } from 'vitest';
import { keptTodos, openedPlanLines, todoLines, todosOf } from '../../../src/cli/commands/keptPlan.ts';
import { TranscriptRenderer } from '../../../src/cli/interactive/conversationLines.ts';
import { rowsOf, rowText } from '../../../src/cli/interactive/textRows.ts';
import { permissions } from '../../../src/permissions/permissions.ts';
import { codingTools } from '../../../src/tools/coding/index.ts';
import { bench, only, restart, resultText } from '../../support/agentBench.ts';
import { call } from '../../support/scriptedReplies.ts';

const todos = (...states: string[]) => states.map((status, index) => ({ content: `step ${index + 1}`, status }));
const tools = () => codingTools({ sandbox: 'off', extra: ['TodoWrite'] });
const shown = (lines: ReturnType<typeof todoLines>): string[] =>
  lines.flatMap((line) => rowsOf(line, 200).map((row) => rowText(row).trimEnd()));

it('the list is kept over a restart, each call replaces it, and a call that failed does not', async () => {
  const first = await bench({
    tools: tools(),
    replies: [
      [call('c1', 'TodoWrite', { todos: todos('in_progress', 'pending') })],
      [call('c2', 'TodoWrite', { todos: todos('completed', 'in_progress', 'pending') })],
      [call('c3', 'TodoWrite', { todos: todos('unknown') })],
      'done',
    ],
  });
  await first.conversation.send('go').result;
  expect(resultText(first.conversation.log(), 'c2')).toBe(
    'The list has 3 steps: 1 completed, 1 in progress, 1 pending.',
  );
  expect(only(first.conversation.log(), 'tool-result').at(-1)).toBe('tool-result c3 failed invalid_arguments');
  const next = await restart(first, { tools: tools(), replies: [] });
  const kept = keptTodos(next.conversation.log());
  expect(kept).toEqual(todos('completed', 'in_progress', 'pending'));
  expect(next.conversation.state).toMatchObject({ todos: kept });
  expect(shown(openedPlanLines(next.conversation.log()))).toEqual([
    'the plan of this session',
    '  ✓ step 1',
    '  ▸ step 2',
    '  ☐ step 3',
  ]);
  const renderer = new TranscriptRenderer();
  const lines = shown(next.conversation.log().flatMap((entry) => renderer.entry(entry)));
  expect(lines.filter((line) => line.includes('step 3'))).toEqual(['  ☐ step 3']);
});

it('a list without open steps is not shown when the session is opened again', () => {
  expect(openedPlanLines([])).toEqual([]);
});

it('a value that is no list shows nothing, and a step cannot drive the terminal', () => {
  for (const args of [
    null,
    {},
    { todos: 1 },
    { todos: [{ content: 1, status: 'pending' }] },
    { todos: todos('other') },
  ])
    expect(todosOf('TodoWrite', args)).toBeUndefined();
  expect(todosOf('Read', { todos: todos('pending') })).toBeUndefined();
  expect(shown(todoLines([{ content: 'a\x1b[2Jb\nc', status: 'pending' }]))).toEqual(['  ☐ a\\x1b[2Jb\\nc']);
});

it('it runs unasked in every mode, and a deny rule holds', async () => {
  for (const [mode, deny, outcome] of [
    ['default', [], 'succeeded'],
    ['plan', [], 'succeeded'],
    ['dontAsk', ['TodoWrite'], 'failed denied'],
  ] as const) {
    const { conversation } = await bench({
      tools: tools(),
      plugins: [permissions({ mode, deny: [...deny] })],
      replies: [[call('c1', 'TodoWrite', { todos: todos('pending') })], 'done'],
    });
    await conversation.send('go').result;
    expect(only(conversation.log(), 'tool-result')).toEqual([`tool-result c1 ${outcome}`]);
  }
});
