import { execFileSync } from 'node:child_process';
import { mkdir, readdir, readlink, rename, rm, symlink } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { kernelPath, linksReadOnce, openFile, placeOf, spellingFault } from '../../../src/tools/coding/workspace.ts';
import { type Bench, call, makeBench, SECRET } from './codingBench.ts';

let bench: Bench;
beforeEach(async () => {
  bench = await makeBench();
});
afterEach(() => bench.remove());

const read = (path: string) => call(bench.root, 'Read', { file_path: path });
const codeOfPlace = async (path: string) => {
  const place = await placeOf(bench.root, path);
  return place.kind === 'refused' ? place.code : place.name;
};

it('paths resolved with one link reader refer to one state of the files, and the next reader sees the next state', async () => {
  await bench.link('here', bench.evil);
  const linkAt = linksReadOnce();
  expect(await kernelPath(bench.root, 'here/a', linkAt)).toBe(join(bench.evil, 'a'));
  await rm(join(bench.root, 'here'));
  await bench.link('here', bench.root);
  expect(await kernelPath(bench.root, 'here/b', linkAt)).toBe(join(bench.evil, 'b'));
  expect(await kernelPath(bench.root, 'here/b', linksReadOnce())).toBe(join(bench.root, 'b'));
});

describe('the place that a path leads to', () => {
  /** The kernel's answer where these links are there. */
  const leads = (path: string, links: { readonly [path: string]: string }, from = '/w') =>
    kernelPath(from, path, async (each) => links[each]).catch((error: { code?: string }) => error.code);

  it.each<[string, { readonly [path: string]: string }, string]>([
    ['a/b', {}, '/w/a/b'],
    ['./a//b/.', {}, '/w/a/b'],
    ['a/../b', {}, '/w/b'],
    ['../../x', {}, '/x'],
    ['/x/../y', {}, '/y'],
    ['a/b', { '/w/a': 'c' }, '/w/c/b'],
    ['a/b', { '/w/a': '/c/d' }, '/c/d/b'],
    ['a/b', { '/w/a': '../c' }, '/c/b'],
    ['a/../b', { '/w/a': '/c/d' }, '/c/b'],
    ['a', { '/w/a': 'b', '/w/b': 'c/d', '/w/c': '/e' }, '/e/d'],
    ['a', { '/w': '/v', '/v/a': 'b' }, '/v/b'],
  ])('%s, with the links %j, is %s', async (path, links, place) => {
    expect(await leads(path, links)).toBe(place);
  });

  it('is reached over at most 40 links', async () => {
    const chain = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`/w/l${at}`, `l${at + 1}`]));
    expect([await leads('l0', chain(40)), await leads('l0', chain(41))]).toEqual(['/w/l40', 'ELOOP']);
    expect(await leads('l0', { '/w/l0': 'l0' })).toBe('ELOOP');
  });
});

