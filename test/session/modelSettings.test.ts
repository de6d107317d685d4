/** The provider and the models of configuration files: valid forms, the owner of the file that sets them, and untrusted projects. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ConfigurationError } from '../../src/index.ts';
import { loadConfiguration } from '../../src/node.ts';
import { temporaryFolder } from '../support/temporaryFolder.ts';

const USER = 'user/config.json';
const PROJECT = 'shop/.runchart/config.json';

/** The configuration of these files; the projects are trusted or not. */
async function load(files: { [path: string]: object }, trusted = true) {
  const home = temporaryFolder();
  for (const [path, settings] of Object.entries(files)) {
    mkdirSync(dirname(join(home, path)), { recursive: true });
    writeFileSync(join(home, path), JSON.stringify(settings));
  }
  mkdirSync(join(home, 'shop/.git'), { recursive: true });
  return loadConfiguration({ cwd: join(home, 'shop'), userDirectory: join(home, 'user'), trusted });
}

describe('the provider of a file', () => {
  it.each([
    'anthropic',
    { package: 'a-provider' },
    { package: 'a-provider', export: 'createOne', options: { apiKey: 'k', nested: { a: [1] } } },
  ])('may be %j', async (provider) => {
    const { provider: ofFile, models } = await load({ [USER]: { provider, models: { m: { provider } } } });
    expect(ofFile).toEqual({ of: 'user', setting: provider });
    expect({ ...models }).toEqual({ m: { provider, of: 'user' } });
  });

  it.each([
    '',
    7,
    null,
    [],
    {},
    { export: 'createOne' },
    { package: '' },
    { package: 7 },
    { package: 'p', export: '' },
    { package: 'p', options: 'sk-12345' },
    { package: 'p', options: ['sk-12345'] },
    { package: 'p', key: 'sk-12345' },
  ])('may not be %j, for all models or for one, and the error quotes no key', async (provider) => {
    for (const settings of [{ provider }, { models: { m: { provider } } }]) {
      const error: unknown = await load({ [USER]: settings }).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(ConfigurationError);
      expect(String(error)).toContain(USER);
      expect(String(error)).toContain('provider');
      expect(String(error)).not.toContain('sk-12345');
    }
  });

  it('is that of the nearest trusted file which has one, with the side that it is from', async () => {
    const [user, project] = [{ provider: 'anthropic' }, { provider: { package: 'p' } }];
    const ofUser = { of: 'user', setting: 'anthropic' };
    expect((await load({ [USER]: user, [PROJECT]: project })).provider).toEqual({
      ...{ of: 'project', setting: { package: 'p' } },
    });
    expect((await load({ [USER]: user, [PROJECT]: { model: 'm' } })).provider).toEqual(ofUser);
    const untrusted = await load({ [USER]: user, [PROJECT]: project }, false);
    expect(untrusted.provider).toEqual(ofUser);
    expect(untrusted.ignored).toEqual([expect.stringMatching(/config\.json: provider$/)]);
    expect((await load({ [PROJECT]: project }, false)).provider).toBeUndefined();
  });
});

describe('the settings of a model', () => {
  it.each([
    {},
    { contextWindow: 1 },
    { prices: { input: 0, output: 0 } },
    { prices: { input: 1.5, output: 2, cachedInput: 0.1, cacheWrite: 3 } },
  ])('may be %j', async (settings) => {
    const { models } = await load({ [USER]: { models: { m: settings } } });
    expect({ ...models }).toEqual({ m: { ...settings, of: 'user' } });
  });

  it.each<[object, RegExp]>([
    [{ contextWindow: 0 }, /contextWindow/],
    [{ contextWindow: 1.5 }, /contextWindow/],
    [{ contextWindow: '8000' }, /contextWindow/],
    [{ window: 8_000 }, /window is unknown/],
    [{ prices: { input: 1 } }, /models\.m\.prices must have input and output/],
    [{ prices: { output: 1 } }, /models\.m\.prices must have input and output/],
    [{ prices: {} }, /models\.m\.prices must have input and output/],
    [{ prices: { input: -1, output: 1 } }, /input/],
    [{ prices: { input: 1, output: '1' } }, /output/],
    [{ prices: { input: 1, output: 1, cached: 1 } }, /cached is unknown/],
    [{ prices: 1 }, /prices/],
    [[], /models\.m/],
  ])('may not be %j', async (settings, why) => {
    const loaded = load({ [USER]: { models: { m: settings } } });
    await expect(loaded).rejects.toThrow(ConfigurationError);
    await expect(loaded).rejects.toThrow(why);
  });

  it('are from the project where it names the provider, and else from the user who named it', async () => {
    const [one, other] = [{ package: 'one' }, { package: 'other' }];
    const { models } = await load({
      [USER]: { models: { kept: { provider: one }, replaced: { provider: one }, plain: { contextWindow: 1 } } },
      [PROJECT]: {
        models: { kept: { contextWindow: 2 }, replaced: { provider: other }, plain: { contextWindow: 2 }, own: {} },
      },
    });
    expect({ ...models }).toEqual({
      kept: { provider: one, contextWindow: 2, of: 'user' },
      replaced: { provider: other, of: 'project' },
      plain: { contextWindow: 2, of: 'project' },
      own: { of: 'project' },
    });
  });

  it('of an untrusted project are ignored and listed by the names of the models', async () => {
    const files = {
      [USER]: { models: { m: { contextWindow: 1 } } },
      [PROJECT]: { models: { m: { contextWindow: 2 }, n: { provider: { package: 'p' } } } },
    };
    const { models, ignored } = await load(files, false);
    expect({ ...models }).toEqual({ m: { contextWindow: 1, of: 'user' } });
    expect(ignored.map((each) => each.split(': ').at(-1))).toEqual(['models.m', 'models.n']);
  });

  it('belong to no model whose name only an object has', async () => {
    expect((await load({})).models.constructor).toBeUndefined();
    const { models } = await load({ [USER]: { models: { constructor: { contextWindow: 1 } } } });
    expect({ ...models }).toEqual({ constructor: { contextWindow: 1, of: 'user' } });
  });
});
