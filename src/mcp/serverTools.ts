/**
 * The tools of one MCP server, as an agent has them. Rule: a server's descriptions are untrusted data. Names must fit the providers'
 * rules, texts are cut, and a tool that could change something when it was first listed never becomes read-only. The list is
 * replaced when the server changes it, and agents then have the new one.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec';
import { z } from 'zod';
import type { Json } from '../../machines/vocabulary.ts';
import { thrownMessage } from '../errors.ts';
import { beginning } from '../printable.ts';
import {
  changingBy,
  defineTool,
  onWaitOver,
  type Tool,
  type ToolChanges,
  type ToolContext,
  type ToolResult,
  toolResult,
} from '../tools/tool.ts';
import type { McpServer, McpToolInfo } from './mcpServer.ts';
import { resultOf } from './serverContent.ts';

/** A tool that a model cannot use, with the reason. */
export interface LeftTool {
  server: string;
  tool: string;
  why: string;
}

const DESCRIPTION_MAX = 4_096;
const NAME_MAX = 64;

/** The name of a server's tool in an agent. Throws where providers take no such name. */
export function toolName(server: string, own: string): string {
  const name = `mcp__${server}__${own.replaceAll(/[^a-zA-Z0-9_-]/g, '_')}`;
  if (name.length > NAME_MAX) throw new Error(`its name is longer than providers take (${NAME_MAX})`);
  return name;
}

export class ServerTools {
  /** Another list after each change. */
  tools: readonly Tool[] = [];
  left: readonly LeftTool[] = [];
  readonly #server: McpServer;
  /** Tools that the library adds: for resources and prompts. */
  readonly #added: readonly Tool[];
  readonly #addedLeft: readonly LeftTool[];
  /** Every tool that was offered, in any list. */
  readonly #all = new WeakSet<Tool>();
  /** Whether a tool only read when it was first listed. */
  readonly #readOnly = new Map<string, boolean>();

  constructor(server: McpServer, added: { tools: readonly Tool[]; left: readonly LeftTool[] }) {
    this.#server = server;
    this.#added = added.tools;
    this.#addedLeft = added.left;
  }

  replace(list: readonly McpToolInfo[]): void {
    const names = new Set<string>();
    const left: LeftTool[] = [];
    const take = (own: string, make: () => Tool): Tool[] => {
      try {
        const tool = changingBy(make(), this.#follow);
        if (names.has(tool.name)) throw new Error(`another tool is named ${tool.name} too`);
        names.add(tool.name);
        this.#all.add(tool);
        return [tool];
      } catch (error) {
        left.push({ server: this.#server.name, tool: own, why: thrownMessage(error) });
        return [];
      }
    };
    this.tools = [
      ...list.flatMap((listed) => take(listed.name, () => this.#toolOf(listed))),
      ...this.#added.flatMap((tool) => take(tool.name, () => tool)),
    ];
    this.left = [...left, ...this.#addedLeft];
  }

  /** The current tools replace those in the list. Tools that the host had left out stay out. */
  readonly #follow: ToolChanges = (read) => {
    const listedNames = new Set(read().map(({ name }) => name));
    const withheld = new Set(this.tools.map(({ name }) => name).filter((name) => !listedNames.has(name)));
    let merged: { before: readonly Tool[]; own: readonly Tool[]; tools: readonly Tool[] } | undefined;
    return () => {
      const before = read();
      if (merged?.before !== before || merged.own !== this.tools)
        merged = { before, own: this.tools, tools: this.#mergedInto(before, withheld) };
      return merged.tools;
    };
  };

  #mergedInto(before: readonly Tool[], withheld: ReadonlySet<string>): Tool[] {
    const others = new Set(before.filter((tool) => !this.#all.has(tool)).map(({ name }) => name));
    const own = this.tools.filter(({ name }) => !withheld.has(name) && !others.has(name));
    const place = before.findIndex((tool) => this.#all.has(tool));
    return before.flatMap((tool, index) => {
      if (index === place) return own;
      return this.#all.has(tool) ? [] : [tool];
    });
  }

  #toolOf({ name: own, description = '', inputSchema, annotations = {}, execution }: McpToolInfo): Tool {
    if (execution?.taskSupport === 'required') throw new Error('it runs only as a task');
    const name = toolName(this.#server.name, own);
    const isReading = annotations.readOnlyHint === true;
    const readOnly = isReading && this.#readOnly.get(name) !== false;
    this.#readOnly.set(name, readOnly);
    return defineTool({
      name,
      description: beginning(description, DESCRIPTION_MAX),
      parameters: schemaOf(inputSchema as Json),
      readOnly,
      // A tool that only reads may run again after a crash. Only the host can decide that about other tools.
      idempotent: readOnly,
      execute: (args, context) =>
        this.tools.some((tool) => tool.name === name) || this.#server.isWaiting(keyOf(context))
          ? execute(this.#server, { own, readOnly }, args, context)
          : toolResult.error(`The tool ${name} was removed by its server. It was not run.`, 'unknown_tool'),
    });
  }
}

/** Validates with the server's schema, and shows that schema to the model. */
function schemaOf(inputSchema: Json): StandardSchemaV1<unknown, { [key: string]: unknown }> {
  const { '~standard': standard } = z.fromJSONSchema(inputSchema as Parameters<typeof z.fromJSONSchema>[0]);
  const { validate, version, vendor } = standard;
  const shown = { input: () => inputSchema, output: () => inputSchema };
  return { '~standard': { validate, version, vendor, jsonSchema: shown } } as never;
}

const keyOf = ({ conversationId, callId }: ToolContext): string => `${conversationId} ${callId}`;

async function execute(
  server: McpServer,
  { own, readOnly }: { own: string; readOnly: boolean },
  args: { [key: string]: unknown },
  context: ToolContext,
): Promise<ToolResult> {
  const { signal, decision, progress } = context;
  const key = keyOf(context);
  const settled = await server.call({ key, name: own, args, readOnly, signal, decision, progress });
  if (settled.kind === 'result') return resultOf(settled.result);
  onWaitOver(context, () => server.abandon(key));
  const { message, requestedSchema } = settled.elicitation;
  const payload = { server: server.name, message, schema: requestedSchema };
  return toolResult.pending({ reason: 'elicitation', payload });
}
