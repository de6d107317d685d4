/** The model of the program, option by option: keys, addresses, windows, secrets, who may name code, and entries of packages. */
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { chosenModel, type ModelOptions, PROVIDERS } from '../../src/cli/models/modelChoice.ts';
import { providerPackage } from '../../src/cli/models/providerPackage.ts';
import { expandVariables } from '../../src/cli/models/variables.ts';
import { type ConfigurationFile, loadConfiguration } from '../../src/session/configuration.ts';

let root = '';
beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'runchart-model-')));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  await mkdir(join(root, 'work/.git'), { recursive: true });
  vi.stubEnv('XDG_CONFIG_HOME', join(root, 'config'));
  for (const { keys, address } of Object.values(PROVIDERS))
    for (const name of [...keys, address]) vi.stubEnv(name, undefined);
});
afterEach(() => vi.unstubAllEnvs());

const write = async (file: string, text: string): Promise<void> => {
  await mkdir(dirname(join(root, file)), { recursive: true });
  await writeFile(join(root, file), text);
};
/** A variable as files write it. */
const v = (name: string): string => `\${${name}}`;
const USER = 'config/runchart/config.json';
const PROJECT = 'work/.runchart/config.json';
async function modelOf(options: ModelOptions, files: { [path: string]: ConfigurationFile } = {}, trusted = false) {
  for (const [path, settings] of Object.entries(files)) await write(path, JSON.stringify(settings));
  const cwd = join(root, 'work');
  return chosenModel(options, await loadConfiguration({ cwd, trusted }), cwd);
}
const CODE = (folder: string) => `export const createThing = (options = {}) => (modelId) => ({
  specificationVersion: 'v3', provider: '${folder}', modelId, supportedUrls: {}, options,
  doStream: async () => {},
});`;
async function installed(folder: string, name = 'a-provider'): Promise<void> {
  await write(`${folder}/node_modules/${name}/package.json`, '{"type":"module","exports":"./main.js"}');
  await write(`${folder}/node_modules/${name}/main.js`, CODE(folder));
}

test('each provider has its own key and address, the first of two keys counts, and an empty one is none', () => {
  const facts = Object.entries(PROVIDERS).map(([name, { keys, address, id }]) => [name, keys, address, id]);
  expect(facts).toEqual([
    ['openai', ['OPENAI_API_KEY'], 'OPENAI_BASE_URL', 'openai'],
    ['openai-responses', ['OPENAI_API_KEY'], 'OPENAI_BASE_URL', 'openai'],
    ['anthropic', ['ANTHROPIC_API_KEY'], 'ANTHROPIC_BASE_URL', 'anthropic'],
    ['google', ['GOOGLE_GENERATIVE_AI_API_KEY', 'GEMINI_API_KEY'], 'GOOGLE_BASE_URL', 'google'],
  ]);
});

describe('a key', () => {
  test.each([
    ['sk-process-0123', 'sk-file-0123456', 'sk-process-0123'],
    ['', 'sk-file-0123456', 'sk-file-0123456'],
    [undefined, 'sk-file-0123456', 'sk-file-0123456'],
  ])('%j of the process and %j of the file are %s', async (own, ofFile, used) => {
    vi.stubEnv('OPENAI_API_KEY', own);
    const environment = { OPENAI_API_KEY: ofFile };
    expect((await modelOf({ model: 'm' }, { [USER]: { environment } })).secrets).toEqual([used]);
  });

  test.each([
    ['openai', '', true],
    ['openai-responses', ' for the provider openai-responses', true],
    ['anthropic', ' for the provider anthropic', false],
    ['google', ' for the provider google', false],
  ])(
    'of %s that is missing is an error that names the provider, and a server without keys where there are some',
    async (provider, words, isLocal) => {
      const [key = ''] = PROVIDERS[provider]?.keys ?? [];
      const failure = modelOf({ model: 'm', provider });
      await expect(failure).rejects.toThrow(`no API key${words}: set ${key}, or put it`);
      const message = await failure.then(
        () => '',
        (error: Error) => error.message,
      );
      expect(message.includes(`${key}=none`)).toBe(isLocal);
      expect(message).toContain('Another provider: --provider anthropic, google, openai-responses');
    },
  );
});