describe('places outside the root', () => {
  it('H-260 a sibling directory whose name starts with the name of the root is outside', async () => {
    for (const path of ['../ws-evil/s', join(bench.evil, 's'), `${bench.root}-evil/s`, 'a/../../ws-evil/s']) {
      const reply = await read(path);
      expect(reply.code, path).toBe('outside_workspace');
      expect(reply.text).not.toContain(SECRET);
    }
    expect((await call(bench.root, 'Ls', { path: '../ws-evil' })).code).toBe('outside_workspace');
    expect((await call(bench.root, 'Glob', { pattern: '*', path: '../ws-evil' })).code).toBe('outside_workspace');
    expect((await call(bench.root, 'Grep', { pattern: 's', path: '../ws-evil' })).code).toBe('outside_workspace');
  });

  it('the parent of the root and the root of the file system are outside', async () => {
    for (const path of ['..', '/', '../../..', '/etc/passwd'])
      expect(await codeOfPlace(path)).toBe('outside_workspace');
  });

  it('H-261 a linked directory and a linked file that lead out are outside', async () => {
    await bench.link('d', bench.evil);
    await bench.link('relative', '../ws-evil');
    await bench.link('f', join(bench.evil, 's'));
    for (const path of ['d/s', 'relative/s', 'f', join(bench.root, 'd/s')]) {
      expect((await read(path)).code, path).toBe('outside_workspace');
    }
    expect((await call(bench.root, 'Ls', { path: 'd' })).code).toBe('outside_workspace');
    expect((await call(bench.root, 'Glob', { pattern: '*', path: 'd' })).code).toBe('outside_workspace');
    expect((await call(bench.root, 'Grep', { pattern: 'secret', path: 'f' })).code).toBe('outside_workspace');
  });

  it('the answer is the same whether an outside file exists or not', async () => {
    await bench.link('d', bench.evil);
    await symlink('loop', join(bench.evil, 'loop'));
    await mkdir(join(bench.evil, 'closed'), { mode: 0o000 });
    for (const pair of [
      ['../ws-evil/s', '../ws-evil/none'],
      ['d/s', 'd/none'],
      ['d/s', 'd/none/deeper'],
      ['d/s', 'd/loop'],
      ['d/s', 'd/closed/x'],
    ]) {
      const [first, second] = await Promise.all(pair.map(codeOfPlace));
      expect(first).toBe('outside_workspace');
      expect(second).toBe(first);
    }
  });

  it('H-262 a broken link counts as the place of its target', async () => {
    await bench.link('out', join(bench.evil, 'new'));
    await bench.link('in', 'later.txt');
    await bench.link('far', 'near');
    await bench.link('near', '../ws-evil/new');
    expect((await read('out')).code).toBe('outside_workspace');
    expect((await read('far')).code).toBe('outside_workspace');
    expect((await read('out/below')).code).toBe('outside_workspace');
    expect((await read('in')).code).toBe('not_found');
    expect(await placeOf(bench.root, 'in')).toMatchObject({ name: 'later.txt', type: 'missing' });
    expect(await readdir(bench.evil)).toEqual(['s']);
  });

  it('a loop of links is outside', async () => {
    await bench.link('a', 'b');
    await bench.link('b', 'a');
    expect((await read('a')).code).toBe('outside_workspace');
  });

  it('a file that is replaced by a link after the check is not opened', async () => {
    await bench.write('a.txt', 'mine\n');
    const place = await placeOf(bench.root, 'a.txt');
    if (place.kind === 'refused') throw new Error(place.message);
    await rm(place.path);
    await bench.link('a.txt', join(bench.evil, 's'));
    expect(await openFile(place)).toMatchObject({ kind: 'refused', code: 'outside_workspace' });
  });

  it('a file that is replaced by a link to another file inside is not opened under its name', async () => {
    await bench.write('a.txt', 'mine\n');
    await bench.write('.env', 'KEY=1\n');
    const place = await placeOf(bench.root, 'a.txt');
    if (place.kind === 'refused') throw new Error(place.message);
    await rm(place.path);
    await bench.link('a.txt', '.env');
    expect(await openFile(place)).toMatchObject({ kind: 'refused' });
    await rename(join(bench.root, '.env'), place.path);
    const opened = await openFile(place);
    if (opened.kind === 'refused') throw new Error(opened.message);
    await opened.file.close();
  });

  it.runIf(process.platform === 'linux')('a parent that is replaced by a link is detected after opening', async () => {
    await bench.write('sub/s', 'mine\n');
    const place = await placeOf(bench.root, 'sub/s');
    if (place.kind === 'refused') throw new Error(place.message);
    await rename(join(bench.root, 'sub'), join(bench.root, 'moved'));
    await bench.link('sub', bench.evil);
    expect(await openFile(place)).toMatchObject({ kind: 'refused', code: 'outside_workspace' });
    await rm(join(bench.root, 'sub'));
    await bench.link('sub', 'moved');
    expect(await openFile(place)).toMatchObject({ kind: 'refused', code: 'unreadable' });
  });
});

