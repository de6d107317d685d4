/**
 * The final answer of a run while it streams. Rule: each value comes from the text so far, and the last one from the schema. The values
 * end with the run, and never with an error.
 */
import { Allow, parse } from 'partial-json';
import type { LogEntry } from '../../machines/internal.ts';
import { jsonNumber } from '../json.ts';
import type { Live } from '../live.ts';

/** Models often fence a reply although they were asked not to. */
const FENCE = /^\s*```(?:json)?\s*\n?/i;

/** The package reads `NaN` and `Infinity` too, which are not JSON. */
const UNFINISHED = Allow.ALL & ~(Allow.NAN | Allow.INF);
const jsonOnly = (_key: string, value: unknown): unknown => (typeof value === 'number' ? jsonNumber(value) : value);

/** The value and its JSON text. Undefined where the text is no beginning of JSON. */
function valueSoFar(text: string): { value: unknown; written: string } | undefined {
  const bare = text
    .replace(FENCE, '')
    .replace(/\n?```\s*$/, '')
    .trim();
  if (bare === '') return undefined;
  try {
    const value: unknown = parse(bare, UNFINISHED);
    return { value, written: JSON.stringify(value, jsonOnly) };
  } catch {
    return undefined;
  }
}

/** A long text is read again only after it has grown by this share, so that the work stays in proportion to its length. */
const GROWTH = 1 / 64;

export async function* partialOutputOf(
  run: AsyncIterable<LogEntry | Live>,
  ended: Promise<{ output?: unknown }>,
): AsyncGenerator<unknown, void> {
  let text = '';
  let readAt = 0;
  let shown: string | undefined;
  for await (const item of run) {
    if (item.type === 'reset' || item.type === 'model-reply') {
      text = '';
      readAt = 0;
      continue;
    }
    if (item.type !== 'text-delta' || item.path) continue;
    text += item.text;
    if (text.length < readAt * (1 + GROWTH)) continue;
    readAt = text.length;
    const read = valueSoFar(text);
    if (!read || read.written === shown) continue;
    shown = read.written;
    yield read.value;
  }
  const result = await ended;
  if (result.output !== undefined) yield result.output;
}
