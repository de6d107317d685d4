/** Write and Edit: their changes, the kept properties, and the refusals. */
import { existsSync } from 'node:fs';
import { chmod, link, lstat, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { codingTools } from '../../../src/tools/coding/index.ts';
import { placeOf } from '../../../src/tools/coding/workspace.ts';
import { currentContent, putFile } from '../../../src/tools/coding/writeFile.ts';
import { answerOf, definitionOf } from '../../../src/tools/tool.ts';
import { proves } from '../../support/tier.ts';
import { type Bench, makeBench, type Reply, SECRET } from './codingBench.ts';

let bench: Bench;
let tools: ReturnType<typeof codingTools>;
/** The result of the last call. */
let last: unknown;
beforeEach(async () => {
  bench = await makeBench();
  tools = codingTools();
});
afterEach(() => bench.remove());

async function call(name: string, args: object, conversationId = 'c'): Promise<Reply> {
  const found = tools.find((tool) => tool.name === name);
  const definition = found && definitionOf(found);
  if (!definition) throw new Error(`no tool ${name}`);
  const checked = await definition.parameters['~standard'].validate(args);
  if (checked.issues)
    return { status: 'invalid', code: undefined, text: checked.issues.map((each) => each.message).join() };
  const { signal } = new AbortController();
  const toolContext = {
    callId: 'c1',
    conversationId,
    runId: 'r',
    cwd: bench.root,
    signal,
    idempotencyKey: 'k',
    origin: { messageId: 'm' },
    state: {},
  };
  const more = { progress: () => undefined, now: () => 0, sleep: () => Promise.resolve() };
  const answer = answerOf(await definition.execute(checked.value, { ...toolContext, ...more }));
  if (!answer || answer.status === 'pending') throw new Error('no result');
  last = answer.content;
  return {
    status: answer.status,
    code: answer.status === 'error' ? answer.code : undefined,
    text: String(answer.content),
  };
}
async function parts(file_path: string): Promise<unknown> {
  await call('Read', { file_path });
  return last;
}
const read = (file_path: string, conversationId?: string) => call('Read', { file_path }, conversationId);
const write = (file_path: string, content: string) => call('Write', { file_path, content });
const edit = (file_path: string, old_string: string, new_string: string, replace_all?: boolean) =>
  call('Edit', { file_path, old_string, new_string, ...(replace_all !== undefined && { replace_all }) });
const content = (name: string): Promise<string> => readFile(join(bench.root, name), 'utf8');

describe('Read', () => {
  it('it shows an image according to its content, not its name', async () => {
    const picture = Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, ...new Array(40).fill(7)]);
    await bench.write('picture', picture);
    await bench.write('text.png', 'only text');
    expect(await parts('picture')).toEqual([
      { type: 'text', text: '[picture: image/png, 48 bytes]' },
      { type: 'image', mediaType: 'image/png', data: Buffer.from(picture) },
    ]);
    expect((await read('text.png')).text).toContain('only text');
    await bench.link('outside', join(bench.evil, 's'));
    expect(await read('outside')).toMatchObject({ code: 'outside_workspace' });
    await bench.write('large.png', Buffer.concat([picture, Buffer.alloc(10 * 1_048_576)]));
    expect(await read('large.png')).toMatchObject({ code: 'too_large' });
  });
});

