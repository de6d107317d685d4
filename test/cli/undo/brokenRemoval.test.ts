/** A history whose oldest request cannot be removed: the content is not kept, and the next one is counted anew. */
import * as files from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { FileHistory } from '../../../src/cli/undo/fileHistory.ts';
import type { Place } from '../../../src/tools/coding/workspace.ts';

const busy = vi.hoisted(() => ({ isBusy: false }));
vi.mock('node:fs/promises', async (original) => {
  const actual = await original<typeof files>();
  const rm: typeof actual.rm = (path, options) =>
    busy.isBusy && options?.recursive
      ? Promise.reject(Object.assign(new Error('busy'), { code: 'EBUSY' }))
      : actual.rm(path, options);
  return { ...actual, rm };
});

test('a content that needs room is not kept while the oldest request cannot be removed, and is kept afterwards', async () => {
  const root = await files.realpath(await files.mkdtemp(join(tmpdir(), 'runchart-removal-')));
  onTestFinished(() => files.rm(root, { recursive: true, force: true }));
  const history = new FileHistory(join(root, 'history'), { totalMax: 15 });
  const keep = async (request: string) => {
    const path = join(root, request);
    await files.writeFile(path, request.padEnd(10, 'x'));
    return history.keep(request, { kind: 'place', root, path, name: request, type: 'file' } satisfies Place);
  };
  expect((await keep('m1')).kind).toBe('file');
  busy.isBusy = true;
  onTestFinished(() => {
    busy.isBusy = false;
  });
  for (const request of ['m2', 'm3'])
    expect(await keep(request)).toEqual({ kind: 'unkept', why: 'it could not be stored (EBUSY)' });
  busy.isBusy = false;
  expect((await keep('m4')).kind).toBe('file');
  expect(await files.readdir(history.fileOf('m1', '')).catch(() => 'removed')).toBe('removed');
});
