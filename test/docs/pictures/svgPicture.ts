/**
 * A picture of the docs as SVG: boxes, texts and arrows in the colours of light and dark. Invariant: the same calls give the
 * same text, and each text is kept with its estimated place, so that a test finds overlaps without a browser.
 */
export type Tone = 'plain' | 'log' | 'model' | 'tool' | 'person' | 'refusal';
export type Font = 'label' | 'title' | 'note' | 'code';
export type Point = readonly [x: number, y: number];
export interface Rect {
  x: number;
  y: number;
  width: number;
  height: number;
}
export interface PlacedText extends Rect {
  text: string;
  font: Font;
  tone: Tone | 'back';
  /** The box that must contain the text. */
  inside?: Rect;
}

/** Wide enough for four columns. On a phone that is 390 pixels wide, a picture keeps 81 % of its size. */
export const WIDTH = 420;

type Colours = Record<'back' | 'text' | 'note' | 'line', string> & Record<Tone, readonly [fill: string, edge: string]>;
export const colours: Record<'light' | 'dark', Colours> = {
  light: {
    back: '#ffffff',
    text: '#16181c',
    note: '#565d68',
    line: '#7d8490',
    plain: ['#f4f5f6', '#a9b0bb'],
    log: ['#e8eefc', '#4663d9'],
    model: ['#f3ebfb', '#8a4fc9'],
    tool: ['#e2f4ec', '#23805f'],
    person: ['#fdf1dc', '#a86a00'],
    refusal: ['#fde9e7', '#c0392b'],
  },
  dark: {
    back: '#0d0e10',
    text: '#eceef1',
    note: '#a9aeb8',
    line: '#868d98',
    plain: ['#191b1f', '#555c67'],
    log: ['#18213d', '#7d95f5'],
    model: ['#271a38', '#b98aeb'],
    tool: ['#11281e', '#4fbf94'],
    person: ['#2f2109', '#e0a33c'],
    refusal: ['#341614', '#f0857a'],
  },
};

/** The size of each font, and the width of its characters as a share of the size, for wide fonts such as DejaVu. */
export const fonts: Record<Font, { size: number; share: number; css: string }> = {
  title: { size: 14, share: 0.63, css: '600 14px system-ui,sans-serif' },
  label: { size: 14, share: 0.58, css: '500 14px system-ui,sans-serif' },
  note: { size: 13.6, share: 0.56, css: '400 13.6px system-ui,sans-serif' },
  code: { size: 13.6, share: 0.61, css: '500 13.6px ui-monospace,Menlo,Consolas,monospace' },
};

function styleSheet(): string {
  const rules = ({ back, text, note, line, ...tones }: Colours): string => {
    const own = Object.entries(tones).map(([tone, [fill, edge]]) => `.${tone}{fill:${fill};stroke:${edge}}`);
    return [
      `.back{fill:${back}}text{fill:${text};stroke:none}.note{fill:${note}}`,
      `.line{stroke:${line}}.head{fill:${line}}`,
      ...own,
    ].join('');
  };
  const faces = Object.entries(fonts).map(([font, { css }]) => `.${font}{font:${css}}`);
  const shapes = '.line{fill:none;stroke-width:1.4}.dashed{stroke-dasharray:5 4}rect{stroke-width:1.2}';
  const dark = `@media(prefers-color-scheme:dark){${rules(colours.dark)}}`;
  return `${faces.join('')}${shapes}\n${rules(colours.light)}\n${dark}`;
}

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
const short = (value: number): string => String(Math.round(value * 10) / 10);

export class SvgPicture {
  readonly texts: PlacedText[] = [];
  readonly boxes: Rect[] = [];
  readonly #title: string;
  readonly #shapes: string[] = [];
  #bottom = 0;

  constructor(title: string) {
    this.#title = title;
  }

