/** Several configuration files at once: their precedence, and simultaneous changes of the user's records. */
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { presets } from '../../src/index.ts';
import {
  allowAlways,
  type Configuration,
  type ConfigurationOptions,
  configuredPlugins,
  loadConfiguration,
  trustProject,
} from '../../src/node.ts';
import { userDirectoryOf } from '../../src/session/configuration.ts';
import { bench } from '../support/agentBench.ts';
import { temporaryFolder } from '../support/temporaryFolder.ts';

function place(files: { [path: string]: unknown } = {}) {
  const home = temporaryFolder();
  const write = (path: string, content: unknown): void => {
    mkdirSync(dirname(join(home, path)), { recursive: true });
    writeFileSync(join(home, path), typeof content === 'string' ? content : JSON.stringify(content));
  };
  mkdirSync(join(home, 'shop/.git'), { recursive: true });
  mkdirSync(join(home, 'shop/web'), { recursive: true });
  for (const [path, content] of Object.entries(files)) write(path, content);
  const options = { cwd: join(home, 'shop/web'), userDirectory: join(home, 'user') };
  const load = (more: Partial<ConfigurationOptions> = {}) => loadConfiguration({ ...options, ...more });
  return { home, write, options, load };
}
const USER = 'user/config.json';
const OUTER = 'shop/.runchart/config.json';
const INNER = 'shop/web/.runchart/config.json';

describe('several configuration files', () => {
  const file = (name: string) => ({
    model: `model of ${name}`,
    sandbox: name === 'inner' ? 'required' : 'off',
    permissions: { mode: name === 'inner' ? 'plan' : 'acceptEdits', allow: [`bash(${name})`] },
    hooks: { Stop: [{ command: name }] },
    environment: { [name]: name, SAME: name },
  });
  const commands = ({ hooks }: Configuration) => hooks.Stop?.map((hook) => 'command' in hook && hook.command);

  it('the one nearest to the working directory takes precedence; rules, hooks and variables are joined', async () => {
    const { home, load } = place({ [USER]: file('user'), [OUTER]: file('outer'), [INNER]: file('inner') });
    const all = await load({ trusted: true });
    expect(all).toMatchObject({ model: 'model of inner', sandbox: 'required', ignored: [] });
    expect(all.permissions.mode).toBe('plan');
    expect(all.environment).toEqual({ user: 'user', outer: 'outer', inner: 'inner', SAME: 'inner' });
    expect(commands(all)).toEqual(['user', 'outer', 'inner']);
    expect(all.files).toEqual([
      { path: join(home, USER), of: 'user', trusted: true },
      { path: join(home, OUTER), of: 'project', trusted: true },
      { path: join(home, INNER), of: 'project', trusted: true },
    ]);
    expect(all.permissions.layers?.map(({ name, trusted, allow }) => [name, trusted, allow])).toEqual(
      [USER, OUTER, INNER].map((path, at) => [join(home, path), true, [`bash(${['user', 'outer', 'inner'][at]})`]]),
    );
  });

  it('a missing setting is taken from the previous file', async () => {
    const { load } = place({ [USER]: file('user'), [INNER]: { hooks: {}, permissions: {}, environment: {} } });
    const all = await load({ trusted: true });
    expect(all).toMatchObject({ model: 'model of user', sandbox: 'off', environment: { SAME: 'user' } });
    expect([all.permissions.mode, commands(all)]).toEqual(['acceptEdits', ['user']]);
  });

  it('trusted files are used, and the host’s decision takes precedence over the user’s', async () => {
    const { home, options, load } = place({ [OUTER]: file('outer') });
    const models = async () => [
      (await load()).model,
      (await load({ trusted: true })).model,
      (await load({ trusted: false })).model,
    ];
    expect(await models()).toEqual([undefined, 'model of outer', undefined]);
    expect(await trustProject(options)).toEqual([join(home, OUTER)]);
    expect(await models()).toEqual(['model of outer', 'model of outer', undefined]);
  });

  it('the user’s own file is not a project’s, even in the working directory', async () => {
    const { home, load } = place({ '.runchart/config.json': file('user') });
    const { files, model } = await load({ cwd: home, userDirectory: join(home, '.runchart') });
    expect(files).toEqual([{ path: join(home, '.runchart/config.json'), of: 'user', trusted: true }]);
    expect(model).toBe('model of user');
  });

  it('the mode of the host takes precedence over that of any file', async () => {
    const { load } = place({ [USER]: { permissions: { mode: 'plan' } } });
    const configuration = await load();
    expect(configuredPlugins(configuration).rules.mode).toBe('plan');
    expect(configuredPlugins(configuration, { mode: 'acceptEdits' }).rules.mode).toBe('acceptEdits');
  });

  it('an invalid file is not trusted', async () => {
    const { options, write, load } = place({ [OUTER]: { model: 'a' }, [INNER]: { modle: 'b' } });
    await expect(trustProject(options)).rejects.toThrow(/modle is unknown/);
    write(INNER, {});
    expect((await load()).model).toBeUndefined();
  });
});

