/**
 * Opens the arguments of a call in the person's editor: the command of Bash, the new text of a file, else all arguments
 * as JSON. Invariant: the file is private and removed afterwards. A failed editor changes nothing.
 */
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import type { Json } from '../../../machines/internal.ts';
import { thrownText } from '../../errors.ts';
import { isObject } from '../../validation.ts';
import { fileChange } from './callPreview.ts';

export type EditedArguments =
  | { readonly kind: 'edited'; readonly args: Json }
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'failed'; readonly why: string };

/** The part of the arguments that a person edits, as the text of a file. */
interface EditedPart {
  readonly extension: string;
  readonly text: string;
  argsWith(text: string): Json;
}

/** `editor`: a command line, as in `VISUAL` or `EDITOR`. */
export async function editedArguments(name: string, args: Json, editor: string): Promise<EditedArguments> {
  const part = partOf(name, args);
  let directory: string | undefined;
  try {
    directory = await mkdtemp(join(tmpdir(), 'runchart-edit-'));
    const path = join(directory, `arguments${part.extension}`);
    await writeFile(path, part.text, { mode: 0o600 });
    const code = await editorCode(editor, path);
    if (code !== 0) return { kind: 'failed', why: `the editor ended with ${code}` };
    const text = await readFile(path, 'utf8');
    // Most editors end the last line.
    const isUnchanged = text === part.text || text === `${part.text}\n`;
    return isUnchanged ? { kind: 'unchanged' } : { kind: 'edited', args: part.argsWith(endedLike(part.text, text)) };
  } catch (error) {
    return { kind: 'failed', why: thrownText(error) };
  } finally {
    if (directory !== undefined) await rm(directory, { recursive: true, force: true });
  }
}

const endedLike = (before: string, text: string): string => (before.endsWith('\n') ? text : text.replace(/\n$/, ''));

function partOf(name: string, args: Json): EditedPart {
  const change = fileChange(name, args);
  if (change && !('edits' in change)) {
    const key = 'content' in change ? 'content' : 'new_string';
    const text = 'content' in change ? change.content : change.new_string;
    const extension = /^\.\w{1,10}$/.exec(extname(change.file_path))?.[0] ?? '.txt';
    return { extension, text, argsWith: (edited) => ({ ...(change as unknown as object), [key]: edited }) };
  }
  if (isObject(args) && typeof args.command === 'string')
    return { extension: '.sh', text: args.command, argsWith: (command) => ({ ...(args as object), command }) };
  return {
    extension: '.json',
    text: `${JSON.stringify(args, null, 2)}\n`,
    argsWith: (text) => JSON.parse(text) as Json,
  };
}

function editorCode(editor: string, path: string): Promise<number | string> {
  return new Promise((resolve, reject) => {
    const child =
      process.platform === 'win32'
        ? spawn(`${editor} "${path}"`, { stdio: 'inherit', shell: true })
        : spawn('/bin/sh', ['-c', `${editor} "$1"`, 'sh', path], { stdio: 'inherit' });
    child.once('error', reject);
    child.once('close', (code, signal) => resolve(code ?? signal ?? 1));
  });
}
