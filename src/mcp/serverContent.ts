/** Results of MCP servers as content of tools. Rule: a text names each part that a model cannot receive, and the other parts are kept. */
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

/** The call has run. If a part cannot be stored, a text names it, and the rest of the result is kept. */
function attachmentOf(part: Exclude<ContentPart, { type: 'text' }>, what: string): ContentPart {
  try {
    readContent([part]);
    return part;
  } catch (error) {
    return { type: 'text', text: `[${what} that cannot be shown: ${thrownMessage(error)}]` };
  }
}

export const imageOf = ({ mimeType: mediaType, data }: { mimeType: string; data: string }): ContentPart =>
  attachmentOf({ type: 'image', mediaType, data }, 'an image');

/** A model that does not accept its type reads a text in its place. */
const soundOf = ({ mimeType: mediaType, data }: { mimeType: string; data: string }): ContentPart =>
  /^audio\//i.test(mediaType)
    ? attachmentOf({ type: 'file', mediaType, data }, 'a sound')
    : { type: 'text', text: '[a sound of an unknown type]' };

export function partOf(part: McpContent): ContentPart {
  switch (part.type) {
    case 'text':
      return { type: 'text', text: part.text };
    case 'image':
      return imageOf(part);
    case 'audio':
      return soundOf(part);
    case 'resource':
      return 'text' in part.resource
        ? { type: 'text', text: part.resource.text }
        : { type: 'text', text: `[${part.resource.mimeType ?? 'bytes'} at ${part.resource.uri}]` };
    case 'resource_link':
      return { type: 'text', text: `[${part.name} at ${part.uri}]` };
    default:
      return { type: 'text', text: `[${(part as { type: string }).type}]` };
  }
}
