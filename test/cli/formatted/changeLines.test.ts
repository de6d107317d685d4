/** Changes of files as lines: in a question and after the call, from real files. */
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { changeCounts, changeLines, newFileLines } from '../../../src/cli/formatted/changeLines.ts';
import formats from '../../../src/cli/formatted/textFormats.ts';
import { approvalLines } from '../../../src/cli/interactive/approval.ts';
import { rowsOf, rowText, type TextLine } from '../../../src/cli/interactive/textRows.ts';
import { editedArguments } from '../../../src/cli/questions/argumentEditor.ts';
import { callPreview } from '../../../src/cli/questions/callPreview.ts';
import type { Span } from '../../../src/cli/screen.ts';
import { patchOf } from '../../../src/tools/coding/fileText.ts';

const MARK: Span = ['plain', '  '];
const textsOf = (lines: readonly TextLine[], width = 100): string[] =>
  lines.flatMap((line) => rowsOf(line, width).map((row) => rowText(row).trimEnd()));
const marked = (lines: readonly TextLine[]): string[] =>
  lines.flatMap(({ spans }) => spans.flatMap(([style, text]) => (/Word$/.test(style) ? [`${style} ${text}`] : [])));

async function files(contents: Record<string, string>): Promise<string> {
  const cwd = await realpath(await mkdtemp(join(tmpdir(), 'runchart-change-')));
  onTestFinished(() => rm(cwd, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(contents)) await writeFile(join(cwd, name), text);
  return cwd;
}

async function asked(name: string, args: object, cwd: string, linesMax = 20): Promise<string[]> {
  const preview = await callPreview(name, args as never, { cwd, place: undefined });
  const call = { callId: 'c', name, args: args as never, reason: 'permission', suspension: 1, path: ['c'] };
  return textsOf(approvalLines(call, preview && { preview, formats, linesMax }), 200);
}

describe('a diff', () => {
  test('the remark about a missing line end comes after the line that has none', async () => {
    const added = changeLines((await patchOf('a', 'one\ntwo', 'one\n2\n')) ?? '', MARK);
    expect(textsOf(added)).toEqual(['  1   one', '  2 - two', '  No newline at end of file', '  2 + 2']);
    const both = changeLines((await patchOf('a', 'one', 'two')) ?? '', MARK);
    const remark = '  No newline at end of file';
    expect(textsOf(both)).toEqual(['  1 - one', remark, '  1 + two', remark]);
  });

  const before = 'one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n';

  test('it has the numbers of the lines, and the changed words are marked', async () => {
    const after = before.replace('two', 'two and a half').replace('nine', 'nine  ').replace('ten\n', 'ten\neleven\n');
    const lines = changeLines((await patchOf('a', before, after)) ?? '', MARK);
    expect(textsOf(lines)).toEqual([
      '   1   one',
      '   2 - two',
      '   2 + two and a half',
      '   3   three',
      '   4   four',
      '   5   five',
      '   6   six',
      '   7   seven',
      '   8   eight',
      '   9 - nine',
      '   9 + nine··',
      '  10   ten',
      '  11 + eleven',
    ]);
    expect(marked(lines)).toEqual(['addedWord  and a half', 'addedWord ··']);
  });

  test('distant changes are separated, and lines with little in common have no marks', async () => {
    const after = before.replace('one', 'a completely other text').replace('ten', 'zehn');
    const lines = changeLines((await patchOf('a', before, after)) ?? '', MARK);
    expect(textsOf(lines)).toContain('  ⋯');
    expect(marked(lines)).toEqual([]);
  });

  test('lines that look like a hunk or a header of a diff are lines', async () => {
    const patch = (await patchOf('a', '-- x\nb\n', '++ y\n@@ -1 +1 @@\nb\n')) ?? '';
    expect(textsOf(changeLines(patch, MARK))).toEqual(['  1 - -- x', '  1 + ++ y', '  2 + @@ -1 +1 @@', '  3   b']);
    expect(changeCounts(patch)).toEqual({ added: 2, removed: 1 });
    expect(changeCounts('no diff at all')).toBeUndefined();
  });

  test('both texts can be read from the lines', () => {
    const text = fc.array(fc.constantFrom('a', 'b b', '', '-', '+ x', '@@ -1 +1 @@', '\t\tz'), { maxLength: 12 });
    return fc.assert(
      fc.asyncProperty(text, text, async (one, other) => {
        const [old, current] = [one, other].map((lines) => lines.map((line) => `${line}\n`).join(''));
        const patch = (await patchOf('a', old ?? '', current ?? '')) ?? '';
        const shown = changeLines(patch, MARK).map(({ spans }) =>
          spans
            .slice(2)
            .map(([, part]) => part)
            .join(''),
        );
        const side = (skipped: string) =>
          shown.filter((line) => line !== '' && !line.startsWith(skipped)).map((line) => line.slice(2));
        // Far lines are left out.
        expect(one.join('\n')).toContain(side('+')[0] ?? '');
        const counts = changeCounts(patch);
        if (one.length < 4 && other.length < 4 && counts) {
          expect(side('+')).toEqual(one);
          expect(side('-')).toEqual(other);
        }
      }),
    );
  });

  test('H-079 a hidden character is an escape, and every row has the mark', async () => {
    const patch = (await patchOf('a', 'x\n', 'x\u202e\u200d\u001b[2J\ty\n')) ?? '';
    expect(textsOf(changeLines(patch, ['yellow', '┃ ']))).toEqual(['┃ 1 - x', '┃ 1 + x\\u202e\\u200d\\x1b[2J    y']);
    for (const row of textsOf(newFileLines('word '.repeat(40), ['yellow', '┃ ']), 30)) expect(row).toMatch(/^┃ /);
  });
});

describe('a question about a file', () => {
  test('it shows the change of Edit and Write, and folds what is longer than a screen', async () => {
    const cwd = await files({ 'a.ts': 'const a = 1;\nconst b = 2;\n' });
    expect(await asked('Edit', { file_path: 'a.ts', old_string: 'b = 2', new_string: 'b = "x"\\n' }, cwd)).toEqual([
      '┃ Edit asks to change a.ts (permission)',
      '┃ 1   const a = 1;',
      '┃ 2 - const b = 2;',
      '┃ 2 + const b = "x"\\n;',
    ]);
    const content = Array.from({ length: 30 }, (_, index) => `line ${index}\n`).join('');
    expect(await asked('Write', { file_path: 'new.txt', content }, cwd, 2)).toEqual([
      '┃ Write asks to create new.txt (permission)',
      '┃  1 + line 0',
      '┃  2 + line 1',
      '┃ … 28 more lines: v shows them',
    ]);
    expect(await asked('Write', { file_path: 'a.ts', content: 'const a = 1;\n' }, cwd)).toContain('┃ 2 - const b = 2;');
  });

  test('if nothing can be compared, it has the reason and shows the arguments as lines', async () => {
    const cwd = await files({ 'a.ts': 'a\na\n' });
    const edit = { file_path: 'a.ts', old_string: 'z\n  y', new_string: '"' };
    expect(await asked('Edit', edit, cwd)).toEqual([
      '┃ Edit asks to run on a.ts (permission)',
      expect.stringMatching(/^┃ old_string does not stand in a\.ts/),
      '┃ file_path: a.ts',
      '┃ old_string: |',
      '┃   z',
      '┃     y',
      '┃ new_string: "\\""',
    ]);
    for (const file_path of ['/etc/passwd', '.', 'b.ts', '/dev/zero'])
      expect((await asked('Edit', { ...edit, file_path }, cwd))[0]).toContain('asks to run on');
    // Arguments that the tool does not have are shown.
    expect(await asked('Edit', { ...edit, extra: { deep: ['x', 'true'] } }, cwd)).toContain('┃     - "true"');
  });
});

describe('the editor', () => {
  const edit = (name: string, args: object, script: string) =>
    editedArguments(name, args as never, `sh -c '${script}' x`);

  test.for<[string, object, string, object]>([
    [
      'Bash',
      { command: 'ls', timeoutMs: 5 },
      'echo pwd > "$1"',
      { kind: 'edited', args: { command: 'pwd', timeoutMs: 5 } },
    ],
    [
      'Edit',
      { file_path: 'a.ts', old_string: 'a', new_string: 'b' },
      'case "$1" in *.ts) printf c > "$1";; esac',
      { kind: 'edited', args: { file_path: 'a.ts', old_string: 'a', new_string: 'c' } },
    ],
    [
      'Write',
      { file_path: 'a', content: 'b\n' },
      'printf "c\\n" >> "$1"',
      { kind: 'edited', args: { file_path: 'a', content: 'b\nc\n' } },
    ],
    ['Other', { a: [1] }, 'echo "[2]" > "$1"', { kind: 'edited', args: [2] }],
    ['Other', { a: [1] }, 'echo "[" > "$1"', { kind: 'failed' }],
    ['Bash', { command: 'ls' }, 'echo >> "$1"', { kind: 'unchanged' }],
    ['Bash', { command: 'ls' }, 'exit 3', { kind: 'failed', why: 'the editor ended with 3' }],
  ])('%s %j after %s', async ([name, args, script, wanted]) => {
    expect(await edit(name, args, script)).toMatchObject(wanted);
  });
});
