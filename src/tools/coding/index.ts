/**
 * The coding tools. Rule: each stays inside the working directory of its conversation by itself, whatever rules, hooks
 * or permissions stand around it.
 */
import { ConfigurationError } from '../../errors.ts';
import type { Tool } from '../define.ts';
import { globTool } from './glob.ts';
import { grepTool } from './grep.ts';
import { lsTool } from './ls.ts';
import { readTool } from './read.ts';

const SANDBOXES = ['off', 'auto', 'required'] as const;

/**
 * Read, Ls, Glob and Grep, for the `tools` of `createAgent`. `sandbox` is about tools that start programs; none of
 * these does. Throws ConfigurationError where it is none of the three words.
 */
export function codingTools(options: { sandbox?: (typeof SANDBOXES)[number] } = {}): Tool[] {
  const { sandbox = 'off' } = options;
  if (!SANDBOXES.includes(sandbox)) {
    throw new ConfigurationError(`sandbox must be ${SANDBOXES.join(', ')}; got ${String(sandbox)}`);
  }
  return [readTool, lsTool, globTool, grepTool];
}
