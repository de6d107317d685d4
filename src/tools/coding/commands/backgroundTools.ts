/**
 * BashOutput and KillBash: the output of a command in the background, and its end. Rule: they reach the commands of
 * their own conversation only. An unknown id is reported with the possible fates of its command.
 */
import * as z from 'zod';
import { defineTool, type Tool, type ToolResult, toolResult } from '../../tool.ts';
import { shownName } from '../search/listing.ts';
import { type Refusal, refusal, refused } from '../workspace.ts';
import type { BackgroundCommand, BackgroundCommands } from './backgroundCommands.ts';
import { commandText, endNotes } from './commandResult.ts';

const WAIT_MAX_MS = 60_000;
const COMMAND_SHOWN = 200;

const bashId = z.string().min(1).max(64).describe('The id that Bash answered when it started the command.');

export const bashOutputTool = (commands: BackgroundCommands): Tool =>
  defineTool({
    name: 'BashOutput',
    description:
      'Gives what a command in the background has printed since the last reading, and whether it still runs. ' +
      'With waitMs it first waits for the end of the command.',
    parameters: z.object({
      bash_id: bashId,
      waitMs: z
        .number()
        .int()
        .min(0)
        .max(WAIT_MAX_MS)
        .optional()
        .describe('How long to wait for the end of the command, in milliseconds; without it the answer comes at once.'),
    }),
    readOnly: true,
    group: 'bash-group',
    async execute({ bash_id, waitMs = 0 }, { conversationId, signal }) {
      const command = commands.find(conversationId, bash_id);
      if (!command) return refusal(notThere(bash_id, commands, conversationId));
      if (command.isRunning && waitMs > 0) await endWithin(command, waitMs, signal);
      signal.throwIfAborted();
      return reading(command);
    },
  });

export const killBashTool = (commands: BackgroundCommands): Tool =>
  defineTool({
    name: 'KillBash',
    description: 'Ends a command in the background with all that it started, and gives the rest of its output.',
    parameters: z.object({ bash_id: bashId }),
    // It ends only commands that Bash started in this conversation.
    readOnly: true,
    group: 'bash-group',
    async execute({ bash_id }, { conversationId }) {
      const command = commands.find(conversationId, bash_id);
      if (!command) return refusal(notThere(bash_id, commands, conversationId));
      await command.stop();
      return reading(command);
    },
  });

/** Resolves when the command has ended, the time is up, or the call is cancelled. */
async function endWithin({ ended }: BackgroundCommand, ms: number, signal: AbortSignal): Promise<void> {
  let stop = (): void => {};
  const over = new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ms);
    stop = () => {
      clearTimeout(timer);
      resolve();
    };
    signal.addEventListener('abort', stop);
  });
  await Promise.race([ended, over]);
  stop();
  signal.removeEventListener('abort', stop);
}

function reading(command: BackgroundCommand): ToolResult {
  const { end } = command;
  if (end?.kind === 'not_started') return toolResult.error(`bash could not be started: ${end.why}`, 'not_started');
  const seconds = ((performance.now() - command.since) / 1000).toFixed(1);
  const state = end ? `ended: ${endText(command)}` : `still running after ${seconds} s`;
  return toolResult.success(commandText(command.read(), [state]));
}

/** The end of a command, in a few words. */
export function endText({ end, timeoutMs }: Pick<BackgroundCommand, 'end' | 'timeoutMs'>): string {
  if (end === undefined) return 'still running';
  if (end.kind === 'not_started') return `bash could not be started: ${end.why}`;
  if (end.kind === 'stopped') return 'it was stopped';
  const notes = endNotes(end, timeoutMs);
  return (end.kind === 'exited' && end.code === 0 ? [...notes, 'exit code 0'] : notes).join('; ');
}

function notThere(id: string, commands: BackgroundCommands, conversationId: string): Refusal {
  const running = commands
    .running(conversationId)
    .map((each) => `${each.id} (${each.command.slice(0, COMMAND_SHOWN)})`);
  const others = running.length === 0 ? 'None runs now.' : `These run now: ${running.join(', ')}.`;
  return refused(
    'not_found',
    `there is no background command ${shownName(id)}. A command ends when the conversation is closed or the program ends: ` +
      `if this one began before that, it is gone with its output and has to be started again. ${others}`,
  );
}
