/**
 * The Edit tool replaces one text of a file by another. Rule: the text must occur exactly once, unless all places are
 * to change. The model must have read the current version of the file. All other bytes stay as they are.
 */
import * as z from 'zod';
import { defineTool, type Tool, type ToolContext, type ToolResult, toolResult } from '../tool.ts';
import { bytesOfText, diffOf, type FileText, lineOf, placesIn, readText, replacedIn } from './fileText.ts';
import { hashOf, type KnownFiles } from './knownFiles.ts';
import { shownName } from './search/listing.ts';
import { grantedPlace, type Place, pathArgument, type Refusal, refusal, refused } from './workspace.ts';
import { currentContent, putFile } from './writeFile.ts';

const LINES_SHOWN = 10;

const parameters = z.object({
  file_path: pathArgument.describe('The file, relative to the working directory or absolute inside it.'),
  old_string: z.string().min(1).describe('The text to replace, without line numbers; it must stand in the file once.'),
  new_string: z.string().describe('What takes its place.'),
  replace_all: z.boolean().optional().describe('Replace every place where old_string stands.'),
});
type Change = z.infer<typeof parameters>;

export const editTool = (knownFiles: KnownFiles): Tool =>
  defineTool({
    name: 'Edit',
    description:
      'Replaces a text in a file that was read before. old_string must stand there exactly once: give enough of the lines ' +
      'around it, or set replace_all.',
    parameters,
    group: 'write-group',
    async execute(change, context) {
      if (change.old_string === change.new_string) {
        return refusal(
          refused('invalid_arguments', 'old_string and new_string are the same: there is nothing to change'),
        );
      }
      const place = await grantedPlace(context, change.file_path);
      if (place.kind === 'refused') return refusal(place);
      return knownFiles.inTurn(place.path, () => edit(place, change, knownFiles, context));
    },
  });

async function edit(
  place: Place,
  change: Change,
  knownFiles: KnownFiles,
  { conversationId, signal }: ToolContext,
): Promise<ToolResult> {
  const name = shownName(place.name);
  const current = await currentContent(place);
  if (current.kind === 'missing') return refusal(refused('not_found', `there is no ${name}; make it with Write`));
  if (current.kind === 'refused') return refusal(current);
  const before = readText(current.bytes, place.name);
  if (before.kind === 'refused') return refusal(before);
  const fault = knownFiles.changeRefusal(conversationId, place.path, hashOf(current.bytes), name);
  if (fault) return refusal(fault);
  const changed = changedText(before, change, name);
  if (changed.kind === 'refused') return refusal(changed);
  const { after, places } = changed;
  const bytes = bytesOfText(after, before);
  signal.throwIfAborted();
  const failed = await putFile(place, bytes, current);
  if (failed) return refusal(failed);
  knownFiles.markSeen(conversationId, place.path, hashOf(bytes));
  const times = places === 1 ? '' : ` in ${places} places`;
  return toolResult.success(`Changed ${name}${times}\n${await diffOf(place.name, before.text, after)}`);
}

/** The text after the change, with the number of changed places. */
export function changedText(
  before: FileText,
  { old_string, new_string, replace_all = false }: Omit<Change, 'file_path'>,
  name: string,
): { kind: 'changed'; after: string; places: number } | Refusal {
  const places = placesIn(before, old_string, { overlapping: !replace_all });
  const [first, ...others] = places;
  if (!first) {
    const message = `old_string does not stand in ${name}: it must be the text of the file, blanks and all, without line numbers`;
    return refused('no_match', message);
  }
  if (others.length > 0 && !replace_all) {
    const lines = places.slice(0, LINES_SHOWN).map(({ at }) => lineOf(before.text, at));
    const message = `old_string stands in ${name} ${places.length} times (lines ${lines.join(', ')}${places.length > LINES_SHOWN ? ', …' : ''}): give more of the lines around the one you mean, or set replace_all`;
    return refused('not_unique', message);
  }
  return { kind: 'changed', after: replacedIn(before, places, new_string), places: places.length };
}
