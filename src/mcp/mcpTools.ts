/**
 * Converts the tools of MCP servers (Model Context Protocol) to tools of an agent, named `mcp__server__tool`. Rule: a
 * server's descriptions are untrusted data. Names must fit the providers' rules, texts are cut, arguments are validated
 * by the server's schema, and each call needs the agent's permissions like any other.
 */
import { ConfigurationError } from '../errors.ts';
import type { Tool } from '../tools/tool.ts';
import { display, isObject } from '../validation.ts';
import { McpServer } from './mcpServer.ts';
import { moreTools } from './resourceTools.ts';
import { checkedServer, type McpServerOptions } from './serverOptions.ts';
import { type LeftTool, ServerTools } from './serverTools.ts';

export { type AgentServer, type AgentServerOptions, type McpTransport, mcpServer } from './servedAgent.ts';
export type { McpServerOptions } from './serverOptions.ts';

/** The tools of MCP servers and the connections to them. */
export interface McpTools {
  /** One tool for each tool that the servers list now; pass them to `createAgent`. An agent follows later changes. */
  readonly tools: readonly Tool[];
  /** Tools that a model cannot use, with the reason. */
  readonly left: readonly { server: string; tool: string; why: string }[];
  /** Servers that have ended or could not be reached again. The next call of one connects to it. */
  readonly problems: readonly { server: string; why: string }[];
  /** Ends the connections and server processes. Closing an agent does not, because servers may serve many agents. */
  close(): Promise<void>;
}

/**
 * Connects to MCP servers by name and lists their tools. Rejects with ConfigurationError for an invalid name or option, and
 * with a RunchartError (`mcp`) if a server cannot be reached. After a rejection, no server stays connected.
 */
export async function mcpTools(servers: { readonly [name: string]: McpServerOptions }): Promise<McpTools> {
  if (!isObject(servers))
    throw new ConfigurationError(`mcpTools() takes an object of servers by name, not ${display(servers)}`);
  const checked = Object.entries(servers).map(([name, options]) => [name, checkedServer(name, options)] as const);
  const connected = checked.map(([name, options]) => ({ server: new McpServer(name, options), options }));
  const close = async (): Promise<void> => void (await Promise.all(connected.map(({ server }) => server.close())));
  try {
    const offers = await Promise.all(connected.map(({ server, options }) => offerOf(server, options)));
    return {
      get tools() {
        return offers.flatMap(({ tools }) => tools);
      },
      get left(): LeftTool[] {
        return offers.flatMap(({ left }) => left);
      },
      get problems() {
        return connected.flatMap(({ server: { name, problem } }) =>
          problem === undefined ? [] : [{ server: name, why: problem }],
        );
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

async function offerOf(server: McpServer, options: McpServerOptions): Promise<ServerTools> {
  const listed = await server.tools();
  const offer = new ServerTools(server, moreTools(server, options, server.capabilities));
  server.onTools = (tools) => offer.replace(tools);
  offer.replace(listed);
  return offer;
}
