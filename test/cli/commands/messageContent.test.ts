/** The content of messages, and the commands that a person runs with `!`: bounds, ends, and files that are never attached. */
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { attachedFile, commandNote, messageContent, personCommand } from '../../../src/cli/commands/messageContent.ts';
import { editedArguments } from '../../../src/cli/questions/argumentEditor.ts';
import { fileChange } from '../../../src/cli/questions/callPreview.ts';

let root = '';
let cwd = '';
beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'runchart-content-')));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  cwd = join(root, 'work');
  await mkdir(cwd);
});
const textsOf = async (text: string, notes: readonly string[] = [], meaning: string[] = []): Promise<unknown> => {
  const content = await messageContent(text, notes, cwd, meaning);
  return typeof content === 'string' ? content : content.map((part) => (part.type === 'text' ? part.text : part.type));
};

describe('a message', () => {
  test('without files, notes or a command is its text', async () => {
    expect(await textsOf('a @ b @none a@b.c')).toBe('a @ b @none a@b.c');
  });

  test('is followed by the meaning of its command, the files that both name, and the notes', async () => {
    for (const name of ['a', 'b']) await writeFile(join(cwd, name), name);
    expect(await textsOf('/do @a @a', ['note 1', 'note 2'], ['means @b'])).toEqual([
      ...['/do @a @a', 'means @b', '[attached a, 1 line]\na', '[attached b, 1 line]\nb', 'note 1', 'note 2'],
    ]);
  });

  test('has at most ten files', async () => {
    const names = Array.from({ length: 11 }, (_, index) => `f${index}`);
    for (const name of names) await writeFile(join(cwd, name), name);
    const texts = await textsOf(names.map((name) => `@${name}`).join('\n'));
    expect(texts).toHaveLength(11);
    expect(texts).not.toContain('[attached f10, 1 line]\nf10');
  });

  test('has the file after ten words that name none', async () => {
    await writeFile(join(cwd, 'f'), 'f');
    const words = Array.from({ length: 10 }, (_, index) => `@Decorator${index}`).join(' ');
    expect(await textsOf(`${words} @f`)).toEqual([`${words} @f`, '[attached f, 1 line]\nf']);
  });
});

describe('a file of a message', () => {
  test.each([
    ['', '[attached f, 1 line]\n'],
    ['a\n', '[attached f, 1 line]\na\n'],
    ['a\nb', '[attached f, 2 lines]\na\nb'],
    ['x'.repeat(100_000), `[attached f, 1 line]\n${'x'.repeat(100_000)}`],
    [`${'x'.repeat(99_999)}🎉`, `[attached f, 1 line, the first 99999 characters]\n${'x'.repeat(99_999)}`],
    ['x'.repeat(100_001), `[attached f, 1 line, the first 100000 characters]\n${'x'.repeat(100_000)}`],
  ])('%# is a text with its lines, cut at 100,000 characters', async (content, text) => {
    await writeFile(join(cwd, 'f'), content);
    expect(await attachedFile('f', cwd)).toEqual([{ type: 'text', text }]);
  });

  test('is an image by its bytes, a note if it is no text, and nothing if it lies outside, is missing or a directory', async () => {
    const png = Buffer.from('89504e470d0a1a0a0000000d4948445200000001', 'hex');
    await writeFile(join(cwd, 'image.txt'), png);
    await writeFile(join(cwd, 'binary'), Buffer.from([0, 1, 2]));
    await writeFile(join(root, 'outside'), 'secret');
    await symlink(join(root, 'outside'), join(cwd, 'link'));
    const [label, image] = await attachedFile('image.txt', cwd);
    expect(label).toEqual({ type: 'text', text: '[attached image.txt, image/png]' });
    expect(image).toMatchObject({ type: 'image', mediaType: 'image/png' });
    expect(await attachedFile('binary', cwd)).toEqual([
      { type: 'text', text: expect.stringContaining('[binary is not attached: ') },
    ]);
    for (const name of ['../outside', join(root, 'outside'), 'link', 'none', '.', ''])
      expect([name, await attachedFile(name, cwd)]).toEqual([name, []]);
  });
});

const never = (): AbortSignal => new AbortController().signal;

