/**
 * The effect that a waiting call would have on a file: the change as a diff, or the content of a new file.
 * Invariant: nothing is changed, and at most the file that the call names is read. The tool computes the same change.
 */

import type { Json } from '../../../machines/internal.ts';
import { changedText, type TextEdit } from '../../tools/coding/edit.ts';
import { patchOf, readText, withLineEnds } from '../../tools/coding/fileText.ts';
import { placeOf } from '../../tools/coding/workspace.ts';
import { currentContent } from '../../tools/coding/writeFile.ts';
import { isObject } from '../../validation.ts';

export type CallPreview =
  | {
      readonly kind: 'change';
      readonly path: string;
      readonly patch: string;
      /** The absolute path, links resolved. */
      readonly file: string;
      readonly before: string;
      readonly after: string;
    }
  | { readonly kind: 'new file'; readonly path: string; readonly file: string; readonly content: string }
  /** The call would fail, or nothing can be compared. The arguments are shown. */
  | { readonly kind: 'no change'; readonly path: string; readonly why: string };

/** The arguments of a call that changes a file. */
export type FileChange = { file_path: string } & ({ content: string } | TextEdit | { edits: readonly TextEdit[] });

const EDIT = ['old_string', 'new_string'];

/** Reads the arguments of Write, Edit and MultiEdit. Undefined for another tool, and if there are other arguments. */
export function fileChange(name: string, args: Json): FileChange | undefined {
  if (!isObject(args)) return undefined;
  const isChange =
    name === 'Write'
      ? hasFields(args, ['file_path', 'content'])
      : name === 'Edit'
        ? hasFields(args, ['file_path', ...EDIT], true)
        : name === 'MultiEdit' && isMultiEdit(args);
  return isChange ? (args as unknown as FileChange) : undefined;
}

function isMultiEdit({ edits, ...others }: { readonly [key: string]: unknown }): boolean {
  const areEdits = Array.isArray(edits) && edits.every((edit) => isObject(edit) && hasFields(edit, EDIT, true));
  return areEdits && hasFields(others, ['file_path']);
}

/** True if these fields are texts and there are no other fields. An edit may also have the flag `replace_all`. */
function hasFields(args: { readonly [key: string]: unknown }, texts: readonly string[], isEdit = false): boolean {
  const { replace_all, ...others } = args;
  const isFlag = replace_all === undefined || (isEdit && typeof replace_all === 'boolean');
  return isFlag && Object.keys(others).length === texts.length && texts.every((key) => typeof others[key] === 'string');
}

/** The edits of a change that replaces no whole file. */
const editsOf = (change: Exclude<FileChange, { content: string }>): readonly TextEdit[] =>
  'edits' in change ? change.edits : [change];

/** `place`: the resolved path, as the rules found it. */
export async function callPreview(
  name: string,
  args: Json,
  { cwd, place: opened }: { cwd: string; place: string | undefined },
): Promise<CallPreview | undefined> {
  const change = fileChange(name, args);
  if (!change) return undefined;
  const path = change.file_path;
  const without = (why: string): CallPreview => ({ kind: 'no change', path, why });
  const place = await placeOf(cwd, path, opened);
  if (place.kind === 'refused') return without(place.message);
  const current = await currentContent(place);
  if (current.kind === 'refused') return without(current.message);
  if (current.kind === 'missing') {
    if ('content' in change) return { kind: 'new file', path: place.name, file: place.path, content: change.content };
    return without(`there is no ${place.name}`);
  }
  const before = readText(current.bytes, place.name);
  if (before.kind === 'refused') return without(before.message);
  const changed =
    'content' in change
      ? { kind: 'changed' as const, after: withLineEnds(change.content.replace(/^\uFEFF/, ''), before) }
      : await changedText(before, editsOf(change), place.name);
  if (changed.kind === 'refused') return without(changed.message);
  const patch = await patchOf(place.name, before.text, changed.after);
  if (patch === undefined) return without('the change is too large to be compared');
  return before.text === changed.after
    ? without('it would change nothing')
    : { kind: 'change', path: place.name, patch, file: place.path, before: before.text, after: changed.after };
}
