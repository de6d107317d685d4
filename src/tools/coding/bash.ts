/**
 * The Bash tool runs one shell command. Rule: each command starts in the conversation's working directory. It cannot read the program's
 * standard input, and no process of it survives the call, unless the call asks for
 * the background.
 */

import { stat } from 'node:fs/promises';
import * as z from 'zod';
import {
  type Confinement,
  defineTool,
  type NetworkChoice,
  partialResult,
  type Tool,
  type ToolResult,
  toolResult,
  withSandbox,
} from '../tool.ts';
import { timeLimitOf } from '../toolSignal.ts';
import {
  type BackgroundCommand,
  type BackgroundCommands,
  RUNNING_MAX,
  startingCommands,
} from './commands/backgroundCommands.ts';
import { commandText, endNotes } from './commands/commandResult.ts';
import type { Sandbox } from './sandbox.ts';
import { shownName } from './search/listing.ts';
import { type Output, runShell, type ShellEnd } from './shell.ts';
import { refusal, refused } from './workspace.ts';

const COMMAND_CHARACTERS_MAX = 32_000;
/** Used if the executor sets no limit. */
const TIME_LIMIT_MS = 120_000;
/** The command ends this long before the executor's limit, so that its output can still be returned. */
const AHEAD_MS = 1_000;

const SANDBOXED =
  ' It runs in a sandbox: only the working directory and a directory for temporary files (/tmp, on macOS $TMPDIR) can be ' +
  'written, and the latter is empty each time. There is no network unless `network` asks for it, and credentials of the home ' +
  'directory are not there.';

const parameters = z.object({
  command: z
    .string()
    .min(1)
    .max(COMMAND_CHARACTERS_MAX)
    .refine((command) => !command.includes('\0'), 'must not hold a NUL character')
    .describe('What bash runs. It begins in the working directory each time; a cd lasts until its end.'),
  timeoutMs: z
    .number()
    .int()
    .min(1)
    .optional()
    .describe('When it is ended at the latest, in milliseconds; the limit of the host holds above it.'),
});

/** Parameters for a call that needs more than the sandbox allows. */
const inSandbox = {
  network: z.boolean().optional().describe('The command needs the network. A person may be asked.'),
  unsandboxed: z.boolean().optional().describe('The command has to run outside the sandbox. A person is asked.'),
};
const inBackground = {
  run_in_background: z
    .boolean()
    .optional()
    .describe('Start the command and answer at once, for servers and long builds. BashOutput reads what it prints.'),
};

const IN_BACKGROUND =
  ' With run_in_background it runs on after the answer, without a limit unless timeoutMs is given, until KillBash, the end of the conversation or of the program.';

/**
 * `sandbox` starts the commands in a sandbox. `network` is the choice whether they may reach the network. With
 * `background`, calls may start commands in the background.
 */
export function bashTool(sandbox?: Sandbox, network: NetworkChoice = 'ask', background?: BackgroundCommands): Tool {
  const tool = bashOf(sandbox, network, background);
  if (background) startingCommands(tool, background);
  return sandbox ? withSandbox(tool, network) : tool;
}

const bashOf = (sandbox: Sandbox | undefined, network: NetworkChoice, background?: BackgroundCommands): Tool =>
  defineTool({
    name: 'Bash',
    description:
      'Runs a command with bash in the working directory and gives what it printed, both outputs in one; the middle of a ' +
      'long output is left out of the result and kept in a file that Read and Grep can open. Its standard input is empty. What still runs when the command has ended is ended too.' +
      (background ? IN_BACKGROUND : '') +
      (sandbox ? SANDBOXED : ''),
    parameters: parameters.extend({
      ...((background ? inBackground : {}) as typeof inBackground),
      ...((sandbox ? inSandbox : {}) as typeof inSandbox),
    }),
    group: 'bash-group',
    async execute(args, context) {
      const { cwd, signal, progress, grant } = context;
      const { command, timeoutMs = Number.POSITIVE_INFINITY } = args;
      const place = await stat(cwd).catch(() => undefined);
      if (!place?.isDirectory()) {
        return refusal(refused('not_found', `the working directory ${shownName(cwd)} does not exist`));
      }
      const confinement = grant?.confinement ?? (sandbox && unjudged(args.network === true, network));
      if (args.unsandboxed === true && sandbox && confinement !== 'none')
        return refusal(refused('not_allowed', 'nobody allowed this command to leave the sandbox'));
      const launcher = confinement === 'none' ? undefined : await sandbox?.(cwd, confinement);
      if (args.run_in_background === true && background) {
        // The command releases the launcher at its end.
        const started = background.start(context, { command, cwd, timeoutMs, launcher });
        if (!started) await launcher?.release();
        return startedText(started);
      }
      const limit = timeLimitOf(signal) ?? TIME_LIMIT_MS;
      const timeout = Math.min(timeoutMs, limit - Math.min(AHEAD_MS, limit / 2));
      try {
        const printing = (output: Output): unknown => partialResult(context, () => partialText(output));
        const options = { cwd, signal, timeoutMs: timeout, progress, launcher, printing };
        const { end, output } = await runShell(command, options);
        return answer(end, output, timeout);
      } finally {
        await launcher?.release();
      }
    },
  });

/** The confinement if no permissions plugin judged the call: everything that it asks for, inside the sandbox. */
const unjudged = (wantsNetwork: boolean, network: NetworkChoice): Confinement => ({
  ...{ writes: true, hide: [], opensProtected: false },
  network: network === 'allow' || (network === 'ask' && wantsNetwork),
});

function answer(end: ShellEnd, output: Output, timeoutMs: number): ToolResult {
  if (end.kind === 'not_started') return toolResult.error(`bash could not be started: ${end.why}`, 'not_started');
  const text = commandText(output, endNotes(end, timeoutMs));
  if (end.kind !== 'exited') return toolResult.error(text, end.kind);
  return end.code === 0 ? toolResult.success(text || '(no output)') : toolResult.error(text, `exit_${end.code}`);
}

/** The output of a cancelled command. */
function partialText(output: Output): string {
  const printed = output.text().trimEnd();
  return printed === '' ? '' : `What it had printed until then:\n${printed}`;
}

function startedText(started: BackgroundCommand | undefined): ToolResult {
  if (started === undefined) {
    const message = `${RUNNING_MAX} commands run in the background already: end one with KillBash`;
    return toolResult.error(message, 'limit');
  }
  return toolResult.success(
    `Started in the background as ${started.id}. Read its output with BashOutput; end it with KillBash.`,
  );
}
