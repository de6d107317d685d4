/**
 * A chart as a standalone SVG for documents, with the layout of the inspector's page but no run. Invariant: it
 * follows the reader's color scheme, and its text is escaped.
 */
import type { Chart } from '../chart.ts';
import type { ChartLayout, DrawnArrow, DrawnState } from './chartDrawing.ts';
import type { Point } from './elkLevel.ts';
import { drawnBox, HEIGHT, type LabelPlace, placedLabels } from './labels.ts';

const STYLE = `
text{font:500 12px Inter,system-ui,sans-serif;fill:#16181c}
.back{fill:#f7f7f8}.box{fill:#fff;stroke:#7d8490}.open{fill:#fff;stroke:#adb3bd}.line{fill:none;stroke:#7d8490;stroke-width:1.2}
.head{fill:#7d8490}.pip{fill:none;stroke:#7d8490}.label{font:500 9.5px "JetBrains Mono",ui-monospace,monospace;fill:#666d78;paint-order:stroke;stroke:#fff;stroke-width:4px}
.outer{fill:#4b515c;font-size:11px}
@media (prefers-color-scheme:dark){text{fill:#eceef1}.back{fill:#0d0e10}.box{fill:#191b1f;stroke:#6b717c}.open{fill:#121316;stroke:#474d57}
.line{stroke:#6b717c}.head{fill:#6b717c}.pip{stroke:#6b717c}.label{fill:#868c97;stroke:#121316}.outer{fill:#a9aeb8}}`;

const escaped = (text: string): string =>
  text.replace(/[&<>"']/g, (letter) => `&#${letter.codePointAt(0)};`).replace(/[^\t\n\r -\uFFFD]/g, '');

const MARGIN = 12;
const HEAD = 5.5;

function head(points: readonly Point[]): string {
  const [x, y] = points.at(-1) ?? [0, 0];
  const [px, py] = [...points].reverse().find(([a, b]) => Math.abs(a - x) + Math.abs(b - y) > 0.5) ?? [x, y - 1];
  const length = Math.hypot(x - px, y - py);
  const [ux, uy] = [(x - px) / length, (y - py) / length];
  const [bx, by] = [x - ux * HEAD, y - uy * HEAD];
  const half = HEAD / 2;
  return `M${x} ${y}L${bx - uy * half} ${by + ux * half}L${bx + uy * half} ${by - ux * half}Z`;
}

function arrowSvg({ from, points }: DrawnArrow, place: LabelPlace | undefined): string {
  const line = `<path class="line" d="M${points.map(([x, y]) => `${x} ${y}`).join('L')}"/><path class="head" d="${head(points)}"/>`;
  const [x, y] = points[0] ?? [0, 0];
  const dot = from === undefined ? `<circle class="head" cx="${x}" cy="${y}" r="4.2"/>` : '';
  const texts = place?.lines.map(
    (text, index) => `<text class="label" x="${place.x}" y="${place.y + index * HEIGHT}">${escaped(text)}</text>`,
  );
  return line + dot + (texts ?? []).join('');
}

function stateSvg(state: DrawnState, children: number): string {
  const { x, y, width, height, shape, key } = state;
  if (shape === 'end') {
    const [cx, cy] = [x + width / 2, y + height / 2];
    return `<circle class="box" cx="${cx}" cy="${cy}" r="7.6"/><circle class="head" cx="${cx}" cy="${cy}" r="3.4"/>`;
  }
  const top = shape === 'folded' ? y + 16 : y + height / 2 + 4;
  const pips = Array.from({ length: Math.min(children, 8) }, (_, index) => {
    return `<rect class="pip" x="${x + 10.5 + index * 9.5}" y="${y + 24.5}" width="6" height="6" rx="1.2"/>`;
  });
  const box = `<rect class="box" x="${x}" y="${y}" width="${width}" height="${height}" rx="5.5"/>`;
  return `${box}<text x="${x + 10}" y="${top}">${escaped(key)}</text>${shape === 'folded' ? pips.join('') : ''}`;
}

export function chartSvg(chart: Chart, layout: ChartLayout): string {
  const { states, arrows } = layout;
  const { x, width, height } = drawnBox(layout);
  const places = placedLabels(layout);
  const counts = new Map<string, number>();
  const count = (state: Chart['root']): void => {
    counts.set(state.id, state.states.length);
    for (const child of state.states) count(child);
  };
  count(chart.root);
  const open = states.filter(({ shape }) => shape === 'open');
  const closed = states.filter(({ shape }) => shape !== 'open');
  const size = `${width + 2 * MARGIN} ${height + 2 * MARGIN}`;
  const [w, h] = size.split(' ');
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${x - MARGIN} ${-MARGIN} ${size}" width="${w}" height="${h}" role="img">`,
    `<title>${escaped(chart.name)}</title><style>${STYLE}</style>`,
    `<rect class="back" x="${x - MARGIN}" y="${-MARGIN}" width="${w}" height="${h}"/>`,
    ...open.map(
      ({ x, y, width: wide, height: high, key }) =>
        `<rect class="open" x="${x}" y="${y}" width="${wide}" height="${high}" rx="9"/><text class="outer" x="${x + 11}" y="${y + 16.5}">${escaped(key)}</text>`,
    ),
    ...arrows.map((arrow) => arrowSvg(arrow, places.get(arrow))),
    ...closed.map((state) => stateSvg(state, counts.get(state.id) ?? 0)),
    '</svg>',
    '',
  ].join('\n');
}
