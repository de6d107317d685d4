/** The drawn pictures of the docs: `npm run drawings` writes them. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { entryKinds } from '../../../machines/log/entryKinds.ts';
import { documentEdges, extraEdges, superstateEdges } from '../../support/documentEdges.ts';
import { documents, read, root } from '../documents.ts';
import { chartPictures } from './chartPictures.ts';
import { conceptPictures } from './conceptPictures.ts';
import { guidePictures } from './guidePictures.ts';
import { colours, fonts, type PlacedText, type Rect, type SvgPicture, type Tone, WIDTH } from './svgPicture.ts';

const charts = Object.entries(chartPictures);
const pictures: [string, SvgPicture][] = [
  ...charts.map(([name, { picture }]): [string, SvgPicture] => [name, picture]),
  ...Object.entries(conceptPictures),
  ...Object.entries(guidePictures),
];
const overlap = (a: Rect, b: Rect): boolean =>
  a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
const contains = (outer: Rect, inner: Rect): boolean =>
  inner.x >= outer.x &&
  inner.y >= outer.y &&
  inner.x + inner.width <= outer.x + outer.width &&
  inner.y + inner.height <= outer.y + outer.height;

describe.each(pictures)('the picture %s', (name, picture) => {
  it('is the one that the program draws', async () => {
    const message = 'the program has changed; `npm run drawings` draws it anew';
    await expect(String(picture), message).toMatchFileSnapshot(join(root, `docs/pictures/${name}.svg`));
  });

  it('keeps each text within the picture and within its box', () => {
    const whole = { x: 4, y: 4, width: WIDTH - 8, height: picture.height - 8 };
    const outside = picture.texts.filter((text) => !contains(text.inside ?? whole, text));
    expect(outside.map(({ text }) => text)).toEqual([]);
  });

  it('has no text over another text or over the edge of a box', () => {
    const pairs = picture.texts.flatMap((text, index) =>
      picture.texts.slice(index + 1).map((other): [PlacedText, PlacedText] => [text, other]),
    );
    expect(pairs.filter(([a, b]) => overlap(a, b)).map(([a, b]) => `${a.text} / ${b.text}`)).toEqual([]);
    const crossed = picture.texts.filter(
      (text) => !text.inside && picture.boxes.some((box) => overlap(box, text) && !contains(box, text)),
    );
    expect(crossed.map(({ text }) => text)).toEqual([]);
    const boxes = picture.boxes.filter((box, index) =>
      picture.boxes.slice(index + 1).some((other) => overlap(box, other)),
    );
    expect(boxes).toEqual([]);
  });

  it('is on a page of the docs, with a description', () => {
    const image = new RegExp(`!\\[[^\\]]{20,}\\]\\([\\w./]*pictures/${name}\\.svg\\)`);
    expect(documents.filter((page) => image.test(read(page))).length).toBeGreaterThan(0);
  });
});

describe.each(charts)('the picture %s', (_, { chart, states, arrows }) => {
  const files = { RUN: 'run', TOOL_CALL: 'toolCall', RESUME_TOOL_CALL: 'resumeToolCall' };

  it('has only states of the chart, letter for letter, and none twice', () => {
    const drawing = read(`docs/diagrams/${files[chart]}.mmd`);
    expect(states.filter((state) => !new RegExp(`\\b${state}\\b`).test(drawing))).toEqual([]);
    expect(new Set(states).size).toBe(states.length);
  });

  it('has all states of the document, and only arrows of the chart', () => {
    const documented = new Set(documentEdges[chart].flat().filter((state) => state !== '[*]'));
    expect([...documented].filter((state) => !states.includes(state))).toEqual([]);
    const general = [...extraEdges[chart], ...superstateEdges[chart]].map(({ edge }) => edge);
    const documentedEdges = [...documentEdges[chart], ...general].map(([from, to]) => `${from} --> ${to}`);
    expect(arrows.map(([from, to]) => `${from} --> ${to}`).filter((arrow) => !documentedEdges.includes(arrow))).toEqual(
      [],
    );
  });
});

it('each entry that a picture names is a kind of entry', () => {
  const codes = pictures.flatMap(([, { texts }]) =>
    texts.filter(({ font }) => font === 'code').map(({ text }) => text),
  );
  const others = /^(\w+Store|serveAgent)\(\)$|^(approve|edit|answer|deny)$/;
  expect(codes.filter((code) => !(code in entryKinds) && !others.test(code))).toEqual([]);
  expect(codes.length).toBeGreaterThan(40);
});

it('texts keep 11 pixels on a page that is 390 pixels wide', () => {
  const [margins, smallest] = [48, Math.min(...Object.values(fonts).map(({ size }) => size))];
  expect((smallest * Math.min(WIDTH, 390 - margins)) / WIDTH).toBeGreaterThanOrEqual(11);
});

describe.each(Object.entries(colours))('the colours of %s', (_, palette) => {
  /** The relative luminance of a colour, as WCAG defines it. */
  const luminance = (colour: string): number => {
    const [red = 0, green = 0, blue = 0] = [1, 3, 5]
      .map((at) => Number.parseInt(colour.slice(at, at + 2), 16) / 255)
      .map((share) => (share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const contrast = (a: string, b: string): number => {
    const [dark = 0, light = 0] = [luminance(a), luminance(b)].sort((one, other) => one - other);
    return (light + 0.05) / (dark + 0.05);
  };
  const tones: Tone[] = ['plain', 'log', 'model', 'tool', 'person', 'refusal'];

  it('every text has a contrast of at least 4.5 on what is below it, and every edge of 3', () => {
    const grounds = [palette.back, ...tones.map((tone) => palette[tone][0])];
    for (const ground of grounds) {
      expect(contrast(palette.text, ground), ground).toBeGreaterThanOrEqual(4.5);
      expect(contrast(palette.note, ground), ground).toBeGreaterThanOrEqual(4.5);
    }
    expect(contrast(palette.line, palette.back)).toBeGreaterThanOrEqual(3);
    for (const tone of tones.filter((each) => each !== 'plain'))
      expect(contrast(palette[tone][1], palette.back), tone).toBeGreaterThanOrEqual(3);
  });
});
