/** The list of sessions from which a person chooses. Invariant: only the line after a list may choose from it, and only once. */
import { describe, expect, test } from 'vitest';
import { SessionChooser } from '../../src/cli/sessions/sessionChooser.ts';
import { createAgent, memoryStore } from '../../src/index.ts';
import { scriptedModel } from '../../src/testing/index.ts';

const LINES = ['1', ' 10 ', '11', '0', '99', '1x', 'hello', '/help', ''];
const ROWS = Array.from({ length: 12 }, (_, index) => `c${index}`);

/** A list of ten of twelve sessions. */
async function listed() {
  const agent = createAgent({ model: scriptedModel([]), store: memoryStore() });
  for (const id of [...ROWS, 'open now']) await agent.open(id);
  const shown: string[] = [];
  const chooser = new SessionChooser({
    made: () => ({ agent, cwd: process.cwd() }) as never,
    currentId: () => 'open now',
    say: (_, text) => void shown.push(text),
    terminal: { commit: (lines) => void shown.push(...lines.map((line) => JSON.stringify(line))) },
  });
  await chooser.list();
  const ids = (await agent.list()).map(({ id }) => id).filter((id) => id !== 'open now');
  return { chooser, ids, shown };
}

const chosenBy = (line: string, ids: readonly string[]): string | undefined => {
  const number = /^\s*(\d+)\s*$/.exec(line)?.[1];
  const id = number === undefined ? undefined : ids.slice(0, 10)[Number(number) - 1];
  return id === undefined ? undefined : `/resume ${id}`;
};

describe('after a list of sessions', () => {
  test.each(LINES)('the line %j chooses the row of its number or nothing, and no later line chooses', async (line) => {
    for (const later of LINES) {
      const { chooser, ids } = await listed();
      expect(chooser.take(line)).toBe(chosenBy(line, ids));
      expect(chooser.take(later)).toBeUndefined();
    }
  });

  test('another list can be chosen from again', async () => {
    const { chooser, ids, shown } = await listed();
    expect(chooser.take('hello')).toBeUndefined();
    await chooser.list();
    expect(chooser.take('2')).toBe(`/resume ${ids[1]}`);
    expect(shown.filter((line) => line.includes('2 more'))).toHaveLength(2);
  });
});
