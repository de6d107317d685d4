/**
 * An agent as a tool of an MCP server. Rule: each call is one request of a conversation, and the client is untrusted: it decides
 * nothing that it was not asked about. A question of the agent is passed on where the client can ask a person, and denied elsewhere,
 * so that no call waits for ever.
 */
import { z } from 'zod';
import type { PendingCall } from '../../machines/internal.ts';
import type { Agent } from '../agent.ts';
import type { Conversation } from '../conversation/conversation.ts';
import type { RunResult } from '../conversation/run.ts';
import { ConfigurationError, RunchartError, thrownMessage } from '../errors.ts';
import { printable, shortened } from '../printable.ts';
import { awaitAll, TIMER_MAX_MS } from '../timeLimit.ts';
import { checkOptionsOf, nonEmptyText, object, text } from '../validation.ts';

/** A transport of `@modelcontextprotocol/server`, such as its `StdioServerTransport`. */
export type McpTransport = object;
/** The options of `mcpServer`. */
export interface AgentServerOptions {
  /** The name of the tool and of the server, in the characters of tool names. Default: `agent`. */
  name?: string;
  /** The purpose of the tool. */
  description?: string;
}
/** An agent that MCP clients use as one tool. */
export interface AgentServer {
  /** Serves one client. Rejects with RunchartError `mcp` where the package is missing or the transport cannot start. */
  connect(transport: McpTransport): Promise<void>;
  /** Ends the requests under way and the connections. The agent stays open. */
  close(): Promise<void>;
}

type Packages = typeof import('@modelcontextprotocol/server');
type Sdk = InstanceType<Packages['McpServer']>;
type Context = Parameters<Parameters<Sdk['registerTool']>[2]>[1] & {
  mcpReq: {
    signal: AbortSignal;
    elicitInput(
      params: object,
      options: { signal: AbortSignal; timeout: number },
    ): Promise<{ action: string; content?: object }>;
  };
};

const optionsValidator = object({ name: nonEmptyText, description: text });
const NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const DESCRIPTION = 'Gives a request in plain words to an agent with tools of its own, and answers when it is done.';
const NOBODY = 'nobody could be asked';
const ARGS_SHOWN = 2_000;

const inputSchema = z.object({
  message: z.string().min(1).describe('The request, with everything that is to be known.'),
  conversation: z.string().optional().describe('The id that an earlier answer gave, to continue that conversation.'),
});

async function loadPackage(): Promise<Packages> {
  try {
    return await import('@modelcontextprotocol/server');
  } catch (cause) {
    const message =
      'mcpServer needs the package @modelcontextprotocol/server: npm install @modelcontextprotocol/server';
    throw new RunchartError('mcp', message, { cause });
  }
}

/** The agent as a tool of an MCP server. Throws ConfigurationError for an unknown or invalid option. */
export function mcpServer(agent: Agent, options: AgentServerOptions = {}): AgentServer {
  checkOptionsOf('mcpServer', options, optionsValidator);
  const { name = 'agent', description = DESCRIPTION } = options;
  if (!NAME.test(name))
    throw new ConfigurationError(
      `mcpServer: name must be 1 to 64 letters, digits, _ or -, got ${JSON.stringify(name)}`,
    );
  const servers = new Set<Sdk>();
  const ending = new AbortController();
  const served: Served = { agent, owner: `mcp:${name}`, closing: ending.signal };
  return {
    async connect(transport) {
      const { McpServer } = await loadPackage();
      const server = new McpServer({ name, version: '1.0.0' });
      server.registerTool(name, { description, inputSchema }, (args, context) =>
        answered(served, args, context as Context),
      );
      servers.add(server);
      server.server.onclose = () => servers.delete(server);
      try {
        await server.connect(transport as Parameters<Sdk['connect']>[0]);
      } catch (cause) {
        servers.delete(server);
        throw new RunchartError('mcp', `the MCP server could not start: ${thrownMessage(cause)}`, { cause });
      }
    },
    async close() {
      ending.abort();
      const open = [...servers];
      servers.clear();
      await awaitAll(open.map((server) => server.close()));
    },
  };
}

