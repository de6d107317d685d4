/**
 * The contrast of the inspector's texts, computed from its stylesheet for both themes. Rule: at least 4.5:1, as WCAG AA
 * requires. A text is a path of elements; `:hover` counts as a class, and a pseudo-element as a child element.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

type Rgb = readonly [number, number, number];
interface Rule {
  readonly path: readonly string[];
  readonly weight: number;
  readonly declared: Readonly<Record<string, string>>;
}

/** The colour that Chromium gives to the text of an empty field. */
const OF_BROWSER = 'placeholder { color: #757575; }';
const css = `${OF_BROWSER}${readFileSync(new URL('../../inspector/style.css', import.meta.url), 'utf8')}`
  .replaceAll(/\/\*[\s\S]*?\*\//g, '')
  .replaceAll(/@(media|keyframes|font-face)[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}/g, '')
  .replaceAll(':hover', '.is-hovered')
  .replaceAll('::', ' ');

const words = (text: string, pattern: RegExp): string[] => text.match(pattern) ?? [];
const rules: Rule[] = [...css.matchAll(/([^{}]+)\{([^{}]*)\}/g)].flatMap(([, selectors = '', body = '']) => {
  const declared = Object.fromEntries(
    [...body.matchAll(/([\w-]+):\s*([^;]+);/g)].map(([, name = '', value = '']) => [name, value]),
  );
  return selectors
    .split(',')
    .map((selector) => selector.trim())
    .filter((selector) => !/[+~:]|\[(?!class)/.test(selector.replace(':root', '')))
    .map((selector) => ({
      path: selector.split(/[\s>]+/),
      weight: words(selector, /[.[]/g).length * 100 + words(selector, /(^|\s)\w/g).length,
      declared,
    }));
});

function isMatch(element: string, compound: string): boolean {
  const [tag = '', ...classes] = element.split('.');
  const [wantedTag = ''] = words(compound, /^[\w-]+/);
  const part = /\[class\*="(.*)"\]/.exec(compound)?.[1];
  return (
    (wantedTag === '' || wantedTag === tag) &&
    words(compound, /\.[\w-]+/g).every((name) => classes.includes(name.slice(1))) &&
    (part === undefined || classes.some((name) => name.includes(part)))
  );
}
const isAlong = (elements: readonly string[], path: readonly string[]): boolean =>
  path.length === 0 ||
  elements.some((element, at) => isMatch(element, path[0] ?? '') && isAlong(elements.slice(at + 1), path.slice(1)));

/** Returns what the rules declare for the last element of a path, without inheritance. */
function declaredFor(elements: readonly string[], name: string): string | undefined {
  const [last = ''] = elements.slice(-1);
  const own = rules.filter(
    ({ path, declared }) =>
      name in declared && isMatch(last, path.at(-1) ?? '') && isAlong(elements.slice(0, -1), path.slice(0, -1)),
  );
  return own.sort((a, b) => a.weight - b.weight).at(-1)?.declared[name];
}

/** Returns the value at the nearest element of a path that has one. Variables are resolved there. */
function inheritedValue(elements: readonly string[], name: string): string | undefined {
  for (let length = elements.length; length > 0; length--) {
    const value = declaredFor(elements.slice(0, length), name);
    if (value === undefined || ['inherit', 'none'].includes(value)) continue;
    const [, variable] = /^var\((--[\w-]+)\)$/.exec(value) ?? [];
    return variable === undefined ? value : inheritedValue([':root', ...elements.slice(0, length)], variable);
  }
  return css.match(new RegExp(`${name}: (light-dark\\(.*\\));`))?.[1];
}

type Theme = 'light' | 'dark';
function colourOf(value: string, theme: Theme): Rgb {
  const hexes = words(value, /#[\da-f]{6}/g);
  const hex = hexes[theme === 'dark' ? hexes.length - 1 : 0] ?? '';
  const [red = Number.NaN, green = Number.NaN, blue = Number.NaN] = [1, 3, 5].map((at) =>
    Number.parseInt(hex.slice(at, at + 2), 16),
  );
  return [red, green, blue];
}

function luminance(colour: Rgb): number {
  const [red = 0, green = 0, blue = 0] = colour
    .map((part) => part / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** `on`: the path of the shape below a text of a drawing. */
function contrast(text: string, theme: Theme, on?: string): number {
  const elements = ['body', ...text.split(' ')];
  const ground =
    on === undefined ? inheritedValue(elements, 'background') : inheritedValue(['body', ...on.split(' ')], 'fill');
  const below = colourOf(ground ?? '', theme);
  const own = colourOf(inheritedValue(elements, on === undefined ? 'color' : 'fill') ?? '', theme);
  const opacity = elements.reduce(
    (product, _, at) => product * Number(declaredFor(elements.slice(0, at + 1), 'opacity') ?? 1),
    1,
  );
  const seen = own.map((part, at) => part * opacity + (below[at] ?? 0) * (1 - opacity)) as unknown as Rgb;
  const [darker = 0, lighter = 0] = [luminance(seen), luminance(below)].sort((a, b) => a - b);
  return (lighter + 0.05) / (darker + 0.05);
}

const TREE = ['span.tree-name', 'span.fact', 'b.mono', 'b.tree-name'].flatMap((part) =>
  ['', '.is-hovered', '.is-selected', '.is-later', '.is-selected.is-later', '.is-selected.is-later.is-hovered'].map(
    (look) => `div.tree-row${look} ${part}`,
  ),
);
const EVENTS = ['seq', 'type', 'words', 'since'].flatMap((part) =>
  ['', '.is-at', '.is-later', '.is-grid', '.is-grid.is-at', '.is-broken', '.is-streamed'].flatMap((look) =>
    ['', '.is-hovered'].map((hover) => `li.event${look} button.event-row${hover} span.${part}`),
  ),
);
const TONES = ['run', 'wait', 'done', 'fail', 'stop', 'none'].map((tone) => `span.pill.tone-${tone}`);
const PLACES = ['label.filter', 'form.send', 'form.give', 'div.actions'].map((form) => `${form} input placeholder`);
const OTHERS = [
  ...['span.pill.past', 'span.pill.past span.quiet', 'span.live.is-on', 'span.live', 'button.button.primary kbd'],
  ...['button.crumb.is-selected', 'button.crumb.is-hovered', 'div.tabs button', 'div.tabs button.is-on'],
  ...['button.quiet-button.is-hovered', 'footer.status-bar', 'p.panel-empty', 'div.decision p.foot', 'p.refused'],
  ...['dl.changes dd.removed', 'dl.changes dd.added', 'dl.changes dt', 'p.waits-head', 'div.said span.flag'],
  ...['div.editor div.removed', 'div.editor div.removed before', 'div.editor div.added before', 'div.editor p.refused'],
  ...['aside.help dl dd', 'aside.help dl dt kbd', 'aside.help dl.is-off dd', 'aside.help dl.is-off dt kbd'],
  ...['section.decision header span', 'div.event-detail div.field span', 'dl.fields dt', 'div.accepted span.guard'],
];
/** Texts of drawings, and the shapes below them. */
const DRAWN: [string, string][] = [
  ['g.state text.name', 'g.state rect.box'],
  ['g.state.is-entered text.name', 'g.state.is-entered rect.box'],
  ['g.compound text', 'g.compound rect'],
  ['div.time-line g.bar.is-later text', 'g.bar.is-model rect'],
  ['div.time-line g.bar.is-later text', 'g.bar.is-person rect'],
  ['div.time-line g.bar.is-later text', 'g.bar rect'],
];

describe.each(['light', 'dark'] as const)('the inspector in the %s theme', (theme) => {
  it.each([...TREE, ...EVENTS, ...TONES, ...PLACES, ...OTHERS])('%s has enough contrast', (text) => {
    expect(contrast(text, theme)).toBeGreaterThanOrEqual(4.5);
  });

  it.each(DRAWN)('%s has enough contrast over %s', (text, shape) => {
    expect(contrast(text, theme, shape)).toBeGreaterThanOrEqual(4.5);
  });
});
