/**
 * The coding tools. Rule: a tool that takes a path stays inside the conversation's working directory, except for the
 * one place that permissions opened for the call. A Bash command starts in that directory, in a sandbox if the machine
 * has one.
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

/** The options of `codingTools`. */
export interface CodingToolOptions {
  /**
   * Runs Bash commands in a sandbox if there is one (`auto`, default), only in a sandbox (`required`), or without one
   * (`off`).
   */
  sandbox?: SandboxChoice;
  /** Lets sandboxed commands reach the network always, never, or if a call asks and gets permission (default). */
  network?: NetworkChoice;
  /** The places that a sandboxed command sees and writes. */
  sandboxOptions?: SandboxOptions;
}

const optionsValidator = object({
  sandbox: choice(...SANDBOXES),
  network: choice('allow', 'ask', 'deny'),
  sandboxOptions: object({ hide: strings, write: strings, network: flag }),
});

/**
 * Read, Ls, Glob, Grep, Bash, Write and Edit, for the `tools` of `createAgent`. They run unasked unless a plugin or the
 * host asks first. Throws ConfigurationError if a sandbox is required and the machine has none.
 */
export function codingTools(options: CodingToolOptions = {}): Tool[] {
  checkOptionsOf('codingTools', options, optionsValidator);
  const { sandbox = 'auto', network = 'ask', sandboxOptions = {} } = options;
  const knownFiles = new KnownFiles();
  const startInSandbox = sandboxFor(sandbox, sandboxOptions);
  const withoutNotice = bashTool(startInSandbox, network);
  // A host that chose `off` needs no warning.
  const status = sandbox === 'auto' && !startInSandbox ? sandboxStatus() : undefined;
  const bash = status?.kind === 'none' ? lackingSandbox(withoutNotice, status.why) : withoutNotice;
  return [readTool(knownFiles), lsTool, globTool, grepTool, bash, writeTool(knownFiles), editTool(knownFiles)];
}