  get height(): number {
    return Math.ceil(this.#bottom + 12);
  }

  /** A box whose lines are centred. The first line is the label, and the others are notes. */
  box(x: number, y: number, width: number, height: number, lines: readonly string[], look: BoxLook = {}): Rect {
    const { tone = 'plain', font = 'label', isDashed = false } = look;
    const rect = { x, y, width, height };
    const dashed = isDashed ? ' dashed' : '';
    this.#shapes.push(`<rect class="${tone}${dashed}" x="${x}" y="${y}" width="${width}" height="${height}" rx="6"/>`);
    this.#reach(y + height);
    this.boxes.push(rect);
    const first = y + height / 2 - (lines.length - 1) * 8.5 + 5;
    for (const [index, line] of lines.entries())
      this.text(x + width / 2, first + index * 17, line, {
        anchor: 'middle',
        tone,
        inside: rect,
        font: index === 0 ? font : 'note',
      });
    return rect;
  }

  /** A box around other boxes, with a title in its upper left corner. */
  frame(x: number, y: number, width: number, height: number, title: string, look: BoxLook = {}): void {
    const { tone = 'plain', isDashed = false } = look;
    const dashed = isDashed ? ' dashed' : '';
    this.#shapes.push(
      `<rect class="${tone}${dashed}" style="fill:none" x="${x}" y="${y}" width="${width}" height="${height}" rx="9"/>`,
    );
    this.#reach(y + height);
    if (title !== '') this.text(x + 10, y + 19, title, { font: 'title' });
  }

  text(x: number, y: number, text: string, look: TextLook = {}): void {
    const { font = 'label', anchor = 'start', tone = 'back', inside } = look;
    const { size, share } = fonts[font];
    const width = text.length * size * share;
    const left = { start: x, middle: x - width / 2, end: x - width }[anchor];
    this.texts.push({ text, font, tone, x: left, y: y - size * 0.8, width, height: size, ...(inside && { inside }) });
    const middle = anchor === 'start' ? '' : ` text-anchor="${anchor}"`;
    this.#shapes.push(`<text class="${font}" x="${short(x)}" y="${short(y)}"${middle}>${escaped(text)}</text>`);
    this.#reach(y + 4);
  }

  /** A line through the points, with a head at its end. */
  arrow(points: readonly Point[], look: ArrowLook = {}): void {
    const { isDashed = false, hasHead = true } = look;
    const path = points.map(([x, y], index) => `${index === 0 ? 'M' : 'L'}${short(x)} ${short(y)}`).join('');
    this.#shapes.push(`<path class="line${isDashed ? ' dashed' : ''}" d="${path}"/>`);
    const [[fromX, fromY] = [0, 0], [x, y] = [0, 0]] = points.slice(-2);
    const length = Math.hypot(x - fromX, y - fromY) || 1;
    const [stepX, stepY] = [((x - fromX) / length) * 7, ((y - fromY) / length) * 7];
    const corners = [
      [x, y],
      [x - stepX - stepY / 2, y - stepY + stepX / 2],
      [x - stepX + stepY / 2, y - stepY - stepX / 2],
    ];
    if (hasHead)
      this.#shapes.push(`<path class="head" d="M${corners.map((corner) => corner.map(short).join(' ')).join('L')}Z"/>`);
    for (const [, bottom] of points) this.#reach(bottom);
  }

  /** The first state of a chart, or its end with a ring. */
  dot(x: number, y: number, isEnd = false): void {
    this.#shapes.push(`<circle class="head" cx="${x}" cy="${y}" r="5"/>`);
    if (isEnd) this.#shapes.push(`<circle class="line" cx="${x}" cy="${y}" r="8.5"/>`);
    this.#reach(y + 9);
  }

  toString(): string {
    const { height } = this;
    return [
      `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img">`,
      `<title>${escaped(this.#title)}</title>`,
      `<style>\n${styleSheet()}\n</style>`,
      `<rect class="back" width="${WIDTH}" height="${height}" rx="10"/>`,
      ...this.#shapes,
      '</svg>\n',
    ].join('\n');
  }

  #reach(y: number): void {
    this.#bottom = Math.max(this.#bottom, y);
  }
}

export interface BoxLook {
  tone?: Tone;
  font?: Font;
  isDashed?: boolean;
}
export interface TextLook {
  font?: Font;
  anchor?: 'start' | 'middle' | 'end';
  tone?: Tone | 'back';
  inside?: Rect;
}
export interface ArrowLook {
  isDashed?: boolean;
  hasHead?: boolean;
}
