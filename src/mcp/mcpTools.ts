/**
 * Converts the tools of MCP servers (Model Context Protocol) to tools of an agent, named `mcp__server__tool`. Rule: a
 * server's descriptions are untrusted data. Names must fit the providers' rules, texts are cut, arguments are validated
 * by the server's schema, and each call needs the agent's permissions like any other.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec';
import { z } from 'zod';
import type { Json } from '../../machines/vocabulary.ts';
import { type ContentPart, readContent } from '../content/content.ts';
import { ConfigurationError, thrownMessage } from '../errors.ts';
import { defineTool, onWaitOver, type Tool, type ToolContext, type ToolResult, toolResult } from '../tools/tool.ts';
import { type McpResult, McpServer, type McpServerOptions, type McpToolInfo } from './mcpServer.ts';

export type { McpServerOptions } from './mcpServer.ts';

export interface McpTools {
  /** One tool for each tool that the servers listed; pass them to `createAgent`. */
  readonly tools: readonly Tool[];
  /** Tools that a model cannot use, with the reason. */
  readonly left: readonly { server: string; tool: string; why: string }[];
  /** Ends the connections and server processes. Closing an agent does not, because servers may serve many agents. */
  close(): Promise<void>;
}

const DESCRIPTION_MAX = 4_096;
const NAME_MAX = 64;

/**
 * Connects to MCP servers by name and lists their tools. Rejects with ConfigurationError for an invalid name, and with
 * a RunchartError (`mcp`) if a server cannot be reached. After a rejection, no server stays connected.
 */
export async function mcpTools(servers: { readonly [name: string]: McpServerOptions }): Promise<McpTools> {
  const connected = Object.entries(servers).map(([name, options]) => {
    if (!/^[a-zA-Z0-9-]{1,24}$/.test(name)) {
      const nameRule = 'at most 24 letters, digits and dashes';
      throw new ConfigurationError(`the name of an MCP server is ${nameRule}, not ${JSON.stringify(name)}`);
    }
    return new McpServer(name, options);
  });
  const close = async (): Promise<void> => void (await Promise.all(connected.map((server) => server.close())));
  const left: { server: string; tool: string; why: string }[] = [];
  const names = new Set<string>();
  try {
    const lists = await Promise.all(connected.map((server) => server.tools()));
    const tools = connected.flatMap((server, index) =>
      (lists[index] ?? []).flatMap((listed) => {
        try {
          return [toolOf(server, listed, names)];
        } catch (error) {
          left.push({ server: server.name, tool: listed.name, why: thrownMessage(error) });
          return [];
        }
      }),
    );
    return { tools, left, close };
  } catch (error) {
    await close();
    throw error;
  }
}

function toolOf(server: McpServer, listed: McpToolInfo, names: Set<string>): Tool {
  const { name: own, description = '', inputSchema, annotations = {}, execution } = listed;
  if (execution?.taskSupport === 'required') throw new Error('it runs only as a task');
  const name = `mcp__${server.name}__${own.replaceAll(/[^a-zA-Z0-9_-]/g, '_')}`;
  if (name.length > NAME_MAX) throw new Error(`its name is longer than providers take (${NAME_MAX})`);
  if (names.has(name)) throw new Error(`another tool is named ${name} too`);
  const readOnly = annotations.readOnlyHint === true;
  const tool = defineTool({
    name,
    description: description.slice(0, DESCRIPTION_MAX),
    parameters: schemaOf(inputSchema as Json),
    readOnly,
    // A tool that only reads may run again after a crash. Only the host can decide that about other tools.
    idempotent: readOnly,
    execute: (args, context) => execute(server, { own, readOnly }, args, context),
  });
  names.add(name);
  return tool;
}

/** Validates with the server's schema, and shows that schema unchanged to the model. */
function schemaOf(inputSchema: Json): StandardSchemaV1<unknown, { [key: string]: unknown }> {
  const { '~standard': standard } = z.fromJSONSchema(inputSchema as Parameters<typeof z.fromJSONSchema>[0]);
  const { validate, version, vendor } = standard;
  const shown = { input: () => inputSchema, output: () => inputSchema };
  return { '~standard': { validate, version, vendor, jsonSchema: shown } } as never;
}

async function execute(
  server: McpServer,
  { own, readOnly }: { own: string; readOnly: boolean },
  args: { [key: string]: unknown },
  context: ToolContext,
): Promise<ToolResult> {
  const { conversationId, callId, signal, decision, progress } = context;
  const key = `${conversationId} ${callId}`;
  const settled = await server.call({ key, name: own, args, readOnly, signal, decision, progress });
  if (settled.kind === 'result') return resultOf(settled.result);
  onWaitOver(context, () => server.abandon(key));
  const { message, requestedSchema } = settled.elicitation;
  const payload = { server: server.name, message, schema: requestedSchema };
  return toolResult.pending({ reason: 'elicitation', payload });
}

function resultOf({ content, structuredContent, isError }: McpResult): ToolResult {
  const parts = (content ?? []).map(partOf);
  const resultContent = parts.length > 0 || structuredContent === undefined ? parts : JSON.stringify(structuredContent);
  return isError === true ? toolResult.error(resultContent, 'error') : toolResult.success(resultContent);
}

type McpContent = NonNullable<McpResult['content']>[number];

/** The call has run. If an image cannot be shown to a model, a text names it, and the rest of the result is kept. */
function imageOf({ mimeType: mediaType, data }: Extract<McpContent, { type: 'image' }>): ContentPart {
  const image: ContentPart = { type: 'image', mediaType, data };
  try {
    readContent([image]);
    return image;
  } catch (error) {
    return { type: 'text', text: `[an image that cannot be shown: ${thrownMessage(error)}]` };
  }
}

function partOf(part: McpContent): ContentPart {
  switch (part.type) {
    case 'text':
      return { type: 'text', text: part.text };
    case 'image':
      return imageOf(part);
    case 'resource':
      return 'text' in part.resource
        ? { type: 'text', text: part.resource.text }
        : { type: 'text', text: `[${part.resource.mimeType ?? 'bytes'} at ${part.resource.uri}]` };
    case 'resource_link':
      return { type: 'text', text: `[${part.name} at ${part.uri}]` };
    default:
      return { type: 'text', text: `[${part.type}]` };
  }
}
