/** The user's decisions about projects: each record complete or unchanged, private, and for one place only. */
import { chmod, mkdir, mkdtemp, readdir, readFile, realpath, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { isTrusted, keptRules, trustFiles } from '../../src/session/trust.ts';

let root = '';
let user = '';
beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'runchart-records-')));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  user = join(root, 'config', 'runchart');
});
const file = (path: string, text: string) => ({ path, text, cut: false });
const modeOf = async (path: string): Promise<number> => (await stat(path)).mode & 0o777;

describe('trust', () => {
  test('is for one file with one content, and ends with a change of it', async () => {
    expect(await isTrusted(file('/a', '1'), user)).toBe(false);
    await trustFiles([file('/a', '1'), file('/b', '1')], user);
    for (const [each, trusted] of [
      [file('/a', '1'), true],
      [file('/b', '1'), true],
      [file('/a', '2'), false],
      [file('/c', '1'), false],
      [file('constructor', '1'), false],
    ] as const)
      expect([each, await isTrusted(each, user)]).toEqual([each, trusted]);
    await trustFiles([file('/a', '2')], user);
    expect([await isTrusted(file('/a', '1'), user), await isTrusted(file('/a', '2'), user)]).toEqual([false, true]);
    expect(await isTrusted(file('/b', '1'), user)).toBe(true);
    expect(await isTrusted(file('/a', '2'), join(root, 'other'))).toBe(false);
  });
});

describe('a kept rule', () => {
  test('is for its directory, whatever link leads there, is kept once, and is gone after its removal', async () => {
    const [one, other] = [join(root, 'one'), join(root, 'other')];
    for (const directory of [one, other]) await mkdir(directory);
    await symlink(one, join(root, 'link'));
    const rules = keptRules(user);
    expect(await rules.rulesIn(one)).toEqual([]);
    await rules.add(one, ['bash(a)', 'bash(b)']);
    await rules.add(join(root, 'link'), ['bash(b)', 'bash(c)']);
    expect(await keptRules(user).rulesIn(one)).toEqual(['bash(a)', 'bash(b)', 'bash(c)']);
    expect(await rules.rulesIn(other)).toEqual([]);
    expect(await rules.remove(other, 'bash(a)')).toBe(false);
    expect(await rules.remove(join(root, 'link'), 'bash(b)')).toBe(true);
    expect(await rules.remove(one, 'bash(b)')).toBe(false);
    expect(await rules.rulesIn(join(root, 'link'))).toEqual(['bash(a)', 'bash(c)']);
    await rules.add(one, ['bash(b)']);
    expect(await rules.rulesIn(one)).toEqual(['bash(a)', 'bash(c)', 'bash(b)']);
  });

  test('that is invalid is refused, and changes nothing', async () => {
    const rules = keptRules(user);
    await rules.add(root, ['bash(a)']);
    for (const wrong of ['bash(', 'bash()', 'bash(* x)', ''])
      await expect(rules.add(root, ['bash(b)', wrong])).rejects.toThrow(ConfigurationError);
    expect(await rules.rulesIn(root)).toEqual(['bash(a)']);
    expect(await rules.remove(root, 'bash(b)')).toBe(false);
  });
});

describe('a record', () => {
  test('can be read by its user only, and leaves no draft beside it', async () => {
    await trustFiles([file('/a', '1')], user);
    await keptRules(user).add(root, ['bash(a)']);
    expect((await readdir(user)).sort()).toEqual(['allowed.json', 'trusted.json']);
    expect(await modeOf(user)).toBe(0o700);
    for (const name of ['allowed.json', 'trusted.json']) {
      expect([name, await modeOf(join(user, name))]).toEqual([name, 0o600]);
      await chmod(join(user, name), 0o644);
    }
    await trustFiles([file('/b', '1')], user);
    await keptRules(user).add(root, ['bash(b)']);
    for (const name of ['allowed.json', 'trusted.json'])
      expect([name, await modeOf(join(user, name))]).toEqual([name, 0o600]);
  });

  test.each(['', '{', '[]', 'null', '1', '"x"'])(
    'that contains %j is an error that names it, and it stays as it is',
    async (text) => {
      await mkdir(user, { recursive: true });
      for (const [name, acts] of [
        ['trusted.json', [() => isTrusted(file('/a', '1'), user), () => trustFiles([file('/a', '1')], user)]],
        ['allowed.json', [() => keptRules(user).rulesIn(root), () => keptRules(user).add(root, ['bash(a)'])]],
      ] as const) {
        await writeFile(join(user, name), text);
        for (const act of acts) {
          await expect(act()).rejects.toThrow(ConfigurationError);
          await expect(act()).rejects.toThrow(join(user, name));
        }
        expect(await readFile(join(user, name), 'utf8')).toBe(text);
      }
    },
  );

  test.each<[unknown]>([[{}], ['bash(a)'], [[1]], [['bash(']], [[['bash']]]])(
    'of a directory with the rules %j is an error',
    async (rules) => {
      await mkdir(user, { recursive: true });
      await writeFile(join(user, 'allowed.json'), JSON.stringify({ [root]: rules, '/other': ['bash(a)'] }));
      await expect(keptRules(user).rulesIn(root)).rejects.toThrow('allowed.json cannot be used: ');
      await expect(keptRules(user).add(root, ['bash(b)'])).rejects.toThrow(ConfigurationError);
      expect(await keptRules(user).rulesIn('/other')).toEqual(['bash(a)']);
    },
  );
});
