/**
 * Tools for the resources and prompts of an MCP server, where the host wants them. Rule: they only read, and a list is shown in
 * parts, since a server may have any number of them.
 */
import type { Client } from '@modelcontextprotocol/client';
import { z } from 'zod';
import type { ContentPart } from '../content/content.ts';
import { thrownMessage } from '../errors.ts';
import { beginning } from '../printable.ts';
import { defineTool, type Tool } from '../tools/tool.ts';
import type { McpServer } from './mcpServer.ts';
import { imageOf, partOf } from './serverContent.ts';
import type { McpServerOptions } from './serverOptions.ts';
import { type LeftTool, toolName } from './serverTools.ts';

type Capabilities = ReturnType<Client['getServerCapabilities']>;
type Reading<Args> = (client: Client, args: Args, options: { signal: AbortSignal }) => Promise<string | ContentPart[]>;

/** Entries of a list that one call shows. */
const SHOWN = 100;
const ENTRY_LONGEST = 500;

const place = z.object({ from: z.number().int().min(0).optional().describe('The entry to begin with; default: 0.') });
const resource = z.object({ uri: z.string().min(1).describe('The address, as the list shows it.') });
const prompt = z.object({
  name: z.string().min(1),
  arguments: z.record(z.string(), z.string()).optional().describe('The values of its arguments.'),
});

/** The part of a list that begins at `from`, one entry a line. */
function shown(kind: string, entries: readonly string[], from = 0): string {
  if (entries.length === 0) return `The server has no ${kind}.`;
  if (from >= entries.length) return `The server has ${entries.length} ${kind}. There is none from ${from} on.`;
  const part = entries
    .slice(from, from + SHOWN)
    .map((entry) => beginning(entry.replaceAll(/\s+/g, ' '), ENTRY_LONGEST));
  const rest = entries.length - from - part.length;
  return [...part, ...(rest > 0 ? [`and ${rest} more: call again with from ${from + part.length}`] : [])].join('\n');
}

const described = (title: string, ...notes: (string | undefined)[]): string =>
  [title, ...notes.filter((note) => note !== undefined && note !== '')].join(' - ');

const listResources: Reading<z.infer<typeof place>> = async (client, { from }, options) => {
  const { resources } = await client.listResources(undefined, options);
  const templates = await client.listResourceTemplates(undefined, options).then(
    ({ resourceTemplates }) => resourceTemplates,
    // Many servers have none, and some do not know the request.
    () => [],
  );
  const entries = [
    ...resources.map(({ uri, name, description, mimeType }) => described(uri, name, description, mimeType)),
    ...templates.map(({ uriTemplate, name, description }) =>
      described(uriTemplate, `${name} (a template)`, description),
    ),
  ];
  return shown('resources', entries, from);
};

const readResource: Reading<z.infer<typeof resource>> = async (client, { uri }, options) => {
  const { contents } = await client.readResource({ uri }, options);
  return contents.map((content) => {
    const { mimeType = '' } = content;
    return 'blob' in content && mimeType.startsWith('image/')
      ? imageOf({ mimeType, data: content.blob })
      : partOf({ type: 'resource', resource: content });
  });
};

const listPrompts: Reading<z.infer<typeof place>> = async (client, { from }, options) => {
  const { prompts } = await client.listPrompts(undefined, options);
  const entries = prompts.map(({ name, description, arguments: args = [] }) => {
    const names = args.map((each) => (each.required === true ? each.name : `${each.name}?`)).join(', ');
    return described(`${name}(${names})`, description);
  });
  return shown('prompts', entries, from);
};

const getPrompt: Reading<z.infer<typeof prompt>> = async (client, { name, arguments: args }, options) => {
  const { messages } = await client.getPrompt({ name, ...(args && { arguments: args }) }, options);
  return messages.flatMap(({ role, content }) => [{ type: 'text' as const, text: `${role}:` }, partOf(content)]);
};

function reading<Schema extends z.ZodType>(
  server: McpServer,
  own: string,
  about: { description: string; parameters: Schema; read: Reading<z.infer<Schema>> },
): Tool {
  const { description, parameters, read } = about;
  return defineTool({
    ...{ name: toolName(server.name, own), description, parameters, readOnly: true, idempotent: true },
    execute: (args, { signal }) => server.read(signal, (client) => read(client, args as z.infer<Schema>, { signal })),
  });
}

/** The tools that the options ask for. Those that the server cannot serve are left out, with the reason. */
export function moreTools(server: McpServer, options: McpServerOptions, capabilities: Capabilities) {
  const { name } = server;
  const makers = {
    resources: () => [
      reading(server, 'list_resources', {
        ...{
          description: `Lists the resources of ${name}: documents to read.`,
          parameters: place,
          read: listResources,
        },
      }),
      reading(server, 'read_resource', {
        ...{ description: `Reads a resource of ${name}.`, parameters: resource, read: readResource },
      }),
    ],
    prompts: () => [
      reading(server, 'list_prompts', {
        ...{ description: `Lists the prompts of ${name}: prepared requests.`, parameters: place, read: listPrompts },
      }),
      reading(server, 'get_prompt', {
        ...{ description: `Gets the messages of a prompt of ${name}.`, parameters: prompt, read: getPrompt },
      }),
    ],
  };
  const left: LeftTool[] = [];
  const tools = (['resources', 'prompts'] as const).flatMap((kind) => {
    if (options[kind] !== true) return [];
    try {
      if (!capabilities?.[kind]) throw new Error(`the server has no ${kind}`);
      return makers[kind]();
    } catch (error) {
      left.push({ server: name, tool: kind, why: thrownMessage(error) });
      return [];
    }
  });
  return { tools, left };
}
