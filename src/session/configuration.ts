/**
 * Reads configuration files of the user and the project. Rule: the user's file may set anything. A project's file may
 * only make rules stricter and limits lower until the user trusts exactly this version of it; `ignored` lists its other
 * settings. An invalid file is an error that names it, and none of its settings are used.
 */
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { defaultPolicies, type Limits, type LogEntry } from '../../machines/internal.ts';
import { type DeepPartial, mergedPolicies, type Policies } from '../agentPolicies.ts';
import { ConfigurationError, RunchartError, thrownText } from '../errors.ts';
import { type HookOptions, hooks } from '../hooks/hooks.ts';
import {
  type PermissionLayer,
  type PermissionOptions,
  type Permissions,
  permissions,
} from '../permissions/permissions.ts';
import { PERMISSION_MODES, type PermissionMode } from '../permissions/verdict.ts';
import { portsOf } from '../plugins/callChecks.ts';
import type { Plugin } from '../plugins/plugin.ts';
import {
  check,
  choice,
  flag,
  isObject,
  list,
  nonEmptyText,
  number,
  object,
  strings,
  text,
  type Validator,
  whole,
} from '../validation.ts';
import { namedFile, type ProjectFile } from './projectFiles.ts';
import { isTrusted, keptRules, projectFiles, trustFiles } from './trust.ts';

/** The options of `loadConfiguration`. */
export interface ConfigurationOptions {
  /** The directory of the project. */
  cwd: string;
  /** The directory of the user's own files. Default: $XDG_CONFIG_HOME/runchart, or ~/.config/runchart. */
  userDirectory?: string;
  /** The host trusts the project's files, regardless of the user's decision. */
  trusted?: boolean;
}

/** A provider by its name, or a package of the AI SDK: loading it runs its code. */
export type ProviderSetting =
  | string
  | {
      package: string;
      /** The function that makes the provider. Default: the only one named `create…`. */
      export?: string;
      options?: { [name: string]: unknown };
    };

/** The facts about a model, in place of those of the price list. */
export interface ModelSettings {
  /** Tokens. */
  contextWindow?: number;
  /** USD for a million tokens. */
  prices?: { input: number; output: number; cachedInput?: number; cacheWrite?: number };
  /** The provider of this model. */
  provider?: ProviderSetting;
}

/** The settings that one file may contain. */
export interface ConfigurationFile {
  /** The name of the model. */
  model?: string;
  /** The provider of models that name none. */
  provider?: ProviderSetting;
  /** Settings of models, by their names. */
  models?: { [name: string]: ModelSettings };
  /** Permission rules. Rules of an untrusted project can only restrict. */
  permissions?: { mode?: PermissionMode; allow?: string[]; ask?: string[]; deny?: string[]; disabledTools?: string[] };
  /** Commands only. */
  hooks?: HookOptions;
  /** Limits of the policy `limits`. A project can only lower them. */
  limits?: Partial<Limits>;
  /** Environment variables for the program, for example addresses and keys of model servers. */
  environment?: { [name: string]: string };
  /** Whether commands run in a sandbox. */
  sandbox?: 'off' | 'auto' | 'required';
  /** Whether the program asks a model for titles of sessions. */
  titles?: boolean;
  /** The name of the model that makes the titles. */
  titleModel?: string;
}

/** The settings of the user and the project, read from their files. */
export interface Configuration {
  /** The name of the model. */
  readonly model?: string;
  /** The provider of models that name none, and whose file sets it. */
  readonly provider?: { of: 'user' | 'project'; setting: ProviderSetting };
  /** Settings of models, by their names. `of`: whose file contains them. */
  readonly models: { readonly [name: string]: ModelSettings & { of: 'user' | 'project' } };
  /** Whether commands run in a sandbox. */
  readonly sandbox?: 'off' | 'auto' | 'required';
  /** Whether the program asks a model for titles of sessions. Default: true. */
  readonly titles?: boolean;
  /** The name of the model that makes the titles. Default: the model of the session. */
  readonly titleModel?: string;
  /** Environment variables for the program. */
  readonly environment: { readonly [name: string]: string };
  /** Options for `permissions()`, in addition to the host's own rules. */
  readonly permissions: Pick<PermissionOptions, 'mode' | 'layers'>;
  /** Options for `hooks()`. */
  readonly hooks: HookOptions;
  /** Settings of untrusted project files that are ignored. */
  readonly ignored: readonly string[];
  /** The files that were read. */
  readonly files: readonly { path: string; of: 'user' | 'project'; trusted: boolean }[];
  /** The given policies with the user's limits, lowered by the limits of projects. */
  limited(policies?: DeepPartial<Policies>): DeepPartial<Policies>;
}

