/**
 * A call that waits for a decision, as lines for a person, and the meaning of the typed answer. Invariant: the call
 * is shown completely, with escapes for characters that could hide something, and each line has a mark that no other
 * line has. Only a clear yes approves.
 */
import type { Json } from '../../../machines/internal.ts';
import type { PendingCall } from '../../index.ts';
import { printableLine } from '../../printable.ts';
import type { TextFormats } from '../formatted/textFormats.ts';
import type { CallPreview } from '../questions/callPreview.ts';
import type { Span, Style } from '../screen.ts';
import { FOREIGN, ownLine, type TextLine } from './textRows.ts';

/** The report of the permission rules about a call that they ask about. */
export interface ApprovalFacts {
  readonly by: string;
  readonly parts: readonly { text: string; outcome: string; by: string; why?: string }[];
  /** The place where a command would run: in the sandbox with its permissions, or outside. */
  readonly runs: string | undefined;
  /** Where a path leads. */
  readonly place: string | undefined;
  /** The rules that "always" would save. Empty if no rule would suffice. */
  readonly rules: readonly string[];
}

const MARK = '┃ ';

/** Reads the facts from a call's payload, which is untrusted. */
export function approvalFacts(payload: Json | undefined): ApprovalFacts {
  const own = typeof payload === 'object' && payload !== null && !Array.isArray(payload) ? payload : {};
  const texts = (value: Json | undefined): string[] =>
    Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];
  const parts = Array.isArray(own.parts) ? own.parts : [];
  return {
    by: typeof own.by === 'string' ? own.by : '',
    parts: parts.flatMap((part) => {
      if (typeof part !== 'object' || part === null || Array.isArray(part)) return [];
      const { text, outcome, by, why } = part;
      const reason = typeof why === 'string' ? { why } : {};
      return [{ text: String(text), outcome: String(outcome), by: String(by), ...reason }];
    }),
    rules: texts(own.rules),
    runs: typeof own.runs === 'string' ? own.runs : undefined,
    place: typeof own.place === 'string' ? own.place : undefined,
  };
}

/** True for the call that proposes a plan. */
export const isPlanCall = ({ name }: Pick<PendingCall, 'name'>): boolean => name === 'ExitPlanMode';

/** The change of a file that a question shows, ready as lines. */
export interface ShownChange {
  readonly preview: CallPreview;
  readonly formats: TextFormats;
  /** The most lines of a change; the others are counted. */
  readonly linesMax: number;
}

/** `wider`: rules that the answer `aa` would save. `plan`: the lines of a plan, in place of its source. */
export function approvalLines(
  call: PendingCall,
  change?: ShownChange,
  wider: readonly string[] = [],
  plan: readonly TextLine[] = [],
): TextLine[] {
  const { by, parts, rules, runs } = approvalFacts(call.payload);
  const isPlan = isPlanCall(call);
  const why = isPlan ? '' : whyText(call, by);
  const what = ` asks to ${change ? previewText(change.preview) : isPlan ? 'carry out this plan' : 'run'}`;
  const shown = change ? changeLinesOf(call, change) : argumentLines(call.args);
  const lines = [
    framed(['bold', printableLine(call.name)], ['yellow', what], ['dim', why]),
    ...(plan.length > 0 ? plan.map(framedLine) : shown),
  ];
  if (parts.length > 1) {
    lines.push(framed(['dim', 'its parts:']));
    for (const part of parts) {
      const style: Style = part.outcome === 'allow' ? 'green' : 'yellow';
      const outcomeText = `${part.outcome === 'allow' ? 'allowed' : 'asks'} (${printableLine(part.by)})`;
      lines.push(framed(['plain', `  ${printableLine(part.text)}  `], [style, outcomeText]));
    }
  }
  for (const { why } of parts) if (why !== undefined) lines.push(framed(['dim', printableLine(why)]));
  if (runs !== undefined) lines.push(framed(['dim', `would run ${printableLine(runs)}`]));
  for (const rule of rules) lines.push(framed(['dim', `always would allow  ${printableLine(rule)}`]));
  for (const rule of wider) lines.push(framed(['dim', `aa would allow      ${printableLine(rule)}`]));
  return lines;
}

const previewText = (preview: CallPreview): string => {
  const path = printableLine(preview.path);
  if (preview.kind === 'new file') return `create ${path}`;
  return preview.kind === 'change' ? `change ${path}` : `run on ${path}`;
};