describe('Write', () => {
  it('it creates a new file and its parent directories, and nothing else', async () => {
    expect(await write('a/b/new.txt', 'one\ntwo\n')).toEqual({
      status: 'success',
      code: undefined,
      text: 'Created a/b/new.txt (2 lines)',
    });
    expect(await content('a/b/new.txt')).toBe('one\ntwo\n');
    expect(await readdir(join(bench.root, 'a/b'))).toEqual(['new.txt']);
  });

  it('several calls at the same time create files in one new directory', async () => {
    for (let round = 0; round < 5; round += 1) {
      const paths = ['a', 'b', 'c', 'd'].map((name) => `new${round}/below/${name}`);
      const replies = await Promise.all(paths.map((path) => write(path, 'x')));
      expect(replies.map(({ text }) => text)).toEqual(paths.map((path) => `Created ${path} (1 line)`));
    }
  });

  it.each([
    ['', '0 lines'],
    ['a', '1 line'],
    ['a\n', '1 line'],
    ['\n', '1 line'],
    ['a\nb', '2 lines'],
    ['a\n\n', '2 lines'],
    ['a\r\nb\r\n', '2 lines'],
  ])('it names the number of lines of %j: %s', async (text, lines) => {
    expect((await write('a.txt', text)).text).toBe(`Created a.txt (${lines})`);
    expect((await write('a.txt', text)).text).toBe('a.txt had this content already');
    await write('a.txt', 'before');
    expect((await write('a.txt', text)).text).toMatch(new RegExp(`^Replaced a\\.txt \\(${lines}\\)\n--- a\\.txt\n`));
  });

  it('it takes content of 4,194,304 characters, and no more', async () => {
    const longest = 'x'.repeat(4 * 1_048_576);
    expect((await write('a.txt', longest)).status).toBe('success');
    expect((await write('b.txt', `${longest}x`)).status).toBe('invalid');
  });

  it('a file of 10 MiB can be changed, and a larger one cannot', async () => {
    const size = 10 * 1_048_576;
    for (const [bytes, kind] of [
      [size, { kind: 'content' }],
      [size + 1, { kind: 'refused', code: 'too_large' }],
    ] as const) {
      await bench.write('big', Buffer.alloc(bytes, 'x'));
      const place = await placeOf(bench.root, 'big');
      if (place.kind === 'refused') throw new Error(place.message);
      expect(await currentContent(place)).toMatchObject(kind);
    }
  });

  it('no file becomes larger than 10 MiB, whatever its characters take', async () => {
    const most = 10 * 1_048_576;
    const reply = { code: 'too_large', text: `a.txt would be larger than ${most} bytes: write less` };
    expect(await write('a.txt', '€'.repeat(most / 3 + 1))).toMatchObject(reply);
    expect(await readdir(bench.root)).toEqual([]);
    expect(await write('a.txt', 'x'.repeat(most / 3 + 1))).toMatchObject({ status: 'success' });
    expect(await edit('a.txt', 'x', '€', true)).toMatchObject(reply);
    expect((await stat(join(bench.root, 'a.txt'))).size).toBe(Math.floor(most / 3 + 1));
    expect(await edit('a.txt', 'x', 'é', true)).toMatchObject({ status: 'success' });
  });

  it('it leaves no temporary file where it is refused or fails', async () => {
    await bench.write('a.txt', 'one');
    await write('a.txt', 'two');
    await mkdir(join(bench.root, 'dir'));
    await write('dir', 'two');
    const place = await placeOf(bench.root, 'a.txt');
    if (place.kind === 'refused') throw new Error(place.message);
    expect(await putFile(place, Buffer.from('x'))).toMatchObject({ code: 'stale_read' });
    await mkdir(join(bench.root, 'b'));
    expect(await putFile({ ...place, path: join(bench.root, 'b'), name: 'b' }, Buffer.from('x'))).toBeDefined();
    expect((await readdir(bench.root)).sort()).toEqual(['a.txt', 'b', 'dir']);
  });

  it('it replaces a file that was read, shows the change, and keeps its permissions', async () => {
    await bench.write('run.sh', 'one\ntwo\n');
    await chmod(join(bench.root, 'run.sh'), 0o755);
    await read('run.sh');
    const reply = await write('run.sh', 'one\n2\n');
    expect(reply.text).toContain('-two\n+2');
    expect(await content('run.sh')).toBe('one\n2\n');
    expect((await stat(join(bench.root, 'run.sh'))).mode & 0o777).toBe(0o755);
  });

  it('it keeps CR LF and the byte order mark of the replaced file', async () => {
    await bench.write('dos.txt', '\uFEFFa\r\nb\r\n');
    await read('dos.txt');
    await write('dos.txt', 'a\nc\n');
    expect(await content('dos.txt')).toBe('\uFEFFa\r\nc\r\n');
  });

  it('it does not replace a file that was not read, or that has changed since', async () => {
    await bench.write('a.txt', 'one');
    expect(await write('a.txt', 'two')).toMatchObject({ status: 'error', code: 'not_read' });
    await read('a.txt');
    await bench.write('a.txt', 'changed');
    expect(await write('a.txt', 'two')).toMatchObject({ status: 'error', code: 'stale_read' });
    expect(await content('a.txt')).toBe('changed');
  });

  it('a file that one conversation has read is unread in another', async () => {
    await bench.write('a.txt', 'one');
    await read('a.txt', 'other');
    expect(await write('a.txt', 'two')).toMatchObject({ code: 'not_read' });
  });

  it('a written file may be written again', async () => {
    await write('a.txt', 'one');
    expect(await write('a.txt', 'two')).toMatchObject({ status: 'success' });
    expect(await content('a.txt')).toBe('two');
  });

  it('H-260 H-261 H-262 H-267 nothing is written outside, by any link or spelling', async () => {
    await bench.link('d', bench.evil);
    await bench.link('dangling', join(bench.evil, 'new'));
    await bench.link('file', join(bench.evil, 's'));
    for (const path of ['../ws-evil/s', '../ws-evil/new', 'd/s', 'd/new', 'd/x/new', 'dangling', 'file', '/etc/new']) {
      expect([path, await write(path, 'x')]).toEqual([path, expect.objectContaining({ code: 'outside_workspace' })]);
    }
    expect(await write('a\0b', 'x')).toMatchObject({ status: 'invalid' });
    expect(await readdir(bench.evil)).toEqual(['s']);
    expect(await readFile(join(bench.evil, 's'), 'utf8')).toBe(`${SECRET}\n`);
  });

  it('a link inside stays a link, and its target is written', async () => {
    await bench.write('real.txt', 'one');
    await bench.link('alias', 'real.txt');
    await read('alias');
    await write('alias', 'two');
    expect((await lstat(join(bench.root, 'alias'))).isSymbolicLink()).toBe(true);
    expect(await content('real.txt')).toBe('two');
  });

  it('a hard link to a file outside is replaced, and the outer file is unchanged', async () => {
    await link(join(bench.evil, 's'), join(bench.root, 'hard'));
    await read('hard');
    await write('hard', 'x');
    expect(await readFile(join(bench.evil, 's'), 'utf8')).toBe(`${SECRET}\n`);
  });

  it('H-265 H-269 H-270 unusual names are plain names inside', async () => {
    for (const path of ['..foo', '...', 'a/..b/c', './~/x', '$HOME/x', '%2e%2e/f', 'file:x']) {
      expect([path, (await write(path, path)).status]).toEqual([path, 'success']);
      expect(await content(path)).toBe(path);
    }
  });

  it('a path that starts with ~ creates no directory of that name, and uses an existing one', async () => {
    expect(await write('~/y', 'x')).toMatchObject({ code: 'invalid_arguments' });
    expect(await readdir(bench.root)).not.toContain('~');
    await mkdir(join(bench.root, '~'));
    expect((await write('~/y', 'x')).status).toBe('success');
  });

  it('a path with half of a character is refused, since it would name another file', async () => {
    expect(await write('a\ud800.txt', 'x')).toMatchObject({ status: 'invalid' });
  });

  it('a file that is not UTF-8 text is not replaced', async () => {
    await writeFile(join(bench.root, 'latin1.txt'), Buffer.from([0x63, 0x61, 0x66, 0xe9]));
    await read('latin1.txt');
    expect(await write('latin1.txt', 'x')).toMatchObject({ code: 'binary' });
    expect(await readFile(join(bench.root, 'latin1.txt'))).toEqual(Buffer.from([0x63, 0x61, 0x66, 0xe9]));
  });

  it('a directory or a special file is refused', async () => {
    await mkdir(join(bench.root, 'dir'));
    expect(await write('dir', 'x')).toMatchObject({ code: 'not_a_file' });
    expect(await write('.', 'x')).toMatchObject({ code: 'not_a_file' });
    await bench.write('plain', 'x');
    for (const path of ['plain/below', 'plain/far/below'])
      expect(await write(path, 'x')).toEqual({
        ...{ status: 'error', code: 'not_a_directory' },
        text: `${path} cannot be written: a directory of its path is a file`,
      });
  });

  it.runIf(existsSync('/sys/kernel'))('a failure of the file system is named as one of writing', async () => {
    const place = await placeOf('/sys/kernel', 'new');
    if (place.kind === 'refused') throw new Error(place.message);
    expect(await putFile(place, Buffer.from('x'))).toMatchObject({
      message: expect.stringMatching(/^new cannot be written \(E[A-Z]+\)$/),
    });
  });
});