const BYTES_MAX = 256 * 1_024;
const NAME = 'config.json';

const hook = object({ matcher: text, required: flag, timeoutMs: whole(1), command: nonEmptyText });
const environment = {
  expected: 'an object of names and texts',
  test: (value: unknown) => isObject(value) && Object.values(value).every((each) => typeof each === 'string'),
  secret: true as const,
};
const anyObject: Validator = { expected: 'an object', test: isObject, secret: true };
const packaged = object({ package: nonEmptyText, export: nonEmptyText, options: anyObject });
const provider: Validator = {
  ...packaged,
  expected: 'a name or { package, export, options }',
  test: (value) => (typeof value === 'string' && value !== '') || (isObject(value) && 'package' in value),
};
const prices = object({ input: number(0), output: number(0), cachedInput: number(0), cacheWrite: number(0) });
const modelSettings = object({ contextWindow: whole(1), prices, provider });
const fileValidator = object({
  model: nonEmptyText,
  provider,
  models: { expected: 'an object of names and settings of models', test: isObject },
  permissions: object({
    mode: choice(...PERMISSION_MODES),
    allow: strings,
    ask: strings,
    deny: strings,
    disabledTools: strings,
  }),
  hooks: { ...list('hooks'), expected: 'an object of events and lists of hooks', test: isObject },
  limits: { expected: 'an object', test: isObject },
  environment,
  sandbox: choice('off', 'auto', 'required'),
  titles: flag,
  titleModel: nonEmptyText,
});

export const userDirectoryOf = (directory?: string): string => {
  if (directory !== undefined) return directory;
  const { XDG_CONFIG_HOME = '' } = process.env;
  return join(isAbsolute(XDG_CONFIG_HOME) ? XDG_CONFIG_HOME : join(homedir(), '.config'), 'runchart');
};

interface Layer {
  path: string;
  of: 'user' | 'project';
  trusted: boolean;
  settings: ConfigurationFile;
}

/** Reads the user's file and the project's files. Throws a ConfigurationError that names an invalid file. */
export async function loadConfiguration(options: ConfigurationOptions): Promise<Configuration> {
  const userDirectory = userDirectoryOf(options.userDirectory);
  const own = await namedFile(join(userDirectory, NAME), BYTES_MAX);
  const layers: Layer[] = own ? [{ path: own.path, of: 'user', trusted: true, settings: readConfiguration(own) }] : [];
  const savedRules = keptRules(userDirectory);
  const allow = await savedRules.rulesIn(options.cwd);
  if (allow.length > 0)
    layers.push({ path: savedRules.path, of: 'user', trusted: true, settings: { permissions: { allow } } });
  for (const file of await projectFiles(options.cwd, NAME, BYTES_MAX)) {
    if (file.path === own?.path) continue;
    const trusted = options.trusted ?? (await isTrusted(file, userDirectory));
    layers.push({ path: file.path, of: 'project', trusted, settings: readConfiguration(file) });
  }
  return configurationOf(layers);
}

/** Saves rules that are always allowed in this directory. Returns the path of the user's file that contains them. */
export async function allowAlways(
  rules: readonly string[],
  { cwd, userDirectory }: Omit<ConfigurationOptions, 'trusted'>,
): Promise<string> {
  const savedRules = keptRules(userDirectoryOf(userDirectory));
  await savedRules.add(cwd, rules);
  return savedRules.path;
}

