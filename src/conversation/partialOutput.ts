/**
 * The final answer of a run while it streams. Rule: each value is what the text so far says, the last one is what the schema
 * accepted, and the end of the run, whatever it is, ends the values without an error.
 */
import { parse } from 'partial-json';
import type { LogEntry } from '../../machines/internal.ts';
import type { Live } from '../live.ts';

/** Models often fence a reply although they were asked not to. */
const FENCE = /^\s*```(?:json)?\s*\n?/i;

/** Undefined where the text is no beginning of JSON. */
function valueSoFar(text: string): { value: unknown } | undefined {
  const bare = text
    .replace(FENCE, '')
    .replace(/\n?```\s*$/, '')
    .trim();
  if (bare === '') return undefined;
  try {
    return { value: parse(bare) };
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
    const written = read && JSON.stringify(read.value);
    if (!read || written === shown) continue;
    shown = written;
    yield read.value;
  }
  const result = await ended;
  if (result.output !== undefined) yield result.output;
}