describe('Edit', () => {
  it('it replaces the only occurrence of a text, and shows the change', async () => {
    await bench.write('a.ts', 'const a = 1;\nconst b = 2;\n');
    await read('a.ts');
    const reply = await edit('a.ts', 'b = 2', 'b = 3');
    expect(reply.text).toBe(
      'Changed a.ts\n--- a.ts\n+++ a.ts\n@@ -1,2 +1,2 @@\n const a = 1;\n-const b = 2;\n+const b = 3;',
    );
    expect(await content('a.ts')).toBe('const a = 1;\nconst b = 3;\n');
  });

  it('a text with several occurrences is refused with its lines, or replaced everywhere', async () => {
    await bench.write('a.txt', 'x\ny\nx\n');
    await read('a.txt');
    const reply = await edit('a.txt', 'x', 'z');
    expect(reply).toMatchObject({ code: 'not_unique' });
    expect(reply.text).toContain('2 times (lines 1, 3)');
    expect(await edit('a.txt', 'x', 'z', true)).toMatchObject({ status: 'success' });
    expect(await content('a.txt')).toBe('z\ny\nz\n');
  });

  it.each([
    [2, '1, 2'],
    [10, '1, 2, 3, 4, 5, 6, 7, 8, 9, 10'],
    [11, '1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …'],
    [30, '1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …'],
  ])('of %i occurrences the first ten lines are named: %s', async (count, lines) => {
    await bench.write('a.txt', 'x\n'.repeat(count));
    await read('a.txt');
    expect((await edit('a.txt', 'x', 'z')).text).toContain(`in a.txt ${count} times (lines ${lines}): give more`);
    expect((await edit('a.txt', 'x', 'z', true)).text).toMatch(new RegExp(`^Changed a\\.txt in ${count} places\n`));
  });

  it('half of a character is neither found nor written', async () => {
    await bench.write('a.txt', 'a🎉b');
    await read('a.txt');
    for (const [old, replacement] of [
      ['\ud83c', 'x'],
      ['\udf89b', 'x'],
      ['b', '\ud83c'],
      ['b', '🎉\udf89'],
    ] as const) {
      expect((await edit('a.txt', old, replacement)).text).toBe('must not hold half of a character (a lone surrogate)');
    }
    expect(await write('a.txt', 'x\ud83c')).toMatchObject({ status: 'invalid' });
    expect(await content('a.txt')).toBe('a🎉b');
    expect((await edit('a.txt', '🎉', '🎈')).status).toBe('success');
    expect(await content('a.txt')).toBe('a🎈b');
  });

  it('a text that overlaps itself has several occurrences', async () => {
    await bench.write('a.txt', 'aaaa');
    await read('a.txt');
    expect(await edit('a.txt', 'aaa', 'b')).toMatchObject({ code: 'not_unique' });
    expect(await content('a.txt')).toBe('aaaa');
  });

  it('H-276 a file that was not read, or has changed since, is unchanged', async () => {
    await bench.write('a.txt', 'one');
    expect(await edit('a.txt', 'one', 'two')).toMatchObject({ code: 'not_read' });
    await read('a.txt');
    await writeFile(join(bench.root, 'a.txt'), 'one, and more');
    expect(await edit('a.txt', 'one', 'two')).toMatchObject({ code: 'stale_read' });
    expect(await content('a.txt')).toBe('one, and more');
    await read('a.txt');
    expect(await edit('a.txt', 'one', 'two')).toMatchObject({ status: 'success' });
  });

  it('its own change counts as read, and changes of one round follow one another', async () => {
    await bench.write('a.txt', 'one two three');
    await read('a.txt');
    const replies = await Promise.all([
      edit('a.txt', 'one', '1'),
      edit('a.txt', 'two', '2'),
      edit('a.txt', 'three', '3'),
    ]);
    expect(replies.map(({ status }) => status)).toEqual(['success', 'success', 'success']);
    expect(await content('a.txt')).toBe('1 2 3');
  });

  it('it keeps the byte order mark and the line ends of each place', async () => {
    await bench.write('dos.txt', '\uFEFFa\r\nb\r\nc\r\n');
    await read('dos.txt');
    await edit('dos.txt', 'a\nb', 'a\nx\nb');
    expect(await content('dos.txt')).toBe('\uFEFFa\r\nx\r\nb\r\nc\r\n');
    await bench.write('mixed.txt', 'a\r\nb\nc\nd\n');
    await read('mixed.txt');
    await edit('mixed.txt', 'c\nd', 'c\nx\nd');
    expect(await content('mixed.txt')).toBe('a\r\nb\nc\nx\nd\n');
  });

  it('invalid, missing or identical text is refused', async () => {
    await bench.write('bin', new Uint8Array([0x41, 0, 0x42]));
    await bench.write('latin', new Uint8Array([0x41, 0xe9, 0x42]));
    await bench.write('a.txt', 'one');
    await read('latin');
    await read('a.txt');
    expect(await edit('bin', 'A', 'C')).toMatchObject({ code: 'binary' });
    expect(await edit('latin', 'A', 'C')).toMatchObject({ code: 'binary' });
    expect(await edit('missing', 'A', 'C')).toMatchObject({ code: 'not_found' });
    expect(await edit('a.txt', 'two', 'three')).toMatchObject({ code: 'no_match' });
    expect(await edit('a.txt', 'one', 'one')).toMatchObject({ code: 'invalid_arguments' });
    expect(await edit('a.txt', '', 'one')).toMatchObject({ status: 'invalid' });
    expect(await edit('../ws-evil/s', 'secret', 'x')).toMatchObject({ code: 'outside_workspace' });
  });

  it.skipIf(!proves)('texts are literal, and every other byte is unchanged', async () => {
    const odd = fc.string({ unit: fc.constantFrom(...'ab$&\\.*+?()[]{}|^/\n\r\t-é'.split('')), maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(odd, odd, odd, odd, async (before, found, after, replacement) => {
        const old = `<${found}>`;
        const whole = `${before.replaceAll('<', '')}${old}${after.replaceAll('<', '')}`;
        await bench.write('p.txt', whole);
        await read('p.txt');
        if (old === `<${replacement}>`) return;
        const reply = await edit('p.txt', old, `<${replacement}>`);
        expect(reply.status).toBe('success');
        const made = await content('p.txt');
        expect(made.startsWith(before)).toBe(true);
        expect(made.endsWith(after)).toBe(true);
        const plain = (text: string): string => text.replaceAll('\r', '');
        const middle = made.slice(before.length, made.length - after.length);
        expect(plain(middle)).toBe(plain(`<${replacement}>`));
      }),
      { numRuns: 200 },
    );
  });

  it('a change of too many lines is named, and not shown', async () => {
    const lines = Array.from({ length: 3_000 }, (_, index) => `${index}`);
    await bench.write('a.txt', lines.join('\n'));
    await read('a.txt');
    const reply = await write('a.txt', lines.map((line) => `new ${line}`).join('\n'));
    expect(reply.text).toBe('Replaced a.txt (3000 lines)\n[the change is too large to be shown]');
  });

  it('a long change is shown in part', async () => {
    const lines = Array.from({ length: 900 }, (_, index) => `line ${index} ${'x'.repeat(20)}`);
    await bench.write('long.txt', lines.join('\n'));
    await read('long.txt');
    const reply = await edit('long.txt', 'line', 'row', true);
    expect(reply.status).toBe('success');
    expect(reply.text.length).toBeLessThan(25_000);
    expect(reply.text).toMatch(/\n\[the rest of the change is not shown\]$/);
    expect((await content('long.txt')).split('\n')).toHaveLength(900);
  });
});