describe.skipIf(process.platform === 'win32')('a command of the person', () => {
  test.each([
    ['exit 0', 'exit code 0'],
    ['exit 3', 'exit code 3'],
    ['kill -9 $$', 'ended by SIGKILL'],
    ['no-such-program-here', 'exit code 127'],
  ])('%s reports %s', async (command, end) => {
    expect((await personCommand(command, cwd, never())).end).toBe(end);
  });

  test('runs in the working directory, prints both outputs and has no input', async () => {
    const { output } = await personCommand('pwd; echo e >&2; cat; echo end', cwd, never());
    expect(output.split('\n').sort()).toEqual(['', cwd, 'e', 'end'].sort());
    expect(commandNote('x', { output, end: 'exit code 0' })).toBe(`[I ran x: exit code 0]\n${output}`);
  });

  test.each([
    [16_384, undefined],
    [16_385, 1],
    [20_000, 3_616],
  ])('of %i characters of output keeps the first and the last 8,192, and counts the others', async (length, left) => {
    const { output } = await personCommand(`head -c ${length - 2} /dev/zero | tr '\\0' x; printf yz`, cwd, never());
    if (left === undefined) return expect(output).toBe(`${'x'.repeat(length - 2)}yz`);
    expect(output).toBe(`${'x'.repeat(8_192)}\n[${left} characters are left out]\n${'x'.repeat(8_190)}yz`);
  });

  test('has no half of a character beside what is left out', async () => {
    const pairs = (count: number): string => `for i in $(seq ${count}); do printf 🎉; done`;
    const { output } = await personCommand(`printf x; ${pairs(9_000)}; printf x`, cwd, never());
    const [first = '', gap, last] = output.split('\n');
    expect(first).toBe(`x${'🎉'.repeat(4_095)}`);
    expect(gap).toBe(`[${18_002 - 2 * first.length} characters are left out]`);
    expect(last).toBe(`${'🎉'.repeat(4_095)}x`);
  });

  test('is ended with what it started by an abort, before it begins and while it runs', async () => {
    expect((await personCommand('sleep 1000', cwd, AbortSignal.abort())).end).toBe('ended by SIGKILL');
    const running = new AbortController();
    const ended = personCommand('sleep 1000 & echo up > up; wait', cwd, running.signal);
    await expect.poll(() => attachedFile('up', cwd)).toHaveLength(1);
    running.abort();
    expect((await ended).end).toBe('ended by SIGKILL');
  });

  test('ends with the program, whatever ends it', async () => {
    const before = process.listeners('exit');
    const running = personCommand('sleep 60 & sleep 60', cwd, never());
    for (const listener of process.listeners('exit')) if (!before.includes(listener)) listener(0);
    expect((await running).end).toBe('ended by SIGKILL');
    expect(process.listeners('exit')).toEqual(before);
  }, 10_000);

  test('whose shell does not exist is an error, and an abort then ends no other process', async () => {
    const kill = vi.spyOn(process, 'kill').mockImplementation(() => true);
    vi.stubEnv('SHELL', join(root, 'no-shell'));
    onTestFinished(() => {
      kill.mockRestore();
      vi.unstubAllEnvs();
    });
    await expect(personCommand('exit', cwd, AbortSignal.abort())).rejects.toThrow('ENOENT');
    // The number 0 means the group of this program.
    expect(kill.mock.calls.filter(([pid]) => pid === 0)).toEqual([]);
  });
});

describe('the change that a call would make', () => {
  const edit = { old_string: 'a', new_string: 'b' };
  test.each<[string, object, boolean]>([
    ['Write', { file_path: 'f', content: 'c' }, true],
    ['Write', { file_path: 'f', content: 'c', replace_all: true }, false],
    ['Write', { file_path: 'f', content: 'c', mode: 1 }, false],
    ['Write', { file_path: 'f' }, false],
    ['Write', { file_path: 'f', content: 1 }, false],
    ['Edit', { file_path: 'f', ...edit }, true],
    ['Edit', { file_path: 'f', ...edit, replace_all: false }, true],
    ['Edit', { file_path: 'f', ...edit, replace_all: 'yes' }, false],
    ['Edit', { file_path: 'f', ...edit, other: 'x' }, false],
    ['Edit', { file_path: 'f', old_string: 'a' }, false],
    ['MultiEdit', { file_path: 'f', edits: [edit, { ...edit, replace_all: true }] }, true],
    ['MultiEdit', { file_path: 'f', edits: [edit, {}] }, false],
    ['MultiEdit', { file_path: 'f', edits: [edit, 'x'] }, false],
    ['MultiEdit', { file_path: 'f', edits: edit }, false],
    ['MultiEdit', { edits: [edit] }, false],
    ['Read', { file_path: 'f', content: 'c' }, false],
    ['Bash', { command: 'x' }, false],
  ])('%s with %j is determined exactly: %s', (name, args, isKnown) => {
    expect(fileChange(name, args as never)).toEqual(isKnown ? args : undefined);
  });
});

