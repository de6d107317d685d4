/**
 * Folds a log into the row of its conversation. Invariant: the fold is the same for every store.
 */
import { usageOf } from '../../machines/internal.ts';
import type { LogEntry, StoredPart } from '../../machines/vocabulary.ts';
import type { ConversationRow } from './conversationRow.ts';

/** Folds an entry into the row of a log; undefined for an empty log. Changes the row. */
export function addToRow(row: ConversationRow | undefined, entry: LogEntry, id: string): ConversationRow {
  const folded = row ?? firstRow(entry, id);
  folded.length += 1;
  folded.updatedAt = entry.at;
  const spent = usageOf(entry);
  if (spent) {
    const cost = finite(spent.costUsd);
    folded.costUsd = folded.costUsd === null || cost === null ? null : folded.costUsd + cost;
  }
  switch (entry.type) {
    case 'model-reply':
      folded.turns += 1;
      break;
    case 'user-message':
    case 'history':
      if (folded.title === undefined) setTitle(folded, firstWords(entry));
      if (entry.type === 'history') folded.lastCause = 'history';
      break;
    case 'renamed':
      if (typeof entry.title !== 'string') break;
      folded.title = entry.title;
      break;
    case 'run-started':
    case 'run-resumed':
      folded.cycle = 'running';
      break;
    case 'run-suspended':
      folded.cycle = 'suspended';
      break;
    case 'run-stop':
      folded.cycle = 'ended';
      delete folded.lastCause;
      if (typeof entry.cause === 'string') folded.lastCause = entry.cause;
      break;
    default:
  }
  return folded;
}

function firstRow(entry: LogEntry, id: string): ConversationRow {
  const first: FirstEntry = entry.type === 'conversation' ? entry : {};
  return {
    id,
    cwd: typeof first.cwd === 'string' ? first.cwd : '',
    createdAt: finite(first.createdAt) ?? entry.at,
    updatedAt: entry.at,
    turns: 0,
    costUsd: 0,
    ...(typeof first.owner === 'string' && { owner: first.owner }),
    ...(first.parent && { parentId: String(first.parent.conversationId) }),
    length: 0,
    cycle: 'ended',
  };
}

type FirstEntry = Partial<Omit<Extract<LogEntry, { type: 'conversation' }>, 'type'>>;

const TITLE_MAX = 80;

function setTitle(row: ConversationRow, title: string): void {
  if (title !== '') row.title = title;
}

/** The first words of the first message with a text, on one line. A log from elsewhere may hold anything. */
function firstWords(entry: Extract<LogEntry, { type: 'user-message' | 'history' }>): string {
  const contents = entry.type === 'user-message' ? [entry.content] : listOf(entry.messages).map(userContent);
  for (const content of contents) {
    for (const part of listOf(content)) {
      const text = part?.type === 'text' && typeof part.text === 'string' ? part.text : '';
      // Only the beginning is searched, however long the text is. It does not end with half of a character.
      const begin = text.slice(0, 4096).replace(/[\ud800-\udbff]$/, '');
      const words = begin.trim().replace(/\s+/g, ' ');
      if (words !== '') return shortened(words);
    }
  }
  return '';
}

const userContent = (message: { role: string; content?: StoredPart[] } | null): StoredPart[] =>
  message?.role === 'user' ? listOf(message.content) : [];

const listOf = <T>(value: readonly T[] | undefined): T[] => (Array.isArray(value) ? value : []);

/** Cut after a word, if one ends near the limit. */
function shortened(words: string): string {
  const letters = [...words.slice(0, 2 * TITLE_MAX)];
  if (letters.length <= TITLE_MAX && words.length <= 2 * TITLE_MAX) return words;
  const cut = letters.slice(0, TITLE_MAX - 1).join('');
  const space = cut.lastIndexOf(' ');
  return `${space > TITLE_MAX / 2 ? cut.slice(0, space) : cut}…`;
}

function finite(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}
