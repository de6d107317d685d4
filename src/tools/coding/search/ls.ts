/**
 * The Ls tool lists one directory. Rule: one entry a line, sorted by code unit, including hidden entries. Links are not
 * followed.
 */

import type { Dirent } from 'node:fs';
import { opendir } from 'node:fs/promises';
import * as z from 'zod';
import { defineTool, type Tool, toolResult } from '../../tool.ts';
import {
  failure,
  grantedPlace,
  inDirectory,
  movedDirectory,
  notADirectory,
  pathArgument,
  refusal,
} from '../workspace.ts';
import { listing, shownName } from './listing.ts';

const ENTRIES_MAX = 100_000;

const parameters = z.object({
  path: pathArgument.optional().describe('The directory; the working directory where it is not given.'),
});

export const lsTool: Tool = defineTool({
  name: 'Ls',
  description:
    'Lists one directory inside the working directory, sorted, hidden entries too. ' +
    'Directories end with "/", links with "@".',
  parameters,
  readOnly: true,
  idempotent: true,
  group: 'read-group',
  async execute({ path = '.' }, context) {
    const { signal } = context;
    const place = await grantedPlace(context, path);
    if (place.kind === 'refused') return refusal(place);
    if (place.type !== 'directory') return refusal(notADirectory(place));
    signal.throwIfAborted();
    try {
      const result = await inDirectory(place.path, (heldPath) => entriesOf(heldPath, signal));
      if (!result) return refusal(movedDirectory(place));
      const { entries, cut } = result;
      const notes = cut ? [`only ${ENTRIES_MAX} entries were read`] : [];
      return toolResult.success(
        listing(entries, { empty: 'the directory is empty', narrow: 'search with Glob', notes }),
      );
    } catch (error) {
      signal.throwIfAborted();
      return refusal(failure(error, place.name));
    }
  },
});

async function entriesOf(path: string, signal: AbortSignal): Promise<{ entries: string[]; cut: boolean }> {
  const dirents: Dirent[] = [];
  for await (const entry of await opendir(path, { bufferSize: 256 })) {
    signal.throwIfAborted();
    if (dirents.length === ENTRIES_MAX) return { entries: shown(dirents), cut: true };
    dirents.push(entry);
  }
  return { entries: shown(dirents), cut: false };
}

const shown = (entries: Dirent[]): string[] =>
  entries.sort((a, b) => (a.name < b.name ? -1 : 1)).map((entry) => shownName(entry.name) + markOf(entry));

const markOf = (entry: Dirent): string => (entry.isDirectory() ? '/' : entry.isSymbolicLink() ? '@' : '');
