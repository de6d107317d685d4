/**
 * Files that a model has read and uses again: the first forgotten one, the valid read, and the effect of a second
 * change.
 */
import { readdirSync, statSync } from 'node:fs';
import { chmod, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { codingTools } from '../../../src/tools/coding/index.ts';
import { KnownFiles } from '../../../src/tools/coding/knownFiles.ts';
import { definitionOf } from '../../../src/tools/tool.ts';
import { volume } from '../../support/tier.ts';
import { type Bench, makeBench } from './codingBench.ts';

/** The number of kept files. */
const FILES = 5_000;
const CONVERSATIONS = 500;
const codeOf = (files: KnownFiles, conversation: string, path: string, hash = 'h'): string | undefined =>
  files.changeRefusal(conversation, path, hash, path)?.code;

describe('files that were read', () => {
  it('the file whose last reading is oldest is forgotten first', () => {
    const files = new KnownFiles();
    for (let at = 0; at < FILES; at++) files.markSeen('c', `/${at}`, 'h');
    files.markSeen('c', '/0', 'h');
    files.markSeen('c', '/new', 'h');
    expect(codeOf(files, 'c', '/1')).toBe('not_read');
    for (const path of ['/0', '/2', '/new', `/${FILES - 1}`]) expect(codeOf(files, 'c', path)).toBeUndefined();
  });

  it('the conversation that was used longest ago is forgotten first, with all its files', () => {
    const files = new KnownFiles();
    for (let at = 0; at < CONVERSATIONS; at++) files.markSeen(`c${at}`, '/a', 'h');
    files.markSeen('c0', '/b', 'h');
    files.markSeen('new', '/a', 'h');
    expect(codeOf(files, 'c1', '/a')).toBe('not_read');
    for (const id of ['c0', 'c2', 'new']) expect(codeOf(files, id, '/a')).toBeUndefined();
    expect(codeOf(files, 'c0', '/b')).toBeUndefined();
  });

  it('a file that is read again counts as read in its current state only', () => {
    const files = new KnownFiles();
    files.markSeen('c', '/a', 'old');
    files.markSeen('c', '/a', 'new');
    expect([codeOf(files, 'c', '/a', 'new'), codeOf(files, 'c', '/a', 'old')]).toEqual([undefined, 'stale_read']);
  });
});

describe('changes of one file', () => {
  it('they run one after the other, however many wait, and a failed one delays none', async () => {
    const files = new KnownFiles();
    const order: string[] = [];
    const change = (name: string, fails = false) =>
      files.inTurn('/a', async () => {
        order.push(`${name} begins`);
        await Promise.resolve();
        order.push(`${name} ends`);
        if (fails) throw new Error(name);
      });
    const all = [change('1'), change('2', true), change('3'), change('4')];
    expect((await Promise.allSettled(all)).map(({ status }) => status)).toEqual([
      ...['fulfilled', 'rejected', 'fulfilled', 'fulfilled'],
    ]);
    expect(order).toEqual(['1', '2', '3', '4'].flatMap((name) => [`${name} begins`, `${name} ends`]));
    await change('5');
    expect(order.at(-1)).toBe('5 ends');
  });

  it('they do not delay changes of another file', async () => {
    const files = new KnownFiles();
    let end = (): void => {};
    const first = files.inTurn('/a', () => new Promise<void>((resolve) => (end = resolve)));
    expect(await files.inTurn('/b', async () => 'done')).toBe('done');
    end();
    await first;
  });
});

describe('a file that is changed twice', () => {
  let bench: Bench;
  beforeEach(async () => {
    bench = await makeBench();
  });
  afterEach(() => bench.remove());

  /** One list of tools keeps the record of read files. */
  function toolsIn(cwd: string) {
    const tools = codingTools();
    return async (name: string, args: object) => {
      const definition = definitionOf(tools.find((tool) => tool.name === name) as never);
      const signal = new AbortController().signal;
      return definition?.execute(args as never, { cwd, conversationId: 'c', callId: 'c1', signal } as never);
    };
  }

  it.each([0o600, 0o640, 0o664, 0o755, 0o777, 0o4755])('edits and writes keep its permissions, %o', async (mode) => {
    const path = join(bench.root, 'run.sh');
    await bench.write('run.sh', 'one\ntwo\n');
    await chmod(path, mode);
    const use = toolsIn(bench.root);
    const modeNow = async () => (await stat(path)).mode & 0o7777;
    await use('Read', { file_path: 'run.sh' });
    for (const [from, to] of [
      ['one', '1'],
      ['two', '2'],
      ['1', 'one'],
    ]) {
      expect(await use('Edit', { file_path: 'run.sh', old_string: from, new_string: to })).toMatchObject({
        status: 'success',
      });
      expect(await modeNow()).toBe(mode);
    }
    for (const content of ['a\n', 'b\n']) {
      expect(await use('Write', { file_path: 'run.sh', content })).toMatchObject({ status: 'success' });
      expect(await modeNow()).toBe(mode);
    }
  });

  it('it is written under a temporary name with the same read permissions', async () => {
    await bench.write('secret.txt', 'a\n');
    await chmod(join(bench.root, 'secret.txt'), 0o600);
    const use = toolsIn(bench.root);
    await use('Read', { file_path: 'secret.txt' });
    const modes = new Set<number>();
    const writing = { isOver: false };
    const written = use('Write', { file_path: 'secret.txt', content: 'x\n'.repeat(volume.longFileLines) }).finally(
      () => {
        writing.isOver = true;
      },
    );
    while (!writing.isOver) {
      for (const name of readdirSync(bench.root)) {
        const found = statSync(join(bench.root, name), { throwIfNoEntry: false });
        if (found) modes.add(found.mode & 0o777);
      }
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await written).toMatchObject({ status: 'success' });
    expect([...modes]).toEqual([0o600]);
  });

  it('a new file has the default permissions of the process, and keeps them', async () => {
    const use = toolsIn(bench.root);
    const before = process.umask(0o027);
    try {
      await use('Write', { file_path: 'new.txt', content: 'a\n' });
      await use('Edit', { file_path: 'new.txt', old_string: 'a', new_string: 'b' });
    } finally {
      process.umask(before);
    }
    expect((await stat(join(bench.root, 'new.txt'))).mode & 0o777).toBe(0o640);
  });
});
