/**
 * Configuration files: the user's own, and those of the project. Rule: the user's may say anything; a project's may make the rules
 * stricter and limits lower and nothing else, until the user has trusted exactly that file; what it asked for besides is told. A file
 * that is wrong is an error that names it, never half a configuration.
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
import { check, choice, flag, isObject, list, nonEmptyText, object, strings, text, whole } from '../validation.ts';
import { namedFile, type ProjectFile } from './projectFiles.ts';
import { isTrusted, keptRules, projectFiles, trustFiles } from './trust.ts';

export interface ConfigurationOptions {
  cwd: string;
  /** Where the user's own files are: $XDG_CONFIG_HOME/runchart, or ~/.config/runchart. */
  userDirectory?: string;
  /** The host trusts the project's files, whatever the user has said. */
  trusted?: boolean;
}

/** What one file may say. */
export interface ConfigurationFile {
  model?: string;
  permissions?: { mode?: PermissionMode; allow?: string[]; ask?: string[]; deny?: string[]; disabledTools?: string[] };
  /** Commands only. */
  hooks?: HookOptions;
  limits?: Partial<Limits>;
  /** For the program: addresses and keys of model servers, for example. */
  environment?: { [name: string]: string };
  sandbox?: 'off' | 'auto' | 'required';
}

