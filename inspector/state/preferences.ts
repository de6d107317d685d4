/**
 * What a person set for this page, kept between visits: theme, sizes of the panels, single-letter keys. Rule: what is kept
 * is read before it counts, and a browser that keeps nothing changes nothing else.
 */
import { signal } from '@preact/signals';

const PREFIX = 'runchart-';

function kept(name: string): string | null {
  try {
    return localStorage.getItem(`${PREFIX}${name}`);
  } catch {
    return null;
  }
}

function keep(name: string, value: string): void {
  try {
    localStorage.setItem(`${PREFIX}${name}`, value);
  } catch {
    // It holds until the page is closed.
  }
}

const storedTheme = (): 'dark' | 'light' | undefined => {
  const value = kept('theme');
  return value === 'dark' || value === 'light' ? value : undefined;
};
export const theme = signal(storedTheme());
export function switchTheme(): void {
  const isDark = theme.value ? theme.value === 'dark' : !matchMedia('(prefers-color-scheme: light)').matches;
  theme.value = isDark ? 'light' : 'dark';
  keep('theme', theme.value);
}

/** Without them a page is worked by its buttons, arrows, Home, End, space and Enter: speech and slips hit letters. */
export const lettersAreOn = signal(kept('letters') !== 'off');
export function switchLetters(): void {
  lettersAreOn.value = !lettersAreOn.value;
  keep('letters', lettersAreOn.value ? 'on' : 'off');
}

export type SplitName = 'tree' | 'right' | 'events' | 'dock';
export type Sizes = { readonly [Name in SplitName]?: number };

/** Pixels within which a panel stays of use. */
const BOUNDS: Readonly<Record<SplitName, readonly [least: number, most: number]>> = {
  tree: [160, 480],
  right: [300, 800],
  events: [240, 700],
  dock: [70, 700],
};
/** What the chart, or all that is above the time line, keeps at least. */
const REST = { width: 360, height: 240 };

function storedSizes(): Sizes {
  try {
    const given = JSON.parse(kept('sizes') ?? '{}') as { readonly [name: string]: unknown };
    const names = Object.keys(BOUNDS) as SplitName[];
    return Object.fromEntries(
      names.flatMap((name) => {
        const value = given?.[name];
        const [least, most] = BOUNDS[name];
        return typeof value === 'number' && value >= least && value <= most ? [[name, value]] : [];
      }),
    );
  } catch {
    return {};
  }
}
/** Of the panels that were dragged; the others are as wide as the window's width says. */
export const sizes = signal(storedSizes());

/** `others`: what the panels beside it take. Nothing as `wanted`: as the window's width says. */
export function resize(name: SplitName, wanted: number | undefined, others: number): void {
  const [least, most] = BOUNDS[name];
  const room = name === 'dock' ? innerHeight - REST.height : innerWidth - REST.width;
  const { [name]: _, ...rest } = sizes.value;
  const size = wanted === undefined ? undefined : Math.round(Math.max(least, Math.min(most, room - others, wanted)));
  sizes.value = size === undefined ? rest : { ...rest, [name]: size };
  keep('sizes', JSON.stringify(sizes.value));
}
