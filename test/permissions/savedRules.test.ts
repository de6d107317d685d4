/** The rules that "always allow" saves: they allow the same call from now on, or there are none. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Json } from '../../src/index.ts';
import { type PermissionOptions, permissions } from '../../src/node.ts';
import { workspace } from './permissionWorkspace.ts';

const ws = await workspace();
const file = (path: string): Json => ({ file_path: path, content: '', pattern: 'x', path });

/** The rules that are saved for the call, and the verdict on it afterwards. */
async function remembered(tool: string, args: Json, options: PermissionOptions = {}) {
  const rules = permissions(options);
  const saved = await rules.remember(tool, args, ws);
  return { saved, outcome: (await rules.explain(tool, args, ws)).outcome };
}

const NAMES = [
  'a b',
  'a ',
  ' a',
  'a*',
  'a[1]',
  'a\\',
  '!a',
  '#a',
  'a(b)',
  'é',
  '-x',
  '**',
  '{a,b}',
  '😀',
  'a/',
  '.x/y',
];

describe('"always allow"', () => {
  it.each(NAMES)('saves a rule that allows a file: %j', async (name) => {
    for (const path of [name, `odd/${name}`, `/nowhere/${name}`]) {
      const { saved, outcome } = await remembered('Write', file(path));
      expect([path, saved.length, outcome]).toEqual([path, 1, 'allow']);
    }
  });

  it.each(['d', 'd/s', 'dangling', 'first', 'a\u00a0', 'a\u2003'])(
    'saves none if no rule would allow it, as for a link or another blank at the end: %j',
    async (path) => expect(await remembered('Write', file(path))).toEqual({ saved: [], outcome: 'ask' }),
  );

  it.each(['Read', 'Ls', 'Grep', 'Glob', 'Write'])('saves none for the top of the file system: %s', async (tool) => {
    expect(await remembered(tool, file('/'))).toEqual({ saved: [], outcome: 'ask' });
    expect(await permissions().widened(tool, file('/'), ws)).toEqual([]);
  });

  it('saves none for a search that would show files which another rule hides', async () => {
    await writeFile(join(ws, 'src/key'), 'KEY');
    const args = { pattern: 'KEY', path: 'src' };
    for (const list of ['deny', 'ask'] as const)
      expect(await remembered('Grep', args, { [list]: ['read(key)'] })).toEqual({ saved: [], outcome: 'ask' });
    const outside = { pattern: 'KEY', path: '/nowhere' };
    expect(await remembered('Grep', outside, { deny: ['read(key)'] })).toEqual({
      saved: ['grep(//nowhere)'],
      outcome: 'allow',
    });
  });

  it.each(['*', '\\'])(
    'saves none that would be longer than rules may be: 1,500 and 3,000 times %j',
    async (letter) => {
      const path = (count: number): Json => file(`${letter.repeat(100)}/`.repeat(count / 100));
      const command = (count: number): Json => ({ command: `make '${letter.repeat(count)}'` });
      for (const [tool, fits, tooLong] of [
        ['Write', path(1500), path(3000)],
        ['Bash', command(1500), command(3000)],
      ] as const) {
        const { saved, outcome } = await remembered(tool, fits);
        expect([tool, saved.length, outcome]).toEqual([tool, 1, 'allow']);
        expect(await remembered(tool, tooLong)).toEqual({ saved: [], outcome: 'ask' });
      }
    },
  );

  it.each(['9lives', '-x'])('saves none for a tool that no rule can name: %s', async (tool) => {
    expect(await remembered(tool, {})).toEqual({ saved: [], outcome: 'ask' });
    expect(await remembered(`t${tool}`, {})).toEqual({ saved: [`t${tool}`], outcome: 'allow' });
  });

  it('saves none for a redirection through a link, and so none for its line', async () => {
    expect(await remembered('Bash', { command: 'make > dangling' })).toEqual({ saved: [], outcome: 'ask' });
    expect(await remembered('Bash', { command: 'make > src/out' })).toEqual({
      saved: ['bash(make)', 'edit(./src/out)'],
      outcome: 'allow',
    });
  });
});
