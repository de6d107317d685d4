/**
 * The model of the program, made from options and configuration: its provider, key and address, and its context window
 * and prices. Invariant: the error about a missing setting contains an example that the program accepts. Options take precedence
 * over configuration, and both over the price list.
 */
import { ConfigurationError } from '../../errors.ts';
import type { Model, Prices } from '../../index.ts';
import type { AiSdkLanguageModel } from '../../models/aiSdk/aiSdk.ts';
import type { KnownModel } from '../../models/prices.ts';
import {
  type Configuration,
  type ModelSettings,
  type ProviderSetting,
  userDirectoryOf,
} from '../../session/configuration.ts';
import { type ProviderInstance, providerPackage } from './providerPackage.ts';
import { expandVariables } from './variables.ts';

export interface ModelOptions {
  model?: string;
  /** A name of PROVIDERS, or a package of the AI SDK. */
  provider?: string;
  contextWindow?: string;
  /** Input and output in USD for a million tokens, separated by a comma. */
  prices?: string;
}

const SMALL = 65_536;

interface Facts {
  contextWindow?: number;
  maxOutputTokens?: number;
  prices?: Prices;
}

/** A provider, and who chose it. */
interface ChosenProvider {
  readonly setting: ProviderSetting;
  readonly by: 'option' | 'user' | 'project';
}

interface Connection {
  readonly cwd: string;
  readonly modelName: string;
  readonly facts: Facts;
  variableOf(name: string): string | undefined;
}

interface Vendor {
  /** Variables of the key; the first that is set counts. */
  readonly keys: readonly [string, ...string[]];
  readonly address: string;
  /** In the price list. */
  readonly id: string;
  make(options: Facts & { apiKey: string; baseURL?: string }, connection: Connection): Promise<Model>;
}

const GOOGLE = '@ai-sdk/google';

export const PROVIDERS: { readonly [name: string]: Vendor } = {
  openai: {
    ...{ keys: ['OPENAI_API_KEY'], address: 'OPENAI_BASE_URL', id: 'openai' },
    make: async (options, { modelName }) => (await import('../../models/openai/index.ts')).openai(modelName, options),
  },
  'openai-responses': {
    ...{ keys: ['OPENAI_API_KEY'], address: 'OPENAI_BASE_URL', id: 'openai' },
    make: async (options, { modelName }) =>
      (await import('../../models/openai/index.ts')).openaiResponses(modelName, options),
  },
  anthropic: {
    ...{ keys: ['ANTHROPIC_API_KEY'], address: 'ANTHROPIC_BASE_URL', id: 'anthropic' },
    make: async (options, { modelName }) =>
      (await import('../../models/anthropic/anthropic.ts')).anthropic(modelName, options),
  },
  google: {
    ...{ keys: ['GOOGLE_GENERATIVE_AI_API_KEY', 'GEMINI_API_KEY'], address: 'GOOGLE_BASE_URL', id: 'google' },
    make: async ({ apiKey, baseURL, ...facts }, { modelName }) => {
      const create = await providerPackage(GOOGLE, {
        exported: 'createGoogleGenerativeAI',
        directories: [userDirectoryOf()],
      });
      return sdkModel(create({ apiKey, ...(baseURL !== undefined && { baseURL }) }), modelName, facts, [apiKey]);
    },
  },
};

/** Rejects with a ConfigurationError for a missing or invalid setting. */
export async function chosenModel(options: ModelOptions, configuration: Configuration, cwd: string): Promise<Model> {
  const modelName = options.model || configuration.model;
  if (!modelName) throw new ConfigurationError(NO_MODEL);
  const variableOf = (name: string): string | undefined => process.env[name] || configuration.environment[name];
  const settings = configuration.models[modelName] ?? { of: 'user' as const };
  const { setting, by } = chosenProvider(options, settings, configuration);
  const connection = { cwd, modelName, variableOf };
  if (typeof setting !== 'string')
    return packagedModel(setting, by, { ...connection, facts: await factsOf(modelName, options, settings, {}) });
  const vendor = PROVIDERS[setting];
  if (!Object.hasOwn(PROVIDERS, setting) || !vendor) {
    // A single word is more likely a mistyped name than a package.
    if (by === 'option' && /\W/.test(setting)) {
      const facts = await factsOf(modelName, options, settings, {});
      return packagedModel({ package: setting }, by, { ...connection, facts });
    }
    throw new ConfigurationError(
      `expected the provider to be one of ${Object.keys(PROVIDERS).join(', ')}, or {"package": "@ai-sdk/mistral", "options": {}}; got ${setting}`,
    );
  }
  const baseURL = variableOf(vendor.address);
  const apiKey = vendor.keys.map(variableOf).find(Boolean);
  if (apiKey === undefined) throw new ConfigurationError(noKey(setting, vendor));
  const facts = await factsOf(modelName, options, settings, { baseURL, provider: vendor.id });
  return vendor.make({ ...facts, apiKey, ...(baseURL !== undefined && { baseURL }) }, { ...connection, facts });
}

function chosenProvider(
  { provider }: ModelOptions,
  settings: Configuration['models'][string],
  configuration: Configuration,
): ChosenProvider {
  if (provider) return { setting: provider, by: 'option' };
  const { of: by, setting } = configuration.provider ?? { of: 'user', setting: 'openai' };
  return settings.provider === undefined ? { setting, by } : { setting: settings.provider, by: settings.of };
}