export interface Configuration {
  readonly model?: string;
  readonly sandbox?: 'off' | 'auto' | 'required';
  readonly environment: { readonly [name: string]: string };
  /** For `permissions()`, beside the host's own rules. */
  readonly permissions: Pick<PermissionOptions, 'mode' | 'layers'>;
  readonly hooks: HookOptions;
  /** What projects wanted that are not trusted. */
  readonly ignored: readonly string[];
  readonly files: readonly { path: string; of: 'user' | 'project'; trusted: boolean }[];
  /** The policies with the limits of the user, then the lower ones of projects. */
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
const fileValidator = object({
  model: nonEmptyText,
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
});

export const userDirectoryOf = (given?: string): string => {
  if (given !== undefined) return given;
  const { XDG_CONFIG_HOME = '' } = process.env;
  return join(isAbsolute(XDG_CONFIG_HOME) ? XDG_CONFIG_HOME : join(homedir(), '.config'), 'runchart');
};

interface Layer {
  path: string;
  of: 'user' | 'project';
  trusted: boolean;
  said: ConfigurationFile;
}

/** Reads the user's file and those of the project. Throws ConfigurationError for a file that is wrong, and names it. */
export async function loadConfiguration(options: ConfigurationOptions): Promise<Configuration> {
  const userDirectory = userDirectoryOf(options.userDirectory);
  const own = await namedFile(join(userDirectory, NAME), BYTES_MAX);
  const layers: Layer[] = own ? [{ path: own.path, of: 'user', trusted: true, said: read(own) }] : [];
  const kept = keptRules(userDirectory);
  const allow = await kept.of(options.cwd);
  if (allow.length > 0) layers.push({ path: kept.path, of: 'user', trusted: true, said: { permissions: { allow } } });
  for (const file of await projectFiles(options.cwd, NAME, BYTES_MAX)) {
    if (file.path === own?.path) continue;
    const trusted = options.trusted ?? (await isTrusted(file, userDirectory));
    layers.push({ path: file.path, of: 'project', trusted, said: read(file) });
  }
  return configurationOf(layers);
}

/** From now on these rules are allowed in this directory, by a file of the user's own, which is answered. */
export async function allowAlways(
  rules: readonly string[],
  { cwd, userDirectory }: Omit<ConfigurationOptions, 'trusted'>,
): Promise<string> {
  const kept = keptRules(userDirectoryOf(userDirectory));
  await kept.add(cwd, rules);
  return kept.path;
}

/** From now on the project's files count as they are now. Answers which they are. */
export async function trustProject({ cwd, userDirectory }: Omit<ConfigurationOptions, 'trusted'>): Promise<string[]> {
  const files = await projectFiles(cwd, NAME, BYTES_MAX);
  for (const file of files) read(file);
  await trustFiles(files, userDirectoryOf(userDirectory));
  return files.map(({ path }) => path);
}

/** The plugins that a configuration comes to, beside rules of the host's own: rules, hooks, and a word in the log on what was ignored. */
export function configuredPlugins(
  configuration: Configuration,
  own: Omit<PermissionOptions, 'layers'> = {},
): { rules: Permissions; plugins: Plugin[] } {
  const { mode, layers } = configuration.permissions;
  const rules = permissions({ ...(mode && { mode }), ...own, layers: layers ?? [] });
  const plugins = [rules, hooks(configuration.hooks)];
  return { rules, plugins: configuration.ignored.length > 0 ? [...plugins, ignoredNotice(configuration)] : plugins };
}

/** Once a living conversation. */
function ignoredNotice({ ignored }: Configuration): Plugin {
  const told = new WeakSet<readonly LogEntry[]>();
  return {
    name: 'configuration',
    runStart(c) {
      const ports = portsOf(c);
      if (!ports || told.has(ports.entries)) return;
      told.add(ports.entries);
      ports.diagnose('configuration_ignored', { ignored: [...ignored] });
    },
  };
}

function read({ path, text: words, cut }: ProjectFile): ConfigurationFile {
  if (cut) throw new ConfigurationError(`${path} is larger than ${BYTES_MAX} bytes: no configuration is`);
  try {
    const said = check('it', JSON.parse(words), fileValidator, '') as ConfigurationFile;
    // What cannot work is found here, where the file is known.
    const { mode: _mode, ...rules } = said.permissions ?? {};
    permissions(rules);
    for (const [event, given] of Object.entries(said.hooks ?? {}))
      for (const each of list('hooks').test(given) ? given : []) check(`a hook of ${event}`, each, hook);
    hooks(said.hooks ?? {});
    mergedPolicies(said.limits && { limits: said.limits });
    return said;
  } catch (error) {
    const why = RunchartError.isRunchartError(error) ? error.message : `it is no JSON: ${thrownText(error)}`;
    throw new ConfigurationError(`the configuration file ${path} cannot be used: ${why}`, { cause: error });
  }
}

function configurationOf(layers: readonly Layer[]): Configuration {
  const trusted = layers.filter((layer) => layer.trusted).map(({ said }) => said);
  const last = <K extends keyof ConfigurationFile>(key: K): ConfigurationFile[K] | undefined =>
    trusted.filter((said) => said[key] !== undefined).at(-1)?.[key];
  const mode = trusted.flatMap((said) => said.permissions?.mode ?? []).at(-1);
  const model = last('model');
  const sandbox = last('sandbox');
  return {
    ...(model !== undefined && { model }),
    ...(sandbox !== undefined && { sandbox }),
    environment: Object.assign({}, ...trusted.map((said) => said.environment)),
    permissions: { ...(mode && { mode }), layers: layers.map(layerOf) },
    hooks: joined(trusted),
    ignored: layers.filter((layer) => !layer.trusted).flatMap(ignoredOf),
    files: layers.map(({ path, of, trusted }) => ({ path, of, trusted })),
    limited: (policies = {}) => ({ ...policies, limits: limitsOf(layers, policies.limits ?? {}) }),
  };
}

function layerOf({ path, trusted, said }: Layer): PermissionLayer {
  const { mode: _mode, ...rules } = said.permissions ?? {};
  return { name: path, trusted, ...rules };
}

function joined(trusted: readonly ConfigurationFile[]): HookOptions {
  const all: HookOptions = {};
  for (const said of trusted) {
    for (const [event, given] of Object.entries(said.hooks ?? {}) as [
      keyof HookOptions,
      HookOptions[keyof HookOptions],
    ][])
      all[event] = [...(all[event] ?? []), ...(given ?? [])];
  }
  return all;
}

/** Of a file that is not trusted: all that would not make anything stricter. Values are not told, they may be secrets. */
function ignoredOf({ path, said }: Layer): string[] {
  const { mode } = said.permissions ?? {};
  const words = [
    ...(said.permissions?.allow ?? []).map((rule) => `permissions.allow ${rule}`),
    ...(mode === undefined ? [] : [`permissions.mode ${mode}`]),
    ...Object.keys(said.hooks ?? {}).map((event) => `hooks.${event}`),
    ...Object.keys(said.environment ?? {}).map((name) => `environment.${name}`),
    ...(said.model === undefined ? [] : ['model']),
    ...(said.sandbox === undefined ? [] : ['sandbox']),
  ];
  return words.map((word) => `${path}: ${word}`);
}

type LimitName = keyof Limits;
/** Without an end where there is none. */
const amount = (limit: number | false | undefined): number =>
  typeof limit === 'number' ? limit : Number.POSITIVE_INFINITY;

/** Whoever is trusted sets limits; who is not can lower what stands by then. */
function limitsOf(layers: readonly Layer[], host: DeepPartial<Limits>): DeepPartial<Limits> {
  let limits: Partial<Limits> = { ...host };
  for (const { said } of layers.filter(({ trusted }) => trusted)) limits = { ...limits, ...said.limits };
  for (const { said } of layers.filter(({ trusted }) => !trusted)) {
    const { limits: wanted = {} } = said;
    const lower = (Object.keys(wanted) as LimitName[]).filter(
      (name) => amount(wanted[name]) < amount(limits[name] ?? defaultPolicies.limits[name]),
    );
    limits = { ...limits, ...Object.fromEntries(lower.map((name) => [name, wanted[name]])) };
  }
  return limits;
}
