/**
 * The coding tools. Rule: each that is given a path stays inside the working directory of its conversation by itself,
 * but for the one place that permissions opened to a call; a command of Bash begins there, in a sandbox where there is one.
 */
import { checkOptionsOf, choice, flag, object, strings } from '../../validation.ts';
import { lackingSandbox, type NetworkChoice, type Tool } from '../tool.ts';
import { bashTool } from './bash.ts';
import { editTool } from './edit.ts';
import { KnownFiles } from './knownFiles.ts';
import { readTool } from './read.ts';
import { SANDBOXES, type SandboxChoice, type SandboxOptions, sandboxFor, sandboxStatus } from './sandbox.ts';
import { globTool } from './search/glob.ts';
import { grepTool } from './search/grep.ts';
import { lsTool } from './search/ls.ts';
import { writeTool } from './write.ts';

export interface CodingToolOptions {
  /** What commands of Bash run in: a sandbox where there is one (`auto`, the default), a sandbox and nothing else, or nothing. */
  sandbox?: SandboxChoice;
  /** Whether commands in the sandbox reach the network: always, where a call asks for it and is allowed to (the default), or never. */
  network?: NetworkChoice;
  sandboxOptions?: SandboxOptions;
}

const optionsValidator = object({
  sandbox: choice(...SANDBOXES),
  network: choice('allow', 'ask', 'deny'),
  sandboxOptions: object({ hide: strings, write: strings, network: flag }),
});

/**
 * Read, Ls, Glob, Grep, Bash, Write and Edit, for the `tools` of `createAgent`. They run unasked unless a plugin or a host
 * that wraps them asks. Throws ConfigurationError where a sandbox is required and there is none.
 */
export function codingTools(options: CodingToolOptions = {}): Tool[] {
  checkOptionsOf('codingTools', options, optionsValidator);
  const { sandbox = 'auto', network = 'ask', sandboxOptions = {} } = options;
  const known = new KnownFiles();
  const launches = sandboxFor(sandbox, sandboxOptions);
  const made = bashTool(launches, network);
  // Who chose `off` knows.
  const status = sandbox === 'auto' && !launches ? sandboxStatus() : undefined;
  const bash = status?.kind === 'none' ? lackingSandbox(made, status.why) : made;
  return [readTool(known), lsTool, globTool, grepTool, bash, writeTool(known), editTool(known)];
}
