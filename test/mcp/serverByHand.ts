/** An MCP server in memory that follows a test, and the library's client with a connection to it. */
import { InMemoryTransport } from '@modelcontextprotocol/client';
import { type McpCall, McpServer } from '../../src/mcp/mcpServer.ts';

export const callOf = (key: string): McpCall => ({
  ...{ key, name: 'act', args: {}, readOnly: false, decision: undefined, progress: () => undefined },
  signal: new AbortController().signal,
});

/** A call at the server: a test answers it, asks a person about it, and reports its progress. */
interface Begun {
  id: number;
  args: unknown;
  answer(text: string): void;
  give(result: object): void;
  ask(message: string, more?: object): Promise<unknown>;
  tell(progress: object): void;
}

/** A server in memory that follows a test, call by call. Its tools are names, or objects as it lists them. */
export function serverByHand(tools: readonly (string | object)[] = ['act']) {
  type Params = { name?: string; arguments?: unknown; requestId?: number; _meta?: { progressToken?: unknown } };
  type Message = { id?: number; method?: string; params?: Params; result?: unknown };
  const begun: Begun[] = [];
  const cancelled: (number | undefined)[] = [];
  const ends: InMemoryTransport[] = [];
  const asked = new Map<number, (answer: unknown) => void>();
  const transport = (): InMemoryTransport => {
    const [client, server] = InMemoryTransport.createLinkedPair();
    const send = (message: object): void => void server.send({ jsonrpc: '2.0', ...message } as never);
    const ask = (message: string, more: object = { requestedSchema: { type: 'object', properties: {} } }) =>
      new Promise<unknown>((resolve) => {
        const id = 1000 + asked.size;
        asked.set(id, resolve);
        send({ id, method: 'elicitation/create', params: { message, ...more } });
      });
    const listed = tools.map((tool) => ({
      ...{ inputSchema: { type: 'object' } },
      ...(typeof tool === 'string' ? { name: tool } : tool),
    }));
    const serverInfo = { name: 's', version: '1' };
    server.onmessage = (message) => {
      const { id = -1, method, params, result } = message as unknown as Message;
      if (method === 'initialize')
        send({ id, result: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo } });
      else if (method === 'tools/list') send({ id, result: { tools: listed } });
      else if (method === 'tools/call') {
        const { progressToken } = params?._meta ?? {};
        const give = (callResult: object): void => send({ id, result: callResult });
        begun.push({
          ...{ id, args: params?.arguments, ask, give },
          answer: (text) => give({ content: [{ type: 'text', text }] }),
          tell: (update) => send({ method: 'notifications/progress', params: { progressToken, ...update } }),
        });
      } else if (method === 'notifications/cancelled') cancelled.push(params?.requestId);
      else if (method === undefined) asked.get(id)?.(result);
    };
    void server.start();
    ends.push(server);
    return client;
  };
  const server = new McpServer('s', { transport });
  const act = (key: string, more: Partial<McpCall> = {}) => server.call({ ...callOf(key), ...more });
  return { server, transport, act, begun, cancelled, ends };
}