describe('limits', () => {
  const { turns } = presets.coding.limits ?? {};
  it.each([
    ['the default is lowered', {}, {}, { turns: 7 }, { turns: 7 }],
    ['the default is not raised', {}, {}, { turns: 100_000, toolMs: 1e9 }, {}],
    ['an unlimited setting gets a limit', {}, {}, { costUsd: 1, tokens: 5 }, { costUsd: 1, tokens: 5 }],
    [
      "a user's limit is not removed",
      {},
      { costUsd: 5, tokens: 9 },
      { costUsd: false, tokens: 10 },
      { costUsd: 5, tokens: 9 },
    ],
    ["a user's limit is lowered", {}, { costUsd: 5 }, { costUsd: 4.5 }, { costUsd: 4.5 }],
    ['a setting that the user made unlimited gets a limit', {}, { costUsd: false }, { costUsd: 3 }, { costUsd: 3 }],
    ['the user’s setting takes precedence over the host’s', { turns: 3 }, { turns: 9 }, {}, { turns: 9 }],
    [
      "a host's limit is lowered, not raised",
      { turns: 3, costUsd: 1 },
      {},
      { turns: 2, costUsd: 2 },
      { turns: 2, costUsd: 1 },
    ],
  ])('of a project: %s', async (_, host, user, project, expected) => {
    const { load } = place({ [USER]: { limits: user }, [OUTER]: { limits: project } });
    expect((await load()).limited({ ...presets.coding, limits: host }).limits).toEqual(expected);
    expect(turns).not.toBe(7);
  });
});

it('the settings of a model that a trusted project leaves out stay those of the user', async () => {
  const ofUser = { contextWindow: 8_000, prices: { input: 1, output: 2 }, provider: 'anthropic' };
  const { load, options } = place({
    [USER]: { models: { m: ofUser, other: ofUser } },
    [OUTER]: { models: { m: { contextWindow: 9_000 } } },
  });
  await trustProject(options);
  const { models } = await load();
  expect(models.m).toMatchObject({ ...ofUser, contextWindow: 9_000 });
  expect(models.other).toMatchObject(ofUser);
});

it('ignored settings are reported once in a conversation, however many runs it has', async () => {
  const { options, load } = place({ [OUTER]: { model: 'dear' } });
  const { plugins } = configuredPlugins(await load());
  const { agent, conversation } = await bench({ plugins, replies: ['a', 'b', 'c'], cwd: options.cwd });
  await conversation.send('one').result;
  await conversation.send('two').result;
  const another = await agent.open('another');
  await another.send('three').result;
  for (const each of [conversation, another]) {
    const diagnostics = each
      .log()
      .filter((entry) => entry.type === 'diagnostic' && entry.code === 'configuration_ignored');
    expect(diagnostics).toHaveLength(1);
  }
  await agent.close();
});

it('the user’s own directory is the named one, otherwise that of XDG if it is absolute, otherwise in the home directory', () => {
  onTestFinished(() => void vi.unstubAllEnvs());
  const at = (value: string | undefined, directory?: string) => {
    vi.stubEnv('XDG_CONFIG_HOME', value);
    return userDirectoryOf(directory);
  };
  const ofHome = join(homedir(), '.config/runchart');
  expect([at('/etc/own'), at('own'), at(''), at(undefined)]).toEqual(['/etc/own/runchart', ofHome, ofHome, ofHome]);
  expect(at('/etc/own', '/elsewhere')).toBe('/elsewhere');
});

describe("the user's records of projects", () => {
  it('they keep every project, even if two are trusted at once', async () => {
    const { home, options, load } = place({
      'a/.runchart/config.json': { model: 'a' },
      'b/.runchart/config.json': { model: 'b' },
      'c/.runchart/config.json': { model: 'c' },
    });
    const { userDirectory } = options;
    const cwds = ['a', 'b', 'c'].map((name) => join(home, name));
    const [a = '', b = '', c = ''] = cwds;
    await Promise.all([trustProject({ cwd: a, userDirectory }), trustProject({ cwd: b, userDirectory })]);
    await trustProject({ cwd: c, userDirectory });
    const models = await Promise.all(cwds.map(async (cwd) => (await load({ cwd })).model));
    expect(models).toEqual(['a', 'b', 'c']);
  });

  it('they keep every rule, even if two are allowed at once, and a failure does not block the next one', async () => {
    const { home, options, write } = place({ 'user/allowed.json': '[' });
    await expect(allowAlways(['bash(no)'], options)).rejects.toThrow(/allowed\.json/);
    await expect(allowAlways(['bash('], options)).rejects.toThrow(/bash\(/);
    write('user/allowed.json', { '/elsewhere': ['bash(x)'] });
    await Promise.all(['bash(a)', 'bash(b)', 'bash(c)'].map((rule) => allowAlways([rule], options)));
    expect(JSON.parse(readFileSync(join(home, 'user/allowed.json'), 'utf8'))).toEqual({
      '/elsewhere': ['bash(x)'],
      [options.cwd]: ['bash(a)', 'bash(b)', 'bash(c)'],
    });
  });

  it.each([0, 1, 2, 3])('of four changes at once the others are kept, if number %i fails', async (failing) => {
    const { home, options } = place({ 'user/allowed.json': { '/spoiled': ['bash('] } });
    const rules = ['bash(a)', 'bash(b)', 'bash(c)', 'bash(d)'];
    const outcomes = await Promise.allSettled(
      rules.map((rule, at) => allowAlways([rule], { ...options, cwd: at === failing ? '/spoiled' : options.cwd })),
    );
    const statuses = outcomes.map(({ status }) => status);
    expect(statuses).toEqual(rules.map((_, at) => (at === failing ? 'rejected' : 'fulfilled')));
    const records = JSON.parse(readFileSync(join(home, 'user/allowed.json'), 'utf8'));
    expect(records[options.cwd]).toEqual(rules.filter((_, at) => at !== failing));
  });

  it('they apply to a directory, whatever link leads to it', async () => {
    const { home, options, load } = place();
    const link = join(home, 'link');
    symlinkSync(options.cwd, link);
    await allowAlways(['bash(a)'], { ...options, cwd: link });
    for (const cwd of [link, options.cwd]) {
      expect((await load({ cwd })).permissions.layers?.map(({ allow }) => allow)).toEqual([['bash(a)']]);
    }
  });
});
