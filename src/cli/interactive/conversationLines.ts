/**
 * A conversation as lines: entries and live signals become permanent lines, and lines in progress. Invariant: a fold
 * without a clock or a terminal. Streamed text is not shown again with its entry. Text of a model or a tool never
 * begins a line.
 */

import {
  type AgentItem,
  type GroupName,
  type Json,
  type LogEntry,
  type StoredPart,
  standingEntries,
} from '../../../machines/internal.ts';
import { textOf } from '../../content/content.ts';
import type { Live } from '../../live.ts';
import { printableLine, shortened } from '../../printable.ts';
import { groupName } from '../../projector/cycles.ts';
import { terminalLine } from '../../words/entryWords.ts';
import { firstLine } from '../../words/formats.ts';
import { doneText, todoLines, todosOf } from '../commands/keptPlan.ts';
import { count, emptyTally, type Tally, tallyText, withReply } from '../costTally.ts';
import type { TextFormats } from '../formatted/textFormats.ts';
import { outcomeText, resultText, sizeText } from '../renderLog.ts';
import type { Span, Style } from '../screen.ts';
import { type ReplyPart, StreamedText } from './streamedText.ts';
import { FOREIGN, foreignLine, ownLine, type TextLine } from './textRows.ts';

const ARGS_MAX = 160;
const TEXT_MAX = 200;
const LAST_LINE_MAX = 60;
/** The lines of a message that are shown after its first one. */
const MESSAGE_LINES = 11;
/** The tool whose argument is a plan, which its question shows. */
const PLAN = 'ExitPlanMode';
/** Matches the result of a command that continues in the background. */
const STARTED = /^Started in the background as (bash_[0-9a-f]+)\./;
/** The fewest lines of a change that are shown. */
const CHANGE_MIN = 8;

type Of<T extends LogEntry['type']> = Extract<LogEntry, { type: T }>;

interface ShownCall {
  name: string;
  args: Json;
  group: GroupName;
  /** The start time. */
  since: number | undefined;
  state: 'asked' | 'running' | 'waiting';
  /** The last line of its progress. */
  progress: string;
}

/** The values besides the log that determine the lines of a transcript. */
export interface TranscriptOptions {
  /** Undefined until they are loaded. Without them, changes of files are summed up. */
  formats(): TextFormats | undefined;
  /** The height of the screen. */
  rows(): number;
  /** The width of the screen. Undefined where Markdown is shown as its source. */
  readonly columns?: (() => number) | undefined;
}

export class TranscriptRenderer {
  readonly #options: TranscriptOptions;
  /** The changes that questions have shown. */
  readonly #shownChanges = new Map<string, string>();
  /** The calls that a person has denied. The line of the decision has the reason. */
  readonly #denied = new Set<string>();
  /** Calls without a result, in the model's order. */
  readonly #calls = new Map<string, ShownCall>();
  readonly #text: StreamedText;
  #streamed: { [kind in ReplyPart]: boolean } = { assistant: false, reasoning: false };
  #heading: GroupName | undefined;
  #request: Tally = emptyTally;

