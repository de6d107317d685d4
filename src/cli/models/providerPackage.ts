/**
 * Loads a package of an AI SDK provider. Rule: to load a package is to run its code. A package of the project is loaded
 * only if the command line or a trusted file of the project names it; the user's own file names packages of the user.
 */
import { readFile, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ConfigurationError, thrownMessage } from '../../errors.ts';
import { isObject } from '../../validation.ts';

/** Makes the models of a provider by their names. */
export type ProviderInstance = ((modelName: string) => unknown) | { languageModel(modelName: string): unknown };

const NAME = /^(?:@[\w.-]+\/)?[\w-][\w.-]*$/;

/** `directories`: where `node_modules` is looked for, with the directories above them. Rejects with ConfigurationError. */
export async function providerPackage(
  name: string,
  { exported, directories }: { exported?: string | undefined; directories: readonly string[] },
): Promise<(options: object) => ProviderInstance> {
  if (!NAME.test(name))
    throw new ConfigurationError(`the package of a provider must be a name like @ai-sdk/mistral, not ${name}`);
  const module = await loaded(name, directories);
  const makers = Object.keys(module).filter((key) => /^create[A-Z]/.test(key) && typeof module[key] === 'function');
  const maker = exported ?? (makers.length === 1 ? makers[0] : undefined);
  const make = maker === undefined ? undefined : module[maker];
  if (typeof make === 'function') return make as (options: object) => ProviderInstance;
  const which = makers.length > 0 ? `"export" must be one of ${makers.join(', ')}` : 'it has no function named create…';
  throw new ConfigurationError(`the package ${name} cannot be used as a provider: ${which}`);
}

async function loaded(name: string, directories: readonly string[]): Promise<{ readonly [name: string]: unknown }> {
  for (const directory of directories) {
    const entry = await entryIn(directory, name);
    if (entry !== undefined) return import(pathToFileURL(entry).href);
  }
  try {
    return await import(name);
  } catch (cause) {
    if (!thrownMessage(cause).includes(`'${name}'`)) throw cause;
    const where = directories.at(0);
    throw new ConfigurationError(
      `the package ${name} of the provider is not installed: npm install ${where === undefined ? '' : `--prefix ${where} `}${name}`,
      { cause },
    );
  }
}

async function entryIn(directory: string, name: string): Promise<string | undefined> {
  const folder = join(directory, 'node_modules', name);
  const text = await readFile(join(folder, 'package.json'), 'utf8').catch(() => undefined);
  if (text !== undefined) {
    const manifest = manifestOf(text, folder);
    const { exports, module, main } = isObject(manifest) ? manifest : {};
    const dot = isObject(exports) && '.' in exports ? exports['.'] : exports;
    const target = conditional(dot) ?? [module, main, 'index.js'].find((each) => typeof each === 'string');
    if (typeof target === 'string') return join(folder, target);
  }
  const above = dirname(directory);
  // The root of a repository ends the search.
  const isRoot = above === directory || (await stat(join(directory, '.git')).catch(() => undefined)) !== undefined;
  return isRoot ? undefined : entryIn(above, name);
}

function manifestOf(text: string, folder: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const why = `${join(folder, 'package.json')} is no JSON (${thrownMessage(cause)}): install the package again`;
    throw new ConfigurationError(`the package of the provider cannot be loaded: ${why}`, { cause });
  }
}

const CONDITIONS = ['import', 'node', 'module-sync', 'default'];

/** The file of a package's main export; undefined if it has none for an import. */
function conditional(target: unknown): string | undefined {
  if (typeof target === 'string') return target;
  if (Array.isArray(target)) return target.map(conditional).find((each) => each !== undefined);
  if (!isObject(target)) return undefined;
  for (const [condition, next] of Object.entries(target)) {
    const file = CONDITIONS.includes(condition) ? conditional(next) : undefined;
    if (file !== undefined) return file;
  }
  return undefined;
}
