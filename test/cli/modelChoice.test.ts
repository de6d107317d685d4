/** The model of the program: providers, keys, packages, window and prices, and the errors with their examples. */
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { chosenModel, type ModelOptions } from '../../src/cli/models/modelChoice.ts';
import { ConfigurationError } from '../../src/errors.ts';
import { type ConfigurationFile, loadConfiguration } from '../../src/session/configuration.ts';

let root = '';
beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'runchart-models-')));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  await mkdir(join(root, 'work/.git'), { recursive: true });
  vi.stubEnv('XDG_CONFIG_HOME', join(root, 'config'));
  for (const name of ['OPENAI', 'ANTHROPIC', 'GOOGLE_GENERATIVE_AI', 'GEMINI'])
    vi.stubEnv(`${name}_API_KEY`, undefined);
  for (const name of ['OPENAI', 'ANTHROPIC', 'GOOGLE']) vi.stubEnv(`${name}_BASE_URL`, undefined);
});
afterEach(() => vi.unstubAllEnvs());

const write = async (file: string, text: string): Promise<void> => {
  await mkdir(dirname(join(root, file)), { recursive: true });
  await writeFile(join(root, file), text);
};
const USER = 'config/runchart/config.json';
const PROJECT = 'work/.runchart/config.json';
async function modelOf(options: ModelOptions, files: { [path: string]: ConfigurationFile } = {}, trusted = false) {
  for (const [path, settings] of Object.entries(files)) await write(path, JSON.stringify(settings));
  const cwd = join(root, 'work');
  return chosenModel(options, await loadConfiguration({ cwd, trusted }), cwd);
}

/** A provider as a package of the AI SDK; its `provider` is its folder. */
async function installed(folder: string, name = 'a-provider', more = ''): Promise<void> {
  const at = `${folder}/node_modules/${name}`;
  await write(
    `${at}/package.json`,
    JSON.stringify({ name, type: 'module', exports: { '.': { import: './main.js' } } }),
  );
  const code = `export const createThing = ({ apiKey, baseURL } = {}) => (modelId) => ({
    specificationVersion: 'v3', provider: '${folder}', modelId, supportedUrls: {}, doStream: async () => { throw new Error(apiKey + baseURL); },
  });\n${more}`;
  await write(`${at}/main.js`, code);
}

test.each([
  ['openai', 'OPENAI_API_KEY'],
  ['openai-responses', 'OPENAI_API_KEY'],
  ['anthropic', 'ANTHROPIC_API_KEY'],
])('the provider %s reads its key from %s, and a missing key is an error with an example', async (provider, key) => {
  await expect(modelOf({ model: 'm', provider })).rejects.toThrow(
    new RegExp(`set ${key}, or put it into [^\\n]*\\n {2}.*"${key}":"..."`),
  );
  const made = await modelOf({ model: 'm' }, { [USER]: { provider, environment: { [key]: 'sk-0123456789' } } });
  expect(made).toMatchObject({ id: 'm', secrets: ['sk-0123456789'] });
});

test('google is a package of the AI SDK with the key and address of the program', async () => {
  vi.stubEnv('GEMINI_API_KEY', 'key-0123456789');
  const made = await modelOf({ model: 'gemini-2.5-pro', provider: 'google' });
  expect(made).toMatchObject({ id: 'gemini-2.5-pro', provider: 'gcp.gemini', prices: { input: 1.25 } });
  expect(made.secrets).toContain('key-0123456789');
});

test('window and prices come from options, else from the configuration, else from the list', async () => {
  vi.stubEnv('OPENAI_API_KEY', 'sk-0123456789');
  vi.stubEnv('OPENAI_BASE_URL', 'http://127.0.0.1:1/v1');
  const models = {
    'gpt-5.1': { contextWindow: 9_000 },
    mine: { contextWindow: 8_000, prices: { input: 1, output: 2 } },
  };
  const files = { [USER]: { models } };
  expect(await modelOf({ model: 'gpt-5.1' })).toMatchObject({ contextWindow: 400_000, prices: { input: 1.25 } });
  expect(await modelOf({ model: 'gpt-5.1' }, files)).toMatchObject({ contextWindow: 9_000, prices: { input: 1.25 } });
  expect(await modelOf({ model: 'mine' }, files)).toMatchObject({
    contextWindow: 8_000,
    prices: { input: 1, output: 2 },
  });
  const options = { model: 'mine', contextWindow: '32k', prices: '0.5,3' };
  expect(await modelOf(options, files)).toMatchObject({ contextWindow: 32_000, prices: { input: 0.5, output: 3 } });
  const unknown = await modelOf({ model: 'constructor' });
  expect([unknown.contextWindow, unknown.prices]).toEqual([undefined, undefined]);
  for (const wrong of [
    { contextWindow: 'much' },
    { contextWindow: '0' },
    ...['1', '1,x', '-1,2', '1,-2', ',', ',10', '10,', ' ,1', '1, ', '1,2,3', '1,2,', '1 2', 'NaN,1', ''].map(
      (prices) => ({
        prices,
      }),
    ),
  ])
    await expect(modelOf({ model: 'm', ...wrong })).rejects.toThrow(ConfigurationError);
});

