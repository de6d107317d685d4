/**
 * The coding tools. Rule: each that is given a path stays inside the working directory of its conversation by itself,
 * whatever rules, hooks or permissions stand around it; a command of Bash begins there and can go anywhere.
 */
import { ConfigurationError } from '../../errors.ts';
import type { Tool } from '../tool.ts';
import { bashTool } from './bash.ts';
import { editTool } from './edit.ts';
import { globTool } from './glob.ts';
import { grepTool } from './grep.ts';
import { KnownFiles } from './knownFiles.ts';
import { lsTool } from './ls.ts';
import { readTool } from './read.ts';
import { writeTool } from './write.ts';

const SANDBOXES = ['off', 'auto', 'required'] as const;

/**
 * Read, Ls, Glob, Grep, Bash, Write and Edit, for the `tools` of `createAgent`. They run unasked unless a plugin or a host that wraps
 * it asks. `sandbox` is where its commands run: there is no sandbox yet, so `auto` is `off`. Throws ConfigurationError
 * for `required`, which cannot be kept, and where it is none of the three words.
 */
export function codingTools(options: { sandbox?: (typeof SANDBOXES)[number] } = {}): Tool[] {
  const { sandbox = 'off' } = options;
  if (!SANDBOXES.includes(sandbox)) {
    throw new ConfigurationError(`sandbox must be ${SANDBOXES.join(', ')}; got ${String(sandbox)}`);
  }
  if (sandbox === 'required') {
    throw new ConfigurationError("sandbox is 'required', and there is none yet: leave Bash out, or give 'off'");
  }
  const known = new KnownFiles();
  return [readTool(known), lsTool, globTool, grepTool, bashTool, writeTool(known), editTool(known)];
}
