/**
 * The library's clock, timers, ids and randomness. Invariant: nothing else in the library reads them. An option replaces
 * each, so that a test or a replay controls the time.
 */
import type { Journal } from '../../machines/internal.ts';
import type { ScaleImage } from '../content/scaleImage.ts';
import type { LogStore } from '../stores/logStore.ts';
import { TIMER_MAX_MS } from '../timeLimit.ts';
import type { ExecuteTool } from '../tools/execute.ts';
import { callback, check, hasMethods, object, type Validator } from '../validation.ts';
import type { Interpreter } from './interpreter/interpreter.ts';

/** The surroundings of an agent: clock, ids, randomness, timers and stores. Each has a default of the platform. */
export interface Ports {
  /** Milliseconds since 1970. If the number is not finite, the log is not written. */
  now(): number;
  /** Makes ids of conversations, messages and runs. Default: random UUIDs. */
  newId(): string;
  /** 0 to 1. */
  random(): number;
  /** Calls `fire` once after `ms`; the returned function stops the timer. */
  setTimer(ms: number, fire: () => void): () => void;
  /** Scales an image that is too large for a model; default: the platform's canvas, or sharp. */
  scaleImage?: ScaleImage;
  /** Where conversations are stored if the agent names no store of its own. */
  store?: LogStore;
  /** Puts another journal around or in place of the embedded one: recording, replaying, another host. */
  journal?(embedded: Journal, conversationId: string): Journal;
  /** Runs the charts in place of the compiled interpreter. */
  interpreter?: Interpreter;
  /** Executes tools in place of the library: a test can watch them, or return an invented outcome. */
  execute?: ExecuteTool;
}

/** Calls `fire` after `ms`, also beyond the longest timer; the returned function stops the timer. */
function platformTimer(ms: number, fire: () => void): () => void {
  let handle: ReturnType<typeof setTimeout>;
  const arm = (left: number): void => {
    const part = Math.min(left, TIMER_MAX_MS);
    handle = setTimeout(() => (left > part ? arm(left - part) : fire()), part);
  };
  arm(Math.max(0, ms));
  return () => clearTimeout(handle);
}

export const platformPorts: Ports = {
  now: () => Date.now(),
  newId: () => crypto.randomUUID(),
  random: () => Math.random(),
  setTimer: platformTimer,
};

export const storeValidator: Validator = {
  expected: 'a store with open, list and delete',
  test: (value) => hasMethods(value, 'open', 'list', 'delete'),
  secret: true,
};

export const portsValidator = /* @__PURE__ */ object(
  {
    now: callback,
    newId: callback,
    random: callback,
    setTimer: callback,
    scaleImage: callback,
    store: storeValidator,
    journal: callback,
    interpreter: callback,
    execute: callback,
  } satisfies { [name in keyof Ports]-?: Validator },
  { defaults: platformPorts },
);

/** The ports of the option, completed by the platform's. Throws ConfigurationError for a port that is unknown or not a function. */
export const portsOf = (ports: Partial<Ports> = {}): Ports =>
  check('the option ports', ports, portsValidator, 'ports.') as Ports;
