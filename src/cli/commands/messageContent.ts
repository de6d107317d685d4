/**
 * The content of a message: the typed text, the files that it names with `@`, and the output of the person's own commands.
 * Invariant: only files inside the working directory are attached. A name that cannot be attached stays a word of the text.
 */
import { spawn } from 'node:child_process';
import { relative } from 'node:path';
import type { Content, ContentPart } from '../../content/content.ts';
import { imageType } from '../../content/imageFormat.ts';
import { beginning } from '../../printable.ts';
import { readText } from '../../tools/coding/fileText.ts';
import { placeOf } from '../../tools/coding/workspace.ts';
import { currentContent } from '../../tools/coding/writeFile.ts';
import { count } from '../costTally.ts';
import { type CommandDefinition, commandIn } from '../definitions/definitions.ts';

const MENTION = /(?:^|\s)@([^\s@]+)/g;
const FILES_MAX = 10;
const TEXT_MAX = 100_000;
/** The first and the last part of an output are kept. */
const OUTPUT_HALF = 8_192;

/**
 * `notes`: texts that the model receives after the message. `meaning`: the text of a command. `typed`: the texts
 * whose `@` attaches files. Piped text is not one of them.
 */
export async function messageContent(
  text: string,
  notes: readonly string[],
  cwd: string,
  meaning: readonly string[] = [],
  typed: readonly string[] = [text, ...meaning],
): Promise<Content> {
  const mentions = typed.flatMap((each) => [...each.matchAll(MENTION)]);
  const names = new Set(mentions.map(([, name = '']) => name));
  const attached: ContentPart[][] = [];
  for (const name of names) {
    if (attached.length >= FILES_MAX) break;
    const file = await attachedFile(name, cwd);
    if (file.length > 0) attached.push(file);
  }
  const partOf = (note: string): ContentPart => ({ type: 'text', text: note });
  const parts: ContentPart[] = [...meaning.map(partOf), ...attached.flat(), ...notes.map(partOf)];
  return parts.length === 0 ? text : [{ type: 'text', text }, ...parts];
}

/** The text of a command from a file, for the model. Empty if the message begins with no such command. */
export function meaningOf(message: string, commands: readonly CommandDefinition[], cwd: string): string[] {
  const found = commandIn(message, commands);
  if (!found) return [];
  const { name, path } = found.command;
  return [`[/${name} stands for the text of ${relative(cwd, path)}]\n${found.text}`];
}

/** The content of a file below the working directory. Empty if there is none. */
export async function attachedFile(name: string, cwd: string): Promise<ContentPart[]> {
  const place = await placeOf(cwd, name);
  const current = place.kind === 'place' ? await currentContent(place) : place;
  if (current.kind !== 'content') return [];
  const mediaType = imageType(current.bytes);
  if (mediaType !== undefined) {
    return [
      { type: 'text', text: `[attached ${name}, ${mediaType}]` },
      { type: 'image', mediaType, data: current.bytes },
    ];
  }
  const read = readText(current.bytes, name);
  if (read.kind === 'refused') return [{ type: 'text', text: `[${name} is not attached: ${read.message}]` }];
  const shown = beginning(read.text, TEXT_MAX);
  const cut = shown.length < read.text.length ? `, the first ${shown.length} characters` : '';
  const lines = count(read.text.replace(/\n$/, '').split('\n').length, 'line');
  return [{ type: 'text', text: `[attached ${name}, ${lines}${cut}]\n${shown}` }];
}

export interface CommandOutput {
  readonly output: string;
  /** The end of the command: an exit code, or a signal. */
  readonly end: string;
}

/** Runs a command of the person in their shell. `signal` ends it with the programs that it started. */
export function personCommand(command: string, cwd: string, signal: AbortSignal): Promise<CommandOutput> {
  return new Promise((resolve, reject) => {
    const shell = process.env.SHELL || '/bin/sh';
    const child = spawn(shell, ['-c', command], { cwd, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    let head = '';
    let tail = '';
    let left = 0;
    const take = (piece: string): void => {
      const room = Math.max(0, OUTPUT_HALF - head.length);
      head += piece.slice(0, room);
      tail += piece.slice(room);
      left += Math.max(0, tail.length - OUTPUT_HALF);
      tail = tail.slice(-OUTPUT_HALF);
    };
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', take);
    const kill = (): void => {
      // A shell that did not start has no process. The group 0 is that of this program.
      if (child.pid === undefined) return;
      try {
        process.kill(-child.pid, 'SIGKILL');
      } catch {
        // It has ended.
      }
    };
    signal.addEventListener('abort', kill);
    if (signal.aborted) kill();
    // Its group is not that of the terminal, so it would outlive the program.
    process.once('exit', kill);
    const release = (): void => {
      signal.removeEventListener('abort', kill);
      process.off('exit', kill);
    };
    child.once('error', (error) => {
      release();
      reject(error);
    });
    child.once('close', (code, by) => {
      release();
      resolve({ output: joinedOutput(head, tail, left), end: code === null ? `ended by ${by}` : `exit code ${code}` });
    });
  });
}

/** `left`: the number of characters between the two parts. Neither part keeps half of a character at the gap. */
function joinedOutput(head: string, tail: string, left: number): string {
  if (left === 0) return head + tail;
  const first = head.replace(/[\ud800-\udbff]$/, '');
  const last = tail.replace(/^[\udc00-\udfff]/, '');
  const halves = head.length + tail.length - first.length - last.length;
  return `${first}\n[${left + halves} characters are left out]\n${last}`;
}

/** The text about a command of the person, for the model. */
export const commandNote = (command: string, { output, end }: CommandOutput): string =>
  `[I ran ${command}: ${end}]\n${output}`;
