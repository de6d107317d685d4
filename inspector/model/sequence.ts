/**
 * One request as messages between you, the runtime, the model and the tools. Invariant: one row for each message, in
 * the order of the log.
 */
import type { LogEntry } from '../../machines/vocabulary.ts';
import { duration, oneLine, shownText, telling } from '../../src/words/formats.ts';
import { argsAt } from './callStates.ts';
import type { LogFacts } from './logFacts.ts';

export const LIFE_LINES = ['you', 'runtime', 'model', 'tools'] as const;
export type LifeLine = (typeof LIFE_LINES)[number];

export type SequenceRow =
  | {
      readonly kind: 'message';
      readonly at: number;
      readonly from: LifeLine;
      readonly to: LifeLine;
      readonly words: string;
      readonly look: 'plain' | 'answer' | 'failed' | 'cancelled';
    }
  | { readonly kind: 'wait'; readonly at: number; readonly words: string }
  | { readonly kind: 'round'; readonly at: number; readonly words: string };

/** Returns the rows of cycle `number`, up to an entry. */
export function sequenceOf(entries: readonly LogEntry[], facts: LogFacts, number: number, upTo: number): SequenceRow[] {
  const rows: SequenceRow[] = [];
  const runs = facts.runs.filter((run) => run.number === number);
  const from = runs[0]?.from ?? 0;
  const to = Math.min(upTo, runs.at(-1)?.to ?? 0);
  const state = { round: 0, asked: false };
  for (let at = from; at <= to; at++) {
    const entry = entries[at];
    if (entry) rows.push(...rowsOf(entry, at, state, { entries, facts }));
  }
  return rows;
}

interface Whole {
  readonly entries: readonly LogEntry[];
  readonly facts: LogFacts;
}

function rowsOf(entry: LogEntry, at: number, state: { round: number }, { entries, facts }: Whole): SequenceRow[] {
  const message = (
    from: LifeLine,
    to: LifeLine,
    words: string,
    look: 'plain' | 'answer' | 'failed' | 'cancelled' = 'plain',
  ): SequenceRow => ({ kind: 'message', at, from, to, words: oneLine(words, 60), look });
  const call = 'callId' in entry && entry.callId !== undefined ? facts.calls.get(entry.callId) : undefined;
  const name = call?.name ?? 'call';
  switch (entry.type) {
    case 'user-message':
      return [message('you', 'runtime', shownText(entry.content))];
    case 'checkpoint': {
      if (entry.boundary !== 'UserMessage' && entry.boundary !== 'ToolResultsCommitted') return [];
      const follows = entries[at + 1]?.type;
      if (follows === 'run-suspended' || follows === 'run-stop') return [];
      state.round += 1;
      return [{ kind: 'round', at, words: `round ${state.round}` }, message('runtime', 'model', 'messages and tools')];
    }
    case 'agent-output':
      if (entry.item.type === 'tool-call') {
        return [message('model', 'runtime', `${entry.item.name} ${telling(entry.item.args, 40)}`, 'answer')];
      }
      return [message('model', 'runtime', entry.item.text, 'answer')];
    case 'tool-started':
      return [message('runtime', 'tools', `${name} ${call ? telling(argsAt(call, at), 40) : ''}`)];
    case 'tool-result': {
      const look = entry.outcome === 'succeeded' ? 'answer' : entry.outcome === 'failed' ? 'failed' : 'cancelled';
      return [message('tools', 'runtime', `${name} ${entry.outcome}`, look)];
    }
    case 'tool-suspended':
      return [message('runtime', 'you', `${name} asks: ${entry.reason}`)];
    case 'decision': {
      const suspended = call?.suspensions.find((one) => one.number === entry.suspension);
      const ms = suspended ? entry.at - (entries[suspended.at]?.at ?? entry.at) : 0;
      return [{ kind: 'wait', at, words: duration(ms) }, message('you', 'runtime', `${entry.decision.action} ${name}`)];
    }
    case 'run-stop':
      return [message('runtime', 'you', entry.reason, entry.reason === 'completed' ? 'answer' : 'failed')];
    default:
      return [];
  }
}

const quoted = (words: string): string => words.replace(/[;#\n<>]/g, ' ');

/** Returns the same as mermaid text. */
export function mermaidOf(rows: readonly SequenceRow[]): string {
  const lines = rows.map((row) => {
    if (row.kind === 'round') return `  Note over runtime: ${row.words}`;
    if (row.kind === 'wait') return `  Note over you: waited ${row.words}`;
    const arrow = row.look === 'answer' ? '-->>' : row.look === 'failed' ? '--x' : '->>';
    return `  ${row.from}${arrow}${row.to}: ${quoted(row.words)}`;
  });
  const heads = LIFE_LINES.map((line) => `  ${line === 'you' ? 'actor' : 'participant'} ${line}`);
  return ['sequenceDiagram', ...heads, ...lines, ''].join('\n');
}
