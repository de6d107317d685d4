/**
 * How long a call may take. Rule: set by the executor, read by tools that end their own work and want to say what came
 * of it before they are left behind; a tool that does not know of it loses nothing but those words.
 */
const limits = new WeakMap<AbortSignal, number>();

/** The executor leaves the call of this signal behind after `ms`. */
export const limitTime = (signal: AbortSignal, ms: number): void => void limits.set(signal, ms);

/** Milliseconds for the call of this signal; undefined where no executor runs it. */
export const timeLimitOf = (signal: AbortSignal): number | undefined => limits.get(signal);