  constructor(options: TranscriptOptions = { formats: () => undefined, rows: () => Number.POSITIVE_INFINITY }) {
    this.#options = options;
    const { formats, columns } = options;
    this.#text = new StreamedText(() => {
      const loaded = columns && formats();
      return loaded && new loaded.MarkdownStream(columns);
    });
  }

  /** A question has shown this change. The result of the call does not repeat it. */
  changeShown(callId: string, patch: string): void {
    this.#shownChanges.set(callId, patch);
  }

  signal(signal: Live): TextLine[] {
    if (signal.type === 'tool-progress') {
      const call = this.#calls.get(signal.path?.[0] ?? signal.callId);
      if (call) call.progress = newsText(signal.update);
      return [];
    }
    if (signal.path) return [];
    if (signal.type === 'text-delta') return this.#stream('assistant', signal.text);
    if (signal.type === 'reasoning-delta') return this.#stream('reasoning', signal.text);
    return signal.type === 'reset' ? this.#reset() : [];
  }

  entry(entry: LogEntry): TextLine[] {
    switch (entry.type) {
      case 'user-message':
        return [...this.#text.end(), ...this.#user(entry)];
      case 'agent-output':
        return this.#item(entry.item);
      case 'model-reply':
        this.#request = withReply(this.#request, entry);
        return this.#endReply();
      case 'tool-started':
        return this.#call(entry.callId, { state: 'running', since: entry.at });
      case 'tool-suspended':
        return this.#call(entry.callId, { state: 'waiting', since: undefined });
      case 'tool-result':
        return this.#result(entry);
      case 'run-started':
        this.#request = emptyTally;
        return [];
      case 'run-stop':
        return [...this.#endReply(), this.#stop(entry)];
      case 'decision':
        return [this.#decided(entry)];
      default:
        return aside(entry);
    }
  }

  /** Removes and returns the rows in progress that will not change at this width, but for the last `keep` ones. */
  settle(width: number, keep = 0): TextLine[] {
    return this.#text.settle(width, keep);
  }

  /** Returns the lines in progress: the incomplete text, and the calls with their elapsed times. */
  underWay(now: number): TextLine[] {
    const lines = this.#text.underWay();
    for (const call of this.#calls.values()) {
      if (call.state === 'waiting') continue;
      const mark: Span = call.state === 'running' ? ['cyan', `${spinner(now)} `] : ['dim', NOT_STARTED];
      lines.push(ownLine(mark, ...callSpans(call), ['dim', this.#elapsedText(call, now)]));
    }
    return lines;
  }

  /** True if it shows anything besides the state of the run. */
  get isShowing(): boolean {
    return this.#text.isOpen || [...this.#calls.values()].some(({ state }) => state !== 'waiting');
  }

  #elapsedText({ since, progress }: ShownCall, now: number): string {
    const time = since === undefined ? '' : `  ${secondsText(now - since)}`;
    return progress === '' ? time : `${time}  ${progress}`;
  }

  #stream(kind: ReplyPart, piece: string): TextLine[] {
    this.#streamed[kind] = true;
    this.#heading = undefined;
    return this.#text.push(kind, piece);
  }

  #reset(): TextLine[] {
    const wasShown = this.#text.hasSettled;
    this.#text.reset();
    this.#endReply();
    return wasShown ? [ownLine(['yellow', '↻ the reply broke off: what was shown of it does not count'])] : [];
  }

  #endReply(): TextLine[] {
    const settled = this.#text.end();
    this.#streamed = { assistant: false, reasoning: false };
    this.#text.hasSettled = false;
    return settled;
  }

  #user({ kind, content }: Of<'user-message'>): TextLine[] {
    this.#heading = undefined;
    const [first = '', ...rest] = typedText(content).split(/\r?\n/);
    const attached = content.slice(1).flatMap((part) => (part.type === 'text' ? [firstLine(part.text, TEXT_MAX)] : []));
    const mark: Span = ['cyan', kind === 'steer' ? '> (steer) ' : '> '];
    const shown = rest.length > MESSAGE_LINES + 1 ? rest.slice(0, MESSAGE_LINES) : rest;
    const more = rest.length - shown.length;
    return [
      ownLine(mark, ['bold', first]),
      ...shown.map((line) => foreignLine('bold', line)),
      ...(more > 0 ? [foreignLine('dim', `… ${count(more, 'more line')}`)] : []),
      ...attached.map((line) => foreignLine('dim', line)),
    ];
  }

  #item(item: AgentItem): TextLine[] {
    if (item.type === 'tool-call') {
      const { callId, name, args, argsText, group } = item;
      const shown = {
        name,
        args: argsText ?? args,
        group: groupName(name, group, undefined),
        since: undefined,
        progress: '',
      };
      this.#calls.set(callId, { ...shown, state: 'asked' });
      return this.#text.end();
    }
    this.#heading = undefined;
    return this.#streamed[item.type] ? this.#text.end() : this.#text.whole(item.type, item.text);
  }

  #call(callId: string, change: Partial<ShownCall>): TextLine[] {
    const call = this.#calls.get(callId);
    if (call) this.#calls.set(callId, { ...call, ...change });
    return [];
  }

  #result(entry: Of<'tool-result'>): TextLine[] {
    const { callId, outcome, content, code, at } = entry;
    const call = this.#calls.get(callId);
    this.#calls.delete(callId);
    const group = call?.group ?? 'other-group';
    const heading = this.#heading === group ? [] : [ownLine(['bold', `● ${group.replace('-group', '')}`])];
    this.#heading = group;
    const took = call?.since === undefined ? '' : `  ${secondsText(at - call.since)}`;
    const names = call ? callSpans(call) : [['plain', printableLine(callId)] as const];
    const isFine = outcome === 'succeeded';
    const how = isFine ? '' : ` (${printableLine(outcomeText(outcome, code))})`;
    const change = isFine && call ? this.#change(callId, call, textOf(content)) : undefined;
    const todos = isFine && call ? todosOf(call.name, call.args) : undefined;
    const summary = change?.summary ?? (todos ? doneText(todos) : this.#summary(entry, call));
    const end: Span = ['dim', summary === '' ? took : `  ${summary}${took}`];
    const line = ownLine(isFine ? ['green', '✓ '] : ['red', '✗ '], ...names, ['red', how], end);
    return [...heading, line, ...(change?.lines ?? (todos ? todoLines(todos) : []))];
  }

  /** The size of a result, and its first line if that is informative. */
  #summary({ callId, outcome, content }: Of<'tool-result'>, call: ShownCall | undefined): string {
    if (this.#denied.delete(callId)) return '';
    const isFine = outcome === 'succeeded';
    if (isFine && call?.name === PLAN) return '';
    const [, id] = (isFine && call?.name === 'Bash' && STARTED.exec(textOf(content))) || [];
    if (id !== undefined) return `in the background as ${id}`;
    return isFine && call?.group === 'read-group' ? sizeText(content) : printableLine(resultText(content));
  }

  /** A change of a file as its diff, and a new file as its first lines. */
  #change(
    callId: string,
    { name, args }: ShownCall,
    text: string,
  ): { summary: string; lines: readonly TextLine[] } | undefined {
    const formats = this.#options.formats();
    const change = formats?.fileChange(name, args);
    if (!formats || !change) return undefined;
    const shown = this.#shownChanges.get(callId);
    this.#shownChanges.delete(callId);
    const mark: Span = ['plain', FOREIGN];
    const linesMax = Math.max(CHANGE_MIN, Math.floor(this.#options.rows() / 2));
    const folded = (lines: readonly TextLine[]) => formats.foldedLines(lines, linesMax, mark, ': /diff shows them');
    const counts = formats.changeCounts(text);
    if (counts) {
      const diff = text.slice(text.indexOf('\n') + 1);
      const summary = `+${counts.added} −${counts.removed}`;
      const isShown =
        shown !== undefined && (shown === diff || shown.startsWith(diff.slice(0, diff.lastIndexOf('\n'))));
      return { summary, lines: isShown ? [] : folded(formats.changeLines(diff, mark)) };
    }
    if (!('content' in change) || !text.startsWith('Created ')) return undefined;
    const lines = formats.newFileLines(change.content, mark);
    return { summary: `new, ${count(lines.length, 'line')}`, lines: shown === change.content ? [] : folded(lines) };
  }

  #decided({ callId, decision }: Of<'decision'>): TextLine {
    if (decision.action === 'deny') this.#denied.add(callId);
    const name = printableLine(this.#calls.get(callId)?.name ?? callId);
    const reason = decision.action === 'deny' && decision.reason ? `: ${printableLine(decision.reason)}` : '';
    return ownLine(['dim', `· ${name}: ${DECIDED[decision.action]}${reason}`]);
  }

  #stop({ reason, cause }: Of<'run-stop'>): TextLine {
    const style: Style = reason === 'completed' ? 'green' : reason === 'interrupted' ? 'yellow' : 'red';
    const why = cause === undefined || cause === 'end_turn' ? reason : `${reason} (${printableLine(cause)})`;
    const spent = this.#request.turns === 0 ? '' : ` · ${tallyText(this.#request)}`;
    this.#calls.clear();
    this.#heading = undefined;
    return ownLine([style, `■ ${why}`], ['dim', spent]);
  }
}

