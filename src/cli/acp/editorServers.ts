/**
 * The MCP servers that an editor names for a session. Rule: the editor is a program of the user, so its servers count as the
 * user's own. They need no trust, and they do not start in the project's directory. The entry of an unusable server contains the reason.
 */
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { parse } from 'node:path';
import type { McpServer } from '@agentclientprotocol/sdk';
import { thrownMessage } from '../../errors.ts';
import { checkedServer } from '../../mcp/serverOptions.ts';
import { aboutServer, NO_SSE, type ServerEntry } from '../servers/serverEntries.ts';

const PATH = 'named by the editor';
const NAME_MAX = 24;

/** `directory`: where commands start. */
export function editorServers(servers: readonly McpServer[], directory: string = safeDirectory()): ServerEntry[] {
  const names = new Set<string>();
  return servers.map((server) => {
    const name = freeName(server.name, names);
    names.add(name);
    const entry = { name, path: PATH, about: aboutServer(server) };
    try {
      return { ...entry, options: checkedServer(name, optionsOf(server, directory)) };
    } catch (error) {
      return { ...entry, why: thrownMessage(error) };
    }
  });
}

/** Throws an error for a transport that is not supported. */
function optionsOf(server: McpServer, directory: string): object {
  if (!('type' in server)) {
    const { command, args, env } = server;
    return { command, args, env: textsByName(env), cwd: directory };
  }
  const { type, url, headers } = server;
  if (type === 'http') return { url, headers: textsByName(headers) };
  throw new Error(type === 'sse' ? NO_SSE : `the transport ${JSON.stringify(type)} is not supported`);
}

const textsByName = (fields: readonly { name: string; value: string }[]): { [name: string]: string } =>
  Object.fromEntries(fields.map(({ name, value }) => [name, value]));

/** Two names can become the same. */
function freeName(written: string, taken: ReadonlySet<string>): string {
  const name = written.replaceAll(/[^a-zA-Z0-9-]+/g, '-').slice(0, NAME_MAX) || 'server';
  for (let number = 2, free = name; ; number += 1) {
    if (!taken.has(free)) return free;
    const end = `-${number}`;
    free = `${name.slice(0, NAME_MAX - end.length)}${end}`;
  }
}

function safeDirectory(): string {
  const home = homedir();
  return existsSync(home) ? home : parse(home).root;
}
