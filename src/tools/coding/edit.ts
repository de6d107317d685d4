/**
 * The Edit tool replaces one text of a file by another; MultiEdit replaces several in turn. Rule: a text must occur
 * exactly once, unless all places are to change. All edits of a call are made, or none, and their time is bounded. The
 * model must have read the current version of the file. All other bytes stay as they are.
 */
import * as z from 'zod';
import { nextTurn } from '../../timeLimit.ts';
import { defineTool, type Tool, type ToolContext, type ToolResult, toolResult } from '../tool.ts';
import { bytesOfText, diffOf, type FileText, lineOf, readText, replacedIn, textArgument } from './fileText.ts';
import { hashOf, type KnownFiles } from './knownFiles.ts';
import { shownName } from './search/listing.ts';
import { placesIn } from './search/textPlaces.ts';
import { grantedPlace, type Place, pathArgument, type Refusal, refusal, refused } from './workspace.ts';
import { currentContent, FILE_BYTES_MAX, putFile } from './writeFile.ts';

const LINES_SHOWN = 10;

const EDITS_MAX = 200;
/** The CPU time of all edits of a call. */
const EDITS_CPU_MS = 5_000;

const filePath = pathArgument.describe('The file, relative to the working directory or absolute inside it.');
const textEdit = z.object({
  old_string: textArgument
    .min(1)
    .describe('The text to replace, without line numbers; it must stand in the file once.'),
  new_string: textArgument.describe('What takes its place.'),
  replace_all: z.boolean().optional().describe('Replace every place where old_string stands.'),
});
export type TextEdit = z.infer<typeof textEdit>;

export const editTool = (knownFiles: KnownFiles): Tool =>
  defineTool({
    name: 'Edit',
    description:
      'Replaces a text in a file that was read before. old_string must stand there exactly once: give enough of the lines ' +
      'around it, or set replace_all.',
    parameters: z.object({ file_path: filePath, ...textEdit.shape }),
    group: 'write-group',
    execute: ({ file_path, ...edit }, context) => changeFile(file_path, [edit], knownFiles, context),
  });

export const multiEditTool = (knownFiles: KnownFiles): Tool =>
  defineTool({
    name: 'MultiEdit',
    description:
      'Makes several replacements in a file that was read before, in their order: each is applied to what the one before ' +
      'it left. If one of them cannot be made, none is.',
    parameters: z.object({
      file_path: filePath,
      edits: z.array(textEdit).min(1).max(EDITS_MAX).describe('The replacements, in their order.'),
    }),
    group: 'write-group',
    execute: ({ file_path, edits }, context) => changeFile(file_path, edits, knownFiles, context),
  });

async function changeFile(
  path: string,
  edits: readonly TextEdit[],
  knownFiles: KnownFiles,
  context: ToolContext,
): Promise<ToolResult> {
  const place = await grantedPlace(context, path);
  if (place.kind === 'refused') return refusal(place);
  return knownFiles.inTurn(place.path, () => changeAt(place, edits, knownFiles, context));
}

async function changeAt(
  place: Place,
  edits: readonly TextEdit[],
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
  const changed = await changedText(before, edits, name, { signal });
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

type Changed = { kind: 'changed'; after: string; places: number };

/**
 * The text after all edits, with the number of changed places. The refusal of one edit is the refusal of all. Between two
 * edits, other work of the process runs, and `signal` ends them.
 */
export async function changedText(
  before: FileText,
  edits: readonly TextEdit[],
  name: string,
  { signal, cpuMs = EDITS_CPU_MS }: { signal?: AbortSignal; cpuMs?: number } = {},
): Promise<Changed | Refusal> {
  let after = before.text;
  let places = 0;
  let usedMs = 0;
  for (const [index, edit] of edits.entries()) {
    const refusedBy = (refusal: Refusal): Refusal => {
      if (edits.length === 1) return refusal;
      return { ...refusal, message: `edit ${index + 1} of ${edits.length}, and so none was made: ${refusal.message}` };
    };
    if (index > 0) await nextTurn();
    signal?.throwIfAborted();
    if (usedMs > cpuMs) {
      return refusedBy(refused('timeout', `the edits before it took more than ${cpuMs} ms: make fewer in one call`));
    }
    const since = process.cpuUsage();
    const changed = replacedText({ ...before, text: after }, edit, name);
    const { user, system } = process.cpuUsage(since);
    usedMs += (user + system) / 1_000;
    if (changed.kind === 'refused') return refusedBy(changed);
    after = changed.after;
    places += changed.places;
  }
  if (after !== before.text) return { kind: 'changed', after, places };
  return refused('invalid_arguments', 'the edits undo each other: there is nothing to change');
}

function replacedText(
  before: FileText,
  { old_string, new_string, replace_all = false }: TextEdit,
  name: string,
): Changed | Refusal {
  if (old_string === new_string)
    return refused('invalid_arguments', 'old_string and new_string are the same: there is nothing to change');
  const searched = { overlapping: !replace_all };
  let places = 0;
  const first: number[] = [];
  for (const { at } of placesIn(before, old_string, searched)) {
    places += 1;
    if (first.length < LINES_SHOWN) first.push(at);
  }
  if (places === 0) {
    const message = `old_string does not stand in ${name}: it must be the text of the file, blanks and all, without line numbers`;
    return refused('no_match', message);
  }
  if (places > 1 && !replace_all) {
    const lines = first.map((at) => lineOf(before.text, at));
    const message = `old_string stands in ${name} ${places} times (lines ${lines.join(', ')}${places > LINES_SHOWN ? ', …' : ''}): give more of the lines around the one you mean, or set replace_all`;
    return refused('not_unique', message);
  }
  const after = replacedIn(before, placesIn(before, old_string, searched), new_string, FILE_BYTES_MAX);
  if (after !== undefined) return { kind: 'changed', after, places };
  return refused('too_large', `${name} would be larger than ${FILE_BYTES_MAX} bytes: make smaller changes`);
}
