/**
 * The prompt of an editor as the content of a message: texts with the names of the attachments, then the attachments.
 * Invariant: only files inside the working directory are read. Other links stay names, which the tools may open under
 * the rules.
 */
import { realpath } from 'node:fs/promises';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type ContentBlock, type EmbeddedResourceResource, RequestError } from '@agentclientprotocol/sdk';
import type { ContentPart } from '../../content/content.ts';
import { beginning, printableLine } from '../../printable.ts';
import { isInside } from '../../tools/coding/workspace.ts';
import { attachedFile } from '../commands/messageContent.ts';

const TEXT_MAX = 100_000;
const NAME_MAX = 255;
const FILES_MAX = 10;

/** Rejects with RequestError for content that the agent does not accept. */
export async function promptContent(blocks: readonly ContentBlock[], cwd: string): Promise<ContentPart[]> {
  const attachedNames = new Set<string>();
  let text = '';
  const attached: ContentPart[] = [];
  for (const block of blocks) {
    if (block.type === 'text') {
      text += block.text;
    } else if (block.type === 'image') {
      attached.push({ type: 'image', mediaType: block.mimeType, data: block.data });
    } else if (block.type === 'resource_link') {
      const path = await pathOf(block.uri);
      const name = path === undefined ? block.uri : nameIn(cwd, path);
      text += path === undefined ? `[${block.name}](${block.uri})` : `@${name}`;
      if (path === undefined || !isInside(cwd, path)) continue;
      if (attachedNames.has(name) || attachedNames.size >= FILES_MAX) continue;
      const file = await attachedFile(name, cwd);
      if (file.length > 0) attachedNames.add(name);
      attached.push(...file);
    } else if (block.type === 'resource') {
      const path = await pathOf(block.resource.uri);
      const name = path === undefined ? block.resource.uri : nameIn(cwd, path);
      text += `@${name}`;
      attached.push(...resourceParts(block.resource, name));
    } else {
      throw RequestError.invalidParams({ type: block.type }, `the agent takes no ${block.type}`);
    }
  }
  return [{ type: 'text', text }, ...attached];
}

/** The path of a file URL, with links resolved. Undefined for another address. */
async function pathOf(uri: string): Promise<string | undefined> {
  try {
    const path = fileURLToPath(uri);
    return await realpath(path).catch(() => path);
  } catch {
    return undefined;
  }
}

const nameIn = (cwd: string, path: string): string => (isInside(cwd, path) ? relative(cwd, path) || '.' : path);

function resourceParts(resource: EmbeddedResourceResource, name: string): ContentPart[] {
  const shown = printableLine(name);
  if ('text' in resource) {
    const text = beginning(resource.text, TEXT_MAX);
    const cut = text.length < resource.text.length ? `, the first ${text.length} characters` : '';
    return [{ type: 'text', text: `[attached ${shown}${cut}]\n${text}` }];
  }
  const mediaType = resource.mimeType ?? 'application/octet-stream';
  const label: ContentPart = { type: 'text', text: `[attached ${shown}, ${mediaType}]` };
  if (mediaType.startsWith('image/')) return [label, { type: 'image', mediaType, data: resource.blob }];
  return [
    label,
    { type: 'file', mediaType, name: name.slice(-NAME_MAX).replace(/^[\udc00-\udfff]/, ''), data: resource.blob },
  ];
}