/** Removes a rule that `allowAlways` saved. Resolves to false if there is none. */
export const forgetAllowed = (
  rule: string,
  { cwd, userDirectory }: Omit<ConfigurationOptions, 'trusted'>,
): Promise<boolean> => keptRules(userDirectoryOf(userDirectory)).remove(cwd, rule);

/** Trusts the current version of the project's files. Returns their paths. */
export async function trustProject({ cwd, userDirectory }: Omit<ConfigurationOptions, 'trusted'>): Promise<string[]> {
  const files = await projectFiles(cwd, NAME, BYTES_MAX);
  for (const file of files) readConfiguration(file);
  await trustFiles(files, userDirectoryOf(userDirectory));
  return files.map(({ path }) => path);
}

/**
 * The plugins of a configuration, in addition to the host's rules: permissions, hooks, and a diagnostic that lists the
 * ignored settings.
 */
export function configuredPlugins(
  configuration: Configuration,
  own: Omit<PermissionOptions, 'layers'> = {},
): { rules: Permissions; plugins: Plugin[] } {
  const { mode, layers } = configuration.permissions;
  const rules = permissions({ ...(mode && { mode }), ...own, layers: layers ?? [] });
  const plugins = [rules, hooks(configuration.hooks)];
  return { rules, plugins: configuration.ignored.length > 0 ? [...plugins, ignoredNotice(configuration)] : plugins };
}

/** Logs the ignored settings once for each open conversation. */
function ignoredNotice({ ignored }: Configuration): Plugin {
  const notified = new WeakSet<readonly LogEntry[]>();
  return {
    name: 'configuration',
    runStart(c) {
      const ports = portsOf(c);
      if (!ports || notified.has(ports.entries)) return;
      notified.add(ports.entries);
      ports.diagnose('configuration_ignored', { ignored: [...ignored] });
    },
  };
}

function readConfiguration({ path, text: words, cut }: ProjectFile): ConfigurationFile {
  if (cut) throw new ConfigurationError(`${path} is larger than ${BYTES_MAX} bytes: no configuration is`);
  try {
    const settings = check('it', JSON.parse(words), fileValidator, '') as ConfigurationFile;
    // Checks the rules here, where the error can name the file.
    const { mode: _mode, ...rules } = settings.permissions ?? {};
    permissions(rules);
    for (const [event, hookList] of Object.entries(settings.hooks ?? {}))
      for (const each of list('hooks').test(hookList) ? hookList : []) check(`a hook of ${event}`, each, hook);
    hooks(settings.hooks ?? {});
    for (const [name, each] of Object.entries(settings.models ?? {})) checkModel(name, each);
    mergedPolicies(settings.limits && { limits: settings.limits });
    return settings;
  } catch (error) {
    const why = RunchartError.isRunchartError(error) ? error.message : `it is no JSON: ${thrownText(error)}`;
    throw new ConfigurationError(`the configuration file ${path} cannot be used: ${why}`, { cause: error });
  }
}

function checkModel(name: string, settings: ModelSettings): void {
  check(`models.${name}`, settings, modelSettings);
  const { prices: modelPrices } = settings;
  if (modelPrices && (modelPrices.input === undefined || modelPrices.output === undefined))
    throw new ConfigurationError(`models.${name}.prices must have input and output, in USD for a million tokens`);
}

