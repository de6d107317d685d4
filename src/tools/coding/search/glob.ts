/**
 * The Glob tool finds files by a path pattern. Rule: Read accepts the result unchanged. The pattern is matched against
 * the names after the directory walk, so it never controls which directories are read.
 */
import * as z from 'zod';
import { defineTool, type Tool, toolResult } from '../../tool.ts';
import { filesBelow, grantedPlace, notADirectory, pathArgument, placeBelow, refusal } from '../workspace.ts';
import { LISTED_MAX, listing, shownName } from './listing.ts';
import { startMatcher } from './matcher.ts';
import { GLOB_CHARACTERS_MAX, globPattern } from './pattern.ts';

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
    `Finds files by a glob and lists their paths, sorted, at most ${LISTED_MAX}. Hidden entries, node_modules ` +
    'and links are left out; name a hidden directory in path to search it.',
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
    const { names, cut } = await filesBelow(place.path, signal);
    const matcher = startMatcher(signal);
    try {
      const matches = await matcher.match(compiled, names, LISTED_MAX + 1);
      if (matches.kind === 'refused') return refusal(matches);
      const lines = matches.hits.map(([index]) => shownName(placeBelow(place, names[index] ?? '').name));
      const notes = cut ? ['not every directory was looked at; give a narrower path'] : [];
      return toolResult.success(listing(lines, { empty: 'no file matches', narrow: 'give a narrower pattern', notes }));
    } finally {
      await matcher.end();
    }
  },
});
