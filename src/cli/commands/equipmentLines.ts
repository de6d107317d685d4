/**
 * The equipment of the user and the project, as lines: MCP servers with their state, agents, skills, and ignored files. Invariant: names
 * and descriptions come from files and servers, so they are shown printable.
 */
import { printableLine } from '../../printable.ts';
import { count } from '../costTally.ts';
import type { Equipment } from '../definitions/agentEquipment.ts';
import { agentToolName } from '../definitions/agentTools.ts';
import { ownLine, type TextLine } from '../interactive/textRows.ts';
import type { Style } from '../screen.ts';
import type { ServerState } from '../servers/serverConnections.ts';

const NOTES_MAX = 3;

const STATES: { readonly [kind in ServerState['kind']]: readonly [mark: string, style: Style] } = {
  connected: ['✓', 'green'],
  starting: ['○', 'dim'],
  failed: ['✗', 'red'],
  'not started': ['-', 'yellow'],
};

/** Every server with its state and its tools, or why it has none. */
export function serverLines({ servers }: Equipment): TextLine[] {
  const lines = servers.views.flatMap(({ name, path, about, state }) => {
    const [mark, style] = STATES[state.kind];
    const amount = state.kind === 'connected' ? count(state.tools.length, 'tool') : state.kind;
    const head = ownLine(
      [style, `${mark} `],
      ['bold', printableLine(name)],
      ['plain', `  ${amount}`],
      ['dim', `  ${printableLine(about)}  ${printableLine(path)}`],
    );
    if (state.kind === 'starting') return [head];
    const details =
      state.kind === 'connected'
        ? [state.tools.join(' '), ...state.left.map((why) => `left out: ${why}`)]
        : state.why.split('\n');
    return [head, ...details.map((text) => indentedLine(printableLine(text)))];
  });
  return lines.length > 0 ? lines : [ownLine(['plain', 'there is no MCP server: .mcp.json in the project lists them'])];
}

export function agentLines({ agents, problems }: Equipment): TextLine[] {
  const lines = agents.flatMap(({ name, description, model, tools, path }) => [
    ownLine(['bold', agentToolName(name)], ['plain', `  ${printableLine(description)}`]),
    indentedLine(
      printableLine(`${path}  ${tools?.join(', ') ?? 'all tools'}${model === undefined ? '' : `  model ${model}`}`),
    ),
  ]);
  const empty = ownLine(['plain', 'there is no agent: .runchart/agents/NAME.md describes one']);
  return [...(lines.length > 0 ? lines : [empty]), ...problemLines(problems)];
}

export function skillLines({ skills, problems }: Equipment): TextLine[] {
  const lines = skills.flatMap(({ name, description, path }) => [
    ownLine(['bold', name], ['plain', `  ${printableLine(description)}`]),
    indentedLine(printableLine(path)),
  ]);
  const empty = ownLine(['plain', 'there is no skill: .runchart/skills/NAME/SKILL.md describes one']);
  return [...(lines.length > 0 ? lines : [empty]), ...problemLines(problems)];
}

const indentedLine = (text: string): TextLine => ({ ...ownLine(['dim', `  ${text}`]), margin: '  ' });
const problemLines = (problems: readonly string[]): TextLine[] =>
  problems.map((problem) => ownLine(['yellow', printableLine(problem)]));

/** Lines for the start of the program: the ignored files. */
export function equipmentNotes({ problems, untrusted }: Equipment): string[] {
  const shown = problems.slice(0, NOTES_MAX).map(printableLine);
  const hidden = problems.length - shown.length;
  const ignored =
    untrusted.length === 1
      ? 'a file of this project does not count before you trust it'
      : `${untrusted.length} files of this project do not count before you trust them`;
  return [
    ...shown,
    ...(hidden > 0 ? [`${count(hidden, 'more file')} cannot be used: /agents names them`] : []),
    ...(untrusted.length > 0 ? [`${ignored}: runchart trust`] : []),
  ];
}

/** An error in one line. If the first line announces others, the last line follows it, because that one is the most specific. */
function shortReason(why: string): string {
  const lines = why.split('\n').filter((line) => line.trim() !== '');
  const [first = ''] = lines;
  return first.endsWith(':') && lines.length > 1 ? `${first} ${lines.at(-1)}` : first;
}

/** The servers that failed, each with its error in short. */
export function failedServers({ servers }: Equipment): string[] {
  return servers.views.flatMap(({ name, state }) => {
    if (state.kind !== 'failed') return [];
    const why = shortReason(state.why);
    return [printableLine(why.includes(name) ? why : `the MCP server ${name}: ${why}`)];
  });
}

/** Prints which files of the user and the project are ignored, and later which MCP servers failed. */
export function tellEquipment(equipment: Equipment, say: (note: string) => void): void {
  for (const note of equipmentNotes(equipment)) say(note);
  void equipment.servers.settled.then(() => {
    for (const note of failedServers(equipment)) say(note);
  });
}