async function packagedModel(
  { package: name, export: exported, options = {} }: Exclude<ProviderSetting, string>,
  by: ChosenProvider['by'],
  { cwd, modelName, variableOf, facts }: Connection,
): Promise<Model> {
  const own = userDirectoryOf();
  const directories = { user: [own], project: [cwd, own], option: [own, cwd] }[by];
  const create = await providerPackage(name, { exported, directories });
  const { value, missing, values } = expandVariables(options, variableOf);
  if (missing.length > 0) {
    throw new ConfigurationError(
      `the provider ${name} needs the variable ${missing.join(', ')}: set it, or put {"environment":{"${missing[0]}":"..."}} into ~/.config/runchart/config.json`,
    );
  }
  return sdkModel(create(value as object), modelName, facts, [...values, ...secretTexts(value)]);
}

async function sdkModel(
  provider: ProviderInstance,
  modelName: string,
  facts: Facts,
  secrets: string[],
): Promise<Model> {
  const { aiSdkModel } = await import('../../models/aiSdk/aiSdk.ts');
  const languageModel = typeof provider === 'function' ? provider(modelName) : provider.languageModel(modelName);
  return aiSdkModel(languageModel as AiSdkLanguageModel, { ...facts, secrets });
}

const SECRET_KEY = /key|token|secret|password|authorization/i;
/** Texts whose keys say that they are secret. */
function secretTexts(value: unknown, isSecret = false): string[] {
  if (typeof value === 'string') return isSecret && value !== '' ? [value] : [];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, each]) => secretTexts(each, isSecret || SECRET_KEY.test(key)));
}

async function factsOf(
  modelName: string,
  options: ModelOptions,
  settings: ModelSettings,
  listed: { baseURL?: string | undefined; provider?: string },
): Promise<Facts> {
  const facts = await modelFacts(modelName, listed);
  const contextWindow = windowOf(options.contextWindow) ?? settings.contextWindow ?? facts.contextWindow;
  const prices = pricesOf(options.prices) ?? settings.prices ?? facts.prices;
  // Without this bound, the tokens reserved for a reply could exceed a small window.
  const maxOutputTokens =
    contextWindow !== undefined && contextWindow < SMALL ? Math.ceil(contextWindow / 4) : undefined;
  return {
    ...(contextWindow !== undefined && { contextWindow }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(prices && { prices }),
  };
}

function windowOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const [, digits = '', unit = ''] = /^(\d+)([km]?)$/i.exec(text.replaceAll(/[_,]/g, '')) ?? [];
  const window = Number(digits) * ({ k: 1_000, m: 1_000_000 }[unit.toLowerCase()] ?? 1);
  if (digits !== '' && window > 0) return window;
  throw new ConfigurationError(`expected --context-window to be a number of tokens, like 200000 or 200k; got ${text}`);
}

function pricesOf(text: string | undefined): Prices | undefined {
  if (text === undefined) return undefined;
  const [input = Number.NaN, output = Number.NaN, ...others] = text
    .split(',')
    .map((part) => (part.trim() === '' ? Number.NaN : Number(part)));
  if (input >= 0 && output >= 0 && others.length === 0) return { input, output };
  throw new ConfigurationError(
    `expected --prices to be USD for a million tokens of input and of output, like 1.25,10; got ${text}`,
  );
}

const NO_MODEL = `no model is chosen. Give one with -m or in OPENAI_MODEL, for example:
  OPENAI_API_KEY=sk-... runchart -m gpt-5.1
  ANTHROPIC_API_KEY=sk-... runchart -m claude-sonnet-4-5 --provider anthropic
  OPENAI_BASE_URL=http://localhost:11434/v1 OPENAI_API_KEY=x runchart -m qwen3
{"model": "gpt-5.1"} in ~/.config/runchart/config.json keeps the choice.`;

const OTHERS = `Another provider: --provider anthropic, google, openai-responses,
or a package of the AI SDK such as @ai-sdk/mistral.`;

function noKey(provider: string, { keys: [key], address }: Vendor): string {
  const chosen = provider === 'openai' ? '' : ` for the provider ${provider}`;
  const local = provider.startsWith('openai')
    ? `A server of your own that needs none takes any:\n  ${key}=none ${address}=http://localhost:11434/v1\n`
    : '';
  return `no API key${chosen}: set ${key}, or put it into ~/.config/runchart/config.json:\n  {"environment":{"${key}":"..."}}\n${local}${OTHERS}`;
}

/**
 * Returns prices and context window of a model by its name, or nothing if the optional price list is missing or lacks the model.
 * A server that is in the list has its own prices. For any other address only the name is compared, so that proxies and gateways have a
 * window and a cost.
 */
export async function modelFacts(
  modelName: string,
  { baseURL, provider }: { baseURL?: string | undefined; provider?: string } = {},
): Promise<KnownModel> {
  try {
    const { knownModel } = await import('../../models/prices.ts');
    const [, vendor, ownName] = /^([\w-]+)\/(.+)$/.exec(modelName) ?? [];
    const attempts = [
      () => knownModel(modelName, baseURL ? { baseURL } : provider ? { provider } : {}),
      () => knownModel(modelName),
      // A gateway names the vendor before the model.
      () => (vendor && ownName ? knownModel(ownName, { provider: vendor }) : {}),
    ];
    for (const attempt of attempts) {
      const facts = attempt();
      if (facts.prices || facts.contextWindow !== undefined) return facts;
    }
    return {};
  } catch (error) {
    if (ConfigurationError.isRunchartError(error)) return {};
    throw error;
  }
}
