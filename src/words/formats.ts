/**
 * Numbers, times, arguments and content as short text for a person. Invariant: `oneLine` and `firstLine` return a single line.
 */
import type { Json } from '../../machines/vocabulary.ts';
import { beginning, printableLine, shortened } from '../printable.ts';

/** From these milliseconds on, rounding leads to a whole second and to a whole minute. */
const [A_SECOND, A_MINUTE] = [999.5, 59_950];

export function duration(ms: number): string {
  if (ms < A_SECOND) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < A_MINUTE) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  const minutes = Math.round(ms / 60_000);
  return minutes < 48 * 60
    ? `${Math.floor(minutes / 60)} h ${minutes % 60} min`
    : `${Math.round(ms / 86_400_000)} days`;
}

/** Formats a time difference for a column. */
export const since = (ms: number): string =>
  ms <= 0 ? '' : `+${ms < A_MINUTE ? duration(ms).replace(' ', '') : duration(ms)}`;

// Made once, because `toLocaleString` makes one for each number.
const numbers = new Intl.NumberFormat('en-US');
export const count = (value: number): string => numbers.format(value);
/** Null: the price of a call is unknown. */
export const cost = (usd: number | null): string => {
  if (usd === null) return 'cost unknown';
  return usd === 0 ? '$0' : `$${usd < 1 ? usd.toFixed(4) : usd.toFixed(2)}`;
};
export const plural = (value: number, word: string): string => `${count(value)} ${word}${value === 1 ? '' : 's'}`;

/** The whole text as one line. */
export const oneLine = (text: string, most = 160): string => {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length > most ? `${beginning(line, most)}…` : line;
};

/** Returns the first line, marked if there are more. */
export function firstLine(text: string, most: number): string {
  const line = shortened(text.split(/\r?\n/, 1)[0] ?? '', most);
  return text.includes('\n') && !line.endsWith('…') ? `${line} …` : line;
}

interface ShownPart {
  type?: string;
  text?: string;
  name?: string;
  mediaType?: string;
}

function partText({ type, text = '', name, mediaType }: ShownPart): string {
  if (type === 'text') return text;
  return type === 'file' ? `[${printableLine(name ?? mediaType ?? 'file')}]` : '[image]';
}

/** The texts of a message's content; an image or a file is named. */
export const shownText = (content: unknown): string =>
  Array.isArray(content) ? content.map((part: ShownPart) => partText(part)).join('\n') : '';

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