describe.skipIf(process.platform === 'win32')('arguments in an editor', () => {
  const edited = (name: string, args: object, script: string) =>
    editedArguments(name, args as never, `sh -c '${script}' editor`);
  test.each<[string, object, string, object]>([
    ['Bash', { command: 'a', timeoutMs: 1 }, 'printf b > "$1"', { command: 'b', timeoutMs: 1 }],
    ['Bash', { command: 'a' }, 'echo b > "$1"', { command: 'b' }],
    ['Bash', { command: 'a\n' }, 'echo b > "$1"', { command: 'b\n' }],
    ['Write', { file_path: 'f.ts', content: 'a' }, 'printf b > "$1"', { file_path: 'f.ts', content: 'b' }],
    [
      'Edit',
      { file_path: 'f', old_string: 'o', new_string: 'a' },
      'printf b > "$1"',
      { file_path: 'f', old_string: 'o', new_string: 'b' },
    ],
    ['Deploy', { to: 'a' }, 'echo "{\\"to\\":1}" > "$1"', { to: 1 }],
  ])('%s %j after %s are %j', async (name, args, script, wanted) => {
    expect(await edited(name, args, script)).toEqual({ kind: 'edited', args: wanted });
  });

  test('that nobody changed, or only by an end of the last line, are unchanged', async () => {
    for (const script of ['true', 'echo >> "$1"'])
      expect(await edited('Bash', { command: 'a' }, script)).toEqual({ kind: 'unchanged' });
    expect(await edited('Deploy', { to: 'a' }, 'true')).toEqual({ kind: 'unchanged' });
  });

  test('stay as they are if the editor fails, is killed or leaves no JSON', async () => {
    for (const [script, why] of [
      ['exit 3', 'the editor ended with 3'],
      ['kill -9 $$', 'the editor ended with'],
      ['rm "$1"', 'ENOENT'],
    ] as const)
      expect(await edited('Bash', { command: 'a' }, script)).toEqual({
        kind: 'failed',
        why: expect.stringContaining(why),
      });
    expect(await edited('Deploy', { to: 'a' }, 'echo x > "$1"')).toMatchObject({ kind: 'failed' });
  });

  test('stay as they are if there is no place for their file', async () => {
    vi.stubEnv('TMPDIR', join(root, 'none'));
    onTestFinished(() => void vi.unstubAllEnvs());
    expect(await edited('Bash', { command: 'a' }, 'echo b > "$1"')).toEqual({
      kind: 'failed',
      why: expect.stringContaining('ENOENT'),
    });
  });

  test.each<[string, object, string]>([
    ['Bash', { command: 'a' }, '.sh'],
    ['Write', { file_path: 'd/f.ts', content: 'a' }, '.ts'],
    ['Write', { file_path: 'f', content: 'a' }, '.txt'],
    ['Write', { file_path: "f.t's", content: 'a' }, '.txt'],
    ['Write', { file_path: `f.${'x'.repeat(11)}`, content: 'a' }, '.txt'],
    ['Deploy', { to: 'a' }, '.json'],
  ])('%s %j are a private file that ends with %s and is removed afterwards', async (name, args, extension) => {
    const seen = join(root, 'seen');
    await edited(name, args, `stat -c "%a %n" "$1" > ${seen} 2>/dev/null || stat -f "%Lp %N" "$1" > ${seen}; exit 1`);
    const { readFile, access } = await import('node:fs/promises');
    const [mode, path = ''] = (await readFile(seen, 'utf8')).trim().split(' ');
    expect([mode, path.endsWith(`arguments${extension}`)]).toEqual(['600', true]);
    await expect(access(path)).rejects.toThrow('ENOENT');
  });
});