function changeLinesOf({ args }: PendingCall, { preview, formats, linesMax }: ShownChange): readonly TextLine[] {
  const mark: Span = ['yellow', MARK];
  const folded = (lines: readonly TextLine[]): readonly TextLine[] =>
    formats.foldedLines(lines, linesMax, mark, ': v shows them');
  if (preview.kind === 'new file') {
    const lines = formats.newFileLines(preview.content, mark);
    return lines.length > 0 ? folded(lines) : [framed(['dim', 'an empty file'])];
  }
  if (preview.kind === 'no change')
    return [framed(['dim', printableLine(preview.why)]), ...folded(argumentLines(args))];
  const lines = formats.changeLines(preview.patch, mark);
  return lines.length > 0 ? folded(lines) : [framed(['dim', 'only line ends change'])];
}

/** The mark takes the place of the margin of foreign text. */
function framedLine({ spans: [first, ...rest], margin }: TextLine): TextLine {
  const spans = first && first[1] !== FOREIGN ? [first, ...rest] : rest;
  return { spans: [['yellow', MARK], ...spans], margin: MARK + margin.slice(FOREIGN.length) };
}

const framed = (...spans: Span[]): TextLine => ({ ...ownLine(['yellow', MARK], ...spans), margin: `${MARK}  ` });

function whyText({ reason, path }: PendingCall, by: string): string {
  const cause = by !== '' ? by : reason === 'needsApproval' ? 'the tool requires approval' : reason;
  const why = ` (${printableLine(cause)})`;
  return path.length > 1 ? `${why}, for a sub-agent` : why;
}

/** Returns a command line by line as it would run, a plan as it is written, and other arguments by name. */
function argumentLines(args: Json): TextLine[] {
  const own = typeof args === 'object' && args !== null && !Array.isArray(args) ? args : undefined;
  if (typeof own?.plan === 'string' && Object.keys(own).length === 1)
    return own.plan.split('\n').map((line) => framed(['plain', printableLine(line)]));
  if (typeof own?.command !== 'string') return valueTexts(args).map(argumentLine);
  const { command, ...rest } = own;
  const lines = command.split('\n').map((line, index) => {
    const mark = index === 0 ? '$ ' : '  ';
    return framed(['plain', mark], ['bold', printableLine(line)]);
  });
  return Object.keys(rest).length === 0 ? lines : [...lines, ...valueTexts(rest).map(argumentLine)];
}

const argumentLine = (text: string): TextLine => framed(['bold', printableLine(text)]);

/** Matches a text that would be read as another value, or whose ends would not be seen. */
const UNCLEAR = /^(?:|true|false|null|-?\d.*|[[{"'|].*|\s.*|.*\s)$/s;
const clearText = (text: string): string => (UNCLEAR.test(text) ? JSON.stringify(text) : text);

/** A value as lines: a text without quotes, a text of several lines below its name. */
function valueTexts(value: Json): string[] {
  if (typeof value === 'string') return [clearText(value)];
  if (typeof value !== 'object' || value === null) return [JSON.stringify(value)];
  const rows = Array.isArray(value) ? value.map((each) => ['-', each] as const) : Object.entries(value);
  if (rows.length === 0) return [Array.isArray(value) ? '[]' : '{}'];
  return rows.flatMap(([key, each]) => {
    const name = key === '-' ? key : `${key}:`;
    if (typeof each === 'string' && each.includes('\n')) return [`${name} |`, ...each.split('\n').map(indented)];
    const [first = '', ...others] = valueTexts(each);
    const isOneLine =
      typeof each !== 'object' || each === null || (others.length === 0 && Object.keys(each).length === 0);
    return isOneLine
      ? [`${name} ${first}`]
      : [name, first, ...others].map((text, index) => (index === 0 ? text : indented(text)));
  });
}

const indented = (text: string): string => `  ${text}`;

export type Answer =
  | { kind: 'approve' | 'edit' | 'view' | 'ask-reason' }
  /** `isWide`: with the wider rules. */
  | { kind: 'always' | 'keep'; isWide?: true }
  | { kind: 'deny'; reason: string }
  | { kind: 'unclear' };

const WORDS: { readonly [word: string]: Answer } = {
  y: { kind: 'approve' },
  yes: { kind: 'approve' },
  a: { kind: 'always' },
  always: { kind: 'always' },
  k: { kind: 'keep' },
  keep: { kind: 'keep' },
  aa: { kind: 'always', isWide: true },
  kk: { kind: 'keep', isWide: true },
  e: { kind: 'edit' },
  edit: { kind: 'edit' },
  v: { kind: 'view' },
  view: { kind: 'view' },
  n: { kind: 'ask-reason' },
  no: { kind: 'ask-reason' },
};

/** `no, because …` denies at once. Every text that is not one of the words is unclear. */
export function answerOf(typed: string): Answer {
  const text = typed.trim();
  const word = text.toLowerCase();
  if (Object.hasOwn(WORDS, word)) return WORDS[word] ?? { kind: 'unclear' };
  const denied = /^no?[,:]?\s+(\S[\s\S]*)$/i.exec(text);
  return denied ? { kind: 'deny', reason: denied[1] ?? '' } : { kind: 'unclear' };
}
