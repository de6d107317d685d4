/**
 * The Read tool returns a text file with line numbers, an image, a PDF file, or the cells of a notebook. Rule: the result
 * is bounded in lines, line length and bytes. A result that ends early contains the way to read the rest.
 */

import type { FileHandle } from 'node:fs/promises';
import { basename } from 'node:path';
import * as z from 'zod';
import { imageType } from '../../content/imageFormat.ts';
import { defineTool, type Tool, type ToolContext, type ToolResult, toolResult } from '../tool.ts';
import { notebookText } from './formats/notebook.ts';
import { hashOf, type KnownFiles } from './knownFiles.ts';
import { shownName } from './search/listing.ts';
import { isSpilled } from './spilledOutput.ts';
import { type Line, linesOf, openText } from './textFile.ts';
import { grantedPlace, openFile, type Place, pathArgument, refusal, refused } from './workspace.ts';
import { FILE_BYTES_MAX } from './writeFile.ts';

const LINES_MAX = 2_000;
const LINE_CHARACTERS_MAX = 2_000;
/** Below 256 KiB, so that the closing note fits into a result of that size. */
const BYTES_MAX = 255 * 1_024;
/** The most bytes around a line's text: a number of eleven digits, a bar, a line break. */
const PREFIX_BYTES = 15;
/** The bytes that identify an image format. */
const HEAD_BYTES = 16;
const CUT_MARK = ` … [line cut at ${LINE_CHARACTERS_MAX} characters]`;

const parameters = z.object({
  file_path: pathArgument.describe('The file, relative to the working directory or absolute inside it.'),
  offset: z.number().int().min(1).optional().describe('The first line to read, counted from 1.'),
  limit: z.number().int().min(1).optional().describe(`How many lines to read; ${LINES_MAX} where it is not given.`),
});

interface Excerpt {
  lines: Line[];
  /** The file has lines after the excerpt. */
  more: boolean;
  /** The number of lines that were read. */
  linesRead: number;
}

export const readTool = (knownFiles: KnownFiles): Tool =>
  defineTool({
    name: 'Read',
    description:
      `Reads a text file of the working directory and numbers its lines, or shows an image (PNG, JPEG, GIF, WebP), a PDF file, or the cells of a Jupyter notebook. At most ${LINES_MAX} lines are given unless ` +
      'limit says otherwise; long lines are cut. Read on with offset; with offset or limit a notebook is given by its lines.',
    parameters,
    readOnly: true,
    idempotent: true,
    group: 'read-group',
    async execute({ file_path, offset, limit }, context) {
      const place = await grantedPlace(context, file_path, isSpilled(file_path));
      if (place.kind === 'refused') return refusal(place);
      const media = await mediaIn(place);
      if (media) return media;
      const opened = await openText(place);
      if (opened.kind === 'refused') return refusal(opened);
      try {
        const hash = await hashOfFile(opened.file);
        if (hash !== undefined) knownFiles.markSeen(context.conversationId, place.path, hash);
        return await answer(opened.file, place, { first: offset, count: limit }, context);
      } finally {
        await opened.file.close();
      }
    },
  });

const NOTEBOOK = /\.ipynb$/i;

/** The cells of a notebook as text; undefined if the file is none. */
async function cellsIn(file: FileHandle): Promise<string | undefined> {
  const { size } = await file.stat();
  if (size > FILE_BYTES_MAX) return undefined;
  const bytes = Buffer.alloc(size);
  const { bytesRead } = await file.read(bytes, 0, size, 0);
  return notebookText(bytes.subarray(0, bytesRead).toString('utf8'), BYTES_MAX);
}

const PDF = 'application/pdf';

/** The image or PDF in a file; undefined for any other file, including one that cannot be opened. */
async function mediaIn(place: Place): Promise<ToolResult | undefined> {
  const opened = await openFile(place);
  if (opened.kind === 'refused') return undefined;
  try {
    const head = Buffer.alloc(HEAD_BYTES);
    await opened.file.read(head, 0, HEAD_BYTES, 0);
    const mediaType = imageType(head) ?? (head.toString('latin1').startsWith('%PDF-') ? PDF : undefined);
    if (mediaType === undefined) return undefined;
    const { size } = await opened.file.stat();
    const name = shownName(place.name);
    if (size > FILE_BYTES_MAX) {
      const what = mediaType === PDF ? 'the PDF file' : 'the image';
      return refusal(refused('too_large', `${what} ${name} is larger than ${FILE_BYTES_MAX} bytes, and is not shown`));
    }
    const data = await opened.file.readFile();
    const about = { type: 'text' as const, text: `[${name}: ${mediaType}, ${size} bytes]` };
    if (mediaType === PDF)
      return toolResult.success([about, { type: 'file', mediaType, name: basename(place.name), data }]);
    return toolResult.success([about, { type: 'image', mediaType, data }]);
  } finally {
    await opened.file.close();
  }
}

/** Hashes the whole file before any line is shown, so that a change during the reading is detected later. */
async function hashOfFile(file: FileHandle): Promise<string | undefined> {
  const { size } = await file.stat();
  if (size > FILE_BYTES_MAX) return undefined;
  const bytes = Buffer.alloc(size);
  const { bytesRead } = await file.read(bytes, 0, size, 0);
  return hashOf(bytes.subarray(0, bytesRead));
}

/** Both are undefined for the whole file. */
type Range = { first: number | undefined; count: number | undefined };

async function answer(file: FileHandle, place: Place, range: Range, { signal }: ToolContext): Promise<ToolResult> {
  const isWhole = range.first === undefined && range.count === undefined;
  const cells = isWhole && NOTEBOOK.test(place.name) ? await cellsIn(file) : undefined;
  if (cells !== undefined) return toolResult.success(cells);
  const first = range.first ?? 1;
  const name = shownName(place.name);
  const { lines, more, linesRead } = await excerpt(file, first, range.count ?? LINES_MAX, signal);
  const last = lines.at(-1);
  if (last === undefined) {
    if (linesRead === 0) return toolResult.success(`[${name} is empty]`);
    const message = `offset ${first} is behind the end: ${name} has ${linesRead} lines`;
    return refusal(refused('invalid_arguments', message));
  }
  const text = numbered(lines, last.number);
  if (!more) return toolResult.success(text);
  return toolResult.success(
    `${text}\n[lines ${first} to ${last.number}; more follow: read on with offset ${last.number + 1}]`,
  );
}

async function excerpt(file: FileHandle, first: number, count: number, signal: AbortSignal): Promise<Excerpt> {
  const lines: Line[] = [];
  let linesRead = 0;
  let bytes = 0;
  for await (const batch of linesOf(file, LINE_CHARACTERS_MAX, signal)) {
    for (const line of batch) {
      linesRead = line.number;
      if (line.number < first) continue;
      bytes += Buffer.byteLength(line.cut ? line.text + CUT_MARK : line.text) + PREFIX_BYTES;
      // The first line always fits, because its length is bounded.
      if (lines.length === count || bytes > BYTES_MAX) return { lines, more: true, linesRead };
      lines.push(line);
    }
  }
  return { lines, more: false, linesRead };
}

function numbered(lines: readonly Line[], last: number): string {
  const width = Math.max(3, String(last).length);
  return lines
    .map(({ number, text, cut }) => `${String(number).padStart(width)} | ${text}${cut ? CUT_MARK : ''}`)
    .join('\n');
}
