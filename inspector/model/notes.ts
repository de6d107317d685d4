/**
 * The words of Steps and the time line for each kind of entry. Invariant: the table has every kind, so a new kind
 * does not compile until somebody decides where it is shown.
 */
import type { LogEntry } from '../../machines/vocabulary.ts';

import { count, duration, oneLine, plural } from './words.ts';

type Kind = LogEntry['type'];
type Of<Type extends Kind> = Extract<LogEntry, { type: Type }>;
export interface Note {
  readonly words: string;
  /** The text that unfolds below it. */
  readonly more?: string;
  readonly isFault?: true;
}
/** `row`: a row, a call or a heading shows it. `none`: only Events and Context show it. */
type Place<Type extends Kind> = 'row' | 'none' | ((entry: Of<Type>, model: string | undefined) => Note | undefined);

const CONTINUED: Readonly<Record<string, string>> = {
  empty_reply: 'The reply was empty, so the model was asked to continue.',
  length: 'The reply reached its length limit, so the model was asked to continue.',
  pause: 'The provider paused the reply, so the model was asked to continue.',
  results: 'The reply after the results was empty, so the model was asked to continue.',
  resume: 'The run was resumed with a message for the model.',
  stop_hook: 'A hook asked the model to continue.',
  host: 'The application asked the model to continue.',
};

/** `model`: the model of the attempt before. */
function retried({ attempt, model: next, waitMs, reason }: Of<'model-retry'>, model: string | undefined): Note {
  const wait = waitMs > 0 ? ` after ${duration(waitMs)}` : '';
  const isOther = model !== undefined && model !== next;
  const words = isOther
    ? `The model ${model} failed. Attempt ${attempt} falls back to ${next}${wait}.`
    : `The model call failed. Attempt ${attempt} asks ${next}${wait}.`;
  return { words, more: reason, isFault: true };
}

function compacted({ upToSeq, summary, usage, model }: Of<'compaction'>): Note {
  const tokens = usage && `${count(usage.inputTokens)} in · ${count(usage.outputTokens)} out`;
  const made = [model, tokens].filter((part) => part !== undefined).join(' · ');
  const words = `A summary replaced the messages up to entry ${count(upToSeq)}${made === '' ? '' : ` (${made})`}.`;
  return { words, more: summary };
}

const diagnosed = ({ code, detail }: Of<'diagnostic'>): Note => ({
  words: `Diagnostic: ${code}`,
  isFault: true,
  ...(detail !== undefined && { more: typeof detail === 'string' ? detail : JSON.stringify(detail, null, 2) }),
});

const NOTES: { readonly [Type in Kind]: Place<Type> } = {
  'user-message': 'row',
  'agent-output': 'row',
  'tool-result': 'row',
  'run-stop': 'row',
  conversation: 'none',
  history: ({ messages }) => ({ words: `The conversation began with ${plural(messages.length, 'earlier message')}.` }),
  'run-started': 'row',
  'run-resumed': () => ({ words: 'The run was resumed.' }),
  'run-suspended': 'row',
  'message-queued': 'row',
  'message-returned': ({ why }) => ({ words: `A queued message was given back: ${why}.` }),
  'tool-allowed': 'row',
  'tool-started': 'row',
  'tool-suspended': 'row',
  decision: 'row',
  'decision-consumed': 'none',
  'call-settled': 'row',
  'state-changed': 'none',
  continuation: ({ why, text }) => ({
    words: CONTINUED[why] ?? `The model was asked to continue: ${why}.`,
    more: text,
  }),
  'model-reply': 'row',
  'model-retry': retried,
  compaction: compacted,
  'context-warning': ({ used, limit }) => ({
    words: `The context is nearly full: ${count(used)} of ${count(limit)} tokens.`,
  }),
  'sub-agent': 'row',
  checkpoint: 'none',
  notice: ({ text }) => ({ words: oneLine(text), more: text, isFault: true }),
  diagnostic: diagnosed,
  extension: 'none',
};

/** Returns the row of an entry that no other row shows. */
export function noteOf(entry: LogEntry, model: string | undefined): Note | undefined {
  const place = NOTES[entry.type] as Place<Kind> | undefined;
  return typeof place === 'function' ? place(entry as never, model) : undefined;
}

/** Kinds with a mark on the model's lane: events between two turns. */
const MARKS: ReadonlySet<Kind> = new Set(['compaction', 'continuation', 'context-warning']);

export interface Mark {
  readonly label: string;
  readonly at: number;
}

export function markOf(entry: LogEntry, at: number): Mark | undefined {
  if (!MARKS.has(entry.type)) return undefined;
  if (entry.type === 'continuation') return { at, label: `continued: ${entry.why.replaceAll('_', ' ')}` };
  return { at, label: entry.type === 'compaction' ? 'summary' : 'context nearly full' };
}

export interface PlacedNote extends Note {
  readonly at: number;
}

/** Returns the notes of the entries `from` to `to`, both included. */
export function notesOf(entries: readonly LogEntry[], from: number, to: number): PlacedNote[] {
  const notes: PlacedNote[] = [];
  for (let at = from; at <= to; at++) {
    const entry = entries[at];
    const note = entry && noteOf(entry, entry.type === 'model-retry' ? modelBefore(entries, at) : undefined);
    if (note) notes.push({ ...note, at });
  }
  return notes;
}

function modelBefore(entries: readonly LogEntry[], index: number): string | undefined {
  for (let at = index - 1; at >= 0; at--) {
    const entry = entries[at];
    if (entry?.type === 'model-reply' || entry?.type === 'model-retry') return entry.model;
  }
  return undefined;
}
