/**
 * The slash commands: names, descriptions, and the output of some of them. Invariant: an unknown name is reported
 * with similar ones. Figures come from the log.
 */
import type { LogEntry } from '../../../machines/internal.ts';
import { type Cost, costOf } from '../../log/cost.ts';
import { printableLine } from '../../printable.ts';
import { costText, count } from '../costTally.ts';
import type { CommandDefinition } from '../definitions/definitions.ts';
import { nearNames } from '../sessions/sessionStore.ts';
import { ownLine, type TextLine } from './textRows.ts';

export const COMMANDS = [
  ['/later <text>', 'queue a message until the request ends (Alt+Enter)'],
  ['/go', 'go on with what was interrupted or waits in the queue'],
  ['/cost', 'what the session has cost'],
  ['/context', 'how full the context of the model is'],
  ['/model [name]', 'what the model is, or another one'],
  ['/mode [name]', 'the permission mode, or another one'],
  ['/permissions [change]', 'the rules; allow, ask, deny, keep, remove and a rule'],
  ['/mcp [restart]', 'the MCP servers with their state, or start them anew'],
  ['/agents', 'the agents that the model can start'],
  ['/skills', 'the skills that the model can read'],
  ['/diff', 'the changes of files in this session'],
  ['/todos', 'the plan that the model keeps as a list'],
  ['/undo [what]', 'take back the last request: files, conversation or both'],
  ['/rewind [number]', 'list the requests, or take back this one and the later ones'],
  ['/export [file]', 'write the session as Markdown, or as JSON into a .json file'],
  ['/compact [text]', 'sum up older messages; the text says what matters'],
  ['/resume [id]', 'another session of this directory; without an id, list them'],
  ['/rename <title>', 'give the session a title, for the lists'],
  ['/fork [number]', 'go on in a copy, or in a copy of what is before a message'],
  ['/init', 'have the model write AGENTS.md for this project'],
  ['/new', 'begin a new session'],
  ['/help', 'this list'],
  ['/exit', 'leave (Ctrl-D too)'],
] as const;

/** The column of names in the list and in the menu. */
export const NAME_WIDTH: number = Math.max(...COMMANDS.map(([usage]) => usage.length));

const KEYS = [
  ['Enter', 'send; while a request is under way, steer it'],
  ['Alt+Enter', 'queue it behind the request'],
  ['Escape', 'stop the request; what waited comes back into the line'],
  ['Ctrl-C', 'clear the line, or stop the request; twice, leave'],
  ['Ctrl-J, \\ Enter', 'a new line'],
  ['Up, Down', 'earlier lines, or the commands of the menu; Tab takes one'],
  ['@path', 'attach a file or an image to the message; a menu lists files, Tab takes one'],
  ['!command', 'run a command of your own; the model receives its output'],
  ['Ctrl-R', 'search earlier lines'],
  ['Ctrl-Y', 'put back what Ctrl-W, Ctrl-U, Ctrl-K or Alt-D removed'],
] as const;

export interface SlashCommand {
  readonly name: string;
  readonly argument: string;
}

export function slashCommand(text: string): SlashCommand {
  const [, name = '', argument = ''] = /^\/([\w:-]*)\s*([\s\S]*)$/.exec(text.trim()) ?? [];
  return { name, argument: argument.trim() };
}

/** The commands of the program, then those of files. */
export const allCommands = (commands: readonly CommandDefinition[]): (readonly [usage: string, about: string])[] => [
  ...COMMANDS,
  ...commands.map(({ name, hint, description }) => {
    const usage = printableLine(hint === '' ? `/${name}` : `/${name} ${hint}`);
    return [usage, printableLine(description)] as const;
  }),
];

export const helpLines = (commands: readonly CommandDefinition[]): TextLine[] =>
  [...allCommands(commands), ...KEYS].map(([name, about]) => ({
    ...ownLine(['cyan', `${name.padEnd(NAME_WIDTH)} `], ['plain', about]),
    margin: ' '.repeat(NAME_WIDTH + 1),
  }));

const NAMES = COMMANDS.map(([usage]) => usage.slice(1).split(' ', 1)[0] ?? '');
export const isProgramCommand = (name: string): boolean => NAMES.includes(name) || name === 'quit';

export function unknownCommand(name: string, commands: readonly CommandDefinition[]): TextLine {
  const near = nearNames(name, [...NAMES, ...commands.map((each) => each.name)]).map((each) => `/${each}`);
  const hint = near.length > 0 ? `did you mean ${near.join(' or ')}?` : '/help lists what there is';
  return ownLine(['yellow', `there is no /${printableLine(name)}: ${hint}`]);
}

/** Returns the cost of all models together, and of each if there are several. */
export function costLines(entries: Iterable<LogEntry>): TextLine[] {
  const { total, models } = costOf(entries);
  if (total.calls === 0) return [ownLine(['plain', 'no model was called yet'])];
  const each = models.length > 1 ? models.map((cost) => spentLine(printableLine(cost.model), cost)) : [];
  return [...each, spentLine('session', total)];
}

function spentLine(name: string, { calls, usage, costUsd, knownUsd, unpriced }: Cost): TextLine {
  const { inputTokens, outputTokens, cachedInputTokens } = usage;
  const cached = cachedInputTokens > 0 ? ` (${cachedInputTokens.toLocaleString('en-US')} cached)` : '';
  const tokens = `${inputTokens.toLocaleString('en-US')} tokens in${cached}, ${outputTokens.toLocaleString('en-US')} out`;
  const tally = { turns: calls, inputTokens, outputTokens, costUsd };
  const knownPart = costUsd === null && knownUsd > 0 ? `, of it known $${knownUsd.toFixed(4)}` : '';
  const without = unpriced > 0 ? ` (${count(unpriced, 'call')} without a price)` : '';
  return ownLine(
    ['bold', `${name}  `],
    ['plain', `${count(calls, 'model call')} · ${tokens} · ${costText(tally)}${knownPart}${without}`],
  );
}

const BAR = 20;
/** The shares of a full context, in per cent, from which its bar has another colour. */
const [FILLING, FULL] = [60, 85];

/** Shows how much of the context window the last reply used. */
export function contextLine(entries: readonly LogEntry[], contextWindow: number | undefined): TextLine {
  const last = entries.filter((entry) => entry.type === 'model-reply').at(-1);
  if (!last) return ownLine(['plain', 'no model was called yet']);
  const used = last.usage.inputTokens + last.usage.outputTokens;
  const tokens = `${used.toLocaleString('en-US')} tokens`;
  if (contextWindow === undefined) return ownLine(['plain', `${tokens}; how many the model takes is not known`]);
  const share = Math.round((100 * used) / contextWindow);
  const style = share < FILLING ? 'green' : share < FULL ? 'yellow' : 'red';
  const filled = Math.min(BAR, Math.ceil((BAR * used) / contextWindow));
  return ownLine(
    [style, '█'.repeat(filled)],
    ['dim', '░'.repeat(BAR - filled)],
    ['bold', ` ${share} %`],
    ['plain', ` · ${tokens} of ${contextWindow.toLocaleString('en-US')}`],
  );
}