type Args = z.infer<typeof inputSchema>;
interface Served {
  agent: Agent;
  /** Of the conversations that clients may continue: those that were begun here. */
  owner: string;
  closing: AbortSignal;
}

async function answered({ agent, owner, closing }: Served, { message, conversation: id }: Args, context: Context) {
  let conversation: Conversation | undefined;
  try {
    conversation = await agent.open(id, { owner, ...(id !== undefined && { existing: true }) });
    const signal = AbortSignal.any([context.mcpReq.signal, closing]);
    const result = await untilDone(conversation, message, context, signal);
    const failure =
      result.error ?? (result.reason === 'completed' ? undefined : { message: result.cause ?? result.termination });
    return toolAnswer(
      conversation.id,
      failure ? `The request ended as ${result.termination}: ${failure.message}` : result.text,
      failure !== undefined,
    );
  } catch (error) {
    const isOwn = RunchartError.isRunchartError(error);
    return toolAnswer(id, isOwn ? `${error.code}: ${error.message}` : 'the request failed inside the server', true);
  } finally {
    await conversation?.close().catch(() => undefined);
  }
}

const toolAnswer = (conversation: string | undefined, words: string, isError: boolean) => ({
  content: [
    { type: 'text' as const, text: words },
    ...(conversation === undefined ? [] : [{ type: 'text' as const, text: `conversation: ${conversation}` }]),
  ],
  isError,
});

/** Runs the request, and answers its questions until nothing waits. */
async function untilDone(
  conversation: Conversation,
  message: string,
  context: Context,
  signal: AbortSignal,
): Promise<RunResult> {
  let result = await conversation.send(message, { signal, whileSuspended: 'denyAndRun' }).result;
  while (result.termination === 'Suspended') {
    for (const call of conversation.pending) await decide(conversation, call, context, signal);
    if (signal.aborted) {
      await conversation.cancel();
      return { ...result, termination: 'Cancelled', reason: 'interrupted', cause: 'cancelled' };
    }
    const run = conversation.resume();
    const stop = (): void => void run.cancel();
    signal.addEventListener('abort', stop, { once: true });
    result = await run.result;
    signal.removeEventListener('abort', stop);
  }
  return result;
}

/** Asks the person and decides the call. If the client goes away, the call stays undecided. */
async function decide(
  conversation: Conversation,
  call: PendingCall,
  context: Context,
  signal: AbortSignal,
): Promise<void> {
  if (signal.aborted) return;
  const { callId, suspension } = call;
  const isAllowed = await asked(call, context, signal);
  if (signal.aborted) return;
  if (isAllowed) await conversation.decide({ callId, suspension, action: 'approve', by: 'mcp' });
  else
    await conversation.decide({
      callId,
      suspension,
      action: 'deny',
      by: 'mcp',
      reason: isAllowed === false ? 'denied' : NOBODY,
    });
}

/** The person's answer; undefined where the client cannot ask one. */
async function asked(
  { name, args, reason }: PendingCall,
  { mcpReq }: Context,
  signal: AbortSignal,
): Promise<boolean | undefined> {
  const shown = shortened(printable(JSON.stringify(args)), ARGS_SHOWN);
  const requestedSchema = {
    type: 'object',
    properties: { allow: { type: 'boolean', title: 'Allow this call' } },
    required: ['allow'],
  };
  try {
    const message = `${name} waits (${printable(reason)}). May it run with ${shown}?`;
    // The question has no time limit: it ends when the client leaves or cancels its request.
    const limits = { signal, timeout: TIMER_MAX_MS };
    const { action, content } = await mcpReq.elicitInput({ message, requestedSchema }, limits);
    return action === 'accept' && (content as { allow?: unknown } | undefined)?.allow === true;
  } catch {
    return undefined;
  }
}
