/**
 * Reads the files that list MCP servers, in the form that other programs use: `{ "mcpServers": { name: options } }`. Rule: an unusable
 * entry is reported with the reason, and the others work. No message quotes a value, because it may be
 * a secret. A server of the user does not start in the project's directory, because it could run files of an untrusted project there.
 */
import { dirname, resolve } from 'node:path';
import { thrownMessage } from '../../errors.ts';
import type { McpServerOptions } from '../../mcp/mcpTools.ts';
import { checkedServer } from '../../mcp/serverOptions.ts';
import { isObject } from '../../validation.ts';
import type { DefinitionFile } from '../definitions/definitionFiles.ts';
import { expandVariables } from '../models/variables.ts';

export interface ServerEntry {
  /** As in the names of its tools. */
  readonly name: string;
  readonly path: string;
  /** Absent if the entry cannot be used. */
  readonly options?: McpServerOptions;
  /** Why it is not started. */
  readonly why?: string;
  /** The command or the address, for a person. */
  readonly about: string;
}

export interface ListedServers {
  readonly entries: readonly ServerEntry[];
  /** Files that are no list of servers, with the reason. */
  readonly problems: readonly string[];
  /** Files of the project that do not count until the user trusts them. */
  readonly untrusted: readonly string[];
}

/** Why a server of an older transport is not connected. */
export const NO_SSE = 'the transport sse is not supported: ask the server for its Streamable HTTP address';
const NOT_TRUSTED = 'the project is not trusted: runchart trust';
const OPTIONS = ['command', 'args', 'env', 'cwd', 'url', 'headers', 'resources', 'prompts'];

/** The variable that stands for the project's directory. */
const PROJECT = 'PROJECT_DIR';

/** `variables` replace `${NAME}`, and `cwd` replaces `${PROJECT_DIR}`. A server of a later file takes the place of one with its name. */
export function serverEntries(
  files: readonly DefinitionFile[],
  variables: (name: string) => string | undefined,
  cwd: string,
): ListedServers {
  const variablesOf = (name: string): string | undefined => (name === PROJECT ? cwd : variables(name));
  const entries = new Map<string, ServerEntry>();
  const problems: string[] = [];
  for (const file of files) {
    const servers = serversIn(file);
    if (typeof servers === 'string') {
      problems.push(`${file.path} is not used: ${servers}`);
      continue;
    }
    for (const [written, definition] of Object.entries(servers)) {
      const entry = entryOf(written, definition, file, { variables: variablesOf, cwd: dirname(file.path) });
      // An untrusted file cannot turn off a server of a trusted one.
      if (file.isTrusted || !entries.has(entry.name)) entries.set(entry.name, entry);
    }
  }
  const untrusted = files.filter(({ isTrusted }) => !isTrusted).map(({ path }) => path);
  return { entries: [...entries.values()], problems, untrusted };
}

/** The servers by name, or why there are none. */
function serversIn({ text, cut }: DefinitionFile): { readonly [name: string]: unknown } | string {
  if (cut) return 'it is too large';
  try {
    const file: unknown = JSON.parse(text);
    if (isObject(file) && isObject(file.mcpServers)) return file.mcpServers;
    return 'it must be {"mcpServers": {"name": {"command": "npx", "args": ["a-server"]}}}';
  } catch (error) {
    return `it is no JSON: ${thrownMessage(error)}`;
  }
}

interface EntryPlace {
  variables(name: string): string | undefined;
  cwd: string;
}

function entryOf(
  written: string,
  definition: unknown,
  { path, isTrusted }: DefinitionFile,
  place: EntryPlace,
): ServerEntry {
  // Underscores separate the parts of a tool's name.
  const name = written.replaceAll(/[_. ]/g, '-');
  const about = aboutServer(definition);
  const left = (why: string): ServerEntry => ({ name, path, why, about });
  if (!isTrusted) return left(NOT_TRUSTED);
  if (!isObject(definition)) return left('its entry must be an object with a command or an url');
  const { type, disabled } = definition;
  if (disabled === true) return left('it is turned off by "disabled"');
  if (type === 'sse') return left(NO_SSE);
  try {
    const supported = Object.fromEntries(
      OPTIONS.flatMap((key) => (definition[key] === undefined ? [] : [[key, definition[key]]])),
    );
    const { value, missing } = expandVariables(supported, place.variables);
    if (missing.length > 0) return left(`it needs the variable ${missing.join(', ')}, which is not set`);
    const options = value as { [name: string]: unknown };
    const inPlace = 'command' in options ? { cwd: resolve(place.cwd, String(options.cwd ?? '.')) } : {};
    return { name, path, about, options: checkedServer(name, { ...options, ...inPlace }) };
  } catch (error) {
    return left(thrownMessage(error));
  }
}

const CREDENTIAL = String.raw`[\w-]*(?:key|token|secret|password|authorization)`;
const NAMED = new RegExp(`^((?:${CREDENTIAL}=|${CREDENTIAL}: *)(?:(?:Bearer|Basic) +)?)(?!\\$\\{)\\S+$`, 'i');
const OPTION = new RegExp(`^-${CREDENTIAL}$`, 'i');

/** The command or the address as it is written, because a value of a variable may be a secret, and without credentials. */
export function aboutServer(definition: unknown): string {
  if (!isObject(definition)) return '';
  const { command, args, url } = definition;
  // A query may hold a key.
  if (typeof url === 'string') return withoutUser(url.replace(/[?#].*$/s, ''));
  const words = [command, ...(Array.isArray(args) ? args : [])].filter((word) => typeof word === 'string');
  return words.map((word, index) => withoutCredential(word, words[index - 1])).join(' ');
}

/** The scheme before the colon is not matched, because a search for it would take minutes in a very long word. */
const withoutUser = (text: string): string => text.replace(/(:\/\/)[^/\s]*@/g, '$1');

/** Only one whole word is left out, so that the rest of a command is seen. */
function withoutCredential(word: string, before = ''): string {
  if (OPTION.test(before) && !/^-|^\$\{|\s/.test(word)) return '…';
  return withoutUser(word.replace(NAMED, '$1…'));
}
