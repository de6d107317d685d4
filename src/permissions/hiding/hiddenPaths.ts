/**
 * Finds the files that path rules hide from a command in the sandbox. Rule: a file is hidden if a rule matches its path
 * or a path that leads to it through links. A hidden file stays hidden after the command. Therefore a directory that a
 * rule names cannot be moved to a path which the rule does not match.
 */
import type { Dirent } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type FoundPlace, placed } from '../../tools/coding/sandbox/sandboxPlaces.ts';
import { isInside } from '../../tools/coding/workspace.ts';
import type { PathPattern, Surroundings } from '../pathRules.ts';
import { PatternSteps, type Steps } from './patternSteps.ts';

/** The most entries that are searched, and the most places that are hidden. */
const MOST = { entries: 200_000, hidden: 2_000 } as const;

export interface HiddenPlaces {
  /** Absolute paths, links resolved. A hidden directory hides everything below it. */
  hide: string[];
  /** Directories that rules name and that lead to hidden files. They must not be moved. */
  hold: string[];
}

/**
 * Finds what the patterns hide now, below the working directory and below the outside directories that they name.
 * Ignored files and dotfiles count, and the targets of links that the patterns name. Returns undefined if a directory
 * is too large to search, or if too many paths are hidden. The search below a directory that contains the working
 * directory ends there instead.
 */
export async function hiddenPaths(
  patterns: readonly PathPattern[],
  surroundings: Surroundings,
  most: { entries: number; hidden: number } = MOST,
): Promise<HiddenPlaces | undefined> {
  const { root } = surroundings;
  const around = { ...surroundings, cwd: root };
  const search = new HiddenSearch(patterns, around, most);
  const prefixes = patterns.flatMap((pattern) => prefixOf(pattern, around) ?? []);
  const isAbove = (prefix: string): boolean => prefix !== root && isInside(prefix, root);
  const beginnings = patterns.length > 0 ? [root, ...prefixes.filter((prefix) => !isInside(root, prefix))] : [];
  if (!(await search.searchBelow(beginnings.filter((prefix) => !isAbove(prefix))))) return undefined;
  await search.searchBeside(prefixes.filter(isAbove));
  const hide = [...search.hidden];
  return { hide, hold: await heldFor(prefixes, hide, root) };
}

/** A directory to search: its path as the names on the way spell it, and with links resolved. */
interface Stop {
  spelled: string;
  real: string;
  steps: Steps;
}

/** They contain no files of a person, and the sandbox has its own. */
const SYSTEM_VIEWS: readonly string[] = ['/proc', '/sys', '/dev'];
/** Programs and libraries. Many projects contain a link to one, and no command runs without them. */
const PROGRAMS: readonly string[] = [
  ...['bin', 'sbin', 'lib', 'lib32', 'lib64', 'libx32'].flatMap((name) => [`/${name}`, `/usr/${name}`]),
  ...['/usr/libexec', '/usr/share', '/usr/local/bin', '/usr/local/lib', '/nix/store', '/System', ...SYSTEM_VIEWS],
];

class HiddenSearch {
  readonly hidden = new Set<string>();
  readonly #patterns: readonly PathPattern[];
  readonly #around: Surroundings;
  readonly #most: { entries: number; hidden: number };
  readonly #steps: PatternSteps;
  /** The real paths of visited directories, with the steps there. */
  readonly #visited = new Set<string>();
  #entryCount = 0;

  constructor(patterns: readonly PathPattern[], around: Surroundings, most: { entries: number; hidden: number }) {
    this.#patterns = patterns;
    this.#around = around;
    this.#most = most;
    this.#steps = new PatternSteps(patterns, around);
  }

