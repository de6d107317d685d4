/**
 * A list as a tool's answer. Rule: it is bounded in lines and bytes, and says so where it is cut.
 */
export const LISTED_MAX = 1_000;
const BYTES_MAX = 200 * 1_024;

/** The lines one below the other, `empty` where there are none, then each note in brackets. */
export function listing(
  lines: readonly string[],
  options: { empty: string; narrow: string; notes?: string[] },
): string {
  const shown: string[] = [];
  let bytes = 0;
  for (const line of lines) {
    bytes += Buffer.byteLength(line) + 1;
    if (shown.length === LISTED_MAX || bytes > BYTES_MAX) break;
    shown.push(line);
  }
  const notes = [...(options.notes ?? [])];
  if (shown.length === 0) notes.unshift(options.empty);
  if (shown.length < lines.length)
    notes.push(`cut: the first ${shown.length} are shown and there are more; ${options.narrow}`);
  return [...shown, ...notes.map((note) => `[${note}]`)].join('\n');
}