const DECIDED = {
  approve: 'approved',
  deny: 'denied',
  edit: 'approved with other arguments',
  answer: 'answered',
} as const;

/** Returns the line of an entry that is no step. */
function aside(entry: LogEntry): TextLine[] {
  const line = terminalLine(entry);
  return line ? [ownLine([line.style, printableLine(line.text)])] : [];
}

/** The most informative argument names. The first that exists is shown. */
const TELLING = ['command', 'file_path', 'path', 'pattern', 'url', 'query', 'bash_id'];

function callSpans({ name, args }: Pick<ShownCall, 'name' | 'args'>): Span[] {
  const own = typeof args === 'object' && args !== null && !Array.isArray(args) ? args : {};
  const telling = TELLING.map((key) => (Object.hasOwn(own, key) ? own[key] : undefined)).find(
    (value) => typeof value === 'string',
  );
  const argumentText = typeof telling === 'string' ? telling : typeof args === 'string' ? args : JSON.stringify(args);
  const shown =
    argumentText === '{}' || name === PLAN || todosOf(name, args)
      ? ''
      : ` ${shortened(printableLine(argumentText), ARGS_MAX)}`;
  return [
    ['plain', printableLine(name)],
    ['cyan', shown],
  ];
}

function newsText(update: Json): string {
  const last = typeof update === 'object' && update !== null && 'lastLine' in update ? update.lastLine : update;
  const text = typeof last === 'string' ? last : JSON.stringify(last);
  return shortened(printableLine(text.trim()), LAST_LINE_MAX);
}

