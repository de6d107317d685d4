/** The stored contents of changed files: their bounds, order and permissions, and their state after damage or on a full disk. */
import { appendFile, chmod, mkdir, mkdtemp, readdir, realpath, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { changeKey, FileHistory, stateOf } from '../../../src/cli/undo/fileHistory.ts';
import type { Place } from '../../../src/tools/coding/workspace.ts';

let root = '';
let directory = '';
beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'runchart-history-')));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  directory = join(root, 'history');
});

const placeOf = (name: string, type: Place['type'] = 'file'): Place => ({
  ...{ kind: 'place', root, path: join(root, name), name, type },
});
async function file(name: string, content: string | Uint8Array): Promise<Place> {
  await writeFile(join(root, name), content);
  return placeOf(name);
}

describe('a content', () => {
  test.each([
    [9, 'file'],
    [10, 'file'],
    [11, 'unkept'],
  ])('of %i bytes under a bound of 10 is %s', async (bytes, kind) => {
    const history = new FileHistory(directory, { fileMax: 10 });
    const state = await history.keep('m', await file('a', 'x'.repeat(bytes)));
    expect(state.kind).toBe(kind);
    if (state.kind === 'unkept') expect(state.why).toBe('it has more than 10 bytes');
  });

  test('by default has at most 10 MiB', async () => {
    const place = await file('a', Buffer.alloc(10 * 1_048_576));
    expect((await new FileHistory(directory).keep('m', place)).kind).toBe('file');
    await appendFile(place.path, 'x');
    expect((await new FileHistory(directory).keep('m', place)).kind).toBe('unkept');
  });

  test('is returned byte by byte, and not if it is gone, damaged or of another request', async () => {
    const history = new FileHistory(directory);
    const bytes = Buffer.from([0, 1, 255, 13, 10]);
    const state = await history.keep('m', await file('a', bytes));
    if (state.kind !== 'file') throw new Error('it is kept');
    expect(await history.content('m', state.hash)).toEqual(bytes);
    expect(await history.content('other', state.hash)).toBeUndefined();
    await appendFile(history.fileOf('m', state.hash), 'x');
    expect(await history.content('m', state.hash)).toBeUndefined();
    await rm(history.fileOf('m', state.hash));
    expect(await history.content('m', state.hash)).toBeUndefined();
  });

  test('can be read by its user only, and no unfinished file stays beside it', async () => {
    const history = new FileHistory(directory);
    const place = await file('a', 'x');
    await history.before('m', 'k', place);
    await history.after('m', 'k', place);
    const own = history.fileOf('m', '');
    expect((await stat(own)).mode & 0o777).toBe(0o700);
    const names = await readdir(own);
    expect(names).toHaveLength(2);
    for (const name of names) expect([name, (await stat(join(own, name))).mode & 0o777]).toEqual([name, 0o600]);
  });

  test('that cannot be stored is a state with the reason, and the next one is stored again', async () => {
    await writeFile(directory, 'no directory');
    const history = new FileHistory(directory);
    const place = await file('a', 'x');
    expect(await history.keep('m', place)).toEqual({
      kind: 'unkept',
      why: expect.stringMatching(/could not be stored \(E/),
    });
    await rm(directory);
    expect((await history.keep('m', place)).kind).toBe('file');
  });
});

describe('a state', () => {
  test('has the hash and the mode of the file, and is missing where there is none', async () => {
    const place = await file('a', 'x');
    await chmod(place.path, 0o640);
    const state = await stateOf(place);
    expect(state).toMatchObject({ kind: 'file', mode: expect.any(Number) });
    expect(state.kind === 'file' && state.mode & 0o777).toBe(0o640);
    expect(await new FileHistory(directory).keep('m', place)).toEqual(state);
    await rm(place.path);
    expect(await stateOf(placeOf('a', 'missing'))).toEqual({ kind: 'missing' });
  });

  test('of a missing file names the directories that are made for it, the outermost first', async () => {
    const history = new FileHistory(directory);
    await mkdir(join(root, 'a'));
    const kept = (name: string) => history.keep('m', placeOf(name, 'missing'));
    expect(await kept('a/x')).toEqual({ kind: 'missing', made: [] });
    expect(await kept('a/b/c/x')).toEqual({ kind: 'missing', made: [join(root, 'a/b'), join(root, 'a/b/c')] });
  });
});

describe('the changes of a request', () => {
  test('are in their order, each with its last state after, and marked once they are taken back', async () => {
    const history = new FileHistory(directory);
    const [a, b] = [await file('a', '1'), await file('b', '1')];
    await history.before('m', 'k1', a);
    await history.before('m', 'k2', b);
    await writeFile(a.path, '2');
    await history.after('m', 'k1', a);
    const changes = await history.changes('m');
    expect(changes.map(({ key, path, after, isUndone }) => [key, path, after?.kind, isUndone])).toEqual([
      ['k1', a.path, 'file', undefined],
      ['k2', b.path, undefined, undefined],
    ]);
    expect(changes[0]?.after).toEqual(await stateOf(a));
    expect(changes[0]?.before).not.toEqual(changes[0]?.after);
    await history.markUndone('m', changes.slice(0, 1));
    expect((await new FileHistory(directory).changes('m')).map(({ isUndone }) => isUndone)).toEqual([true, undefined]);
    expect(await history.changes('other')).toEqual([]);
  });

  test('of one call keep the first state before, however often it is recorded', async () => {
    const history = new FileHistory(directory);
    const a = await file('a', '1');
    await history.before('m', 'k', a);
    const [first] = await history.changes('m');
    await writeFile(a.path, '2');
    await history.before('m', 'k', a);
    expect((await history.changes('m')).map(({ before }) => before)).toEqual([first?.before]);
  });

  test('are read although lines are incomplete or foreign', async () => {
    const history = new FileHistory(directory);
    await history.before('m', 'k', await file('a', '1'));
    const good = '{"type":"before","key":"k2","path":"/p","state":{"kind":"missing"}}';
    const bad = [
      '{"type":"before","key":"k3"',
      'null',
      '1',
      '{}',
      good.replace('"k2"', '2'),
      good.replace('"/p"', '2'),
    ];
    const worse = [good.replace('{"kind":"missing"}', '{}'), good.replace('"type":"before",', '')];
    await appendFile(join(history.fileOf('m', ''), 'changes.jsonl'), [...bad, ...worse, good, ''].join('\n'));
    expect((await history.changes('m')).map(({ key }) => key)).toEqual(['k', 'k2']);
  });

  test('have a key of the conversation and the call together', () => {
    const keys = ['a', 'b'].flatMap((conversationId) =>
      ['1', '2'].map((callId) => changeKey({ conversationId, callId })),
    );
    expect(new Set(keys).size).toBe(4);
  });
});

describe('the bound of all contents', () => {
  /** Keeps 10 bytes for each request, with times one second apart. */
  async function filled(history: FileHistory, requests: readonly string[], from = 1_000): Promise<void> {
    for (const [index, request] of requests.entries()) {
      await history.keep(request, await file('a', `${request}${from}`.padEnd(10, 'x')));
      const own = history.fileOf(request, '');
      for (const name of await readdir(own)) await utimes(join(own, name), from + index, from + index);
    }
  }
  const kept = async (history: FileHistory, requests: readonly string[]): Promise<string[]> => {
    const all = await Promise.all(
      requests.map(async (each) => ((await readdir(history.fileOf(each, '')).catch(() => [])).length > 0 ? each : '')),
    );
    return all.filter((each) => each !== '');
  };

  test('is reached without a loss, and beyond it the oldest requests go, as few as possible', async () => {
    const history = new FileHistory(directory, { totalMax: 30 });
    await filled(history, ['m1', 'm2', 'm3']);
    expect(await kept(history, ['m1', 'm2', 'm3'])).toEqual(['m1', 'm2', 'm3']);
    await filled(history, ['m4'], 2_000);
    expect(await kept(history, ['m1', 'm2', 'm3', 'm4'])).toEqual(['m2', 'm3', 'm4']);
    await filled(history, ['m5'], 3_000);
    expect(await kept(history, ['m1', 'm2', 'm3', 'm4', 'm5'])).toEqual(['m3', 'm4', 'm5']);
  });

  test('counts what an earlier program has left, and what was forgotten no longer', async () => {
    await filled(new FileHistory(directory), ['m1', 'm2']);
    const history = new FileHistory(directory, { totalMax: 30 });
    await filled(history, ['m3'], 2_000);
    await history.forget(['m1', 'unknown']);
    expect(await kept(history, ['m1', 'm2', 'm3'])).toEqual(['m2', 'm3']);
    await filled(history, ['m4'], 3_000);
    expect(await kept(history, ['m2', 'm3', 'm4'])).toEqual(['m2', 'm3', 'm4']);
    await filled(history, ['m5'], 4_000);
    expect(await kept(history, ['m2', 'm3', 'm4', 'm5'])).toEqual(['m3', 'm4', 'm5']);
  });

  test('counts contents that are stored at the same time', async () => {
    await filled(new FileHistory(directory), ['m1', 'm2', 'm3', 'm4', 'm5']);
    const history = new FileHistory(directory, { totalMax: 100 });
    const names = ['a', 'b', 'c', 'd', 'e'];
    const places = await Promise.all(names.map((name) => file(name, name.repeat(10))));
    await Promise.all(places.map((place) => history.keep('m6', place)));
    await filled(history, ['m7'], 2_000);
    expect(await kept(history, ['m1', 'm2', 'm3', 'm4', 'm5', 'm6', 'm7'])).toEqual([
      'm2',
      'm3',
      'm4',
      'm5',
      'm6',
      'm7',
    ]);
  });

  test('never removes the request under way, and counts an equal content once', async () => {
    const history = new FileHistory(directory, { totalMax: 15 });
    await filled(history, ['m1']);
    await history.keep('m1', await file('b', 'y'.repeat(10)));
    await history.keep('m1', await file('c', 'y'.repeat(10)));
    expect(await readdir(history.fileOf('m1', ''))).toHaveLength(2);
  });
});
