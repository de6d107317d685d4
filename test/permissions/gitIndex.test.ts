/** The index of a repository may name other repositories, in which git runs with their own settings. */
import { mkdir, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { explain, workspace } from './permissionWorkspace.ts';

const ws = await workspace();
const COMMIT = 0o160000;
const FILE = 0o100644;

interface Entry {
  name: string;
  mode: number;
  /** The entry has the second flags of versions 3 and 4. */
  isExtended?: true;
}
interface Index {
  version?: number;
  hashBytes?: number;
  extensions?: readonly string[];
}

/** An index as git writes it. Version 4 replaces the beginning of each name by the number of letters to drop. */
function indexOf(entries: readonly Entry[], { version = 2, hashBytes = 20, extensions = [] }: Index = {}): Buffer {
  const head = Buffer.concat([Buffer.from('DIRC'), Buffer.alloc(8)]);
  head.writeUInt32BE(version, 4);
  head.writeUInt32BE(entries.length, 8);
  let before = '';
  const written = entries.map(({ name, mode, isExtended }) => {
    const fixed = Buffer.alloc(40 + hashBytes + (isExtended ? 4 : 2));
    fixed.writeUInt32BE(mode, 24);
    fixed.writeUInt16BE(Math.min(name.length, 0xfff) | (isExtended ? 0x4000 : 0), 40 + hashBytes);
    if (version === 4) {
      const dropped = before.length;
      before = name;
      const varint = dropped < 128 ? [dropped] : [((dropped >> 7) - 1) | 128, dropped & 127];
      return Buffer.concat([fixed, Buffer.from(varint), Buffer.from(`${name}\0`)]);
    }
    const length = fixed.length + Buffer.byteLength(name);
    return Buffer.concat([fixed, Buffer.from(name), Buffer.alloc(8 - (length % 8))]);
  });
  const more = extensions.map((name) => Buffer.from(`${name}\0\0\0\u0004data`));
  return Buffer.concat([head, ...written, ...more, Buffer.alloc(hashBytes)]);
}

async function judged(index: Buffer | string, config = ''): Promise<readonly [outcome: string, why?: string]> {
  onTestFinished(() => rm(join(ws, '.git/index'), { force: true, recursive: true }));
  await writeFile(join(ws, '.git/index'), index);
  await writeFile(join(ws, '.git/config'), config);
  const { outcome, parts } = await explain({}, 'Bash', { command: 'git status' }, ws);
  return parts[0]?.why === undefined ? [outcome] : [outcome, parts[0].why];
}

const files: Entry[] = [
  { name: 'a', mode: FILE },
  { name: 'docs/a-name-of-22-letters', mode: FILE },
  { name: `src/${'long/'.repeat(60)}name`, mode: 0o120000 },
  { name: 'src/x.ts', mode: 0o100755 },
];
const other: Entry = { name: 'vendor/other', mode: COMMIT };
const VERSIONS = [2, 3, 4];
const HASHES = [
  ['sha1', 20, ''],
  ['sha256', 32, '[extensions]\n\tobjectFormat = sha256\n'],
] as const;

describe('git in a repository whose index names another repository', () => {
  describe.each(HASHES)('with %s', (_, hashBytes, config) => {
    it.each(VERSIONS)('it requires approval, wherever the name is in an index of version %i', async (version) => {
      expect(await judged(indexOf(files, { version, hashBytes }), config)).toEqual(['allow']);
      for (let at = 0; at <= files.length; at++) {
        const entries = [...files.slice(0, at), other, ...files.slice(at)];
        const outcome = await judged(indexOf(entries, { version, hashBytes }), config);
        expect(outcome, `at ${at}`).toEqual(['ask', 'the repository has submodules']);
      }
    });

    it.each([3, 4])('it requires approval after entries with more flags, in version %i', async (version) => {
      const extended = files.map((entry): Entry => ({ ...entry, isExtended: true }));
      expect(await judged(indexOf(extended, { version, hashBytes }), config)).toEqual(['allow']);
      const outcome = await judged(indexOf([...extended, other], { version, hashBytes }), config);
      expect(outcome).toEqual(['ask', 'the repository has submodules']);
    });
  });

  it('it requires approval if another file has the rest of the index', async () => {
    expect(await judged(indexOf(files, { extensions: ['TREE', 'REUC'] }))).toEqual(['allow']);
    const outcome = await judged(indexOf(files, { extensions: ['TREE', 'link'] }));
    expect(outcome).toEqual(['ask', "the repository's index cannot be read"]);
  });

  it('it requires approval if the index is not understood', async () => {
    const whole = indexOf(files);
    const ofLater = indexOf(files, { version: 5 });
    const tooMany = Buffer.from(whole);
    tooMany.writeUInt32BE(files.length + 1, 8);
    for (const index of ['', 'DIRC', 'x'.repeat(100), whole.subarray(0, 100), whole.subarray(0, -21), ofLater, tooMany])
      expect(await judged(index)).toEqual(['ask', "the repository's index cannot be read"]);
    await judged(indexOf([]));
    await truncate(join(ws, '.git/index'), 64 * 1_048_576 + 8);
    expect((await explain({}, 'Bash', { command: 'git status' }, ws)).outcome).toBe('ask');
    // A hash of 32 bytes takes the place of the name.
    expect((await judged(whole, HASHES[1][2]))[0]).toBe('ask');
    await rm(join(ws, '.git/index'));
    await mkdir(join(ws, '.git/index'));
    expect((await explain({}, 'Bash', { command: 'git status' }, ws)).outcome).toBe('ask');
  });
});
