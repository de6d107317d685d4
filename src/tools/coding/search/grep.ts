/**
 * The Grep tool finds lines by a regular expression. Rule: the expression comes from a model, so only the matcher runs
 * it. The result is bounded in lines and in the length of each line.
 */
import * as z from 'zod';
import { defineTool, type Tool, type ToolResult, toolResult } from '../../tool.ts';
import { isSpilled } from '../spilledOutput.ts';
import { openText } from '../textFile.ts';
import { grantedPlace, type Place, pathArgument, placeBelow, type Refusal, refusal } from '../workspace.ts';
import { LISTED_MAX, listing, shownName } from './listing.ts';
import { type Matcher, startMatcher } from './matcher.ts';
import { EXPRESSION_CHARACTERS_MAX, expression, GLOB_CHARACTERS_MAX, globPattern } from './pattern.ts';
import { type Found, SEARCHED_CHARACTERS_MAX, type SearchResult, search } from './search.ts';
import { searchedFiles } from './searchedFiles.ts';

const parameters = z.object({
  pattern: z
    .string()
    .min(1)
    .max(EXPRESSION_CHARACTERS_MAX)
    .describe(
      'A regular expression, tried on each line: RE2 syntax, so no lookaround and no backreferences; a leading (?i) ignores case.',
    ),
  path: pathArgument.optional().describe('A directory or a file; the working directory where it is not given.'),
  include: z
    .string()
    .min(1)
    .max(GLOB_CHARACTERS_MAX)
    .optional()
    .describe('A glob of the files to search, e.g. "*.ts" at any depth or "src/**/*.ts" relative to path.'),
});

export const grepTool: Tool = defineTool({
  name: 'Grep',
  description:
    `Searches the lines of text files and gives each match as "path:line: text", at most ${LISTED_MAX}. ` +
    'Hidden entries, node_modules, links, binary files and what .gitignore names are left out; name such a one in path to search it.',
  parameters,
  readOnly: true,
  idempotent: true,
  group: 'read-group',
  async execute({ pattern, path = '.', include }, context) {
    const { signal } = context;
    const place = await grantedPlace(context, path, isSpilled(path));
    if (place.kind === 'refused') return refusal(place);
    const matcher = startMatcher(signal);
    try {
      const sought = expression(pattern);
      const scope = await scopeOf(place, include, matcher, signal);
      if (scope.kind === 'refused') return refusal(scope);
      const result = await search(scope.files, sought, { matcher, foundMax: LISTED_MAX + 1, signal });
      return answer(result, scope.cut);
    } finally {
      await matcher.end();
    }
  },
});

type Scope = { kind: 'scope'; files: Place[]; cut: boolean };

async function scopeOf(
  place: Place,
  include: string | undefined,
  matcher: Matcher,
  signal: AbortSignal,
): Promise<Scope | Refusal> {
  if (place.type !== 'directory') return fileScope(place);
  const { names, cut } = await searchedFiles(place, signal);
  const matching = include === undefined ? names : await included(names, include, matcher);
  if (!Array.isArray(matching)) return matching;
  const files = matching.map((name): Place => placeBelow(place, name));
  return { kind: 'scope', files, cut };
}

/** A named file that cannot be searched is an error, not a search without matches. */
async function fileScope(place: Place): Promise<Scope | Refusal> {
  const opened = await openText(place);
  if (opened.kind === 'refused') return opened;
  await opened.file.close();
  return { kind: 'scope', files: [place], cut: false };
}

/** A glob without a slash matches the file name at any depth. */
async function included(names: string[], include: string, matcher: Matcher): Promise<string[] | Refusal> {
  const glob = globPattern(include);
  if (glob.kind === 'refused') return glob;
  const subjects = include.includes('/') ? names : names.map((name) => name.slice(name.lastIndexOf('/') + 1));
  const matched = await matcher.match(glob, subjects, subjects.length);
  if (matched.kind === 'refused') return matched;
  return matched.hits.flatMap(([index]) => names[index] ?? []);
}

function answer({ found, cutLines, stopped }: SearchResult, cut: boolean): ToolResult {
  if (stopped !== undefined && found.length === 0) return refusal(stopped);
  const notes: string[] = [];
  if (cutLines)
    notes.push(`of a line longer than ${SEARCHED_CHARACTERS_MAX} characters only the beginning was searched`);
  if (cut) notes.push('not every directory was looked at; give a narrower path');
  if (stopped !== undefined) notes.push(`the search is not complete: ${stopped.message}`);
  const text = listing(found.map(shownLine), {
    empty: 'no line matches',
    narrow: 'give a narrower pattern or path',
    notes,
  });
  return stopped === undefined ? toolResult.success(text) : toolResult.warning(text);
}

const shownLine = ({ name, number, excerpt }: Found): string => `${shownName(name)}:${number}: ${excerpt}`;