  /** False if there are too many entries or hidden places. */
  async searchBelow(beginnings: readonly string[]): Promise<boolean> {
    const rest = await this.#stopsAt(beginnings);
    for (let stop = rest.pop(); stop !== undefined; stop = rest.pop()) {
      const next = await this.#visit(stop, Number.POSITIVE_INFINITY);
      if (next === undefined || this.hidden.size > this.#most.hidden) return false;
      rest.push(...next);
    }
    return this.hidden.size <= this.#most.hidden;
  }

  /** Searches the nearest directories first, until there are too many entries or hidden places. */
  async searchBeside(beginnings: readonly string[]): Promise<void> {
    const rest = await this.#stopsAt(beginnings);
    for (let stop = rest.shift(); stop !== undefined; stop = rest.shift()) {
      // The working directory was searched before.
      if (stop.spelled === this.#around.root) continue;
      const next = await this.#visit(stop, this.#most.hidden);
      if (next === undefined) return;
      rest.push(...next);
    }
  }

  async #stopsAt(beginnings: readonly string[]): Promise<Stop[]> {
    const stops = beginnings.map(async (spelled) => {
      const place = await placed(spelled);
      return place && this.#stopAt(spelled, place, this.#steps.at(spelled));
    });
    return (await Promise.all(stops)).filter((stop) => stop !== undefined);
  }

  /** The directories to search next; undefined if there are too many entries, or as many hidden places as `hiddenMax`. */
  async #visit({ spelled, real, steps }: Stop, hiddenMax: number): Promise<Stop[] | undefined> {
    const key = `${real}\0${JSON.stringify(steps)}`;
    if (this.#visited.has(key)) return [];
    this.#visited.add(key);
    const entries = await readdir(real, { withFileTypes: true }).catch(() => []);
    this.#entryCount += entries.length;
    if (this.#entryCount > this.#most.entries) return undefined;
    const places = await Promise.all(entries.map((entry) => this.#placeOf(entry, spelled, real, steps)));
    const stops: Stop[] = [];
    for (const [at, { name }] of entries.entries()) {
      const place = places[at];
      const stop = place && this.#stopAt(join(spelled, name), place, this.#steps.after(steps, name));
      if (stop) stops.push(stop);
      if (this.hidden.size >= hiddenMax) return undefined;
    }
    return stops;
  }

  /** The place that an entry leads to. Undefined for a link that no pattern names. */
  #placeOf(entry: Dirent, spelled: string, real: string, steps: Steps): FoundPlace | Promise<FoundPlace | undefined> {
    const path = join(real, entry.name);
    if (!entry.isSymbolicLink()) return { path, isDirectory: entry.isDirectory() };
    return this.#targetOf(join(spelled, entry.name), path, this.#steps.after(steps, entry.name));
  }

  async #targetOf(spelled: string, link: string, steps: Steps): Promise<FoundPlace | undefined> {
    const target = await placed(link);
    const isInRoot = target !== undefined && isInside(this.#around.root, target.path);
    const isProgram = !isInRoot && PROGRAMS.some((directory) => target && isInside(directory, target.path));
    if (target === undefined || isProgram) return undefined;
    if (this.#isHidden(spelled, link)) this.#hide(target.path);
    // What is below the working directory is searched at its own path too, and a place outside only if a pattern names it.
    return this.#steps.areNamed(steps) || this.#isHidden(spelled, target.path) ? target : undefined;
  }

  /** Hides the place, or returns it as a directory to search. A directory that contains the working directory is never hidden itself. */
  #stopAt(spelled: string, { path, isDirectory }: FoundPlace, steps: Steps): Stop | undefined {
    if (SYSTEM_VIEWS.includes(path)) return undefined;
    const isMatch = this.#isHidden(spelled, path);
    if (isMatch) this.#hide(path);
    const isSearched = isDirectory && !this.hidden.has(path) && this.#steps.mayMatchBelow(steps);
    return isSearched ? { spelled, real: path, steps } : undefined;
  }

  #hide(path: string): void {
    if (!isInside(path, this.#around.root)) this.hidden.add(path);
  }

  #isHidden(spelled: string, real: string): boolean {
    return this.#patterns.some((pattern) => pattern.matches({ written: spelled, spelled, real }, this.#around, false));
  }
}

const isWild = (part: string): boolean => /[*?[\]\\]/.test(part);

/** The literal path before the first wildcard; undefined for a pattern that matches at any depth. */
function prefixOf({ anchor }: PathPattern, { root, home }: Surroundings): string | undefined {
  if (!anchor) return undefined;
  const at = anchor.parts.findIndex(isWild);
  const parts = at === -1 ? anchor.parts : anchor.parts.slice(0, at);
  return join({ root: '/', home, cwd: root }[anchor.base], ...parts);
}

/** The directories on the way of each prefix, links resolved, if the prefix leads to a hidden place. */
async function heldFor(prefixes: readonly string[], hide: readonly string[], root: string): Promise<string[]> {
  const hold = new Set<string>();
  for (const prefix of prefixes) {
    if (!isInside(root, prefix)) continue;
    const target = (await placed(prefix))?.path ?? prefix;
    const isHiding = hide.some((path) => isInside(target, path) || isInside(path, target));
    if (!isHiding) continue;
    for (const path of directoriesBetween(root, prefix)) {
      const place = await placed(path);
      if (place?.isDirectory) for (const each of directoriesBetween(root, place.path)) hold.add(each);
    }
  }
  return [...hold].filter((directory) => !hide.some((path) => isInside(path, directory)));
}

/** All directories from the first one below the root down to the path itself. */
function directoriesBetween(root: string, path: string): string[] {
  if (path === root || !isInside(root, path)) return [];
  const parts = path
    .slice(root.length)
    .split('/')
    .filter((part) => part !== '');
  return parts.map((_, index) => join(root, ...parts.slice(0, index + 1)));
}