describe('the window', () => {
  beforeEach(() => vi.stubEnv('OPENAI_API_KEY', 'sk-0123456789'));

  test.each([
    ['1', 1],
    ['200000', 200_000],
    ['200k', 200_000],
    ['200K', 200_000],
    ['2m', 2_000_000],
    ['1M', 1_000_000],
    ['1_000', 1_000],
    ['1,000,000', 1_000_000],
    ['128_000', 128_000],
  ])('--context-window %s is %i tokens', async (contextWindow, tokens) => {
    expect((await modelOf({ model: 'm', contextWindow })).contextWindow).toBe(tokens);
  });

  test.each(['', '0', '0k', 'k', '1.5k', '-1', '1g', '1 k', 'k1', '1kk', '0x10'])(
    '--context-window %j is refused',
    async (contextWindow) => {
      await expect(modelOf({ model: 'm', contextWindow })).rejects.toThrow(
        `expected --context-window to be a number of tokens, like 200000 or 200k; got ${contextWindow}`,
      );
    },
  );

  test.each([
    ['65535', 16_384],
    ['65536', undefined],
    ['1001', 251],
    ['8k', 2_000],
  ])('of %s tokens leaves %j for a reply', async (contextWindow, maxOutputTokens) => {
    expect((await modelOf({ model: 'm', contextWindow })).maxOutputTokens).toBe(maxOutputTokens);
  });
});

describe('the choice of a model', () => {
  test('an empty option counts as none', async () => {
    vi.stubEnv('OPENAI_API_KEY', 'sk-0123456789');
    expect((await modelOf({ model: '', provider: '' }, { [USER]: { model: 'own' } })).id).toBe('own');
    await expect(modelOf({ model: '' }, { [USER]: {} })).rejects.toThrow('no model is chosen');
  });

  test('is the provider of the option, else of the model, else of the file, else openai', async () => {
    for (const each of ['one', 'two', 'three']) await installed('config/runchart', `p-${each}`);
    const [one, two] = [{ package: 'p-one' }, { package: 'p-two' }];
    const files = { [USER]: { provider: one, models: { m: { provider: two } } } };
    const nameOf = async (options: ModelOptions) => {
      const loads = await modelOf(options, files).catch((error: Error) => error.message);
      return typeof loads === 'string' ? loads : loads.provider;
    };
    expect(await nameOf({ model: 'm', provider: 'anthropic' })).toContain('ANTHROPIC_API_KEY');
    await rm(join(root, 'config/runchart/node_modules/p-two'), { recursive: true });
    expect(await nameOf({ model: 'm' })).toContain('p-two of the provider is not installed');
    expect(await nameOf({ model: 'other' })).toBe('config/runchart');
    await rm(join(root, 'config/runchart/node_modules/p-one'), { recursive: true });
    expect(await nameOf({ model: 'other' })).toContain('p-one of the provider is not installed');
  });

  test('a model that a file of the user gives a package never loads code of the project', async () => {
    await installed('work');
    const models = { m: { provider: { package: 'a-provider' } } };
    const provider = { package: 'other' };
    await expect(modelOf({ model: 'm' }, { [USER]: { models }, [PROJECT]: { provider } }, true)).rejects.toThrow(
      'a-provider of the provider is not installed',
    );
    const window = { m: { contextWindow: 100_000 } };
    const both = { [USER]: { models }, [PROJECT]: { models: window } };
    await expect(modelOf({ model: 'm' }, both, true)).rejects.toThrow('a-provider of the provider is not installed');
    await rm(join(root, USER));
    const loaded = await modelOf({ model: 'm' }, { [PROJECT]: { models } }, true);
    expect(loaded.provider).toBe('work');
  });

  test('a package of the project comes before that of the user only if the project names it', async () => {
    await installed('work');
    await installed('config/runchart');
    const provider = { package: 'a-provider' };
    const by = async (file: string) => (await modelOf({ model: 'm' }, { [file]: { provider } }, true)).provider;
    expect(await by(USER)).toBe('config/runchart');
    await rm(join(root, USER));
    expect(await by(PROJECT)).toBe('work');
    await rm(join(root, PROJECT));
    expect((await modelOf({ model: 'm', provider: 'a-provider' })).provider).toBe('config/runchart');
  });

  test.each(['mistrel', 'a/b c', '@ai-sdk/nothing'])(
    '%s of a file is no package by its name alone',
    async (provider) => {
      await expect(modelOf({ model: 'm' }, { [USER]: { provider } })).rejects.toThrow(
        'expected the provider to be one of',
      );
    },
  );
});