export const secondsText = (ms: number): string => `${(Math.max(0, ms) / 1000).toFixed(1)} s`;

const NOT_STARTED = '○ ';
const TURNING = '⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏';
export const spinner = (now: number): string => TURNING[Math.floor(now / 100) % TURNING.length] ?? '';

/** A waiting message, as it is listed until its delivery. */
export const queuedLine = (kind: 'steer' | 'followUp', text: string): TextLine =>
  ownLine(['dim', `+ ${kind === 'steer' ? 'steer' : 'later'}: ${printableLine(firstLine(text, TEXT_MAX))}`]);

/** The part of a message that a person has typed. Attached files follow it. */
export function typedText(content: readonly StoredPart[]): string {
  const [first] = content;
  return first?.type === 'text' ? first.text : textOf(content);
}

/** The output of a command, at most half a screen: its last lines. */
export function outputLines(output: string, rows: number): TextLine[] {
  const lines = output === '' ? [] : output.replace(/\r?\n$/, '').split(/\r?\n/);
  const most = Math.max(CHANGE_MIN, Math.floor(rows / 2));
  const shown = Number.isFinite(most) ? lines.slice(-most) : lines;
  const before = lines.length - shown.length;
  const hint = before > 0 ? [foreignLine('dim', `… ${count(before, 'line')} before`)] : [];
  return [...hint, ...shown.map((line) => foreignLine('plain', line))];
}

/**
 * Gives the log of an opened session to its renderer. Returns the lines of the latest request that the model still receives. `isShown`:
 * it is on the screen already.
 */
export function openedLines(renderer: TranscriptRenderer, entries: readonly LogEntry[], isShown: boolean): TextLine[] {
  const standing = standingEntries(entries);
  const from = isShown ? standing.length : lastRequestAt(standing);
  for (const entry of standing.slice(0, from)) renderer.entry(entry);
  return standing.slice(from).flatMap((entry) => renderer.entry(entry));
}

/** Returns the index at which the latest request begins. */
function lastRequestAt(entries: readonly LogEntry[]): number {
  for (let at = entries.length - 1; at > 0; at -= 1) {
    const entry = entries[at];
    if (entry?.type === 'user-message' && entry.kind !== 'steer') return at;
  }
  return 0;
}

/** The first line of a session. */
export const openedLine = (
  { model, permissionMode }: { model: string; permissionMode: string },
  id: string,
): TextLine =>
  ownLine(['bold', 'runchart'], ['dim', ` · ${printableLine(model)} · mode ${permissionMode} · session ${id} · /help`]);