test('a package makes the model with its options and variables, and its key is a secret', async () => {
  await installed('config/runchart');
  vi.stubEnv('THING_KEY', 'sk-thing-0123456789');
  const options = { apiKey: `\${${'THING_KEY'}}`, baseURL: 'http://x' };
  const made = await modelOf({ model: 'm' }, { [USER]: { provider: { package: 'a-provider', options } } });
  expect(made).toMatchObject({ id: 'm', secrets: expect.arrayContaining(['sk-thing-0123456789']) });
  vi.stubEnv('THING_KEY', undefined);
  await expect(modelOf({ model: 'm' })).rejects.toThrow(/needs the variable THING_KEY: .*"THING_KEY":"\.\.\."/);
});

test('code of a project is loaded only if the command line or a trusted file of the project names it', async () => {
  await installed('work');
  const provider = { package: 'a-provider' };
  const missing = /a-provider of the provider is not installed: npm install --prefix \S+ a-provider/;
  await expect(modelOf({ model: 'm' }, { [USER]: { provider } })).rejects.toThrow(missing);
  await rm(join(root, USER));
  const files = { [PROJECT]: { provider, models: { m: { contextWindow: 1 } } } };
  const own = { [USER]: { environment: { OPENAI_API_KEY: 'sk-0123456789' } } };
  const untrusted = await modelOf({ model: 'm' }, { ...files, ...own });
  expect([untrusted.contextWindow, untrusted.secrets]).toEqual([undefined, ['sk-0123456789']]);
  const loaded = { provider: 'work' };
  expect(await modelOf({ model: 'm' }, files, true)).toMatchObject(loaded);
  await rm(join(root, PROJECT));
  expect(await modelOf({ model: 'm', provider: 'a-provider' })).toMatchObject(loaded);
  await installed('config/runchart');
  expect(await modelOf({ model: 'm', provider: 'a-provider' })).toMatchObject({ provider: 'config/runchart' });
});

test('a package that is no provider, and a provider that does not exist, are errors that list the possible ones', async () => {
  await installed('config/runchart', 'two', 'export const createOther = () => undefined;');
  await write('config/runchart/node_modules/none/package.json', '{"main":"./main.cjs"}');
  await write('config/runchart/node_modules/none/main.cjs', 'module.exports = {};');
  const by = (provider: ConfigurationFile['provider']) =>
    modelOf({ model: 'm' }, { [USER]: { provider } as ConfigurationFile });
  await expect(by({ package: 'two' })).rejects.toThrow('"export" must be one of createOther, createThing');
  expect((await by({ package: 'two', export: 'createThing' })).id).toBe('m');
  await expect(by({ package: 'none' })).rejects.toThrow('it has no function named create');
  await write('config/runchart/node_modules/broken/package.json', '{"main":');
  await expect(by({ package: 'broken' })).rejects.toThrow(ConfigurationError);
  await expect(by({ package: 'broken' })).rejects.toThrow(
    /broken\/package\.json is no JSON .*: install the package again/,
  );
  await expect(by({ package: '../evil' })).rejects.toThrow('must be a name like @ai-sdk/mistral');
  await expect(by('mistral')).rejects.toThrow(
    'expected the provider to be one of openai, openai-responses, anthropic, google',
  );
  await expect(modelOf({ model: 'm', provider: 'antropic' })).rejects.toThrow('expected the provider to be one of');
  await expect(modelOf({ provider: 'anthropic' })).rejects.toThrow('runchart -m gpt-5.1');
});
