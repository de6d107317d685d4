/**
 * The Write tool writes a whole file, new or in place of another. Rule: the target must be inside the working
 * directory. The model must have read the current version of an existing file. The file keeps its line ends, byte order
 * mark and permissions.
 */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { defineTool, type Tool, type ToolContext, type ToolResult, toolResult } from '../tool.ts';
import { bytesOfText, diffOf, readText, textArgument, withLineEnds } from './fileText.ts';
import { hashOf, type KnownFiles } from './knownFiles.ts';
import { shownName } from './search/listing.ts';
import { grantedPlace, type Place, pathArgument, type Refusal, refusal, refused } from './workspace.ts';
import { currentContent, putFile } from './writeFile.ts';

const CONTENT_CHARACTERS_MAX = 4 * 1_048_576;

const parameters = z.object({
  file_path: pathArgument.describe('The file, relative to the working directory or absolute inside it.'),
  content: textArgument.max(CONTENT_CHARACTERS_MAX).describe('All that the file is to hold.'),
});

export const writeTool = (knownFiles: KnownFiles): Tool =>
  defineTool({
    name: 'Write',
    description:
      'Writes a whole file inside the working directory, with the directories above it. One that is there must have been ' +
      'read before. To change a part of a file use Edit.',
    parameters,
    group: 'write-group',
    async execute({ file_path, content }, context) {
      const place = await grantedPlace(context, file_path);
      if (place.kind === 'refused') return refusal(place);
      if (await makesHome(place, file_path)) return refusal(noHome(place));
      return knownFiles.inTurn(place.path, () => write(place, content, knownFiles, context));
    },
  });

/** Only a shell reads `~` as the home directory. Here it would create a directory with that name. */
const makesHome = async ({ type, root }: Place, writtenPath: string): Promise<boolean> =>
  type === 'missing' &&
  writtenPath.startsWith('~/') &&
  (await stat(join(root, '~')).catch(() => undefined)) === undefined;

const noHome = ({ name }: Place): Refusal =>
  refused(
    'invalid_arguments',
    `${shownName(name)} is not in the home directory; write ./~ for a directory of that name`,
  );

async function write(
  place: Place,
  content: string,
  knownFiles: KnownFiles,
  { conversationId, signal }: ToolContext,
): Promise<ToolResult> {
  const name = shownName(place.name);
  const current = await currentContent(place);
  if (current.kind === 'refused') return refusal(current);
  const isNew = current.kind === 'missing';
  const fault = isNew ? undefined : knownFiles.changeRefusal(conversationId, place.path, hashOf(current.bytes), name);
  if (fault) return refusal(fault);
  const old = isNew ? undefined : readText(current.bytes, place.name);
  if (old?.kind === 'refused') return refusal(old);
  const text = old ? withLineEnds(content, old) : content;
  const bytes = old ? bytesOfText(text.replace(/^\uFEFF/, ''), old) : Buffer.from(text, 'utf8');
  signal.throwIfAborted();
  const failed = await putFile(place, bytes, isNew ? undefined : current);
  if (failed) return refusal(failed);
  knownFiles.markSeen(conversationId, place.path, hashOf(bytes));
  const count = content === '' ? 0 : content.replace(/\n$/, '').split('\n').length;
  const lines = count === 1 ? '1 line' : `${count} lines`;
  if (!old) return toolResult.success(`Created ${name} (${lines})`);
  if (old.text === text) return toolResult.success(`${name} had this content already`);
  return toolResult.success(`Replaced ${name} (${lines})\n${await diffOf(place.name, old.text, text)}`);
}
