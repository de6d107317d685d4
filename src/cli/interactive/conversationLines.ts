/**
 * A conversation as lines: entries and live signals become permanent lines, and lines in progress. Invariant: a fold
 * without a clock or a terminal. Streamed text is not shown again with its entry. Text of a model or a tool never
 * begins a line.
 */

import type { AgentItem, GroupName, Json, LogEntry } from '../../../machines/internal.ts';
import { textOf } from '../../content/content.ts';
import type { Live } from '../../live.ts';
import { printableLine, shortened } from '../../printable.ts';
import { groupName } from '../../projector/cycles.ts';
import { terminalLine } from '../../words/entryWords.ts';
import { firstLine } from '../../words/formats.ts';
import { emptyTally, type Tally, tallyText, withReply } from '../costTally.ts';
import { resultText } from '../renderLog.ts';
import type { Span, Style } from '../screen.ts';
import { FOREIGN, foreignLine, ownLine, rowsOf, rowText, type TextLine } from './textRows.ts';

const ARGS_MAX = 160;
const TEXT_MAX = 200;
const LAST_LINE_MAX = 60;

type Of<T extends LogEntry['type']> = Extract<LogEntry, { type: T }>;
type TextKind = 'assistant' | 'reasoning';

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

export class TranscriptRenderer {
  /** Calls without a result, in the model's order. */
  readonly #calls = new Map<string, ShownCall>();
  /** The incomplete last line of the current reply. */
  #open: { kind: TextKind; text: string } | undefined;
  #streamed: { [kind in TextKind]: boolean } = { assistant: false, reasoning: false };
  /** Lines of the current attempt are already permanent. */
  #hasSettled = false;
  #heading: GroupName | undefined;
  #request: Tally = emptyTally;

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
        return [...this.#endText(), ...this.#user(entry)];
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

  /**
   * Removes and returns the rows of the streamed text that will not change at this width. `underWay` does not show
   * them again.
   */
  settle(width: number): TextLine[] {
    if (!this.#open || !Number.isFinite(width)) return [];
    const { kind, text } = this.#open;
    const rows = rowsOf(this.#textLine(kind, text), width);
    const last = rows.pop();
    if (rows.length === 0 || !last) return [];
    // A row ends without trailing spaces; they count only if a word follows.
    const [spaces = ''] = / *$/.exec(text) ?? [];
    this.#open = { kind, text: rowText(last).slice(FOREIGN.length) + spaces };
    this.#hasSettled = true;
    return rows.map((row) => this.#textLine(kind, rowText(row).slice(FOREIGN.length)));
  }

  /** Returns the lines in progress: the incomplete text, and the calls with their elapsed times. */
  underWay(now: number): TextLine[] {
    const lines = this.#open && this.#open.text !== '' ? [this.#textLine(this.#open.kind, this.#open.text)] : [];
    for (const call of this.#calls.values()) {
      if (call.state === 'waiting') continue;
      lines.push(ownLine(['cyan', `${spinner(now)} `], ...callSpans(call), ['dim', this.#elapsedText(call, now)]));
    }
    return lines;
  }

  /** True if it shows anything besides the state of the run. */
  get isShowing(): boolean {
    return this.#open !== undefined || [...this.#calls.values()].some(({ state }) => state !== 'waiting');
  }

  #elapsedText({ since, progress }: ShownCall, now: number): string {
    const time = since === undefined ? '' : `  ${secondsText(now - since)}`;
    return progress === '' ? time : `${time}  ${progress}`;
  }

  #textLine(kind: TextKind, text: string): TextLine {
    return foreignLine(kind === 'assistant' ? 'plain' : 'dim', text);
  }

  #stream(kind: TextKind, piece: string): TextLine[] {
    const settled = this.#open !== undefined && this.#open.kind !== kind ? this.#endText() : [];
    this.#streamed[kind] = true;
    this.#heading = undefined;
    // Only the new piece is searched, because a line may come in very many pieces.
    const [first = '', ...more] = piece.split('\n');
    const ended = [`${this.#open?.text ?? ''}${first}`, ...more];
    this.#open = { kind, text: ended.pop() ?? '' };
    const lines = ended.map((line) => line.replace(/\r$/, ''));
    if (settled.length + lines.length > 0) this.#hasSettled = true;
    return [...settled, ...lines.map((line) => this.#textLine(kind, line))];
  }

  /** Ends the streamed text. */
  #endText(): TextLine[] {
    const open = this.#open;
    this.#open = undefined;
    return open && open.text !== '' ? [this.#textLine(open.kind, open.text)] : [];
  }

  #reset(): TextLine[] {
    const wasShown = this.#hasSettled;
    this.#open = undefined;
    this.#endReply();
    return wasShown ? [ownLine(['yellow', '↻ the reply broke off: what was shown of it does not count'])] : [];
  }

  #endReply(): TextLine[] {
    const settled = this.#endText();
    this.#streamed = { assistant: false, reasoning: false };
    this.#hasSettled = false;
    return settled;
  }

  #user({ kind, content }: Of<'user-message'>): TextLine[] {
    this.#heading = undefined;
    const [first = '', ...rest] = textOf(content).split('\n');
    const mark: Span = ['cyan', kind === 'steer' ? '> (steer) ' : '> '];
    return [ownLine(mark, ['bold', first]), ...rest.map((line) => foreignLine('bold', line))];
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
      return this.#endText();
    }
    this.#heading = undefined;
    if (this.#streamed[item.type]) return this.#endText();
    return item.text.split(/\r?\n/).map((line) => this.#textLine(item.type as TextKind, line));
  }

  #call(callId: string, change: Partial<ShownCall>): TextLine[] {
    const call = this.#calls.get(callId);
    if (call) this.#calls.set(callId, { ...call, ...change });
    return [];
  }

  #result({ callId, outcome, content, code, at }: Of<'tool-result'>): TextLine[] {
    const call = this.#calls.get(callId);
    this.#calls.delete(callId);
    const group = call?.group ?? 'other-group';
    const heading = this.#heading === group ? [] : [ownLine(['bold', `● ${group.replace('-group', '')}`])];
    this.#heading = group;
    const took = call?.since === undefined ? '' : `  ${secondsText(at - call.since)}`;
    const names = call ? callSpans(call) : [['plain', printableLine(callId)] as const];
    const isFine = outcome === 'succeeded';
    const how = isFine ? '' : ` (${printableLine(code === undefined ? outcome : `${outcome}, ${code}`)})`;
    const summary: Span = ['dim', `  ${printableLine(resultText(content))}${took}`];
    return [...heading, ownLine(isFine ? ['green', '✓ '] : ['red', '✗ '], ...names, ['red', how], summary)];
  }

  #decided({ callId, decision }: Of<'decision'>): TextLine {
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
const TELLING = ['command', 'file_path', 'path', 'pattern', 'url', 'query'];

function callSpans({ name, args }: Pick<ShownCall, 'name' | 'args'>): Span[] {
  const own = typeof args === 'object' && args !== null && !Array.isArray(args) ? args : {};
  const telling = TELLING.map((key) => (Object.hasOwn(own, key) ? own[key] : undefined)).find(
    (value) => typeof value === 'string',
  );
  const argumentText = typeof telling === 'string' ? telling : typeof args === 'string' ? args : JSON.stringify(args);
  const shown = argumentText === '{}' ? '' : ` ${shortened(printableLine(argumentText), ARGS_MAX)}`;
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

const TURNING = '⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏';
export const spinner = (now: number): string => TURNING[Math.floor(now / 100) % TURNING.length] ?? '';

/** A waiting message, as it is listed until its delivery. */
export const queuedLine = (kind: 'steer' | 'followUp', text: string): TextLine =>
  ownLine(['dim', `+ ${kind === 'steer' ? 'steer' : 'later'}: ${printableLine(firstLine(text, TEXT_MAX))}`]);

/** Returns the index at which the latest request begins. */
export function lastRequestAt(entries: readonly LogEntry[]): number {
  for (let at = entries.length - 1; at > 0; at -= 1) {
    const entry = entries[at];
    if (entry?.type === 'user-message' && entry.kind !== 'steer') return at;
  }
  return 0;
}
