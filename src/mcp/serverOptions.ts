/** The options of one MCP server. Rule: an unknown option is refused by its name, and no message quotes a value that may be a secret. */
import type { AuthProvider, OAuthClientProvider, Transport } from '@modelcontextprotocol/client';
import { ConfigurationError } from '../errors.ts';
import {
  callback,
  check,
  flag,
  hasMethods,
  isObject,
  nonEmptyText,
  object,
  strings,
  type Validator,
} from '../validation.ts';
import type { ServerCommand } from './stdio/serverProcess.ts';

/** A server that is reached over Streamable HTTP. */
export interface McpAddress {
  /** The address of the server. */
  url: string | URL;
  /** Headers of each request, for example a token. */
  headers?: { [name: string]: string };
  /** OAuth: a provider of `@modelcontextprotocol/client`, given to its transport. */
  authProvider?: OAuthClientProvider | AuthProvider;
}

/** Additional tools for the agent, besides those of the server. */
interface MoreTools {
  /** Adds tools that list and read the resources of the server. Default: false. */
  resources?: boolean;
  /** Adds tools that list and get the prompts of the server. Default: false. */
  prompts?: boolean;
}

/** The options that reach a server. `transport` is called for each new connection. */
export type McpServerOptions = (ServerCommand | McpAddress | { transport(): Transport | Promise<Transport> }) &
  MoreTools;

const texts: Validator = {
  expected: 'an object of strings',
  test: (value) => isObject(value) && Object.values(value).every((each) => typeof each === 'string'),
  secret: true,
};
const address: Validator = {
  expected: 'an http or https address',
  test: (value) => /^https?:$/.test(protocolOf(value)),
  secret: true,
};
const provider: Validator = {
  expected: 'an OAuthClientProvider or AuthProvider',
  test: (value) => hasMethods(value, 'tokens') || hasMethods(value, 'token'),
  secret: true,
};
const more = { resources: flag, prompts: flag };
const KINDS = {
  command: object({ command: nonEmptyText, args: strings, env: texts, cwd: nonEmptyText, ...more }),
  url: object({ url: address, headers: texts, authProvider: provider, ...more }),
  transport: object({ transport: callback, ...more }),
};

function protocolOf(value: unknown): string {
  try {
    return new URL(String(value)).protocol;
  } catch {
    return '';
  }
}

/** The options without undefined ones. Throws ConfigurationError for a name or an option that cannot work. */
export function checkedServer(name: string, options: unknown): McpServerOptions {
  if (!/^[a-zA-Z0-9-]{1,24}$/.test(name)) {
    const nameRule = 'at most 24 letters, digits and dashes';
    throw new ConfigurationError(`the name of an MCP server is ${nameRule}, not ${JSON.stringify(name)}`);
  }
  const call = `the MCP server ${name}`;
  if (!isObject(options)) throw new ConfigurationError(`the options of ${call} must be an object`);
  const definedOptions = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
  const kinds = (['command', 'url', 'transport'] as const).filter((kind) => kind in definedOptions);
  const [kind] = kinds;
  if (kind === undefined || kinds.length > 1) {
    const names = Object.keys(definedOptions).join(', ') || 'none';
    throw new ConfigurationError(`${call} needs one of the options command, url and transport; got ${names}`);
  }
  return check(
    `the options of ${call}`,
    definedOptions,
    KINDS[kind],
    `${call}: `,
    `${call}: the option `,
  ) as McpServerOptions;
}

/** Values of the options that no error may contain. */
export function secretsOf(options: McpServerOptions): string[] {
  if ('command' in options) return Object.values(options.env ?? {});
  if (!('url' in options)) return [];
  const { username, password, searchParams } = new URL(options.url);
  const headers = Object.values(options.headers ?? {});
  // An address contains them escaped, an error of the server perhaps as they are.
  const credentials = [username, password].flatMap((text) => [text, unescaped(text)]);
  return [...credentials, ...searchParams.values(), ...headers, ...headers.flatMap((value) => value.split(' '))];
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
