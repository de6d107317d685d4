/**
 * Converts the tools of MCP servers (Model Context Protocol) to tools of an agent, named `mcp__server__tool`. Rule: a
 * server's descriptions are untrusted data. Names must fit the providers' rules, texts are cut, arguments are validated
 * by the server's schema, and each call needs the agent's permissions like any other.
 */
import { ConfigurationError } from '../errors.ts';
import { display, isObject } from '../validation.ts';
import { connectServers, type McpTools } from './connectServers.ts';
import type { McpServerOptions } from './serverOptions.ts';

export type { McpTools } from './connectServers.ts';
export { type AgentServer, type AgentServerOptions, type McpTransport, mcpServer } from './servedAgent.ts';
export type { McpServerOptions } from './serverOptions.ts';

/**
 * Connects to MCP servers by name and lists their tools. Rejects with ConfigurationError for an invalid name or option, and
 * with a RunchartError (`mcp`) if a server cannot be reached. After a rejection, no server stays connected.
 */
export async function mcpTools(servers: { readonly [name: string]: McpServerOptions }): Promise<McpTools> {
  if (!isObject(servers))
    throw new ConfigurationError(`mcpTools() takes an object of servers by name, not ${display(servers)}`);
  return connectServers(servers).tools;
}
