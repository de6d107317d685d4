/** Numbers, times and entries as words. Invariant: the result is short text. */
import type { Json, LogEntry } from '../../machines/vocabulary.ts';
import type { IconName } from '../view/marks.tsx';
import { textOf } from './facts.ts';

export function duration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
  const hours = Math.floor(ms / 3_600_000);
  return hours < 48 ? `${hours} h ${Math.round((ms % 3_600_000) / 60_000)} min` : `${Math.round(hours / 24)} days`;
}

/** Formats a time difference for a column. */
export const since = (ms: number): string =>
  ms <= 0 ? '' : ms < 1000 ? `+${Math.round(ms)}ms` : ms < 60_000 ? `+${(ms / 1000).toFixed(1)}s` : `+${duration(ms)}`;

// Made once, because `toLocaleString` makes one for each number.
const numbers = new Intl.NumberFormat('en-US');
export const count = (value: number): string => numbers.format(value);
export const cost = (usd: number): string => (usd === 0 ? '$0' : `$${usd < 1 ? usd.toFixed(4) : usd.toFixed(2)}`);
export const plural = (value: number, word: string): string => `${count(value)} ${word}${value === 1 ? '' : 's'}`;
export const oneLine = (text: string, most = 160): string => {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length > most ? `${line.slice(0, most)}…` : line;
};

const TELLING = ['file_path', 'file_name', 'command', 'pattern', 'path', 'query', 'url', 'task', 'name'];

/** Returns the most informative argument of a call, in few characters. */
export function telling(args: Json, most = 80): string {
  if (args === null) return '';
  if (typeof args !== 'object') return oneLine(String(args), most);
  if (Array.isArray(args)) return oneLine(JSON.stringify(args), most);
  const named = TELLING.find((key) => typeof args[key] === 'string' && args[key] !== '');
  if (named !== undefined) {
    const place = named === 'pattern' && typeof args.path === 'string' ? ` in ${args.path}` : '';
    return oneLine(`${args[named] as string}${place}`, most);
  }
  const texts = Object.values(args).filter((value) => typeof value !== 'object');
  const lists = Object.entries(args).filter(([, value]) => Array.isArray(value));
  if (texts.length === 0 && lists.length > 0)
    return lists.map(([key, list]) => `${(list as Json[]).length} ${key}`).join(', ');
  const shortest = texts.map(String).sort((a, b) => a.length - b.length)[0];
  return oneLine(shortest ?? (Object.keys(args).length === 0 ? '' : JSON.stringify(args)), most);
}

interface Summary {
  readonly icon: IconName;
  readonly words: string;
}

/** Returns the words of an entry's row after its type. */
export function summary(entry: LogEntry): Summary {
  switch (entry.type) {
    case 'conversation':
      return { icon: 'none', words: `schema ${entry.schema}` };
    case 'run-started':
      return { icon: 'flag', words: '' };
    case 'run-resumed':
      return { icon: 'flag', words: 'goes on' };
    case 'user-message':
      return { icon: 'person', words: oneLine(textOf(entry.content)) };
    case 'agent-output': {
      const { item } = entry;
      if (item.type === 'tool-call') return { icon: 'model', words: `${item.name} ${telling(item.args)}` };
      return { icon: 'model', words: oneLine(item.text) };
    }
    case 'model-reply': {
      const { usage } = entry;
      const words = `${entry.finish} · ${count(usage?.inputTokens ?? 0)} in · ${count(usage?.outputTokens ?? 0)} out`;
      return { icon: 'model', words };
    }
    case 'checkpoint':
      return { icon: 'checkpoint', words: entry.boundary };
    case 'tool-started':
      return { icon: 'started', words: entry.callId };
    case 'tool-result':
      return { icon: outcomeIcon(entry.outcome), words: `${entry.callId} ${entry.outcome}` };
    case 'tool-suspended':
      return { icon: 'waiting', words: `${entry.callId} ${entry.reason}` };
    case 'run-suspended':
      return { icon: 'waiting', words: entry.waiting.join(', ') };
    case 'run-stop':
      return {
        icon: entry.reason === 'completed' ? 'done' : entry.reason === 'interrupted' ? 'cancelled' : 'failed',
        words: entry.cause && entry.cause !== 'end_turn' ? `${entry.reason} · ${entry.cause}` : entry.reason,
      };
    case 'decision': {
      const { decision, callId } = entry;
      const icon = decision.action === 'deny' ? 'cancelled' : 'person';
      return { icon, words: `${callId} ${decision.action}${decision.by === undefined ? '' : ` by ${decision.by}`}` };
    }
    default:
      return other(entry);
  }
}

const outcomeIcon = (outcome: string): IconName =>
  outcome === 'succeeded' ? 'done' : outcome === 'failed' ? 'failed' : 'cancelled';

function other(entry: LogEntry): Summary {
  const { seq: _, at: __, conversationId: ___, runId: ____, type: _____, ...fields } = entry;
  const values = Object.values(fields).filter((value) => typeof value === 'string' || typeof value === 'number');
  const words = oneLine(values.join(' · ')) || oneLine(JSON.stringify(fields));
  switch (entry.type) {
    case 'diagnostic':
    case 'notice':
      return { icon: 'failed', words };
    case 'sub-agent':
      return { icon: 'branch', words };
    case 'message-queued':
      return {
        icon: 'person',
        words: `${entry.kind === 'steer' ? 'steer' : 'follow-up'} · ${oneLine(textOf(entry.content))}`,
      };
    case 'message-returned':
      return { icon: 'person', words: entry.why };
    case 'model-retry':
      return { icon: 'model', words: oneLine(`attempt ${entry.attempt} · ${entry.model} · ${entry.reason}`) };
    case 'compaction':
    case 'context-warning':
      return { icon: 'model', words };
    default:
      return { icon: 'box', words };
  }
}
