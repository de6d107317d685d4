/** A history whose oldest request cannot be removed: the content is not kept, and the next one is counted anew. */
import files from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { FileHistory } from '../../../src/cli/undo/fileHistory.ts';
import type { Place } from '../../../src/tools/coding/workspace.ts';

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
  const remove = vi.spyOn(files, 'rm').mockRejectedValue(Object.assign(new Error('busy'), { code: 'EBUSY' }));
  const restore = (): void => {
    remove.mockRestore();
    syncBuiltinESMExports();
  };
  onTestFinished(restore);
  syncBuiltinESMExports();
  for (const request of ['m2', 'm3'])
    expect(await keep(request)).toEqual({ kind: 'unkept', why: 'it could not be stored (EBUSY)' });
  restore();
  expect((await keep('m4')).kind).toBe('file');
  expect(await files.readdir(history.fileOf('m1', '')).catch(() => 'removed')).toBe('removed');
});