test.each<[object, string[]]>([
  [{ apiKey: 'k-1' }, ['k-1']],
  [{ ApiKEY: 'k-1', TOKEN: 't-1', clientSecret: 's-1', Password: 'p-1' }, ['k-1', 't-1', 's-1', 'p-1']],
  [{ headers: { authorization: 'a-1', other: 'o-1' } }, ['a-1']],
  [{ tokens: { first: 'f-1', deep: ['d-1', { e: 'e-1' }] } }, ['f-1', 'd-1', 'e-1']],
  [{ apiKey: '', baseURL: 'http://x', retries: 3 }, []],
  [{ baseURL: `${v('PLACE')}/v1` }, ['http://place']],
])('of the options %j these are secrets: %j', async (options, secrets) => {
  await installed('config/runchart');
  vi.stubEnv('PLACE', 'http://place');
  const provider = { package: 'a-provider', options: { ...options } };
  expect((await modelOf({ model: 'm' }, { [USER]: { provider } })).secrets).toEqual(secrets);
});

describe('variables', () => {
  const variables: { [name: string]: string } = { A: 'a', EMPTY: '', _B1: 'b' };
  test.each<[unknown, unknown, string[], string[]]>([
    [`$A ${v('A')}${v('_B1')}`, '$A ab', [], ['a', 'b']],
    [`${v('EMPTY:-x')} ${v('NO:-')} ${v('NO:-a b')}`, 'x  a b', [], []],
    [`${v('NO')} ${v('EMPTY')} ${v('NO')}`, '  ', ['NO', 'EMPTY'], []],
    [`${v('1')} ${v('A-x')} ${v('a b')}`, `${v('1')} ${v('A-x')} ${v('a b')}`, [], []],
    [{ [v('A')]: [v('A'), 1, null, true] }, { [v('A')]: ['a', 1, null, true] }, [], ['a']],
  ])('in %j give %j', (input, value, missing, values) => {
    expect(expandVariables(input, (name) => variables[name])).toEqual({ value, missing, values });
  });
});

describe('the entry of a package', () => {
  test.each<[string, object, string]>([
    ['a text', { exports: './a.mjs' }, 'a.mjs'],
    ['conditions', { exports: { require: './b.mjs', import: './a.mjs', default: './b.mjs' } }, 'a.mjs'],
    ['the default alone', { exports: { browser: './b.mjs', default: './a.mjs' } }, 'a.mjs'],
    ['node', { exports: { '.': { node: { import: './a.mjs' }, default: './b.mjs' } } }, 'a.mjs'],
    ['the order of its conditions', { exports: { '.': { default: './a.mjs', import: './b.mjs' } } }, 'a.mjs'],
    ['a list', { exports: { '.': [{ browser: './b.mjs' }, './a.mjs'] } }, 'a.mjs'],
    ['nothing for an import', { exports: { '.': { require: './b.mjs' } }, main: './a.mjs' }, 'a.mjs'],
    ['module before main', { module: './a.mjs', main: './b.mjs' }, 'a.mjs'],
    ['main', { main: './a.mjs' }, 'a.mjs'],
    ['neither', { type: 'module' }, 'index.js'],
  ])('is read from %s', async (_, manifest, entry) => {
    const folder = 'work/node_modules/p';
    await write(`${folder}/package.json`, JSON.stringify(manifest));
    for (const file of ['a.mjs', 'b.mjs', 'index.js'])
      await write(`${folder}/${file}`, `export const createIt = () => () => '${file}';`);
    const create = await providerPackage('p', { directories: [join(root, 'work')] });
    expect((create({}) as (name: string) => unknown)('m')).toBe(entry);
  });

  test('is looked for above the directory, up to the root of the repository', async () => {
    await installed('work');
    await mkdir(join(root, 'work/deep/er'), { recursive: true });
    const from = (...path: string[]) => providerPackage('a-provider', { directories: [join(root, ...path)] });
    expect(typeof (await from('work', 'deep', 'er'))).toBe('function');
    await mkdir(join(root, 'work/deep/.git'));
    await expect(from('work', 'deep', 'er')).rejects.toThrow('is not installed');
  });

  test('that fails itself is its own error, not a missing package', async () => {
    await write('work/node_modules/p/package.json', '{"type":"module","main":"./main.js"}');
    await write('work/node_modules/p/main.js', "throw new Error('the license has ended');");
    await expect(providerPackage('p', { directories: [join(root, 'work')] })).rejects.toThrow('the license has ended');
  });

  test.each(['', '.', '..', './p', '/p', 'a/b', '@a', '@a/', '@a/b/c', 'a b', 'file:x', 'node:fs/..'])(
    '%j is no name of a package',
    async (name) => {
      await expect(providerPackage(name, { directories: [] })).rejects.toThrow('must be a name like');
    },
  );
});
