/**
 * A person's settings for this page, stored between visits: theme, panel sizes, single-letter keys. Invariant: stored
 * values are validated, and a browser without storage works too.
 */
import { signal } from '@preact/signals';

const PREFIX = 'runchart-';

function readStored(name: string): string | null {
  try {
    return localStorage.getItem(`${PREFIX}${name}`);
  } catch {
    return null;
  }
}

function store(name: string, value: string): void {
  try {
    localStorage.setItem(`${PREFIX}${name}`, value);
  } catch {
    // Without storage, the setting lasts until the page is closed.
  }
}

const storedTheme = (): 'dark' | 'light' | undefined => {
  const value = readStored('theme');
  return value === 'dark' || value === 'light' ? value : undefined;
};
export const theme = signal(storedTheme());
export function switchTheme(): void {
  const isDark = theme.value ? theme.value === 'dark' : !matchMedia('(prefers-color-scheme: light)').matches;
  theme.value = isDark ? 'light' : 'dark';
  store('theme', theme.value);
}

/**
 * Without single-letter keys the page works with buttons, arrows, Home, End, space and Enter. This prevents accidental
 * actions by speech input or a slip.
 */
export const lettersAreOn = signal(readStored('letters') !== 'off');
export function switchLetters(): void {
  lettersAreOn.value = !lettersAreOn.value;
  store('letters', lettersAreOn.value ? 'on' : 'off');
}

export type SplitName = 'tree' | 'right' | 'events' | 'dock';
export type Sizes = { readonly [Name in SplitName]?: number };

/** The useful sizes of each panel in pixels. */
const BOUNDS: Readonly<Record<SplitName, readonly [least: number, most: number]>> = {
  tree: [160, 480],
  right: [300, 800],
  events: [240, 700],
  dock: [70, 700],
};
/** The smallest size of the chart, and of the area above the time line. */
const REST = { width: 360, height: 240 };

function storedSizes(): Sizes {
  try {
    const stored = JSON.parse(readStored('sizes') ?? '{}') as { readonly [name: string]: unknown };
    const names = Object.keys(BOUNDS) as SplitName[];
    return Object.fromEntries(
      names.flatMap((name) => {
        const value = stored?.[name];
        const [least, most] = BOUNDS[name];
        return typeof value === 'number' && value >= least && value <= most ? [[name, value]] : [];
      }),
    );
  } catch {
    return {};
  }
}
/** Sizes of the panels that were dragged. The others depend on the window's width. */
export const sizes = signal(storedSizes());

/** `others` is the size of the panels beside it. If `requestedSize` is undefined, the window's width decides. */
export function resize(name: SplitName, requestedSize: number | undefined, others: number): void {
  const [least, most] = BOUNDS[name];
  const room = name === 'dock' ? innerHeight - REST.height : innerWidth - REST.width;
  const { [name]: _, ...rest } = sizes.value;
  const size =
    requestedSize === undefined ? undefined : Math.round(Math.max(least, Math.min(most, room - others, requestedSize)));
  sizes.value = size === undefined ? rest : { ...rest, [name]: size };
  store('sizes', JSON.stringify(sizes.value));
}
