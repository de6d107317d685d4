/**
 * The two kinds of patterns a model gives, each as a regular expression. Rule: a pattern is only compiled here and
 * never run: running one may take for ever, which is the matcher's concern.
 */
import picomatch from 'picomatch';
import { type Refusal, refused } from './workspace.ts';

export interface Pattern {
  kind: 'pattern';
  source: string;
  flags: string;
}

export const EXPRESSION_CHARACTERS_MAX = 2_000;
/** Compiling a glob takes time that grows with the third power of its nesting: this keeps it within milliseconds. */
export const GLOB_CHARACTERS_MAX = 400;

/** A JavaScript regular expression; a leading `(?i)` makes it ignore case. */
export function expression(text: string): Pattern | Refusal {
  const ignoresCase = text.startsWith('(?i)');
  const source = ignoresCase ? text.slice('(?i)'.length) : text;
  const flags = ignoresCase ? 'i' : '';
  try {
    new RegExp(source, flags);
    return { kind: 'pattern', source, flags };
  } catch (error) {
    return refused('invalid_arguments', `${String(error)}; the pattern must be a JavaScript regular expression`);
  }
}

/** A glob over paths with `/` between their parts. */
export function globPattern(text: string): Pattern | Refusal {
  if (text.startsWith('/')) return refused('invalid_arguments', `the glob ${text} must be relative to path`);
  if (text.split('/').includes('..')) {
    return refused('outside_workspace', `the glob ${text} leads upwards; globs match what is below path only`);
  }
  try {
    const { source } = picomatch.makeRe(text, { windows: false, debug: true });
    // Names may hold line breaks, and a wildcard matches them too.
    return { kind: 'pattern', source, flags: 's' };
  } catch {
    return refused(
      'invalid_arguments',
      `the glob ${text} is not valid: look for unpaired brackets, braces or backslashes`,
    );
  }
}
