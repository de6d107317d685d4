/**
 * The coding tools. Rule: each that is given a path stays inside the working directory of its conversation by itself,
 * but for the one place that permissions opened to a call; a command of Bash begins there and can go anywhere.
 */
import { checkOptionsOf, choice, flag, object, strings } from '../../validation.ts';
import type { Tool } from '../tool.ts';
import { bashTool } from './bash.ts';
import { editTool } from './edit.ts';
import { KnownFiles } from './knownFiles.ts';
import { readTool } from './read.ts';
import { SANDBOXES, type SandboxChoice, type SandboxOptions, sandboxFor } from './sandbox.ts';
import { globTool } from './search/glob.ts';
import { grepTool } from './search/grep.ts';
import { lsTool } from './search/ls.ts';
import { writeTool } from './write.ts';

export interface CodingToolOptions {
  /** What commands of Bash run in: nothing, a sandbox where there is one, or a sandbox and nothing else. */
  sandbox?: SandboxChoice;
  sandboxOptions?: SandboxOptions;
}

const optionsValidator = object({
  sandbox: choice(...SANDBOXES),
  sandboxOptions: object({ hide: strings, write: strings, network: flag }),
});

/**
 * Read, Ls, Glob, Grep, Bash, Write and Edit, for the `tools` of `createAgent`. They run unasked unless a plugin or a host
 * that wraps them asks. Throws ConfigurationError where a sandbox is required and there is none.
 */
export function codingTools(options: CodingToolOptions = {}): Tool[] {
  checkOptionsOf('codingTools', options, optionsValidator);
  const { sandbox = 'off', sandboxOptions = {} } = options;
  const known = new KnownFiles();
  const bash = bashTool(sandboxFor(sandbox, sandboxOptions));
  return [readTool(known), lsTool, globTool, grepTool, bash, writeTool(known), editTool(known)];
}
