/**
 * A call that waits for a decision, as lines for a person, and the meaning of the typed answer. Invariant: the call
 * is shown completely, with escapes for characters that could hide something, and each line has a mark that no other
 * line has. Only a clear yes approves.
 */
import type { Json } from '../../../machines/internal.ts';
import type { PendingCall } from '../../index.ts';
import { printableLine } from '../../printable.ts';
import type { Span, Style } from '../screen.ts';
import { ownLine, type TextLine } from './textRows.ts';

/** The report of the permission rules about a call that they ask about. */
export interface ApprovalFacts {
  readonly by: string;
  readonly parts: readonly { text: string; outcome: string; by: string; why?: string }[];
  /** The place where a command would run: in the sandbox with its permissions, or outside. */
  readonly runs: string | undefined;
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
  };
}

export function approvalLines(call: PendingCall): TextLine[] {
  const { by, parts, rules, runs } = approvalFacts(call.payload);
  const lines = [framed(['bold', printableLine(call.name)], ['yellow', ' asks to run'], ['dim', whyText(call, by)])];
  lines.push(...argumentLines(call.args));
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
  return lines;
}

const framed = (...spans: Span[]): TextLine => ({ ...ownLine(['yellow', MARK], ...spans), margin: `${MARK}  ` });

function whyText({ reason, path }: PendingCall, by: string): string {
  const why = by === '' ? ` (${printableLine(reason)})` : ` (${printableLine(by)})`;
  return path.length > 1 ? `${why}, for a sub-agent` : why;
}

/** Returns a command line by line as it would run, and other arguments as JSON. */
function argumentLines(args: Json): TextLine[] {
  const own = typeof args === 'object' && args !== null && !Array.isArray(args) ? args : undefined;
  if (typeof own?.command !== 'string') return jsonLines(args);
  const { command, ...rest } = own;
  const lines = command.split('\n').map((line, index) => {
    const mark = index === 0 ? '$ ' : '  ';
    return framed(['plain', mark], ['bold', printableLine(line)]);
  });
  return Object.keys(rest).length === 0 ? lines : [...lines, ...jsonLines(rest)];
}

const jsonLines = (value: Json): TextLine[] =>
  JSON.stringify(value, null, 2)
    .split('\n')
    .map((line) => framed(['bold', printableLine(line)]));

export type Answer =
  | { kind: 'approve' | 'always' | 'keep' | 'edit' | 'ask-reason' }
  | { kind: 'deny'; reason: string }
  | { kind: 'unclear' };

const WORDS: { readonly [word: string]: Answer } = {
  y: { kind: 'approve' },
  yes: { kind: 'approve' },
  a: { kind: 'always' },
  always: { kind: 'always' },
  k: { kind: 'keep' },
  keep: { kind: 'keep' },
  e: { kind: 'edit' },
  edit: { kind: 'edit' },
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
