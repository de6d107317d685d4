/**
 * The Glob tool finds files by a path pattern. Rule: Read accepts the result unchanged. The pattern is matched against
 * the names after the directory walk, so it never controls which directories are read.
 */
import * as z from 'zod';
import { defineTool, type Tool, toolResult } from '../../tool.ts';
import { grantedPlace, notADirectory, pathArgument, placeBelow, refusal } from '../workspace.ts';
import { LISTED_MAX, listing, shownName } from './listing.ts';
import { startMatcher } from './matcher.ts';
import { GLOB_CHARACTERS_MAX, globPattern } from './pattern.ts';
import { newestFirst, searchedFiles } from './searchedFiles.ts';

const parameters = z.object({
  pattern: z
    .string()
    .min(1)
    .max(GLOB_CHARACTERS_MAX)
    .describe('The glob, relative to path: "**/*.ts" finds at any depth, "*.ts" directly below path only.'),
  path: pathArgument.optional().describe('The directory to search; the working directory where it is not given.'),
});

export const globTool: Tool = defineTool({
  name: 'Glob',
  description:
    `Finds files by a glob and lists their paths, those that changed last first, at most ${LISTED_MAX}. Hidden entries, node_modules, ` +
    'links and what .gitignore names are left out; name such a directory in path to search it.',
  parameters,
  readOnly: true,
  idempotent: true,
  group: 'read-group',
  async execute({ pattern, path = '.' }, context) {
    const { signal } = context;
    const compiled = globPattern(pattern);
    if (compiled.kind === 'refused') return refusal(compiled);
    const place = await grantedPlace(context, path);
    if (place.kind === 'refused') return refusal(place);
    if (place.type !== 'directory') return refusal(notADirectory(place));
    const { names, cut } = await searchedFiles(place, signal);
    const matcher = startMatcher(signal);
    try {
      const matches = await matcher.match(compiled, names, names.length + 1);
      if (matches.kind === 'refused') return refusal(matches);
      const found = matches.hits.map(([index]) => names[index] ?? '');
      const sorted = await newestFirst(place, found, signal);
      const lines = (sorted ?? found).map((name) => shownName(placeBelow(place, name).name));
      const notes = cut ? ['not every directory was looked at; give a narrower path'] : [];
      if (!sorted) notes.push('too many to be sorted by time: by name');
      return toolResult.success(listing(lines, { empty: 'no file matches', narrow: 'give a narrower pattern', notes }));
    } finally {
      await matcher.end();
    }
  },
});
