/** A table in Markdown, with columns of equal width. */
export type Cells = readonly string[];

/** A pipe inside a cell would end it. */
const cellText = (text: string): string => text.replaceAll('|', '\\|');

/** A table in Markdown. The first row is the head. */
export function tableOf([head, ...rows]: readonly Cells[]): string {
  const lines = [head ?? [], ...rows].map((row) => row.map(cellText));
  const widths = (lines[0] ?? []).map((_, column) =>
    Math.max(3, ...lines.map((line) => [...(line[column] ?? '')].length)),
  );
  const lineOf = (cells: Cells, pad: string): string =>
    `| ${widths.map((width, column) => (cells[column] ?? '').padEnd(width, pad)).join(' | ')} |`;
  const [first = [], ...others] = lines;
  return [lineOf(first, ' '), lineOf([], '-'), ...others.map((line) => lineOf(line, ' '))].join('\n');
}
