/**
 * Draws the cells of a terminal as SVG. Invariant: each run of text has its place and its length in the grid, so columns
 * stay aligned in any font.
 */
const [WIDTH, HEIGHT, FONT] = [9, 20, 15];
const [PAD_X, PAD_TOP, PAD_BOTTOM] = [14, 12, 14];
/** The characters that fonts for programs have in one width. */
const ALIGNED = /^[ -~·…−]$/;
const COLORS = {
  ...{ red: '#ff7b72', green: '#56d364', yellow: '#e3b341', blue: '#79c0ff' },
  ...{ magenta: '#d2a8ff', cyan: '#39c5cf', white: '#e6edf3', black: '#484f58' },
};
const CSS = [
  'text{font:15px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#e6edf3}',
  '.b{font-weight:700}.d{opacity:.62}.i{font-style:italic}.u{text-decoration:underline}.n{fill:#0d1117}',
  ...Object.entries(COLORS).map(([name, color]) => `.${name[0]}${name[1]}{fill:${color}}`),
].join('');

const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

const classesOf = ({ color, bold, dim, italic, underline, inverse }) =>
  [
    ...(color === '' || inverse ? [] : [color.slice(0, 2)]),
    ...(bold ? ['b'] : []),
    ...(dim ? ['d'] : []),
    ...(italic ? ['i'] : []),
    ...(underline ? ['u'] : []),
    ...(inverse ? ['n'] : []),
  ].join(' ');

/** Neighbouring cells of one style. A character that fonts may draw wider or narrower is alone. */
function runsOf(cells) {
  const runs = [];
  for (let column = 0; column < cells.length; column += 1) {
    const cell = cells[column];
    if (!cell || cell.text === '') continue;
    const last = runs.at(-1);
    const joins =
      last &&
      last.style === cell.style &&
      last.column + last.text.length === column &&
      ALIGNED.test(cell.text) &&
      ALIGNED.test(last.text.at(-1));
    if (joins) last.text += cell.text;
    else runs.push({ column, text: cell.text, style: cell.style });
  }
  return runs;
}

/** SVG joins spaces, unless they do not break. */
const spaced = (text) => text.replaceAll(/ {2,}/g, (spaces) => '\u00a0'.repeat(spaces.length));

function drawnRun({ column, text, style }, row) {
  const shown = text.trim();
  const start = column + text.length - text.trimStart().length;
  const [x, y] = [PAD_X + start * WIDTH, PAD_TOP + row * HEIGHT];
  const parts = [];
  if (style.inverse) {
    const [fill, width] = [COLORS[style.color] ?? '#e6edf3', text.length * WIDTH];
    const left = PAD_X + column * WIDTH;
    parts.push(`<rect x="${left}" y="${y + 1}" width="${width}" height="${HEIGHT - 2}" fill="${fill}"/>`);
  }
  if (shown === '') return parts.join('');
  const kind = classesOf(style);
  const length = shown.length > 1 ? ` textLength="${shown.length * WIDTH}"` : '';
  parts.push(
    `<text${kind === '' ? '' : ` class="${kind}"`} x="${x}" y="${y + FONT}"${length}>${escaped(spaced(shown))}</text>`,
  );
  return parts.join('');
}

/** Empty rows at the end are left out. `label`: the content of the picture, for readers who do not see it. */
export function terminalPicture({ lines: all, cursor }, columns, label) {
  const lines = all.slice(
    0,
    1 +
      Math.max(
        cursor.row,
        all.findLastIndex((cells) => cells.length > 0),
      ),
  );
  const width = columns * WIDTH + 2 * PAD_X;
  const height = lines.length * HEIGHT + PAD_TOP + PAD_BOTTOM;
  const rows = lines.map((cells, row) =>
    runsOf(cells)
      .map((run) => drawnRun(run, row))
      .join(''),
  );
  const [x, y] = [PAD_X + cursor.column * WIDTH, PAD_TOP + cursor.row * HEIGHT];
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escaped(label)}">
<style>${CSS}</style>
<rect width="${width}" height="${height}" rx="8" fill="#0d1117"/>
${rows.filter((row) => row !== '').join('\n')}
<rect x="${x}" y="${y + 1}" width="${WIDTH}" height="${HEIGHT - 2}" fill="#e6edf3" opacity=".55"/>
</svg>
`;
}
