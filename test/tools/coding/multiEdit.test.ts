/** MultiEdit: several edits of one file, all of them or none; and its form in the program and in the rules. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { editedArguments } from '../../../src/cli/questions/argumentEditor.ts';
import { callPreview, fileChange } from '../../../src/cli/questions/callPreview.ts';
import { permissions } from '../../../src/permissions/permissions.ts';
import { changedText } from '../../../src/tools/coding/edit.ts';
import { codingTools } from '../../../src/tools/coding/index.ts';
import { answerOf, definitionOf, type ToolContext } from '../../../src/tools/tool.ts';
import { type Bench, makeBench } from './codingBench.ts';

let bench: Bench;
let tools: ReturnType<typeof codingTools>;
beforeEach(async () => {
  bench = await makeBench();
  tools = codingTools({ sandbox: 'off', extra: ['MultiEdit'] });
});
afterEach(() => bench.remove());

async function call(name: string, args: object): Promise<{ code?: string | undefined; text: string }> {
  const definition = definitionOf(tools.find((tool) => tool.name === name) ?? { name, description: '' });
  const checked = await definition?.parameters['~standard'].validate(args);
  if (!definition || !checked || checked.issues) return { code: 'invalid', text: '' };
  const context = { conversationId: 'c', cwd: bench.root, signal: new AbortController().signal };
  const answer = answerOf(await definition.execute(checked.value, context as unknown as ToolContext));
  if (!answer || answer.status === 'pending') throw new Error('no result');
  return { ...(answer.status === 'error' && { code: answer.code }), text: String(answer.content) };
}
const content = (): Promise<string> => readFile(join(bench.root, 'f'), 'utf8');
type Pair = [string, string, boolean?];
const edits = (...pairs: Pair[]) => ({
  file_path: 'f',
  edits: pairs.map(([old_string, new_string, replace_all]) => ({
    ...{ old_string, new_string },
    ...(replace_all !== undefined && { replace_all }),
  })),
});

async function readFirst(text: string): Promise<void> {
  await bench.write('f', text);
  await call('Read', { file_path: 'f' });
}

describe('MultiEdit', () => {
  it('makes its edits in their order, each on what the one before it left, and shows one diff', async () => {
    await readFirst('one\ntwo\nthree\n');
    const { text } = await call('MultiEdit', edits(['one', '1'], ['1\ntwo', '1\n2'], ['three', '3']));
    expect(text).toMatch(/^Changed f in 3 places\n/);
    expect(text.match(/^--- /gm)).toHaveLength(1);
    for (const line of ['-one', '-two', '-three', '+1', '+2', '+3']) expect(text.split('\n')).toContain(line);
    expect(await content()).toBe('1\n2\n3\n');
  });

  it('makes none if an edit cannot be made, and names that edit', async () => {
    await readFirst('a\nb\nb\n');
    for (const [pairs, code, text] of [
      [
        [
          ['a', 'x'],
          ['nowhere', 'y'],
        ],
        'no_match',
        'edit 2 of 2, and so none was made: old_string does not stand',
      ],
      [
        [
          ['a', 'x'],
          ['a', 'y'],
        ],
        'no_match',
        'edit 2 of 2',
      ],
      [
        [
          ['b', 'x'],
          ['a', 'y'],
        ],
        'not_unique',
        'edit 1 of 2',
      ],
      [
        [
          ['a', 'x'],
          ['b', 'b', true],
        ],
        'invalid_arguments',
        'edit 2 of 2',
      ],
      [
        [
          ['a', 'x'],
          ['x', 'a'],
        ],
        'invalid_arguments',
        'the edits undo each other',
      ],
    ] as const satisfies readonly (readonly [readonly Pair[], string, string])[]) {
      const result = await call('MultiEdit', edits(...(pairs as unknown as Pair[])));
      expect(result).toMatchObject({ code, text: expect.stringContaining(text) });
      expect(await content()).toBe('a\nb\nb\n');
    }
    expect((await call('MultiEdit', { file_path: 'f', edits: [] })).code).toBe('invalid');
  });

  it('refuses edits that would grow the file above its bound, and no question computes them', async () => {
    const text = 'a'.repeat(1_048_576);
    await readFirst(text);
    const doubled = edits(...Array.from({ length: 4 }, (): Pair => ['a', 'aa', true]));
    const why = /^edit 4 of 4, and so none was made: f would be larger than 10485760 bytes/;
    expect(await call('MultiEdit', doubled)).toEqual({ code: 'too_large', text: expect.stringMatching(why) });
    const preview = await callPreview('MultiEdit', doubled, { cwd: bench.root, place: undefined });
    expect(preview).toMatchObject({ kind: 'no change', why: expect.stringMatching(why) });
    expect((await content()) === text).toBe(true);
  });

  it('takes a bounded time, lets other work run between two edits, and ends with its call', async () => {
    const text = 'a'.repeat(1_000_000);
    const file = { text, hasMark: false, isCrlf: false };
    const each = { old_string: 'a', new_string: 'b', replace_all: true };
    const many = [each, { ...each, old_string: 'b', new_string: 'c' }, { ...each, old_string: 'c', new_string: 'd' }];
    const late = await changedText(file, many, 'f', { cpuMs: 1 });
    const message = expect.stringMatching(/^edit [23] of 3, and so none was made: .* more than 1 ms/);
    expect(late).toEqual({ kind: 'refused', code: 'timeout', message });
    const order: string[] = [];
    const ended = new AbortController();
    const cancelled = changedText(file, many, 'f', { signal: ended.signal });
    setImmediate(() => order.push('other work'));
    setImmediate(() => ended.abort(new Error('cancelled')));
    await expect(cancelled.catch((error: Error) => order.push(error.message))).resolves.toBe(2);
    expect(order).toEqual(['other work', 'cancelled']);
  });

  it('needs a file that was read, as it is now, and stays inside the working directory', async () => {
    await bench.write('f', 'a\n');
    expect((await call('MultiEdit', edits(['a', 'b']))).code).toBe('not_read');
    await readFirst('a\n');
    await writeFile(join(bench.root, 'f'), 'a other\n');
    expect((await call('MultiEdit', edits(['a', 'b']))).code).toBe('stale_read');
    const outside = { ...edits(['a', 'b']), file_path: '../ws-evil/s' };
    expect((await call('MultiEdit', outside)).code).toBe('outside_workspace');
  });

  it('has the effect of the same edits made one by one', async () => {
    const word = fc.constantFrom('a', 'b', 'ab', '\n', 'c');
    const pair = fc.tuple(word, word, fc.boolean()).map(([from, to, all]): Pair => [from, to, all]);
    await fc.assert(
      fc.asyncProperty(
        fc.stringMatching(/^[abc\n]{0,12}$/),
        fc.array(pair, { minLength: 1, maxLength: 4 }),
        async (text, pairs) => {
          await readFirst(text);
          const together = await call('MultiEdit', edits(...pairs));
          const after = await content();
          await readFirst(text);
          let isFine = true;
          for (const each of pairs) {
            const [old_string, new_string, replace_all] = each;
            isFine &&= (await call('Edit', { file_path: 'f', old_string, new_string, replace_all })).code === undefined;
          }
          if (together.code === undefined) expect([isFine, await content()]).toEqual([true, after]);
          else expect(after).toBe(text);
        },
      ),
      { numRuns: 40 },
    );
  });
});

describe('a question about MultiEdit', () => {
  it('shows all edits as one diff, or why nothing can be shown', async () => {
    await bench.write('f', 'one\ntwo\nthree\n');
    const where = { cwd: bench.root, place: undefined };
    const preview = await callPreview('MultiEdit', edits(['one', '1'], ['three', '3']), where);
    expect(preview).toMatchObject({
      kind: 'change',
      path: 'f',
      patch: expect.stringMatching(/-one\n\+1\n two\n-three\n\+3/),
    });
    const failing = await callPreview('MultiEdit', edits(['one', '1'], ['four', '4']), where);
    expect(failing).toMatchObject({ kind: 'no change', why: expect.stringContaining('edit 2 of 2') });
  });

  it('shows the arguments where they are not those of the tool', () => {
    for (const args of [
      { file_path: 'f' },
      { file_path: 'f', edits: [{ old_string: 'a' }] },
      { file_path: 'f', edits: [{ old_string: 'a', new_string: 'b', more: 1 }] },
      { ...edits(['a', 'b']), more: 1 },
      { ...edits(['a', 'b']), replace_all: true },
    ])
      expect(fileChange('MultiEdit', args)).toBeUndefined();
    expect(fileChange('Write', { file_path: 'f', content: '', replace_all: true })).toBeUndefined();
  });

  it('opens all arguments in the editor', async () => {
    const edited = await editedArguments('MultiEdit', edits(['a', 'b']), 'sed -i \'s/"b"/"c"/\'');
    expect(edited).toEqual({ kind: 'edited', args: edits(['a', 'c']) });
  });
});

describe('the rules', () => {
  it('judge MultiEdit as Edit, by the path', async () => {
    const rules = permissions({ allow: ['edit(./src/**)'], deny: ['write(**/.env)'], ask: ['multiedit(./src/x)'] });
    for (const file_path of ['src/a', 'src/x', '.env', 'b', '../out', '.git/config']) {
      const edit = await rules.explain('Edit', { file_path, old_string: 'a', new_string: 'b' }, bench.root);
      const multi = await rules.explain('MultiEdit', { ...edits(['a', 'b']), file_path }, bench.root);
      expect([file_path, multi.outcome, multi.by]).toEqual([file_path, edit.outcome, edit.by]);
    }
    const mode = permissions({ mode: 'acceptEdits' });
    expect((await mode.explain('MultiEdit', edits(['a', 'b']), bench.root)).outcome).toBe('allow');
    expect((await permissions({ mode: 'plan' }).explain('MultiEdit', edits(['a', 'b']), bench.root)).outcome).toBe(
      'deny',
    );
  });
});
