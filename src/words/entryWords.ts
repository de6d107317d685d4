/**
 * The words for each kind of entry: its row in the inspector's Events, its note in Steps, its mark on the time line,
 * and its line in a terminal. Invariant: the table contains every kind, so a new kind does not compile until its
 * display is decided.
 */
import type { Diagnostic, LogEntry } from '../../machines/vocabulary.ts';
import { shortened } from '../printable.ts';
import { count, duration, firstLine, oneLine, plural, shownText, telling } from './formats.ts';

type Kind = LogEntry['type'];
type Of<Type extends Kind> = Extract<LogEntry, { type: Type }>;

export type EntryIcon =
  | 'none'
  | 'person'
  | 'model'
  | 'flag'
  | 'checkpoint'
  | 'started'
  | 'branch'
  | 'box'
  | 'waiting'
  | 'done'
  | 'failed'
  | 'cancelled';

export interface EntryRow {
  readonly icon: EntryIcon;
  /** The words after its type. */
  readonly words: string;
}
export interface EntryNote {
  readonly words: string;
  /** The text that unfolds below it. */
  readonly more?: string;
  readonly isFault?: true;
}
/** A line of a terminal. */
export interface EntryLine {
  readonly style: 'yellow' | 'dim';
  readonly text: string;
}

interface WordsOf<Entry> {
  /** Its icon in Events, or the whole row. Without words of its own a row shows the fields. */
  readonly events: EntryIcon | ((entry: Entry) => EntryRow);
  /** `shown`: a row, a call or a heading of Steps shows it. `none`: only Events and Context show it. `model`: of the attempt before. */
  readonly steps: 'shown' | 'none' | ((entry: Entry, model: string | undefined) => EntryNote);
  /** Its label on the model's lane, for an event between two turns. */
  readonly mark?: (entry: Entry) => string;
  /** Its line in a terminal, for an entry that is no step. */
  readonly line?: (entry: Entry) => EntryLine;
}

const LINE_MAX = 200;

const yellow = (text: string): EntryLine => ({ style: 'yellow', text });
const dim = (text: string): EntryLine => ({ style: 'dim', text });
const row =
  <Entry>(icon: EntryIcon, words: (entry: Entry) => string) =>
  (entry: Entry): EntryRow => ({ icon, words: words(entry) });

const CONTINUED: Readonly<Record<string, string>> = {
  empty_reply: 'The reply was empty, so the model was asked to continue.',
  length: 'The reply reached its length limit, so the model was asked to continue.',
  pause: 'The provider paused the reply, so the model was asked to continue.',
  results: 'The reply after the results was empty, so the model was asked to continue.',
  resume: 'The run was resumed with a message for the model.',
  stop_hook: 'A hook asked the model to continue.',
  host: 'The application asked the model to continue.',
};

function retried({ attempt, model: next, waitMs, reason }: Of<'model-retry'>, model: string | undefined): EntryNote {
  const wait = waitMs > 0 ? ` after ${duration(waitMs)}` : '';
  const isOther = model !== undefined && model !== next;
  const words = isOther
    ? `The model ${model} failed. Attempt ${attempt} falls back to ${next}${wait}.`
    : `The model call failed. Attempt ${attempt} asks ${next}${wait}.`;
  return { words, more: reason, isFault: true };
}

function compacted({ upToSeq, summary, usage, model }: Of<'compaction'>): EntryNote {
  const tokens = usage && `${count(usage.inputTokens)} in · ${count(usage.outputTokens)} out`;
  const made = [model, tokens].filter((part) => part !== undefined).join(' · ');
  const words = `A summary replaced the messages up to entry ${count(upToSeq)}${made === '' ? '' : ` (${made})`}.`;
  return { words, more: summary };
}

const diagnosed = ({ code, detail }: Of<'diagnostic'>): EntryNote => ({
  words: `Diagnostic: ${code}`,
  isFault: true,
  ...(detail !== undefined && { more: typeof detail === 'string' ? detail : JSON.stringify(detail, null, 2) }),
});

/** Returns a diagnostic as one line: in its own words if there are any, else by code and detail. */
export function diagnosticText({ code, detail }: Diagnostic, most: number): string {
  const why = typeof detail === 'object' && detail !== null && 'why' in detail ? detail.why : undefined;
  if (code === 'sandbox_missing' && typeof why === 'string')
    return `commands run without a sandbox: ${shortened(why, most)}`;
  return detail === undefined ? code : `${code} ${shortened(JSON.stringify(detail), most)}`;
}

function spoken({ item }: Of<'agent-output'>): string {
  return item.type === 'tool-call' ? `${item.name} ${telling(item.args)}` : oneLine(item.text);
}

const OUTCOME_ICONS: Readonly<Record<string, EntryIcon>> = { succeeded: 'done', failed: 'failed' };
const STOP_ICONS: Readonly<Record<string, EntryIcon>> = { completed: 'done', interrupted: 'cancelled' };

const stopped = ({ reason, cause }: Of<'run-stop'>): EntryRow => ({
  icon: STOP_ICONS[reason] ?? 'failed',
  words: cause && cause !== 'end_turn' ? `${reason} · ${cause}` : reason,
});

const decided = ({ decision: { action, by }, callId }: Of<'decision'>): EntryRow => ({
  icon: action === 'deny' ? 'cancelled' : 'person',
  words: `${callId} ${action}${by === undefined ? '' : ` by ${by}`}`,
});

/** Reading a log does not depend on some texts, so a log from elsewhere may lack them. */
const textIn = (value: unknown): string => (typeof value === 'string' ? value : '');