describe('places inside the root', () => {
  it('H-265 names that start with dots are ordinary', async () => {
    for (const name of ['..foo', '...', 'a/..b/c', '..b/.c']) {
      await bench.write(name, `${name}\n`);
      expect(await read(name)).toMatchObject({ status: 'success', text: `  1 | ${name}` });
    }
  });

  it('an absolute path into the root is accepted, also if the root is a link', async () => {
    await bench.write('sub/a.txt', 'text\n');
    const alias = `${bench.root}-alias`;
    await symlink(bench.root, alias);
    for (const [cwd, path] of [
      [bench.root, join(bench.root, 'sub/a.txt')],
      [bench.root, join(alias, 'sub/a.txt')],
      [alias, join(alias, 'sub/a.txt')],
      [alias, join(bench.root, 'sub/a.txt')],
      [alias, 'sub/../sub/./a.txt'],
    ] as const) {
      expect(await call(cwd, 'Read', { file_path: path })).toMatchObject({ status: 'success', text: '  1 | text' });
    }
  });

  it('H-275 a chain of links inside is followed and counts as its last file', async () => {
    await bench.write('.env', 'KEY=1\n');
    await bench.link('one', 'two');
    await bench.link('two', '.env');
    expect(await placeOf(bench.root, 'one')).toMatchObject({ name: '.env', path: join(bench.root, '.env') });
    expect(await read('one')).toMatchObject({ status: 'success', text: '  1 | KEY=1' });
  });

  it('H-269 H-270 spellings are literal: no URL, no percent decoding, no home, no variables', async () => {
    for (const path of ['file:///etc/passwd', '%2e%2e/f', '~/x', '$HOME/x']) {
      expect((await read(path)).code, path).toBe('not_found');
      await bench.write(path, 'plain\n');
      expect(await read(path)).toMatchObject({ status: 'success', text: '  1 | plain' });
    }
    expect((await readdir(bench.root)).sort()).toEqual(['$HOME', '%2e%2e', 'file:', '~']);
  });

  it.runIf(process.platform !== 'win32')('H-268 names with a meaning on Windows are plain names on POSIX', async () => {
    for (const name of ['\\\\server\\share\\f', 'C:..\\f', 'CON', 'f:stream']) {
      await bench.write(name, 'plain\n');
      expect(await read(name)).toMatchObject({ status: 'success', text: '  1 | plain' });
    }
  });
});

describe('spellings that are refused before any file access', () => {
  it('H-267 a path with a NUL character is invalid in every tool', async () => {
    for (const [name, args] of [
      ['Read', { file_path: 'a\u0000.txt' }],
      ['Ls', { path: 'a\u0000' }],
      ['Glob', { pattern: '*', path: 'a\u0000' }],
      ['Grep', { pattern: 'x', path: 'a\u0000' }],
    ] as const) {
      expect((await call(bench.root, name, args)).status, name).toBe('invalid');
    }
  });

  it('a path over 4,096 bytes, an overlong name and an empty path are invalid', async () => {
    expect((await read(`${'é/'.repeat(1_365)}ab`)).status).toBe('invalid');
    expect((await read('a'.repeat(300))).code).toBe('invalid_arguments');
    expect((await read('')).status).toBe('invalid');
  });

  it.each([
    ['a'.repeat(4_096), undefined],
    ['a'.repeat(4_097), 'is longer than 4096 bytes'],
    ['é'.repeat(2_048), undefined],
    [`${'é'.repeat(2_048)}a`, 'is longer than 4096 bytes'],
    ['', 'is empty'],
    ['a\0', 'holds a NUL character'],
    ['a\ud83d', 'holds half of a character (a lone surrogate)'],
    ['😀 \n~$%', undefined],
  ])('a path has its fault by its bytes and characters (%#)', (path, fault) => {
    for (const platform of ['linux', 'darwin', 'win32']) expect(spellingFault(path, platform)).toBe(fault);
  });

  it.each([
    ...[
      'con',
      'CON',
      'prn',
      'aux',
      'nul',
      'com0',
      'com9',
      'lpt1',
      'con.txt',
      'a/nul',
      'a\\aux.c',
      'con ',
      'con.',
      'con .x',
    ].map((path): [string, string] => [path, 'names a device']),
    ...['\\\\server\\x', '//server/x', '\\\\?\\C:\\x', '\\\\.\\pipe'].map((path): [string, string] => [
      path,
      'is a network or device path',
    ]),
    ...['C:x', 'a:b', 'C:\\a:b', 'C:/x:y'].map((path): [string, string] => [
      path,
      'names a drive-relative path or a stream',
    ]),
    ...['C:\\x', 'c:/x', 'console', 'com', 'com10', 'xcon', 'con-a', 'a/b', '\\x'].map((path): [string, undefined] => [
      path,
      undefined,
    ]),
  ])('on Windows %j has the fault %s, and none elsewhere', (path, fault) => {
    expect([spellingFault(path, 'win32'), spellingFault(path, 'linux')]).toEqual([fault, undefined]);
  });

  it('H-268 on Windows network paths, drive-relative paths, devices and streams are refused', () => {
    for (const path of ['\\\\server\\share\\f', '//server/f', 'C:..\\f', 'CON', 'sub\\nul.txt', 'COM1', 'f:stream']) {
      expect(spellingFault(path, 'win32'), path).toBeTypeOf('string');
    }
    for (const path of ['C:\\ws\\a.txt', 'console.ts', 'sub\\a.txt'])
      expect(spellingFault(path, 'win32')).toBeUndefined();
  });
});

