/**
 * The platform timers that a tool's code sets. Invariant: cleared, fired and unref'd timers do not count, nor do those
 * of Node or a package. The global functions are replaced during the watch and behave as before.
 */
import { AsyncLocalStorage } from 'node:async_hooks';

/** The active timers of one execution. */
export type OwnTimers = Set<NodeJS.Timeout>;

const owners = new AsyncLocalStorage<OwnTimers>();
const ownerOf = new WeakMap<NodeJS.Timeout, OwnTimers>();

const forget = (timer: unknown): void => {
  if (typeof timer === 'object' && timer !== null)
    ownerOf.get(timer as NodeJS.Timeout)?.delete(timer as NodeJS.Timeout);
};

/** Every timer that `act` or its continuations set belongs to this owner. */
export const timersSetIn = <T>(timers: OwnTimers, act: () => T): T => owners.run(timers, act);

/** Returns true if code of Node or of a package is the caller in this stack. */
export const isForeign = (stack: string | undefined, frame: number): boolean =>
  /node:|[\\/]node_modules[\\/]/.test(stack?.split('\n')[frame] ?? '');

const CALLER = 2;
type SetTimer = (act: (...args: unknown[]) => void, ms?: number, ...extra: unknown[]) => NodeJS.Timeout;

function settingFor(inner: SetTimer, repeats: boolean): SetTimer {
  return function set(act, ms, ...extra) {
    const timers = owners.getStore();
    if (!timers || typeof act !== 'function' || isForeign(new Error('who sets it').stack, CALLER))
      return inner(act, ms, ...extra);
    const ring = (...args: unknown[]): void => {
      if (!repeats) timers.delete(timer);
      act(...args);
    };
    const timer = inner(ring, ms, ...extra);
    timers.add(timer);
    ownerOf.set(timer, timers);
    return timer;
  };
}

const NAMES = ['setTimeout', 'setInterval', 'clearTimeout', 'clearInterval'] as const;
type Functions = Record<(typeof NAMES)[number], (...args: never[]) => unknown>;
const globals = globalThis as unknown as Functions;
/** The replacements of the global functions, and the originals. */
let watched: { readonly put: Functions; readonly before: Functions } | undefined;
let watchers = 0;

function replaced(): NonNullable<typeof watched> {
  const before = Object.fromEntries(NAMES.map((name) => [name, globals[name]])) as Functions;
  const clearing = (inner: Functions['clearTimeout']) => (timer: never) => {
    forget(timer);
    inner(timer);
  };
  const put: Functions = {
    setTimeout: settingFor(before.setTimeout as SetTimer, false),
    setInterval: settingFor(before.setInterval as SetTimer, true),
    clearTimeout: clearing(before.clearTimeout),
    clearInterval: clearing(before.clearInterval),
  };
  for (const name of NAMES) {
    // `promisify` finds its own form of setTimeout among these properties.
    Object.defineProperties(put[name], Object.getOwnPropertyDescriptors(before[name]));
    globals[name] = put[name];
  }
  return { put, before };
}

/** Watches until the returned function is called. */
export function watchTimers(): () => void {
  watchers += 1;
  watched ??= replaced();
  let isOver = false;
  return () => {
    if (isOver) return;
    isOver = true;
    watchers -= 1;
    if (watchers > 0 || !watched) return;
    const { put, before } = watched;
    for (const name of NAMES) if (globals[name] === put[name]) globals[name] = before[name];
    watched = undefined;
  };
}

/** Returns the timers that keep the process alive. */
export const runningIn = (timers: OwnTimers): readonly NodeJS.Timeout[] =>
  [...timers].filter((timer) => timer.hasRef());
