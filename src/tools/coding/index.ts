/**
 * The coding tools. Rule: a tool that takes a path stays inside the conversation's working directory, except for the
 * one place that permissions opened for the call. A Bash command starts in that directory, in a sandbox if the machine
 * has one.
 */
import { checkOptionsOf, choice, flag, list, object, strings } from '../../validation.ts';
import { lackingSandbox, type NetworkChoice, type Tool } from '../tool.ts';
import { bashTool } from './bash.ts';
import { BackgroundCommands } from './commands/backgroundCommands.ts';
import { bashOutputTool, killBashTool } from './commands/backgroundTools.ts';
import { editTool, multiEditTool } from './edit.ts';
import { KnownFiles } from './knownFiles.ts';
import { todoWriteTool } from './plan/todoWrite.ts';
import { readTool } from './read.ts';
import { SANDBOXES, type SandboxChoice, type SandboxOptions, sandboxFor, sandboxStatus } from './sandbox.ts';
import { globTool } from './search/glob.ts';
import { grepTool } from './search/grep.ts';
import { lsTool } from './search/ls.ts';
import { webFetchTool } from './web/webFetch.ts';
import { writeTool } from './write.ts';

/** `Background` lets Bash start commands in the background, and adds BashOutput and KillBash. */
export type ExtraTool = (typeof EXTRA_TOOLS)[number];
export const EXTRA_TOOLS = ['Background', 'MultiEdit', 'TodoWrite', 'WebFetch'] as const;

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
  /** Adds more tools to the list. Default: none. */
  extra?: ExtraTool[];
}

const optionsValidator = object({
  sandbox: choice(...SANDBOXES),
  network: choice('allow', 'ask', 'deny'),
  sandboxOptions: object({ hide: strings, write: strings, network: flag }),
  extra: list(EXTRA_TOOLS.join(', '), (each) => EXTRA_TOOLS.some((name) => name === each)),
});

/**
 * Read, Ls, Glob, Grep, Bash, Write and Edit, for the `tools` of `createAgent`. They run unasked unless a plugin or the
 * host asks first. `extra` adds others at the end. Throws ConfigurationError if a sandbox is required and the machine has none.
 */
export function codingTools(options: CodingToolOptions = {}): Tool[] {
  checkOptionsOf('codingTools', options, optionsValidator);
  const { sandbox = 'auto', network = 'ask', sandboxOptions = {}, extra = [] } = options;
  const knownFiles = new KnownFiles();
  const startInSandbox = sandboxFor(sandbox, sandboxOptions);
  const background = extra.includes('Background') ? new BackgroundCommands() : undefined;
  const withoutNotice = bashTool(startInSandbox, network, background);
  // A host that chose `off` needs no warning.
  const status = sandbox === 'auto' && !startInSandbox ? sandboxStatus() : undefined;
  const bash = status?.kind === 'none' ? lackingSandbox(withoutNotice, status.why) : withoutNotice;
  const tools = [readTool(knownFiles), lsTool, globTool, grepTool, bash, writeTool(knownFiles), editTool(knownFiles)];
  if (background) tools.push(bashOutputTool(background), killBashTool(background));
  if (extra.includes('MultiEdit')) tools.push(multiEditTool(knownFiles));
  if (extra.includes('TodoWrite')) tools.push(todoWriteTool);
  if (extra.includes('WebFetch')) tools.push(webFetchTool());
  return tools;
}