describe('H-273 special files are never opened and never hang', () => {
  it('devices and the environment of the process are outside, by name and by link', async () => {
    for (const [name, target] of [
      ['environ', '/proc/self/environ'],
      ['stdin', '/dev/stdin'],
      ['zero', '/dev/zero'],
    ] as const) {
      await bench.link(name, target);
      expect((await read(target)).code, target).toBe('outside_workspace');
      expect((await read(name)).code, name).toBe('outside_workspace');
    }
    expect(await call(bench.root, 'Grep', { pattern: '.' })).toMatchObject({ text: '[no line matches]' });
  });

  it('Read and Grep refuse a pipe and a socket inside the root, and a search skips them', async () => {
    execFileSync('mkfifo', [join(bench.root, 'pipe')]);
    const server = createServer().listen(join(bench.root, 'socket'));
    try {
      for (const name of ['pipe', 'socket']) {
        expect((await read(name)).code, name).toBe('not_a_file');
        expect((await call(bench.root, 'Grep', { pattern: '.', path: name })).code, name).toBe('not_a_file');
      }
      await bench.write('a.txt', 'text\n');
      expect((await call(bench.root, 'Grep', { pattern: '.' })).text).toBe('a.txt:1: text');
      expect((await call(bench.root, 'Glob', { pattern: '**' })).text).toBe('a.txt');
    } finally {
      server.close();
    }
  });

  it('a file that is replaced by a pipe after the check is refused without waiting for a writer', async () => {
    await bench.write('a.txt', 'mine\n');
    const place = await placeOf(bench.root, 'a.txt');
    if (place.kind === 'refused') throw new Error(place.message);
    await rm(place.path);
    execFileSync('mkfifo', [place.path]);
    expect(await openFile(place)).toMatchObject({ kind: 'refused', code: 'not_a_file' });
  });

  it.runIf(process.platform === 'linux')('a file that is refused after it was opened is closed', async () => {
    const open = async (): Promise<string[]> => {
      const found = await readdir('/proc/self/fd');
      const paths = await Promise.all(found.map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')));
      return paths.filter((path) => path.startsWith(bench.root));
    };
    await mkdir(join(bench.root, 'other'));
    await bench.write('other/a.txt', 'not mine\n');
    const changes: ((path: string) => Promise<void>)[] = [
      async (path) => void execFileSync('mkfifo', [path]),
      async (path) => void (await mkdir(path)),
      async () => {
        await rm(join(bench.root, 'sub'), { recursive: true });
        await bench.link('sub', 'other');
      },
    ];
    for (const change of changes) {
      await rm(join(bench.root, 'sub'), { recursive: true, force: true });
      await bench.write('sub/a.txt', 'mine\n');
      const place = await placeOf(bench.root, 'sub/a.txt');
      if (place.kind === 'refused') throw new Error(place.message);
      await rm(place.path);
      await change(place.path);
      expect(await openFile(place)).toMatchObject({ kind: 'refused' });
      expect(await open()).toEqual([]);
    }
  });

  it('a directory is not read and a file is not listed', async () => {
    await mkdir(join(bench.root, 'sub'));
    await bench.write('a.txt', 'text\n');
    expect((await read('sub')).code).toBe('not_a_file');
    expect((await read('a.txt/x')).code).toBe('not_found');
    expect((await call(bench.root, 'Ls', { path: 'a.txt' })).code).toBe('not_a_directory');
    expect((await call(bench.root, 'Glob', { pattern: '*', path: 'none' })).code).toBe('not_found');
    expect((await call(join(bench.root, 'gone'), 'Ls', {})).code).toBe('not_found');
  });
});
