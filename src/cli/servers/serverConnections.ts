/**
 * The MCP servers of the program: they start in parallel with it, and agents receive the tools of a server as soon as it has listed them.
 * Invariant: an unusable server never stops the program; its state contains the reason.
 */
import { thrownMessage } from '../../errors.ts';
import type { Plugin } from '../../index.ts';
import type { McpTools } from '../../mcp/mcpTools.ts';
import { type Ports, platformPorts } from '../../runtime/hostPorts.ts';
import { awaitAll, within } from '../../timeLimit.ts';
import { changingBy, defineTool, definitionOf, type Tool, type ToolChanges } from '../../tools/tool.ts';
import type { ServerEntry } from './serverEntries.ts';

export type ServerState =
  | { kind: 'starting' }
  | { kind: 'connected'; tools: readonly string[]; left: readonly string[] }
  | { kind: 'failed' | 'not started'; why: string };

export interface ServerView extends Pick<ServerEntry, 'name' | 'path' | 'about'> {
  readonly state: ServerState;
}

interface Connection {
  readonly entry: ServerEntry;
  mcp?: McpTools;
  /** Ends the server, also while it is starting. */
  close?(): Promise<void>;
  why?: string;
}

/** The longest time that the first request waits for servers that are starting. */
const FIRST_WAIT_MS = 10_000;

const isCopyable = ({ name }: Tool): boolean => name !== 'Bash';
function copyOf(tool: Tool): Tool {
  const definition = isCopyable(tool) ? definitionOf(tool) : undefined;
  return definition ? defineTool(definition) : tool;
}

export class ServerConnections {
  /** Resolves when each server is connected or has failed. */
  readonly settled: Promise<void>;
  readonly #connections: Connection[];
  #users = 1;
  #isClosed = false;
  #tools: readonly Tool[] = [];
  readonly #setTimer: Ports['setTimer'];

  constructor(entries: readonly ServerEntry[], { setTimer }: Pick<Ports, 'setTimer'> = platformPorts) {
    this.#setTimer = setTimer;
    this.#connections = entries.map((entry) => ({ entry }));
    this.settled = Promise.all(this.#connections.map((connection) => this.#start(connection))).then(() => undefined);
  }

  async #start(connection: Connection): Promise<void> {
    const { name, options, why } = connection.entry;
    if (!options) {
      connection.why = why ?? 'it has no options';
      return;
    }
    try {
      const { connectServers } = await import('../../mcp/connectServers.ts');
      if (this.#isClosed) return;
      const { tools, close } = connectServers({ [name]: options });
      connection.close = close;
      connection.mcp = await tools;
    } catch (error) {
      if (!this.#isClosed) connection.why = thrownMessage(error);
    }
  }

  get views(): ServerView[] {
    return this.#connections.map(({ entry: { name, path, about, options }, mcp, why }) => {
      const view = { name, path, about };
      if (why !== undefined) return { ...view, state: { kind: options ? 'failed' : 'not started', why } };
      if (!mcp) return { ...view, state: { kind: 'starting' } };
      const problem = mcp.problems.at(-1)?.why;
      if (problem !== undefined) return { ...view, state: { kind: 'failed', why: problem } };
      const left = mcp.left.map((each) => `${each.tool}: ${each.why}`);
      return { ...view, state: { kind: 'connected', tools: mcp.tools.map((tool) => tool.name), left } };
    });
  }

  /** The tools of all servers now. The same list until one of them changes. */
  get tools(): readonly Tool[] {
    const tools = this.#connections.flatMap(({ mcp }) => mcp?.tools ?? []);
    const isSame = tools.length === this.#tools.length && tools.every((tool, index) => tool === this.#tools[index]);
    if (!isSame) this.#tools = tools;
    return this.#tools;
  }

  /** The tools, followed by those of the servers whose names fit, also of servers that connect later. */
  joinedTo(tools: readonly Tool[], fits: (name: string) => boolean): readonly Tool[] {
    if (tools.length === 0 || this.#connections.length === 0) return tools;
    // Some tools are shared by all lists, so a copy is marked. A copy of Bash would run outside the sandbox.
    const index = Math.max(0, tools.findIndex(isCopyable));
    const follow: ToolChanges = (read) => {
      let joined: { before: readonly Tool[]; servers: readonly Tool[]; all: readonly Tool[] } | undefined;
      return () => {
        const before = read();
        const { tools: servers } = this;
        if (joined?.before !== before || joined.servers !== servers)
          joined = { before, servers, all: [...before, ...servers.filter(({ name }) => fits(name))] };
        return joined.all;
      };
    };
    return tools.map((tool, at) => (at === index ? changingBy(copyOf(tool), follow) : tool));
  }

  /** Makes a request wait for servers that are starting, for a bounded time. */
  readonly plugin: Plugin = {
    name: 'mcpServers',
    runStart: async ({ signal }) => {
      const limits = { setTimer: this.#setTimer, signal };
      await within(FIRST_WAIT_MS, limits, () => this.settled).catch(() => undefined);
    },
  };

  /** Gives the connections to one more agent. Each one closes them, and the last one ends the servers. */
  shared(): this {
    this.#users += 1;
    return this;
  }

  async close(): Promise<void> {
    this.#users -= 1;
    if (this.#users > 0) return;
    this.#isClosed = true;
    await awaitAll(this.#connections.map(async (connection) => connection.close?.()));
  }
}
