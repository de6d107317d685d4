/**
 * Connects to MCP servers, and joins their tools. Rule: a server that fails ends the others. Closing also ends servers that are
 * still being connected.
 */
import { awaitAll } from '../timeLimit.ts';
import type { Tool } from '../tools/tool.ts';
import { McpServer } from './mcpServer.ts';
import { moreTools } from './resourceTools.ts';
import { checkedServer, type McpServerOptions } from './serverOptions.ts';
import { type LeftTool, ServerTools } from './serverTools.ts';

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

/** Throws ConfigurationError for an invalid name or option. */
export function connectServers(servers: { readonly [name: string]: McpServerOptions }): {
  readonly tools: Promise<McpTools>;
  close(): Promise<void>;
} {
  const checked = Object.entries(servers).map(([name, options]) => [name, checkedServer(name, options)] as const);
  const connected = checked.map(([name, options]) => ({ server: new McpServer(name, options), options }));
  const close = (): Promise<void> => awaitAll(connected.map(({ server }) => server.close()));
  const connect = async (): Promise<McpTools> => {
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
  };
  return { tools: connect(), close };
}

async function offerOf(server: McpServer, options: McpServerOptions): Promise<ServerTools> {
  const listed = await server.tools();
  const offer = new ServerTools(server, moreTools(server, options, server.capabilities));
  server.onTools = (tools) => offer.replace(tools);
  offer.replace(listed);
  return offer;
}
