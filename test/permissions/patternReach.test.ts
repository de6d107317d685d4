/** Whether a glob or a search may find a file that a rule's pattern matches. */
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type PathPattern, pathPattern, pathSubject, surroundingsOf } from '../../src/permissions/pathRules.ts';
import { mayMeetGlob, mayShow } from '../../src/permissions/patternReach.ts';
import { explain, workspace } from './permissionWorkspace.ts';

const ws = await workspace();
await mkdir(join(ws, '.cfg/deep'), { recursive: true });
await writeFile(join(ws, '.cfg/deep/key'), '');
await mkdir(join(ws, 'tree/.dot/below'), { recursive: true });
await writeFile(join(ws, 'tree/.dot/below/key'), '');
await writeFile(join(ws, 'tree/plain'), '');
await symlink(ws, join(ws, '..', 'linked'));
const patternOf = (spec: string): PathPattern => {
  const pattern = pathPattern(spec);
  if (typeof pattern === 'string') throw new Error(pattern);
  return pattern;
};

describe('a glob', () => {
  it.each([
    ['./src/a.ts', 'src/*', 'src', true],
    ['./src/a.ts', 'docs/*', 'docs', false],
    ['./src/a.ts', 'src/*.md', 'src', false],
    ['./src/a.ts', 'src/*.TS', 'src', true],
    ['./src/a.ts', 'src/b*', 'src', false],
    ['./src/a.ts', 'src/A*s', 'src', true],
    ['./src/a.ts', 'src/[ab].ts', 'src', true],
    ['./src/*', 'src/x*', 'src', true],
    ['./src/.env', 'src/*', 'src', false],
    ['./src/.env', 'src/?env', 'src', false],
    ['./src/.env', 'src/.*', 'src', true],
    ['./src/.env', 'src/.x*', 'src', false],
    ['./a/b/c', 'a/*', 'a', true],
    ['./a/b/c', 'a/x*', 'a', false],
    ['./a/b', 'a/b*/c', 'a', true],
    ['./a/**/c', 'a/x*', 'a', true],
    ['.env', 'src/*', 'src', true],
    ['./src/a.ts', 'docs/**/x', 'docs', true],
    ['./src/a.ts', 'docs/*/../x', 'docs', true],
    [`/${ws}/src/a.ts`, 'src/*', 'src', true],
    [`/${ws}/src/a.ts`, 'docs/*', 'docs', false],
  ])('by the pattern %s, %s may find its files: see the row', async (spec, glob, from, expected) => {
    const around = await surroundingsOf(ws);
    const directory = await pathSubject(from, ws, around);
    expect(mayMeetGlob(patternOf(spec), glob, directory, around)).toBe(expected);
    expect(mayMeetGlob(patternOf(spec), glob, { ...directory, real: undefined }, around)).toBe(true);
  });

  it('is compared by the spelling of its directory and by the place where that leads', async () => {
    const around = await surroundingsOf(ws);
    const linked = { written: 'x', spelled: join(ws, 'elsewhere'), real: join(ws, 'src') };
    expect(mayMeetGlob(patternOf('./src/a.ts'), 'x/*', linked, around)).toBe(true);
    expect(mayMeetGlob(patternOf('./elsewhere/a.ts'), 'x/*', linked, around)).toBe(true);
    expect(mayMeetGlob(patternOf('./x/a.ts'), 'x/*', linked, around)).toBe(false);
  });
});

describe('a search', () => {
  const shows = async (spec: string, directory: string, how: { dotted?: boolean; isNow?: boolean } = {}, cwd = ws) =>
    mayShow(
      patternOf(spec),
      { directory: join(ws, directory), dotted: false, isNow: true, ...how },
      await surroundingsOf(cwd),
    );

  it.each([
    ['a.ts', 'src', {}, true],
    ['a.ts', 'docs', {}, false],
    ['./src/a.ts', '.', {}, true],
    ['./src/a.ts', 'docs', {}, false],
    ['.env', 'sub', {}, false],
    ['.env', 'sub', { dotted: true }, true],
    ['key', 'tree', {}, false],
    ['key', 'tree', { dotted: true }, true],
    ['./tree/.dot/below/*', 'tree', { dotted: true }, true],
    ['./tree/.dot/other/*', 'tree', { dotted: true }, false],
    ['none', 'nowhere', {}, false],
  ])('for %s in %s, as %o, finds what is there now: %s', async (spec, directory, how, expected) => {
    expect(await shows(spec, directory, how)).toBe(expected);
  });

  it.each([
    ['none', 'docs', {}, true],
    ['.none', 'docs', {}, false],
    ['.none', 'docs', { dotted: true }, true],
    ['.none', '.cfg/deep', {}, true],
    ['.none', '../ws-evil', {}, true],
    ['./src/.none', 'docs', { dotted: true }, false],
  ])('for %s in %s, as %o, may find what is made before: %s', async (spec, directory, how, expected) => {
    expect(await shows(spec, directory, { ...how, isNow: false })).toBe(expected);
  });

  it('spells what it finds from the working directory, which may be reached by a link', async () => {
    const linked = join(ws, '..', 'linked');
    expect(await shows(`/${linked}/src/a.ts`, 'src', {}, linked)).toBe(true);
    expect(await shows('./src/a.ts', 'src', {}, linked)).toBe(true);
    expect(await shows(`/${linked}/**/a.ts`, '.', {}, linked)).toBe(true);
    expect(await shows(`/${join(ws, '..')}/**/a.ts`, '.', {}, linked)).toBe(true);
    expect(await shows(`/${join(ws, '..')}/*/src/*`, '.', {}, linked)).toBe(true);
    expect(await shows(`/${linked}/docs/*`, 'src', {}, linked)).toBe(false);
    const rules = { deny: [`read(/${linked}/src/**)`] };
    for (const command of ['cat src/a.ts', 'grep -rn KEY .', 'rg KEY'])
      expect([command, (await explain(rules, 'Bash', { command }, linked)).outcome]).not.toContain('allow');
    expect((await explain(rules, 'Grep', { pattern: 'KEY', path: '.' }, linked)).outcome).toBe('ask');
    expect((await explain(rules, 'Grep', { pattern: 'KEY', path: 'docs' }, linked)).outcome).toBe('allow');
  });
});
