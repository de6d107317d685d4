/** Results of MCP servers as content of tools. Rule: what a model cannot take is named by a text, and the rest is kept. */
import { type ContentPart, readContent } from '../content/content.ts';
import { thrownMessage } from '../errors.ts';
import { type ToolResult, toolResult } from '../tools/tool.ts';
import type { McpResult } from './mcpServer.ts';

export function resultOf({ content, structuredContent, isError }: McpResult): ToolResult {
  const parts = (content ?? []).map(partOf);
  const resultContent = parts.length > 0 || structuredContent === undefined ? parts : JSON.stringify(structuredContent);
  return isError === true ? toolResult.error(resultContent, 'error') : toolResult.success(resultContent);
}

export type McpContent = NonNullable<McpResult['content']>[number];

/** The call has run. If an image cannot be shown to a model, a text names it, and the rest of the result is kept. */
export function imageOf({ mimeType: mediaType, data }: { mimeType: string; data: string }): ContentPart {
  const image: ContentPart = { type: 'image', mediaType, data };
  try {
    readContent([image]);
    return image;
  } catch (error) {
    return { type: 'text', text: `[an image that cannot be shown: ${thrownMessage(error)}]` };
  }
}

export function partOf(part: McpContent): ContentPart {
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
