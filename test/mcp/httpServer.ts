/**
 * An MCP server over Streamable HTTP on loopback, which a test can stop, start again and deprive of its sessions. Rule: it notes every
 * request,
 * and counts its open connections.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

type Params = { name?: string; protocolVersion?: string };
interface Call {
  name: string;
  answer(): void;
  /** Breaks the connection of the call. */
  cut(): void;
}

export class HttpServer {
  readonly requests: string[] = [];
  /** Calls that were begun, answered only by the test if their name is `wait`. */
  readonly calls: Call[] = [];
  tools: readonly object[] = [];
  /** The token that requests need. */
  token: string | undefined;
  /** Answers requests of other paths. */
  other: ((path: string, body: string, response: ServerResponse) => void) | undefined;
  readonly #sockets = new Set<Socket>();
  readonly #streams = new Set<ServerResponse>();
  #sessions = new Set<string>();
  #count = 0;
  #server: Server | undefined;
  #port = 0;

  get origin(): string {
    return `http://127.0.0.1:${this.#port}`;
  }
  get url(): string {
    return `${this.origin}/mcp`;
  }
  get connections(): number {
    return this.#sockets.size;
  }
  get streams(): number {
    return this.#streams.size;
  }

  async start(): Promise<void> {
    const server = createServer((request, response) => void this.#serve(request, response));
    server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket)).on('error', () => undefined);
    });
    await new Promise<void>((resolve) => server.listen(this.#port, '127.0.0.1', resolve));
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  /** Like the death of its process: every connection breaks, and nothing listens. */
  async stop(): Promise<void> {
    this.#sessions = new Set();
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server?.close(resolve));
  }

  forgetSessions(): void {
    this.#sessions = new Set();
  }

  breakStreams(): void {
    for (const stream of this.#streams) stream.socket?.destroy();
  }

  notify(method: string): void {
    for (const stream of this.#streams) stream.write(event({ method }));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = '';
    for await (const chunk of request) body += String(chunk);
    const { method = '', url = '', headers } = request;
    if (url !== '/mcp') return void this.other?.(url, body, response);
    const message = body === '' ? {} : (JSON.parse(body) as { id?: number; method?: string; params?: Params });
    this.requests.push(`${method} ${message.method ?? ''}`.trim());
    if (this.token !== undefined && headers.authorization !== `Bearer ${this.token}`) {
      const metadata = `resource_metadata="${this.origin}/.well-known/oauth-protected-resource/mcp"`;
      return void response.writeHead(401, { 'www-authenticate': `Bearer ${metadata}` }).end();
    }
    const session = String(headers['mcp-session-id']);
    if (message.method !== 'initialize' && !this.#sessions.has(session)) return void response.writeHead(404).end();
    if (method === 'DELETE') {
      this.#sessions.delete(session);
      response.writeHead(200).end();
    } else if (method === 'GET') this.#stream(response);
    else if (message.id === undefined) response.writeHead(202).end();
    else this.#answer(message as { id: number; method: string; params: Params }, response);
  }

  #stream(response: ServerResponse): void {
    this.#streams.add(response);
    response.on('close', () => this.#streams.delete(response));
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
  }

  #answer({ id, method, params }: { id: number; method: string; params: Params }, response: ServerResponse): void {
    const give = (result: object, headers = {}): void =>
      void response
        .writeHead(200, { 'content-type': 'application/json', ...headers })
        .end(JSON.stringify({ jsonrpc: '2.0', id, result }));
    if (method === 'initialize') {
      this.#count += 1;
      this.#sessions.add(`s${this.#count}`);
      const capabilities = { tools: { listChanged: true } };
      const about = { protocolVersion: params.protocolVersion, capabilities, serverInfo: { name: 's', version: '1' } };
      return give(about, { 'mcp-session-id': `s${this.#count}` });
    }
    const inputSchema = { type: 'object' };
    if (method === 'tools/list') return give({ tools: this.tools.map((tool) => ({ inputSchema, ...tool })) });
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    const { name = '' } = params;
    const result = { content: [{ type: 'text', text: `${name} in session ${this.#count}` }] };
    const answer = (): void => void response.end(event({ id, result }));
    this.calls.push({ name, answer, cut: () => response.socket?.destroy() });
    if (name !== 'wait') answer();
  }
}

const event = (message: object): string =>
  `event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`;