function configurationOf(layers: readonly Layer[]): Configuration {
  const trusted = layers.filter((layer) => layer.trusted).map(({ settings }) => settings);
  const last = <K extends keyof ConfigurationFile>(key: K): ConfigurationFile[K] | undefined =>
    trusted.filter((settings) => settings[key] !== undefined).at(-1)?.[key];
  const mode = trusted.flatMap((settings) => settings.permissions?.mode ?? []).at(-1);
  const model = last('model');
  const source = layers.filter((layer) => layer.trusted && layer.settings.provider !== undefined).at(-1);
  const models: { [name: string]: ModelSettings & { of: 'user' | 'project' } } = Object.create(null);
  for (const { of, settings } of layers.filter((layer) => layer.trusted))
    for (const [name, each] of Object.entries(settings.models ?? {})) {
      const earlier = models[name];
      // A project that sets the window of a model does not name the package that the user chose for it.
      const keepsProvider = earlier?.provider !== undefined && each.provider === undefined;
      models[name] = { ...earlier, ...each, of: keepsProvider ? earlier.of : of };
    }
  const [sandbox, titles, titleModel] = [last('sandbox'), last('titles'), last('titleModel')];
  return {
    ...(model !== undefined && { model }),
    ...(source?.settings.provider !== undefined && {
      provider: { of: source.of, setting: source.settings.provider },
    }),
    models,
    ...(sandbox !== undefined && { sandbox }),
    ...(titles !== undefined && { titles }),
    ...(titleModel !== undefined && { titleModel }),
    environment: Object.assign({}, ...trusted.map((settings) => settings.environment)),
    permissions: { ...(mode && { mode }), layers: layers.map(layerOf) },
    hooks: joined(trusted),
    ignored: layers.filter((layer) => !layer.trusted).flatMap(ignoredOf),
    files: layers.map(({ path, of, trusted }) => ({ path, of, trusted })),
    limited: (policies = {}) => ({ ...policies, limits: limitsOf(layers, policies.limits ?? {}) }),
  };
}

function layerOf({ path, trusted, settings }: Layer): PermissionLayer {
  const { mode: _mode, ...rules } = settings.permissions ?? {};
  return { name: path, trusted, ...rules };
}

function joined(trusted: readonly ConfigurationFile[]): HookOptions {
  const all: HookOptions = {};
  for (const settings of trusted) {
    for (const [event, hookList] of Object.entries(settings.hooks ?? {}) as [
      keyof HookOptions,
      HookOptions[keyof HookOptions],
    ][])
      all[event] = [...(all[event] ?? []), ...(hookList ?? [])];
  }
  return all;
}

/**
 * The settings of an untrusted file that would not make anything stricter. Values are left out, because they may be
 * secrets.
 */
function ignoredOf({ path, settings }: Layer): string[] {
  const { mode } = settings.permissions ?? {};
  const words = [
    ...(settings.permissions?.allow ?? []).map((rule) => `permissions.allow ${rule}`),
    ...(mode === undefined ? [] : [`permissions.mode ${mode}`]),
    ...Object.keys(settings.hooks ?? {}).map((event) => `hooks.${event}`),
    ...Object.keys(settings.environment ?? {}).map((name) => `environment.${name}`),
    ...(['model', 'provider', 'titles', 'titleModel'] as const).filter((key) => settings[key] !== undefined),
    ...Object.keys(settings.models ?? {}).map((name) => `models.${name}`),
    ...(settings.sandbox === undefined ? [] : ['sandbox']),
  ];
  return words.map((word) => `${path}: ${word}`);
}

type LimitName = keyof Limits;
/** A missing limit counts as infinite. */
const amount = (limit: number | false | undefined): number =>
  typeof limit === 'number' ? limit : Number.POSITIVE_INFINITY;

/** A trusted file sets limits. An untrusted file can only lower the limits of the files before it. */
function limitsOf(layers: readonly Layer[], host: DeepPartial<Limits>): DeepPartial<Limits> {
  let limits: Partial<Limits> = { ...host };
  for (const { settings } of layers.filter(({ trusted }) => trusted)) limits = { ...limits, ...settings.limits };
  for (const { settings } of layers.filter(({ trusted }) => !trusted)) {
    const { limits: projectLimits = {} } = settings;
    const lower = (Object.keys(projectLimits) as LimitName[]).filter(
      (name) => amount(projectLimits[name]) < amount(limits[name] ?? defaultPolicies.limits[name]),
    );
    limits = { ...limits, ...Object.fromEntries(lower.map((name) => [name, projectLimits[name]])) };
  }
  return limits;
}