export const entryWords: { readonly [Type in Kind]: WordsOf<Of<Type>> } = {
  conversation: { events: row('none', ({ schema }) => `schema ${schema}`), steps: 'none' },
  history: {
    events: 'box',
    steps: ({ messages }) => ({ words: `The conversation began with ${plural(messages.length, 'earlier message')}.` }),
  },
  'user-message': { events: row('person', ({ content }) => oneLine(shownText(content))), steps: 'shown' },
  'agent-output': { events: row('model', spoken), steps: 'shown' },
  'tool-result': {
    events: ({ callId, outcome }) => ({
      icon: OUTCOME_ICONS[outcome] ?? 'cancelled',
      words: `${callId} ${outcome}`,
    }),
    steps: 'shown',
  },
  'run-stop': { events: stopped, steps: 'shown' },
  'run-started': { events: row('flag', () => ''), steps: 'shown' },
  'run-resumed': { events: row('flag', () => 'goes on'), steps: () => ({ words: 'The run was resumed.' }) },
  'run-suspended': { events: row('waiting', ({ waiting }) => waiting.join(', ')), steps: 'shown' },
  'message-queued': {
    events: row(
      'person',
      ({ kind, content }) => `${kind === 'steer' ? 'steer' : 'follow-up'} · ${oneLine(shownText(content))}`,
    ),
    steps: 'shown',
  },
  'message-returned': {
    events: row('person', ({ why }) => why),
    steps: ({ why }) => ({ words: `A queued message was given back: ${why}.` }),
  },
  'tool-allowed': { events: 'box', steps: 'shown' },
  'tool-started': { events: row('started', ({ callId }) => callId), steps: 'shown' },
  'tool-suspended': { events: row('waiting', ({ callId, reason }) => `${callId} ${reason}`), steps: 'shown' },
  decision: { events: decided, steps: 'shown' },
  'decision-consumed': { events: 'box', steps: 'none' },
  'call-settled': { events: 'box', steps: 'shown' },
  'state-changed': { events: 'box', steps: 'none' },
  continuation: {
    events: 'box',
    steps: ({ why, text }) => ({ words: CONTINUED[why] ?? `The model was asked to continue: ${why}.`, more: text }),
    mark: ({ why }) => `continued: ${textIn(why).replaceAll('_', ' ')}`,
    line: ({ text }) => dim(`· the model is told: ${firstLine(textIn(text), LINE_MAX)}`),
  },
  'model-reply': {
    events: row('model', ({ finish, usage }) => {
      return `${finish} · ${count(usage?.inputTokens ?? 0)} in · ${count(usage?.outputTokens ?? 0)} out`;
    }),
    steps: 'shown',
  },
  'model-retry': {
    events: row('model', ({ attempt, model, reason }) => oneLine(`attempt ${attempt} · ${model} · ${reason}`)),
    steps: retried,
    line: ({ attempt, waitMs, reason }) =>
      yellow(`↻ attempt ${attempt} in ${(waitMs / 1000).toFixed(1)} s: ${shortened(reason, LINE_MAX)}`),
  },
  compaction: {
    events: 'model',
    steps: compacted,
    mark: () => 'summary',
    line: () => dim('· the older part of the conversation was summarised'),
  },
  'context-warning': {
    events: 'model',
    steps: ({ used, limit }) => ({ words: `The context is nearly full: ${count(used)} of ${count(limit)} tokens.` }),
    mark: () => 'context nearly full',
    line: ({ used, limit }) => yellow(`! the context holds ${used} of ${limit} tokens`),
  },
  'sub-agent': { events: 'branch', steps: 'shown' },
  checkpoint: { events: row('checkpoint', ({ boundary }) => boundary), steps: 'none' },
  renamed: {
    events: row('person', ({ title }) => oneLine(title)),
    steps: ({ title }) => ({ words: `The conversation was renamed to ${oneLine(title)}.` }),
  },
  rewound: {
    events: row('person', ({ toSeq }) => `to ${toSeq}`),
    steps: ({ toSeq }) => ({ words: `The conversation was rewound. It continues after entry ${toSeq}.` }),
  },
  notice: {
    events: 'failed',
    steps: ({ text }) => ({ words: oneLine(textIn(text)), more: textIn(text), isFault: true }),
    line: ({ text }) => yellow(`! ${firstLine(textIn(text), LINE_MAX)}`),
  },
  diagnostic: { events: 'failed', steps: diagnosed, line: (entry) => dim(`! ${diagnosticText(entry, LINE_MAX)}`) },
  extension: { events: 'box', steps: 'none' },
};

/** Undefined for a kind of a later version. */
const wordsOf = (entry: LogEntry): WordsOf<LogEntry> | undefined =>
  Object.hasOwn(entryWords, entry.type) ? (entryWords[entry.type] as unknown as WordsOf<LogEntry>) : undefined;

/** The row of an entry in Events. */
export function eventRow(entry: LogEntry): EntryRow {
  const events = wordsOf(entry)?.events ?? 'box';
  if (typeof events === 'function') return events(entry);
  const { seq: _, at: __, conversationId: ___, runId: ____, type: _____, ...fields } = entry;
  const values = Object.values(fields).filter((value) => typeof value === 'string' || typeof value === 'number');
  return { icon: events, words: oneLine(values.join(' · ')) || oneLine(JSON.stringify(fields)) };
}

/** The note of an entry that no other row of Steps shows. */
export function stepNote(entry: LogEntry, model: string | undefined): EntryNote | undefined {
  const steps = wordsOf(entry)?.steps;
  return typeof steps === 'function' ? steps(entry, model) : undefined;
}

/** The label of an entry that has a mark on the time line. */
export const markLabel = (entry: LogEntry): string | undefined => wordsOf(entry)?.mark?.(entry);

/** The line of an entry in a terminal, if it is neither a step nor silent. */
export const terminalLine = (entry: LogEntry): EntryLine | undefined => wordsOf(entry)?.line?.(entry);
